"""Constants of a nonlinear O, by enclosures of its derivatives over the domain and the support.

For O(·, ξ) continuous and made of smooth pieces on a convex domain, with its Jacobian J in an interval matrix there:
⟨O(x) − O(y), x − y⟩ ≥ inf λ_min((J + Jᵀ)/2)‖x − y‖² and ‖O(x) − O(y)‖ ≤ sup‖J‖‖x − y‖, as O(x) − O(y) is the integral
of J(x − y) along almost every segment (docs/theory.md, section 5). ‖O(x, ξ) − O(x, ξ′)‖ ≤ R by the smaller of two:
sup‖∂_ξO·d‖ over differences d of the support, and the difference itself, enclosed over pairs ξ, ξ′. M encloses ‖O‖.
The Jacobian is that of the values, whatever derivative a user attached; that nothing jumps is proved first (`jumps`).
Each is refined by branch and bound over the box around domain and support; boxes that miss the domain are left out
where telling so is cheap. Enclosures are rounded outward (_trace/intervals), eigenvalues to the safe side
(interval_matrices.py).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.intervals import Enclosed, Interval, NoEnclosure, without_custom_rules
from epszero._trace.programs import UNTRACED
from epszero._types import Array, FloatArray, PyTree
from epszero.facts.branching import Supremum, Task, supremum
from epszero.facts.domains import Bounds, by_solver, misses, nearest, only_boxes
from epszero.facts.interval_matrices import largest_norm, least_eigenvalue
from epszero.problems.backward import Backward

LARGEST = 400  # entries of x up to which its Jacobian is enclosed
NUMBERS = 300_000  # entries of Jacobians that are enclosed at once
MOST = 256  # boxes at once
BOXES = 40_000  # that a search is worth at effort 1, where they are small
WORK = 6e6  # and multiplications, about: a box with a Jacobian of n × n costs n² + n³/16
UNENCLOSED = (NoEnclosure, *UNTRACED)


@dataclass(frozen=True, eq=False)
class Operator:
    """O as a function of flat points and flat samples, and the boxes over which they range."""

    oracle: Callable[[PyTree, PyTree], PyTree]
    strategies: Backward
    x: PyTree  # a point, for its shape
    row: PyTree  # a sample
    domain: Bounds
    support: Bounds

    @property
    def entries(self) -> int:
        """Of a point."""
        return len(self.domain.lower)

    def __call__(self, x: Any, xi: Any) -> Any:
        """O(x, ξ), flat."""
        _, point = ravel_pytree(self.x)
        _, sample = ravel_pytree(self.row)
        return ravel_pytree(self.oracle(point(x), sample(xi)))[0]

    @property
    def examples(self) -> tuple[FloatArray, FloatArray]:
        """A point and a sample, for their shapes."""
        return np.zeros(self.entries), np.zeros(len(self.support.lower))

    def jumps(self, moving: Sequence[int]) -> str:
        """Why O is not known to be defined and continuous on the domain, as x (0) or ξ (1) moves; empty where it is."""
        return self._refused(continuous=True, moving=moving)

    @property
    def undefined(self) -> str:
        """Why O is not known to be defined on all of the domain and the support; empty where it is."""
        return self._refused(defined=True)

    def _refused(self, **strict: Any) -> str:
        try:
            values = Enclosed(without_custom_rules(self), *self.examples)(
                Interval(*self.domain), Interval(*self.support), **strict
            )
        except UNENCLOSED as error:
            return str(error).splitlines()[0] if str(error) else type(error).__name__
        return "" if isinstance(values, Interval) else "it returns no numbers"

    def refined(
        self,
        bound: Callable[[Interval], FloatArray],
        of: Callable[..., Any],
        width: int,
        effort: float,
        enough: float = -np.inf,
    ) -> Supremum:
        """sup over domain and support of what `bound` makes of enclosures of `of(x, ξ)`, of `width` entries."""
        n, batch = self.entries, int(np.clip(NUMBERS // max(width, 1), 1, MOST))
        points, samples = (np.zeros((batch, len(example))) for example in self.examples)
        enclosed = Enclosed(jax.vmap(of), points, samples)

        def above(lower: FloatArray, upper: FloatArray) -> FloatArray:
            enclosure = enclosed(Interval(lower[:, :n], upper[:, :n]), Interval(lower[:, n:], upper[:, n:]))
            return bound(enclosure)

        def outside(lower: FloatArray, upper: FloatArray) -> FloatArray:
            return misses(self.strategies, self.x, lower[:, :n], upper[:, :n])

        def inside(points: FloatArray) -> FloatArray:
            return np.concatenate([nearest(self.strategies, self.x, points[:, :n]), points[:, n:]], axis=1)

        box = Bounds(
            *(
                np.concatenate([getattr(part, side) for part in (self.domain, self.support)])
                for side in ("lower", "upper")
            )
        )
        plain = only_boxes(self.strategies) or not self.domain.bounded
        dear = not plain and by_solver(self.strategies)
        task = Task(above, box, batch, None if plain or dear else outside, None if plain else inside, enough, dear)
        return supremum(task, int(effort * min(BOXES, WORK / (width + width**1.5 / 16))))

    @cached_property
    def jacobian(self) -> Callable[[Array, Array], Array]:
        """∂O/∂x, of the values."""
        return jax.jacfwd(without_custom_rules(self))

    def least_slope(self, effort: float, enough: float = np.inf) -> Supremum:
        """−inf λ_min((J + Jᵀ)/2), at most; no more is asked for where that least eigenvalue is at least `enough`."""
        return self.refined(lambda J: -least_eigenvalue(*J), self.jacobian, self.entries**2, effort, -enough)

    def largest_slope(self, effort: float) -> Supremum:
        """sup ‖J‖, at most."""
        return self.refined(lambda J: largest_norm(*J), self.jacobian, self.entries**2, effort)

    def largest_value(self, effort: float) -> Supremum:
        """M = sup ‖O(x, ξ)‖, at most."""
        return self.refined(_size, without_custom_rules(self), self.entries, effort)

    def largest_difference(self, effort: float) -> Supremum:
        """R = sup ‖O(x, ξ) − O(x, ξ′)‖, at most: by slopes in ξ, and by enclosing the difference itself."""
        slopes, pairs = self._by_slopes(effort / 2), self._by_pairs(effort / 2)
        return min(slopes, pairs, key=lambda one: one.at_most)

    def _by_pairs(self, effort: float) -> Supremum:
        plain, size = without_custom_rules(self), len(self.support.lower)
        twice = replace(self, support=Bounds(np.tile(self.support.lower, 2), np.tile(self.support.upper, 2)))

        def difference(x: Any, both: Any) -> Any:
            return plain(x, both[:size]) - plain(x, both[size:])

        return twice.refined(_size, difference, self.entries, effort)

    def _by_slopes(self, effort: float) -> Supremum:
        plain, width = without_custom_rules(self), self.support.upper - self.support.lower

        def pulled(x: Array, xi: Array) -> Array:
            slopes = jax.jacfwd(plain, argnums=1)(x, xi)  # each column times how far its entry of ξ can move
            return slopes * jnp.asarray(width)

        def bound(slopes: Interval) -> FloatArray:
            reach = np.maximum(np.abs(slopes.lower), np.abs(slopes.upper)).sum(axis=-1)
            with np.errstate(over="ignore"):
                by_entry = np.sqrt(np.sum(reach**2, axis=-1)) * (1 + 1e-12)
            units = np.divide(1.0, width, out=np.zeros_like(width), where=width > 0)
            by_norm = largest_norm(slopes.lower * units, slopes.upper * units) * np.linalg.norm(width) * (1 + 1e-12)
            return np.minimum(by_entry, np.where(np.isnan(by_norm), np.inf, by_norm))

        return self.refined(bound, pulled, self.entries * len(width), effort)


def _size(enclosure: Interval) -> FloatArray:
    magnitude = np.maximum(np.abs(enclosure.lower), np.abs(enclosure.upper))
    with np.errstate(over="ignore"):
        return np.sqrt(np.sum(magnitude**2, axis=-1)) * (1 + 1e-12)
