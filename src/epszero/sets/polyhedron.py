"""{x : G x ≤ h, A x = b}.

Projection and support by Clarabel (sets/_oracle.py), one solve per point; the projection is polished to rounding, the
support is an upper bound where the set is bounded.
Diameter: an upper bound, the diagonal of the smallest box around the set (2n linear programs, solved once when asked
for). G and A may be sparse; entries of h may be +∞. Emptiness is proved at construction, by Farkas' lemma.
"""

from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, real_array, refuse
from epszero._lazy import sp
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._common import some_point
from epszero.sets._normals import Normal
from epszero.sets._oracle import ConicOracle
from epszero.sets._parameters import Matrix
from epszero.sets.conic import ConicForm


class Polyhedron(Set):
    """Solutions of linear inequalities and equations."""

    static: ClassVar[tuple[str, ...]] = ("oracle",)
    oracle: ConicOracle
    inside: FloatArray  # a point of the set, away from its boundary where there is room

    @known_arguments
    def __init__(self, G: Matrix, h: Real, A: Matrix | None = None, b: Real | None = None) -> None:
        inequalities, bounds = _rows("G", G, "h", h)
        if np.isneginf(bounds).any():
            row = int(np.argmax(np.isneginf(bounds)))
            refuse(f"h[{row}]", "is −∞, which no x can meet", "Give a finite bound, or +∞ to drop the row")
        forms = [ConicForm.inequalities(inequalities, bounds)]
        if A is not None or b is not None:
            equations, levels = _rows("A", A, "b", b)
            if equations.shape[1] != inequalities.shape[1]:
                refuse("G, A", f"have {inequalities.shape[1]} and {equations.shape[1]} columns", "Make them agree")
            forms.append(ConicForm.equalities(equations, levels))
        self.oracle = ConicOracle(ConicForm.both(forms))
        self.inside = some_point(self.oracle.form, np.flatnonzero(np.isfinite(bounds)).tolist())

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.oracle.form.n,)

    def _project(self, v: Array) -> Array:
        return self.oracle.project(v)

    def _support(self, direction: Array) -> Array:
        return self.oracle.support(direction)

    def _diameter(self) -> Array:
        return jnp.asarray(self.oracle.diameter())

    def _point(self) -> Array:
        return jnp.asarray(self.inside)

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        return self.oracle.normal(x, z)

    def _conic(self, n: int) -> ConicForm:
        return self.oracle.form


def _rows(left: str, matrix: Any, right: str, bounds: Any) -> tuple[Any, FloatArray]:
    if matrix is None or bounds is None:
        refuse(f"{left}, {right}", "go together, but only one of them is given", "Pass both or neither")
    values = np.atleast_1d(real_array(right, bounds, allow_infinite=left == "G"))
    dense = matrix if sp.issparse(matrix) else np.atleast_2d(real_array(left, matrix))
    if dense.ndim != 2 or values.ndim != 1:
        refuse(f"{left}, {right}", "must be a matrix and a vector", "Give one row and one bound per constraint")
    rows: Any = sp.csr_matrix(dense)
    if not np.isfinite(rows.data).all():
        refuse(left, "must be finite, but it has NaN or infinite entries", "Replace or drop those rows")
    if values.shape != rows.shape[:1]:
        refuse(
            f"{left}, {right}",
            f"{left} has {rows.shape[0]} rows, but {right} has shape {values.shape}",
            "Give one bound per row",
        )
    return rows, values
