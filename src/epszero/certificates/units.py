"""What first exit keeps or drops: single rows of sets {Gx ≤ h} and of shared constraints, and units of other parts.

A unit of a part that is not written in rows is an entry, where a set or function treats entries one by one, else a
whole point. What rows add to z is Σ μ_j a_j over those that are leant on (R₁), those that are dropped and may come to
be (R₂), and equations. With E the entries of all sets in rows and of the units that are kept, D these units,
    v = −((H + Q)u + r) = N_Dᵀν + Σ_{R₁ ∪ R₂} Δμ_j a_j + (equations)   on E,
so a multiplier, or a value of D, is a linear functional of v wherever the columns of W = [N_Dᵀ, a_j] on E tell it from
the others: e = (eW⁺)W for its e. What they do not tell apart is not known, and what it holds is not kept.
Source: docs/theory.md, section 6, first exit. Cost: a pseudo-inverse for each block where rows were dropped; where
constraints are shared, one for all of them together.
"""

from functools import cached_property
from typing import Any

import numpy as np

from epszero._types import FloatArray
from epszero.certificates.faces import Block
from epszero.certificates.piece import SharedFace, null_space, stacked

ALIKE = 1e-6  # of the rows: directions that differ by less are not told apart
TOLD = 1e-10  # of its size: what may be left of a functional that W determines
RANK = 1e-12  # of the largest singular value of W


class Units:
    """Of all blocks, and of the shared rows after them; conditions are those of the piece, in its order."""

    def __init__(self, blocks: list[Block], n: int, shared: SharedFace | None) -> None:
        self.blocks, self.shared, self.n = blocks, shared, n
        self.G, self.leant = (np.zeros((0, n)), np.zeros(0, dtype=bool)) if shared is None else (shared.G, shared.leant)
        self.parts = [_Part(block) for block in blocks]
        count, of_rows, of_values = 0, [np.zeros(0, dtype=int)], [np.zeros(0, dtype=int)]
        for part in self.parts:
            part.first = count
            of_rows.append(count + part.of_rows)
            of_values.append(count + part.of_values)
            count += part.count
        self.own, self.count = count, count + len(self.G)
        numbers = count + np.arange(len(self.G))
        self.of_condition = np.concatenate([*of_rows, numbers[~self.leant], *of_values, numbers[self.leant]])
        rows, self._duals = (self._stacked(name) for name in ("rows", "duals"))
        self.rows = np.vstack([rows, self.G[~self.leant]])
        slacks, values, missed = (np.concatenate([np.zeros(0), *(getattr(b.face, k) for b in blocks)]) for k in NAMES)
        beside = (np.zeros(0),) * 3
        if shared is not None:
            beside = shared.slacks[~self.leant], shared.pulls[self.leant], shared.slacks[self.leant]
        self.slacks, self.values = np.append(slacks, beside[0]), np.append(values, beside[1])
        missed = np.append(missed, beside[2])
        self.Q, self.mended, self.shift = np.zeros(n), np.zeros(n), np.zeros(n)
        for block in blocks:
            self.Q[block.entries], self.mended[block.entries] = block.face.curvature, block.face.mended
        if missed.any():
            held: Any = np.vstack([self._stacked("normals"), self.G[self.leant]])
            self.shift: FloatArray = np.linalg.lstsq(held, missed)[0]

    def _stacked(self, name: str) -> FloatArray:
        return stacked([getattr(block.face, name) for block in self.blocks], self.blocks, self.n).toarray()

    @cached_property
    def lifts(self) -> FloatArray | None:
        """What raises one value alone, for each; None where a part does not say."""
        if any(block.face.lifts is None for block in self.blocks):
            return None
        return np.vstack([self._stacked("lifts"), self.G[self.leant]])

    def bent(self, kept: Any) -> FloatArray:
        """Q of what is kept."""
        Q = self.Q.copy()
        for part in self.parts:
            Q[part.entries[~part.seen(kept)]] = 0.0
        return Q

    def conditions(self, kept: Any) -> tuple[FloatArray, Any]:
        """How values that must stay positive follow from v, and which of them do."""
        if self.shared is not None:
            found, told = self._together(kept)
            places = np.append(np.ones(len(self._duals), dtype=bool), self.leant)
            return found[places], told[places]
        duals, told, place = self._duals.copy(), np.ones(len(self._duals), dtype=bool), 0
        for part in self.parts:
            q = len(part.face.values)
            new = part.told(kept)
            if new is not None:
                duals[place : place + q] = 0.0
                duals[np.ix_(np.arange(place, place + q), part.entries)], told[place : place + q] = new
            place += q
        return duals, told

    def prices(self, kept: Any) -> tuple[FloatArray, Any]:
        """The same of the multipliers of all shared rows."""
        if self.shared is None:
            return np.zeros((0, self.n)), np.zeros(0, dtype=bool)
        found, told = self._together(kept)
        return found[len(self._duals) :], told[len(self._duals) :]

    def _together(self, kept: Any) -> tuple[FloatArray, Any]:
        """Values of all blocks, and multipliers of shared rows, from one W."""
        columns = [part.columns(kept) for part in self.parts]
        may = np.flatnonzero(self.leant | ~kept[self.own :])  # have a multiplier
        width = sum(len(rows) for rows, _ in columns)
        seen = np.concatenate([part.entries[part.seen(kept)] for part in self.parts])
        wide, wanted = (
            np.zeros((width + len(may), self.n)),
            np.zeros((len(self._duals) + len(self.G), width + len(may))),
        )
        wide[width:] = self.G[may]
        wanted[len(self._duals) + may, width + np.arange(len(may))] = 1.0
        row, line = 0, 0
        for part, (rows, of_values) in zip(self.parts, columns, strict=True):
            wide[np.ix_(np.arange(row, row + len(rows)), part.entries)] = rows
            wanted[line : line + len(of_values), row : row + len(rows)] = of_values
            row, line = row + len(rows), line + len(of_values)
        found, told = _functionals(wide[:, seen], wanted)
        known = np.zeros((len(found), self.n))
        known[:, seen] = found
        return known, told

    def inward(self, numbers: Any) -> FloatArray | None:
        """Columns q_j along the faces, a_jᵀq_j = −1 and a_lᵀq_j = 0 for the other rows of these numbers."""
        rows = self.rows[numbers]
        if self.shared is not None:
            return _inward(rows, self.basis(np.ones(self.count, dtype=bool)))
        found, of = np.zeros((rows.shape[1], len(rows))), self.of_condition[numbers]
        for part in self.parts:
            own = np.flatnonzero((of >= part.first) & (of < part.first + part.count))
            if len(own):
                inner = _inward(rows[np.ix_(own, part.entries)], part.block.basis)
                if inner is None:
                    return None
                found[np.ix_(part.entries, own)] = inner
        return found

    def basis(self, kept: Any) -> FloatArray:
        """Z of V, where what is kept holds x on its face."""
        columns = [np.zeros((self.n, 0))]
        for part in self.parts:
            inside = part.basis(kept)
            outside = np.zeros((self.n, inside.shape[1]))
            outside[part.entries] = inside
            columns.append(outside)
        Z, held = np.hstack(columns), self.G[self.leant & kept[self.own :]]
        return Z @ null_space(held @ Z) if len(held) and Z.shape[1] else Z


NAMES = ("slacks", "values", "missed")


class _Part:
    """The units of one block: its rows, its entries, or itself."""

    def __init__(self, block: Block) -> None:
        self.block, self.face, self.entries, self.first = block, block.face, block.entries, 0
        face, t = block.face, len(block.entries)
        if face.linear:
            q, r = len(face.values), len(face.rows)
            self.count, self.of_values, self.of_rows = q + r, np.arange(q), q + np.arange(r)
        elif face.separable:
            self.count = t
            self.of_rows, self.of_values = (np.abs(some).argmax(axis=1) for some in (face.rows, face.duals))
        else:
            self.count = 1
            self.of_rows, self.of_values = (np.zeros(len(some), dtype=int) for some in (face.rows, face.duals))

    def _mine(self, kept: Any) -> Any:
        return kept[self.first : self.first + self.count]

    def seen(self, kept: Any) -> Any:
        """Of each entry: whether z is known there but for multipliers."""
        mine = self._mine(kept)
        if self.face.linear:
            return np.ones(len(self.entries), dtype=bool)
        return mine if self.face.separable else np.repeat(mine, len(self.entries))

    def columns(self, kept: Any) -> tuple[FloatArray, FloatArray]:
        """What multipliers pull at, in rows; and how the values depend on these multipliers."""
        face, mine = self.face, self._mine(kept)
        if face.linear:
            q = len(face.values)
            dropped = face.rows[~mine[q:]]
            return np.vstack([face.normals, dropped]), np.eye(q, len(face.normals) + len(dropped))
        of = (
            np.abs(face.normals).argmax(axis=1)
            if face.separable and len(face.normals)
            else np.zeros(len(face.normals), int)
        )
        N = face.normals[mine[of]]
        return N, face.duals @ N.T

    def told(self, kept: Any) -> "tuple[FloatArray, Any] | None":
        """Functionals of the values where they are not those of the face, and which are known."""
        if not self.face.linear or self._mine(kept)[len(self.face.values) :].all():
            return None
        return _functionals(*self.columns(kept))

    def basis(self, kept: Any) -> FloatArray:
        """Of what may be moved along."""
        face, mine, eye = self.face, self._mine(kept), np.eye(len(self.entries))
        if face.linear:
            q = len(face.values)
            if mine[:q].all():
                return self.block.basis
            held = np.vstack([face.normals[:q][mine[:q]], face.normals[q:]])
            return null_space(held) if len(held) else eye
        if mine.all():
            return self.block.basis
        if face.separable:
            return eye[:, ~(mine & (np.abs(face.normals).max(axis=0, initial=0.0) > 0))]
        return eye


def _functionals(W: FloatArray, wanted: FloatArray) -> tuple[FloatArray, Any]:
    """Rows f with f Wᵀ = e for the rows e that are wanted, and which of them there are; W by rows."""
    found = wanted @ np.linalg.pinv(W.T, rcond=RANK)
    size = np.abs(wanted).max(axis=1, initial=0.0)
    return found, np.abs(found @ W.T - wanted).max(axis=1, initial=0.0) <= TOLD * size


def _inward(rows: FloatArray, basis: FloatArray) -> FloatArray | None:
    """−B(rows B)⁺ with the basis B of what may be moved along; None where rows are hardly told apart there."""
    along = rows @ basis
    if len(rows) > along.shape[1] or not np.linalg.svd(along, compute_uv=False)[-1] > ALIKE * np.abs(rows).max():
        return None
    return -basis @ np.linalg.pinv(along)
