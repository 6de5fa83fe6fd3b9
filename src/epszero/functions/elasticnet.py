"""f(x) = Σ l1_i·|x_i| + l2_i/2·x_i².

Prox: soft thresholding, then shrinking, O(n). Conjugate: Σ max(|y_i| − l1_i, 0)²/(2·l2_i), which asks |y_i| ≤ l1_i
where l2_i is 0. Both weights: numbers or one per entry; leading axes are a batch.
Source: Zou & Hastie, "Regularization and variable selection via the elastic net", JRSS B 67 (2005).
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, soft
from epszero.sets.faces import Face, signs_face


class ElasticNet(Function):
    """The ℓ1 norm plus half the squared ℓ2 norm, each weighted."""

    formula = True
    per_entry = ("l1", "l2")
    l1: FloatArray
    l2: FloatArray

    @known_arguments
    def __init__(self, l1: Real, l2: Real) -> None:
        self.l1 = positive("l1", l1, strict=False)
        self.l2 = positive("l2", l2, strict=False)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.l1 * jnp.abs(x) + 0.5 * self.l2 * x**2, axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return soft(v, step * self.l1) / (1.0 + step * self.l2)

    def _conjugate(self, y: Array) -> Array:
        over, smooth = soft(y, self.l1), self.l2 > 0
        curved = 0.5 * over * (over / jnp.where(smooth, self.l2, 1.0))
        return jnp.sum(jnp.where(smooth, curved, indicator(jnp.abs(over), self.l1)), axis=-1)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        return signs_face(x, z, self.l1, self.l2)
