"""factor·C = {factor·x : x ∈ C}, for a number factor ≠ 0; a negative one reflects.

Projection factor·P_C(v/factor); support σ_C(factor·d); diameter |factor| times that of C. Costs those of C.
"""

from typing import Any

import numpy as np

from epszero._checks import known_arguments, real_array, refuse
from epszero._lazy import sp
from epszero._types import Array, FloatArray
from epszero.sets._base import Set
from epszero.sets._joint import Joint
from epszero.sets._normals import Normal
from epszero.sets._parameters import one_set
from epszero.sets.conic import ConicForm
from epszero.sets.faces import Face


class Scaled(Set):
    """The set multiplied by `factor`."""

    formula = True
    made_of = "set"
    set: Set
    factor: FloatArray

    @known_arguments
    def __init__(self, set: Set, factor: float) -> None:
        self.set = one_set("set", set)
        self.factor = real_array("factor", factor)
        if self.factor.shape:
            refuse("factor", f"must be one number, but its shape is {self.factor.shape}", "Scale each set by itself")
        if self.factor == 0:
            refuse("factor", "must not be 0, which leaves a single point or nothing closed", "Use Singleton(0.0)")

    def _project(self, v: Array) -> Array:
        return self.factor * self.set._project(v / self.factor)

    def _support(self, direction: Array) -> Array:
        return self.set._support(self.factor * direction)

    def _diameter(self) -> Array:
        return abs(self.factor) * self.set._diameter()

    def _point(self) -> Array:
        return self.factor * self.set._point()

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        found = self.set._normal(x / self.factor, self.factor * z)
        return found._replace(z=found.z / self.factor)

    @property
    def _polyhedral(self) -> bool:
        return self.set.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """x = factor·u with the normal factor·z at u."""
        factor = float(self.factor)
        face = self.set.face(x / factor, factor * z)
        if face is None:
            return None
        normals, rows, duals = face.normals / factor, face.rows / factor, face.duals * factor
        lifts = None if face.lifts is None else face.lifts / factor
        mended = np.asarray(face.mended) / factor
        return face._replace(normals=normals, rows=rows, duals=duals, mended=mended, lifts=lifts)

    def _joint(self, n: int) -> Joint | None:
        inner = self.set._joint(n)
        return None if inner is None else inner.times(float(self.factor))

    def _conic(self, n: int) -> ConicForm:
        form = self.set.conic(n)
        shrink: Any = sp.diags(np.concatenate([np.full(n, 1 / float(self.factor)), np.ones(form.A.shape[1] - n)]))
        return ConicForm(sp.csr_matrix(form.A @ shrink), form.b, form.cones, n)
