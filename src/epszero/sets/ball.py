"""{x : ‖x − center‖ ≤ radius} for the Euclidean norm (2), the sum of absolute values (1) or the largest entry (inf).

Projection: 2 scales, inf clips, both O(n); 1 shrinks by the root of a piecewise linear equation (sets/_knapsack.py),
O(n) per pass. Support ⟨direction, center⟩ + radius·(dual norm). Diameter exact: 2·radius, times √n for inf.
Radius (…) and center (…, n) may be batches; a radius of 0 is one point.
"""

from typing import Any, ClassVar, Literal

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, one_of, positive, real_array
from epszero._lazy import sp
from epszero._shaped import clipped, dot
from epszero._shaped import norm as euclidean
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._joint import Diamond, Joint
from epszero.sets._knapsack import clip_to_budget
from epszero.sets._parameters import broadcast, dimension, spread
from epszero.sets.conic import ConicForm
from epszero.sets.faces import Face, Rows


class Ball(Set):
    """A ball of `radius` around `center` in the norm 2, 1 or inf."""

    formula = True
    static: ClassVar[tuple[str, ...]] = ("norm",)
    per_entry = ("center",)
    per_point = ("radius",)
    radius: FloatArray
    center: FloatArray
    norm: float  # 1, 2 or ∞

    @known_arguments
    def __init__(
        self, radius: Real = 1.0, center: Real = 0.0, norm: float | Literal["inf"] = 2, dim: int | None = None
    ) -> None:
        one_of("norm", norm, (2, 1, np.inf, "inf"), "Pass one of these, or intersect other sets")
        self.radius = positive("radius", radius, strict=False)
        self.center = spread("center", real_array("center", center), dimension(dim))
        self.norm = float(norm)
        broadcast(radius=self.radius.shape, center=self.center.shape[:-1])

    def _project(self, v: Array) -> Array:
        u, r = v - self.center, jnp.asarray(self.radius)
        if self.norm == np.inf:
            return self.center + clipped(u, -r[..., None], r[..., None])
        if self.norm == 1:
            outside = jnp.sum(jnp.abs(u), axis=-1) > r
            zero, infinite, one = jnp.asarray(0.0), jnp.asarray(jnp.inf), jnp.asarray(1.0)
            size = clip_to_budget(jnp.abs(u), zero, infinite, one, -infinite, r)
            return jnp.where(outside[..., None], self.center + jnp.sign(u) * size, v)
        length = euclidean(u)
        outside = ~(length <= r)  # so that NaN stays NaN
        return jnp.where(outside[..., None], self.center + u * (r / jnp.where(outside, length, 1.0))[..., None], v)

    def _support(self, direction: Array) -> Array:
        if self.norm == np.inf:
            dual = jnp.sum(jnp.abs(direction), axis=-1)
        else:
            dual = jnp.max(jnp.abs(direction), axis=-1) if self.norm == 1 else euclidean(direction)
        return dot(direction, self.center) + self.radius * dual

    def _diameter(self) -> Array:
        stretch = float(np.sqrt(self.known_point_shape[0])) if self.norm == np.inf else 1.0
        return jnp.broadcast_to(2 * stretch * self.radius, self.batch_shape)

    def _point(self) -> Array:
        return jnp.broadcast_to(self.center, self.batch_shape + self.known_point_shape)

    @property
    def _polyhedral(self) -> bool:
        return self.norm == 1 or super()._polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        joint = self._joint(len(x)) if self.norm == 1 else None
        return super()._face(x, z) if joint is None else joint.face(x, z)

    def _joint(self, n: int) -> Joint | None:
        if self.norm != 1:
            return super()._joint(n)
        nothing = Rows(np.zeros((0, n)), np.zeros(0), np.zeros(0, dtype=bool))
        return Joint(nothing, (Diamond(np.broadcast_to(self.center, n), float(self.radius)),))

    def _corners(self, n: int) -> FloatArray | None:
        if self.norm != 1:
            return None
        return np.broadcast_to(self.center, n) + float(self.radius) * np.vstack([np.eye(n), -np.eye(n)])

    def _conic(self, n: int) -> ConicForm:
        c, r, eye = np.broadcast_to(self.center, n), self.radius.reshape(1), np.eye(n)
        if self.norm == 2:
            return ConicForm.second_order(np.vstack([np.zeros((1, n)), -eye]), np.concatenate([r, -c]))
        if self.norm == np.inf:
            return ConicForm.inequalities(np.vstack([eye, -eye]), np.concatenate([r + c, r - c]))
        rows: Any = sp.bmat([[eye, -eye], [-eye, -eye], [None, np.ones((1, n))]])  # |x − c| ≤ aux, Σaux ≤ r
        return ConicForm.inequalities(rows, np.concatenate([c, -c, r]), n)
