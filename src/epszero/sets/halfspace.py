"""{x : normalᵀx ≤ offset}.

Projection v − max(0, aᵀv − β) a/‖a‖², O(n) (sets/_levels.py). Support t·β along t·a with t ≥ 0 (to rounding), else ∞.
Diameter ∞, exact. Normals (…, n) and offsets (…) may be batches.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, real_array
from epszero._types import Array, FloatArray, Real
from epszero.sets import _levels
from epszero.sets._base import Set
from epszero.sets._parameters import broadcast, direction
from epszero.sets.conic import ConicForm


class HalfSpace(Set):
    """Points on one side of a hyperplane."""

    formula = True
    per_entry = ("normal",)
    per_point = ("offset",)
    normal: FloatArray
    offset: FloatArray

    @known_arguments
    def __init__(self, normal: Real, offset: Real) -> None:
        self.normal, self.offset = direction("normal", normal), real_array("offset", offset)
        broadcast(normal=self.normal.shape[:-1], offset=self.offset.shape)

    def _project(self, v: Array) -> Array:
        return _levels.project(v, self.normal, jnp.asarray(-jnp.inf), self.offset)

    def _support(self, direction: Array) -> Array:
        return _levels.support(direction, self.normal, jnp.asarray(-jnp.inf), self.offset)

    def _diameter(self) -> Array:
        return jnp.full(self.batch_shape, jnp.inf)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.inequalities(self.normal.reshape(1, n), self.offset.reshape(1))
