"""f(X) = weight·(σ₁ + σ₂ + …), the sum of the singular values of a matrix.

Prox: soft thresholding of the singular values, O(m·n·min(m, n)). Conjugate: the indicator of σ₁(Y) ≤ weight.
One weight per matrix: its shape is the shape of the batch. A matrix that is not finite gives NaN.
Source: Cai, Candès & Shen, "A singular value thresholding algorithm for matrix completion", SIAM J. Optim. 20 (2010).
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, soft, spread


class NuclearNorm(Function):
    """The nuclear norm of matrices, weighted."""

    formula = True
    per_point = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    @property
    def rank(self) -> int:
        return 2

    def _value(self, x: Array) -> Array:
        return self.weight * jnp.sum(_singular_values(x), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        finite = _finite(v)
        left, values, right = jnp.linalg.svd(jnp.where(finite, v, 0.0), full_matrices=False)
        kept = soft(values, step[..., 0] * spread(self.weight))
        return jnp.where(finite, (left * kept[..., None, :]) @ right, jnp.nan)

    def _conjugate(self, y: Array) -> Array:
        return indicator(jnp.max(_singular_values(y), axis=-1) - self.weight, self.weight)


def _singular_values(x: Array) -> Array:
    finite = _finite(x)
    values = jnp.linalg.svd(jnp.where(finite, x, 0.0), compute_uv=False)
    return jnp.where(finite[..., 0], values, jnp.nan)


def _finite(x: Array) -> Array:
    """Whether the matrix is finite: LAPACK need not return otherwise."""
    return jnp.all(jnp.isfinite(x), axis=(-2, -1), keepdims=True)
