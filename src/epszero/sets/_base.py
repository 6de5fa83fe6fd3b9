"""`Set`: a closed convex set, and the side of a problem that is known exactly (A = its normal cone).

A point is a vector on the last axis (a matrix on the last two where `rank` is 2). Everything before that is a batch:
parameters and points broadcast against each other, so one object holds the sets of a million agents. `contains`,
`support` and `diameter` answer with one value per batch entry.

A new set names its parameters in `per_entry` or `per_point`, from which its shapes and `member` follow, and writes four
small things: `__init__` (validate, refuse the empty set), `_project`, `_support`, `_diameter`; `_conic` so that
intersections can reason about it; and it says `formula = True` if these are good to rounding. A set that a solver
projects on does not, and writes `_normal`, which says how good the solver was. It lives in one file, in jax.numpy,
without Python branches on values. A computation that cannot finish fills its answer with NaN: a direct call then raises
`NotConvergedError`, a call under the user's own `jit` hands the NaN on.
"""

from abc import abstractmethod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import InputError, refuse
from epszero._double import in_double, is_traced
from epszero._memory import remembered
from epszero._shaped import Shaped, norm
from epszero._types import Array, FloatArray, PyTree
from epszero.sets._joint import Joint
from epszero.sets._normals import Normal
from epszero.sets.conic import ConicForm
from epszero.sets.faces import Face, Rows

ROUNDING = 64 * float(np.finfo(np.float64).eps)  # relative to a point: what `exact` may be off by


class NotConvergedError(RuntimeError):
    """An iterative projection or a solver ended before it reached its accuracy. The message says the remedy."""


class Set(Shaped):
    """A nonempty closed convex set."""

    # -- what users call ----------------------------------------------------------------------------------------------

    def project(self, v: PyTree) -> Any:
        """The nearest point of the set, for every point of the batch `v`."""
        v = self._checked("v", v)
        return self._finished("project", v, self._computed("_project", v))

    def contains(self, v: PyTree, tol: float = 1e-9) -> Any:
        """Whether v lies within `tol`·max(1, ‖v‖) of the set (so NaN never does), one answer per batch entry."""
        return self._computed("_contains", self._checked("v", v), tol)

    def support(self, direction: PyTree) -> Any:
        """sup ⟨direction, x⟩ over the set, +∞ where it is unbounded that way."""
        direction = self._checked("direction", direction)
        return self._finished("support", direction, self._computed("_support", direction))

    def diameter(self) -> Any:
        """sup ‖x − y‖ over the set or an upper bound on it (the class says which), ∞ where the set is unbounded."""
        return in_double(self, "_diameter")

    def normal_near(self, x: FloatArray, z: FloatArray) -> Normal:
        """Of a single set: z′ near z with ⟨z′, y − x⟩ ≤ η for all y of the set, and whether that, and x ∈ C, is shown.

        Certificates ask this where the set is not `exact`; there z is an element of the normal cone as far as a solver
        can tell.
        """
        if self.batch_shape:
            refuse(type(self).__name__, "is a batch, not a single set", "Take one by member(index)")
        return self._normal(self._checked("x", x), self._checked("z", z))

    def face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """Of a single set: the piece of its normal cone that x and z lie on (sets/faces.py); None where it has none."""
        return self._face(np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64))

    def corners(self, n: int) -> FloatArray | None:
        """Of a single set of points with n entries: the points whose hull it is, in rows; None where they are many."""
        return None if self.batch_shape else self._corners(n)

    def linear_rows(self, n: int) -> Rows | None:
        """Of a single set: what its faces are read from; None where it says them in another way, or has none."""
        return self._linear_rows(n) if type(self)._face is Set._face else None

    @property
    def polyhedral(self) -> bool:
        """Whether `face` has something to say: known before any point is looked at."""
        return remembered(self, "polyhedral", lambda: self._polyhedral)

    def point(self) -> FloatArray:
        """A point of the set (one for each set of the batch)."""
        if type(self)._point is Set._point:  # the program that projects serves here too
            return self.project(np.zeros(self.batch_shape + self.known_point_shape))
        return self._finished("point", (), in_double(self, "_point"))

    # -- what a set writes --------------------------------------------------------------------------------------------

    @abstractmethod
    def _project(self, v: Array) -> Array: ...

    @abstractmethod
    def _support(self, direction: Array) -> Array: ...

    @abstractmethod
    def _diameter(self) -> Array: ...

    def _contains(self, v: Array, tol: float) -> Array:
        away = norm(v - self._project(v), self.rank)
        return jnp.isfinite(away) & (away <= tol * jnp.maximum(1.0, norm(v, self.rank)))

    def _corners(self, n: int) -> FloatArray | None:
        del n
        return None

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        gap = max(float(self.support(z) - np.sum(z * x)), 0.0)
        if not self.exact:
            return Normal(z, gap, f"{type(self).__name__} does not say that it is computed to rounding")
        return Normal(z, gap, "" if self.contains(x, ROUNDING) else "x is not in the set to rounding")

    @property
    def _polyhedral(self) -> bool:
        first = self.member((0,) * len(self.batch_shape)) if self.batch_shape else self
        return first._linear_rows((self.point_shape or (2,))[0]) is not None

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        rows = self._linear_rows(len(x))
        return None if rows is None else rows.face(x, z)

    def _joint(self, n: int) -> Joint | None:
        """Rows and ℓ1 balls whose intersection it is, for an `Intersection`; None where it is something else."""
        rows = self._linear_rows(n)
        return None if rows is None else Joint(rows, ())

    def _linear_rows(self, n: int) -> Rows | None:
        """{x ∈ Rⁿ : Gx ≤ h}, from the conic form; None where it is not polyhedral."""
        return remembered(self, ("linear rows", n), lambda: self._find_rows(n))

    def _find_rows(self, n: int) -> Rows | None:
        if self.rank != 1:
            return None
        try:
            linear = self.conic(n).linear
        except InputError:
            return None
        return None if linear is None else Rows(*linear)

    def _point(self) -> Array:
        return self._project(jnp.zeros(self.batch_shape + self.known_point_shape))

    def _conic(self, n: int) -> ConicForm:
        refuse(type(self).__name__, f"has no conic form in R^{n}", "Use sets that have one, such as Polyhedron")

    # -- for conic solvers --------------------------------------------------------------------------------------------

    def conic(self, n: int) -> ConicForm:
        """The set as {x : A(x, aux) + s = b, s ∈ K}; n counts the entries of a point (row by row for a matrix)."""
        name, shape = type(self).__name__, self.point_shape
        if self.batch_shape:
            refuse(name, f"is a batch of shape {self.batch_shape}, not a single set", "Take one by member(index)")
        if shape is not None and int(np.prod(shape)) != n:
            refuse("n", f"is {n}, but {name} has points of shape {shape}", "Make the dimensions agree")
        return self._conic(n)

    def _checked(self, argument: str, v: Any) -> Any:
        if is_traced(v):  # integers and mixed precision would upset the loops of some sets
            v = jnp.asarray(v, dtype=jnp.result_type(float))
        return super()._checked(argument, v)

    def _computed(self, name: str, *args: Any) -> Any:
        """The method on these arguments, the parameters brought to the user's precision under the user's own trace."""
        return in_double(jax.tree.map(jnp.asarray, self) if is_traced(args) else self, name, *args)

    def _finished(self, what: str, given: Any, answer: Any) -> Any:
        """`answer`, refused when it is NaN although nothing infinite or NaN was given. Traced answers pass."""
        if is_traced(answer) or not _any(np.isnan, answer) or _any(lambda a: ~np.isfinite(a), given):
            return answer
        raise NotConvergedError(self._why_unfinished(what, given))

    def _why_unfinished(self, what: str, given: Any) -> str:
        del given
        return (
            f"{type(self).__name__}.{what} did not reach its accuracy and has no answer. "
            "Scale the data so that they are of order 1, or use a set with a closed form."
        )


def _any(test: Any, tree: Any) -> bool:
    return any(bool(np.any(test(leaf))) for leaf in jax.tree.leaves(tree))


def rounding(v: Array) -> float:
    """√eps of v's precision: how far, relative to its length, a direction may stray by rounding alone."""
    return float(jnp.finfo(v.dtype).eps) ** 0.5
