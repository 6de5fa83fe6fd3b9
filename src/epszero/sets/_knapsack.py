"""The continuous quadratic knapsack: x = clip(v + λw, lower, upper) with λ such that wᵀx is a given target.

φ(λ) = wᵀ clip(v + λw, lower, upper) is continuous, piecewise linear and nondecreasing, so Newton's method with a
bracket lands on the right linear piece, and the step taken there is exact. A Newton step that leaves the bracket is
replaced by its middle; on a flat piece with an open bracket λ moves by gap/Σw², which is never too far, and then by
eight times as much at each pass. Where most entries are clipped at first, λ starts where it would be without the
bounds. Typically 1 to 4 passes.
Source: Cominetti, Mascarenhas & Silva, "A Newton's method for the continuous quadratic knapsack problem",
Math. Prog. Comp. 6 (2014). Assumes that the target is attainable; then the answer is exact to rounding.

The derivative is that of the linear piece that x lies on, of which the clipped entries and the end of the budget that
is met are known from x: with entries at their bounds taken for clipped and a budget just met for binding it is an
element of the generalized Jacobian at kinks, too, which differentiating min and max there (a half of each) is not.

Sums over the entries of a short vector are written out term by term with the agents on the last axis: XLA then fuses
and vectorises them over the agents, five times faster than its reduction over a short axis.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from epszero._types import Array

PASSES = 200  # a bisection of the whole float range would end within this many
UNROLLED = 32  # vectors up to this length are summed term by term; longer ones would take too long to compile


class _Search(NamedTuple):
    multiplier: Array  # λ, one per batch entry
    gap: Array  # target − φ(λ)
    slope: Array  # φ′(λ)
    low: Array  # φ(low) < target
    high: Array  # φ(high) > target
    done: Array
    passes: Array


@jax.custom_jvp
def clip_to_budget(v: Array, lower: Array, upper: Array, weights: Array, at_least: Array, at_most: Array) -> Array:
    """clip(v + λw, lower, upper), λ = 0 where the weighted sum then keeps the budget, else it meets the nearer end."""
    y, lo, hi, w = _entries_first(max(jnp.ndim(at_least), jnp.ndim(at_most)), v, lower, upper, weights)
    total, slope = _total_and_slope(y, w, lo, hi)
    target = jnp.clip(total, at_least, at_most)
    rounding = 4 * jnp.finfo(y.dtype).eps * (jnp.abs(target) + jnp.abs(total))
    lost = 2 * jnp.finfo(y.dtype).eps  # of λw_j, in every entry that is not clipped: more than that cannot be asked for
    steepest = jnp.sum(w**2, axis=0)
    level = (target - _sum(operator.mul, w, y)) / steepest  # λ, were there no bounds

    def refine(search: _Search) -> _Search:
        at, gap = search.multiplier, search.gap
        low, high = jnp.where(gap > 0, at, search.low), jnp.where(gap < 0, at, search.high)
        newton = at + gap / search.slope  # NaN or infinite on a flat piece
        middle = 0.5 * (low + high)
        elsewhere = jnp.where(jnp.isfinite(middle), middle, at + gap / steepest * 8.0**search.passes)
        proposal = jnp.where((newton > low) & (newton < high), newton, elsewhere)
        clipped = (search.passes == 0) & (3 * search.slope < steepest) & (level > low) & (level < high)
        proposal = jnp.where(clipped, level, proposal)
        stay = search.done | (proposal == at)
        at = jnp.where(stay, at, proposal)
        total, slope = _total_and_slope(y, w, lo, hi, at)
        done = stay | ~(jnp.abs(target - total) > rounding + lost * jnp.abs(at) * slope)
        return _Search(at, target - total, slope, low, high, done, search.passes + 1.0)

    infinite = jnp.full(target.shape, jnp.inf, y.dtype)
    settled = ~(jnp.abs(target - total) > 0)
    first = _Search(
        jnp.zeros_like(infinite),
        target - total,
        jnp.broadcast_to(slope, target.shape),
        -infinite,
        infinite,
        settled,
        jnp.zeros((), y.dtype),
    )
    last = jax.lax.while_loop(lambda search: jnp.any(~search.done) & (search.passes < PASSES), refine, first)
    x = jnp.clip(y + last.multiplier * w, lo, hi)
    x = _topped_up(x, lo, hi, w, target, 1e3 * rounding, last.gap)
    return jnp.moveaxis(x, 0, -1)


@clip_to_budget.defjvp
def _along_the_piece(at: tuple[Array, ...], tangents: tuple[Array, ...]) -> tuple[Array, Array]:
    x = clip_to_budget(*at)
    return x, jax.jvp(functools.partial(_piece, x), at, tangents)[1]


def _piece(x: Array, v: Array, lower: Array, upper: Array, weights: Array, at_least: Array, at_most: Array) -> Array:
    """The linear function that `clip_to_budget` is around an argument that gave x."""
    free = (x > lower) & (x < upper)
    total = jnp.sum(weights * jnp.clip(v, lower, upper), axis=-1, keepdims=True)
    least, most = at_least[..., None], at_most[..., None]
    target = jnp.where(total <= least, least, jnp.where(total >= most, most, 0.0))
    own = jnp.where(free, v, jnp.where(x <= lower, lower, upper))
    slope = jnp.sum(jnp.where(free, weights**2, 0.0), axis=-1, keepdims=True)
    met = ((total <= least) | (total >= most)) & (slope > 0)
    missing = target - jnp.sum(weights * own, axis=-1, keepdims=True)
    return jnp.where(free, own + jnp.where(met, missing / jnp.where(met, slope, 1.0), 0.0) * weights, own)


def _total_and_slope(y: Array, w: Array, lo: Array, hi: Array, at: Array | float = 0.0) -> tuple[Array, Array]:
    """φ and φ′ at λ = `at`."""
    total = _sum(lambda y, w, lo, hi: w * jnp.clip(y + at * w, lo, hi), y, w, lo, hi)
    slope = _sum(lambda y, w, lo, hi: jnp.where((y + at * w > lo) & (y + at * w < hi), w**2, 0.0), y, w, lo, hi)
    return total, slope


def _topped_up(x: Array, lo: Array, hi: Array, w: Array, target: Array, tol: Array, gap: Array) -> Array:
    """Where |v| is huge, v + λw has lost digits: spread what is missing over the entries that have room for it."""

    def top_up(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        x, gap, trips = carry
        room = jnp.where(gap * w > 0, hi - x, jnp.where(gap * w < 0, x - lo, 0.0)) > 0
        slope = jnp.sum(jnp.where(room, w**2, 0.0), axis=0)
        x = jnp.clip(jnp.where(room, x + jnp.where(slope > 0, gap / slope, 0.0) * w, x), lo, hi)
        return x, target - jnp.sum(w * x, axis=0), trips + 1

    def missing(carry: tuple[Array, Array, Array]) -> Array:
        return jnp.any(jnp.abs(carry[1]) > tol) & (carry[2] < 3)

    return jax.lax.while_loop(missing, top_up, (x, gap, jnp.asarray(0)))[0]


def _entries_first(batch: int, v: Array, *parameters: Array) -> tuple[Array, ...]:
    """Each array with the axis of the entries in front and at least `batch` axes behind it."""
    axes = max(batch + 1, *(jnp.ndim(a) for a in (v, *parameters)))

    def turned(a: Array) -> Array:
        return jnp.moveaxis(jnp.reshape(a, (1,) * (axes - jnp.ndim(a)) + jnp.shape(a)), -1, 0)

    y, *others = (turned(a) for a in (v, *parameters))
    return y, *(jnp.broadcast_to(a, y.shape[:1] + a.shape[1:]) for a in others)


def _sum(term: Callable[..., Any], *arrays: Array) -> Array:
    """Σ_j term(a[j], …) over the leading axis, term by term for short vectors."""
    n = arrays[0].shape[0]
    if n > UNROLLED:
        return jnp.sum(term(*arrays), axis=0)
    return functools.reduce(operator.add, [term(*(a[j] for a in arrays)) for j in range(n)])
