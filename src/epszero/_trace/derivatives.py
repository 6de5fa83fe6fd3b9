"""Whether automatic differentiation gives the derivative of the values, or one that somebody wrote down beside them.

`custom_jvp` and `custom_vjp` replace the derivative of a function by another function, and `stop_gradient` by 0. Both
are followed through the traced program, from the inputs that are differentiated. JAX's own rules (relu, softplus,
logsumexp ...) are taken to be right, as its rules for primitives are; a stopped gradient that provably cancels is
right, too (intervals/shifts.py).
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax

from epszero._trace.intervals.shifts import matters
from epszero._trace.programs import CUSTOM, call_of, inner_programs, written_at
from epszero._types import PyTree


def written_by_hand(function: Callable[..., Any], x: PyTree, *others: PyTree) -> str:
    """What a derivative in x leans on besides the values of the function; empty where that is nothing."""
    closed = jax.make_jaxpr(function)(x, *others)
    first = len(jax.tree.leaves(x))
    return _through(closed.jaxpr, [place < first for place in range(len(closed.jaxpr.invars))])[0]


def _through(jaxpr: Any, inputs: Sequence[bool]) -> tuple[str, list[bool]]:
    """What is found, and which outputs depend on these inputs."""
    moved = {variable for variable, yes in zip(jaxpr.invars, inputs, strict=True) if yes}

    def moves(atom: Any) -> bool:
        return not hasattr(atom, "val") and atom in moved

    for equation in jaxpr.eqns:
        given = [moves(atom) for atom in equation.invars]
        if not any(given):
            continue
        found, out = _one(jaxpr, equation, given)
        if found:
            return found, []
        moved.update(variable for variable, yes in zip(equation.outvars, out, strict=True) if yes)
    return "", [moves(atom) for atom in jaxpr.outvars]


def _one(jaxpr: Any, equation: Any, given: list[bool]) -> tuple[str, list[bool]]:
    name, everything = equation.primitive.name, [True] * len(equation.outvars)
    if name == "stop_gradient":
        return "stop_gradient" if matters(jaxpr, equation.outvars[0], call_of) else "", everything
    inside = call_of(equation)
    if inside is None:  # a loop, or a branch
        parts = inner_programs(equation.params)
        return next(filter(None, (_through(part, [True] * len(part.invars))[0] for part in parts)), ""), everything
    if name in CUSTOM:
        where = written_at(inside[0])
        return "" if "/jax/_src/" in where else f"the derivative that {where.split(' at ')[0]} comes with", everything
    same = len(inside[0].invars) == len(given)
    found, out = _through(inside[0], given if same else [True] * len(inside[0].invars))
    return found, out if same else everything
