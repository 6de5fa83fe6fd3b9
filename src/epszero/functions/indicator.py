"""f(x) = 0 on a convex set, ∞ off it, so that ∂f is the set's normal cone.

Prox: the projection, whatever the step. Conjugate: the support function of the set. Costs are the set's.
"""

from typing import Any

import jax.numpy as jnp

from epszero._checks import known_arguments, refuse
from epszero._types import Array, FloatArray
from epszero.functions._base import DOMAIN_TOLERANCE, Function, nan_in
from epszero.sets import Set
from epszero.sets.faces import Face


class Indicator(Function):
    """The indicator of a set; points have the set's rank and shape."""

    formula = True
    made_of = "set"
    set: Set

    @known_arguments
    def __init__(self, set: Set) -> None:
        self.set = _checked_set(set)

    def _value(self, x: Array) -> Array:
        return jnp.where(self.set.contains(x, DOMAIN_TOLERANCE), 0.0, jnp.inf) + nan_in(x, self.rank)

    def _prox(self, v: Array, step: Array) -> Array:
        return self.set.project(v)

    def _conjugate(self, y: Array) -> Array:
        return self.set.support(y)

    @property
    def polyhedral(self) -> bool:
        return self.set.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        return self.set.face(x, z)


def _checked_set(value: Any) -> Set:
    if not isinstance(value, Set):
        refuse("set", f"must be a convex set, but it is a {type(value).__name__}", "Pass one from epszero.sets")
    if value.rank == 0:
        refuse(
            "set",
            f"must be a set of arrays, but a {type(value).__name__} holds pytrees",
            "Write SeparableSum([Indicator(C), Indicator(D)])",
        )
    return value
