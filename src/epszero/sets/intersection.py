"""C_1 ∩ C_2 ∩ …: the points that the sets have in common.

Projection by Dykstra's algorithm (sets/_dykstra.py). Where it does not converge, a direct call raises
`NotConvergedError` and a call under the user's own `jit` answers NaN. `contains` asks each member. Support: exact, by
Clarabel on the joined conic forms. Diameter: an upper bound, the smallest of the members' and of the diagonal of the
box around the intersection. Emptiness is refused at construction: proved by Clarabel where the dimension is known and
the members are single sets with conic forms; else, where the dimension is known, Dykstra's algorithm must find a common
point. Members may be batches.
"""

from functools import reduce
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._double import in_double
from epszero._types import Array
from epszero.sets._base import NotConvergedError as NotConvergedError
from epszero.sets._base import Set
from epszero.sets._common import agreeing, joined, refuse_apart, refuse_disjoint
from epszero.sets._conic import ConicForm
from epszero.sets._dykstra import CYCLES, Common, nearest_common
from epszero.sets._oracle import ConicOracle


class Intersection(Set):
    """The intersection of the sets."""

    static: ClassVar[tuple[str, ...]] = ("oracle",)
    made_of = "sets"
    sets: tuple[Set, ...]
    oracle: ConicOracle | None  # the joined conic form, where there is one

    @known_arguments
    def __init__(self, *sets: Set) -> None:
        self.sets = agreeing(sets)
        self.oracle = joined(self.sets, self.point_shape)
        if self.oracle is not None:
            refuse_disjoint(self.sets, self.oracle.form)
        elif self.point_shape is not None:
            found = in_double(self, "_nearest", np.zeros(self.batch_shape + self.point_shape))
            refuse_apart(self.sets, found.gap, found.failed)

    def _project(self, v: Array) -> Array:
        found = self._nearest(v)
        return jnp.where(jnp.expand_dims(found.failed, tuple(range(-self.rank, 0))), jnp.nan, found.x)

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

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.both([member.conic(n) for member in self.sets])

    def _attributes_at(self, place: tuple[int, ...]) -> dict[str, Any]:
        single = super()._attributes_at(place)
        return single | {"oracle": joined(single["sets"], self.point_shape)}

    def _why_unfinished(self, what: str, given: Array) -> str:
        if what == "support":
            return super()._why_unfinished(what, given)
        gap = np.max(in_double(self, "_nearest", given).gap)
        return (
            f"Intersection.{what}: after {CYCLES} cycles of Dykstra's algorithm the members' points are still "
            f"{gap:.3g} apart, so the sets do not meet or barely touch. Enlarge one of them, or write the intersection "
            "as a single set (Polyhedron, BoxBudget, from_cvxpy)."
        )
