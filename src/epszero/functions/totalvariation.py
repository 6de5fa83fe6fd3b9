"""f(x) = weight·Σ_i |x_{i+1} − x_i|, total variation along the entries.

Prox: exact, by Johnson's dynamic program (functions/_fused.py), O(n) per vector.
Conjugate: the indicator of |y₁ + … + y_k| ≤ weight for all k < n, and = 0 for k = n.
One weight per point: its shape is the shape of the batch.
Source: Johnson, "A dynamic programming algorithm for the fused lasso and L0-segmentation", JCGS 22 (2013).
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, nan_in
from epszero.functions._fused import fused


class TotalVariation1D(Function):
    """Total variation of a sequence, weighted."""

    formula = True
    per_point = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    def _value(self, x: Array) -> Array:
        return self.weight * jnp.sum(jnp.abs(jnp.diff(x, axis=-1)), axis=-1) + nan_in(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return jnp.vectorize(fused, signature="(n),()->(n)")(v, step[..., 0] * self.weight)

    def _conjugate(self, y: Array) -> Array:
        sums = jnp.cumsum(y, axis=-1)
        inner = jnp.max(jnp.abs(sums[..., :-1]), axis=-1, initial=0.0) - self.weight
        return indicator(jnp.maximum(inner, jnp.abs(sums[..., -1])), self.weight)
