"""O(x, ξ) = G(x) + C(x)φ(ξ): the sample average needs the samples only through the mean of φ.

B̂(x) = G(x) + C(x)φ̄ exactly, so φ̄ is computed once and an iteration's cost does not depend on s. Additive noise is
the case C = identity; a random quadratic is affine in its coefficients. The same structure is what the strongest
certificates lean on (docs/theory.md).
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from epszero._checks import known_arguments, refuse
from epszero._points import one_row
from epszero._types import Array, PyTree
from epszero.oracles._base import Average, Collapsed, Opaque, Oracle
from epszero.oracles.features import (
    OWN_FEATURES,
    FeatureMean,
    bend_between,
    feature_mean,
    feature_rows,
    flat_features,
    is_own,
)
from epszero.oracles.traced import traced


class AffineInFeatures(Oracle):
    """G(x) + C(x)φ(ξ).

    `C(x)` returns an array with the axes of G(x) followed by the axes of φ (a pytree of them for a pytree x); or
    `C(x, f)` returns the product directly, which must be linear in f. `phi=None` means φ(ξ) = ξ. The values may be
    vectors, for an operator, or numbers, for a loss to be minimised.
    """

    static = ("structure_name",)
    joint: Any  # (x, f) ↦ G(x) + C(x)f, an `Opaque` or `Traced`
    features: Any  # (·, ξ) ↦ φ(ξ)
    structure_name: str

    @known_arguments
    def __init__(self, G: Callable[..., Any], C: Callable[..., Any], phi: Callable[..., Any] | None = None) -> None:
        _require_functions(G=G, C=C, phi=phi or OWN_FEATURES)
        product = C if _takes_two(C) else _Contraction(C)
        self.joint = Opaque(_Sum(G, product))
        self.features = _features(phi)
        self.structure_name = "affine in features"

    @property
    def structure(self) -> str:
        return self.structure_name

    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        return self.joint(x, self.features((), xi))

    def traced(self, x: PyTree, row: PyTree) -> "AffineInFeatures":
        features = self.features if is_own(self.features) else traced(self.features, (), row)
        return self.replaced(joint=traced(self.joint, x, jax.eval_shape(features, (), row)), features=features)

    def average(self, data: PyTree, x: PyTree) -> Average:
        seen = self.traced(x, one_row(data))
        return FeatureMean(seen.joint, feature_mean(seen.features, data))

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed:
        seen = self.traced(x, one_row(data))
        rows, nested = feature_rows(seen.features, data)
        return Collapsed(
            [rows], lambda means: FeatureMean(seen.joint, nested(means[0])), [flat_features(seen.features)], [0]
        )

    def bend(self, x: PyTree, xi: PyTree, other: PyTree) -> Array:
        return bend_between(lambda f: self.joint(x, f), self.features((), xi), self.features((), other))

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Oracle:
        return self.replaced(joint=Opaque(by(self.joint.function)))


@known_arguments
def Additive(G: Callable[..., Any], phi: Callable[..., Any] | None = None) -> AffineInFeatures:
    """G(x) + φ(ξ): additive noise. φ(ξ) broadcasts against G(x), as prices do that all agents pay alike."""
    _require_functions(G=G, phi=phi or OWN_FEATURES)
    return joint_oracle(Opaque(_Sum(G)), _features(phi), "additive")


@known_arguments
def Affine(f: Callable[..., Any], phi: Callable[..., Any] | None = None) -> AffineInFeatures:
    """f(x, φ(ξ)) with f(x, ·) affine: the mean over samples is f(x, φ̄). `phi=None` means φ(ξ) = ξ.

    It serves costs and losses as well as operators; `ez.AggregativeGame` takes it with its own four arguments.
    """
    _require_functions(f=f, phi=phi or OWN_FEATURES)
    return joint_oracle(Opaque(f), _features(phi), "affine in features")


def joint_oracle(joint: Any, features: Any, structure: str = "affine in features") -> AffineInFeatures:
    """(x, ξ) ↦ joint(x, φ(ξ)), affine in φ(ξ)."""
    return AffineInFeatures.holding(joint=joint, features=features, structure_name=structure)


def _features(phi: Callable[..., Any] | None) -> Opaque:
    return OWN_FEATURES if phi is None else _features_of(Opaque(phi))


@functools.lru_cache(maxsize=256)
def _features_of(phi: Opaque) -> Opaque:
    """One function for each φ, so that costs with the same features are seen to have them."""
    return Opaque(_OfSample(phi))


def _require_functions(**functions: Any) -> None:
    for name, function in functions.items():
        if not callable(function):
            refuse(name, f"must be a function, but it is a {type(function).__name__}", "Pass a callable")


def _takes_two(function: Callable[..., Any]) -> bool:
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]
    return len([p for p in required if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]) == 2


# Functions made of the user's, as classes: a function inside a function cannot be pickled.


class _Sum:
    """(x, f) ↦ G(x) + C(x)f, or G(x) + f."""

    def __init__(self, G: Callable[..., Any], product: Callable[..., Any] | None = None) -> None:
        self.G, self.product = G, product

    def __call__(self, x: PyTree, f: PyTree) -> PyTree:
        return jax.tree.map(jnp.add, self.G(x), f if self.product is None else self.product(x, f))


class _Contraction:
    """(x, f) ↦ C(x)f for C(x) an array with the axes of φ last."""

    def __init__(self, C: Callable[..., Any]) -> None:
        self.C = C

    def __call__(self, x: PyTree, f: Any) -> PyTree:
        return jax.tree.map(lambda c: jnp.tensordot(c, f, axes=jnp.ndim(f)), self.C(x))


class _OfSample:
    """(·, ξ) ↦ φ(ξ)."""

    def __init__(self, phi: Opaque) -> None:
        self.phi = phi

    def __call__(self, _: PyTree, xi: PyTree) -> PyTree:
        return self.phi(xi)
