"""The piece that x̂ lies on, for B affine in x with constant slopes, additive noise Cφ(ξ) and polyhedral A.

x̂ with z ∈ A(x̂) solves the problem exactly for p̂ = h + Cm̂ − ê; the truth has p̂ + Δ, Δ = C(m − m̂) + ê. With N the
normals that x̂ leans on, Z a basis of {u : Nu = 0} and M = Z(Zᵀ(H + Q)Z)⁻¹Zᵀ,
    x = x̂ − MΔ + (I − M(H + Q))N⁺β,   β = what x̂ misses of its face, rounding,
satisfies the conditions of a solution as long as no slack and no value that must stay positive (sets/faces.py) changes
sign; both are affine in m. So if all of them are positive for every m ∈ U, then x(m) is that point for every m ∈ U: it
is a solution, and as slacks and multipliers are strictly positive, the only one near by, hence the only one, the
solutions of a monotone inclusion being a convex set. T = MC is a property of the piece, and so of the law once x* is
known to lie on it.
Proof and events: docs/theory.md, section 6. Cost: one factorisation on the face; for aggregative games one per agent.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from epszero._lazy import sp
from epszero._memory import remembered
from epszero._points import flat_of
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.facts import Aggregate, Unknown
from epszero.functions import Function
from epszero.oracles import PrimalDual
from epszero.problems.backward import is_part
from epszero.sets import Set
from epszero.sets.faces import TOUCHED, Face

NEARLY = 1e-6  # of its size: how far a shared constraint with a multiplier may be from equality; that enters x(m)
SINGULAR = 1e-12  # of the largest: a face on which H is flatter than this has no M


@dataclass(frozen=True, eq=False)
class AffinePiece:
    """Everything is affine in Δm = m − m̂: x(m) = x̂ + start − TΔm, margins + sensitivities Δm > 0."""

    T: FloatArray  # (n, d)
    start: FloatArray  # (n,): x(m̂) − x̂, of the size of ê
    margins: FloatArray  # (q,): slacks and multipliers at m̂
    sensitivities: FloatArray  # (q, d)
    blocks: "list[Block]"
    prices: FloatArray  # (g,): multipliers of shared constraints at x(m̂); none where none is shared
    price_slopes: FloatArray  # (g, d): how they move with m
    key: bytes  # which piece


def piece_of(case: Case, C: FloatArray) -> AffinePiece | Unknown:
    """The piece of x̂, or why it has none."""
    faces = _faces(case)
    if isinstance(faces, Unknown):
        return faces
    return _assembled(case, faces, C)


def may_have_pieces(case: Case) -> bool:
    """Whether the structure is right, before any value is looked at: polyhedral parts, affine B, one data set."""
    parts = jax.tree.leaves(case.problem.strategies.parts, is_leaf=is_part)
    polyhedral = all(isinstance(part, Set | Function) and not part.foreign and part.polyhedral for part in parts)
    facts, coupling = case.facts, case.problem.coupling
    if not polyhedral or (coupling is not None and (not coupling.affine or facts.jacobian is None)):
        return False
    if facts.jacobian is None and facts.aggregate is None:
        return False
    if facts.jacobian is not None and not facts.jacobian.monotone:
        return False
    if facts.jacobian is None and facts.aggregate is not None:
        strategies = jax.tree.leaves(case.x)
        if facts.aggregate.mu_kappa[0] < 0 or len(strategies) > 1 or np.ndim(strategies[0]) != 2:
            return False
    collapsed = case.collapsed(case.samples)
    return collapsed is not None and len(collapsed.features) == 1 and case.additive(collapsed)


class Block:
    """One point of one part: its entries and its face."""

    def __init__(self, entries: Any, face: Face) -> None:
        self.entries = entries
        self.face = face

    @cached_property
    def basis(self) -> FloatArray:
        """Z."""
        N = self.face.normals
        t = len(self.entries)
        return np.linalg.svd(N, full_matrices=True)[2][len(N) :].T if len(N) else np.eye(t)


def _faces(case: Case) -> list[Block] | Unknown:
    x, z = (tree.x if isinstance(tree, PrimalDual) else tree for tree in (case.point, case.element))
    parts = case.problem.strategies
    found: list[Block] = []
    start = 0
    for part, xs, zs in zip(
        jax.tree.leaves(parts.parts, is_leaf=is_part), *(_below(parts.parts, tree) for tree in (x, z)), strict=True
    ):
        for leaf, element in zip(jax.tree.leaves(xs), jax.tree.leaves(zs), strict=True):
            rows, normals = np.atleast_1d(leaf), np.atleast_1d(element)
            t = rows.shape[-1]
            members = _members(part, rows.shape[:-1])
            for k, (one, row, normal) in enumerate(
                zip(members, rows.reshape(-1, t), normals.reshape(-1, t), strict=True)
            ):
                face = one.face(row, normal)
                if face is None:
                    return Unknown(f"the face of {type(part).__name__} at x is not unique, or z is not normal there")
                found.append(Block(np.arange(start + k * t, start + (k + 1) * t), face))
            start += rows.size
    return found


def _below(parts: Any, tree: Any) -> list[Any]:
    return jax.tree.structure(parts, is_leaf=is_part).flatten_up_to(tree)


def _members(part: Any, batch: tuple[int, ...]) -> list[Any]:
    """The single set or function of each point."""
    own = part.batch_shape
    if not own:
        return [part] * int(np.prod(batch, dtype=int))

    def each() -> list[Any]:
        places = [index[len(batch) - len(own) :] for index in np.ndindex(batch)]
        return [part.member(tuple(i if n > 1 else 0 for i, n in zip(p, own, strict=True))) for p in places]

    return remembered(part, ("members", batch), each)


def _assembled(case: Case, blocks: list[Block], C: FloatArray) -> AffinePiece | Unknown:
    n = sum(len(block.entries) for block in blocks)
    mended = np.concatenate([np.broadcast_to(block.face.mended, len(block.entries)) for block in blocks])
    e, noise = case.empirical[:n] + mended, C[:n]
    coupling = case.problem.coupling
    if coupling is None:
        made = _Separate(case, blocks) if case.jacobian is None else _Whole(case, blocks, None)
    else:
        shared = _shared_face(case, n)
        if (shared[2][~shared[3]] > 0).any():
            return Unknown("a shared constraint has a multiplier, but is not met with equality")
        made = _Whole(case, blocks, shared)
    if made.flat:
        return Unknown("B is not strongly monotone on the face of x")
    T, Me = made.solved(noise), made.solved(e[:, None])[:, 0]
    shift = made.returned()
    A, slack, D, value = made.conditions()
    moved = shift - Me  # x(m̂) − x̂
    drift = -(made.times(moved[:, None])[:, 0] + e)  # of z − Qu, there: what the normals carry
    slopes = made.times(T) - noise  # of the same
    margins = np.concatenate([slack - A @ moved, value + D @ drift])
    sensitivities = np.concatenate([A @ T, D @ slopes])
    key = b"|".join(block.face.active for block in blocks) + made.key
    prices, price_slopes = made.prices(drift, slopes)
    return AffinePiece(T, moved, margins, sensitivities, blocks, prices, price_slopes, key)


def _shared_face(case: Case, n: int) -> tuple[FloatArray, FloatArray, FloatArray, Any]:
    """Gx ≤ b of the shared constraints: G, slacks, multipliers, and which of them are leant on."""
    coupling, point = case.problem.coupling, case.point
    assert coupling is not None
    assert isinstance(point, PrimalDual)
    rows = len(point.multipliers)
    G = np.stack([flat_of(coupling.pull(case.x, row)) for row in np.eye(rows)])[:, :n]
    slack = -np.asarray(coupling.value(case.x), dtype=np.float64)
    pulls = np.asarray(point.multipliers, dtype=np.float64)
    size = np.abs(G) @ np.abs(flat_of(case.x)) + np.abs(slack)
    leant = (pulls > 0) & (np.abs(slack) <= NEARLY * np.maximum(size, TOUCHED))
    return G, slack, pulls, leant


class _Whole:
    """Matrices over all entries."""

    def __init__(self, case: Case, blocks: list[Block], shared: Any) -> None:
        assert case.jacobian is not None
        self.H, self.blocks, self.shared = case.jacobian.jacobian, blocks, shared
        n = len(self.H)
        own = _stacked([b.face.normals for b in blocks], blocks, n).toarray()
        missed = np.concatenate([np.zeros(0), *(b.face.missed for b in blocks)])
        none = np.zeros((0, n)), np.zeros(0), np.zeros(0), np.zeros(0, bool)
        G, slack, _, leant = none if shared is None else shared
        self.N, self.missed = np.vstack([own, G[leant]]), np.concatenate([missed, slack[leant]])
        self.own, self.key = len(own), leant.tobytes()
        self.Z = _block_basis(blocks, n) if shared is None else _null(self.N)
        self.Q = np.concatenate([np.broadcast_to(b.face.curvature, len(b.entries)) for b in blocks])

    @cached_property
    def inner(self) -> FloatArray:
        """Zᵀ(H + Q)Z."""
        return self.Z.T @ (self.H @ self.Z + self.Q[:, None] * self.Z)

    @cached_property
    def flat(self) -> bool:
        """Whether H is singular on the face, or the normals are not independent."""
        if len(self.N) + self.Z.shape[1] != len(self.H):
            return True
        if not self.Z.shape[1]:
            return False
        least = np.linalg.eigvalsh((self.inner + self.inner.T) / 2)
        return not least[0] > SINGULAR * max(float(least[-1]), 1e-300)

    def solved(self, R: FloatArray) -> FloatArray:
        """MR."""
        return self.Z @ np.linalg.solve(self.inner, self.Z.T @ R) if self.Z.shape[1] else np.zeros_like(R)

    def times(self, R: FloatArray) -> FloatArray:
        """(H + Q)R."""
        return self.H @ R + self.Q[:, None] * R

    def returned(self) -> FloatArray:
        """(I − M(H + Q))N⁺β."""
        if not self.missed.any():
            return np.zeros(len(self.H))
        back = np.asarray(np.linalg.lstsq(self.N, self.missed)[0], dtype=np.float64)
        return back - self.solved(self.times(back[:, None]))[:, 0]

    @cached_property
    def _pulls(self) -> FloatArray:
        """How multipliers of all normals follow from z."""
        return np.linalg.pinv(self.N.T).astype(np.float64)

    def conditions(self) -> tuple[Any, FloatArray, Any, FloatArray]:
        """Rows and slacks, functionals of z and their values."""
        n = len(self.H)
        rows, slack, duals, value = _conditions(self.blocks, n)
        if self.shared is None:
            return rows, slack, duals, value
        G, room, pulls, leant = self.shared
        prices = self._pulls[self.own :]
        own = duals.toarray() - (duals @ G[leant].T) @ prices  # of the sets' own part of z, which is z − Gᵀλ
        return (
            sp.vstack([rows, sp.csr_matrix(G[~leant])]).tocsr(),
            np.concatenate([slack, room[~leant]]),
            sp.vstack([sp.csr_matrix(own), sp.csr_matrix(prices)]).tocsr(),
            np.concatenate([value, pulls[leant]]),
        )

    def prices(self, drift: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The multipliers of shared constraints at x(m̂), and how they move with m."""
        if self.shared is None:
            return np.zeros(0), np.zeros((0, slopes.shape[1]))
        _, _, pulls, leant = self.shared
        now, found = pulls.copy(), np.zeros((len(leant), slopes.shape[1]))
        now[leant] += self._pulls[self.own :] @ drift
        found[leant] = self._pulls[self.own :] @ slopes
        return now, found


class _Separate:
    """Aggregative games: blocks of agents, and one small system for the mean."""

    key = b""

    def __init__(self, case: Case, blocks: list[Block]) -> None:
        whole = case.facts.aggregate
        assert whole is not None
        self.agents, self.blocks = whole, blocks
        self.t = len(blocks[0].entries)
        own = _matrices(whole)[0]
        self.M = np.zeros((len(blocks), self.t, self.t))
        self.flat = False
        for i, block in enumerate(blocks):
            Z, Q = block.basis, np.broadcast_to(block.face.curvature, self.t)
            if not Z.shape[1]:
                continue
            inner = Z.T @ (own[i] @ Z + Q[:, None] * Z)
            least = np.linalg.eigvalsh((inner + inner.T) / 2)
            self.flat = self.flat or not least[0] > SINGULAR * max(float(least[-1]), 1e-300)
            self.M[i] = Z @ np.linalg.solve(inner, Z.T)
        self.Q = np.concatenate([np.broadcast_to(block.face.curvature, self.t) for block in blocks])
        self.mean = np.eye(self.t) + np.mean(self.M @ _matrices(whole)[1], axis=0)

    def solved(self, R: FloatArray) -> FloatArray:
        """MR: u_i = M_i(R_i − E_i m), m the mean of the u_i."""
        rows = R.reshape(len(self.blocks), self.t, -1)
        alone = self.M @ rows
        m = np.linalg.solve(self.mean, np.mean(alone, axis=0))
        return (alone - self.M @ (_matrices(self.agents)[1] @ m)).reshape(R.shape)

    def times(self, R: FloatArray) -> FloatArray:
        """(H + Q)R."""
        own, average = _matrices(self.agents)
        rows = R.reshape(len(self.blocks), self.t, -1)
        return (own @ rows + average @ np.mean(rows, axis=0)).reshape(R.shape) + self.Q[:, None] * R

    def returned(self) -> FloatArray:
        """(I − M(H + Q))N⁺β."""
        n = len(self.blocks) * self.t
        back = np.zeros(n)
        for block in self.blocks:
            if block.face.missed.any():
                back[block.entries] = np.linalg.lstsq(block.face.normals, block.face.missed)[0]
        if not back.any():
            return back
        return back - self.solved(self.times(back[:, None]))[:, 0]

    def conditions(self) -> tuple[Any, FloatArray, Any, FloatArray]:
        """Rows and slacks, functionals of z and their values."""
        return _conditions(self.blocks, len(self.blocks) * self.t)

    def prices(self, drift: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """None are shared."""
        del drift
        return np.zeros(0), np.zeros((0, slopes.shape[1]))


def _matrices(whole: Aggregate) -> tuple[FloatArray, FloatArray]:
    """D_i and E_i as matrices."""
    if not whole.diagonal:
        return whole.own, whole.average
    eye = np.eye(whole.own.shape[1])
    return whole.own[:, :, None] * eye, whole.average[:, :, None] * eye


def _conditions(blocks: list[Block], n: int) -> tuple[Any, FloatArray, Any, FloatArray]:
    """Rows and slacks of all blocks, functionals of z and their values."""
    return (
        _stacked([b.face.rows for b in blocks], blocks, n),
        np.concatenate([np.zeros(0), *(b.face.slacks for b in blocks)]),
        _stacked([b.face.duals for b in blocks], blocks, n),
        np.concatenate([np.zeros(0), *(b.face.values for b in blocks)]),
    )


def _stacked(matrices: list[FloatArray], blocks: list[Block], n: int) -> Any:
    """Rows of each block, one after another, in the columns of its entries; sparse."""
    rows, columns, data, count = [np.zeros(0, int)], [np.zeros(0, int)], [np.zeros(0)], 0
    for matrix, block in zip(matrices, blocks, strict=True):
        i, j = np.nonzero(matrix)
        rows.append(i + count)
        columns.append(np.asarray(block.entries)[j])
        data.append(matrix[i, j])
        count += len(matrix)
    places = np.concatenate(rows), np.concatenate(columns)
    return sp.csr_matrix((np.concatenate(data), places), shape=(count, n))


def _block_basis(blocks: list[Block], n: int) -> FloatArray:
    """Z of all blocks together."""
    Z = np.zeros((n, sum(block.basis.shape[1] for block in blocks)))
    column = 0
    for block in blocks:
        k = block.basis.shape[1]
        Z[np.ix_(block.entries, np.arange(column, column + k))] = block.basis
        column += k
    return Z


def _null(N: FloatArray) -> FloatArray:
    """An orthonormal basis of {u : Nu = 0}."""
    _, s, vt = np.linalg.svd(N, full_matrices=True)
    rank = int(np.sum(s > 1e-10 * s.max(initial=0.0)))
    return vt[rank:].T
