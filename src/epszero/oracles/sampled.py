"""B̂ over all samples of one data set, and over some of them: (1/b) Σ_{i ∈ S} O(x, ξᵢ), for methods that draw batches.

Where O is affine in features the mean over a batch is O at the mean of the batch's features: one evaluation, whatever
the size of the batch. Elsewhere O is evaluated at each sample of the batch, in chunks of bounded memory
(sample_mean.py).
"""

from typing import Any

import jax
import jax.numpy as jnp

from epszero._points import one_row, shaped
from epszero._types import Array, PyTree
from epszero.oracles._base import Average, Oracle
from epszero.oracles.agents import WithParameters
from epszero.oracles.features import FeatureMean
from epszero.oracles.sample_mean import SampleMean, chunk_size, sample_count


class SampledMean(Average):
    """B̂, with the samples at hand."""

    whole: Average
    each: Any  # (x, ξ) ↦ O(x, ξ); None where the rows are features and `whole` takes their mean
    rows: PyTree  # leading axis: the samples

    def __init__(self, whole: Average, each: Any, rows: PyTree) -> None:
        self.whole = whole
        self.each = each
        self.rows = rows

    @property
    def size(self) -> int:
        """s."""
        return sample_count(self.rows)

    def __call__(self, x: PyTree) -> PyTree:
        return self.whole(x)

    def over(self, x: PyTree, batch: Array) -> PyTree:
        """The mean over the samples with the indices in `batch`."""
        chosen = jax.tree.map(lambda leaf: jnp.asarray(leaf)[batch], self.rows)
        if self.each is None:
            return _with_mean(self.whole, jnp.mean(chosen, axis=0))(x)
        return SampleMean(self.each, chosen, chunk_size(self.each, chosen, x))(x)


def sampled(oracle: Oracle, data: PyTree, x: PyTree, whole: Average) -> SampledMean:
    """`whole`, the average over `data`, with its samples."""
    inner = whole.inner if isinstance(whole, WithParameters) else whole
    if isinstance(inner, FeatureMean):
        found = oracle.collapsed(data, x)
        if found is not None and len(found.features) == 1:
            return SampledMean(whole, None, found.features[0])
    return SampledMean(whole, oracle.traced(x, one_row(data)), data)


def _with_mean(B: Average, mean: Array) -> Average:
    """The same average with another mean of the features, flat."""
    if isinstance(B, WithParameters):
        return B.replaced(inner=_with_mean(B.inner, mean))
    assert isinstance(B, FeatureMean)
    return B.replaced(mean=shaped(B.mean, mean))
