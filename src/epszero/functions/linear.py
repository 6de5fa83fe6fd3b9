"""f(x) = ⟨slope, x⟩, with one slope for all entries or one per entry (leading axes are a batch).

Prox: v − step·slope, O(n). Conjugate: the indicator of y = slope.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator
from epszero.sets.faces import Face, free_face


class Linear(Function):
    """A linear function."""

    formula = True
    per_entry = ("slope",)
    slope: FloatArray

    @known_arguments
    def __init__(self, slope: Real) -> None:
        self.slope = real_array("slope", slope)

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.slope * x, axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return v - step * self.slope

    def _conjugate(self, y: Array) -> Array:
        return jnp.sum(indicator(jnp.abs(y - self.slope), jnp.abs(self.slope)), axis=-1)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        return free_face(len(x), self.slope - z)
