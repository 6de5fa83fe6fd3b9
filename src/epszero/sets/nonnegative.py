"""{x : x ≥ 0}, the nonnegative orthant.

Projection max(v, 0), O(n). Support 0 for directions without a positive entry, else ∞. Diameter ∞, exact.
"""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments
from epszero._shaped import clipped
from epszero._types import Array
from epszero.sets._base import Set
from epszero.sets._parameters import dimension
from epszero.sets.conic import ConicForm


class NonNegative(Set):
    """Vectors (of length `dim`, or of any length) without a negative entry."""

    formula = True
    static: ClassVar[tuple[str, ...]] = ("dim",)
    dim: int | None

    @known_arguments
    def __init__(self, dim: int | None = None) -> None:
        self.dim = dimension(dim)

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        return None if self.dim is None else (self.dim,)

    def _project(self, v: Array) -> Array:
        return clipped(v, 0.0, jnp.inf)

    def _support(self, direction: Array) -> Array:
        return jnp.where(jnp.any(direction > 0, axis=-1), jnp.inf, 0.0)

    def _diameter(self) -> Array:
        return jnp.asarray(jnp.inf)

    def _point(self) -> Array:
        return jnp.ones(self.known_point_shape)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.inequalities(-np.eye(n), np.zeros(n))
