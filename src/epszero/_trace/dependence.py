"""What a traced function depends on."""

from collections.abc import Callable
from typing import Any

import jax

from epszero._types import PyTree


def depends(function: Callable[[PyTree], Any], x: PyTree) -> bool:
    """Whether what `function` returns may depend on x, by following its traced operations: False is a proof."""
    closed = jax.make_jaxpr(function)(x)
    return any(_reached(closed.jaxpr, [True] * len(closed.jaxpr.invars)))


def _reached(jaxpr: Any, inputs: list[bool]) -> list[bool]:
    touched = {variable for variable, yes in zip(jaxpr.invars, inputs, strict=True) if yes}

    def is_touched(atom: Any) -> bool:
        return not hasattr(atom, "val") and atom in touched

    for equation in jaxpr.eqns:
        given = [is_touched(atom) for atom in equation.invars]
        inside = equation.params.get("jaxpr")
        if equation.primitive.name in ("jit", "pjit", "closed_call") and inside is not None:
            out = _reached(inside.jaxpr, given)
        else:
            out = [any(given)] * len(equation.outvars)
        touched.update(variable for variable, yes in zip(equation.outvars, out, strict=True) if yes)
    return [is_touched(atom) for atom in jaxpr.outvars]
