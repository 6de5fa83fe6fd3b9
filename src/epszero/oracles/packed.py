"""Points of many small blocks with blocks of one shape stacked in one array, as compiled programs like them.

A program that treats N leaves one by one has N times as many operations, and takes as long to compile.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._types import PyTree


class Packed(list[Any]):
    """Arrays that hold the blocks of one shape each, told apart from a point that happens to be a list."""


jax.tree_util.register_pytree_node(Packed, lambda node: (list(node), None), lambda _, parts: Packed(parts))


class Packing(NamedTuple):
    """Which leaves are stacked; hashable."""

    structure: Any  # of points
    pools: tuple[tuple[int, ...], ...]  # places of leaves of one shape

    @staticmethod
    def of(x: PyTree) -> "Packing":
        """For points like x."""
        leaves, structure = jax.tree.flatten(x)
        pools: dict[Any, list[int]] = {}
        for place, leaf in enumerate(leaves):
            pools.setdefault((np.shape(leaf), str(jnp.result_type(leaf))), []).append(place)
        return Packing(structure, tuple(map(tuple, pools.values())))

    @property
    def homes(self) -> dict[int, tuple[int, int]]:
        """Of each leaf: its pool, and its row there."""
        return {leaf: (pool, row) for pool, several in enumerate(self.pools) for row, leaf in enumerate(several)}

    def pack(self, x: PyTree) -> Packed:
        """A point, or what is nested like one; what is packed stays so."""
        if isinstance(x, Packed):
            return x
        leaves = jax.tree.leaves(x)
        library = np if all(isinstance(leaf, np.ndarray | np.generic) for leaf in leaves) else jnp
        return Packed(library.stack([leaves[place] for place in pool]) for pool in self.pools)

    def unpack(self, x: Packed) -> PyTree:
        """The way back."""
        rows = {place: array[row] for pool, array in zip(self.pools, x, strict=True) for row, place in enumerate(pool)}
        return jax.tree.unflatten(self.structure, [rows[place] for place in range(len(rows))])
