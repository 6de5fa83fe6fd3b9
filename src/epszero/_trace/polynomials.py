"""Arrays whose entries are polynomials, and how the primitives of JAX act on them.

A polynomial is a sum of terms c · a₁a₂…: a number times a monomial of atoms, which are entries of arrays that a traced
program computes. Sums, products, whole powers and moves of numbers are followed exactly, term by term, in Python; that
a monomial has the same name wherever it comes from is what makes aᵢaⱼ and aⱼaᵢ one. All else has no rule here and
raises `NotPolynomial`: rounding to fewer digits, branches and indices that are not constant, derivatives of somebody's
making, a stopped gradient. Cost: O(terms), counted, and given up beyond a number of them.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._trace.intervals.arithmetic import NoEnclosure
from epszero._trace.intervals.moves import IDENTITIES, MOVED, SCATTERED, VIEWS, bound, sources
from epszero._trace.programs import applied

HIGHEST = 4  # degree of a monomial
WORK = 200_000  # terms that are written down for one function

Monomial = tuple[int, ...]
"""Atoms by number, in increasing order, as often as they enter."""


class NotPolynomial(Exception):
    """An entry is not known to be a polynomial in the atoms, or has too many terms or too high a degree."""


class Work:
    """Counts terms."""

    def __init__(self, most: int = WORK) -> None:
        self.left = most

    def done(self, terms: int) -> None:
        self.left -= terms
        if self.left < 0:
            raise NotPolynomial


class Polynomial:
    """A sum of terms."""

    __slots__ = ("terms", "work")

    def __init__(self, terms: dict[Monomial, float], work: Work) -> None:
        self.terms, self.work = terms, work

    def __add__(self, other: Any) -> "Polynomial":
        mine, theirs = self.terms, terms_of(other)
        self.work.done(1 + len(mine) + len(theirs))
        total = dict(mine)
        for monomial, number in theirs.items():
            found = total.get(monomial, 0.0) + number
            if found == 0:
                del total[monomial]
            else:
                total[monomial] = found
        return Polynomial(total, self.work)

    __radd__ = __add__

    def __mul__(self, other: Any) -> "Polynomial":
        mine, theirs = self.terms, terms_of(other)
        self.work.done(1 + len(mine) * len(theirs))
        total: dict[Monomial, float] = {}
        for a, c in mine.items():
            for b, d in theirs.items():
                monomial = tuple(sorted(a + b)) if a and b else a or b
                total[monomial] = total.get(monomial, 0.0) + c * d
        if any(len(monomial) > 2 * HIGHEST for monomial in total):
            raise NotPolynomial
        return Polynomial({monomial: number for monomial, number in total.items() if number != 0}, self.work)

    __rmul__ = __mul__

    def __neg__(self) -> "Polynomial":
        return self * -1.0

    def __sub__(self, other: Any) -> "Polynomial":
        return self + -other

    def __rsub__(self, other: Any) -> "Polynomial":
        return -self + other


def terms_of(entry: Any) -> dict[Monomial, float]:
    """Of a polynomial or a number."""
    if isinstance(entry, Polynomial):
        return entry.terms
    number = float(entry)
    if not math.isfinite(number):
        raise NotPolynomial
    return {(): number} if number else {}


def made(equation: Any, operands: list[Any]) -> list[Any]:
    """What an operation makes of arrays, some of them of polynomials (NumPy arrays of objects), the others constant."""
    name, params = equation.primitive.name, equation.params
    try:
        if name in MOVES:
            return MOVES[name](equation, operands)
        rule = ARITHMETIC.get(name)
        if rule is None or any(str(variable.aval.dtype) != "float64" for variable in equation.outvars):
            raise NotPolynomial
        return [_array(rule(params, *map(_objects, operands)), variable.aval.shape) for variable in equation.outvars]
    except NoEnclosure as error:
        raise NotPolynomial from error


def _objects(operand: Any) -> Any:
    return operand if operand.dtype == object else operand.astype(object)


def _array(values: Any, shape: Sequence[int]) -> Any:
    """An array of objects, even of one."""
    found = np.empty(shape, dtype=object)
    found[...] = values
    return found


def is_constant(operand: Any) -> bool:
    """Whether no entry is a polynomial."""
    return operand.dtype != object


# -- moves of numbers, of any kind ------------------------------------------------------------------------------------


def _view(equation: Any, operands: list[Any]) -> list[Any]:
    return [VIEWS[equation.primitive.name](equation.params)(operands[0])]


def _same(_: Any, operands: list[Any]) -> list[Any]:
    return list(operands)


def _concatenated(equation: Any, operands: list[Any]) -> list[Any]:
    return [np.concatenate(list(map(_objects, operands)), axis=equation.params["dimension"])]


def _stacked(equation: Any, operands: list[Any]) -> list[Any]:
    return [np.stack(list(map(_objects, operands)), axis=equation.params["axis"])]


def _unstacked(equation: Any, operands: list[Any]) -> list[Any]:
    axis = int(equation.params["axis"])
    rows = np.moveaxis(operands[0], axis, 0)
    return [_array(row, variable.aval.shape) for row, variable in zip(rows, equation.outvars, strict=True)]


def _split(equation: Any, operands: list[Any]) -> list[Any]:
    cuts = np.cumsum([int(size) for size in equation.params["sizes"]])[:-1]
    return list(np.split(operands[0], cuts, int(equation.params["axis"])))


def _moved(equation: Any, operands: list[Any]) -> list[Any]:
    """To places that are constant."""
    name, params = equation.primitive.name, equation.params
    what = [0, 2] if name in SCATTERED else list(range(MOVED[name]))
    if not all(is_constant(operand) for place, operand in enumerate(operands) if place not in what):
        raise NotPolynomial
    places = sources(equation.primitive, operands, params, [operand.shape for operand in operands])
    filled = params.get("fill_value")
    flat = [_objects(operands[place]).reshape(-1) for place in what]
    return [np.concatenate([*flat, _array(0.0 if filled is None else float(filled), (1,))])[places]]


def _selected(_: Any, operands: list[Any]) -> list[Any]:
    which, *cases = operands
    if not is_constant(which):
        raise NotPolynomial
    place = np.clip(np.asarray(which, dtype=int), 0, len(cases) - 1)
    found = np.broadcast_to(_objects(cases[0]), cases[0].shape).copy()
    for number, case in enumerate(cases[1:], start=1):
        chosen = np.broadcast_to(place == number, found.shape)
        found[chosen] = _objects(case)[chosen]
    return [found]


def _converted(equation: Any, operands: list[Any]) -> list[Any]:
    """A change of type that keeps all numbers."""
    old, new = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
    if new.kind != "f" or old.kind not in "iubf" or (old.kind == "f" and new.itemsize < old.itemsize):
        raise NotPolynomial
    return [operands[0]]


def _scattered(equation: Any, operands: list[Any]) -> list[Any]:
    """A sum into places that are constant: each number goes where the primitive puts a 1."""
    into, places, updates = operands
    if not is_constant(places):
        raise NotPolynomial
    result = _objects(into).reshape(-1).copy()
    with jax.enable_x64(True), jax.ensure_compile_time_eval():
        empty, units = jnp.zeros(into.shape), jnp.eye(updates.size).reshape(updates.size, *updates.shape)
        put = jax.vmap(lambda unit: applied(equation.primitive, [empty, places, unit], equation.params)[0])(units)
    rows = np.asarray(put).reshape(updates.size, -1)
    for number, target in zip(*np.nonzero(rows), strict=True):
        result[target] = result[target] + updates.reshape(-1)[number]
    return [result.reshape(into.shape)]


MOVES: dict[str, Callable[[Any, list[Any]], list[Any]]] = {
    **dict.fromkeys([name for name in VIEWS if name != "row"], _view),
    **dict.fromkeys([name for name in IDENTITIES if name != "stop_gradient"], _same),
    **dict.fromkeys([*MOVED, "scatter"], _moved),
    **dict.fromkeys(["scatter-add", "scatter_add"], _scattered),
    "concatenate": _concatenated,
    "split": _split,
    "stack": _stacked,
    "unstack": _unstacked,
    "select_n": _selected,
    "convert_element_type": _converted,
}


# -- arithmetic, in double precision ----------------------------------------------------------------------------------


def _power(params: Any, x: Any) -> Any:
    return _whole_power(x, int(params["y"]))


def _whole_power(x: Any, exponent: int) -> Any:
    if not 1 <= exponent <= HIGHEST:
        raise NotPolynomial
    result = x
    for _ in range(exponent - 1):
        result = _array(result * x, x.shape)
    return result


def _literal_power(_: Any, x: Any, y: Any) -> Any:
    """To one whole number, which is written into the program."""
    if any(isinstance(entry, Polynomial) for entry in y.reshape(-1)):
        raise NotPolynomial
    numbers = {float(entry) for entry in y.reshape(-1)}
    number = next(iter(numbers), 0.0)
    if len(numbers) != 1 or not number.is_integer():
        raise NotPolynomial
    return _whole_power(np.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape)), int(number))


def _quotient(_: Any, x: Any, y: Any) -> Any:
    if any(isinstance(entry, Polynomial) or float(entry) == 0 for entry in y.reshape(-1)):
        raise NotPolynomial
    return x * (1.0 / y)


def _sum(params: Any, x: Any) -> Any:
    return np.sum(x, axis=tuple(int(axis) for axis in params["axes"]))


def _running_sum(params: Any, x: Any) -> Any:
    axis = int(params["axis"])
    return np.flip(np.cumsum(np.flip(x, axis), axis=axis), axis) if params["reverse"] else np.cumsum(x, axis=axis)


def _contracted(params: Any, x: Any, y: Any) -> Any:
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    left_free = [axis for axis in range(x.ndim) if axis not in (*left, *left_batch)]
    right_free = [axis for axis in range(y.ndim) if axis not in (*right, *right_batch)]
    batch, rows = [x.shape[axis] for axis in left_batch], [x.shape[axis] for axis in left_free]
    columns = [y.shape[axis] for axis in right_free]
    inner = math.prod(x.shape[axis] for axis in left)
    if inner == 0:
        return np.zeros([*batch, *rows, *columns])
    a = np.transpose(x, [*left_batch, *left_free, *left]).reshape(math.prod(batch), math.prod(rows), 1, inner)
    b = np.transpose(y, [*right_batch, *right_free, *right]).reshape(math.prod(batch), 1, math.prod(columns), inner)
    return np.sum(a * b, axis=-1).reshape([*batch, *rows, *columns])


ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": lambda _, x, y: x + y,
    "add_any": lambda _, x, y: x + y,
    "sub": lambda _, x, y: x - y,
    "neg": lambda _, x: -x,
    "mul": lambda _, x, y: x * y,
    "div": _quotient,
    "square": lambda _, x: x * x,
    "integer_pow": _power,
    "pow": _literal_power,
    "reduce_sum": _sum,
    "cumsum": _running_sum,
    "dot_general": _contracted,
}


def evaluated(equation: Any, operands: list[Any]) -> list[Any]:
    """What an operation makes of constants."""
    if equation.primitive.name in VIEWS:
        return _view(equation, operands)
    return bound(equation.primitive, operands, equation.params)
