"""The programme of f̂ + g + a set, from the pieces of f̂ and g and the set's conic form (solve/programme.py).

A kink of two branches that no other kink looks at is ω·max(a, b) = ω·a + max over y ∈ [0, ω] of y·(b − a): one row. Any
other kink gets a column τ and a row for each branch, a − τ ≤ 0. A row of a set is an inequality or an equality; rows in
other cones are handed on as they are. Columns: x, the τ of all pieces, the set's auxiliary columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets.conic import ConicForm
from epszero.solve.pieces import Pieces
from epszero.solve.programme import Programme


@dataclass(frozen=True)
class Epigraph:
    """A programme, and where its rows come from. The smooth parts are added by `with_model`."""

    programme: Programme
    pieces: tuple["Rows", ...]
    of_set: FloatArray  # the rows of the set on x, dense where few; their multipliers are the last of y
    n: int

    def with_model(self, slope: FloatArray, hessian: FloatArray | None) -> Programme:
        """The smooth parts as ⟨slope, x⟩ + ½⟨x, hessian x⟩."""
        q = self.programme.q.copy()
        q[: self.n] += slope
        given = self.programme
        return Programme(q, given.M, given.r, given.lower, given.upper, hessian, given.cones)

    def shares(self, y: FloatArray) -> list[FloatArray]:
        """How much each branch weighs, for all pieces in their order."""
        ends = np.cumsum([len(rows.r) for rows in self.pieces])
        return [rows.shares(part) for rows, part in zip(self.pieces, np.split(y[: ends[-1]], ends[:-1]), strict=True)]

    def normal(self, y: FloatArray) -> FloatArray:
        """The element of the set's normal cone that its multipliers make."""
        return self.of_set.T @ y[len(y) - self.of_set.shape[0] :]


def epigraph(pieces: Sequence[Pieces], form: ConicForm) -> Epigraph:
    """Of a sum of pieces over a set."""
    n = form.n
    parts = tuple(Rows.of(one, n) for one in pieces)
    widths = [part.M.shape[1] - n for part in parts]
    columns, first = n + sum(widths) + form.A.shape[1] - n, n
    blocks: list[Any] = []
    for part, width in zip(parts, widths, strict=True):
        blocks.append(_placed(part.M, n, first, columns))
        first += width
    straight, other, free = _divided(form)
    whole = _placed(form.A, n, first, columns)
    blocks.append(whole[straight])
    cost = np.zeros(columns)
    at = n
    for part, width in zip(parts, widths, strict=True):
        cost[:n] += part.q[:n]
        cost[at : at + width] = part.q[n:]
        at += width
    programme = Programme(
        cost,
        sp.csr_matrix(sp.vstack(blocks)),
        np.concatenate([*(part.r for part in parts), form.b[straight]]),
        np.concatenate([*(np.zeros(len(part.r)) for part in parts), np.where(free, -np.inf, 0.0)]),
        np.concatenate([*(part.upper for part in parts), np.full(len(straight), np.inf)]),
        None,
        None if not len(other) else ConicForm(whole[other], form.b[other], _cones(form), n),
    )
    return Epigraph(programme, parts, form.A[straight][:, :n], n)


def _divided(form: ConicForm) -> tuple[Any, Any, Any]:
    """Rows that are inequalities or equalities, the others, and which of the first are equalities."""
    kinds = np.empty(len(form.b), dtype=object)
    for kind, _, rows in form.kinds():
        kinds[rows] = kind
    straight = np.flatnonzero((kinds == "Zero") | (kinds == "Nonnegative"))
    return straight, np.flatnonzero((kinds != "Zero") & (kinds != "Nonnegative")), kinds[straight] == "Zero"


def _cones(form: ConicForm) -> tuple[Any, ...]:
    return tuple(cone for kind, cone, _ in form.kinds() if kind not in ("Zero", "Nonnegative"))


def _placed(M: Any, n: int, first: int, columns: int) -> Any:
    """Rows over x and columns of their own, as rows over all columns."""
    entries = sp.coo_matrix(M)
    column = np.where(entries.col < n, entries.col, entries.col - n + first)
    return sp.csr_matrix((entries.data, (entries.row, column)), shape=(M.shape[0], columns))


@dataclass(frozen=True)
class Rows:
    """Rows of one `Pieces` over x and its own τ."""

    M: Any
    r: FloatArray
    upper: FloatArray
    q: FloatArray
    other: Any  # kinks that have a column τ
    plain: Any  # kinks of two branches that no other looks at
    rest: Any  # rows of the other kinks
    given: Pieces

    @staticmethod
    def of(pieces: Pieces, n: int) -> "Rows":
        s, m = pieces.omega.shape
        counts = np.bincount(pieces.owner, minlength=m)
        looked_at = np.zeros(m, bool) if pieces.C is None else pieces.C.any(axis=(0, 1))
        plain, other = (np.flatnonzero(kind) for kind in ((counts == 2) & ~looked_at, (counts != 2) | looked_at))
        first = pieces.starts[plain]
        rest = np.flatnonzero(np.isin(pieces.owner, other))
        weight, count = pieces.omega[:, plain], s * len(other)
        base, tau = np.einsum("sp,spn->n", weight, pieces.B[:, first]), pieces.omega[:, other]
        one = sp.csr_matrix((s * len(plain), count))
        two = _own(s, len(other), np.searchsorted(other, pieces.owner[rest]))
        if pieces.C is not None:
            inside = pieces.C[:, :, other]
            tau = tau + np.einsum("sp,spm->sm", weight, inside[:, first])
            one, two = _spread(inside[:, first + 1] - inside[:, first]), two + _spread(inside[:, rest])
        apart = pieces.B[:, first + 1] - pieces.B[:, first]
        return Rows(
            sp.vstack([_beside(apart, one, n), _beside(pieces.B[:, rest], two, n)], format="csr"),
            np.concatenate([(pieces.d[:, first] - pieces.d[:, first + 1]).ravel(), -pieces.d[:, rest].ravel()]),
            np.concatenate([weight.ravel(), np.full(s * len(rest), np.inf)]),
            np.concatenate([base, tau.ravel()]),
            other,
            plain,
            rest,
            pieces,
        )

    def shares(self, y: FloatArray) -> FloatArray:
        """y of all branches."""
        pieces, s = self.given, len(self.given.omega)
        found, count = np.zeros(pieces.d.shape), s * len(self.plain)
        above, first = y[:count].reshape(s, -1), pieces.starts[self.plain]
        found[:, first + 1] = above
        found[:, first] = pieces.omega[:, self.plain] - above
        found[:, self.rest] = y[count:].reshape(s, -1)
        return found


def _beside(on_x: FloatArray, on_tau: Any, n: int) -> Any:
    """Rows of all samples over x and τ."""
    return sp.hstack([sp.csr_matrix(on_x.reshape(-1, n)), on_tau], format="csr")


def _own(s: int, width: int, owner: Any) -> Any:
    """−τ in the rows of each kink, for every sample."""
    one = sp.csr_matrix((-np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), width))
    return sp.kron(sp.identity(s), one, format="csr")


def _spread(blocks: FloatArray) -> Any:
    """Blocks along the diagonal: every sample has τ of its own."""
    s, rows, width = blocks.shape
    i, a, b = np.nonzero(blocks)
    return sp.csr_matrix((blocks[i, a, b], (i * rows + a, i * width + b)), shape=(s * rows, s * width))
