"""The continuous quadratic knapsack: find λ with φ(λ) = wᵀ clip(v + λw, lower, upper) = target.

φ is continuous, piecewise linear and nondecreasing, so Newton's method with a bracket lands on the right linear piece,
and the step taken there is exact. A Newton step that leaves the bracket, or meets a flat piece, is replaced by the
middle of the bracket, or by the outermost kink while the bracket is open on that side. Typically 3 to 6 passes over v,
all agents at once.
Source: Cominetti, Mascarenhas & Silva, "A Newton's method for the continuous quadratic knapsack problem",
Math. Prog. Comp. 6 (2014). Assumes that the target is attainable; then the answer is exact to rounding.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._types import Array

PASSES = 120  # a bisection of the whole float range would end within this many


class _Search(NamedTuple):
    multiplier: Array  # λ, one per batch entry
    low: Array  # φ(low) < target
    high: Array  # φ(high) > target
    done: Array
    passes: Array


def budget_multiplier(v: Array, lower: Array, upper: Array, weights: Array, target: Array, active: Array) -> Array:
    """λ with wᵀ clip(v + λw, lower, upper) = target where `active`, and 0 elsewhere. Batched over leading axes."""
    rounding = 4e-16 * (jnp.abs(target) + jnp.sum(jnp.abs(weights * jnp.clip(v, lower, upper)), axis=-1))
    to_lower, to_upper = (lower - v) / weights, (upper - v) / weights  # the kinks of φ
    first_kink = jnp.min(jnp.minimum(_finite(to_lower, jnp.inf), _finite(to_upper, jnp.inf)), axis=-1)
    last_kink = jnp.max(jnp.maximum(_finite(to_lower, -jnp.inf), _finite(to_upper, -jnp.inf)), axis=-1)

    def refine(search: _Search) -> _Search:
        at = search.multiplier
        moved = v + at[..., None] * weights
        gap = target - jnp.sum(weights * jnp.clip(moved, lower, upper), axis=-1)
        slope = jnp.sum(jnp.where((moved > lower) & (moved < upper), weights**2, 0.0), axis=-1)
        low, high = jnp.where(gap > 0, at, search.low), jnp.where(gap < 0, at, search.high)
        newton = at + gap / slope  # NaN or infinite on a flat piece
        middle = 0.5 * (low + high)
        outermost = jnp.where(gap > 0, last_kink, first_kink)
        elsewhere = jnp.where(jnp.isfinite(middle), middle, outermost)
        proposal = jnp.where((newton > low) & (newton < high), newton, elsewhere)
        done = search.done | ~(jnp.abs(gap) > rounding) | (proposal == at)
        return _Search(jnp.where(done, at, proposal), low, high, done, search.passes + 1)

    start = jnp.zeros(active.shape, v.dtype)
    first = _Search(start, jnp.full_like(start, -jnp.inf), jnp.full_like(start, jnp.inf), ~active, jnp.asarray(0))
    last = jax.lax.while_loop(lambda search: jnp.any(~search.done) & (search.passes < PASSES), refine, first)
    return last.multiplier


def clip_to_budget(v: Array, lower: Array, upper: Array, weights: Array, target: Array, active: Array) -> Array:
    """clip(v + λw, lower, upper) with the λ above, the budget met to rounding even where |v| is huge."""
    multiplier = budget_multiplier(v, lower, upper, weights, target, active)
    x = jnp.clip(v + multiplier[..., None] * weights, lower, upper)
    gap = jnp.where(active, target - jnp.sum(weights * x, axis=-1), 0.0)
    free = jnp.where(gap[..., None] * weights > 0, x < upper, x > lower) & (weights != 0)
    slope = jnp.sum(jnp.where(free, weights**2, 0.0), axis=-1)
    nudge = jnp.where(slope > 0, gap / slope, 0.0)[..., None]
    return jnp.clip(jnp.where(free, x + nudge * weights, x), lower, upper)


def _finite(kinks: Array, otherwise: float) -> Array:
    return jnp.where(jnp.isfinite(kinks), kinks, otherwise)
