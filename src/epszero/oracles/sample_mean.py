"""B̂(x) = (1/s) Σ O(x, ξᵢ), summed in chunks of bounded memory.

Cost O(s) per evaluation. A chunk holds so many samples that all intermediate values of O together stay near
`CHUNK_BYTES`, which fits a processor's cache; the samples themselves are never copied.
"""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import add, one_row
from epszero._types import PyTree
from epszero.oracles._base import Average

CHUNK_BYTES = 4 << 20


class SampleMean(Average):
    """(1/s) Σ O(x, ξᵢ)."""

    static = ("chunk",)
    function: Any  # an `Opaque`, or a pytree that can be called
    data: PyTree  # leading axis: the samples
    chunk: int  # how many samples are evaluated at once

    def __init__(self, function: Any, data: PyTree, chunk: int) -> None:
        self.function = function
        self.data = data
        self.chunk = chunk

    def __call__(self, x: PyTree) -> PyTree:
        s = sample_count(self.data)
        whole, rest = divmod(s, self.chunk)

        def total(start: Any, size: int) -> PyTree:
            rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, size), self.data)
            values = jax.vmap(self.function, in_axes=(None, 0))(x, rows)
            return jax.tree.map(lambda leaf: jnp.sum(leaf, axis=0, dtype=jnp.promote_types(leaf.dtype, float)), values)

        sums = total(0, self.chunk)
        if whole > 1:
            sums = jax.lax.fori_loop(1, whole, lambda i, so_far: add(so_far, total(i * self.chunk, self.chunk)), sums)
        if rest:
            sums = add(sums, total(whole * self.chunk, rest))
        return jax.tree.map(lambda leaf: leaf / s, sums)


def sample_count(data: PyTree) -> int:
    """s, the length of the leading axis."""
    return int(jax.tree.leaves(data)[0].shape[0])


def chunk_size(function: Any, data: PyTree, x: PyTree) -> int:
    """How many samples to evaluate at once: all intermediate values of O for them fill about CHUNK_BYTES."""
    given = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype), (function, x, one_row(data)))
    leaves, structure = jax.tree.flatten(given)
    return int(np.clip(CHUNK_BYTES // _bytes_per_sample(structure, tuple(leaves)), 1, sample_count(data)))


@functools.lru_cache(maxsize=1024)
def _bytes_per_sample(structure: Any, leaves: tuple[Any, ...]) -> int:
    function, point, row = jax.tree.unflatten(structure, leaves)
    traced = jax.make_jaxpr(lambda function, point, row: function(point, row))(function, point, row)
    values = [variable.aval for equation in traced.jaxpr.eqns for variable in equation.outvars]
    return max(1, sum(8 * math.prod(getattr(value, "shape", ())) for value in (*values, *jax.tree.leaves(row))))
