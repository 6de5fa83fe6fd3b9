"""A step found on the way, where no constant is known.

A step γ from x to p is accepted when B̂ looks cocoercive enough along it:
    ⟨ΔB, d⟩ ≥ γ/(2ν) ‖ΔB‖²,   d = p − x,  ΔB = B̂(p) − B̂(x),  ν = 0.9.
Claim. With γ constant, no relaxation and the test passed, ‖d_{k+1}‖² ≤ ‖d_k‖² − γ²(1/ν − 1)‖ΔB_k‖²: as J_{γA} is
nonexpansive, ‖d_{k+1}‖ ≤ ‖d_k − γΔB_k‖, and the square expands to ‖d_k‖² − 2γ⟨ΔB_k, d_k⟩ + γ²‖ΔB_k‖². So steps shrink,
linearly when B̂ is strongly monotone. If B̂ is θ-cocoercive the test passes for every γ ≤ 2νθ, so γ is cut finitely
often. An operator that is not cocoercive (a rotation) drives γ to 0: the method then says that it is stuck, instead of
pretending.
A step that has looked too short for `patience` iterations on end is doubled; each cut doubles the patience, so doubling
and cutting cannot go on for ever at the same pace.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._points import inner, norm, subtract
from epszero._types import Array, PyTree

NU = 0.9
ACROSS = 1e-6  # a cosine of (ΔB, d) below this, five cuts on end, means that no step will do
MOST_CUTS = 400  # from the largest float to the smallest
ROUNDING = 1e-11  # a relative change of B̂ this small is mostly rounding: no slope can be read off it


class Pace(NamedTuple):
    """The step, and what is remembered of how it did."""

    step: Array  # to be tried next
    used: Array  # accepted last
    calm: Array  # iterations on end that would have allowed a much longer step
    patience: Array  # how many of these are needed to lengthen it


class Trial(NamedTuple):
    """One attempt: p = J_{γA}(x − γB̂(x))."""

    step: Array
    p: PyTree
    z: PyTree
    Bp: PyTree
    limit: Array  # the longest step that the test would have passed
    accepted: Array
    hopeless: Array  # ΔB is orthogonal to d, or against it
    cuts: Array


def first_pace(step: Array) -> Pace:
    """Start from a guess."""
    return Pace(step, step, jnp.asarray(0), jnp.asarray(4))


def search(attempt: Callable[[Array], tuple[PyTree, PyTree, PyTree]], x: PyTree, Bx: PyTree, pace: Pace) -> Trial:
    """Shorten the step until the test passes. `attempt(γ)` gives p, z and B̂(p)."""

    def shorten(trial: Trial) -> Trial:
        p, z, Bp = attempt(trial.step)
        change, d = subtract(Bp, Bx), subtract(p, x)
        size, along = norm(change), inner(change, d)
        flat = size <= ROUNDING * (norm(Bx) + norm(Bp))  # B̂ hardly changes: any step would do
        limit = jnp.where(flat, jnp.inf, 2 * NU * along / size**2)
        limit = jnp.where(jnp.isfinite(size), limit, 0.0)  # out of the range of B̂, or of float64: much too long
        accepted = trial.step <= limit
        shorter = jnp.where(limit > 0.1 * trial.step, jnp.minimum(2 / 3 * limit, 0.5 * trial.step), 0.1 * trial.step)
        step = jnp.where(accepted, trial.step, shorter)
        hopeless = ~accepted & (trial.cuts >= 4) & (along < ACROSS * size * norm(d)) & jnp.isfinite(size)
        return Trial(step, p, z, Bp, limit, accepted, hopeless, trial.cuts + 1)

    no = jnp.asarray(False)
    start = Trial(pace.step, x, x, Bx, jnp.asarray(0.0), no, no, jnp.asarray(-1))
    return jax.lax.while_loop(lambda t: ~t.accepted & ~t.hopeless & (t.cuts < MOST_CUTS), shorten, start)


def next_pace(pace: Pace, trial: Trial) -> Pace:
    """Lengthen after long calm; ask for longer calm after each cut."""
    was_cut = trial.cuts > 0
    calm = jnp.where((trial.limit > 2.5 * trial.step) & ~was_cut, pace.calm + 1, 0)
    patience = jnp.where(was_cut, jnp.minimum(2 * pace.patience, 1 << 20), pace.patience)
    longer = calm >= patience
    step = jnp.where(longer, 2 * trial.step, trial.step)
    return Pace(step, trial.step, jnp.where(longer, 0, calm), patience)


def probe(x: PyTree, Bx: PyTree) -> Array:
    """A step that moves x by a thousandth of its size."""
    size = norm(Bx)
    return jnp.where((size > 0) & jnp.isfinite(size), 1e-3 * jnp.maximum(1.0, norm(x)) / size, 1.0)


def guess(x: PyTree, Bx: PyTree, p: PyTree, Bp: PyTree) -> Array:
    """A first step, too long rather than too short: 4/L with L the slope of B̂ between two points near each other."""
    slope = norm(subtract(Bp, Bx)) / norm(subtract(p, x))
    return jnp.where(jnp.isfinite(slope) & (slope > 0), 4.0 / slope, 1.0)
