"""Rᵀ(νH − I)⁻¹R for aggregative games of any size, H the symmetric part of their Jacobian; for the S-lemma.

H = blockdiag(D̃_i) + (1/2N)(EJᵀ + JEᵀ), D̃_i the symmetric part of D_i, E the E_i and J the identities, one below the
other (aggregates.py). So νH − I = Δ + WKWᵀ with Δ = blockdiag(νD̃_i − I), W = (E, J), K = (ν/2N)((0, I), (I, 0)), and
    (νH − I)⁻¹ = Δ⁻¹ − Δ⁻¹W(K⁻¹ + WᵀΔ⁻¹W)⁻¹WᵀΔ⁻¹   (Woodbury),
in the bases of the D̃_i, where Δ is diagonal. νH − I is positive definite for ν > 1/μ; Δ need not be, and a ν at which
it, or what is inverted, is nearly singular says nothing (∞).
Eigenvalues of D̃_i are lowered by what rounding may have raised them. Cost: one eigenvalue decomposition for each agent,
and a product of as many rows as x has entries for each ν; no matrix over all entries.
"""

import numpy as np

from epszero._types import FloatArray
from epszero.facts.aggregates import Aggregate

TRIED = 17  # multipliers ν
ROWS = 500_000  # entries of x, beyond which it takes too long
AT_ONCE = 8192  # of these
SINGULAR = 1e-5  # of 1: what νλ − 1 may be near 0
ROUNDING = 1e-13  # of the largest block: what its eigenvalues may be off by; of what is added up: what sums may be
LOST = 1e-6  # of the result: where rounding may take more, it is not used


def bent(whole: Aggregate, R: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Some ν > 1/μ, and Rᵀ(νH − I)⁻¹R for each, ∞ where it cannot be told; None where nothing is."""
    N, t = whole.own.shape[:2]
    room = ROUNDING * t * max(float(np.abs(whole.own).max()), float(np.abs(whole.average).max()))
    mu = whole.mu_kappa[0] - room
    if not mu > 0 or N * t > ROWS:
        return None
    nu = (1 + np.exp(np.linspace(-4.0, 6.0, TRIED))) / mu
    many = R.shape[1]
    sums, sizes = np.zeros((TRIED, 2 * t + many, 2 * t + many)), np.zeros((TRIED, 2 * t + many))
    step = max(1, AT_ONCE // t)
    for start in range(0, N, step):
        agents = slice(start, start + step)
        values, rows = _rotated(whole, agents, R[start * t : (start + step) * t].reshape(-1, t, many))
        for k, one in enumerate(nu):
            gap = one * (values - room) - 1
            if not np.abs(gap).min() > SINGULAR:
                sizes[k] = np.inf
            if np.isfinite(sizes[k]).all():
                sums[k] += rows.T @ (rows / gap[:, None])
                sizes[k] += (1 / np.abs(gap)) @ np.square(rows)
    each = zip(2 * N / nu, sums, sizes, strict=True)
    return nu, np.stack([_inverse(back, part, size, 2 * t) for back, part, size in each])


def _rotated(whole: Aggregate, agents: slice, R: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of the D̃_i of some agents, and the rows of (E, J, R) in their bases."""
    own, average, t = whole.own[agents], whole.average[agents], whole.own.shape[1]
    eye = np.broadcast_to(np.eye(t), (len(own), t, t))
    if whole.diagonal:
        values, rows = own, np.concatenate([average[:, :, None] * eye, eye, R], axis=2)
    else:
        values, vectors = np.linalg.eigh((own + np.swapaxes(own, 1, 2)) / 2)
        rows = np.swapaxes(vectors, 1, 2) @ np.concatenate([average, eye, R], axis=2)
    return values.reshape(-1), rows.reshape(-1, rows.shape[2])


def _inverse(back: float, sums: FloatArray, sizes: FloatArray, w: int) -> FloatArray:
    """Rᵀ(νH − I)⁻¹R, at least that, from (W, R)ᵀΔ⁻¹(W, R); `sizes`: the diagonal, had all of Δ been positive."""
    inner, across, plain = sums[:w, :w].copy(), sums[:w, w:], sums[w:, w:]
    half = np.arange(w // 2)
    inner[half, half + w // 2] += back  # K⁻¹
    inner[half + w // 2, half] += back
    if not np.isfinite(sizes).all():
        return np.full(plain.shape, np.inf)
    found = plain - across.T @ np.linalg.solve(inner, across)
    lost = ROUNDING * float(np.linalg.cond(inner)) * len(plain) * float(sizes[w:].max(initial=0.0))
    if not lost <= LOST * float(np.diagonal(found).max(initial=0.0)):
        return np.full(plain.shape, np.inf)
    return (found + found.T) / 2 + lost * np.eye(len(plain))
