"""Linear systems of Newton's finish, (I − P + PΓH) d = −r: dense, by agents, or without a matrix.

P is the derivative of J_{ΓA} at y = x − ΓB̂(x), H that of B̂ at x.
- `Dense`: both written out, one LU factorisation, O(n³), for up to MOST_DENSE entries.
- `ByAgents`: in an aggregative game H_ij = D_i δ_ij + E_i/N and P is block diagonal, so with m the mean of the d_i
      (I − P_i + P_iΓ_iD_i) d_i = −r_i − P_iΓ_iE_i m
  leaves one system for m, as large as one strategy: O(N t³) for strategies with t entries. Derivatives along "all
  agents alike" give D_i + E_i, along ±1 agent by agent, which moves no mean, ±D_i.
- `ByRows`: the same without blocks, for games of any size, where D_i is diagonal and P_i is but for one direction
  (solve/by_rows.py); one of the others where they are not.
- `Krylov`: GMRES on products with the matrix, for anything larger, with as many vectors as KEPT numbers allow; a step
  that leaves half of −r is none. Where that is too few to be of use there is no system: the method goes on alone.
A singular matrix (solutions that are not unique) is made regular by H + εI, the step of a proximal-point method.
"""

import functools
from abc import ABC, abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import entries, flat_of, norm, subtract
from epszero._trace.programs import forwards
from epszero._types import Array, FloatArray, PyTree
from epszero.methods.steps import times
from epszero.oracles import Average
from epszero.problems.backward import Backward
from epszero.solve.by_rows import rows_of, signs_of, step_by_rows

MOST_DENSE = 2000  # entries of x
MOST_BY_AGENTS = 20_000_000  # numbers of all blocks of one kind together
FROM_BY_ROWS = 200_000  # of these, from which blocks are avoided where they can be
RESTART, TRIPS = 60, 5  # of GMRES
KEPT = 100_000_000  # numbers that its vectors may have together: 0.8 GB
LEAST = 8  # vectors
TINY = 1e-12  # of the largest slope: added to H where the matrix is singular
SMALL = 1e-8  # added to ΓD, where an agent's block is: what is eliminated costs digits
LEFT = 0.5  # of the right-hand side


class System(ABC):
    """Solves for one Newton step after another of one run."""

    @abstractmethod
    def step(self, A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
        """d, flat; None where there is none."""


def system_for(x: PyTree, rows: bool, affine: bool) -> System | None:
    """The way that suits points like x, if one does. `rows`: one row per agent, who feel each other by their mean."""
    n = entries(x)
    if rows:
        agents = len(jax.tree.leaves(x)[0])
        blocks = n * (n // agents)
        if agents > 8 and blocks <= FROM_BY_ROWS:
            return ByAgents()
        if agents > 8:
            return ByRows(ByAgents() if blocks <= MOST_BY_AGENTS else _krylov_for(n))
    return Dense(affine) if n <= MOST_DENSE else _krylov_for(n)


def _krylov_for(n: int) -> "Krylov | None":
    vectors = min(RESTART, KEPT // n)
    return Krylov(vectors) if vectors >= LEAST else None


class Dense(System):
    """Matrices written out; H only once where B̂ is affine."""

    def __init__(self, affine: bool, known: FloatArray | None = None) -> None:
        self.affine = affine
        self.known = known  # H, where it is the same everywhere

    def slopes(self, B: Average, x: PyTree) -> FloatArray:
        """H at x."""
        if self.known is not None:
            return self.known
        H = np.asarray(_slopes(B, x))
        self.known = H if self.affine else None
        return H

    def step(self, A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
        H, P = self.slopes(B, x), _blocks(A, B, x, Gamma)
        if not (np.isfinite(P).all() and np.isfinite(H).all()):
            return None
        slopes, right = _steps(Gamma, x)[:, None] * H, -flat_of(r)
        d = _solved_for(P, slopes, right)
        if d is None:
            more = TINY * max(1.0, float(np.abs(slopes).max()))
            d = _solved_for(P, slopes + more * np.eye(len(P)), right)
        return d


def _steps(Gamma: PyTree, x: PyTree) -> FloatArray:
    """Γ, one number for each entry of x; without JAX where it is one for all."""
    sizes = jax.tree.leaves(Gamma)
    if len(sizes) == 1 and np.ndim(sizes[0]) == 0:
        return np.full(entries(x), float(sizes[0]))
    return flat_of(times(Gamma, jax.tree.map(np.ones_like, x)))


def _solved_for(P: FloatArray, slopes: FloatArray, right: FloatArray) -> FloatArray | None:
    """(I − P + PΓH) d = right; where P is diagonal, entries on a bound, P_jj = 0, are known beforehand."""
    p = np.diagonal(P)
    if np.count_nonzero(P) != np.count_nonzero(p):
        return _solved(P @ slopes + np.eye(len(P)) - P, right)
    free = np.flatnonzero(p)
    d, inside = right.copy(), p[free, None]
    fixed = right * (p == 0)
    M = inside * slopes[np.ix_(free, free)]
    M[np.diag_indices(len(free))] += 1 - p[free]
    found = _solved(M, right[free] - p[free] * (slopes[free] @ fixed))
    if found is None:
        return None
    d[free] = found
    return d


def _solved(M: FloatArray, right: FloatArray) -> FloatArray | None:
    try:
        d: FloatArray = np.linalg.solve(M, right).astype(np.float64)
    except np.linalg.LinAlgError:
        return None
    size = float(np.abs(M).max(initial=0.0)) * float(np.abs(d).max(initial=0.0))
    off, most = (float(np.abs(v).max(initial=0.0)) for v in (M @ d - right, right))
    exact = np.isfinite(d).all() and off <= 1e-8 * (size + most)
    return d if exact else None


@jax.jit
def _slopes(B: Average, x: PyTree) -> Array:
    """H."""
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]))(flat)


def _blocks(A: Backward, B: Average, x: PyTree, Gamma: PyTree) -> FloatArray:
    """P, from its blocks: no part of A mixes points."""
    sizes = [leaf for leaf in jax.tree.leaves(A.each(_point_size, x))]
    columns = np.asarray(_columns(A, B, x, Gamma, sizes=tuple(sizes)))
    counts = [np.size(leaf) for leaf in jax.tree.leaves(x)]
    size = np.repeat(sizes, counts)  # of the point that an entry belongs to
    within = np.concatenate([np.arange(count) % own for own, count in zip(sizes, counts, strict=True)])
    n = len(size)
    P = np.zeros((n, n))
    k, rows = np.nonzero(np.arange(len(columns))[:, None] < size)
    P[rows, rows - within[rows] + k] = columns[k, rows]
    return P


def _point_size(part: Any, leaf: Any) -> int:
    """Entries of one point, of which the leaf may hold many."""
    rank = getattr(part, "rank", np.ndim(leaf) - 1)  # blocks that a run stacked (solve/packing.py) have one point a row
    return int(np.prod(np.shape(leaf)[np.ndim(leaf) - rank :])) if np.ndim(leaf) >= rank else 1


@functools.partial(jax.jit, static_argnames="sizes")
def _columns(A: Backward, B: Average, x: PyTree, Gamma: PyTree, sizes: tuple[int, ...]) -> Array:
    """Derivatives of J_{ΓA} at y where entry k of every point moves, one row for each k."""
    y = subtract(x, times(Gamma, B(x)))
    leaves, structure = jax.tree.flatten(y)

    def column(k: Array) -> Array:
        moves = [
            jnp.reshape(jnp.arange(jnp.size(leaf)) % own == k, jnp.shape(leaf)).astype(leaf.dtype)
            for leaf, own in zip(leaves, sizes, strict=True)
        ]
        moved = jax.jvp(lambda v: A.resolvent(v, Gamma), (y,), (structure.unflatten(moves),))[1]
        return ravel_pytree(moved)[0]

    return jax.vmap(column)(jnp.arange(max(sizes)))


class ByAgents(System):
    """Blocks of agents, and one small system for the mean."""

    def step(self, A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
        for more in (0.0, SMALL):
            d = np.asarray(_by_agents(A, B, x, Gamma, r, np.asarray(more)))
            if np.isfinite(d).all():
                return d
        return None


class ByRows(System):
    """Agents by their rows, without blocks, where these are what that takes; else another way, from then on."""

    def __init__(self, other: System | None) -> None:
        self.other = other
        self.fits = True

    def step(self, A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
        d = step_by_rows(A, B, x, Gamma, r) if self.fits else None
        if d is None and self.other is not None:
            self.fits = False
            return self.other.step(A, B, x, Gamma, r)
        return d


@jax.jit
def _by_agents(A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree, more: Array) -> Array:
    agents, own, rows, nested = rows_of(x)

    def forward(v: PyTree) -> PyTree:
        return times(Gamma, B(v))

    def along(function: Any, at: PyTree, factors: Array) -> Array:
        """Columns of the blocks: derivatives where every agent moves one entry, by its factor; (agents, own, own)."""

        def column(entry: Array) -> Array:
            move = nested(factors[:, None] * entry[None, :])
            return rows(jax.jvp(function, (at,), (move,))[1])

        return jnp.moveaxis(jax.vmap(column)(jnp.eye(own)), 0, -1)

    alike = jnp.ones(agents)
    signs = signs_of(agents)
    y = subtract(x, forward(x))
    P = along(lambda v: A.resolvent(v, Gamma), y, alike)
    D = along(forwards(forward), x, jnp.asarray(signs)) / signs[:, None, None]
    E = along(forwards(forward), x, alike) - D
    M = jnp.eye(own) - P + P @ (D + more * jnp.eye(own))
    right = jnp.concatenate([-rows(r)[:, :, None], -(P @ E)], axis=2)
    answers = jnp.linalg.solve(M, right)
    mean = jnp.mean(answers, axis=0)
    m = jnp.linalg.solve(jnp.eye(own) - mean[:, 1:], mean[:, 0])
    d = answers[:, :, 0] + answers[:, :, 1:] @ m
    return ravel_pytree(nested(d))[0]


class Krylov(System):
    """GMRES."""

    def __init__(self, vectors: int = RESTART) -> None:
        self.vectors = vectors

    def step(self, A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree) -> FloatArray | None:
        d, left = _krylov(A, B, x, Gamma, r, restart=self.vectors)
        return flat_of(d) if float(left) <= LEFT else None


@functools.partial(jax.jit, static_argnames="restart")
def _krylov(A: Backward, B: Average, x: PyTree, Gamma: PyTree, r: PyTree, restart: int) -> tuple[PyTree, Array]:
    """d, and what it leaves of the right-hand side, relatively."""

    def natural(x: PyTree) -> PyTree:
        return subtract(x, A.resolvent(subtract(x, times(Gamma, forwards(B)(x))), Gamma))

    slope = jax.linearize(natural, x)[1]
    right = jax.tree.map(jnp.negative, r)
    d = jax.scipy.sparse.linalg.gmres(slope, right, tol=1e-10, restart=restart, maxiter=TRIPS)[0]
    return d, norm(subtract(slope(d), right)) / norm(right)
