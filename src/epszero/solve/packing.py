"""Points of many small blocks, as a run sees them: blocks of one shape stacked in one array.

A loop over a point of N leaves is a program of N times as many operations, and takes as long to compile. Stacked, a
game of 500 agents is one array, or a few: sets and functions of one kind are mapped over its rows, an affine B̂ is one
product with its rows and columns in the new order, and any other is given the blocks as it knows them. Numbers stay the
same, but for the order in which sums are taken. Points of at most `FEW` leaves are left as they are.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat_of, shaped_like, stacked
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.functions import Function
from epszero.methods import Method
from epszero.oracles import Average, CoupledMean, Coupling, PrimalDual, strategies
from epszero.oracles.alike import Of
from epszero.oracles.matrices import AffineMean, Matrices
from epszero.oracles.packed import Packed, Packing
from epszero.problems.backward import Backward, is_part, resolved
from epszero.sets import Set

FEW = 16  # leaves of a point that is not stacked


class Stacking(NamedTuple):
    """How the points of a run are stacked."""

    packing: Packing

    def pack(self, x: PyTree) -> PyTree:
        """Strategies, or what is nested like them; multipliers as they are."""
        if isinstance(x, PrimalDual):
            return PrimalDual(self.packing.pack(x.x), x.multipliers)
        return self.packing.pack(x)

    def packed_within(self, tree: PyTree) -> PyTree:
        """A tree with all that is nested like the strategies in it stacked."""

        def alike(node: Any) -> bool:
            return jax.tree.structure(node) == self.packing.structure

        return jax.tree.map(lambda node: self.pack(node) if alike(node) else node, tree, is_leaf=alike)

    def unpacked_within(self, tree: PyTree) -> PyTree:
        """The way back."""

        def alike(node: Any) -> bool:
            return isinstance(node, Packed)

        return jax.tree.map(lambda node: self.packing.unpack(node) if alike(node) else node, tree, is_leaf=alike)

    def order(self, x: PyTree) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Which entry of the strategies is where in the stacked ones."""
        own = strategies(x)
        return flat_of(self.packing.pack(shaped_like(own, np.arange(len(flat_of(own)), dtype=float)))).astype(int)

    def averages(self, every: Sequence[Average], x: PyTree) -> list[Average]:
        """B̂ on stacked points, for several data sets; matrices that they share are reordered once."""
        order = self.order(x)
        known: dict[int, Matrices] = {}

        def one(B: Average) -> Average:
            if isinstance(B, CoupledMean):
                return CoupledMean(one(B.base), Unpacking.holding(packing=self.packing, inner=B.coupling))
            if isinstance(getattr(B, "function", getattr(B, "joint", None)), Of):
                return B  # it takes both
            if not isinstance(B, AffineMean):
                return UnpackedMean.holding(packing=self.packing, inner=B)
            if id(B.H) not in known:
                known[id(B.H)] = B.matrices.reordered(order)
            return AffineMean.of(known[id(B.H)], B.mean)

        return [one(B) for B in every]

    def side(self, A: Backward, x: PyTree) -> Backward:
        """A on stacked points."""
        if isinstance(x, PrimalDual):
            both = PrimalDual(self.side(A.block("x"), x.x).parts, A.parts.multipliers)
            return Backward.holding(parts=both)
        parts: list[Any] = []
        A.each(lambda part, leaf: parts.append(part), x)
        return Backward.holding(parts=Packed(_rows([parts[place] for place in pool]) for pool in self.packing.pools))


class UnpackedMean(Average):
    """B̂ that is given the blocks as it knows them."""

    static = ("packing",)
    packing: Packing
    inner: Average

    def __call__(self, x: PyTree) -> PyTree:
        return self.packing.pack(self.inner(self.packing.unpack(x)))


class Unpacking(Coupling):
    """Shared constraints that are given the blocks as they know them."""

    static = ("packing",)
    packing: Packing
    inner: Coupling

    def value(self, x: PyTree) -> Array:
        return self.inner.value(self.packing.unpack(x))

    def pull(self, x: PyTree, multipliers: Array) -> PyTree:
        return self.packing.pack(self.inner.pull(self.packing.unpack(x), multipliers))

    def rows(self, x: PyTree) -> int:
        return self.inner.rows(self.packing.unpack(x))


class Rows(Node):
    """Sets or functions, one for each row of an array; those of one kind together."""

    static = ("places",)
    places: tuple[tuple[int, ...], ...]  # rows of each kind
    kinds: tuple[Any, ...]  # their parts, stacked

    def resolvent(self, v: Array, step: Any) -> Array:
        """(Id + ΓA)⁻¹ v, with one step or one per row."""
        steps = jnp.broadcast_to(step, (len(v),)) if jnp.ndim(step) == 0 else step
        if len(self.kinds) == 1:
            return jax.vmap(resolved)(self.kinds[0], v, steps)
        for rows, kind in zip(self.places, self.kinds, strict=True):
            some = np.array(rows)
            v = jnp.asarray(v).at[some].set(jax.vmap(resolved)(kind, v[some], steps[some]))
        return v


def _rows(parts: list[Any]) -> Rows:
    kinds: dict[Any, list[int]] = {}
    for row, part in enumerate(parts):
        leaves, structure = jax.tree.flatten(part)
        kinds.setdefault((structure, tuple(np.shape(leaf) for leaf in leaves)), []).append(row)
    return Rows.holding(
        places=tuple(map(tuple, kinds.values())),
        kinds=tuple(stacked([parts[row] for row in rows]) for rows in kinds.values()),
    )


def stacking_of(A: Backward, x: PyTree, methods: Sequence[Method]) -> Stacking | None:
    """How to stack points like x; None where they have few leaves, or where something knows them as they are."""
    packing = Packing.of(strategies(x))
    side, leaves = A.block("x") if isinstance(x, PrimalDual) else A, packing.structure.num_leaves
    scheduled = any(getattr(getattr(method, "steps", None), "schedule", None) is not None for method in methods)
    as_they_are = scheduled or not all(method.stackable for method in methods)
    if leaves <= FEW or 2 * len(packing.pools) > leaves or as_they_are or not _by_leaf(side):
        return None
    return Stacking(packing)


def _by_leaf(A: Backward) -> bool:
    """Whether all parts are sets and functions, each of which acts on leaves one by one."""
    parts = jax.tree.leaves(A.parts, is_leaf=is_part)
    return all(isinstance(part, Set | Function) for part in parts)
