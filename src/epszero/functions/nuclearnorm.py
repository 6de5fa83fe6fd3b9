"""f(X) = weight·(σ₁ + σ₂ + …), the sum of the singular values of a matrix.

Prox: soft thresholding of the singular values, O(m·n·min(m, n)). Conjugate: the indicator of σ₁(Y) ≤ weight.
One weight per matrix: its shape is the shape of the batch. A matrix that is not finite gives NaN.
Derivative of the prox: soft thresholding is odd, so the prox is a block of that of the symmetric [[0, X], [Xᵀ, 0]]; the
derivative of that, in its axes, is Ω ∘ D with Ω_ij the divided difference of the thresholding at the eigenvalues i and
j, 1 or 0 where they are equal.
Source: Cai, Candès & Shen, "A singular value thresholding algorithm for matrix completion", SIAM J. Optim. 20 (2010).
"""

import jax
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
        return jnp.where(finite, _shrunk(jnp.where(finite, v, 0.0), step[..., 0] * spread(self.weight)), jnp.nan)

    def _conjugate(self, y: Array) -> Array:
        return indicator(jnp.max(_singular_values(y), axis=-1) - self.weight, self.weight)


@jax.custom_jvp
def _shrunk(v: Array, threshold: Array) -> Array:
    """Singular values moved towards 0; one threshold per matrix, with one trailing axis."""
    left, values, right = jnp.linalg.svd(v, full_matrices=False)
    return (left * soft(values, threshold)[..., None, :]) @ right


@_shrunk.defjvp
def _along(at: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (v, threshold), (moved, lifted), m = at, tangents, at[0].shape[-2]
    eigenvalues, axes = jnp.linalg.eigh(_dilated(v))
    piece = jnp.where(jnp.abs(eigenvalues) > threshold, jnp.sign(eigenvalues), 0.0)  # which of the three
    kept = eigenvalues - jnp.clip(eigenvalues, -threshold, threshold)
    apart, rise = (sizes[..., :, None] - sizes[..., None, :] for sizes in (eigenvalues, kept))
    alike = piece[..., :, None] == piece[..., None, :]
    slopes = jnp.where(alike, jnp.abs(piece)[..., None], jnp.clip(rise / jnp.where(alike, 1.0, apart), 0.0, 1.0))
    turned = jnp.einsum("...ki,...kl,...lj->...ij", axes, _dilated(moved), axes)
    whole = jnp.einsum("...ik,...kl,...jl->...ij", axes, slopes * turned, axes)
    less = jnp.einsum("...ik,...k,...jk->...ij", axes, piece * lifted, axes)
    return _shrunk(v, threshold), (whole - less)[..., :m, m:]


def _dilated(x: Array) -> Array:
    """[[0, X], [Xᵀ, 0]]."""
    m, n = x.shape[-2:]
    above = jnp.concatenate([jnp.zeros((*x.shape[:-1], m), x.dtype), x], axis=-1)
    below = jnp.concatenate([jnp.swapaxes(x, -1, -2), jnp.zeros((*x.shape[:-2], n, n), x.dtype)], axis=-1)
    return jnp.concatenate([above, below], axis=-2)


def _singular_values(x: Array) -> Array:
    finite = _finite(x)
    values = jnp.linalg.svd(jnp.where(finite, x, 0.0), compute_uv=False)
    return jnp.where(finite[..., 0], values, jnp.nan)


def _finite(x: Array) -> Array:
    """Whether the matrix is finite: LAPACK need not return otherwise."""
    return jnp.all(jnp.isfinite(x), axis=(-2, -1), keepdims=True)
