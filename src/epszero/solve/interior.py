"""An affine monotone inclusion over a polyhedron, by an interior-point method with dense matrices.

    Hx + q + G_xᵀy + E_xᵀλ = 0,   G_aᵀy + E_aᵀλ = 0,   G[x; a] + s = b,   E[x; a] = e,   s, y ≥ 0,   s_j y_j = 0
for H + Hᵀ ⪰ 0: Newton's method on these equations with s_j y_j = σμ, μ = sᵀy/m, towards the solution with σ = 0 first,
which tells σ and what to correct, then the whole way; D = diag(y/s), with the auxiliary a as further entries of x,
    (H + GᵀDG) dx + Eᵀdλ = −…,    E dx = −….
Rows are scaled to length 1, and H, b and e to size 1. Cost: one factorisation of n + rows of E a step, Cholesky's where
H is symmetric and E is empty; about 10 to 20 steps, whatever the condition of H. Rows with one entry cost nothing.
Source: Mehrotra, SIAM J. Optim. 2 (1992); Wright, Primal-Dual Interior-Point Methods (1997), Ch. 8 and 10.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from epszero._types import FloatArray

MOST = 60  # steps
CLOSE = 1e-13  # of the sizes of what is added up: no step gains more
GOOD = 1e-6  # the worst that is handed out
PATIENCE = 3  # steps that do not halve what is left
AHEAD = 0.995  # of the way to the boundary
STEADY = 1e-13  # of the largest slope: added to the diagonal, as equations may depend on each other

Solver = Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]


class Inequalities:
    """Gv ≤ b with rows of length 1: those with one entry first, apart."""

    def __init__(self, G: Any, b: FloatArray) -> None:
        rows, right = _unit_rows(G, b)
        single = np.diff(rows.indptr) == 1
        alone = rows[single]
        self.columns, self.signs = alone.indices, alone.data
        self.rest = np.asarray(rows[~single].todense())
        self.n = rows.shape[1]
        self.b = np.concatenate([right[single], right[~single]])

    def times(self, v: FloatArray) -> FloatArray:
        """Gv."""
        return np.concatenate([self.signs * v[self.columns], self.rest @ v])

    def pull(self, y: FloatArray) -> FloatArray:
        """Gᵀy."""
        some = len(self.columns)
        return np.bincount(self.columns, self.signs * y[:some], self.n) + self.rest.T @ y[some:]

    def added(self, H: FloatArray, weights: FloatArray) -> FloatArray:
        """H + GᵀDG."""
        some = len(self.columns)
        M = H + self.rest.T @ (weights[some:, None] * self.rest) if len(self.rest) else H.copy()
        M[np.diag_indices(self.n)] += np.bincount(self.columns, self.signs**2 * weights[:some], self.n)
        return M


class Interior:
    """The problem for all q."""

    def __init__(self, H: FloatArray, inequalities: tuple[Any, FloatArray], equations: tuple[Any, FloatArray]) -> None:
        n = inequalities[0].shape[1]  # columns beyond those of H are a
        self.size = float(np.abs(H).max(initial=0.0)) or 1.0
        self.H = np.zeros((n, n))
        self.H[: len(H), : len(H)] = H / self.size
        self.rows = Inequalities(*inequalities)
        E, self.e = _unit_rows(*equations)
        self.E = np.asarray(E.todense())

    def solution(self, q: FloatArray) -> FloatArray | None:
        """x and a; None where it does not come near."""
        slope = np.zeros(len(self.H))
        slope[: len(q)] = q / self.size
        sizes = (np.abs(self.rows.b).max(initial=0.0), np.abs(self.e).max(initial=0.0))
        unit = float(max(sizes) or np.abs(slope).max(initial=0.0) or 1.0)
        found = self._followed(slope / unit, self.rows.b / unit, self.e / unit)
        return None if found is None else found * unit

    def _followed(self, q: FloatArray, b: FloatArray, e: FloatArray) -> FloatArray | None:
        H, rows, E, m = self.H, self.rows, self.E, len(b)
        x, lam = np.zeros(len(q)), np.zeros(len(e))
        s, y = np.maximum(b, 1.0), np.ones(m)
        best, kept, idle = np.inf, None, 0
        for _ in range(MOST):
            Hx, pull = H @ x, rows.pull(y) + E.T @ lam
            dual, primal, equal = Hx + q + pull, rows.times(x) + s - b, E @ x - e
            mu = float(s @ y) / max(m, 1)
            forces, place = 1 + _largest(Hx) + _largest(pull), 1 + _largest(x)
            off = max(_largest(dual) / forces, _largest(primal) / place, _largest(equal) / place, mu / (forces * place))
            idle = 0 if off < best / 2 else idle + 1
            if off < best:
                best, kept = off, x
            if not CLOSE < off < np.inf or idle > PATIENCE:
                break
            solved = _factorised(rows.added(H, y / s), E)
            if solved is None:
                break
            direction = _Direction(rows, solved, (dual, primal, equal), s, y)
            dx, dlam, ds, dy = direction(np.zeros(m))
            if m:
                ahead = min(_room(s, ds), _room(y, dy), 1.0)
                sigma = (float((s + ahead * ds) @ (y + ahead * dy)) / m / mu) ** 3
                dx, dlam, ds, dy = direction(sigma * mu - ds * dy)
            alpha = min(1.0, AHEAD * min(_room(s, ds), _room(y, dy)))
            x, lam, s, y = x + alpha * dx, lam + alpha * dlam, s + alpha * ds, y + alpha * dy
        return kept if best <= GOOD else None


class _Direction:
    """Newton's step towards s_j y_j = target_j."""

    def __init__(
        self, rows: Inequalities, solved: Solver, off: tuple[FloatArray, ...], s: FloatArray, y: FloatArray
    ) -> None:
        self.rows, self.solved, self.off, self.s, self.y = rows, solved, off, s, y

    def __call__(self, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        dual, primal, equal = self.off
        gap, weights = (target - self.s * self.y) / self.s, self.y / self.s
        dx, dlam = self.solved(-dual - self.rows.pull(gap + weights * primal), -equal)
        ds = -primal - self.rows.times(dx)
        return dx, dlam, ds, gap - weights * ds


def _largest(v: FloatArray) -> float:
    return float(np.abs(v).max(initial=0.0))


def _room(v: FloatArray, d: FloatArray) -> float:
    """How many times d can be added to v > 0 before an entry is 0."""
    down = d < 0
    return float(np.min(-v[down] / d[down], initial=np.inf))


def _unit_rows(matrix: Any, right: FloatArray) -> tuple[Any, FloatArray]:
    matrix = matrix.tocsr()
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1))).ravel()
    length = np.where(length > 0, length, 1.0)
    return matrix.multiply(1 / length[:, None]).tocsr(), right / length


def _factorised(M: FloatArray, E: FloatArray) -> Solver | None:
    """Solves Mu + Eᵀv = f, Eu = g; M is written over."""
    from scipy.linalg import LinAlgError, LinAlgWarning, cho_factor, cho_solve, lu_factor, lu_solve  # noqa: PLC0415  (slow to load)

    n, k = len(M), len(E)
    if not np.isfinite(M).all():
        return None
    M[np.diag_indices(n)] += STEADY
    if not k and np.array_equal(M, M.T):
        try:
            root = cho_factor(M, check_finite=False)
            return lambda f, g: (cho_solve(root, f, check_finite=False), g)
        except LinAlgError:  # not definite, by rounding
            pass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LinAlgWarning)
            factors = lu_factor(np.block([[M, E.T], [E, -STEADY * np.eye(k)]]), check_finite=False)
    except LinAlgError:
        return None
    if not np.diag(factors[0]).all():
        return None

    def solved(f: FloatArray, g: FloatArray) -> tuple[FloatArray, FloatArray]:
        found = lu_solve(factors, np.concatenate([f, g]), check_finite=False)
        return found[:n], found[n:]

    return solved
