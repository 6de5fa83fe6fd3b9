"""Betting: a box, by a confidence interval for each coordinate.

Claim: coordinates scaled to [0, 1], each at level δ/dim: {v : ½Π(1 + l_i(x_i − v)) + ½Π(1 − l_i(x_i − v)) < dim/δ} with
predictable 0 ≤ l_i ≤ 0.95 holds the mean with probability ≥ 1 − δ, at every sample size at once. Assumes independent
samples in a box. The products are convex in v, so the set is an interval; Σ l_i x_i/Σ l_i always lies in it. Its width
follows the variance, and for skewed and rare outcomes it is the shortest there is.
`upper_mean` is the one-sided form: the largest v with Π(1 + l_i(v − x_i)) < 1/δ.
Source: Waudby-Smith & Ramdas, Estimating means of bounded random variables by betting (JRSS B, 2024), Thm 3; the bets
l_i are those of empirical_bernstein.py. Ends are found by bisection and rounded outward.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epszero._checks import refuse
from epszero._types import FloatArray
from epszero.certificates.mean._base import MeanBound, MeanSet, bounded, in_units, log_of
from epszero.certificates.mean.empirical_bernstein import (
    AT_ONCE,
    best_lambda,
    predictable_centres,
    predictable_variance,
)
from epszero.facts.region import SLACK, Prior, Region

BOLDEST = 0.95
UNIT = Prior(np.array(0.5), 1 / 16, np.array(1 / 16), 1.0)  # before anything is known
HALVINGS = 30  # of an interval no longer than 1


@dataclass(frozen=True)
class Betting(MeanBound):
    """A box that adapts to the variance of each coordinate. `anytime=True`: valid at every sample size at once."""

    title: ClassVar[str] = "box betting"
    anytime: bool = False

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        log_odds = log_of(X.shape[-1], delta)
        small, region, size = in_units(X, bounded(region))
        *trials, m, d = X.shape
        flat = small.reshape(-1, m, d)
        if region.lower is None or region.upper is None:  # of such a box only the width is known, not its place
            refuse("region", "box betting needs the bounds of a box", "Take EmpiricalBernstein")
        width = np.maximum((region.upper - region.lower) * (1 + 2 * SLACK), 0.0)
        lower = region.lower - SLACK * width
        step = max(1, AT_ONCE // (m * d))
        low, high = np.empty((len(flat), d)), np.empty((len(flat), d))
        for i in range(0, len(flat), step):
            unit = (flat[i : i + step] - lower) / np.where(width > 0, width, 1.0)
            guess = _scaled(region.first_guess, lower, width)
            low[i : i + step], high[i : i + step] = _interval(np.clip(unit, 0.0, 1.0), log_odds, self.anytime, guess)
        low, high = (lower + low * width) * size, (lower + high * width) * size
        return MeanSet(((low + high) / 2).reshape(*trials, d), ((high - low) / 2 * (1 + SLACK)).reshape(*trials, d))

    def streaming(self) -> MeanBound:
        return Betting(anytime=True)


def upper_mean(x: FloatArray, log: float) -> FloatArray:
    """An upper (1 − δ)-bound on the mean of numbers in [0, 1], `log` = ln(1/δ); the last axis counts them."""
    bets = _bets(x[..., None], log, False, UNIT)
    inside = np.sum(bets * x[..., None], axis=-2) / np.sum(bets, axis=-2)
    return _end(inside, 1.0, lambda v: _log_wealth(bets, v[..., None, :] - x[..., None]), log)[..., 0]


def _interval(x: FloatArray, log_odds: float, anytime: bool, guess: Prior) -> tuple[FloatArray, FloatArray]:
    """Both ends, for samples (…, m, d) in [0, 1] and the logarithm of the wealth below `log_odds`."""
    bets = _bets(x, math.log(2) + log_odds, anytime, guess)
    inside = np.sum(bets * x, axis=-2) / np.sum(bets, axis=-2)

    def log_wealth(v: FloatArray) -> FloatArray:
        gain = x - v[..., None, :]
        return np.logaddexp(_log_wealth(bets, gain), _log_wealth(bets, -gain)) - math.log(2)

    return _end(inside, 0.0, log_wealth, log_odds), _end(inside, 1.0, log_wealth, log_odds)


def _scaled(guess: Prior | None, lower: FloatArray, width: FloatArray) -> Prior:
    """The guess in coordinates scaled to [0, 1]."""
    if guess is None:
        return UNIT
    safe = np.where(width > 0, width, 1.0)
    variances = np.maximum(guess.variances / safe**2, 1e-8)
    return Prior(np.clip((guess.centre - lower) / safe, 0.0, 1.0), 0.0, variances, guess.count)


def _bets(x: FloatArray, log: float, anytime: bool, guess: Prior) -> FloatArray:
    """l_i, from the samples before the i-th and a first guess."""
    count = np.arange(1, x.shape[-2] + 1)
    squares = np.moveaxis((x - predictable_centres(x, guess)) ** 2, -2, -1)
    horizon = count * np.log1p(count) if anytime else float(len(count))
    best = best_lambda(log / (horizon * predictable_variance(squares, guess.variances, guess.count)))
    return np.moveaxis(np.minimum(best, BOLDEST), -1, -2)


def _log_wealth(bets: FloatArray, gain: FloatArray) -> FloatArray:
    return np.sum(np.log1p(bets * gain), axis=-2)


def _end(
    inside: FloatArray, limit: float, log_wealth: Callable[[FloatArray], FloatArray], log_odds: float
) -> FloatArray:
    """Where wealth reaches the odds, between a point inside and 0 or 1: never short of it."""
    outside = np.full_like(inside, limit)
    all_inside = log_wealth(outside) < log_odds
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        within = log_wealth(middle) < log_odds
        inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
    return np.where(all_inside, limit, outside)
