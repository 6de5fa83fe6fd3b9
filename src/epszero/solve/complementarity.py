"""An affine monotone inclusion over sets in conic form, as one convex program with the optimal value 0.

For C = {x : G[x; a] + s = b, s ∈ K} and F(x) = Hx + q with H + Hᵀ ⪰ 0, x solves the variational inequality exactly when
    min  ⟨Hx + q, x⟩ + bᵀy   s.t.   G[x; a] + s = b, s ∈ K,   Hx + q + G_xᵀy = 0,   G_aᵀy = 0,   y ∈ K*
attains 0 there: ⟨F(x), x⟩ + σ_C(−F(x)) ≥ 0 on C, with equality at solutions alone, and bᵀy ≥ σ_C(−F(x)) by conic
duality. It is a quadratic program (Clarabel), and a linear one where H is skew and K polyhedral (HiGHS through SciPy),
as for zero-sum games. The linear program falls into parts that share no variable; for a game of two players there are
two, each the dual of the other, and the multipliers of the one are the answer of the other.
What comes out is good to the solver's accuracy; Newton's finish goes on from there (solve/newton.py).
Source: Facchinei & Pang, Finite-Dimensional Variational Inequalities (2003), Sec. 1.5.3 and 2.3.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from epszero._checks import InputError
from epszero._lazy import sp
from epszero._types import FloatArray, PyTree
from epszero.problems.backward import Backward, is_part
from epszero.sets import Set
from epszero.sets.conic import ConicForm, cone, minimise

MOST_QUADRATIC = 600  # entries of x: a dense quadratic program beyond that takes longer than it is worth
MOST_LINEAR = 3000
SKEW = 1e-13  # of the largest slope: a symmetric part below it is rounding


def solved_as_program(A: Backward, H: FloatArray, q: FloatArray, x: PyTree) -> FloatArray | None:
    """A solution for points like x, flat; None where the sets have no conic form or the solver gave up."""
    n = len(q)
    skew = float(np.abs(H + H.T).max(initial=0.0)) <= SKEW * float(np.abs(H).max(initial=0.0))
    if n > (MOST_LINEAR if skew else MOST_QUADRATIC):
        return None
    form = _form_of(A, x)
    if form is None:
        return None
    linear = all(type(one).__name__ in ("ZeroConeT", "NonnegativeConeT") for one in form.cones)
    return _linear(form, H, q) if skew and linear else _quadratic(form, H, q) if n <= MOST_QUADRATIC else None


def _form_of(A: Backward, x: PyTree) -> ConicForm | None:
    """The domain in conic form: one block of rows for each member of each part."""
    forms: list[ConicForm] = []
    try:
        for part, leaf in _members(A, x):
            forms.append(part.conic(int(np.size(leaf))))
    except InputError:
        return None
    n = sum(form.n for form in forms)
    of_x = sp.block_diag([form.A[:, : form.n] for form in forms], format="csr")
    of_aux = sp.block_diag([form.A[:, form.n :] for form in forms], format="csr")
    cones = tuple(one for form in forms for one in form.cones)
    rows = sp.hstack([of_x, of_aux], format="csr")
    return ConicForm(rows, np.concatenate([form.b for form in forms]), cones, n)


def _members(A: Backward, x: PyTree) -> Iterator[tuple[Set, Any]]:
    """Each single set with the entries that it is about, in the order of the entries of x."""
    for part, below in zip(
        jax.tree.leaves(A.parts, is_leaf=is_part),
        jax.tree.structure(A.parts, is_leaf=is_part).flatten_up_to(x),
        strict=True,
    ):
        if not isinstance(part, Set):
            raise InputError("a function has no conic form")
        for leaf in jax.tree.leaves(below):
            rows = np.atleast_1d(leaf)
            batch = rows.shape[: rows.ndim - part.rank]
            for index in np.ndindex(batch):
                own = part.batch_shape
                place = tuple(i if size > 1 else 0 for i, size in zip(index[len(batch) - len(own) :], own, strict=True))
                yield part.member(place), rows[index]


def _quadratic(form: ConicForm, H: FloatArray, q: FloatArray) -> FloatArray | None:
    n, aux, m = form.n, form.A.shape[1] - form.n, form.A.shape[0]
    of_x, of_aux = form.A[:, :n], form.A[:, n:]
    curvature = sp.block_diag([H + H.T, sp.csr_matrix((aux + m, aux + m))], format="csr")
    balance = sp.hstack([sp.csr_matrix(H), sp.csr_matrix((n, aux)), of_x.T])
    free = sp.hstack([sp.csr_matrix((aux, n + aux)), of_aux.T])
    signs, kept = _dual_cones(form)
    multipliers = sp.hstack([sp.csr_matrix((len(signs), n + aux)), -sp.identity(m, format="csr")[signs]])
    primal = sp.hstack([form.A, sp.csr_matrix((m, m))])
    rows = sp.vstack([primal, balance, free, multipliers], format="csr")
    right = np.concatenate([form.b, -q, np.zeros(aux), np.zeros(len(signs))])
    cones = (*form.cones, cone("Zero", n), *([cone("Zero", aux)] if aux else []), *kept)
    whole = ConicForm(rows, right, cones, n + aux + m)
    answer = minimise(whole, np.concatenate([q, np.zeros(aux), form.b]), curvature)
    return answer.x[:n] if answer.status == "solved" else None


def _dual_cones(form: ConicForm) -> tuple[Any, list[Any]]:
    """The rows whose multipliers lie in a cone, and those cones, each its own dual; of equations y is free."""
    kept, rows, start = [], [], 0
    sizes = [_size(one) for one in form.cones]
    for one, size in zip(form.cones, sizes, strict=True):
        if type(one).__name__ != "ZeroConeT":
            kept.append(one)
            rows.append(np.arange(start, start + size))
        start += size
    return np.concatenate(rows) if rows else np.zeros(0, dtype=int), kept


def _size(one: Any) -> int:
    return one.dim * (one.dim + 1) // 2 if type(one).__name__ == "PSDTriangleConeT" else one.dim


def _linear(form: ConicForm, H: FloatArray, q: FloatArray) -> FloatArray | None:
    """Part by part; the multipliers of one part may be the answer of another."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  (slow to load)

    n, aux, m = form.n, form.A.shape[1] - form.n, form.A.shape[0]
    equal = np.concatenate([np.full(_size(one), type(one).__name__ == "ZeroConeT") for one in form.cones])
    balance = sp.hstack([sp.csr_matrix(H), sp.csr_matrix((n, aux)), form.A[:, :n].T])
    free = sp.hstack([sp.csr_matrix((aux, n + aux)), form.A[:, n:].T])
    primal = sp.hstack([form.A, sp.csr_matrix((m, m))], format="csr")
    equations = sp.vstack([balance, free, primal[equal]], format="csr")
    targets = np.concatenate([-q, np.zeros(aux), form.b[equal]])
    below, limits = primal[~equal], form.b[~equal]
    cost = np.concatenate([q, np.zeros(aux), form.b])
    lower = np.concatenate([np.full(n + aux, -np.inf), np.where(equal, -np.inf, 0.0)])
    rows = sp.vstack([equations, below], format="csr")
    touching = sp.bmat([[None, rows], [rows.T, None]], format="csr")
    label = connected_components(touching, directed=False)[1]
    of_row, of_column = label[: rows.shape[0]], label[rows.shape[0] :]
    x = np.full(n, np.nan)
    for part in np.unique(of_column):
        columns = np.flatnonzero(of_column == part)
        wanted = columns[columns < n]
        if not np.isnan(x[wanted]).any():
            continue
        eq, ub = np.flatnonzero(of_row[: len(targets)] == part), np.flatnonzero(of_row[len(targets) :] == part)
        answer = _program(cost, (equations[eq], targets[eq]), (below[ub], limits[ub]), lower, columns)
        if answer is None:
            return None
        x[wanted] = answer.x[np.searchsorted(columns, wanted)]
        balanced = eq[eq < n]  # the multiplier of the balance of entry i is x_i, where another part looks for it
        other = np.isnan(x[balanced])
        x[balanced[other]] = np.asarray(answer.eqlin.marginals)[: len(balanced)][other]
    return x if np.isfinite(x).all() else None


def _program(cost: FloatArray, equations: Any, inequalities: Any, lower: FloatArray, columns: Any) -> Any:
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to load)

    answer = linprog(
        cost[columns],
        A_ub=inequalities[0][:, columns],
        b_ub=inequalities[1],
        A_eq=equations[0][:, columns],
        b_eq=equations[1],
        bounds=np.stack([lower[columns], np.full(len(columns), np.inf)], axis=1),
    )
    return answer if answer.status == 0 else None
