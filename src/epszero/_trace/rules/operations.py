"""What the operations of a traced program make of forms."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point
from epszero._trace.intervals.moves import MOVED, SCATTERED, bound, sources
from epszero._trace.rules import expressions, maps
from epszero._trace.rules.forms import Form, Given, Term, affine, applied, entries, joined, key_of, nothing
from epszero._trace.rules.groups import group_of_logarithm, group_of_root
from epszero._trace.rules.nested import composed_atom
from epszero._trace.rules.ranges import Ranges


class Random(NamedTuple):
    """An array that depends on ξ: an enclosure over the support, and its key."""

    value: Any  # an Interval, or a Truth
    key: bytes


class Opaque(NamedTuple):
    """Depends on x, in a way that is not followed."""

    why: str


def opaque(operands: Sequence[Any]) -> Opaque | None:
    """The first that is."""
    return next((one for one in operands if isinstance(one, Opaque)), None)


class Walk:
    """What operations need to know on the way."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges
        self.n = len(ranges.box.lower)
        self.known: dict[bytes, list[Any]] = {}

    def given(self, value: Any, shape: tuple[int, ...]) -> Given:
        """Numbers that do not depend on x, as an array of that shape."""
        if isinstance(value, Random):
            if not isinstance(value.value, Interval):
                raise NoEnclosure("computes with truth values as numbers")
            base, old, mark, random = value.value, value.value.lower.shape, value.key, True
        else:
            base, old, random = point(np.asarray(value, dtype=np.float64)), np.shape(value), False
            if not np.isfinite(base.lower).all():
                raise NoEnclosure("a number that is not finite")
            mark = key_of(np.asarray(base.lower))
        found = Given.of(base, mark, random)
        if old == shape:
            return found
        return found.take(np.broadcast_to(np.arange(found.base.lower.size).reshape(old), shape).reshape(-1))

    def form(self, value: Any, shape: tuple[int, ...]) -> Form:
        """Anything as a form of that shape."""
        if isinstance(value, Form):
            if value.shape == shape:
                return value
            return value.take(np.broadcast_to(np.arange(value.size).reshape(value.shape), shape), shape)
        given = self.given(value, shape)
        rows = len(given.src)
        zero = nothing(rows, self.n)
        return Form(shape, affine(zero.A, given.values, key_of("given", given.mark), False, given.random, flat=True))

    def logaddexp(self, a: Any, b: Any, shape: tuple[int, ...]) -> Form:
        """b + softplus(a − b)."""
        first, second = self.form(a, shape), self.form(b, shape)
        if first.affine.flat and not first.terms:
            first, second = second, first
        return second.plus(self.atom("softplus", None, minus(first, second)))

    def xlogy(self, a: Any, b: Any, shape: tuple[int, ...]) -> Form:
        """a log b, 0 at a = 0."""
        first, second = self.form(a, shape), self.form(b, shape)
        return self.product(first, self.atom("log", None, second))

    def atom(self, name: str, detail: Any, inner: Form) -> Form:
        """A function of one number, entry by entry."""
        if inner.affine.flat and not inner.terms:
            raise NoEnclosure(f"{name} of what does not depend on x")
        if any(term.matrix is not None or term.local.expression[0] in expressions.GROUPS for term in inner.terms):
            return composed_atom(name, detail, inner, self.ranges)
        made = applied(name, detail, inner.local())
        return Form(inner.shape, made.affine, made.terms)

    def product(self, a: Form, b: Form) -> Form:
        """Entry by entry."""
        for one, other in ((a, b), (b, a)):
            if one.affine.flat and not one.terms:
                return other.times(_numbers(one))
        made = entries(joined(expressions.multiplied, a.local(), b.local()))
        return Form(a.shape, made.affine, made.terms)


def _numbers(form: Form) -> Given:
    old = form.affine
    return Given(old.b, old.src, key_of("offset", old.key), old.shifts)


def minus(a: Form, b: Form) -> Form:
    """a − b."""
    return a.plus(b.times(Given.constant(np.full(b.size, -1.0))))


Operation = Callable[[Walk, Any, list[Any]], list[Any]]
OPERATIONS: dict[str, Operation] = {}


def operation(*names: str) -> Callable[[Operation], Operation]:
    """Enters a function as the rule of these primitives."""

    def enter(rule: Operation) -> Operation:
        OPERATIONS.update(dict.fromkeys(names, rule))
        return rule

    return enter


def shape_made(equation: Any) -> tuple[int, ...]:
    """Of what an operation makes."""
    return tuple(equation.outvars[0].aval.shape)


@operation("add", "add_any", "sub")
def _add(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    a, b = (walk.form(operand, shape_made(equation)) for operand in operands)
    return [minus(a, b) if equation.primitive.name == "sub" else a.plus(b)]


@operation("neg")
def _neg(_: Walk, __: Any, operands: list[Any]) -> list[Any]:
    form = operands[0]
    return [form.times(Given.constant(np.full(form.size, -1.0)))]


@operation("mul")
def _mul(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape = shape_made(equation)
    for one, other in (operands, operands[::-1]):
        if not isinstance(one, Form):
            return [walk.form(other, shape).times(walk.given(one, shape))]
    a, b = (walk.form(operand, shape) for operand in operands)
    return [walk.product(a, b)]


@operation("div")
def _div(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape = shape_made(equation)
    above, below = operands
    if not isinstance(below, Form):
        given = walk.given(below, shape)
        values = given.values
        if np.any((values.lower <= 0) & (values.upper >= 0)):
            raise NoEnclosure("a division by what may be 0")
        one = arithmetic.div(point(np.ones(values.lower.shape)), values)
        turned = Given.of(one, key_of("inverse", given.mark), given.random)
        return [walk.form(above, shape).times(turned)]
    inverse = walk.atom("reciprocal", None, walk.form(below, shape))
    return [walk.product(walk.form(above, shape), inverse)]


ATOMS = ("exp", "expm1", "exp2", "log1p", "logistic", "tanh", "square", "rsqrt", "sin", "cos", "atan", "sinh", "cosh",
         "asinh", "erf")  # fmt: skip


@operation(*ATOMS)
def _atom(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    return [walk.atom(equation.primitive.name, None, operands[0])]


@operation("log", "sqrt", "abs")
def _outer(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    """Functions that are read together with the sum inside of them."""
    name, form = equation.primitive.name, operands[0]
    mixed = any(term.matrix is not None for term in form.terms)
    if name == "abs" and np.all(walk.ranges.of_form(form).lower >= 0):
        return [form]
    if mixed and name in ("log", "sqrt"):
        try:
            return [group_of_logarithm(form) if name == "log" else group_of_root(form)]
        except NoEnclosure:  # of something else
            pass
    return [walk.atom(name, None, form)]


@operation("integer_pow")
def _integer_pow(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    return [walk.atom("integer_pow", int(equation.params["y"]), operands[0])]


@operation("pow")
def _pow(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape = shape_made(equation)
    base, exponent = operands
    if isinstance(base, Form):
        if isinstance(exponent, Form | Random):
            raise NoEnclosure("a power with an exponent that varies")
        form, p = walk.form(base, shape), walk.given(exponent, shape)
        if p.number is not None and p.number == round(p.number) and abs(p.number) < 64:
            return [walk.atom("integer_pow", int(p.number), form)]
        return [walk.atom("pow", p, form)]
    logarithm = walk.given(base, shape)
    if logarithm.random or np.any(logarithm.values.lower <= 0):
        raise NoEnclosure("a power of what is not a positive constant")
    values = arithmetic.widened(np.log(logarithm.values.lower), np.log(logarithm.values.upper))
    scaled = walk.form(exponent, shape).times(Given.of(values, key_of("log", logarithm.mark), False))
    return [walk.atom("exp", None, scaled)]


@operation("reduce_sum")
def _reduce_sum(_: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    form, axes = operands[0], tuple(int(axis) for axis in equation.params["axes"])
    T = maps.summing(form.shape, axes)
    return [form.mixed(point(T), shape_made(equation), key_of("sum", T), random=False)]


@operation("cumsum")
def _cumsum(_: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    form, params = operands[0], equation.params
    T = maps.running(form.shape, int(params["axis"]), bool(params["reverse"]))
    return [form.mixed(point(T), shape_made(equation), key_of("sum", T), random=False)]


@operation("dot_general")
def _dot_general(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape, dims = shape_made(equation), equation.params["dimension_numbers"]
    for place, one in enumerate(operands):
        if not isinstance(one, Form):
            form = operands[1 - place]
            C = one.value if isinstance(one, Random) else point(np.asarray(one, dtype=np.float64))
            mark = one.key if isinstance(one, Random) else key_of(np.asarray(one))
            T = maps.contraction(C, dims, form.shape, first=place == 0)
            key = key_of("contraction", mark, str(dims), place)
            return [form.mixed(T, shape, key, random=isinstance(one, Random))]
    a, b = operands
    left, right, inner = maps.pairs((a.shape, b.shape), dims)
    products = walk.product(a.take(left, (len(left),)), b.take(right, (len(right),)))
    total = maps.summing((len(left) // max(inner, 1), inner), (1,))
    return [products.mixed(point(total), shape, key_of("sum", total), random=False)]


@operation("convert_element_type")
def _convert(_: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    if isinstance(operands[0], Form) and equation.outvars[0].aval.dtype == np.float64:
        return operands
    raise NoEnclosure("a change of type")


@operation("concatenate", "stack")
def _concatenate(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape = shape_made(equation)
    if equation.primitive.name == "stack":
        axis = int(equation.params["axis"])
        shapes = [np.insert(atom.aval.shape, axis, 1).astype(int) for atom in equation.invars]
    else:
        axis = int(equation.params["dimension"])
        shapes = [atom.aval.shape for atom in equation.invars]
    places, start = [], 0
    for one in shapes:
        size = int(np.prod(one, dtype=np.int64))
        places.append(np.arange(start, start + size).reshape(one))
        start += size
    forms = [walk.form(one, tuple(atom.aval.shape)) for one, atom in zip(operands, equation.invars, strict=True)]
    order = np.concatenate(places, axis=axis)
    return [stacked(forms).take(order, shape)]


def _joined(parts: list[Interval]) -> Interval:
    lower = np.concatenate([part.lower for part in parts])
    exact = all(part.lower is part.upper for part in parts)
    return Interval(lower, lower if exact else np.concatenate([part.upper for part in parts]))


def stacked(forms: Sequence[Form]) -> Form:
    """One after another, flat."""
    sizes = [form.size for form in forms]
    total, starts = sum(sizes), np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    parts = [form.affine for form in forms]
    same = {part.key for part in parts}
    if len(same) == 1:  # rows of one map
        whole = parts[0].take(np.zeros(0, dtype=int))
        linear = type(whole)(whole.A, whole.b, np.concatenate([part.src for part in parts]), whole.key,
                             whole.moves, whole.shifts, whole.flat)  # fmt: skip
    else:
        rows = [part.rows for part in parts]
        A, b = (_joined([row[k] for row in rows]) for k in (0, 1))
        linear = affine(A, b, key_of("rows", *(part.mark for part in parts)), any(part.moves for part in parts),
                        any(part.shifts for part in parts), all(part.flat for part in parts))  # fmt: skip
    terms: list[Term] = []
    for form, start in zip(forms, starts, strict=False):
        for term in form.terms:
            ends: list[Any] = []
            for end in term.dense():
                wide = np.zeros((total, end.shape[1]))
                wide[start : start + form.size] = end
                ends.append(wide)
            exact = term.matrix is None or term.matrix.lower is term.matrix.upper
            matrix = Interval(ends[0], ends[0] if exact else ends[1])
            terms.append(replace(term, matrix=matrix))
    return Form((total,), linear, tuple(terms))


@operation("split")
def _split(_: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    form, axis = operands[0], int(equation.params["axis"])
    cuts = np.cumsum([int(size) for size in equation.params["sizes"]])[:-1]
    places = np.split(np.arange(form.size).reshape(form.shape), cuts, axis)
    return [form.take(part, part.shape) for part in places]


@operation("gather", "dynamic_slice", "pad", "dynamic_update_slice")
def _moved(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    name, params = equation.primitive.name, equation.params
    moved = MOVED[name]
    if any(isinstance(one, Form | Random) for one in operands[moved:]):
        raise NoEnclosure(f"{name} at places that depend on the point or the sample")
    shapes = [tuple(atom.aval.shape) for atom in equation.invars]
    places = sources(equation.primitive, [None if k < moved else one for k, one in enumerate(operands)], params, shapes)
    forms = [walk.form(operands[k], shapes[k]) for k in range(moved)]
    if np.any(places < 0):
        forms.append(walk.form(np.asarray(float(params["fill_value"])), ()))
    whole = forms[0] if len(forms) == 1 else stacked(forms)
    return [whole.take(np.where(places < 0, whole.size - 1, places), shape_made(equation))]


@operation(*(name for name in SCATTERED if name != "scatter"))
def _scatter_add(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    """A sum into places: a matrix, of the updates."""
    into, places, updates = operands
    if isinstance(places, Form | Random):
        raise NoEnclosure("a sum into places that depend on the point or the sample")
    shapes = [tuple(atom.aval.shape) for atom in equation.invars]
    size = int(np.prod(shapes[2], dtype=np.int64))
    numbers = np.arange(1.0, size + 1).reshape(shapes[2])
    zero = np.zeros(shapes[0])
    counted = bound(equation.primitive, [zero, places, np.ones(shapes[2])], equation.params)[0].reshape(-1)
    if counted.max(initial=0.0) > 1:
        raise NoEnclosure("a sum into places that meet")
    where = bound(equation.primitive, [zero, places, numbers], equation.params)[0].reshape(-1).round().astype(int)
    moved = walk.form(updates, shapes[2])
    with_zero = stacked([walk.form(np.asarray(0.0), ()), moved])
    return [walk.form(into, shapes[0]).plus(with_zero.take(where, shapes[0]))]
