"""Newton's method on x = J_γ(x − γ g(x, y)) and the equations of tied branches: the last digits, for any known side.

Where the set has curved faces, or the smooth part is not quadratic, a solver leaves x near the solution only, and
branches that should be tied are not, to rounding. Which are is told by shares and gaps together: a branch is tied if
its share of its kink's weight is larger than its distance from the maximum, both relative. With y the shares of tied
branches,
    F(x, y) = (x − J_γ(x − γ(∇ĝ(x) + base + Dᵀy)),  Dx + e) = 0
is solved by a semismooth Newton method, J's derivative by automatic differentiation; every step by least squares, as
the equations may be dependent. Only for kinks that are not nested. Cost: one n × n derivative and one factorisation a
step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat, shaped
from epszero._types import Array, FloatArray, PyTree
from epszero.problems.backward import Backward
from epszero.solve.pieces import Pieces

STEPS = 12
LARGEST = 2_000  # entries of x and tied branches beyond which this is left out


def landed(
    pieces: Pieces, A: Backward, like: PyTree, x: FloatArray, shares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """x and shares nearer the solution; those that were given where that does not succeed."""
    if pieces.C is not None or len(x) > LARGEST:
        return x, shares
    at = pieces.at(x)
    weight = np.maximum(pieces.omega, 1e-300)[:, pieces.owner]
    size = np.maximum.reduceat(np.abs(pieces.B) @ np.abs(x) + np.abs(pieces.d), pieces.starts, axis=1)
    gap = (at.tau[:, pieces.owner] - at.rows) / np.maximum(size, 1e-300)[:, pieces.owner]
    return _newton(pieces, A, like, x, shares, (gap <= 0) | (shares / weight > gap))


def _newton(
    pieces: Pieces, A: Backward, like: PyTree, x: FloatArray, shares: FloatArray, active: Any
) -> tuple[FloatArray, FloatArray]:
    i, row = np.nonzero(active)
    group = i * pieces.omega.shape[1] + pieces.owner[row]
    _, lead, place = np.unique(group, return_index=True, return_inverse=True)
    lead_of = lead[place.ravel()]
    others = np.flatnonzero(lead_of != np.arange(len(i)))
    if len(x) + len(others) > LARGEST:
        return x, shares
    base = np.zeros(pieces.d.shape)
    base[i[lead], row[lead]] = pieces.omega[i[lead], pieces.owner[row[lead]]]
    constant = base.ravel() @ pieces.B.reshape(base.size, -1)
    a, b = (i[others], row[others]), (i[lead_of[others]], row[lead_of[others]])
    D, e = pieces.B[a] - pieces.B[b], pieces.d[a] - pieces.d[b]
    y = shares[a]
    n = len(x)
    gamma = np.asarray((float(np.linalg.norm(x)) or 1.0) / (pieces.size(x) or 1.0))

    best, kept = np.inf, (x, y)
    for _ in range(STEPS):
        slope, hessian = pieces.smooth.bent(x)
        v = x - gamma * (slope + constant + y @ D)
        off = np.concatenate([x - np.asarray(_resolvent(A, like, gamma, v)), D @ x + e])
        if not np.isfinite(off).all() or np.linalg.norm(off) >= best:
            break
        best, kept = float(np.linalg.norm(off)), (x, y)
        J = np.asarray(_derivative(A, like, gamma, v))
        whole = np.block([
            [np.eye(n) - J @ (np.eye(n) - gamma * hessian), gamma * J @ D.T],
            [D, np.zeros((len(y), len(y)))],
        ])  # fmt: skip
        step = np.linalg.lstsq(whole, -off, rcond=None)[0]
        x, y = x + step[:n], y + step[n:]
    x, y = kept
    found = base.copy()
    found[a] = y
    np.subtract.at(found, b, y)
    return x, found


@eqx.filter_jit
def _resolvent(A: Backward, like: PyTree, gamma: Array, v: Array) -> Array:
    return flat(A.resolvent(shaped(like, jnp.asarray(v)), jnp.asarray(gamma)))


@eqx.filter_jit
def _derivative(A: Backward, like: PyTree, gamma: Array, v: Array) -> Array:
    return jax.jacfwd(lambda v: flat(A.resolvent(shaped(like, v), jnp.asarray(gamma))))(jnp.asarray(v))
