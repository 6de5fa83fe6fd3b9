"""A step found on the way, where no constant is known: tried, and cut until it passes the method's test.

Forward-backward accepts a step γ from x to x̄ when B̂ looks cocoercive enough along it:
    ⟨ΔB, d⟩ ≥ γ/(2ν) ‖ΔB‖²,   d = x̄ − x,  ΔB = B̂(x̄) − B̂(x),  ν = 0.9.
Claim. With γ constant, no relaxation and the test passed, ‖d_{k+1}‖² ≤ ‖d_k‖² − γ²(1/ν − 1)‖ΔB_k‖²: as J_{γA} is
nonexpansive, ‖d_{k+1}‖ ≤ ‖d_k − γΔB_k‖, and the square expands to ‖d_k‖² − 2γ⟨ΔB_k, d_k⟩ + γ²‖ΔB_k‖². So steps shrink,
linearly when B̂ is strongly monotone. If B̂ is θ-cocoercive the test passes for every γ ≤ 2νθ, so γ is cut finitely
often. An operator that is not cocoercive (a rotation) drives γ to 0, far below 1/L with L the steepest slope seen so
far. Once γL < 1e-3 the method says that it is stuck, instead of pretending: θκ is then so small that forward-backward
would need some 10⁶ iterations, where forward-backward-forward needs 10³.

Forward-backward-forward and extragradient ask less, that B̂ is Lipschitz along the step: γ‖ΔB‖ ≤ ν‖d‖. Each iteration
then brings x nearer to every zero, by (1 − ν²)‖d‖² in squares, whatever the other steps were (Tseng 2000).

Agents with very different units get steps in fixed proportions Γ, and all of this holds in the norm of Γ⁻¹ (A must be
separable between them, as it is in a game): d is then Γ^{-½}d, and ΔB is Γ^½ΔB.

One attempt is made at a time: where it fails, the state stays as it is, k included, and the next attempt is shorter. A
step that has looked too short for `patience` iterations on end is doubled; each cut doubles the patience, so doubling
and cutting cannot go on for ever at the same pace.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._points import inners, norm, power_of_two
from epszero._types import Array, PyTree

NU = 0.9
SHORTEST = 1e-3  # γL below this means that B̂ is not cocoercive, or so little that another method is better
SIGNIFICANT = 1e-7  # a relative change of B̂ from which a slope can be read
MOST_CUTS = 400  # from the largest float to the smallest
ROUNDING = 1e-11  # a relative change of B̂ this small is mostly rounding: no slope can be read off it


class Pace(NamedTuple):
    """The step, and what is remembered of how it did."""

    step: Array  # to be tried next
    used: Array  # accepted last
    cuts: Array  # attempts that failed since then
    steepest: Array  # L, the steepest slope of B̂ seen so far
    calm: Array  # iterations on end that would have allowed a much longer step
    patience: Array  # how many of these are needed to lengthen it


class StepTest(NamedTuple):
    """What a test says of one attempt."""

    limit: Array  # the longest step that the test would have passed
    slope: Array  # ‖ΔB‖/‖d‖; 0 where it says nothing, or where any step is as good as it can be


class Judgement(NamedTuple):
    """What becomes of an attempt."""

    accepted: Array
    stuck: Array  # no step will do
    pace: Pace


def first_pace(step: Array) -> Pace:
    """Start from a guess."""
    return Pace(step, step, jnp.asarray(0), jnp.asarray(0.0), jnp.asarray(0), jnp.asarray(4))


def judged(pace: Pace, test: StepTest) -> Judgement:
    """Accept the step or cut it; lengthen it after long calm, and ask for longer calm after each cut."""
    step, limit = pace.step, test.limit
    accepted = step <= limit
    shorter = jnp.where(limit > 0.1 * step, jnp.minimum(2 / 3 * limit, 0.5 * step), 0.1 * step)
    was_cut = pace.cuts > 0
    calm = jnp.where((limit > 2.5 * step) & ~was_cut, pace.calm + 1, 0)
    patience = jnp.where(was_cut, jnp.minimum(2 * pace.patience, 1 << 20), pace.patience)
    longer = calm >= patience
    next_step, next_calm = jnp.where(longer, 2 * step, step), jnp.where(longer, 0, calm)
    steepest = jnp.maximum(pace.steepest, test.slope)
    moved = Pace(next_step, step, jnp.zeros_like(pace.cuts), steepest, next_calm, patience)
    cut = pace._replace(step=shorter, cuts=pace.cuts + 1, steepest=steepest)
    chosen = Pace(*(jnp.where(accepted, a, b) for a, b in zip(moved, cut, strict=True)))
    stuck = ((steepest > 0) & (chosen.step * steepest < SHORTEST)) | (~accepted & (pace.cuts >= MOST_CUTS))
    return Judgement(accepted, stuck, chosen)


def cocoercive(d: PyTree, change: PyTree, value: PyTree) -> StepTest:
    """⟨ΔB, d⟩ ≥ γ/(2ν) ‖ΔB‖², from d, ΔB and a value of B̂ near by, against which rounding is judged."""
    (d, change, value), per = _in_units(d, change, value)
    along, squared, step, size = inners((change, d), (change, change), (d, d), (value, value))
    length, size = jnp.sqrt(squared), 2 * jnp.sqrt(size)
    limit = jnp.where(length <= ROUNDING * size, jnp.inf, per * (2 * NU * along / squared))  # flat: any step would do
    telling = (length > SIGNIFICANT * size) & jnp.isfinite(length)
    return StepTest(_within_range(limit, length), jnp.where(telling, length / jnp.sqrt(step) / per, 0.0))


def lipschitz(d: PyTree, change: PyTree, value: PyTree) -> StepTest:
    """γ‖ΔB‖ ≤ ν‖d‖, with rounding judged as above."""
    (d, change, value), per = _in_units(d, change, value)
    squared, step, size = inners((change, change), (d, d), (value, value))
    length = jnp.sqrt(squared)
    limit = jnp.where(length <= 2 * ROUNDING * jnp.sqrt(size), jnp.inf, per * (NU * jnp.sqrt(step) / length))
    return StepTest(_within_range(limit, length), jnp.asarray(0.0))


def _in_units(d: PyTree, change: PyTree, value: PyTree) -> tuple[tuple[PyTree, PyTree, PyTree], Array]:
    """d and B̂ in units of their own, in which no square overflows or vanishes, and a step of 1 in these units."""
    of_d, of_B = power_of_two(d), power_of_two((change, value))
    d, change, value = (
        jax.tree.map(lambda leaf, by=by: leaf / by, u) for u, by in ((d, of_d), (change, of_B), (value, of_B))
    )
    return (d, change, value), of_d / of_B


def _within_range(limit: Array, length: Array) -> Array:
    return jnp.where(jnp.isfinite(length), limit, 0.0)  # out of the range of B̂, or of float64: much too long


def probing_step(x: PyTree, Bx: PyTree) -> Array:
    """A step that moves x by a thousandth of its size."""
    size = norm(Bx)
    return jnp.where((size > 0) & jnp.isfinite(size), 1e-3 * jnp.maximum(1.0, norm(x)) / size, 1.0)


def first_step(d: PyTree, change: PyTree) -> Array:
    """A first step, too long rather than too short: 4/L with L the slope of B̂ between two points near each other."""
    slope = norm(change) / norm(d)
    return jnp.where(jnp.isfinite(slope) & (slope > 0), 4.0 / slope, 1.0)
