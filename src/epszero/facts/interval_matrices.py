"""Bounds on the eigenvalues and the norms of all matrices within elementwise bounds.

For H = J + Jᵀ within [A, B], centre C, radius Δ, and with H₀ the matrix C with the diagonal of A, Δ₀ the matrix Δ with
diagonal 0 (lowering the diagonal lowers every eigenvalue), λ_min(H) is at least each of
- min_i (A_ii − Σ_{j≠i} max(|A_ij|, |B_ij|)), after Gershgorin, which needs no eigenvalue;
- λ_min of the comparison matrix, A_ii on the diagonal and −max(|A_ij|, |B_ij|) off it, as ⟨x, Hx⟩ is at least its form
  at |x|: the best that Gershgorin gives after any diagonal scaling, by Perron and Frobenius;
- λ_min(C) − ρ(Δ) and λ_min(H₀) − ρ(Δ₀) (Rohn);
- for n ≤ `EXACT` the minimum itself: it is attained at one of the 2ⁿ⁻¹ matrices C − diag(z) Δ diag(z), z ∈ {−1, 1}ⁿ,
  z₁ = 1 (Hertz: with z the signs of x, ⟨x, Hx⟩ is least there), whose entries are those of A and B: nothing is rounded.
‖J‖₂ is at most ‖C‖₂ + ‖Δ‖₂, ‖max(|A|, |B|)‖₂, (‖·‖₁ ‖·‖_∞)^½ and ‖·‖_F of the same matrix.

Rounding: sums and centres are rounded outward. LAPACK's symmetric eigensolver and its SVD are backward stable: what
they give is exact for a matrix within p(n) · eps · ‖A‖₂ of A, p a modest polynomial (LAPACK Users' Guide, 4.7-4.9), and
by Weyl no eigenvalue or singular value moves by more; 20 n eps ‖A‖_F is taken for that. Cost: five eigenproblems per
matrix, and 2ⁿ⁻¹ of size n ≤ `EXACT` where Δ₀ ≠ 0.
Sources: Hertz, IEEE Trans. Autom. Control 37 (1992); Rohn, SIAM J. Matrix Anal. Appl. 15 (1994), and "Bounds on
eigenvalues of interval matrices", ZAMM 78 (1998); Hladík, Daney, Tsigaridas, SIAM J. Matrix Anal. Appl. 31 (2010).
"""

from itertools import product

import numpy as np

from epszero._types import FloatArray

EXACT = 6  # rows up to which the least eigenvalue is found exactly, by 2ⁿ⁻¹ eigenproblems
AT_ONCE = 1 << 17  # matrices of which the eigenvalues are sought in one call
BACKWARD = 20.0  # times n · eps · ‖A‖_F: the backward error granted to an eigensolver
_EPS = float(np.finfo(float).eps)
_TINY = float(np.finfo(float).tiny)


def least_eigenvalue(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """A lower bound of λ_min((J + Jᵀ)/2) over lower ≤ J ≤ upper, (..., n, n) to (...); −∞ where one is infinite.

    A larger diagonal never makes λ_min smaller, so one without an upper end counts as at its lower end.
    """
    lower, upper = np.broadcast_arrays(np.asarray(lower, float), np.asarray(upper, float))
    upper = np.where(np.eye(lower.shape[-1], dtype=bool) & np.isposinf(upper), lower, upper)
    shape, n = lower.shape[:-2], lower.shape[-1]
    with np.errstate(all="ignore"):
        low, high = _sum_down(lower), -_sum_down(-upper)
        low, high = low.reshape(-1, n, n), high.reshape(-1, n, n)
        known = np.isfinite(low).all((-2, -1)) & np.isfinite(high).all((-2, -1))
        twice = np.full(len(low), -np.inf)
        twice[known] = _least_symmetric(low[known], high[known])
        half = twice / 2
        half = np.where(half * 2 == twice, half, np.nextafter(half, -np.inf))
    return half.reshape(shape)


def largest_norm(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """An upper bound of ‖J‖₂ over lower ≤ J ≤ upper, (..., m, n) to (...); ∞ where an entry is infinite."""
    lower, upper = np.broadcast_arrays(np.asarray(lower, float), np.asarray(upper, float))
    shape, (m, n) = lower.shape[:-2], lower.shape[-2:]
    with np.errstate(all="ignore"):
        finite = np.isfinite(lower) & np.isfinite(upper) & np.isfinite(upper - lower)
        known = np.asarray(finite.all((-2, -1)))
        lower, upper = (np.where(known[..., None, None], side, 0.0) for side in (lower, upper))
        size = np.maximum(np.abs(lower), np.abs(upper))
        if m == n == 1:
            return np.where(known, size[..., 0, 0], np.inf)

        centre, radius = _centre_radius(lower, upper)
        sums = np.sqrt(size.sum(-1).max(-1)) * np.sqrt(size.sum(-2).max(-1))  # roots apart: no overflow
        plain = np.minimum(sums, _frobenius(size)) * (1 + (m * n + 8) * _EPS)
        bound = np.minimum(_norm(centre) + _norm(radius), _norm(size))
        bound = np.nextafter(np.minimum(plain, bound), np.inf)
    return np.where(known & ~np.isnan(bound), bound, np.inf).reshape(shape)


def _least_symmetric(low: FloatArray, high: FloatArray) -> FloatArray:
    """λ_min of symmetric matrices within finite bounds (batch, n, n), from below."""
    n = low.shape[-1]
    index = np.arange(n)
    diagonal = low[:, index, index]
    if n == 1:
        return diagonal[:, 0]

    size = np.maximum(np.abs(low), np.abs(high))
    size[:, index, index] = 0.0
    row = size.sum(-1) * (1 + n * _EPS)
    gershgorin = np.nextafter(np.nextafter(diagonal - np.nextafter(row, np.inf), -np.inf).min(-1), -np.inf)
    size *= -1
    size[:, index, index] = diagonal
    bounds = [gershgorin, _least(size)]

    centre, radius = _centre_radius(low, high)
    bounds.append(_least(centre) + _least(-radius))
    centre[:, index, index] = diagonal
    radius[:, index, index] = 0.0
    bounds.append(_least(centre) + _least(-radius))

    wide = radius.any((-2, -1))
    if n <= EXACT and wide.any():
        exact = np.full(len(low), -np.inf)
        exact[wide] = _attained(low[wide], high[wide])
        bounds.append(exact)
    return np.nextafter(np.fmax.reduce(bounds), -np.inf)


def _attained(low: FloatArray, high: FloatArray) -> FloatArray:
    """The least of λ_min over the 2ⁿ⁻¹ vertices, after Hertz."""
    n = low.shape[-1]
    signs = np.array([(1, *rest) for rest in product((1, -1), repeat=n - 1)])
    alike = signs[:, :, None] == signs[:, None, :]
    chunk = max(1, AT_ONCE // len(signs))
    parts = [
        _least(np.where(alike, low[i : i + chunk, None], high[i : i + chunk, None])).min(-1)
        for i in range(0, len(low), chunk)
    ]
    return np.concatenate(parts)


def _least(symmetric: FloatArray) -> FloatArray:
    """λ_min of each, the backward error below what LAPACK gives; −∞ where that overflows."""
    margin = BACKWARD * symmetric.shape[-1] * _EPS * _frobenius(symmetric) + _TINY
    known = np.isfinite(margin)
    values = np.linalg.eigvalsh(np.where(known[..., None, None], symmetric, 0.0))[..., 0]
    return np.where(known, values - margin, -np.inf)


def _norm(matrix: FloatArray) -> FloatArray:
    """‖·‖₂ of each, the backward error above what LAPACK gives; ∞ where that overflows."""
    margin = BACKWARD * max(matrix.shape[-2:]) * _EPS * _frobenius(matrix) + _TINY
    known = np.isfinite(margin)
    values = np.linalg.svd(np.where(known[..., None, None], matrix, 0.0), compute_uv=False)
    return np.where(known, values.max(-1) + margin, np.inf)


def _frobenius(matrix: FloatArray) -> FloatArray:
    """‖·‖_F of each, scaled so that no square is lost to underflow."""
    largest = np.abs(matrix).max((-2, -1), keepdims=True)
    scaled = matrix / np.where(largest > 0, largest, 1.0)
    return largest[..., 0, 0] * np.sqrt(np.square(scaled).sum((-2, -1)))


def _centre_radius(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """C and Δ with C − Δ ≤ low and high ≤ C + Δ, whatever was rounded; Δ = 0 where low = high."""
    centre = np.where(low == high, low, low / 2 + high / 2)
    radius = np.maximum(centre - low, high - centre)
    return centre, np.where(low == high, 0.0, np.nextafter(radius, np.inf))


def _sum_down(matrix: FloatArray) -> FloatArray:
    """J + Jᵀ, rounded down only where the sum is not exact (after Knuth: the error of a sum is a float)."""
    other = np.swapaxes(matrix, -1, -2)
    total = matrix + other
    part = total - matrix
    error = (matrix - (total - part)) + (other - part)
    return np.where((error >= 0) | ~np.isfinite(total), total, np.nextafter(total, -np.inf))
