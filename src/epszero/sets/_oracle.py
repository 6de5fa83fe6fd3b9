"""Clarabel behind a JAX operation: projection, support and bounding box of a set known by its conic form.

`jax.pure_callback` leaves the trace, NumPy and Clarabel work row by row, and the answer comes back; so it runs under
`jit` and `vmap`. Cost per row: one interior-point solve. A row that Clarabel cannot solve comes back as NaN.

Clarabel's answer is good to about 1e-9 in value. Where the set is a polyhedron, it only says which rows are active, and
an active-set method (sets/_active.py) goes on from there to the exact answer. Elsewhere, or should that fail, the point
is pulled inside, and supports are upper bounds by weak duality, as are the gaps of normals (sets/_proved.py).
"""

import functools
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._host import on_host
from epszero._types import Array, FloatArray
from epszero.sets import _cones
from epszero.sets._active import LinearRows
from epszero.sets._normals import Normal
from epszero.sets._proved import Proofs
from epszero.sets._reduced import reduced
from epszero.sets.conic import ConicForm, minimise


class ConicOracle:
    """One conic form and what is computed from it once. Compared by identity, so a `Node` may keep it as metadata."""

    def __init__(self, form: ConicForm) -> None:
        self.form = reduced(form)

    def project(self, v: Array) -> Array:
        """Nearest points, v (…, n). Their derivative is the projection on the face; NaN where no face is known."""
        return _nearest(self, v)

    def nearest(self, v: Array) -> Array:
        """Nearest points, without a derivative."""
        return on_host(self._project_rows, v.shape, v)

    def along_faces(self, v: Array) -> Array:
        """The derivative of `project`, (…, n, n)."""
        return on_host(self._face_rows, (*v.shape, v.shape[-1]), v)

    def support(self, direction: Array) -> Array:
        """sup ⟨direction, x⟩, direction (…, n)."""
        return on_host(self._support_rows, direction.shape[:-1], direction)

    def normal(self, x: FloatArray, z: FloatArray) -> Normal:
        """An element near z of the normal cone at x, and what is proved of it."""
        exact = None if self.rows is None else self.rows.normal(x, z)
        if exact is not None:
            return exact
        if self.proofs is None:
            return Normal(z, max(float(self._reach(z) - z @ x), 0.0), "a conic solver with cones of another kind")
        return self.proofs.normal(x, z)

    def diameter(self) -> float:
        """Norm of the sides of the smallest box around the set, an upper bound; ∞ where unbounded."""
        return float(np.linalg.norm(self.sides))

    @cached_property
    def sides(self) -> FloatArray:
        """Side lengths of that box: 2n conic programs, solved when first asked for, and widened by their accuracy."""
        high, low = (self._support_rows(sign * np.eye(self.form.n)) for sign in (1, -1))
        sides = np.maximum(high + low, 0.0) + 1e-8 * (np.abs(high) + np.abs(low))
        return np.where(np.isnan(sides), np.inf, sides)  # a program that failed bounds nothing

    # -- NumPy only from here on: this runs inside the callback --------------------------------------------------------

    def _project_rows(self, v: Any) -> FloatArray:
        return np.stack([self._nearest(row) for row in v]) if len(v) else np.zeros_like(v)

    def _face_rows(self, v: Any) -> FloatArray:
        n = self.form.n
        if self.rows is None:
            return np.full((len(v), n, n), np.nan)
        return np.stack([self.rows.face(row, self._nearest(row)) for row in v]) if len(v) else np.zeros((0, n, n))

    def _support_rows(self, directions: Any) -> FloatArray:
        return np.array([self._reach(row) for row in directions])

    def _nearest(self, v: FloatArray) -> FloatArray:
        if not np.isfinite(v).all():
            return np.full_like(v, np.nan)
        if self.rows is not None and self.rows.hold(v):
            return v
        result = minimise(self.form, -v, curvature=1.0)
        if result.status != "solved":
            found = np.full_like(v, np.nan)
        else:
            found = result.x if self.proofs is None else self.proofs.pulled(result.whole)[: self.form.n]
        if self.rows is None:
            return found
        guess = (result.dual > result.slack) & (result.status == "solved")
        polished = self.rows.nearest(v, guess)
        return found if polished is None else polished

    def _reach(self, direction: FloatArray) -> float:
        size = np.max(np.abs(direction), initial=0.0)
        if size == 0 or not np.isfinite(size):
            return 0.0 if size == 0 else np.nan
        result = minimise(self.form, -direction / size)
        if result.status == "unbounded":
            return np.inf
        if result.status != "solved":
            return np.nan
        value = float(-result.value * size)
        return value if self.proofs is None else self.proofs.above(direction, value, size * result.dual)

    @cached_property
    def proofs(self) -> Proofs | None:
        """What is proved with the form; None where a cone is of another kind."""
        return Proofs(self.form) if _cones.known(self.form.cones) else None

    @cached_property
    def rows(self) -> LinearRows | None:
        """The rows of a polyhedron, or None where the form has other cones or auxiliary columns."""
        import clarabel  # noqa: PLC0415  (only conic forms need it)

        linear = all(isinstance(cone, clarabel.NonnegativeConeT | clarabel.ZeroConeT) for cone in self.form.cones)
        if not linear or self.form.A.shape[1] != self.form.n:
            return None
        kinds = [np.full(cone.dim, isinstance(cone, clarabel.ZeroConeT)) for cone in self.form.cones]
        return LinearRows(self.form.A, self.form.b, np.concatenate([np.zeros(0, bool), *kinds]))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _nearest(oracle: ConicOracle, v: Array) -> Array:
    return oracle.nearest(v)


@_nearest.defjvp
def _along(oracle: ConicOracle, at: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    return oracle.nearest(at[0]), jnp.einsum("...ij,...j->...i", oracle.along_faces(at[0]), tangents[0])
