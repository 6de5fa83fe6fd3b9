"""What functions built from a function share: a check of the inside, and faces in other units."""

from typing import Any

import numpy as np

from epszero._checks import refuse
from epszero.functions._base import Function
from epszero.functions.separablesum import SeparableSum
from epszero.sets.faces import Face


def inner_function(function: Any, outer: str) -> Function:
    """A function of arrays."""
    if not isinstance(function, Function):
        refuse(
            "function",
            f"must be a convex function, but it is a {type(function).__name__}",
            "Pass one from epszero.functions; wrap a set as Indicator(set)",
        )
    if isinstance(function, SeparableSum):
        refuse(
            "function",
            f"{outer} acts on arrays, but a SeparableSum on a pytree",
            f"Wrap the parts instead: SeparableSum([{outer}(f, …), {outer}(g, …)])",
        )
    return function


def rescaled(face: Face | None, a: float, c: float) -> Face | None:
    """Of g with ∂g(x) = c ∂f(ax), from the face of f at ax."""
    if face is None:
        return None
    return face._replace(
        normals=a * face.normals,
        rows=a * face.rows,
        duals=face.duals / c,
        curvature=a * c * np.asarray(face.curvature),
        mended=c * np.asarray(face.mended),
        lifts=None if face.lifts is None else c * face.lifts,
        linear=face.linear and a == c,  # values are multipliers of the normals only then
    )
