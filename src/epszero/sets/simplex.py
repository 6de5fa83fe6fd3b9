"""{x : x ≥ 0, Σx = total}.

Projection max(v − λ, 0) with λ the root of a piecewise linear equation (sets/_knapsack.py), O(n) per pass, exact to
rounding. Support total·max(direction). Diameter exact: √2·total, 0 in dimension 1 (where `dim` is not given, √2·total).
Totals (…) may be a batch; a total of 0 is the origin.
"""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._knapsack import clip_to_budget
from epszero.sets._parameters import dimension
from epszero.sets.conic import ConicForm


class Simplex(Set):
    """Nonnegative vectors (of length `dim`, or of any length) that sum to `total`."""

    formula = True
    static: ClassVar[tuple[str, ...]] = ("dim",)
    per_point = ("total",)
    total: FloatArray
    dim: int | None

    @known_arguments
    def __init__(self, total: Real = 1.0, dim: int | None = None) -> None:
        self.total = reachable_total("Simplex", total)
        self.dim = dimension(dim)

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        return None if self.dim is None else (self.dim,)

    def _project(self, v: Array) -> Array:
        v = v - jnp.max(v, axis=-1, keepdims=True)  # changes nothing but the rounding; any NaN spreads to the row
        zero, infinite, one = jnp.asarray(0.0), jnp.asarray(jnp.inf), jnp.asarray(1.0)
        return clip_to_budget(v, zero, infinite, one, self.total, self.total)

    def _support(self, direction: Array) -> Array:
        return self.total * jnp.max(direction, axis=-1)

    def _diameter(self) -> Array:
        return jnp.asarray(self.total) * (0.0 if self.dim == 1 else float(np.sqrt(2.0)))

    def _point(self) -> Array:
        n = self.known_point_shape[0]
        return jnp.broadcast_to(self.total[..., None] / n, (*self.batch_shape, n))

    def _corners(self, n: int) -> FloatArray:
        return float(self.total) * np.eye(n)

    def _conic(self, n: int) -> ConicForm:
        total = ConicForm.equalities(np.ones((1, n)), self.total.reshape(1))
        return ConicForm.both([total, ConicForm.inequalities(-np.eye(n), np.zeros(n))])


def reachable_total(name: str, total: Real) -> FloatArray:
    """A sum that nonnegative entries can have."""
    array = real_array("total", total)
    if (array < 0).any():
        where = first_index(array < 0)
        refuse(
            f"total{label(where)}",
            f"{name} is empty: nonnegative entries cannot sum to {array[where]:g}",
            "Pass a total ≥ 0",
        )
    return array
