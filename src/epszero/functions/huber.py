"""f(x) = Σ weight_i·h(x_i), h(x) = x²/2 where |x| ≤ threshold, threshold·|x| − threshold²/2 beyond.

Prox: v/(1 + step·weight) where that stays within the threshold, else v moved by step·weight·threshold; O(n).
Conjugate: Σ y_i²/(2·weight_i) where every |y_i| ≤ weight_i·threshold_i. Both parameters: numbers or one per entry;
leading axes are a batch. Source: Huber, "Robust estimation of a location parameter", Ann. Math. Stat. 35 (1964).
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, soft, square_over


class Huber(Function):
    """Quadratic near 0, linear beyond `threshold`."""

    formula = True
    per_entry = ("threshold", "weight")
    threshold: FloatArray
    weight: FloatArray

    @known_arguments
    def __init__(self, threshold: Real = 1.0, weight: Real = 1.0) -> None:
        self.threshold = positive("threshold", threshold)
        self.weight = positive("weight", weight, strict=False)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        near = jnp.minimum(jnp.abs(x), self.threshold)
        return jnp.sum(self.weight * near * (jnp.abs(x) - 0.5 * near), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        inner = v / (1.0 + step * self.weight)
        return jnp.where(jnp.abs(inner) <= self.threshold, inner, soft(v, step * self.weight * self.threshold))

    def _conjugate(self, y: Array) -> Array:
        bound = self.weight * self.threshold
        return jnp.sum(square_over(y, self.weight) + indicator(jnp.abs(y) - bound, bound), axis=-1)
