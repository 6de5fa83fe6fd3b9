"""{X ∈ R^{n×n} : X = Xᵀ, X ⪰ 0}: symmetric positive semidefinite matrices, as a cone among all n × n matrices.

Projection: the symmetric part of V, its negative eigenvalues set to 0; O(n³). Support: a skew part of the direction D
is orthogonal to every member, so sup ⟨D, X⟩ is 0 when the symmetric part of D has no positive eigenvalue (to rounding:
√eps of the norm of D) and ∞ otherwise. Diameter ∞, exact. Points are matrices on the last two axes.
The derivative along D is Ω ∘ D in the axes of V, Ω_ij = (λ_i⁺ + λ_j⁺)/(|λ_i| + |λ_j|), and 0 where both are 0.
Source: Sun & Sun, "Semismooth matrix-valued functions", Math. Oper. Res. 27 (2002).
"""

from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import count, known_arguments
from epszero._lazy import sp
from epszero._shaped import norm
from epszero._types import Array
from epszero.sets._base import Set, rounding
from epszero.sets.conic import ConicForm, cone


class PositiveSemidefinite(Set):
    """Symmetric n × n matrices without a negative eigenvalue."""

    formula = True
    static: ClassVar[tuple[str, ...]] = ("n",)
    n: int

    @known_arguments
    def __init__(self, n: int) -> None:
        self.n = count("n", n, least=1)

    @property
    def rank(self) -> int:
        return 2

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.n, self.n)

    def _project(self, v: Array) -> Array:
        return _nearest(v)

    def _support(self, direction: Array) -> Array:
        even = _symmetric(direction)
        largest = jnp.linalg.eigvalsh(even)[..., -1]
        return jnp.where(largest > rounding(direction) * norm(direction, rank=2), jnp.inf, 0.0)

    def _diameter(self) -> Array:
        return jnp.asarray(jnp.inf)

    def _point(self) -> Array:
        return jnp.eye(self.n)

    def _conic(self, n: int) -> ConicForm:
        place = np.arange(n).reshape(self.n, self.n)
        rows, columns = np.tril_indices(self.n)  # Clarabel's order: the upper triangle, column by column
        weights = np.where(rows == columns, 1.0, np.sqrt(2.0))  # which keep the norm
        triangle = -weights[:, None] * np.eye(n)[place[columns, rows]]
        cones = (cone("PSDTriangle", self.n),)
        definite = ConicForm(sp.csr_matrix(triangle), np.zeros(len(rows)), cones, n)
        apart = rows != columns
        mirror = np.eye(n)[place[rows, columns][apart]] - np.eye(n)[place[columns, rows][apart]]
        return ConicForm.both([ConicForm.equalities(mirror, np.zeros(len(mirror))), definite])


def _symmetric(matrix: Array) -> Array:
    return (matrix + jnp.swapaxes(matrix, -1, -2)) / 2


@jax.custom_jvp
def _nearest(v: Array) -> Array:
    eigenvalues, axes = jnp.linalg.eigh(_symmetric(v))
    return _symmetric(jnp.einsum("...ik,...k,...jk->...ij", axes, jnp.maximum(eigenvalues, 0.0), axes))


@_nearest.defjvp
def _along(at: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    eigenvalues, axes = jnp.linalg.eigh(_symmetric(at[0]))
    kept, size = jnp.maximum(eigenvalues, 0.0), jnp.abs(eigenvalues)
    kept, size = (sizes[..., :, None] + sizes[..., None, :] for sizes in (kept, size))
    turned = jnp.einsum("...ki,...kl,...lj->...ij", axes, _symmetric(tangents[0]), axes)
    moved = jnp.where(size > 0, kept / jnp.where(size > 0, size, 1.0), 0.0) * turned
    return _nearest(at[0]), _symmetric(jnp.einsum("...ik,...kl,...jl->...ij", axes, moved, axes))
