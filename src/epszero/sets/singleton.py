"""{at}: one point. Projection is the constant `at`, the support ⟨direction, at⟩, the diameter 0 (exact)."""

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, real_array
from epszero._shaped import dot
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets.conic import ConicForm


class Singleton(Set):
    """The point `at` alone: an array (leading axes are a batch), or a number for a constant vector of any length."""

    formula = True
    per_entry = ("at",)
    at: FloatArray

    @known_arguments
    def __init__(self, at: Real) -> None:
        self.at = real_array("at", at)

    def _project(self, v: Array) -> Array:
        return jnp.where(jnp.isnan(v), v, self.at)  # NaN in, NaN out

    def _support(self, direction: Array) -> Array:
        return dot(direction, self.at)

    def _diameter(self) -> Array:
        return jnp.zeros(self.batch_shape)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.equalities(np.eye(n), np.broadcast_to(self.at, n))
