"""The linear program of a skew affine inclusion over a polyhedron (solve/complementarity.py), part by part.

    min  qᵀx + bᵀy   s.t.   Hx + G_xᵀy = −q,   G_aᵀy = 0,   G[x; a] ≤ b or = b,   y ≥ 0 where ≤
falls into parts that share no variable; for a game of two players there are two, each the dual of the other, and the
multipliers of the one are the answer of the other. A row with one entry is a bound on its variable. A variable y_j ≥ 0
in one equation alone, r·v + a y_j = t, is the slack of r·v ≤ t (≥ where a < 0) and leaves with it: its cost b_j y_j is
(b_j/a)(t − r·v), and the multiplier of the equation is that of the inequality plus b_j/a.
All but q is known beforehand, so what is made of it is kept. Cost of an answer: HiGHS, through SciPy's `linprog`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets.conic import ConicForm

Places = Any  # an array of indices
DENSE = 0.2  # of the entries of a matrix: from there it is written out, which is faster


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a linear program, and where in −q, 0 and b their right-hand sides are."""

    matrix: Any
    place: Places  # in the right-hand sides
    sign: FloatArray  # with which it is taken


@dataclass(frozen=True, eq=False)
class Part:
    """One linear program: variables v with low ≤ v ≤ high, equations and inequalities."""

    columns: Places  # which variables of the whole it has
    eliminated: FloatArray  # what the slacks that left add to the cost
    low: FloatArray
    high: FloatArray
    equations: Rows
    inequalities: Rows
    more: FloatArray  # b_j/a: what the multiplier of the equation that an inequality was is more


class Parts:
    """All parts for one H and one set."""

    def __init__(self, form: ConicForm, H: FloatArray, equal: Any) -> None:
        self.n, self.aux = form.n, form.A.shape[1] - form.n
        self.b, self.equal = form.b, equal
        self.parts = _parts(form, H, equal)

    def solution(self, q: FloatArray) -> FloatArray | None:
        """x, or None where the solver gave up."""
        n, zeros = self.n, np.zeros(self.aux)
        cost = np.concatenate([q, zeros, self.b])
        right = np.concatenate([-q, zeros, self.b[self.equal], self.b[~self.equal]])
        x = np.full(n, np.nan)
        for part in self.parts:
            ours = part.columns < n
            if not np.isnan(x[part.columns[ours]]).any():
                continue
            answer = _solved(part, cost[part.columns] - part.eliminated, right)
            if answer is None:
                return None
            v, of_equations, of_inequalities = answer
            x[part.columns[ours]] = v[ours]
            for rows, found in ((part.equations, of_equations), (part.inequalities, of_inequalities)):
                fitting = rows.place < n  # the multiplier of the balance of entry i is x_i, where another part seeks it
                balance, value = rows.place[fitting], found[fitting]
                open_still = np.isnan(x[balance])
                x[balance[open_still]] = value[open_still]
        return x if np.isfinite(x).all() else None


def _solved(part: Part, cost: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """v, and the multipliers of all equations, those that became inequalities among them."""
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to load)

    equations, inequalities = part.equations, part.inequalities
    given: dict[str, Any] = {}
    if len(equations.place):
        given |= {"A_eq": equations.matrix, "b_eq": right[equations.place]}
    if len(inequalities.place):
        given |= {"A_ub": inequalities.matrix, "b_ub": inequalities.sign * right[inequalities.place]}
    answer = linprog(cost, bounds=np.stack([part.low, part.high], axis=1), **given)
    if answer.status != 0:
        return None
    slopes = inequalities.sign * np.asarray(answer.ineqlin.marginals) + part.more
    return np.asarray(answer.x), np.asarray(answer.eqlin.marginals), slopes


def _parts(form: ConicForm, H: FloatArray, equal: Any) -> list[Part]:
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  (slow to load)

    n, aux, m = form.n, form.A.shape[1] - form.n, form.A.shape[0]
    balance = sp.hstack([sp.csr_matrix(H), sp.csr_matrix((n, aux)), form.A[:, :n].T])
    free = sp.hstack([sp.csr_matrix((aux, n + aux)), form.A[:, n:].T])
    primal = sp.hstack([form.A, sp.csr_matrix((m, m))], format="csr")
    rows = sp.vstack([balance, free, primal[equal], primal[~equal]], format="csr")
    rows.eliminate_zeros()
    equations = n + aux + int(equal.sum())
    touching = sp.bmat([[None, rows], [rows.T, None]], format="csr")
    label = connected_components(touching, directed=False)[1]
    of_row, of_column = label[: rows.shape[0]], label[rows.shape[0] :]
    found = list[Part]()
    for part in np.unique(of_column):
        columns = np.flatnonzero(of_column == part)
        if (columns < n).any():
            here = np.flatnonzero(of_row == part)
            found.append(_part(rows[here][:, columns], here, columns, equations, (form, equal)))
    return found


def _part(rows: Any, here: Places, columns: Places, equations: int, given: tuple[ConicForm, Any]) -> Part:
    """`rows` of the part alone, which are `here` in the whole; the first `equations` of the whole are equations."""
    form, equal = given
    width, sides = form.A.shape[1], np.concatenate([form.b[equal], form.b[~equal]])
    is_equation = here < equations
    y = columns - width  # which multiplier a column is, where it is one
    low = np.where((y >= 0) & ~equal[np.maximum(y, 0)], 0.0, -np.inf)
    high = np.full(len(columns), np.inf)
    single = ~is_equation & (np.diff(rows.indptr) == 1)
    for row in np.flatnonzero(single):
        column, slope = int(rows[row].indices[0]), float(rows[row].data[0])
        limit = float(sides[here[row] - width]) / slope
        if slope > 0:
            high[column] = min(high[column], limit)
        else:
            low[column] = max(low[column], limit)
    slack, taken = _slacks(rows, low == 0.0, y >= 0, is_equation)
    by_columns = rows.tocsc()
    eliminated, kept = np.zeros(len(columns)), np.ones(len(columns), bool)
    kept[slack] = False
    at = np.array([float(by_columns[:, [column]].data[0]) for column in slack])
    more = form.b[y[slack]] / at if len(slack) else np.zeros(0)
    for row, price in zip(taken, more, strict=True):
        eliminated[rows[row].indices] += price * rows[row].data
    plain = is_equation.copy()
    plain[taken] = False
    rest = np.flatnonzero(~is_equation & ~single)
    sign = np.concatenate([np.sign(at), np.ones(len(rest))])
    bounded = np.concatenate([taken, rest]).astype(int)
    inequalities = sp.diags(sign) @ rows[bounded][:, kept] if len(bounded) else rows[bounded][:, kept]
    return Part(
        columns[kept],
        eliminated[kept],
        low[kept],
        high[kept],
        Rows(_written(rows[plain][:, kept]), here[plain], np.ones(int(plain.sum()))),
        Rows(_written(inequalities), here[bounded], sign),
        np.concatenate([more, np.zeros(len(rest))]),
    )


def _slacks(rows: Any, nonnegative: Any, multiplier: Any, is_equation: Any) -> tuple[Places, Places]:
    """Variables that are slacks, and the equation of each; one for an equation at most."""
    by_columns = rows.tocsc()
    alone = nonnegative & multiplier & (np.diff(by_columns.indptr) == 1)
    candidates = np.flatnonzero(alone)
    row = by_columns.indices[by_columns.indptr[candidates]]
    fitting = is_equation[row]
    taken, first = np.unique(row[fitting], return_index=True)
    return candidates[fitting][first], taken


def _written(matrix: Any) -> Any:
    """As an array where that is not mostly zeros."""
    size = matrix.shape[0] * matrix.shape[1]
    return matrix.toarray() if matrix.nnz >= DENSE * size else matrix.tocsc()
