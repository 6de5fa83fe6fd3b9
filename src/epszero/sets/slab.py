"""{x : lower ≤ normalᵀx ≤ upper}.

Projection moves v along the normal until the level is between the bounds, O(n) (sets/_levels.py). Support t·upper or
t·lower along t·normal (to rounding), else ∞. Diameter exact: ∞, or the width in dimension 1. Normals (…, n) and bounds
(…) may be batches; bounds may be infinite.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments
from epszero._types import Array, FloatArray, Real
from epszero.sets import _levels
from epszero.sets._base import Set
from epszero.sets._parameters import broadcast, direction
from epszero.sets.box import checked_bounds
from epszero.sets.conic import ConicForm


class Slab(Set):
    """Points between two parallel hyperplanes."""

    formula = True
    per_entry = ("normal",)
    per_point = ("lower", "upper")
    normal: FloatArray
    lower: FloatArray
    upper: FloatArray

    @known_arguments
    def __init__(self, normal: Real, lower: Real, upper: Real) -> None:
        self.normal = direction("normal", normal)
        self.lower, self.upper = checked_bounds("Slab", lower, upper, None)
        broadcast(normal=self.normal.shape[:-1], lower=self.lower.shape, upper=self.upper.shape)

    def _project(self, v: Array) -> Array:
        return _levels.project(v, self.normal, self.lower, self.upper)

    def _support(self, direction: Array) -> Array:
        return _levels.support(direction, self.normal, self.lower, self.upper)

    def _diameter(self) -> Array:
        return jnp.broadcast_to(_levels.diameter(self.normal, self.lower, self.upper), self.batch_shape)

    def _conic(self, n: int) -> ConicForm:
        rows = np.vstack([self.normal.reshape(1, n), -self.normal.reshape(1, n)])
        return ConicForm.inequalities(rows, np.stack([self.upper.reshape(()), -self.lower.reshape(())]))
