"""f(x) = Σ weight_i·|x_i|, with one weight for all entries or one per entry (leading axes are a batch).

Prox: soft thresholding, O(n). Conjugate: the indicator of |y_i| ≤ weight_i.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, soft
from epszero.sets.faces import Face, signs_face


class L1(Function):
    """The ℓ1 norm, weighted."""

    formula = True
    per_entry = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.weight * jnp.abs(x), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return soft(v, step * self.weight)

    def _conjugate(self, y: Array) -> Array:
        return jnp.sum(indicator(jnp.abs(y) - self.weight, self.weight), axis=-1)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        return signs_face(x, z, self.weight)
