"""O(x, ξ) = G(x) + C(x)φ(ξ): the sample average needs the samples only through the mean of φ.

B̂(x) = G(x) + C(x)φ̄ exactly, so φ̄ is computed once and an iteration's cost does not depend on s. Additive noise is
the case C = identity; a random quadratic is affine in its coefficients. The same structure is what the strongest
certificates lean on (THEORY 3b).
"""

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._double import to_numpy
from epszero._points import norm
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle
from epszero.oracles.general import SampleMean, chunk_size


class AffineInFeatures(Oracle):
    """G(x) + C(x)φ(ξ).

    `C(x)` returns an array with the axes of G(x) followed by the axes of φ (a pytree of them for a pytree x); or
    `C(x, f)` returns the product directly, which must be linear in f. `phi=None` means φ(ξ) = ξ. The values may be
    vectors, for an operator, or numbers, for a loss to be minimised.
    """

    static = ("joint", "features", "structure_name")
    joint: Opaque  # (x, f) ↦ G(x) + C(x)f
    features: Opaque  # (·, ξ) ↦ φ(ξ)
    structure_name: str

    @known_arguments
    def __init__(self, G: Callable[..., Any], C: Callable[..., Any], phi: Callable[..., Any] | None = None) -> None:
        _require_functions(G=G, C=C, phi=phi or _own_features)
        product = C if _takes_two(C) else _contraction(C)
        self.joint = Opaque(lambda x, f: jax.tree.map(jnp.add, G(x), product(x, f)))
        self.features = _features(phi)
        self.structure_name = "affine in features"

    @property
    def structure(self) -> str:
        return self.structure_name

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        return self.joint(x, self.features((), xi))

    def average(self, data: PyTree, x: PyTree) -> Average:
        return FeatureMean(self.joint, feature_mean(self.features, data))

    def collapsed(self, data: PyTree) -> Collapsed:
        rows, nested = feature_rows(self.features, data)
        return Collapsed([rows], lambda means: FeatureMean(self.joint, nested(means[0])), is_own(self.features), [0])

    def bend(self, x: PyTree, xi: PyTree, other: PyTree) -> Array:
        return bend_between(lambda f: self.joint(x, f), self.features((), xi), self.features((), other))

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return _joint_oracle(by(self.joint.function), self.features, self.structure_name)


@known_arguments
def Additive(G: Callable[..., Any], phi: Callable[..., Any] | None = None) -> AffineInFeatures:
    """G(x) + φ(ξ): additive noise. φ(ξ) broadcasts against G(x), as prices do that all agents pay alike."""
    _require_functions(G=G, phi=phi or _own_features)
    return _joint_oracle(lambda x, f: jax.tree.map(jnp.add, G(x), f), _features(phi), "additive")


@known_arguments
def Affine(f: Callable[..., Any], phi: Callable[..., Any] | None = None) -> AffineInFeatures:
    """f(x, φ(ξ)) with f(x, ·) affine: the mean over samples is f(x, φ̄). `phi=None` means φ(ξ) = ξ.

    It serves costs and losses as well as operators; `ez.AggregativeGame` takes it with its own four arguments.
    """
    _require_functions(f=f, phi=phi or _own_features)
    return _joint_oracle(f, _features(phi), "affine in features")


def bend_between(value: Callable[[PyTree], PyTree], f: PyTree, g: PyTree) -> Array:
    """How far `value` is, halfway between two features, from the mean of its values there, relative to their size."""
    middle = value(jax.tree.map(lambda a, b: 0.5 * (a + b), f, g))
    ends = value(f), value(g)
    gap = jax.tree.map(lambda m, a, b: m - 0.5 * (a + b), middle, *ends)
    return norm(gap) / jnp.maximum(norm(ends[0]) + norm(ends[1]) + norm(middle), 1e-300)


def feature_mean(features: Opaque, data: PyTree) -> PyTree:
    """(1/s) Σ φ(ξᵢ), where `features` is (·, ξ) ↦ φ(ξ)."""
    if features.function is _own_features:
        return jax.tree.map(lambda leaf: np.tensordot(np.full(len(leaf), 1 / len(leaf)), leaf, axes=1), data)
    return _evaluated(SampleMean(features, data, chunk_size(features, data, ())))


def is_own(features: Opaque) -> bool:
    """Whether φ(ξ) = ξ."""
    return features == OWN_FEATURES


def feature_rows(features: Opaque, data: PyTree) -> tuple[FloatArray, Callable[[Any], PyTree]]:
    """φ(ξ_j), flat, one row per sample; and the way from a flat vector back to the nest of φ."""
    values = data if is_own(features) else to_numpy(_every_feature(features, data))
    leaves, structure = jax.tree.flatten(values)
    inner = [np.shape(leaf)[1:] for leaf in leaves]
    ends = np.cumsum([math.prod(shape) for shape in inner])
    flat_leaves = [np.reshape(leaf, (len(leaf), -1)) for leaf in leaves]
    rows = flat_leaves[0] if len(leaves) == 1 else np.concatenate(flat_leaves, axis=1)

    def nested(flat: Any) -> PyTree:
        pieces = np.split(flat, ends[:-1]) if isinstance(flat, np.ndarray) else jnp.split(flat, ends[:-1])
        return structure.unflatten([piece.reshape(shape) for piece, shape in zip(pieces, inner, strict=True)])

    return rows, nested


@eqx.filter_jit
def _every_feature(features: Opaque, data: PyTree) -> PyTree:
    return jax.vmap(lambda xi: features((), xi))(data)


@eqx.filter_jit
def _evaluated(mean: SampleMean) -> PyTree:
    return mean(())


class FeatureMean(Average):
    """G(x) + C(x)φ̄."""

    static = ("joint",)
    joint: Opaque
    mean: PyTree  # φ̄

    def __init__(self, joint: Opaque, mean: PyTree) -> None:
        self.joint = joint
        self.mean = mean

    def __call__(self, x: PyTree) -> PyTree:
        return self.joint(x, self.mean)


def _joint_oracle(joint: Callable[..., Any], features: Opaque, structure: str) -> AffineInFeatures:
    oracle = object.__new__(AffineInFeatures)
    oracle.joint = Opaque(joint)
    oracle.features = features
    oracle.structure_name = structure
    return oracle


def _own_features(_: PyTree, xi: PyTree) -> PyTree:
    return xi


OWN_FEATURES = Opaque(_own_features)
"""φ(ξ) = ξ."""


def _features(phi: Callable[..., Any] | None) -> Opaque:
    return OWN_FEATURES if phi is None else _features_of(Opaque(phi))


@functools.lru_cache(maxsize=256)
def _features_of(phi: Opaque) -> Opaque:
    """One function for each φ, so that costs with the same features are seen to have them."""
    return Opaque(lambda _, xi: phi(xi))


def _require_functions(**functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            refuse(name, f"must be a function, but it is a {type(function).__name__}", "Pass a callable")


def _takes_two(function: Callable[..., Any]) -> bool:
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return len([p for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]) == 2


def _contraction(C: Callable[..., Any]) -> Callable[..., Any]:
    def product(x: PyTree, f: Any) -> PyTree:
        return jax.tree.map(lambda c: jnp.tensordot(c, f, axes=jnp.ndim(f)), C(x))

    return product
