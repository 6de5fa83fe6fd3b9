"""Any O(x, ξ). Where it is found to be affine in features of ξ, its average needs the samples only through their mean.

What is not found to be so is summed over all samples (sample_mean.py), at a cost of O(s) per evaluation.
"""

from collections.abc import Callable
from typing import Any

from epszero._points import one_row
from epszero._types import PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle
from epszero.oracles.affine import AffineInFeatures, joint_oracle
from epszero.oracles.features import FeatureMean, feature_mean, found_features
from epszero.oracles.sample_mean import SampleMean, chunk_size
from epszero.oracles.traced import traced


class General(Oracle):
    """O(x, ξ) of which nothing more is declared."""

    function: Any  # an `Opaque`, or `Traced`

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = Opaque(function)

    @property
    def structure(self) -> str:
        return "general"

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        return self.function(x, xi)

    def seen(self, data: PyTree, x: PyTree) -> AffineInFeatures | None:
        """The same oracle as affine in features, where it is found to be."""
        row = one_row(data)
        found = found_features(self.function, traced(self.function, x, row), x, row)
        return None if found is None else joint_oracle(found.joint, found.features)

    def traced(self, x: PyTree, row: PyTree) -> Oracle:
        return self.replaced(function=traced(self.function, x, row))

    def average(self, data: PyTree, x: PyTree) -> Average:
        seen = self.seen(data, x)
        if seen is not None:
            return seen.average(data, x)
        function = traced(self.function, x, one_row(data))
        return SampleMean(function, data, chunk_size(function, data, x))

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed | None:
        seen = self.seen(data, x)
        return None if seen is None else seen.collapsed(data, x)

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return General(by(self.function.function))


def mean_of(owner: Any, function: Any, name: str, data: PyTree, x: PyTree) -> Average:
    """(1/s) Σ f(x, ξ_j), of a pytree that can be called; what is found of it is remembered for its owner by name."""
    found = found_features(owner, function, x, one_row(data), name)
    if found is not None:
        return FeatureMean(found.joint, feature_mean(found.features, data))
    return SampleMean(function, data, chunk_size(function, data, x))
