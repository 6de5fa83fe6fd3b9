"""{x : 0 ≤ x ≤ cap, Σx = total}.

Projection clip(v − λ, 0, cap) with λ the root of a piecewise linear equation (sets/_knapsack.py), O(n) per pass, exact
to rounding. Support: the total is spent on the largest entries of the direction first, O(n log n). Diameter: an upper
bound, from ‖x − y‖² ≤ (largest range of an entry)·‖x − y‖₁ with ‖x − y‖₁ ≤ 2 min(total, Σcap − total); attained when
one cap serves all entries and divides both total and Σcap − total, as in the plain simplex.
Totals (…) and caps (…, n) may be batches; caps may be infinite.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._double import is_traced
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._knapsack import clip_to_budget
from epszero.sets._parameters import broadcast, dimension, spread
from epszero.sets.conic import ConicForm
from epszero.sets.simplex import reachable_total


class CappedSimplex(Set):
    """Vectors between 0 and `cap` that sum to `total`."""

    formula = True
    per_entry = ("cap",)
    per_point = ("total",)
    total: FloatArray
    cap: FloatArray

    @known_arguments
    def __init__(self, total: Real = 1.0, cap: Real = 1.0, dim: int | None = None) -> None:
        self.total = reachable_total("CappedSimplex", total)
        self.cap = spread("cap", real_array("cap", cap, allow_infinite=True), dimension(dim))
        broadcast(total=self.total.shape, cap=self.cap.shape[:-1])
        if (self.cap < 0).any():
            where = first_index(self.cap < 0)
            refuse(f"cap{label(where)}", f"must be nonnegative, but it is {self.cap[where]:g}", "Pass caps ≥ 0")
        if self.point_shape is not None:
            _refuse_unreachable(self, self.point_shape[0])

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        super().check_shape(argument, shape)
        if self.point_shape is None and not is_traced(self):
            _refuse_unreachable(self, shape[-1])

    def _project(self, v: Array) -> Array:
        v = v - jnp.max(v, axis=-1, keepdims=True)  # changes nothing but the rounding; any NaN spreads to the row
        return clip_to_budget(v, jnp.asarray(0.0), self._ceiling(), jnp.asarray(1.0), self.total, self.total)

    def _support(self, direction: Array) -> Array:
        shape = jnp.broadcast_shapes(direction.shape, self.batch_shape + direction.shape[-1:])
        d, cap = jnp.broadcast_to(direction, shape), jnp.broadcast_to(self._ceiling(), shape)
        best = jnp.argsort(-d, axis=-1)
        d, cap = jnp.take_along_axis(d, best, axis=-1), jnp.take_along_axis(cap, best, axis=-1)
        spent = jnp.cumsum(cap, axis=-1) - cap
        return jnp.sum(d * jnp.clip(self.total[..., None] - spent, 0.0, cap), axis=-1)

    def _diameter(self) -> Array:
        cap = jnp.broadcast_to(self._ceiling(), self.batch_shape + self.known_point_shape)
        room = jnp.maximum(jnp.sum(cap, axis=-1) - self.total, 0.0)
        widest = jnp.max(jnp.minimum(cap, room[..., None]), axis=-1)
        return jnp.sqrt(2 * jnp.minimum(self.total, room)) * jnp.sqrt(widest)

    def _point(self) -> Array:
        cap = jnp.broadcast_to(self._ceiling(), self.batch_shape + self.known_point_shape)
        whole = jnp.sum(cap, axis=-1, keepdims=True)
        return cap * (self.total[..., None] / jnp.where(whole > 0, whole, 1.0))

    def _ceiling(self) -> Array:
        return jnp.minimum(self.cap, self.total[..., None])  # no entry exceeds the total, and this one is finite

    def _conic(self, n: int) -> ConicForm:
        total = ConicForm.equalities(np.ones((1, n)), self.total.reshape(1))
        bounds = np.concatenate([np.broadcast_to(self.cap, n), np.zeros(n)])
        return ConicForm.both([total, ConicForm.inequalities(np.vstack([np.eye(n), -np.eye(n)]), bounds)])


def _refuse_unreachable(capped: CappedSimplex, n: int) -> None:
    with np.errstate(over="ignore"):  # more than enough
        whole = np.broadcast_to(capped.cap, np.broadcast_shapes(capped.cap.shape, (n,))).sum(axis=-1)
        short = whole * (1 + 1e-12) < capped.total
    if short.any():
        where = first_index(short)
        total, most = (np.broadcast_to(a, short.shape)[where] for a in (capped.total, whole))
        refuse(
            f"total{label(where)}", f"is {total:g}, but the {n} caps sum to {most:g} only", "Lower total or raise cap"
        )
