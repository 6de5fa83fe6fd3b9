"""The units of A at x̂, and the shared constraints beside them: what first exit keeps or drops.

A unit is an entry that a set or function treats by itself, else a whole point; a shared constraint is one more. With
R the shared rows that may have a multiplier (those that x̂ leans on, and those that are dropped), the entries E of the
units D that are kept see v = −((H + Q)u + r) = N_Dᵀμ + G_Rᵀλ there, in which μ and λ are how multipliers move. So a
multiplier of D or R is a linear functional of v wherever the columns of W = [N_Dᵀ, G_Rᵀ] on E tell it from the others:
e = (eW⁺)W for the unit vector e. What they do not tell apart is not known, and the units that it holds are not kept.
Source: docs/theory.md, section 6, first exit. Cost: a pseudo-inverse of W for each D, where constraints are shared.
"""

from typing import Any

import numpy as np

from epszero._types import FloatArray
from epszero.certificates.faces import Block
from epszero.certificates.piece import SharedFace, null_space, stacked, stacked_conditions

ALIKE = 1e-6  # of the rows: directions that differ by less are not told apart
TOLD = 1e-10  # of its size: what may be left of a functional that W determines
RANK = 1e-12  # of the largest singular value of W


class Units:
    """Of all blocks, and of the shared rows after them."""

    def __init__(self, blocks: list[Block], n: int, shared: SharedFace | None) -> None:
        self.blocks, self.shared, self.own = blocks, shared, 0
        self.of_entry = np.zeros(n, dtype=int)
        for block in blocks:
            size = len(block.entries) if block.face.separable else 1
            self.of_entry[block.entries] = self.own + np.arange(size)
            self.own += size
        rows, self._duals = (matrix.toarray() for matrix in stacked_conditions(blocks, n))
        self.normals = stacked([block.face.normals for block in blocks], blocks, n).toarray()
        of_rows, of_duals, self.of_normal = (self._owner(some) for some in (rows, self._duals, self.normals))
        slacks, values, missed = (
            np.concatenate([np.zeros(0), *(getattr(b.face, k) for b in blocks)]) for k in ("slacks", "values", "missed")
        )
        known = [block.face.lifts for block in blocks if block.face.lifts is not None]
        self.lifts = stacked(known, blocks, n).toarray() if len(known) == len(blocks) else None
        self.G, self.leant = (np.zeros((0, n)), np.zeros(0, dtype=bool)) if shared is None else (shared.G, shared.leant)
        self.count = self.own + len(self.G)
        if shared is not None:
            on, off = self.own + np.flatnonzero(self.leant), self.own + np.flatnonzero(~self.leant)
            rows, slacks = np.vstack([rows, self.G[~self.leant]]), np.append(slacks, shared.slacks[~self.leant])
            values, missed = np.append(values, shared.pulls[self.leant]), np.append(missed, shared.slacks[self.leant])
            of_rows, of_duals = np.append(of_rows, off), np.append(of_duals, on)
            self.lifts = None if self.lifts is None else np.vstack([self.lifts, self.G[self.leant]])
        self.rows, self.slacks, self.values = rows, slacks, values
        self.of_condition = np.concatenate([of_rows, of_duals])
        self.Q, self.mended, self.shift = np.zeros(n), np.zeros(n), np.zeros(n)
        for block in blocks:
            self.Q[block.entries], self.mended[block.entries] = block.face.curvature, block.face.mended
        if missed.any():
            held: Any = np.vstack([self.normals, self.G[self.leant]])
            self.shift: FloatArray = np.linalg.lstsq(held, missed)[0]

    def _owner(self, rows: FloatArray) -> Any:
        """The unit of each row."""
        return self.of_entry[np.abs(rows).argmax(axis=1)] if len(rows) else np.zeros(0, dtype=int)

    def functionals(self, kept: Any) -> tuple[FloatArray, Any]:
        """How the values of all units, and multipliers of all shared rows, follow from v; and which of them do."""
        if self.shared is None:
            return self._duals, np.ones(len(self._duals), dtype=bool)
        seen, n = np.flatnonzero(kept[self.of_entry]), len(self.of_entry)
        may = np.flatnonzero(self.leant | ~kept[self.own :])  # have a multiplier
        N = self.normals[kept[self.of_normal]]
        W = np.vstack([N, self.G[may]])[:, seen].T
        prices = np.zeros((len(self.G), W.shape[1]))
        prices[may, len(N) + np.arange(len(may))] = 1.0
        wanted = np.vstack([np.hstack([self._duals @ N.T, np.zeros((len(self._duals), len(may)))]), prices])
        found = wanted @ np.linalg.pinv(W, rcond=RANK)
        size = np.abs(wanted).max(axis=1, initial=0.0)
        told = np.abs(found @ W - wanted).max(axis=1, initial=0.0) <= TOLD * size
        told[: len(self._duals)] &= kept[self._owner(self._duals)]
        wide = np.zeros((len(found), n))
        wide[:, seen] = found
        return wide, told

    def conditions(self, kept: Any) -> tuple[FloatArray, Any]:
        """Those of them that must stay positive."""
        found, told = self.functionals(kept)
        which = np.append(np.ones(len(self._duals), dtype=bool), self.leant)
        return found[which], told[which]

    def prices(self, kept: Any) -> tuple[FloatArray, Any]:
        """Those of shared rows."""
        found, told = self.functionals(kept)
        return found[len(self._duals) :], told[len(self._duals) :]

    def inward(self, numbers: Any) -> FloatArray | None:
        """Columns q_j along the faces, a_jᵀq_j = −1 and a_lᵀq_j = 0 for the other rows of these numbers."""
        rows = self.rows[numbers]
        if self.shared is not None:
            return _inward(rows, self.basis(np.ones(self.count, dtype=bool)))
        found = np.zeros((rows.shape[1], len(rows)))
        for block in self.blocks:
            own = np.flatnonzero(np.isin(self.of_condition[numbers], self.of_entry[block.entries]))
            if not len(own):
                continue
            part = _inward(rows[np.ix_(own, block.entries)], block.basis)
            if part is None:
                return None
            found[np.ix_(block.entries, own)] = part
        return found

    def basis(self, kept: Any) -> FloatArray:
        """Z of V, where units that are kept hold x on their faces."""
        columns = [np.zeros((len(self.of_entry), 0))]
        for block in self.blocks:
            own = kept[self.of_entry[block.entries]]
            if own.all():
                inside = block.basis
            elif block.face.separable:
                fixed = np.abs(block.face.normals).max(axis=0, initial=0.0) > 0
                inside = np.eye(len(own))[:, ~(own & fixed)]
            else:
                inside = np.eye(len(own))
            outside = np.zeros((len(self.of_entry), inside.shape[1]))
            outside[block.entries] = inside
            columns.append(outside)
        Z, held = np.hstack(columns), self.G[self.leant & kept[self.own :]]
        return Z @ null_space(held @ Z) if len(held) and Z.shape[1] else Z


def _inward(rows: FloatArray, basis: FloatArray) -> FloatArray | None:
    """−B(rows B)⁺ with the basis B of what may be moved along; None where rows are hardly told apart there."""
    along = rows @ basis
    if len(rows) > along.shape[1] or not np.linalg.svd(along, compute_uv=False)[-1] > ALIKE * np.abs(rows).max():
        return None
    return -basis @ np.linalg.pinv(along)
