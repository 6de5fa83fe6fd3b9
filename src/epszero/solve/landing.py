"""Newton's method on x = J_γ(x − γ g) and the equations of tied rows: the last digits, for any known side.

Where the set has curved faces, or the smooth part is not quadratic, a solver leaves x near the solution only, and
branches that should be tied are not, to rounding. With the rows of the loss (solve/epigraph.py: v = (x, τ), costs q,
multipliers y_j ∈ [0, u_j]), a row is tied if y_j is farther from its bounds than (Mv − r)_j is from 0, both relative;
the other y_j stay at the bound that the sign of (Mv − r)_j tells. Then
    F(v, y) = (x − J_γ(x − γ(∇ĝ(x) + q_x + M_xᵀy)),  q_τ + M_τᵀy,  (Mv − r)_tied) = 0
is solved by a semismooth Newton method, J's derivative by automatic differentiation; every step by least squares, as
the equations may be dependent. Cost: one n × n derivative and one dense factorisation a step.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._lazy import sp
from epszero._points import flat, shaped
from epszero._types import Array, FloatArray, PyTree
from epszero.problems.backward import Backward
from epszero.solve.epigraph import Rows
from epszero.solve.pieces import LEAST

STEPS = 12
LARGEST = 2_000  # unknowns beyond which this is left out


def landed(rows: Rows, A: Backward, like: PyTree, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """x and y nearer the solution; those that were given where that does not succeed."""
    pieces, n = rows.given, len(x)
    v = np.concatenate([x, pieces.at(x).tau[:, rows.other].ravel()])
    if len(v) > LARGEST:
        return x, y
    apart = rows.M @ v - rows.r
    size = np.maximum(np.abs(v), LEAST * max(np.abs(x).max(), pieces.unit))
    away = np.abs(apart) / np.maximum(abs(rows.M) @ size + np.abs(rows.r), 1e-300)
    weight = np.where(np.isfinite(rows.upper), rows.upper, float(np.max(pieces.omega)))
    tied = np.minimum(y, rows.upper - y) / np.maximum(weight, 1e-300) > away
    if len(v) + int(tied.sum()) > LARGEST:
        return x, y
    y = np.where(tied, y, np.where((apart > 0) & np.isfinite(rows.upper), rows.upper, 0.0))
    gamma = np.asarray((float(np.linalg.norm(x)) or pieces.unit) / (pieces.size(x) or 1.0))
    T = sp.csr_matrix(rows.M)[np.flatnonzero(tied)].toarray()
    best, kept = np.inf, (v, y)
    for _ in range(STEPS):
        slope, hessian = pieces.smooth.bent(v[:n])
        force = rows.q + rows.M.T @ y
        inside = v[:n] - gamma * (slope + force[:n])
        back = np.asarray(_resolvent(A, like, gamma, inside))
        off = np.concatenate([v[:n] - back, force[n:], (rows.M @ v - rows.r)[tied]])
        if not np.isfinite(off).all() or np.linalg.norm(off) >= best:
            break
        best, kept = float(np.linalg.norm(off)), (v, y)
        step = _step(np.asarray(_derivative(A, like, gamma, inside)), hessian, T, float(gamma), off)
        v, y = v + step[: len(v)], y.copy()
        y[tied] += step[len(v) :]
    return kept[0][:n], kept[1]


def _step(J: FloatArray, hessian: FloatArray, T: FloatArray, gamma: float, off: FloatArray) -> FloatArray:
    """The least step that cancels the linear part of F."""
    n, (ties, columns) = len(J), T.shape
    whole = np.zeros((columns + ties, columns + ties))
    whole[:n, :n] = np.eye(n) - J @ (np.eye(n) - gamma * hessian)
    whole[:n, columns:] = gamma * J @ T[:, :n].T
    whole[n:columns, columns:] = T[:, n:].T
    whole[columns:, :columns] = T
    return np.asarray(np.linalg.lstsq(whole, -off, rcond=None)[0], dtype=np.float64)


@eqx.filter_jit
def _resolvent(A: Backward, like: PyTree, gamma: Any, v: Any) -> Array:
    return flat(A.resolvent(shaped(like, jnp.asarray(v)), jnp.asarray(gamma)))


@eqx.filter_jit
def _derivative(A: Backward, like: PyTree, gamma: Any, v: Any) -> Array:
    return jax.jacfwd(lambda v: flat(A.resolvent(shaped(like, v), jnp.asarray(gamma))))(jnp.asarray(v))
