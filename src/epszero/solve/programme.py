"""min_v ½vᵀHv + qᵀv + Σ_j h_j((Mv − r)_j) over a cone's preimage, h_j the support function of [l_j, u_j].

[0, ∞) is an inequality, (−∞, ∞) an equality, [0, ω] a kink of weight ω. Optimal: y_j ∈ ∂h_j((Mv − r)_j) and
Hv + q + Mᵀy = 0, with the cone's part added.
- H = 0 and no other cones: the dual linear programme min rᵀy, Mᵀy = −q, l ≤ y ≤ u, which has one row for each entry of
  v, however many samples there are; by HiGHS (scipy.optimize.linprog), v being the multipliers of its rows.
- else: a conic quadratic programme in epigraph form, by Clarabel.
What the solvers found is polished where all cones are of the first kinds: rows are said to be below, above or tied (y_j
between its bounds, (Mv − r)_j = 0), the equations that follow are solved by a sparse factorisation with refinement, and
rows that turn out otherwise change sides, until all agree or TURNS are over. That is the primal-dual active set method,
a semismooth Newton method (Hintermüller, Ito & Kunisch 2003), with the solver's answer as its start.
Rows, costs and right-hand sides are scaled before a solver sees them: its tolerances mean the same in any units.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets.conic import ConicForm, cone, minimise

TURNS = 25
REFINED = 8  # rounds of iterative refinement
SOFT = 1e-10  # of the size of the matrix: what makes the equations solvable, and is taken back by refinement
NOTHING = 1e-15  # of the numbers in the programme, or of the largest entry of v: an entry is 0
ROUND = 1e-13  # of the numbers added up: a row is tied


@dataclass(frozen=True)
class Programme:
    """See the header; v has as many entries as q, H belongs to the first of them."""

    q: FloatArray
    M: Any  # sparse
    r: FloatArray
    lower: FloatArray
    upper: FloatArray
    hessian: FloatArray | None = None
    cones: ConicForm | None = None  # rows of other kinds


@dataclass(frozen=True)
class Found:
    """`v` and `y` where `failed` is empty."""

    v: FloatArray
    y: FloatArray
    by: str  # which solver
    failed: str = ""


def solved(given: Programme) -> Found:
    """By the solver that suits, polished where that can be."""
    programme, back = _scaled(given)
    linear = given.hessian is None and given.cones is None
    found = _linear(programme) if linear else _conic(programme)
    if found.failed or given.cones is not None:
        return back(found)
    return back(_polished(programme, found))


def _scaled(given: Programme) -> tuple[Programme, Any]:
    """Rows of size 1, weights and right-hand sides of size 1; and the way back."""
    size = np.asarray(abs(given.M).max(axis=1).todense()).ravel() if given.M.shape[0] else np.zeros(0)
    size = np.where(size > 0, size, 1.0)
    y_size = _largest(given.upper[np.isfinite(given.upper)] * size[np.isfinite(given.upper)], given.q)
    r = given.r / size
    v_size = _largest(r)
    if given.hessian is not None and not np.any(given.r):
        v_size = y_size / _largest(given.hessian)
    hessian = None if given.hessian is None else given.hessian * (v_size / y_size)
    cones = None
    if given.cones is not None:
        v_size = 1.0
        hessian = None if given.hessian is None else given.hessian / y_size
        cones = given.cones
    programme = Programme(
        given.q / y_size,
        sp.csr_matrix(sp.diags(1.0 / size) @ given.M),
        r / v_size,
        given.lower,
        given.upper * size / y_size,
        hessian,
        cones,
    )

    def back(found: Found) -> Found:
        return replace(found, v=found.v * v_size, y=found.y * y_size / size)

    return programme, back


def _largest(*parts: FloatArray) -> float:
    size = max((float(np.max(np.abs(part), initial=0.0)) for part in parts), default=0.0)
    return size if size > 0 and np.isfinite(size) else 1.0


def _linear(programme: Programme) -> Found:
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import)

    rows = programme.M.shape[0]
    answer = linprog(
        programme.r,
        A_eq=sp.csc_matrix(programme.M.T),
        b_eq=-programme.q,
        bounds=np.column_stack([programme.lower, programme.upper]),
        method="highs",
        options={"presolve": False, "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    by = "linear programme, HiGHS"
    if answer.status != 0:
        reasons = {2: "it has no least value on the domain", 3: "no point meets all the constraints"}
        said = reasons.get(answer.status, f"HiGHS ended with: {answer.message}")
        return Found(np.zeros(len(programme.q)), np.zeros(rows), by, said)
    return Found(np.asarray(answer.eqlin.marginals), np.asarray(answer.x), by)


def _conic(programme: Programme) -> Found:
    """Kinks as p_j ≥ 0, p_j ≥ (Mv − r)_j at the price u_j."""
    M, columns = programme.M, len(programme.q)
    rows, free = M.shape[0], programme.lower < 0
    kinks = np.flatnonzero(np.isfinite(programme.upper))
    order = np.concatenate([np.flatnonzero(free), np.flatnonzero(~free)])
    above = sp.csr_matrix((np.ones(len(kinks)), (kinks, np.arange(len(kinks)))), shape=(rows, len(kinks)))
    stacked = [
        sp.hstack([M, -above], format="csr")[order],
        sp.hstack([sp.csr_matrix((len(kinks), columns)), -sp.identity(len(kinks))]),
    ]
    b = [programme.r[order], np.zeros(len(kinks))]
    cones = [cone("Zero", int(free.sum())), cone("Nonnegative", int((~free).sum()) + len(kinks))]
    total = columns + len(kinks)
    if programme.cones is not None:
        extra = programme.cones
        wide = sp.csr_matrix((extra.A.shape[0], total - extra.A.shape[1]))
        stacked.append(sp.hstack([extra.A, wide]))
        b.append(extra.b)
        cones += list(extra.cones)
    form = ConicForm(sp.csr_matrix(sp.vstack(stacked)), np.concatenate(b), tuple(cones), total)
    result = minimise(form, np.concatenate([programme.q, programme.upper[kinks]]), _wide(programme, total))
    y = np.zeros(rows)
    by = "conic programme, Clarabel"
    if result.status != "solved":
        reasons = {
            "unbounded": "it has no least value on the domain",
            "infeasible": "no point meets all the constraints",
        }
        return Found(np.zeros(columns), y, by, reasons.get(result.status, "Clarabel found no answer"))
    y[order] = result.dual[:rows]
    return Found(result.x[:columns], y, by)


def _polished(programme: Programme, found: Found) -> Found:
    """Where the tied rows are tied to rounding and the others free of them; what was given if that is not found."""
    lower, upper, M = programme.lower, programme.upper, programme.M
    H = _wide(programme, len(programme.q))
    v, y = found.v, found.y
    apart = M @ v - programme.r
    inner = np.minimum(y - lower, upper - y)
    tied = (inner > np.abs(apart)) | np.isneginf(lower)
    bound = np.where(apart > 0, upper, lower)
    bound = np.where(np.isfinite(bound), bound, lower)
    for _ in range(TURNS):
        y = np.where(tied, np.clip(y, lower, upper), bound)
        v, y = _balanced(H, programme, tied, v, y)
        apart = M @ v - programme.r
        size = ROUND * (abs(M) @ np.abs(v) + np.abs(programme.r))
        slip = ROUND * (1.0 + np.abs(y))
        below, above = tied & (y < lower - slip), tied & (y > upper + slip)
        crossed = ~tied & np.where(bound == lower, apart > size, apart < -size)
        if not (below | above | crossed).any():
            return replace(
                found, v=np.where(np.abs(v) <= NOTHING * max(1.0, np.abs(v).max()), 0.0, v), y=np.clip(y, lower, upper)
            )
        bound = np.where(below, lower, np.where(above, upper, bound))
        tied = (tied & ~below & ~above) | crossed
    return found


def _wide(programme: Programme, total: int) -> Any:
    """H with zeros for the other columns."""
    given = sp.coo_matrix((0, 0) if programme.hessian is None else programme.hessian)
    return sp.csr_matrix((given.data, (given.row, given.col)), shape=(total, total))


def _balanced(H: Any, programme: Programme, tied: Any, v: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Hv + q + Mᵀy = 0 and (Mv − r)_j = 0 for tied j, y_j fixed for the others: the solution near v, y."""
    from scipy.sparse.linalg import splu  # noqa: PLC0415  (slow to import)

    T = programme.M[np.flatnonzero(tied)]
    columns, rows = len(v), T.shape[0]
    soft = SOFT * max(1.0, float(abs(H).max()) if H.nnz else 0.0)
    exact = sp.bmat([[H, T.T], [T, sp.csr_matrix((rows, rows))]], format="csc")
    shift = sp.diags(np.concatenate([np.full(columns, soft), np.full(rows, -soft)]))
    factor = splu(sp.csc_matrix(exact + shift))
    v, y = v.copy(), y.copy()
    for _ in range(REFINED):
        off = np.concatenate([-(H @ v + programme.q + programme.M.T @ y), programme.r[tied] - T @ v])
        step = factor.solve(off)
        if not np.isfinite(step).all():
            break
        v += step[:columns]
        y[tied] += step[columns:]
    return v, y
