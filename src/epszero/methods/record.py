"""Settings of a method as plain JSON, and back.

A number stays one and an array becomes nested lists. Steps in lists, tuples or dictionaries become their leaves, with
how they were nested: a point shows the nesting again. A schedule k ↦ Γ_k is a function, which no record holds; its
values Γ_0, …, Γ_K can be held in its place.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._types import Array, PyTree
from epszero.oracles import strategies


class Table:
    """A schedule that is known by its values Γ_0, …, Γ_K, and stays at the last."""

    def __init__(self, rows: Sequence[PyTree]) -> None:
        self.rows = list(rows)
        self._columns = jax.tree.map(lambda *leaves: np.stack(leaves), *self.rows)

    def __call__(self, k: Array) -> PyTree:
        return jax.tree.map(lambda column: jnp.asarray(column)[jnp.minimum(k, len(column) - 1)], self._columns)


def written(setting: Any) -> Any:
    """A number, an array, a nest of steps or a schedule as plain JSON."""
    if setting is None or isinstance(setting, bool | int | str):
        return setting
    if callable(setting):
        return {"schedule": [written(row) for row in setting.rows] if isinstance(setting, Table) else None}
    leaves, structure = jax.tree.flatten(setting)
    plain = [np.asarray(leaf, dtype=np.float64).tolist() for leaf in leaves]
    if jax.tree_util.treedef_is_leaf(structure):
        return plain[0]
    return {"nested": str(structure), "leaves": plain, "shape": _shape(setting)}


def read(setting: Any, x: PyTree) -> Any:
    """Back from `written`, for points like x."""
    if isinstance(setting, list):
        return np.array(setting, dtype=np.float64)
    if not isinstance(setting, dict):
        return setting
    if "schedule" in setting:
        if setting["schedule"] is None:
            raise LookupError("The step was a function of k, which a record does not hold. Pass the method itself.")
        return Table([read(row, x) for row in setting["schedule"]])
    leaves = [read(leaf, x) for leaf in setting["leaves"]]
    for point in (x, strategies(x)):
        structure = jax.tree.structure(point)
        if str(structure) == setting["nested"]:
            return structure.unflatten(leaves)
    if setting["shape"] is None:
        raise LookupError(
            f"The steps were nested like {setting['nested']}, but points are nested like "
            f"{jax.tree.structure(x)}. Pass the problem that the record speaks of."
        )
    return np.array(leaves, dtype=np.float64).reshape(setting["shape"]).tolist()


def _shape(nest: PyTree) -> list[int] | None:
    """The shape of a nest that is read as one array where points are not nested like it; None where it is not one."""
    try:
        return list(np.shape(np.asarray(nest, dtype=np.float64)))
    except (TypeError, ValueError):
        return None
