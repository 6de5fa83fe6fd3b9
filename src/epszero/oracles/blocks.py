"""One oracle per block of x (per agent), each with its own data set or all with one.

B̂(x) = (B̂₁(x), …, B̂_N(x)) with B̂ᵢ averaged over agent i's own samples: the paper's local data sets D_{sⁱ}.
"""

from collections.abc import Callable
from typing import Any

import jax

from epszero._types import PyTree
from epszero.oracles._base import Average, Oracle


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
    def leaves(self) -> list[Oracle]:
        """The oracles, in the order of the blocks."""
        return jax.tree.leaves(self.parts, is_leaf=_is_oracle)

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        """`xi` is one sample for all blocks, or `OwnData` with one per block."""
        return self._nested([part(x, own) for part, own in zip(self.leaves, self._own(xi), strict=True)])

    def average(self, data: PyTree, x: PyTree) -> Average:
        """`data` is one data set for all blocks, or `OwnData` with one per block."""
        parts = [part.average(own, x) for part, own in zip(self.leaves, self._own(data), strict=True)]
        return BlockMean(self._nested(parts))

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return Blocks(jax.tree.map(lambda part: part.transformed(by), self.parts, is_leaf=_is_oracle))

    def _own(self, data: PyTree) -> list[PyTree]:
        return data if isinstance(data, OwnData) else [data] * len(self.leaves)

    def _nested(self, parts: list[Any]) -> PyTree:
        return jax.tree.unflatten(jax.tree.structure(self.parts, is_leaf=_is_oracle), parts)


class OwnData(list[Any]):
    """One data set per block, told apart from a data set that happens to be a list."""


class BlockMean(Average):
    """(B̂₁(x), …, B̂_N(x))."""

    parts: PyTree

    def __init__(self, parts: PyTree) -> None:
        self.parts = parts

    def __call__(self, x: PyTree) -> PyTree:
        return jax.tree.map(lambda part: part(x), self.parts, is_leaf=lambda leaf: isinstance(leaf, Average))


def _is_oracle(leaf: Any) -> bool:
    return isinstance(leaf, Oracle)
