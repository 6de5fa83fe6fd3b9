"""B known exactly: a function of x alone (the paper's Algorithm 1)."""

from collections.abc import Callable
from typing import Any

from epszero._types import PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle
from epszero.oracles.traced import traced


class Exact(Oracle):
    """B(x), no samples."""

    function: Any  # an `Opaque`, or `Traced`

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = Opaque(function)

    @property
    def structure(self) -> str:
        return "known"

    @property
    def uncertain(self) -> bool:
        return False

    def __call__(self, x: PyTree, xi: PyTree = None) -> PyTree:
        return self.function(x)

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed:
        return Collapsed([], lambda _: self.average(data, x), phi=[], sets=[])

    def average(self, data: PyTree, x: PyTree) -> Average:
        return KnownMean(traced(self.function, x))

    def traced(self, x: PyTree, row: PyTree) -> Oracle:
        return self.replaced(function=traced(self.function, x))

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return Exact(by(self.function.function))


class KnownMean(Average):
    """B itself."""

    function: Any  # an `Opaque`, or a pytree that can be called

    def __init__(self, function: Any) -> None:
        self.function = function

    def __call__(self, x: PyTree) -> PyTree:
        return self.function(x)
