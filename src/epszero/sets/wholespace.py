"""R^n: no constraint. Projection is the identity, the support is 0 at 0 and ∞ elsewhere, the diameter ∞ (exact)."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments
from epszero._types import Array
from epszero.sets._base import Set
from epszero.sets._parameters import dimension
from epszero.sets.conic import ConicForm


class WholeSpace(Set):
    """All vectors (of length `dim`, or of any length)."""

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
        return v

    def _support(self, direction: Array) -> Array:
        return jnp.where(jnp.any(direction != 0, axis=-1), jnp.inf, 0.0)

    def _diameter(self) -> Array:
        return jnp.asarray(jnp.inf)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.inequalities(np.zeros((0, n)), np.zeros(0))
