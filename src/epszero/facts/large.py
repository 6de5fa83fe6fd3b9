"""μ and κ of affine operators that are too large for all their eigenvalues, and have no structure that is known.

The Jacobian is written down column by column. κ² ≤ ‖J‖₁‖J‖_∞; and S − λI is positive definite, beyond rounding, where
its Cholesky factorisation succeeds (Rump 2006: then λ_min(S) ≥ λ − c·n·eps·trace). A few λ are tried, largest first.
"""

from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.oracles import Average

LARGEST = 4000  # entries of x
COLUMNS = 128  # at once
TRIED = (1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4)  # of the least entry of the diagonal


def jacobian(B: Average, x: PyTree) -> FloatArray:
    """Of an affine B̂."""
    flat, _ = ravel_pytree(x)
    n = len(flat)
    chunks = [np.asarray(_columns(B, x, np.eye(n)[start : start + COLUMNS])) for start in range(0, n, COLUMNS)]
    return np.concatenate(chunks).T


@eqx.filter_jit
def _columns(B: Average, x: PyTree, directions: Any) -> Any:
    flat, unravel = ravel_pytree(x)
    return jax.vmap(lambda d: jax.jvp(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]), (flat,), (d,))[1])(directions)


def mu_kappa(J: FloatArray) -> tuple[float, float]:
    """A lower bound of λ_min((J + Jᵀ)/2), −∞ where not even 0 could be shown, and an upper bound of ‖J‖."""
    kappa = float(np.sqrt(np.abs(J).sum(axis=0).max()) * np.sqrt(np.abs(J).sum(axis=1).max())) * (1 + 1e-12)
    S = (J + J.T) / 2
    rounding = 16 * len(S) * np.finfo(float).eps * float(np.abs(np.diag(S)).sum())
    diagonal = float(np.diag(S).min())
    disc = float((2 * np.diag(S) - np.abs(S).sum(axis=1)).min())  # Gershgorin
    if disc > 0:
        return disc * (1 - 1e-12), kappa
    for share in TRIED if diagonal > 0 else ():
        if share * diagonal > rounding and _definite(S, share * diagonal):
            return share * diagonal - rounding, kappa
    return (0.0 if _definite(S, -rounding) else -np.inf), kappa


def _definite(S: FloatArray, shift: float) -> bool:
    from scipy.linalg import cholesky  # noqa: PLC0415  (needed here only, and slow to import)

    try:
        cholesky(S - shift * np.eye(len(S)), check_finite=False)
    except np.linalg.LinAlgError:
        return False
    return True
