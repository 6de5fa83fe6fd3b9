"""{x : lower ≤ x ≤ upper, at_least ≤ wᵀx ≤ at_most}: a box with a budget. The charging set of the paper is one.

Projection: x = clip(v + λw, lower, upper), with λ = 0 when the clipped point keeps the budget, else the root of a
piecewise linear equation (sets/_knapsack.py); O(n) per agent, exact to rounding. Support: the dual in the price of the
budget is convex and piecewise linear, so its minimum is at one of n + 1 kinks; O(n²). Diameter: an upper bound, the
norm of the ranges of the entries. Bounds, weights and budgets are numbers or arrays; leading axes are a batch (agents).
"""

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, real_array
from epszero._double import is_traced
from epszero._shaped import dot, norm, times
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set, rounding
from epszero.sets._budget import ranges, refuse_empty, refuse_unreachable
from epszero.sets._knapsack import clip_to_budget
from epszero.sets.box import checked_bounds
from epszero.sets.conic import ConicForm


class BoxBudget(Set):
    """A box whose weighted sum lies between `at_least` and `at_most`."""

    formula = True
    per_entry = ("lower", "upper", "weights")
    per_point = ("at_least", "at_most")
    lower: FloatArray
    upper: FloatArray
    at_least: FloatArray
    at_most: FloatArray
    weights: FloatArray

    @known_arguments
    def __init__(
        self,
        lower: Real,
        upper: Real,
        at_least: Real = -np.inf,
        at_most: Real = np.inf,
        weights: Real = 1.0,
        dim: int | None = None,
    ) -> None:
        self.lower, self.upper = checked_bounds("BoxBudget", lower, upper, dim)
        self.at_least = real_array("at_least", at_least, allow_infinite=True)
        self.at_most = real_array("at_most", at_most, allow_infinite=True)
        self.weights = real_array("weights", weights)
        refuse_empty(self)

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        super().check_shape(argument, shape)
        if self.point_shape is None and not is_traced(self):
            refuse_unreachable(self, shape[-1])

    def _project(self, v: Array) -> Array:
        return clip_to_budget(v, self.lower, self.upper, self.weights, self.at_least, self.at_most)

    def _support(self, direction: Array) -> Array:
        tiny = rounding(direction) * jnp.max(jnp.abs(direction), axis=-1, keepdims=True)  # not worth an infinite bound

        def dual(price: Array) -> Array:  # an upper bound for every price of the budget, least at a kink
            reduced = direction - price[..., None] * self.weights
            bound = jnp.where(reduced > 0, self.upper, self.lower)
            reduced = jnp.where(jnp.isinf(bound) & (jnp.abs(reduced) <= tiny), 0.0, reduced)
            box = dot(reduced, bound)
            return box + times(jnp.maximum(price, 0.0), self.at_most) - times(jnp.maximum(-price, 0.0), self.at_least)

        shape = jnp.broadcast_shapes(direction.shape, self.batch_shape + direction.shape[-1:])
        kinks = jnp.where(self.weights == 0, 0.0, direction / jnp.where(self.weights == 0, 1.0, self.weights))
        kinks = jnp.moveaxis(jnp.broadcast_to(kinks, shape), -1, 0)
        lowest = dual(jnp.zeros(shape[:-1]))
        return jax.lax.fori_loop(0, shape[-1], lambda j, best: jnp.minimum(best, dual(kinks[j])), lowest)

    def _diameter(self) -> Array:
        low, high = ranges(self)
        return norm(jnp.broadcast_to(high - low, self.batch_shape + self.known_point_shape))

    def _conic(self, n: int) -> ConicForm:
        lower, upper = np.broadcast_to(self.lower, n), np.broadcast_to(self.upper, n)
        w = np.broadcast_to(self.weights, n)
        rows = np.vstack([np.eye(n), -np.eye(n), w, -w])
        return ConicForm.inequalities(rows, np.concatenate([upper, -lower, [self.at_most], [-self.at_least]]))
