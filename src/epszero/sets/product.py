"""C_1 × C_2 × …: one set for each leaf of a list, tuple, dictionary, or any nest of these.

Projection leaf by leaf, at the sum of the costs. The product is one set: a point is a matching nest of arrays (each
with exactly its member's batch axes), `contains` asks all leaves and batch entries, `support` adds them up, `diameter`
is the root of the sum of squares (exact where the members' are). `point()` is a nest of their points.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._shaped import norm
from epszero._types import Array, PyTree
from epszero.sets._base import Set


class Product(Set):
    """The product of the sets in the nest `sets`."""

    formula = True
    sets: PyTree

    @known_arguments
    def __init__(self, sets: PyTree) -> None:
        leaves, structure = jax.tree_util.tree_flatten_with_path(sets, is_leaf=_is_set_or_none)
        for path, leaf in leaves:
            if not _is_set(leaf):
                name = f"sets{jax.tree_util.keystr(path)}"
                refuse(name, f"must be a set, but it is {type(leaf).__name__}", "Build it from epszero.sets")
        if not leaves:
            refuse("sets", "holds no set", "Pass at least one, in a list, tuple or dictionary")
        self.sets = structure.unflatten([leaf for _, leaf in leaves])

    @property
    def rank(self) -> int:
        return 0  # a point is not one array

    def _project(self, v: PyTree) -> PyTree:
        return self._structure().unflatten([member._project(part) for member, part in self._pairs(v)])

    def _contains(self, v: PyTree, tol: float) -> Array:
        return jnp.all(jnp.stack([jnp.all(member._contains(part, tol)) for member, part in self._pairs(v)]))

    def _support(self, direction: PyTree) -> Array:
        return sum((jnp.sum(member._support(part)) for member, part in self._pairs(direction)), jnp.asarray(0.0))

    def _diameter(self) -> Array:
        return norm(jnp.concatenate([jnp.ravel(member._diameter()) for member in self._members()]))

    def _point(self) -> PyTree:
        return self._structure().unflatten([member._point() for member in self._members()])

    def _members(self) -> list[Set]:
        return jax.tree.leaves(self.sets, is_leaf=_is_set)

    def _structure(self) -> Any:
        return jax.tree.structure(self.sets, is_leaf=_is_set)

    def _pairs(self, v: PyTree) -> list[tuple[Set, Any]]:
        return list(zip(self._members(), self._structure().flatten_up_to(v), strict=True))

    def _checked(self, argument: str, v: Any) -> Any:
        structure = self._structure()
        try:
            parts = structure.flatten_up_to(v)
        except (ValueError, TypeError, KeyError) as error:
            refuse(argument, f"must be nested as the sets are ({error})", "Pass one array per set, in the same nest")
        paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(self.sets, is_leaf=_is_set)[0]]
        checked: list[Any] = []
        for path, member, part in zip(paths, self._members(), parts, strict=True):
            name = f"{argument}{jax.tree_util.keystr(path)}"
            checked.append(member._checked(name, part))
            if member.rank and np.shape(checked[-1])[: -member.rank] != member.batch_shape:
                refuse(
                    name,
                    f"has shape {np.shape(checked[-1])}, but its set is a batch of shape {member.batch_shape} "
                    "and a product holds each member once",
                    "Give the set parameters with one row per row of the point",
                )
        return structure.unflatten(checked)


def _is_set(value: Any) -> bool:
    return isinstance(value, Set)


def _is_set_or_none(node: Any) -> bool:
    return node is None or _is_set(node)
