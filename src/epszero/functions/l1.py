"""f(x) = weight · Σ|x_i|, with one weight for all entries or one per entry.

Prox: soft thresholding, O(n). Conjugate: the indicator of |y_i| ≤ weight_i.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import DOMAIN_TOLERANCE, Function


class L1(Function):
    """The ℓ1 norm, weighted."""

    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        return self.weight.shape[-1:] or None

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.weight.shape[:-1]

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.weight * jnp.abs(x), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return jnp.sign(v) * jnp.maximum(jnp.abs(v) - step * self.weight, 0.0)

    def _conjugate(self, y: Array) -> Array:
        excess = jnp.max(jnp.abs(y) - self.weight, axis=-1)
        return jnp.where(excess <= DOMAIN_TOLERANCE * jnp.maximum(1.0, jnp.max(self.weight)), 0.0, jnp.inf)
