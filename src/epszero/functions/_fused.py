"""argmin_x ½‖x − v‖² + height·Σ|x_{i+1} − x_i|, exactly.

Let D_k be the derivative, in x_k, of the least cost of the first k entries: piecewise linear and increasing. Then
D_{k+1}(x) = clip(D_k(x), −height, height) + x − v_{k+1}, and x_k = clip(x_{k+1}, low_k, high_k), where low_k and high_k
are the points at which D_k meets −height and height. The kinks of D_k wait in a double-ended queue; from either end, a
move crosses one kink that the clipping removes or, when none is left to cross, clips and goes on to the next entry.
Each kink enters and leaves once, so 3n moves suffice: a fixed number, which suits jit and vmap. O(n).

A height that flattens v altogether gives the mean whatever more it is, so it is capped there, and v is shifted to
start at 0: no digits are lost to a huge height or a distant v. An entry that is not finite makes all of x NaN.

The derivative: x is the mean of v over runs of equal entries, lifted by height over the length of the run for every
neighbour above it and lowered for every one below.
Source: Johnson, "A dynamic programming algorithm for the fused lasso and L0-segmentation", JCGS 22 (2013).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._types import Array


class _Piece(NamedTuple):
    """A linear piece of D_k."""

    slope: Array
    offset: Array

    def at(self, x: Array) -> Array:
        return self.slope * x + self.offset


class _Queue(NamedTuple):
    kinks: jax.Array  # where a kink is, and by how much slope and offset change across it; the last row is waste
    first: Array  # row of the leftmost kink
    last: Array  # row of the rightmost; less than `first` while there is none
    left: _Piece  # of D_k, to the left of the kink `first`
    right: _Piece  # of D_k, to the right of the kink `last`
    next_left: Array  # the row `first`, read after the write, so that XLA can write in place
    next_right: Array  # the row `last`, likewise
    k: Array  # the entry at work
    low: jax.Array  # where D_k meets −height, for each k; the last is waste
    high: jax.Array  # where it meets height


@jax.custom_jvp
def fused(v: Array, height: Array) -> Array:
    """The minimiser for one vector v and one number height ≥ 0."""
    n, start = v.shape[0], v[0]
    v = v - start
    flat = jnp.max(jnp.abs(jnp.cumsum(v - jnp.mean(v))))
    capped = jnp.minimum(height, flat).astype(v.dtype)
    piece = _Piece(jnp.ones_like(start), -v[0])
    kinks, bounds = jnp.zeros((2 * n + 1, 3), v.dtype), jnp.zeros(n + 1, v.dtype)
    first, last, k = jnp.asarray(n), jnp.asarray(n - 1), jnp.asarray(0)
    queue = _Queue(kinks, first, last, piece, piece, kinks[0], kinks[0], k, bounds, bounds)
    queue = jax.lax.fori_loop(0, 3 * n, lambda _, queue: _move(queue, v, capped), queue)

    def back(after: Array, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        x = jnp.clip(after, *bounds)
        return x, x

    _, x = jax.lax.scan(back, queue.low[n - 1], (queue.low[:n], queue.high[:n]), reverse=True)
    x = start + jnp.where(height >= flat, jnp.mean(v), x)
    return jnp.where(jnp.all(jnp.isfinite(v)), x, jnp.nan)


@fused.defjvp
def _along(at: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    x, (moved, grown) = fused(*at), tangents
    up = jnp.sign(jnp.diff(x))
    pull = jnp.pad(up, (0, 1)) - jnp.pad(up, (1, 0))
    run = jnp.pad(jnp.cumsum(up != 0), (1, 0))
    many, total = (
        jax.ops.segment_sum(one, run, num_segments=len(x)) for one in (jnp.ones_like(x), moved + grown * pull)
    )
    return x, (total / jnp.maximum(many, 1.0))[run]


def _move(queue: _Queue, v: Array, height: Array) -> _Queue:
    """Cross one kink from the left or from the right, or else clip D_k and go on to the next entry."""
    kinks, first, last, left, right, next_left, next_right, k, low, high = queue
    n = v.shape[0]
    level = jnp.where(k == n - 1, 0.0, height)  # the whole cost is least where its derivative is 0
    from_left = (first <= last) & (left.at(next_left[0]) <= -level)
    from_right = (first <= last) & ~from_left & (right.at(next_right[0]) >= level)
    clip = ~from_left & ~from_right & (k < n)

    lowest, highest = (-level - left.offset) / left.slope, (level - right.offset) / right.slope
    new_left = jnp.stack([lowest, left.slope, left.offset + level])
    new_right = jnp.stack([highest, -right.slope, level - right.offset])
    kinks = kinks.at[jnp.where(clip, first - 1, 2 * n)].set(new_left)
    kinks = kinks.at[jnp.where(clip, last + 1, 2 * n)].set(new_right)
    first = jnp.where(clip, first - 1, first + from_left)
    last = jnp.where(clip, last + 1, last - from_right)

    after = v[jnp.minimum(k + 1, n - 1)]
    left = _Piece(left.slope + from_left * next_left[1], left.offset + from_left * next_left[2])
    right = _Piece(right.slope - from_right * next_right[1], right.offset - from_right * next_right[2])
    left = _Piece(jnp.where(clip, 1.0, left.slope), jnp.where(clip, -level - after, left.offset))
    right = _Piece(jnp.where(clip, 1.0, right.slope), jnp.where(clip, level - after, right.offset))
    entry = jnp.where(clip, k, n)
    low, high = low.at[entry].set(lowest), high.at[entry].set(highest)
    return _Queue(kinks, first, last, left, right, kinks[first], kinks[last], k + clip, low, high)
