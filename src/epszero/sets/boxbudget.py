"""{x : lower ≤ x ≤ upper, at_least ≤ wᵀx ≤ at_most}: a box with a budget. The charging set of the paper is one.

Projection: x = clip(v + λw, lower, upper), with λ = 0 when the clipped point keeps the budget, else the root of a
piecewise linear equation (sets/_knapsack.py); O(n) per agent, exact to rounding. Support: the dual in the price of the
budget is convex and piecewise linear, so its minimum is at one of n + 1 kinks; O(n²). Diameter: an upper bound, the
norm of the ranges of the entries. Bounds, weights and budgets are numbers or arrays; leading axes are a batch (agents).
"""

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._double import is_traced
from epszero._shaped import dot, norm, times
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets._conic import ConicForm
from epszero.sets._knapsack import clip_to_budget
from epszero.sets.box import checked_bounds


class BoxBudget(Set):
    """A box whose weighted sum lies between `at_least` and `at_most`."""

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
        _refuse_empty(self)

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        return np.broadcast_shapes(self.lower.shape, self.upper.shape, self.weights.shape)[-1:] or None

    @property
    def batch_shape(self) -> tuple[int, ...]:
        entries = (self.lower.shape[:-1], self.upper.shape[:-1], self.weights.shape[:-1])
        return np.broadcast_shapes(*entries, self.at_least.shape, self.at_most.shape)

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        super().check_shape(argument, shape)
        if self.point_shape is None and not is_traced(self):
            _refuse_unreachable(self, shape[-1])

    def _project(self, v: Array) -> Array:
        total = jnp.sum(self.weights * jnp.clip(v, self.lower, self.upper), axis=-1)
        short, over = total < self.at_least, total > self.at_most
        target = jnp.where(short, self.at_least, jnp.where(over, self.at_most, total))
        w = jnp.broadcast_to(self.weights, jnp.broadcast_shapes(self.weights.shape, v.shape[-1:]))
        return clip_to_budget(v, self.lower, self.upper, w, target, short | over)

    def _support(self, direction: Array) -> Array:
        def dual(price: Array) -> Array:  # an upper bound for every price of the budget, least at a kink
            reduced = direction - price[..., None] * self.weights
            box = dot(reduced, jnp.where(reduced > 0, self.upper, self.lower))
            return box + times(jnp.maximum(price, 0.0), self.at_most) - times(jnp.maximum(-price, 0.0), self.at_least)

        shape = jnp.broadcast_shapes(direction.shape, self.batch_shape + direction.shape[-1:])
        kinks = jnp.where(self.weights == 0, 0.0, direction / jnp.where(self.weights == 0, 1.0, self.weights))
        kinks = jnp.moveaxis(jnp.broadcast_to(kinks, shape), -1, 0)
        lowest = dual(jnp.zeros(shape[:-1]))
        return jax.lax.fori_loop(0, shape[-1], lambda j, best: jnp.minimum(best, dual(kinks[j])), lowest)

    def _diameter(self) -> Array:
        low, high = _ranges(self)
        return norm(jnp.broadcast_to(high - low, self.batch_shape + self.known_point_shape))

    def conic(self, n: int) -> ConicForm:
        lower, upper = np.broadcast_to(self.lower, n), np.broadcast_to(self.upper, n)
        w = np.broadcast_to(self.weights, n)
        rows = np.vstack([np.eye(n), -np.eye(n), w, -w])
        return ConicForm.inequalities(rows, np.concatenate([upper, -lower, [self.at_most], [-self.at_least]]))


def _ranges(box: BoxBudget) -> tuple[Array, Array]:
    """The exact range of each entry over the set (not narrowed where the other entries are unbounded)."""
    shape = box.batch_shape + box.known_point_shape
    lower, upper, w = (jnp.broadcast_to(a, shape) for a in (box.lower, box.upper, box.weights))
    least, most = times(w, jnp.where(w > 0, lower, upper)), times(w, jnp.where(w > 0, upper, lower))
    others_least = jnp.sum(least, axis=-1, keepdims=True) - least  # NaN where infinite: no narrowing
    others_most = jnp.sum(most, axis=-1, keepdims=True) - most
    a = (box.at_least[..., None] - others_most) / w
    b = (box.at_most[..., None] - others_least) / w
    narrow_low, narrow_high = jnp.where(w > 0, a, b), jnp.where(w > 0, b, a)
    return jnp.fmax(lower, narrow_low), jnp.fmin(upper, narrow_high)


def _refuse_empty(box: BoxBudget) -> None:
    try:
        _ = box.batch_shape, box.point_shape
    except ValueError:
        refuse(
            "at_least, at_most, weights",
            "must broadcast: budgets one per agent, bounds and weights one row per agent, "
            f"but the shapes are {box.at_least.shape}, {box.at_most.shape}, {box.weights.shape} with bounds "
            f"{box.lower.shape}, {box.upper.shape}",
            "Make the leading axes agree",
        )
    crossed = box.at_least > box.at_most
    if crossed.any():
        where = first_index(crossed)
        least, most = (np.broadcast_to(a, crossed.shape)[where] for a in (box.at_least, box.at_most))
        refuse(
            f"at_least{label(where)}, at_most{label(where)}",
            f"the budget is empty: at_least = {least:g} exceeds at_most = {most:g}",
            "Make at_least ≤ at_most",
        )
    if box.point_shape is None:
        return  # whether the budget can be reached depends on a dimension not known yet: see check_shape
    _refuse_unreachable(box, box.point_shape[0])


def _refuse_unreachable(box: BoxBudget, n: int) -> None:
    w = np.broadcast_to(box.weights, np.broadcast_shapes(box.weights.shape, (n,)))
    with np.errstate(invalid="ignore"):
        greatest = np.where(w == 0, 0.0, w * np.where(w > 0, box.upper, box.lower)).sum(axis=-1)
        smallest = np.where(w == 0, 0.0, w * np.where(w > 0, box.lower, box.upper)).sum(axis=-1)
    slack = 1e-12 * (1 + np.abs(np.where(np.isfinite(greatest), greatest, 0.0)))
    short, over = greatest + slack < box.at_least, smallest - slack > box.at_most
    if short.any():
        where = first_index(short)
        refuse(
            f"at_least{label(where)}",
            f"is {np.broadcast_to(box.at_least, short.shape)[where]:g}, but the box reaches "
            f"at most {np.broadcast_to(greatest, short.shape)[where]:g}",
            "Lower at_least or raise upper",
        )
    if over.any():
        where = first_index(over)
        refuse(
            f"at_most{label(where)}",
            f"is {np.broadcast_to(box.at_most, over.shape)[where]:g}, but the box starts "
            f"at {np.broadcast_to(smallest, over.shape)[where]:g}",
            "Raise at_most or drop lower",
        )
