"""`Set`: a closed convex set, and the side of a problem that is known exactly (A = its normal cone).

A point is a vector on the last axis (a matrix on the last two where `rank` is 2). Everything before that is a batch:
parameters and points broadcast against each other, so one object holds the sets of a million agents. `contains`,
`support` and `diameter` answer with one value per batch entry.

A new set writes four small things: `__init__` (validate, refuse the empty set), `_project`, `_support`, `_diameter`;
`point_shape` and `batch_shape` when they are known; `conic` so that intersections can reason about it. It lives in one
file, in jax.numpy, without Python branches on values.
"""

from abc import abstractmethod
from typing import Any

import jax.numpy as jnp

from epszero._checks import refuse
from epszero._double import in_double
from epszero._shaped import Shaped, norm
from epszero._types import Array, FloatArray
from epszero.sets._conic import ConicForm


class Set(Shaped):
    """A nonempty closed convex set."""

    # -- what users call ----------------------------------------------------------------------------------------------

    def project(self, v: Any) -> Any:
        """The nearest point of the set, for every point of the batch `v`."""
        return in_double(self, "_project", self._checked("v", v))

    def contains(self, v: Any, tol: float = 1e-9) -> Any:
        """Whether v lies within `tol`·max(1, ‖v‖) of the set (so NaN never does), one answer per batch entry."""
        return in_double(self, "_contains", self._checked("v", v), tol)

    def support(self, direction: Any) -> Any:
        """sup ⟨direction, x⟩ over the set, +∞ where it is unbounded that way."""
        return in_double(self, "_support", self._checked("direction", direction))

    def diameter(self) -> Any:
        """sup ‖x − y‖ over the set or an upper bound on it (the class says which), ∞ where the set is unbounded."""
        return in_double(self, "_diameter")

    def point(self) -> FloatArray:
        """A point of the set (one for each set of the batch)."""
        return in_double(self, "_point")

    # -- what a set writes --------------------------------------------------------------------------------------------

    @abstractmethod
    def _project(self, v: Array) -> Array: ...

    @abstractmethod
    def _support(self, direction: Array) -> Array: ...

    @abstractmethod
    def _diameter(self) -> Array: ...

    def _contains(self, v: Array, tol: float) -> Array:
        return norm(v - self._project(v), self.rank) <= tol * jnp.maximum(1.0, norm(v, self.rank))

    def _point(self) -> Array:
        return self._project(jnp.zeros(self.batch_shape + self.known_point_shape))

    def conic(self, n: int) -> ConicForm:
        """The set in R^n as {x : A(x, aux) + s = b, s ∈ K}, for conic solvers. Only for a single set, not a batch."""
        refuse(type(self).__name__, f"has no conic form in R^{n}", "Use sets that have one, such as Polyhedron")
