"""`Graph`: the pair (x, z) that a certificate may lean on, from the pair that a run ended with.

Part by part, z ∈ A(x) exactly when J(x + s·z) = x, J = (Id + sA)⁻¹, whatever s > 0. So:
- where J is good to rounding (a closed form; or a resolvent, which is taken at its word), x′ = J(x + s·z) and
  z′ = (x + s·z − x′)/s are of the graph of A to rounding, and z′ − z and x′ − x say how far the pair was from it;
- where a solver computes J, the set says which z′ near z is in its η-normal cone at x, and whether x is shown to be of
  the set (`Set.normal_near`);
- elsewhere the Fenchel gap stands for η, and it is an estimate.
s is (1 + ‖x‖)/(1 + ‖z‖), so that rounding takes as little from x as from z.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat_of
from epszero._types import FloatArray, PyTree
from epszero.functions import Function, Indicator
from epszero.problems.backward import Backward
from epszero.sets import Set

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # relative to 1 + ‖x‖: the pair is of the graph as it is


class Graph(NamedTuple):
    """A pair with ⟨z, x − y⟩ ≥ g(x) − g(y) − η for all y, or z ∈ A(x) where η = 0."""

    x: PyTree
    z: PyTree
    eta: float
    moved: float  # ‖x − x of the run‖
    doubt: str  # why this is an estimate; empty where it is shown, to rounding


class _Piece(NamedTuple):
    """The same of one part of A."""

    x: PyTree
    z: PyTree
    eta: float = 0.0
    doubt: str = ""


def graph_near(A: Backward, x: PyTree, z: PyTree) -> Graph:
    """The pair of the graph of A that is nearest, as far as one projection finds it."""
    pieces = A.each(lambda *given: _Held(_piece(*given)), x, z)
    held = [one.piece for one in jax.tree.leaves(pieces, is_leaf=_is_held)]
    found: PyTree = jax.tree.map(lambda one: one.piece.x, pieces, is_leaf=_is_held)
    element: PyTree = jax.tree.map(lambda one: one.piece.z, pieces, is_leaf=_is_held)
    doubt = next((piece.doubt for piece in held if piece.doubt), "")
    eta, moved = sum(piece.eta for piece in held), float(np.linalg.norm(flat_of(found) - flat_of(x)))
    return Graph(found, element, eta, moved, doubt)


class _Held:
    """Holds a piece where JAX would look into a tuple."""

    def __init__(self, piece: _Piece) -> None:
        self.piece = piece


def _is_held(leaf: Any) -> bool:
    return isinstance(leaf, _Held)


def _piece(part: Any, x: PyTree, z: PyTree) -> _Piece:
    inner = part.set if isinstance(part, Indicator) else part
    if isinstance(inner, Set) and not inner.exact:
        return _by_normals(inner, np.asarray(x), np.asarray(z))
    if isinstance(inner, Function) and not inner.exact:
        gap = float(np.sum(inner(np.atleast_1d(x)) + inner.conjugate(np.atleast_1d(z))) - np.sum(x * z))
        why = f"{type(inner).__name__} is not computed to rounding, or does not say so"
        return _Piece(x, z, max(gap, 0.0), why)
    return _by_resolvent(part, x, z)


def _by_resolvent(part: Any, x: PyTree, z: PyTree) -> _Piece:
    size = 1 + float(np.linalg.norm(flat_of(x)))
    step = size / (1 + float(np.linalg.norm(flat_of(z))))
    v = jax.tree.map(lambda one, other: one + step * other, x, z)
    if isinstance(part, Set | Function):
        rows = np.atleast_1d(v)
        near: PyTree = np.reshape(part.project(rows) if isinstance(part, Set) else part.prox(rows, step), np.shape(v))
    else:
        near = jax.tree.map(np.asarray, part.resolvent(v, jnp.asarray(step)))
    if np.linalg.norm(flat_of(near) - flat_of(x)) <= ROUNDING * size:
        return _Piece(x, z)
    return _Piece(near, jax.tree.map(lambda one, other: (one - other) / step, v, near))


def _by_normals(part: Set, x: FloatArray, z: FloatArray) -> _Piece:
    """Row by row, as a solver works."""
    rows, directions = np.atleast_1d(x), np.atleast_1d(z)
    lead = rows.shape[: -part.rank]
    found, eta, doubt = np.empty(rows.shape), 0.0, ""
    for place in np.ndindex(*lead):
        one = part.member(place[len(lead) - len(part.batch_shape) :]) if part.batch_shape else part
        normal = one.normal_near(rows[place], directions[place])
        found[place], eta, doubt = normal.z, eta + normal.eta, doubt or normal.doubt
    return _Piece(x, found.reshape(np.shape(z)), eta, doubt)
