"""f(x) = ½·xᵀPx + qᵀx with P symmetric positive semidefinite.

P = VΛVᵀ is computed once, O(n³), so that prox = V(I + step·Λ)⁻¹Vᵀ(v − step·q) costs O(n²) for any step.
Conjugate: ½·(y − q)ᵀP⁺(y − q), finite where y − q lies in the range of P. Leading axes of P and q are a batch.
An eigenvalue within n·2e-16 of 0, relative to the largest, is rounding and counts as 0 (the rule of NumPy's
matrix_rank); for a diagonal P of wide range, SquaredL2 with weights per entry keeps every digit.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, spread

ASYMMETRY = 1e-10  # relative to the largest entry: what rounding may do to a symmetric matrix
NEGATIVE = 16  # times the rounding of an eigenvalue: what a positive semidefinite matrix may fall below 0 by


class Quadratic(Function):
    """A convex quadratic function."""

    formula = True
    per_entry = ("q", "eigenvalues")
    matrices = ("P", "eigenvectors")
    P: FloatArray
    q: FloatArray
    eigenvalues: FloatArray  # Λ, one row per batch entry
    eigenvectors: FloatArray  # V, one eigenvector per column

    @known_arguments
    def __init__(self, P: Real, q: Real = 0.0) -> None:
        self.P = _checked_symmetric(P)  # pyright: ignore[reportConstantRedefinition]  # a matrix, not a constant
        self.q = _checked_q(q, self.P.shape)
        self.eigenvalues, self.eigenvectors = _decomposed(self.P)

    def _value(self, x: Array) -> Array:
        return jnp.sum(0.5 * self.eigenvalues * self._coordinates(x) ** 2, axis=-1) + jnp.sum(self.q * x, axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        shrunk = self._coordinates(v - step * self.q) / (1.0 + step * self.eigenvalues)
        return jnp.einsum("...ij,...j->...i", self.eigenvectors, shrunk)

    def _conjugate(self, y: Array) -> Array:
        along = self._coordinates(y - self.q)
        curved = self.eigenvalues > 0
        size = spread(jnp.max(jnp.abs(y), axis=-1) + jnp.max(jnp.abs(self.q), axis=-1, initial=0.0))
        finite = 0.5 * along * (along / jnp.where(curved, self.eigenvalues, 1.0))
        return jnp.sum(jnp.where(curved, finite, indicator(jnp.abs(along), size)), axis=-1)

    def _coordinates(self, x: Array) -> Array:
        """Vᵀx."""
        return jnp.einsum("...ji,...j->...i", self.eigenvectors, x)


def _checked_symmetric(P: Real) -> FloatArray:
    matrix = real_array("P", P)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or matrix.shape[-1] == 0:
        refuse("P", f"must be a square matrix, but its shape is {matrix.shape}", "Pass an n × n array")
    gap = np.abs(matrix - np.swapaxes(matrix, -1, -2))
    bad = gap > ASYMMETRY * np.abs(matrix).max(axis=(-2, -1), keepdims=True)
    if bad.any():
        where = first_index(bad)
        refuse(
            f"P{label(where)}",
            f"P must be symmetric, but this entry differs from its mirror image by {gap[where]:g}",
            "Pass (P + Pᵀ)/2, which gives the same xᵀPx",
        )
    return 0.5 * (matrix + np.swapaxes(matrix, -1, -2))


def _checked_q(q: Real, shape: tuple[int, ...]) -> FloatArray:
    vector, n = real_array("q", q), shape[-1]
    if vector.ndim and vector.shape[-1] != n:
        refuse("q", f"has {vector.shape[-1]} entries, but P is {n} × {n}", "Pass a number, or one entry per row of P")
    vector = vector if vector.ndim else np.full(n, vector)
    try:
        np.broadcast_shapes(shape[:-2], vector.shape[:-1])
    except ValueError:
        refuse("P, q", f"P is a batch of shape {shape[:-2]} and q one of {vector.shape[:-1]}", "Make them agree")
    return vector


def _decomposed(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    eigenvalues, eigenvectors = np.linalg.eigh(P)
    largest = np.abs(eigenvalues).max(axis=-1, keepdims=True)
    rounding = P.shape[-1] * np.finfo(np.float64).eps * largest
    bad = eigenvalues < -NEGATIVE * rounding
    if bad.any():
        where = first_index(bad)
        refuse(
            f"P{label(where[:-1])}",
            f"must be positive semidefinite, but it has the eigenvalue {eigenvalues[where]:g}",
            "A convex quadratic has none below 0: check the sign, or add a multiple of the identity",
        )
    return np.where(eigenvalues <= rounding, 0.0, eigenvalues), eigenvectors
