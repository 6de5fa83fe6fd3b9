"""Features φ(ξ) of samples: their rows, their mean φ̄, and the average G(x) + C(x)φ̄ that needs no more of the data."""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._memory import remembered
from epszero._points import flat, flat_rows, norm, pick, shaped
from epszero._trace.features import Recovered, recovered
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles._base import Average, Opaque
from epszero.oracles.sample_mean import SampleMean, chunk_size
from epszero.oracles.traced import traced


def _own_features(_: PyTree, xi: PyTree) -> PyTree:
    return xi


OWN_FEATURES = Opaque(_own_features)
"""φ(ξ) = ξ."""


def bend_between(value: Callable[[PyTree], PyTree], f: PyTree, g: PyTree) -> Array:
    """How far `value` is, halfway between two features, from the mean of its values there, relative to their size."""
    middle = value(jax.tree.map(lambda a, b: 0.5 * (a + b), f, g))
    ends = value(f), value(g)
    gap = jax.tree.map(lambda m, a, b: m - 0.5 * (a + b), middle, *ends)
    return norm(gap) / jnp.maximum(norm(ends[0]) + norm(ends[1]) + norm(middle), 1e-300)


def feature_mean(features: Any, data: PyTree) -> PyTree:
    """(1/s) Σ φ(ξᵢ), where `features` is (·, ξ) ↦ φ(ξ)."""
    if is_own(features):
        return jax.tree.map(lambda leaf: np.tensordot(np.full(len(leaf), 1 / len(leaf)), leaf, axes=1), data)
    return _evaluated(SampleMean(features, data, chunk_size(features, data, ())))


def is_own(features: Any) -> bool:
    """Whether φ(ξ) = ξ."""
    return isinstance(features, Opaque) and features == OWN_FEATURES


def feature_rows(features: Any, data: PyTree) -> tuple[FloatArray, Callable[[Any], PyTree]]:
    """φ(ξ_j), flat, one row per sample; and the way from a flat vector back to the nest of φ."""
    values = data if is_own(features) else to_numpy(_every_feature(features, data))
    one = pick(values, 0)
    return flat_rows(values), lambda vector: shaped(one, vector)


def sample_rows(data: PyTree) -> FloatArray:
    """ξ_j in one row each."""
    return feature_rows(OWN_FEATURES, data)[0]


@eqx.filter_jit
def _every_feature(features: Any, data: PyTree) -> PyTree:
    return jax.vmap(lambda xi: features((), xi))(data)


@eqx.filter_jit
def _evaluated(mean: SampleMean) -> PyTree:
    return mean(())


class FeatureMean(Average):
    """G(x) + C(x)φ̄."""

    joint: Any  # an `Opaque`, or a pytree that can be called
    mean: PyTree  # φ̄

    def __init__(self, joint: Any, mean: PyTree) -> None:
        self.joint = joint
        self.mean = mean

    def __call__(self, x: PyTree) -> PyTree:
        return self.joint(x, self.mean)


class Found(NamedTuple):
    """f(x, ξ) = joint(x, φ(ξ)), affine in φ(ξ): found by following the operations of f."""

    joint: Any  # an `Opaque`, or `Traced`
    features: Any  # (·, ξ) ↦ φ(ξ)


def found_features(owner: Any, function: Any, x: PyTree, row: PyTree, name: str = "") -> Found | None:
    """The features of a sample like `row` in which `function` is proved affine; made once per owner, name and shape."""
    leaves, structure = jax.tree.flatten((x, row))
    shapes = tuple(jax.ShapeDtypeStruct(np.shape(leaf), jnp.result_type(leaf)) for leaf in leaves)
    key = "features", name, structure, tuple((one.shape, one.dtype) for one in shapes)
    found = remembered(owner, key, lambda: _found(function, *jax.tree.unflatten(structure, shapes)))
    return found and Found(function if found.joint is None else found.joint, found.features)


def _found(function: Any, x: PyTree, row: PyTree) -> Found | None:
    """`joint` None stands for the function itself, which may hold the owner."""
    seen = recovered(function, x, row)
    if seen is None:
        return None
    return Found(None, OWN_FEATURES) if seen.features is None else _named(seen, x, row)


def _named(seen: Recovered, x: PyTree, row: PyTree) -> Found:
    found: Any = seen.features
    features = Opaque(lambda _, xi: found(xi))
    joint = traced(Opaque(seen.joint), x, jax.eval_shape(found, row))
    return Found(joint, traced(features, (), row))


def flat_features(features: Any) -> Callable[[PyTree], Array] | None:
    """ξ ↦ φ(ξ) in one row; None for ξ itself."""
    if is_own(features):
        return None
    return lambda xi: flat(features((), xi))
