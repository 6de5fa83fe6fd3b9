"""O near a point: its values at samples and over the support, its Jacobians there, and how far these move in a ball.

For x in the ball of radius ρ about x̂ (and in the domain), with J_i the Jacobian of O(·, ξ_i):
    O(x, ξ_i) = O(x̂, ξ_i) + K_i(x − x̂),   ‖K_i − J_i(x̂)‖ ≤ r_i(ρ),
r_i = 0 where O is affine in x, else the radius of an enclosure of J_i over the box around the ball (interval
arithmetic, _trace/intervals). The same over the whole support of ξ, for ranges. Derivatives are those of the values,
whatever rule a user attached. Cost: one Jacobian for each sample.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import equinox as eqx
import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._memory import remembered
from epszero._points import flat_of, length
from epszero._trace.intervals import Enclosed, Interval, without_custom_rules
from epszero._types import FloatArray, PyTree
from epszero.facts import Facts, TooLarge
from epszero.facts.domains import Bounds
from epszero.facts.enclosed import UNENCLOSED
from epszero.oracles import Oracle

NUMBERS = 40_000_000  # entries of all Jacobians together that are written down
AT_ONCE = 400_000  # that are enclosed at once
ROUND = 1 + 1e-10


@dataclass(frozen=True, eq=False)
class Local:
    """O about x̂, for flat samples `rows` (s, d)."""

    facts: Facts
    oracle: Oracle
    x: PyTree
    data: PyTree
    rows: FloatArray

    @cached_property
    def flat(self) -> FloatArray:
        """x̂."""
        return flat_of(self.x)

    @property
    def entries(self) -> int:
        """Of x̂."""
        return len(self.flat)

    @cached_property
    def values(self) -> FloatArray:
        """O(x̂, ξ_i), (s, n)."""
        return np.asarray(to_numpy(_values(self.oracle, self.data, self.x)), dtype=np.float64)

    @cached_property
    def slopes(self) -> FloatArray:
        """J_i(x̂), (s, n, n)."""
        if len(self.rows) * self.entries**2 > NUMBERS:
            raise TooLarge(f"the Jacobians of {len(self.rows)} samples are more than {NUMBERS} numbers")
        return np.asarray(to_numpy(_slopes(self.oracle, self.data, self.x)), dtype=np.float64)

    @property
    def affine(self) -> bool:
        """Whether O is proved to be affine in x."""
        return self.facts.structure.affine

    def around(self, radius: float) -> Bounds:
        """The box about the ball, cut by the box about the domain."""
        domain = self.facts.domain
        lower, upper = np.maximum(self.flat - radius, domain.lower), np.minimum(self.flat + radius, domain.upper)
        return Bounds(np.minimum(lower, self.flat), np.maximum(upper, self.flat))

    def moves(self, radius: float) -> FloatArray:
        """r_i(ρ) for every sample, in the Frobenius norm; ∞ where nothing encloses it."""
        s, n = len(self.rows), self.entries
        if self.affine:
            return np.zeros(s)
        box, many = self.around(radius), max(1, AT_ONCE // n**2)
        found = np.empty(s)
        try:
            each = jax.vmap(self.facts.operator.jacobian, in_axes=(None, 0))
            enclosed = self._traced("slopes of samples", each, self.flat, self.rows[:many])
            for start in range(0, s, many):
                part = self.rows[start : start + many]
                full = np.concatenate([part, np.broadcast_to(part[-1:], (many - len(part), *part.shape[1:]))])
                J = enclosed(Interval(*box), full)
                here = self.slopes[start : start + many]
                apart = np.maximum(J.upper[: len(part)] - here, here - J.lower[: len(part)])
                found[start : start + many] = np.sqrt(np.sum(np.maximum(apart, 0.0) ** 2, axis=(1, 2)))
        except UNENCLOSED:
            return np.full(s, np.inf)
        return np.where(np.isfinite(found), found * ROUND, np.inf)

    @cached_property
    def over_support(self) -> Interval | None:
        """Of O(x̂, ξ), over all ξ; None where nothing encloses it."""
        return self._over("values", without_custom_rules(self.facts.operator), Bounds(self.flat, self.flat))

    def slopes_over_support(self, radius: float) -> Interval | None:
        """Of the Jacobian, over all ξ and all x of the ball."""
        here = Bounds(self.flat, self.flat)
        return self._over("slopes", self.facts.operator.jacobian, here if self.affine else self.around(radius))

    def _traced(self, name: str, function: Any, *examples: Any) -> Enclosed:
        """Made once for each problem and shape."""
        key = "enclosed", name, self.facts.shapes, tuple(np.shape(one) for one in examples)
        return remembered(self.facts.problem, key, lambda: Enclosed(function, *examples))

    def _over(self, name: str, function: Any, box: Bounds) -> Interval | None:
        support = self.facts.support
        if not support.bounded:
            return None
        try:
            enclosed = self._traced(name, function, *self.facts.operator.examples)
            found = enclosed(Interval(*box), Interval(*support))
        except UNENCLOSED:
            return None
        return found if np.isfinite(found.lower).all() and np.isfinite(found.upper).all() else None


def farthest(around: Interval, centre: FloatArray, W: FloatArray) -> float:
    """At least sup ‖W(v − centre)‖ over v between the ends, by entries after W and before it."""
    middle, half = (around.lower + around.upper) / 2 - centre, (around.upper - around.lower) / 2
    after = length(np.abs(W @ middle) + np.abs(W) @ half)
    before = length(np.abs(middle) + half) * spectral(W)
    return min(after, before) * ROUND


def spectral(W: FloatArray) -> float:
    """‖W‖₂."""
    return float(np.linalg.norm(W, 2)) * ROUND if W.size else 0.0


@eqx.filter_jit
def _values(oracle: Oracle, data: PyTree, x: PyTree) -> Any:
    return jax.lax.map(lambda xi: ravel_pytree(oracle(x, xi))[0], data, batch_size=256)


@eqx.filter_jit
def _slopes(oracle: Oracle, data: PyTree, x: PyTree) -> Any:
    here, shaped = ravel_pytree(x)

    def one(xi: PyTree) -> Any:
        return jax.jacfwd(without_custom_rules(lambda v: ravel_pytree(oracle(shaped(v), xi))[0]))(here)

    return jax.lax.map(one, data, batch_size=64)
