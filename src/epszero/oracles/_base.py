"""`Oracle`: what a user knows of B, and `Average`: the operator B̂ that a data set makes of it.

An oracle wraps a plain function of (x, ξ). Averaging it over a data set gives an `Average`, a pytree whose leaves are
all that an iteration needs of the data: the samples themselves for a general oracle, one feature vector for a
structured one. That is the only thing a method ever sees of B, so methods are blind to how B̂ is computed.
"""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from epszero._checks import refuse
from epszero._pytree import Node
from epszero._types import Array, FloatArray, PyTree


class Opaque:
    """A user's function, compared by identity: it may carry arrays, which have no one truth value."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Opaque):
            return False
        made = self.by_value and other.by_value and self.function == other.function
        return self.function is other.function or made

    def __hash__(self) -> int:
        return hash(self.function) if self.by_value else hash(id(self.function))

    @property
    def by_value(self) -> bool:
        """Whether the function is one of ours, which says itself what it equals."""
        return getattr(self.function, "by_value", False) is True

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __repr__(self) -> str:
        return getattr(self.function, "__name__", repr(self.function))


jax.tree_util.register_pytree_node(Opaque, lambda function: ((), function), lambda function, _: function)


class Average(Node):
    """B̂: call it at x."""

    @abstractmethod
    def __call__(self, x: PyTree) -> PyTree: ...


class OwnData(list[Any]):
    """One data set (or one sample) per agent, told apart from a data set that happens to be a list."""


jax.tree_util.register_pytree_node(OwnData, lambda data: (list(data), None), lambda _, parts: OwnData(parts))


class Collapsed(NamedTuple):
    """O(x, ξ) = G(x) + C(x)φ(ξ), seen through its features alone: B̂ is `at` their means."""

    features: list[FloatArray]  # φ(ξ_j) of each data set, one row per sample, flat
    at: Callable[[list[Any]], Average]  # B for given values of E φ(ξ), one flat vector per data set
    phi: list[Callable[[PyTree], Array] | None]  # ξ ↦ φ(ξ), flat, of each data set; None for the samples themselves
    sets: list[int]  # which data set, where each agent has its own

    @property
    def own(self) -> bool:
        """Whether the features are the samples themselves."""
        return all(one is None for one in self.phi)


class Oracle(Node):
    """O(x, ξ), or B(x) where nothing is uncertain."""

    @property
    @abstractmethod
    def structure(self) -> str:
        """How O depends on ξ: "known", "additive", "affine in features", "general", or "blocks"."""

    @property
    def uncertain(self) -> bool:
        """Whether samples are needed."""
        return True

    @property
    def data_sets(self) -> int | None:
        """How many data sets, one per agent, it can be averaged over; None where there can only be one for all."""
        return None

    @abstractmethod
    def __call__(self, x: PyTree, xi: PyTree) -> PyTree:
        """O(x, ξ) for one ξ."""

    def bend(self, x: PyTree, xi: PyTree, other: PyTree) -> Array:
        """How far O(x, ·) is from being as affine as it claims, between two samples and relative to its size."""
        del x, xi, other
        return jnp.asarray(0.0)

    def traced(self, x: PyTree, row: PyTree) -> "Oracle":
        """The same oracle for points like x and samples like `row`, its functions pytrees of their numbers where that
        can be (oracles/traced.py): compiled programs that take it serve every oracle of its kind."""
        del x, row
        return self

    @abstractmethod
    def average(self, data: PyTree, x: PyTree) -> Average:
        """B̂ for `data` (a pytree with a leading sample axis); `x` shows the shape of a point."""

    def collapsed(self, data: PyTree, x: PyTree) -> Collapsed | None:
        """The oracle over `data` through its features, for points like x; None where it is not known to have any."""
        del data, x
        return None

    def transformed(self, by: Callable[[Callable[..., Any]], Callable[..., Any]]) -> "Oracle":
        """The oracle of `by(f)` for a linear transformation `by` of f(·, ξ), such as `jax.grad`: structure is kept."""
        del by
        refuse(type(self).__name__, "is an operator already, not a cost to be differentiated", "Pass a function")
