"""C + by = {x + by : x ∈ C}.

Projection by + P_C(v − by); support σ_C(d) + ⟨d, by⟩; diameter that of C. Costs those of C. `by` is a number or an
array (its leading axes are a batch).
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, real_array, refuse
from epszero._shaped import dot
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._joint import Joint
from epszero.sets._normals import Normal
from epszero.sets._parameters import broadcast, one_set
from epszero.sets.conic import ConicForm
from epszero.sets.faces import Face


class Translated(Set):
    """The set moved by the vector `by`."""

    formula = True
    made_of = "set"
    per_entry = ("by",)
    set: Set
    by: FloatArray

    @known_arguments
    def __init__(self, set: Set, by: Real) -> None:
        self.set = one_set("set", set)
        self.by = real_array("by", by)
        if self.by.ndim and self.set.point_shape not in (None, self.by.shape[-self.rank :]):
            refuse(
                "by",
                f"has shape {self.by.shape}, but {type(set).__name__} has points of shape {self.set.point_shape}",
                "Make them agree, or pass a number",
            )
        broadcast(set=self.set.batch_shape, by=self.by.shape[: -self.rank])

    def _project(self, v: Array) -> Array:
        return self.by + self.set._project(v - self.by)

    def _support(self, direction: Array) -> Array:
        return self.set._support(direction) + dot(direction, self.by, self.rank)

    def _diameter(self) -> Array:
        return jnp.broadcast_to(self.set._diameter(), self.batch_shape)

    def _point(self) -> Array:
        shape = self.batch_shape + self.known_point_shape
        return self.by + self.set._project(jnp.broadcast_to(-self.by, shape))

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        return self.set._normal(x - self.by, z)

    @property
    def _polyhedral(self) -> bool:
        return self.set.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        return self.set.face(x - self.by, z)

    def _joint(self, n: int) -> Joint | None:
        inner = self.set._joint(n)
        return None if inner is None else inner.moved(np.broadcast_to(self.by, n))

    def _conic(self, n: int) -> ConicForm:
        form: Any = self.set.conic(n)
        shift = np.concatenate([np.broadcast_to(self.by.ravel(), n), np.zeros(form.A.shape[1] - n)])
        return ConicForm(form.A, form.b + form.A @ shift, form.cones, n)
