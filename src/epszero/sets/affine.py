"""{x : A x = b}, with A of any rank as long as b is in its range.

At construction: rows scaled to length 1, one SVD, hence an orthonormal basis Q of the row space and the level Qx of
every solution (rows beyond the rank are zero, so that a batch may mix ranks); O(m n min(m, n)).
Projection v − Qᵀ(Qv − level), O(rank·n), twice so that the rounding of a far v goes. Support ⟨direction, Qᵀlevel⟩ for
directions in the row space (to rounding), else ∞. Diameter exact: 0 when A has full column rank, else ∞.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._shaped import dot, norm
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set, rounding
from epszero.sets._parameters import Matrix, broadcast
from epszero.sets._parameters import matrix as checked_matrix
from epszero.sets.conic import ConicForm


class AffineSubspace(Set):
    """Solutions of linear equations. A (…, m, n) and b (…, m) may be batches; A may be sparse (it is unpacked)."""

    formula = True
    vectors = ("right", "level")
    matrices = ("matrix", "basis")
    matrix: FloatArray  # A
    right: FloatArray  # b
    basis: FloatArray  # Q (…, k, n), orthonormal rows, zero beyond the rank
    level: FloatArray  # Q x, the same for every solution x

    @known_arguments
    def __init__(self, A: Matrix, b: Real) -> None:
        self.matrix = checked_matrix("A", A)
        self.right = np.atleast_1d(real_array("b", b))
        rows, entries = self.matrix.shape[-2], self.right.shape[-1]
        if rows != entries:
            refuse("A, b", f"A has {rows} rows, but b has {entries} entries", "Give b one entry per row")
        broadcast(A=self.matrix.shape[:-2], b=self.right.shape[:-1])
        self.basis, self.level = _factorised(self.matrix, self.right)
        _refuse_inconsistent(self)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return self.matrix.shape[-1:]

    def _project(self, v: Array) -> Array:
        for _ in range(2):
            v = v - self._lift(self._coordinates(v) - self.level)
        return v

    def _support(self, direction: Array) -> Array:
        inside = self._coordinates(direction)
        astray = norm(direction - self._lift(inside)) > rounding(direction) * norm(direction)
        return jnp.where(astray, jnp.inf, dot(inside, self.level))

    def _diameter(self) -> Array:
        rank = jnp.sum(jnp.any(self.basis != 0, axis=-1), axis=-1)
        return jnp.broadcast_to(jnp.where(rank == self.matrix.shape[-1], 0.0, jnp.inf), self.batch_shape)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.equalities(self.basis, self.level)

    def _coordinates(self, v: Array) -> Array:
        return jnp.einsum("...kn,...n->...k", self.basis, v)

    def _lift(self, coordinates: Array) -> Array:
        return jnp.einsum("...kn,...k->...n", self.basis, coordinates)


def _factorised(A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    length = np.linalg.norm(A, axis=-1)
    length = np.where(length > 0, length, 1.0)
    U, s, Q = np.linalg.svd(A / length[..., None], full_matrices=False)
    keep = s > max(A.shape[-2:]) * np.finfo(np.float64).eps * np.max(s, axis=-1, keepdims=True, initial=0.0)
    coordinates = np.einsum("...mk,...m->...k", U, b / length)
    return Q * keep[..., None], np.where(keep, coordinates, 0.0) / np.where(keep, s, 1.0)


def _refuse_inconsistent(flat: AffineSubspace) -> None:
    nearest = np.einsum("...kn,...k->...n", flat.basis, flat.level)
    reached = np.einsum("...mn,...n->...m", flat.matrix, nearest)
    size = np.abs(flat.right) + np.linalg.norm(flat.matrix, axis=-1) * np.linalg.norm(nearest, axis=-1)[..., None]
    clash = np.abs(reached - flat.right) > 1e-9 * size
    if clash.any():
        where = first_index(clash)
        wanted, got = (np.broadcast_to(a, clash.shape)[where] for a in (flat.right, reached))
        refuse(
            "A, b",
            f"no x solves A x = b: the rows contradict each other, and the x that comes nearest gives "
            f"(A x){label(where)} = {got:g} where b{label(where)} = {wanted:g}",
            "Drop the rows that repeat others with a different right-hand side",
        )
