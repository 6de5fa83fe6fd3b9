"""A traced function of x and ξ as forms: sums of weighted functions of affine maps (forms.py).

What does not depend on x is computed, or enclosed over the support of ξ. Of what depends on x, affine operations make
affine maps, moves move rows, and a function of one number makes a local function of those. A value that is not of this
kind is opaque: it may be thrown away, as the largest entry that logsumexp subtracts, and otherwise nothing is claimed.
What is claimed is true of the values, whatever derivative somebody wrote down beside them. Cost: one walk.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point
from epszero._trace.intervals.enclosed import is_logaddexp
from epszero._trace.intervals.moves import IDENTITIES, VIEWS, bound, plain_array
from epszero._trace.intervals.program import Slot, prepared
from epszero._trace.intervals.rules import RULES, Strict, Truth, lifted
from epszero._trace.intervals.shifts import matters
from epszero._trace.programs import call_of, is_literal, written_at
from epszero._trace.rules.choices import Compared
from epszero._trace.rules.forms import Form, affine, key_of
from epszero._trace.rules.operations import OPERATIONS, Opaque, Random, Walk, opaque
from epszero._trace.rules.ranges import Ranges
from epszero._types import PyTree

QUICK: dict[str, Callable[..., Any]] = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "neg": np.negative}


class Decomposed(NamedTuple):
    """What a function returns: forms, or numbers that do not depend on x; and over which ranges they were read."""

    outputs: list[Any]
    ranges: Ranges


def decomposed(function: Callable[..., Any], x: PyTree, ranges: Ranges, xi: PyTree, support: PyTree) -> Decomposed:
    """`function(x, ξ)` for x in the box of `ranges`, flat, and ξ in `support`: intervals nested like `xi`."""
    with jax.enable_x64(True):
        closed = jax.make_jaxpr(function)(*jax.tree.map(_shape, (x, xi)))
    leaves = jax.tree.leaves(x)
    sizes = [int(np.size(leaf)) for leaf in leaves]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    given: list[Any] = []
    whole = _whole(starts[-1])
    for leaf, start, size in zip(leaves, starts, sizes, strict=False):
        given.append(Form((size,), whole).take(np.arange(start, start + size), np.shape(leaf)))
    boxes = jax.tree.leaves(support, is_leaf=lambda part: isinstance(part, Interval))
    for place, box in enumerate(boxes):
        if np.dtype(closed.jaxpr.invars[len(leaves) + place].aval.dtype).kind != "f":
            raise NoEnclosure("samples that are whole numbers")
        given.append(Random(box, key_of("xi", place)))
    with np.errstate(all="ignore"):
        outputs = _Walker(ranges).through(closed.jaxpr, closed.consts, given)
    for one in outputs:
        if isinstance(one, Opaque):
            raise NoEnclosure(one.why)
    return Decomposed(outputs, ranges)


def _shape(leaf: Any) -> jax.ShapeDtypeStruct:
    kind = np.asarray(leaf).dtype
    return jax.ShapeDtypeStruct(np.shape(leaf), np.float64 if kind.kind == "f" else kind)


def _whole(n: int) -> Any:
    """x itself."""
    return affine(point(np.eye(n)), point(np.zeros(n)), key_of("x", n), False, False)


class _Walker(Walk):
    """Follows a program."""

    def through(self, jaxpr: Any, consts: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(zip(jaxpr.constvars, map(plain_array, consts), strict=True))
        known.update(zip(jaxpr.invars, given, strict=True))

        def of(atom: Any) -> Any:
            return np.asarray(atom.val, dtype=atom.aval.dtype) if is_literal(atom) else known[atom]

        for equation in jaxpr.eqns:
            operands = [of(atom) for atom in equation.invars]
            try:
                results = self.made(jaxpr, equation, operands)
            except NoEnclosure as why:
                results = [Opaque(str(why))] * len(equation.outvars)
            known.update(zip(equation.outvars, results, strict=True))
        return [of(atom) for atom in jaxpr.outvars]

    def made(self, jaxpr: Any, equation: Any, operands: list[Any]) -> list[Any]:
        """What an operation makes."""
        if equation.primitive.name == "stop_gradient":
            if not matters(jaxpr, equation.outvars[0], call_of):  # whatever it is: it cancels
                return [np.zeros(equation.outvars[0].aval.shape)]
            if isinstance(operands[0], Form | Opaque):
                return [Opaque("a stopped gradient")]
        inside = call_of(equation)
        if inside is not None:
            special = _special(self, inside[0], operands)
            return self.through(*inside, operands) if special is None else special
        found = opaque(operands)
        if found is not None:
            return [found] * len(equation.outvars)
        if any(isinstance(operand, Form | Compared) for operand in operands):
            return self.of_forms(equation, operands)
        random = any(isinstance(operand, Random) for operand in operands)
        return (_enclosed if random else _computed)(equation, operands)

    def of_forms(self, equation: Any, operands: list[Any]) -> list[Any]:
        """The same of what depends on x."""
        if not equation.outvars:  # an effect, such as printing
            return []
        name, params, shape = equation.primitive.name, equation.params, equation.outvars[0].aval.shape
        if any(variable.aval.dtype.kind == "f" and variable.aval.dtype.itemsize < 8 for variable in equation.outvars):
            raise NoEnclosure("numbers of fewer digits")
        if name in IDENTITIES:
            return operands
        first = operands[0].margin if isinstance(operands[0], Compared) else operands[0]
        if name in VIEWS:
            moved = first.take(VIEWS[name](params)(np.arange(first.size).reshape(first.shape)), shape)
            return [Compared(moved) if isinstance(operands[0], Compared) else moved]
        if name not in OPERATIONS or (isinstance(operands[0], Compared) and name != "select_n"):
            raise NoEnclosure(f"{name} has no rule")
        key = key_of(name, _told(params), shape, *(_mark(operand) for operand in operands))
        if key not in self.known:  # costs of many agents compute many things alike
            self.known[key] = OPERATIONS[name](self, equation, operands)
        return self.known[key]


def _mark(operand: Any) -> Any:
    if isinstance(operand, Compared):
        return key_of("compared", operand.margin.mark)
    return operand.mark if isinstance(operand, Form) else operand.key if isinstance(operand, Random) else operand


def _computed(equation: Any, operands: list[Any]) -> list[Any]:
    """Of numbers that depend on nothing."""
    name = equation.primitive.name
    kinds = {variable.aval.dtype for variable in (*equation.outvars, *equation.invars)}
    if name in VIEWS:
        return [np.asarray(VIEWS[name](equation.params)(operands[0]))]
    if name in QUICK and kinds == {np.dtype(np.float64)}:
        return [np.asarray(QUICK[name](*operands))]
    return bound(equation.primitive, operands, equation.params)


def _enclosed(equation: Any, operands: list[Any]) -> list[Any]:
    """Of numbers that depend on ξ."""
    name = equation.primitive.name
    if name in ("scan", "while", "cond") or name not in RULES:
        return [Opaque(f"{name} of what depends on the sample")] * len(equation.outvars)
    if any(variable.aval.dtype.kind == "f" and variable.aval.dtype.itemsize < 8 for variable in equation.outvars):
        return [Opaque("numbers of fewer digits")] * len(equation.outvars)
    slots = [Slot(0) if isinstance(operand, Random) else operand for operand in operands]
    known = prepared(equation, slots, equation.params)
    if "refused" in known:
        raise known["refused"]
    same: dict[bytes, Any] = {}
    values: list[Any] = []
    for operand in operands:  # equal ones as one object, so that r·r is a square
        if isinstance(operand, Random):
            values.append(same.setdefault(operand.key, operand.value))
        else:
            values.append(operand)
    results = RULES[name](known, values, Strict.UNDEFINED)
    marks = [operand.key if isinstance(operand, Random) else operand for operand in operands]
    key = key_of(name, _told(equation.params), *marks)
    return [Random(_settled(one), key_of(key, place)) for place, one in enumerate(results)]


def _settled(value: Any) -> Any:
    value = lifted(value)
    if isinstance(value, Truth):
        return value
    lower, upper = value
    return Interval(np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper))


def _told(params: Any) -> str:
    return str(sorted((key, str(value)) for key, value in params.items()))


def _special(walk: Walk, jaxpr: Any, operands: list[Any]) -> list[Any] | None:
    """Functions that are known by the place where they are written down."""
    if not any(isinstance(operand, Form) for operand in operands) or opaque(operands) is not None:
        return None
    where = written_at(jaxpr)
    if is_logaddexp(jaxpr):
        return [walk.logaddexp(*operands, shape=jaxpr.outvars[0].aval.shape)]
    if where.startswith("xlogy at ") and "/jax/_src/" in where:
        return [walk.xlogy(*operands, shape=jaxpr.outvars[0].aval.shape)]
    return None
