"""C_1 ∩ C_2 ∩ …: the points that the sets have in common.

Projection by Dykstra's algorithm (sets/_dykstra.py), then a step towards a point well inside, the least after which
every member holds to rounding (where Clarabel finds such a point); where a member is itself projected on by Clarabel,
so is the whole, if members are single sets with conic forms. Where it does not converge, a direct call raises
`NotConvergedError` and a call under the user's own `jit` answers NaN. `contains` asks each member. Support: by Clarabel
on the joined conic forms, an upper bound where they are bounded. `normal_near`: the algorithm's parts p_i of z, normal
to the members at their points x_i, so that ⟨z, y − x⟩ ≤ Σ⟨p_i, x_i − x⟩ for all y, which is a proof. Diameter: an upper
bound, the smallest of the members' and of the diagonal of the box around the intersection. Emptiness is refused at
construction: proved by Clarabel where the dimension is known and the members are single sets with conic forms; else,
where the dimension is known, Dykstra's algorithm must find a common point. Members may be batches.
"""

from functools import reduce
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._double import in_double
from epszero._memory import remembered
from epszero._types import Array, FloatArray
from epszero.sets._base import NotConvergedError as NotConvergedError
from epszero.sets._base import Set
from epszero.sets._common import Inside, agreeing, joined, refuse_apart, refuse_disjoint, well_inside
from epszero.sets._dykstra import CYCLES, Common, Split, nearest_common, split
from epszero.sets._joint import Joint
from epszero.sets._normals import Normal
from epszero.sets._oracle import ConicOracle
from epszero.sets.conic import ConicForm
from epszero.sets.faces import Face

PULLS = 18  # from rounding to a millionth of the way, four times as far each time


class Intersection(Set):
    """The intersection of the sets."""

    static: ClassVar[tuple[str, ...]] = ("oracle",)
    made_of = "sets"
    sets: tuple[Set, ...]
    oracle: ConicOracle | None  # the joined conic form, where there is one
    inside: Inside | None  # where a point well inside is found, as far as the members have an inside

    @known_arguments
    def __init__(self, *sets: Set) -> None:
        self.sets = agreeing(sets)
        self.oracle = joined(self.sets, self.point_shape)
        self.inside = well_inside(self.oracle, self.point_shape)
        if self.oracle is not None:
            refuse_disjoint(self.sets, self.oracle.form)
        elif self.point_shape is not None:
            found = in_double(self, "_nearest", np.zeros(self.batch_shape + self.point_shape))
            refuse_apart(self.sets, found.gap, found.failed)

    def _project(self, v: Array) -> Array:
        if self.oracle is not None and self._by_solver:
            return self.oracle.project(v.reshape(*v.shape[: -self.rank], -1)).reshape(v.shape)
        found = self._nearest(v)
        x = found.x if self.inside is None else self._pulled(found.x, self.inside)
        return jnp.where(jnp.expand_dims(found.failed, tuple(range(-self.rank, 0))), jnp.nan, x)

    @property
    def _by_solver(self) -> bool:
        """Whether a solver projects on some member: then it may as well project on all of them at once."""
        return not all(member.exact for member in self.sets)

    def _pulled(self, x: Array, inside: Inside) -> Array:
        """x, moved towards a point inside as little as makes every member hold to rounding."""
        eps = float(jnp.finfo(x.dtype).eps)
        x = inside.on_equations(x.reshape(*x.shape[: -self.rank], -1)).reshape(x.shape)

        def nearer(t: Array) -> Array:
            return x + jnp.expand_dims(t, tuple(range(-self.rank, 0))) * (inside.middle - x)

        def further(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            t, _, passes = state
            held = Intersection._contains(self, nearer(t), 16 * eps)
            return jnp.where(held, t, jnp.minimum(jnp.maximum(4 * t, eps), 1.0)), held, passes + 1

        t = jnp.zeros(x.shape[: -self.rank], x.dtype)
        start = (t, jnp.zeros(t.shape, bool), jnp.asarray(0))
        last = jax.lax.while_loop(lambda s: jnp.any(~s[1]) & (s[2] < PULLS), further, start)
        return jnp.where(jnp.expand_dims(last[1], tuple(range(-self.rank, 0))), nearer(last[0]), x)

    def _nearest(self, v: Array) -> Common:
        v = jnp.broadcast_to(v, np.broadcast_shapes(v.shape, self.batch_shape + v.shape[-self.rank :]))
        return nearest_common([member._project for member in self.sets], v, self.rank)

    def _contains(self, v: Array, tol: float) -> Array:
        return reduce(jnp.logical_and, [member._contains(v, tol) for member in self.sets])

    def _support(self, direction: Array) -> Array:
        if self.oracle is None:
            refuse(
                "direction",
                "the support of an Intersection needs single sets of known dimension, with conic forms, as members",
                "Give dim= to the members, and take a single set of a batch by member(index)",
            )
        return self.oracle.support(direction.reshape(*direction.shape[: -self.rank], -1))

    def _diameter(self) -> Array:
        box = jnp.inf if self.oracle is None else self.oracle.diameter()
        bounds = [member._diameter() for member in self.sets]
        return jnp.broadcast_to(reduce(jnp.minimum, bounds, jnp.asarray(box)), self.batch_shape)

    def _normal(self, x: FloatArray, z: FloatArray) -> Normal:
        if self.oracle is not None and self._by_solver:
            found = self.oracle.normal(x.ravel(), z.ravel())
            return found._replace(z=found.z.reshape(z.shape))
        return self._by_members(x, z)

    def _by_members(self, x: FloatArray, z: FloatArray) -> Normal:
        step = (1 + float(np.linalg.norm(x))) / (1 + float(np.linalg.norm(z)))
        found: Split = in_double(self, "_split", x + step * z)
        doubt = "Dykstra's algorithm did not converge" if found.failed else ""
        if self.inside is None:
            doubt = doubt or "no point well inside all members is known, so that rounding may be far from them"
        parts, eta = list[FloatArray](), 0.0
        for member, p, own in zip(self.sets, found.normals, found.points, strict=True):
            at_own = Normal(p, 0.0) if member.exact else member._normal(own, p)
            at_x = member._normal(x, np.zeros_like(x))
            parts.append(at_own.z)
            eta += at_own.eta + float(np.sum(at_own.z * (own - x)))
            doubt = doubt or at_own.doubt or at_x.doubt
        return Normal(np.sum(parts, axis=0) / step, max(eta, 0.0) / step, doubt)

    def _split(self, v: Array) -> Split:
        return split([member._project for member in self.sets], v, self.rank)

    @property
    def _polyhedral(self) -> bool:
        first = self.member((0,) * len(self.batch_shape)) if self.batch_shape else self
        return first.rank == 1 and first._joint((self.point_shape or (2,))[0]) is not None

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        joint = self._joint(len(x))
        if joint is None or joint.balls:
            return None if joint is None else joint.face(x, z)
        return super()._face(x, z)

    def _joint(self, n: int) -> Joint | None:
        return remembered(self, ("joint", n), lambda: self._find_joint(n))

    def _find_joint(self, n: int) -> Joint | None:
        parts = [member._joint(n) for member in self.sets]
        known = [part for part in parts if part is not None]
        return Joint.of(known) if len(known) == len(parts) else None

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.both([member.conic(n) for member in self.sets])

    def _attributes_at(self, place: tuple[int, ...]) -> dict[str, Any]:
        single = super()._attributes_at(place)
        oracle = joined(single["sets"], self.point_shape)
        return single | {"oracle": oracle, "inside": well_inside(oracle, self.point_shape)}

    def _why_unfinished(self, what: str, given: Array) -> str:
        if what == "support":
            return super()._why_unfinished(what, given)
        gap = np.max(in_double(self, "_nearest", given).gap)
        return (
            f"Intersection.{what}: after {CYCLES} cycles of Dykstra's algorithm the members' points are still "
            f"{gap:.3g} apart, so the sets do not meet or barely touch. Enlarge one of them, or write the intersection "
            "as a single set (Polyhedron, BoxBudget, from_cvxpy)."
        )
