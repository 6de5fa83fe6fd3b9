"""A conic form with fewer auxiliary columns: the same set, on which less has to be taken on a solver's word.

A column t is spared where an equation has it (t from there), and where larger t (or smaller) helps every cone but one
row a·t ≤ β − …, a > 0: then t may be as large as that row allows, t = (β − …)/a, and the row goes. Helps: the change
of the slack lies in the cone, as s + k ∈ K for s, k ∈ K. So ‖x‖ ≤ t, t ≤ r becomes ‖x‖ ≤ r.
"""

from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets import _cones
from epszero.sets.conic import ConicForm, cone

MOST = 2000  # entries of a side of A up to which it is worth while


def reduced(form: ConicForm) -> ConicForm:
    """The same set, without the auxiliary columns that can be spared."""
    if form.A.shape[1] == form.n or max(form.A.shape) > MOST or not _cones.known(form.cones):
        return form
    rows, b, cones = np.asarray(form.A.toarray()), form.b, form.cones
    column = form.n
    while column < rows.shape[1]:
        row = _spared_by(rows[:, column], cones)
        if row is None:
            column += 1
            continue
        rows, b = _eliminated(rows, b, row, column)
        cones = _without_row(cones, row)
    return ConicForm(sp.csr_matrix(rows), b, cones, form.n)


def _spared_by(entries: FloatArray, cones: tuple[Any, ...]) -> int | None:
    """The row that gives the column, or None."""
    sizes = np.abs(entries)
    for kind, _, rows in _cones.blocks(cones):
        if kind == "Zero" and sizes[rows].any():
            largest = rows.start + int(sizes[rows].argmax())
            return largest if sizes[largest] > 1e-6 * sizes.max() else None
    for sign in (1.0, -1.0):
        against = _against(-sign * entries, cones)
        if against is not None and len(against) == 1:
            return against[0]
    return None


def _against(change: FloatArray, cones: tuple[Any, ...]) -> list[int] | None:
    """The rows of nonnegative cones that the change hurts; None where it hurts, or may hurt, another cone."""
    found: list[int] = []
    for kind, one, rows in _cones.blocks(cones):
        part = change[rows]
        if kind == "Nonnegative":
            found += [rows.start + int(i) for i in np.flatnonzero(part < 0)]
        elif part.any() and not (_recedes(kind, part) or _cones.holds((one,), part, np.zeros(len(part)))):
            return None
    return found


def _recedes(kind: str, part: FloatArray) -> bool:
    """Directions in the exponential cone that lie on its boundary at y = 0: x ≤ 0, z ≥ 0."""
    return kind == "Exponential" and part[0] <= 0 and part[1] == 0 and part[2] >= 0


def _eliminated(rows: FloatArray, b: FloatArray, row: int, column: int) -> tuple[FloatArray, FloatArray]:
    factors = rows[:, column] / rows[row, column]
    left = rows - np.outer(factors, rows[row])
    return np.delete(np.delete(left, row, axis=0), column, axis=1), np.delete(b - factors * b[row], row)


def _without_row(cones: tuple[Any, ...], row: int) -> tuple[Any, ...]:
    """The cones after one row of a zero or nonnegative cone is gone."""
    kept: list[Any] = []
    for kind, one, rows in _cones.blocks(cones):
        kept.append(cone(kind, one.dim - 1) if rows.start <= row < rows.stop else one)
    return tuple(one for one in kept if getattr(one, "dim", 1) > 0)
