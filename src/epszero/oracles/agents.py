"""Many agents that differ by parameters only and feel each other through the average strategy.

O_i(x, ξ) = g(x_i, x̄, ξ, p_i) with x̄ = (1/N) Σ x_j, for all i at once: x and p are stacked along a leading axis of
agents and g is mapped over it, so time and memory are O(N). The parameters are inputs of the compiled program, not
constants. With data of their own (`private`, or one data set per agent) agent i sees ξ_i. Data sets of different
lengths are padded to the longest and weighted, so that agent i's mean is over its own s_i samples.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import on_device
from epszero._memory import remembered
from epszero._points import one_row, pick, stack
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle, OwnData
from epszero.oracles.exact import KnownMean
from epszero.oracles.features import (
    FeatureMean,
    bend_between,
    feature_mean,
    feature_rows,
    flat_features,
    found_features,
    is_own,
)
from epszero.oracles.sample_mean import SampleMean, chunk_size, sample_count
from epszero.oracles.traced import Traced, traced


class Agents(Oracle):
    """g(own, average, ξ, own parameters), stacked over the agents."""

    static = ("uncertain_", "private", "count")
    gradient: Any  # g, an `Opaque` or a pytree that can be called; where nothing is uncertain it ignores ξ
    features: Any  # (·, ξ) ↦ φ(ξ) where g is affine in φ(ξ) and takes it for ξ; None where it takes ξ itself
    uncertain_: bool
    private: bool  # a sample has one row per agent
    parameters: PyTree
    count: int

    def __init__(
        self,
        gradient: Any,
        parameters: PyTree,
        count: int,
        *,
        uncertain: bool,
        features: Any = None,
        private: bool = False,
    ) -> None:
        self.gradient = gradient if isinstance(gradient, Opaque | Traced) else Opaque(gradient)
        self.features = features
        self.uncertain_ = uncertain
        self.private = private
        with jax.enable_x64(True):
            self.parameters = on_device(parameters)
        self.count = count

    @property
    def structure(self) -> str:
        if not self.uncertain:
            return "known"
        return "general" if self.features is None else "affine in features"

    @property
    def uncertain(self) -> bool:
        return self.uncertain_

    @property
    def data_sets(self) -> int | None:
        return self.count

    def __call__(self, x: PyTree, xi: PyTree = None) -> PyTree:
        return self._at(x, self._seen(xi), self.private or isinstance(xi, OwnData))

    def traced(self, x: PyTree, row: PyTree) -> "Agents":
        """`row`: one sample, or `OwnData` with one per agent."""
        if not self.uncertain:
            return self.replaced(gradient=self._traced_gradient(x, None))
        one = row[0] if isinstance(row, OwnData) else one_row(row) if self.private else row
        features = self.features
        if features is None:
            return self.replaced(gradient=self._traced_gradient(x, one))
        if is_own(features):
            return self.replaced(gradient=self._traced_gradient(x, one))
        features = traced(features, (), one)
        return self.replaced(gradient=self._traced_gradient(x, jax.eval_shape(features, (), one)), features=features)

    def _traced_gradient(self, x: PyTree, xi: PyTree) -> Any:
        return traced(self.gradient, one_row(x), one_row(x), xi, one_row(self.parameters))

    def average(self, data: PyTree, x: PyTree) -> Average:
        point = (x, self.parameters)
        if not self.uncertain:
            return WithParameters(KnownMean(Known(self._traced_gradient(x, None))), self.parameters)
        each = self.private or isinstance(data, OwnData)
        seen = self.seen(data, x)
        if seen is not None and seen.features is not None:
            means = [feature_mean(seen.features, own) for own in data] if isinstance(data, OwnData) else None
            mean = feature_mean(seen._rowwise, data) if means is None else stack(means)
            return WithParameters(FeatureMean(Every(seen.gradient, each), mean), self.parameters)
        gradient = self.traced(x, _one_sample(data)).gradient
        every = Every(gradient, each)
        if isinstance(data, OwnData):
            every, data = Weighted(gradient), _padded(data)
        return WithParameters(SampleMean(every, data, chunk_size(every, data, point)), self.parameters)

    def seen(self, data: PyTree, x: PyTree) -> "Agents | None":
        """The same oracle with features, as declared or as found from what g does with one agent's data."""
        key = "seen", isinstance(data, OwnData), _kinds(x), _kinds(_one_sample(data))
        return remembered(self, key, lambda: self._find_seen(data, x))

    def _find_seen(self, data: PyTree, x: PyTree) -> "Agents | None":
        known = self.traced(x, _one_sample(data))
        if known.features is not None:
            return known
        one = data[0] if isinstance(data, OwnData) else data
        row = one_row(one_row(one) if self.private and not isinstance(data, OwnData) else one)
        point = (one_row(x), one_row(x), one_row(self.parameters))
        found = found_features(self.gradient, OfOne(known.gradient), point, row)
        if found is None:
            return None
        return self.replaced(gradient=Through(found.joint), features=found.features)

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed | None:
        if not self.uncertain:
            return Collapsed([], lambda _: self.average(data, x), phi=[], sets=[])
        seen = self.seen(data, x)
        if seen is None:
            return None
        sets = list(data) if isinstance(data, OwnData) else [data]
        found = [feature_rows(seen._rowwise, own) for own in sets]
        every = Every(seen.gradient, self.private or isinstance(data, OwnData))

        def at(means: list[Any]) -> Average:
            nested = [nest(mean) for (_, nest), mean in zip(found, means, strict=True)]
            mean = stack(nested) if isinstance(data, OwnData) else nested[0]
            return WithParameters(FeatureMean(every, mean), self.parameters)

        phi = flat_features(seen._rowwise)
        return Collapsed([rows for rows, _ in found], at, [phi] * len(sets), list(range(len(sets))))

    def bend(self, x: PyTree, xi: PyTree, other: PyTree) -> Array:
        if self.features is None:
            return jnp.asarray(0.0)
        each = self.private or isinstance(xi, OwnData)
        return bend_between(lambda f: self._at(x, f, each), self._seen(xi), self._seen(other))

    @property
    def _rowwise(self) -> Any:
        """Features of one sample: of each agent's row where it has one."""
        assert self.features is not None
        return Rowwise(self.features) if self.private and not is_own(self.features) else self.features

    def _seen(self, xi: PyTree) -> PyTree:
        """What g gets of one sample: ξ or φ(ξ), a row per agent where each has its own."""
        if not self.uncertain:
            return None
        if isinstance(xi, OwnData):
            return stack([xi_i if self.features is None else self.features((), xi_i) for xi_i in xi])
        return xi if self.features is None else self._rowwise((), xi)

    def of_one_agent(self, row: PyTree) -> PyTree:
        """What g gets of one sample, for the first agent."""
        if not self.uncertain:
            return None
        seen = self._seen(row)
        return pick(seen, 0) if self.private or isinstance(row, OwnData) else seen

    def _at(self, x: PyTree, seen: PyTree, each: bool) -> PyTree:
        return Every(self.gradient, each)((x, self.parameters), seen)


class WithParameters(Average):
    """B̂(x) where the function underneath takes (x, parameters)."""

    inner: Average
    parameters: PyTree

    def __init__(self, inner: Average, parameters: PyTree) -> None:
        self.inner = inner
        self.parameters = parameters

    def __call__(self, x: PyTree) -> PyTree:
        return self.inner((x, self.parameters))


# What is made of g, as pytrees that can be called: their leaves are the numbers of g.


class Every(Node):
    """((x, p), ξ) ↦ (g(x_i, x̄, ξ, p_i))_i, with ξ_i in place of ξ where `each` agent has its own."""

    static = ("each",)
    gradient: Any
    each: bool

    def __init__(self, gradient: Any, each: bool) -> None:
        self.gradient, self.each = gradient, each

    def __call__(self, point: PyTree, xi: PyTree) -> PyTree:
        x, parameters = point
        average = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), x)
        return jax.vmap(self.gradient, in_axes=(0, None, 0 if self.each else None, 0))(x, average, xi, parameters)


class OfOne(Node):
    """((x_i, x̄, p_i), ξ) ↦ g."""

    gradient: Any

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient

    def __call__(self, point: PyTree, xi: PyTree) -> PyTree:
        return self.gradient(point[0], point[1], xi, point[2])


class Through(Node):
    """g with the features that were found in place of ξ."""

    joint: Any

    def __init__(self, joint: Any) -> None:
        self.joint = joint

    def __call__(self, own: PyTree, average: PyTree, features: PyTree, parameters: PyTree) -> PyTree:
        return self.joint((own, average, parameters), features)


class Known(Node):
    """(x, p) ↦ (g(x_i, x̄, p_i))_i."""

    gradient: Any

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient

    def __call__(self, point: PyTree) -> PyTree:
        return Every(self.gradient, False)(point, None)


class Weighted(Node):
    """((x, p), (ξ, w)) ↦ (w_i g(x_i, x̄, ξ_i, p_i))_i."""

    gradient: Any

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient

    def __call__(self, point: PyTree, row: PyTree) -> PyTree:
        xi, weights = row
        values = Every(self.gradient, True)(point, xi)
        return jax.tree.map(lambda leaf: leaf * weights.reshape(-1, *[1] * (leaf.ndim - 1)), values)


class Rowwise(Node):
    """(·, ξ) ↦ (φ(ξ_i))_i."""

    features: Any

    def __init__(self, features: Any) -> None:
        self.features = features

    def __call__(self, nothing: PyTree, xi: PyTree) -> PyTree:
        return jax.vmap(lambda row: self.features(nothing, row))(xi)


def _one_sample(data: PyTree) -> PyTree:
    """The shape of one sample, or of one per agent."""
    return OwnData(one_row(own) for own in data) if isinstance(data, OwnData) else one_row(data)


def _kinds(tree: PyTree) -> Any:
    """A key: nesting, shapes and types, which are all that tracing looks at."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple((np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)


def _padded(data: OwnData) -> PyTree:
    """(ξ of shape (s, N, …), weights (s, N)): row j of agent i, repeated with weight 0 beyond s_i."""
    sizes = np.array([sample_count(own) for own in data])
    longest = int(sizes.max())
    weights = np.where(np.arange(longest)[:, None] < sizes, longest / sizes, 0.0)
    filled = [jax.tree.map(lambda leaf: np.resize(leaf, (longest, *leaf.shape[1:])), own) for own in data]
    return jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *filled), weights
