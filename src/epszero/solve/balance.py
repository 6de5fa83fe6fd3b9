"""Which shares of tied branches bring the subgradient nearest to a wanted one: a linear programme.

min ϱ over shares y ≥ 0 of the branches that attain their maxima, −ϱ ≤ (g(y) − wanted)_j ≤ ϱ, where the shares of a kink
add up to what it weighs: Σ_b y_kb = ω_k + Σ y C_k. One row for each entry of x, one for each kink that is tied (all of
them where kinks are nested). By HiGHS. What comes out is put right by `Pieces.subgradient`, whatever it is.
"""

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.solve.pieces import Pieces


def nearest_shares(pieces: Pieces, x: FloatArray, wanted: FloatArray) -> FloatArray:
    """Of all branches, s × R."""
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import)

    tied = pieces.at(x).tied
    alone = np.add.reduceat(tied, pieces.starts, axis=1) == 1
    fixed = tied & alone[:, pieces.owner] & (pieces.C is None)
    shares = np.where(fixed, pieces.omega[:, pieces.owner], 0.0)
    base = pieces.smooth.gradient(x) + shares.ravel() @ pieces.B.reshape(shares.size, -1)
    i, row = np.nonzero(tied & ~fixed)
    if not len(i):
        return shares
    owners, kink = np.unique(np.stack([i, pieces.owner[row]]), axis=1, return_inverse=True)
    size = max(float(np.max(pieces.omega)), 1e-300)
    sums = sp.csr_matrix((np.ones(len(i)), (kink.ravel(), np.arange(len(i)))), shape=(owners.shape[1], len(i)))
    if pieces.C is not None:
        number = np.full(pieces.omega.shape, -1)
        number[owners[0], owners[1]] = np.arange(owners.shape[1])
        slope = pieces.C[i, row]
        at, inside = np.nonzero(slope)
        sums = sums - sp.csr_matrix((slope[at, inside], (number[i[at], inside], at)), shape=sums.shape)
    slopes, n = pieces.B[i, row].T, len(x)
    scale = max(float(np.abs(slopes).max()), 1e-300)
    off = (base - wanted) / (size * scale)
    one = np.full((n, 1), -1.0)
    answer = linprog(
        np.concatenate([np.zeros(len(i)), [1.0]]),
        A_ub=sp.csr_matrix(np.vstack([np.hstack([slopes / scale, one]), np.hstack([-slopes / scale, one])])),
        b_ub=np.concatenate([-off, off]),
        A_eq=sp.hstack([sums, sp.csr_matrix((owners.shape[1], 1))], format="csr"),
        b_eq=pieces.omega[owners[0], owners[1]] / size,
        bounds=(0, None),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if answer.status != 0:
        return np.where(tied, pieces.omega[:, pieces.owner], 0.0)
    shares[i, row] = answer.x[:-1] * size
    return shares
