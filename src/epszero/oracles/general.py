"""Any O(x, ξ). Where it is found to be affine in features of ξ, its average needs the samples only through their mean.

What is not found to be so is summed over all samples (sample_mean.py), at a cost of O(s) per evaluation.
"""

from collections.abc import Callable
from typing import Any

from epszero._points import one_row
from epszero._types import PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle
from epszero.oracles.affine import AffineInFeatures, joint_oracle
from epszero.oracles.features import found_features
from epszero.oracles.sample_mean import SampleMean, chunk_size


class General(Oracle):
    """O(x, ξ) of which nothing more is declared."""

    static = ("function",)
    function: Opaque

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = Opaque(function)

    @property
    def structure(self) -> str:
        return "general"

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        return self.function(x, xi)

    def seen(self, data: PyTree, x: PyTree) -> AffineInFeatures | None:
        """The same oracle as affine in features, where it is found to be."""
        found = found_features(self.function, x, one_row(data))
        return None if found is None else joint_oracle(found.joint, found.features)

    def average(self, data: PyTree, x: PyTree) -> Average:
        seen = self.seen(data, x)
        if seen is not None:
            return seen.average(data, x)
        return SampleMean(self.function, data, chunk_size(self.function, data, x))

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed | None:
        seen = self.seen(data, x)
        return None if seen is None else seen.collapsed(data, x)

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return General(by(self.function.function))
