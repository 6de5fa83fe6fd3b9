"""Linear and quadratic programmes, min ½xᵀPx + qᵀx over low ≤ Ax ≤ high, and those who solve them.

A matrix game is one linear programme, whose multipliers are the other player's strategy; pieces become variables of
their own. `point` takes a solver's answer (x and the multipliers of the rows) back to the point of the problem.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.collection._case import Affine, Array, Payoffs, Pieces

Answer = tuple[Array, Array]  # x, and y with Px + q + Aᵀy = 0


@dataclass(frozen=True, eq=False)
class Programme:
    P: Any
    q: Array
    A: Any
    low: Array
    high: Array
    point: Callable[[Answer], Array]


def _first(n: int) -> Callable[[Answer], Array]:
    return lambda answer: answer[0][:n]


def affine_programme(form: Affine) -> Programme:
    n, region = len(form.q), form.region
    bounded = np.isfinite(region.lower) | np.isfinite(region.upper)
    A = sp.vstack([sp.eye(n, format="csr")[bounded], sp.csr_matrix(region.G)], format="csc")
    low, high = np.append(region.lower[bounded], region.low), np.append(region.upper[bounded], region.high)
    return Programme(sp.csc_matrix(form.M), form.q, A, low, high, _first(n))


def matrix_programme(form: Payoffs) -> Programme:
    """min v over x ≥ 0, Σx = 1, Aᵀx ≤ v; the multipliers of the last rows are y."""
    m, n = form.A.shape
    rows = sp.bmat([[sp.csr_matrix(form.A.T), -np.ones((n, 1))], [np.ones((1, m)), None], [sp.eye(m), None]])
    low = np.concatenate([np.full(n, -np.inf), [1.0], np.zeros(m)])
    high = np.concatenate([np.zeros(n), [1.0], np.full(m, np.inf)])
    cost = np.append(np.zeros(m), 1.0)

    def point(answer: Answer) -> Array:
        x, y = np.maximum(answer[0][:m], 0.0), np.maximum(answer[1][:n], 0.0)
        return np.concatenate([x / x.sum(), y / y.sum()])

    return Programme(sp.csc_matrix((m + 1, m + 1)), cost, rows.tocsc(), low, high, point)


def pieces_programme(form: Pieces) -> Programme:
    """r = Rx − c ≤ p with p ≥ 0 where nothing is paid for r < 0, else r = p − m with both at least 0."""
    s, n = form.R.shape
    R, region, one = sp.csr_matrix(form.R), form.region, sp.eye(s)
    bounded = np.isfinite(region.lower) | np.isfinite(region.upper)
    mine = sp.vstack([sp.eye(n, format="csr")[bounded], sp.csr_matrix(region.G)])
    low, high = np.append(region.lower[bounded], region.low), np.append(region.upper[bounded], region.high)
    both = bool(form.down.any())
    extra = 2 * s if both else s
    pieces = sp.hstack([R, -one, one]) if both else sp.hstack([R, -one])
    others = sp.hstack([sp.csr_matrix((extra, n)), sp.eye(extra)])
    A = sp.vstack([sp.hstack([mine, sp.csr_matrix((mine.shape[0], extra))]), pieces, others], format="csc")
    least = form.c if both else np.full(s, -np.inf)
    P = sp.block_diag([sp.csc_matrix(form.P), sp.csc_matrix((extra, extra))], format="csc")
    q = np.concatenate([form.q, form.up, form.down] if both else [form.q, form.up])
    ends = np.concatenate([low, least, np.zeros(extra)]), np.concatenate([high, form.c, np.full(extra, np.inf)])
    return Programme(P, q, A, *ends, _first(n))


def linprog(programme: Programme) -> Callable[[], Answer]:
    """SciPy's, which is HiGHS."""
    from scipy.optimize import linprog as solve  # noqa: PLC0415

    low, high, A = programme.low, programme.high, programme.A.tocsr()
    lone = np.diff(A.indptr) == 1  # bounds on one variable are given as such
    lone &= np.abs(A.sum(axis=1).A1 if hasattr(A.sum(axis=1), "A1") else np.asarray(A.sum(axis=1)).ravel()) == 1.0
    bounds = np.tile([-np.inf, np.inf], (len(programme.q), 1))
    columns = A[lone].indices
    bounds[columns, 0], bounds[columns, 1] = low[lone], high[lone]
    equal, above = (low == high) & ~lone, np.isfinite(high) & (low != high) & ~lone
    below = np.isfinite(low) & (low != high) & ~lone
    A_ub, b_ub = sp.vstack([A[above], -A[below]]), np.concatenate([high[above], -low[below]])
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

    def call() -> Answer:
        found = solve(programme.q, A_ub, b_ub, A[equal], low[equal], bounds=bounds, method="highs", options=options)
        if found.x is None:
            raise RuntimeError(found.message)
        y = np.zeros(len(low))
        y[above] = -found.ineqlin.marginals[: above.sum()]
        return found.x, y

    return call


def clarabel(programme: Programme) -> Callable[[], Answer]:
    """With tolerances of 1e-12, from matrices to the point."""
    import clarabel as by  # noqa: PLC0415

    low, high, A = programme.low, programme.high, programme.A.tocsr()
    equal = low == high
    above, below = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal
    rows = sp.vstack([A[equal], A[above], -A[below]], format="csc")
    right = np.concatenate([low[equal], high[above], -low[below]])
    cones = [by.ZeroConeT(int(equal.sum())), by.NonnegativeConeT(int(above.sum() + below.sum()))]
    P = sp.triu(programme.P, format="csc")
    settings = by.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    start = int(equal.sum())

    def call() -> Answer:
        found = by.DefaultSolver(P, programme.q, rows, right, cones, settings).solve()
        y = np.zeros(len(low))
        y[above] = np.asarray(found.z)[start : start + above.sum()]
        return np.asarray(found.x), y

    return call


def osqp(programme: Programme) -> Callable[[], Answer]:
    """With tolerances of 1e-10 and its polish, from matrices to the point."""
    import osqp as by  # noqa: PLC0415

    P = sp.triu(programme.P, format="csc")

    def call() -> Answer:
        solver = by.OSQP()
        solver.setup(P, programme.q, programme.A, programme.low, programme.high, verbose=False, eps_abs=1e-10,
                     eps_rel=1e-10, max_iter=200_000, polishing=True)  # fmt: skip
        found = solver.solve()
        if found.x is None or not np.isfinite(found.x).all():
            raise RuntimeError(found.info.status)
        return found.x, found.y

    return call
