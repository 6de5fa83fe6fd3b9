"""How a traced function depends on two groups of inputs, u and v: by propagating degrees through its operations.

Each value is known to be constant, affine or anything in u, likewise in v, and whether the two may mix (a product of
one with the other, or a nonlinear function of both). A sum keeps the larger degree, a product adds them, and an
operation without a rule here makes everything of what it touches. What is claimed is true of the function itself, not
of its derivative: rounding, signs, branches, and functions whose derivative is of the user's making, are seen for what
they are. So "affine" is a proof; "anything" may only mean that no proof was found.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax

from epszero._trace.programs import CALLS, is_literal, opened
from epszero._types import PyTree

ANYTHING = 2  # more than affine


class Degree(NamedTuple):
    """Of a value: 0 constant, 1 affine, 2 anything, in u and in v; and whether u and v may mix."""

    u: int = 0
    v: int = 0
    mixed: bool = False


CONSTANT = Degree()

LINEAR = frozenset({  # in all their operands together
    "add", "sub", "neg", "add_any", "reduce_sum", "cumsum", "reshape", "transpose", "broadcast_in_dim", "squeeze",
    "expand_dims", "concatenate", "slice", "rev", "pad", "copy", "copy_p", "real", "imag", "device_put",
    "optimization_barrier", "sharding_constraint", "split", "stack", "unstack", "tile", "reduce_window_sum",
})  # fmt: skip
INDEXED = frozenset(
    {"gather", "dynamic_slice", "dynamic_update_slice", "scatter-add", "scatter_add", "scatter", "select_n"}
)


def degrees(function: Callable[..., Any], u: PyTree, v: PyTree, *fixed: PyTree) -> Degree:
    """The degree of what `function(u, v, *fixed)` returns, over all its outputs; `fixed` counts as constant."""
    closed = jax.make_jaxpr(function)(u, v, *fixed)
    first, second, rest = (len(jax.tree.leaves(part)) for part in (u, v, fixed))
    return summed(_through(closed.jaxpr, [Degree(u=1)] * first + [Degree(v=1)] * second + [CONSTANT] * rest))


def summed(parts: Sequence[Degree]) -> Degree:
    """Of a sum."""
    return Degree(
        max((part.u for part in parts), default=0),
        max((part.v for part in parts), default=0),
        any(part.mixed for part in parts),
    )


def _product(a: Degree, b: Degree) -> Degree:
    mixed = a.mixed or b.mixed or bool((a.u and b.v) or (a.v and b.u))
    return Degree(min(a.u + b.u, ANYTHING), min(a.v + b.v, ANYTHING), mixed)


def _any_function(parts: Sequence[Degree]) -> Degree:
    """Of an operation of which nothing is known."""
    total = summed(parts)
    return Degree(ANYTHING * bool(total.u), ANYTHING * bool(total.v), total.mixed or bool(total.u and total.v))


def _through(jaxpr: Any, given: Sequence[Degree]) -> list[Degree]:
    known: dict[Any, Degree] = dict(zip(jaxpr.invars, given, strict=True))

    def of(atom: Any) -> Degree:
        return CONSTANT if is_literal(atom) else known.get(atom, CONSTANT)  # literals and captured arrays

    for equation in jaxpr.eqns:
        parts = [of(atom) for atom in equation.invars]
        known.update(zip(equation.outvars, equation_degrees(equation, parts), strict=True))
    return [of(atom) for atom in jaxpr.outvars]


def equation_degrees(equation: Any, parts: list[Degree]) -> list[Degree]:
    name, params, outputs = equation.primitive.name, equation.params, len(equation.outvars)
    if all(part == CONSTANT for part in parts):
        return [CONSTANT] * outputs
    if _rounds(equation, parts):
        return [_any_function(parts)] * outputs
    if name in CALLS and CALLS[name] in params:
        inside, _ = opened(params[CALLS[name]])
        if len(inside.invars) == len(parts) and not inside.effects:
            return _through(inside, parts)
    if name in LOOPS:
        return LOOPS[name](params, parts)
    return [_one(name, params, parts, equation)] * outputs


def _rounds(equation: Any, parts: list[Degree]) -> bool:
    """Whether an operation gives fewer digits than it is given, as a product of chosen precision may."""
    given = [atom.aval.dtype for atom, part in zip(equation.invars, parts, strict=True) if part != CONSTANT]
    made = [variable.aval.dtype for variable in equation.outvars if hasattr(variable.aval, "dtype")]
    sizes = [[kind.itemsize for kind in kinds if kind.kind == "f"] for kinds in (given, made)]
    return bool(sizes[0] and sizes[1]) and min(sizes[1]) < max(sizes[0])


def _scan(params: Any, parts: list[Degree]) -> list[Degree]:
    """Carried values have a degree that a turn does not raise; slices have that of the whole."""
    inside, constants, carried = params["jaxpr"].jaxpr, params["num_consts"], params["num_carry"]
    fixed, carry, rows = parts[:constants], parts[constants : constants + carried], parts[constants + carried :]
    return _turned(lambda carry: _through(inside, [*fixed, *carry, *rows]), carry)


def _while(params: Any, parts: list[Degree]) -> list[Degree]:
    """As a scan, where the number of turns depends on nothing."""
    asked, done = params["cond_nconsts"], params["body_nconsts"]
    condition, fixed, carry = parts[:asked], parts[asked : asked + done], parts[asked + done :]
    found = _turned(lambda carry: _through(params["body_jaxpr"].jaxpr, [*fixed, *carry]), carry)
    if _through(params["cond_jaxpr"].jaxpr, [*condition, *found]) == [CONSTANT]:
        return found
    return [_any_function([*parts, *found])] * len(found)


def _cond(params: Any, parts: list[Degree]) -> list[Degree]:
    """The worst of the branches, where the choice depends on nothing."""
    branches = [_through(branch.jaxpr, parts[1:]) for branch in params["branches"]]
    worst = [summed(several) for several in zip(*branches, strict=True)]
    return worst if parts[0] == CONSTANT else [_any_function([*parts, one]) for one in worst]


def _turned(turn: Callable[[list[Degree]], list[Degree]], carry: list[Degree]) -> list[Degree]:
    """What comes out of any number of turns, `carry` first: degrees only rise, and there are few of them."""
    while True:
        found = turn(carry)
        raised = [summed(pair) for pair in zip(carry, found, strict=False)]
        if raised == carry:
            return [*carry, *found[len(carry) :]]
        carry = raised


LOOPS = {"scan": _scan, "while": _while, "cond": _cond}


def _one(name: str, params: Any, parts: list[Degree], equation: Any) -> Degree:  # noqa: PLR0911  (one line per rule)
    """Of every output of an operation."""
    if name in LINEAR:
        return summed(parts)
    if name in INDEXED and not (name == "scatter" and params.get("update_jaxpr") is not None):
        moved, where = _indexed(name, parts)
        return summed(moved) if all(part == CONSTANT for part in where) else _any_function(parts)
    if name in ("mul", "dot_general", "conv_general_dilated"):
        return _product(*parts)
    if name == "div" and equation.outvars[0].aval.dtype.kind == "f":  # of whole numbers it rounds
        return parts[0] if parts[1] == CONSTANT else _product(parts[0], _any_function(parts[1:]))
    if name == "integer_pow" and params["y"] == 1:
        return parts[0]
    if name == "convert_element_type" and _keeps_numbers(equation):
        return parts[0]
    return _any_function(parts)


def _indexed(name: str, parts: list[Degree]) -> tuple[list[Degree], list[Degree]]:
    """The operands that are moved about, and those that say where to."""
    if name == "select_n":
        return parts[1:], parts[:1]
    if name in ("gather", "dynamic_slice"):
        return parts[:1], parts[1:]
    if name == "dynamic_update_slice":
        return parts[:2], parts[2:]
    return [parts[0], parts[2]], [parts[1]]  # scatter: operand, indices, updates


def _keeps_numbers(equation: Any) -> bool:
    """Whether a change of type rounds to no fewer digits, and never to integers."""
    old, new = equation.invars[0].aval.dtype, equation.outvars[0].aval.dtype
    return new.kind == "f" and (old.kind in "iub" or (old.kind == "f" and new.itemsize >= old.itemsize))
