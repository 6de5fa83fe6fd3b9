"""One oracle per block of x (per agent), each with its own data set or all with one.

B̂(x) = (B̂₁(x), …, B̂_N(x)) with B̂ᵢ averaged over agent i's own samples: the paper's local data sets D_{sⁱ}. Blocks
of which nothing more is known, over one data set, are summed in one pass over the samples.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._memory import remembered, shape_of
from epszero._points import flat, one_row
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle, OwnData
from epszero.oracles.alike import Of, OwnGradient, together
from epszero.oracles.exact import Exact, KnownMean
from epszero.oracles.features import FeatureMean
from epszero.oracles.general import General
from epszero.oracles.matrices import AffineMean, Matrices, matrices_of
from epszero.oracles.traced import Traced, traced

FEW = 16  # blocks whose affine function is evaluated as it is written


class Blocks(Oracle):
    """Oracles nested like x: each sees the whole x and returns its own block."""

    parts: PyTree

    def __init__(self, parts: PyTree) -> None:
        self.parts = parts

    @property
    def structure(self) -> str:
        return "blocks"

    @property
    def uncertain(self) -> bool:
        return any(part.uncertain for part in self.leaves)

    @property
    def data_sets(self) -> int | None:
        return len(self.leaves)

    @property
    def leaves(self) -> list[Oracle]:
        """The oracles, in the order of the blocks."""
        return jax.tree.leaves(self.parts, is_leaf=_is_oracle)

    def traced(self, x: PyTree, row: PyTree) -> Oracle:
        """`row` is one sample for all blocks, or `OwnData` with one per block."""
        whole = self._together(row, x)
        if whole is not None:
            return whole
        return Blocks(self._nested([part.traced(x, own) for part, own in zip(self.leaves, self.own(row), strict=True)]))

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        """`xi` is one sample for all blocks, or `OwnData` with one per block."""
        return self._nested([part(x, own) for part, own in zip(self.leaves, self.own(xi), strict=True)])

    def average(self, data: PyTree, x: PyTree) -> Average:
        """`data` is one data set for all blocks, or `OwnData` with one per block."""
        whole = self._together(_one_sample(data), x)
        if whole is not None:
            B = whole.average(data, x)
            matrices = self._matrices(B, x)
            return B if matrices is None else AffineMean.of(matrices, getattr(B, "mean", None))
        parts = [part.average(own, x) for part, own in zip(self.leaves, self.own(data), strict=True)]
        return BlockMean(self._nested(parts))

    def _together(self, row: PyTree, x: PyTree) -> Exact | General | None:
        """One function for all blocks, where they see one data set and nothing more is declared of any."""
        kind = General if self.uncertain else Exact
        plain = [part.function for part in self.leaves if isinstance(part, kind)]
        if isinstance(row, OwnData) or len(plain) < len(self.leaves):
            return None
        seen = (row,) if self.uncertain else ()
        return remembered(self, ("together", shape_of((x, seen))), lambda: kind.holding(function=self._joint(x, *seen)))

    def _joint(self, x: PyTree, *row: PyTree) -> Any:
        """All blocks for one ξ; those of agents whose costs are alike in one batch."""
        every = [part.function for part in self.leaves if isinstance(part, Exact | General)]
        made = [one.function for one in every if isinstance(one, Opaque)]
        own = [one.cost for place, one in enumerate(made) if isinstance(one, OwnGradient) and one.agent == place]
        if isinstance(self.parts, list) and len(own) == len(every):
            return Of(together(own, x, *row), "gradients")
        return Each(self._nested([traced(one, x, *row) for one in every]))

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed | None:
        """Blocks with data of their own are told apart; over one data set those with the same features share them."""
        whole = self._together(_one_sample(data), x)
        if whole is not None:
            return self._by_matrices(whole.collapsed(data, x), x)
        leaves, own = self.leaves, isinstance(data, OwnData)
        found = [part.collapsed(seen, x) for part, seen in zip(leaves, self.own(data), strict=True)]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        keys = [i if own else _features_of(part, data, x) for i, part in enumerate(leaves)]
        uncertain = [i for i, part in enumerate(parts) if part.features]
        first = {keys[i]: i for i in reversed(uncertain)}  # where each kind of features is seen first
        kinds = sorted(first.values())
        rows = [parts[i].features[0] for i in kinds]
        ends = np.cumsum([matrix.shape[1] for matrix in rows])

        def at(means: list[Any]) -> Average:
            split = np.split if means and isinstance(means[0], np.ndarray) else jnp.split
            pieces = means if own or not means else split(means[0], ends[:-1])
            mine = {i: [pieces[kinds.index(first[keys[i]])]] for i in uncertain}
            return BlockMean(self._nested([part.at(mine.get(i, [])) for i, part in enumerate(parts)]))

        matrices = rows if own or not rows else [np.concatenate(rows, axis=1)]
        phi = [parts[i].phi[0] for i in kinds]
        whole = phi if own or len(kinds) <= 1 else [_side_by_side(phi)]
        return Collapsed(matrices, at, list(whole), kinds if own else [0] * len(matrices))

    def _matrices(self, B: Average, x: PyTree) -> Matrices | None:
        """Of the average of many blocks, where they are affine; worked out once."""
        if len(self.leaves) <= FEW or not isinstance(B, KnownMean | FeatureMean):
            return None
        function, mean = (B.function, None) if isinstance(B, KnownMean) else (B.joint, B.mean)
        key = "matrices", shape_of((x, mean))
        return remembered(self, key, lambda: matrices_of(function, x, mean))

    def _by_matrices(self, found: Collapsed | None, x: PyTree) -> Collapsed | None:
        """The same with matrices in place of the function, where there are some."""
        if found is None:
            return None
        matrices = self._matrices(found.at([np.mean(rows, axis=0) for rows in found.features]), x)
        if matrices is None:
            return found
        return found._replace(at=lambda means: AffineMean.of(matrices, getattr(found.at(means), "mean", None)))

    def bend(self, x: PyTree, xi: PyTree, other: PyTree) -> Array:
        pairs = zip(self.leaves, self.own(xi), self.own(other), strict=True)
        return jnp.max(jnp.stack([part.bend(x, *own) for part, *own in pairs]))

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return Blocks(jax.tree.map(lambda part: part.transformed(by), self.parts, is_leaf=_is_oracle))

    def own(self, data: PyTree) -> list[PyTree]:
        """What each block sees of `data`."""
        return data if isinstance(data, OwnData) else [data] * len(self.leaves)

    def _nested(self, parts: list[Any]) -> PyTree:
        return jax.tree.unflatten(jax.tree.structure(self.parts, is_leaf=_is_oracle), parts)


class BlockMean(Average):
    """(B̂₁(x), …, B̂_N(x))."""

    parts: PyTree

    def __init__(self, parts: PyTree) -> None:
        self.parts = parts

    def __call__(self, x: PyTree) -> PyTree:
        return jax.tree.map(lambda part: part(x), self.parts, is_leaf=lambda leaf: isinstance(leaf, Average))


class Each(Node):
    """(x, ξ) ↦ all blocks, nested like their functions."""

    parts: PyTree

    def __init__(self, parts: PyTree) -> None:
        self.parts = parts

    def __call__(self, x: PyTree, *xi: PyTree) -> PyTree:
        return jax.tree.map(lambda part: part(x, *xi), self.parts, is_leaf=_is_function)


def _is_function(node: Any) -> bool:
    return isinstance(node, Opaque | Traced)


def _one_sample(data: PyTree) -> PyTree:
    """The shape of one sample, or of one per block."""
    if data is None:
        return None
    return OwnData(one_row(own) for own in data) if isinstance(data, OwnData) else one_row(data)


def _features_of(part: Oracle, data: PyTree, x: PyTree) -> Any:
    """What tells the features of blocks over one data set apart."""
    return getattr(part.seen(data, x) if isinstance(part, General) else part, "features", None)


def _side_by_side(phi: list[Callable[[PyTree], Array] | None]) -> Callable[[PyTree], Array]:
    every = [one or flat for one in phi]
    return lambda xi: jnp.concatenate([one(xi) for one in every])


def _is_oracle(leaf: Any) -> bool:
    return isinstance(leaf, Oracle)
