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

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._lazy import sp
from epszero._memory import key_of, remembered
from epszero._points import flat_of
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.certificates.faces import Block, faces_of
from epszero.facts import Aggregate, Unknown
from epszero.functions import Function
from epszero.oracles import PrimalDual
from epszero.problems.backward import is_part
from epszero.sets import Set
from epszero.sets.faces import TOUCHED

NEARLY = 1e-6  # of its size: how far a shared constraint with a multiplier may be from equality; that enters x(m)
SINGULAR = 1e-12  # of the largest: a face on which H is flatter than this has no M


@dataclass(frozen=True, eq=False)
class AffinePiece:
    """Everything is affine in Δm = m − m̂: x(m) = x̂ + start − TΔm, margins + sensitivities Δm > 0."""

    T: FloatArray  # (n, d)
    start: FloatArray  # (n,): x(m̂) − x̂, of the size of ê
    margins: FloatArray  # (q,): slacks and multipliers at m̂
    sensitivities: FloatArray  # (q, d)
    blocks: list[Block]
    prices: FloatArray  # (g,): multipliers of shared constraints at x(m̂); none where none is shared
    price_slopes: FloatArray  # (g, d): how they move with m
    key: Hashable  # which piece, of which noise

    @property
    def is_vertex(self) -> bool:
        """Whether it is one point, which no noise moves."""
        return not any(block.basis.shape[1] for block in self.blocks)


def piece_of(case: Case, C: FloatArray) -> AffinePiece | Unknown:
    """The piece of x̂, or why it has none."""
    faces = faces_of(case)
    if isinstance(faces, Unknown):
        return faces
    return _assembled(case, faces, C)


class Local(NamedTuple):
    """B̂ as if affine about x̂: x moves by −Mv where B moves by v."""

    M: FloatArray
    start: FloatArray  # x̂ moves by that where ê = 0


def linearised(case: Case, J: FloatArray) -> Local | Unknown:
    """About x̂ on its face, with the Jacobian J of B there; for guesses only: nothing says how far that holds."""
    faces = faces_of(case)
    if isinstance(faces, Unknown):
        return faces
    shared = None if case.problem.coupling is None else shared_face(case, len(J))
    maps = _Whole(J, faces, shared, np.eye(len(J)))
    if maps.flat:
        return Unknown("B̂ is not strongly monotone on the face of x")
    return Local(maps.T, -maps.T @ case.empirical[: len(J)])


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


def _assembled(case: Case, blocks: list[Block], C: FloatArray) -> AffinePiece | Unknown:
    n = sum(len(block.entries) for block in blocks)
    e = case.empirical[:n] + spread([block.face.mended for block in blocks], blocks)
    shared = None if case.problem.coupling is None else shared_face(case, n)
    if shared is not None and (shared.pulls[~shared.leant] > 0).any():
        return Unknown("a shared constraint has a multiplier, but is not met with equality")
    key = *(block.face.active for block in blocks), b"" if shared is None else shared.leant.tobytes(), key_of(C)
    maps = remembered(case.problem, ("piece", case.facts.shapes, key), lambda: _maps(case, blocks, shared, C[:n]))
    if maps.flat:
        return Unknown("B is not strongly monotone on the face of x")
    missed, slacks, values = (
        np.concatenate([np.zeros(0), *(getattr(block.face, name) for block in blocks)])
        for name in ("missed", "slacks", "values")
    )
    if shared is not None:
        missed = np.concatenate([missed, shared.slacks[shared.leant]])
        slacks = np.concatenate([slacks, shared.slacks[~shared.leant]])
        values = np.concatenate([values, shared.pulls[shared.leant]])
    moved = maps.returned(missed) - maps.solved(e[:, None])[:, 0]  # x(m̂) − x̂
    drift = -(maps.times(moved[:, None])[:, 0] + e)  # of z − Qu, there: what the normals carry
    margins = np.concatenate([slacks - maps.rows @ moved, values + maps.duals @ drift])
    prices = np.zeros(0) if shared is None else shared.pulls + maps.prices @ drift
    return AffinePiece(maps.T, moved, margins, maps.sensitivities, blocks, prices, maps.prices @ maps.slopes, key)


class SharedFace(NamedTuple):
    """Gx ≤ b of the shared constraints."""

    G: FloatArray
    slacks: FloatArray
    pulls: FloatArray  # multipliers
    leant: Any  # which of them are leant on


def _maps(case: Case, blocks: list[Block], shared: SharedFace | None, noise: FloatArray) -> "_Maps":
    """What depends on the piece alone."""
    if case.jacobian is None:
        assert case.facts.aggregate is not None
        return _Separate(case.facts.aggregate, blocks, noise)
    return _Whole(case.jacobian.jacobian, blocks, shared, noise)


def shared_face(case: Case, n: int) -> SharedFace:
    """Of shared affine constraints, at x̂ and its multipliers."""
    coupling, point = case.problem.coupling, case.point
    assert coupling is not None
    assert isinstance(point, PrimalDual)
    rows = len(point.multipliers)
    G = np.stack([flat_of(coupling.pull(case.x, row)) for row in np.eye(rows)])[:, :n]
    slack = -np.asarray(coupling.value(case.x), dtype=np.float64)
    pulls = np.asarray(point.multipliers, dtype=np.float64)
    size = np.abs(G) @ np.abs(flat_of(case.x)) + np.abs(slack)
    leant = (pulls > 0) & (np.abs(slack) <= NEARLY * np.maximum(size, TOUCHED))
    return SharedFace(G, slack, pulls, leant)


class _Maps(ABC):
    """The linear algebra of a piece."""

    noise: FloatArray  # C
    rows: Any  # a of all slacks, sparse
    duals: Any  # functionals of z, sparse
    prices: FloatArray  # how multipliers of shared constraints follow from z, one row each
    flat: bool  # H is singular on the face, or normals are not independent

    @abstractmethod
    def solved(self, R: FloatArray) -> FloatArray:
        """MR."""

    @abstractmethod
    def times(self, R: FloatArray) -> FloatArray:
        """(H + Q)R."""

    @abstractmethod
    def returned(self, missed: FloatArray) -> FloatArray:
        """(I − M(H + Q))N⁺β."""

    @cached_property
    def T(self) -> FloatArray:
        """MC."""
        return self.solved(self.noise)

    @cached_property
    def slopes(self) -> FloatArray:
        """Of what the normals carry of z, in m: (H + Q)T − C."""
        return self.times(self.T) - self.noise

    @cached_property
    def sensitivities(self) -> FloatArray:
        """Of slacks and values in m."""
        return np.concatenate([self.rows @ self.T, self.duals @ self.slopes])


class _Whole(_Maps):
    """Matrices over all entries."""

    def __init__(self, H: FloatArray, blocks: list[Block], shared: SharedFace | None, noise: FloatArray) -> None:
        self.H, self.noise = H, noise
        n = len(H)
        own = stacked([b.face.normals for b in blocks], blocks, n).toarray()
        G = np.zeros((0, n)) if shared is None else shared.G[shared.leant]
        self.N = np.vstack([own, G])
        self.Z = _block_basis(blocks, n) if shared is None else null_space(self.N)
        self.Q = spread([b.face.curvature for b in blocks], blocks)
        self.inner = self.Z.T @ (H @ self.Z + self.Q[:, None] * self.Z)
        self.flat = len(self.N) + self.Z.shape[1] != n or not _regular(self.inner)
        self.rows, self.duals = stacked_conditions(blocks, n)
        self.prices = np.zeros((0, n))
        if shared is not None:
            pulls = np.linalg.pinv(self.N.T)[len(own) :]
            theirs = self.duals.toarray() - (self.duals @ G.T) @ pulls  # of the sets' own part of z, z − Gᵀλ
            self.rows = sp.vstack([self.rows, sp.csr_matrix(shared.G[~shared.leant])]).tocsr()
            self.duals = sp.vstack([sp.csr_matrix(theirs), sp.csr_matrix(pulls)]).tocsr()
            self.prices = np.zeros((len(shared.leant), n))
            self.prices[shared.leant] = pulls

    def solved(self, R: FloatArray) -> FloatArray:
        if not self.Z.shape[1]:
            return np.zeros_like(R)
        return self.Z @ self._inverse(self.Z.T @ R)

    @cached_property
    def _inverse(self) -> Any:
        from scipy.linalg import lu_factor, lu_solve  # noqa: PLC0415  (slow to load)

        factors: Any = lu_factor(self.inner)
        return lambda right: lu_solve(factors, right)

    def times(self, R: FloatArray) -> FloatArray:
        return self.H @ R + self.Q[:, None] * R

    def returned(self, missed: FloatArray) -> FloatArray:
        if not missed.any():
            return np.zeros(len(self.H))
        back = self._pinv @ missed
        return back - self.solved(self.times(back[:, None]))[:, 0]

    @cached_property
    def _pinv(self) -> FloatArray:
        return np.linalg.pinv(self.N).astype(np.float64)


def _regular(inner: FloatArray) -> bool:
    """Whether H is strongly monotone on the face."""
    if not len(inner):
        return True
    values = np.linalg.eigvalsh((inner + inner.T) / 2)
    return bool(values[0] > SINGULAR * max(float(values[-1]), 1e-300))


class _Separate(_Maps):
    """Aggregative games: blocks of agents, and one small system for the mean."""

    def __init__(self, agents: Aggregate, blocks: list[Block], noise: FloatArray) -> None:
        self.own, self.average = _matrices(agents)
        self.noise, self.t = noise, len(blocks[0].entries)
        self.normals, self.entries = [b.face.normals for b in blocks], [b.entries for b in blocks]
        n = len(blocks) * self.t
        self.Q = spread([b.face.curvature for b in blocks], blocks)
        self.M = np.zeros((len(blocks), self.t, self.t))
        self.flat = False
        for i, block in enumerate(blocks):
            Z, Q = block.basis, np.broadcast_to(block.face.curvature, self.t)
            inner = Z.T @ (self.own[i] @ Z + Q[:, None] * Z)
            if not _regular(inner):
                self.flat = True
                break
            self.M[i] = Z @ np.linalg.solve(inner, Z.T)
        self.mean = np.eye(self.t) + np.mean(self.M @ self.average, axis=0)
        self.rows, self.duals = stacked_conditions(blocks, n)
        self.prices = np.zeros((0, n))

    def solved(self, R: FloatArray) -> FloatArray:
        """u_i = M_i(R_i − E_i m), m the mean of the u_i."""
        rows = R.reshape(len(self.M), self.t, -1)
        alone = self.M @ rows
        m = np.linalg.solve(self.mean, np.mean(alone, axis=0))
        return (alone - self.M @ (self.average @ m)).reshape(R.shape)

    def times(self, R: FloatArray) -> FloatArray:
        rows = R.reshape(len(self.M), self.t, -1)
        return (self.own @ rows + self.average @ np.mean(rows, axis=0)).reshape(R.shape) + self.Q[:, None] * R

    def returned(self, missed: FloatArray) -> FloatArray:
        back, place = np.zeros(len(self.Q)), 0
        for normals, entries in zip(self.normals, self.entries, strict=True):
            own = missed[place : place + len(normals)]
            if own.any():
                back[entries] = np.linalg.lstsq(normals, own)[0]
            place += len(normals)
        if not back.any():
            return back
        return back - self.solved(self.times(back[:, None]))[:, 0]


def _matrices(whole: Aggregate) -> tuple[FloatArray, FloatArray]:
    """D_i and E_i as matrices."""
    if not whole.diagonal:
        return whole.own, whole.average
    eye = np.eye(whole.own.shape[1])
    return whole.own[:, :, None] * eye, whole.average[:, :, None] * eye


def spread(values: "list[FloatArray | float]", blocks: list[Block]) -> FloatArray:
    """A number or an array of each block, one after another, entry by entry."""
    sizes = [len(block.entries) for block in blocks]
    return np.concatenate(
        [one if np.ndim(one) else np.full(size, one) for one, size in zip(values, sizes, strict=True)]
    )


def stacked_conditions(blocks: list[Block], n: int) -> tuple[Any, Any]:
    """Rows of all blocks, and functionals of z."""
    return stacked([b.face.rows for b in blocks], blocks, n), stacked([b.face.duals for b in blocks], blocks, n)


def stacked(matrices: list[FloatArray], blocks: list[Block], n: int) -> Any:
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


def null_space(N: FloatArray) -> FloatArray:
    """An orthonormal basis of {u : Nu = 0}."""
    _, s, vt = np.linalg.svd(N, full_matrices=True)
    rank = int(np.sum(s > 1e-10 * s.max(initial=0.0)))
    return vt[rank:].T
