"""Days in their order, whatever their dependence; for oracles that are affine in features: O(x, ξ) = G(x) + C(x)φ(ξ).

Claim: let μ_i = E[φ(ξ_i) | ξ_1 … ξ_{i−1}], B_i(x) = G(x) + C(x)μ_i what the past promises of day i, and B the average
of B_i over the s days at hand. With probability ≥ 1 − δ, ‖z + B(x)‖ ≤ ε for every x at once, and distance, savings
and cost gap with respect to this B, by the conversions of that one event (consequences.py).
By empirical Bernstein for vectors (mean/empirical_bernstein.py), whose proof takes one conditional mean after another
and never asks that they be equal. For one weight w for all days, S = Σ (φ(ξ_i) − μ_i) and c_i w < 1,
    M(w) = cosh(w‖S‖) exp(−Σ ψ(c_i w)‖φ(ξ_i) − μ̂_{i−1}‖²/c_i²)
is a nonnegative supermartingale that starts at 1. So is its average over weights w_k that are fixed beforehand,
halves of each other from the largest that the support allows to the one that suits the largest variance; by Ville it
stays below 1/δ with probability ≥ 1 − δ, which bounds ‖S‖. No day is spent on finding the weight.
Centres μ̂_{i−1} are forecasts: of the mean so far and means that forget, the one that has forecast best until then.
Where days resemble the day before, the radius follows what is new in a day, not how far days spread.
Assumes the support, nothing else: no independence, no stationarity. How many days there are is decided beforehand.
B and its zero x* are random, so no bound may lean on x* being a fact about the law: not the two events of section 6,
not section 9. Nor betting: Π(1 + l_i(x_i − m)) is a martingale where m is the mean of every day, not their average.
It says nothing of days to come, unless the law is stationary. Source: docs/theory.md, section 10. Cost: O(s d).
"""

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from epszero._checks import refuse
from epszero._lazy import lazily
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Leaning, Obstacle, cannot
from epszero.certificates._inputs import GivenSupport, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.mean import MeanBound, MeanSet, Region
from epszero.certificates.mean._base import bounded, in_units, log_of
from epszero.certificates.mean.empirical_bernstein import LARGEST, predictable_centres, psi
from epszero.facts import Provenance
from epszero.samples import Samples

signal = lazily("scipy.signal")
FORGETS = (0.05, 0.2, 0.5, 1.0)  # the share of the last day in a centre that forgets
SMALL = 1e-100  # lengths, in units of the support
HALVINGS = 60  # of an interval that holds the radius
ROUND_UP = 1 + 1e-9


@dataclass(frozen=True, eq=False)
class Prequential(Kind):
    """The average over the days at hand of what the past promised; any dependence.

    `support`: as in MeanDeviation, but never "estimated", which would look at days to come.
    """

    support: GivenSupport = None
    other_truth: ClassVar[bool] = True  # B is not that of a law

    def __post_init__(self) -> None:
        checked_support(self.support)
        if isinstance(self.support, str):
            refuse("support", "an estimated range looks at days to come, so it promises nothing", "Give a set")

    @property
    def title(self) -> str:
        return "prequential"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = in_order(case)
        evidence = Evidence(case, case.samples, self.support, independent=False)
        title = f"{self.title}, all samples in their order"
        finding = examined(evidence, EqualWeights(), delta, title, CHOSEN_ORDER if samples.chosen else ORDER)
        return replace(finding, truth=TRUTH.format(s=len(samples)))


def in_order(case: Case) -> Samples:
    """The data in the order in which they came, each sample once."""
    if case.kept_aside is not None:
        cannot("days in their order are wanted, and some were kept aside at random: solve without holdout")
    if case.collapsed(case.samples) is None or len(case.samples) != 1:
        cannot("days in their order need an oracle that is affine in features, and one data set for all agents")
    (samples,) = case.samples
    if samples.repeated:
        violated = Leaning(ORDER.what, Provenance.VIOLATED, "rows occur more than once")
        said = f"{samples.repeated} of {len(samples)} samples are repetitions of others: pass every one once"
        cannot(said, violated, obstacle=Obstacle.NOT_INDEPENDENT)
    return samples


TRUTH = (
    "B is the average over these {s} samples of what those before each promised, and x* its zero: nothing is said of "
    "samples to come, unless their law is stationary"
)
ORDER = Leaning("samples in the order in which they came", Provenance.DECLARED, "any dependence")
CHOSEN_ORDER = replace(ORDER, evidence="rows chosen by the user: what the past promises is of days so chosen")


@dataclass(frozen=True)
class EqualWeights(MeanBound):
    """A ball for the average of conditional means over all days, in their order."""

    title: ClassVar[str] = "vector empirical Bernstein with equal weights"

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        small, region, unit = in_units(X, bounded(region))
        *trials, s, d = X.shape
        flat = small.reshape(-1, s, d)
        centre, log = np.mean(X, axis=-2), log_of(2, delta)
        if not region.diameter > 0:
            return MeanSet(centre, np.zeros(trials))
        centres, squares = forecasts(flat, region)
        c = np.maximum(region.farthest(centres), SMALL)
        shares = squares / c**2
        w = weights(s, log) / region.diameter  # c_i is at most the diameter
        V = np.stack([np.sum(psi(c * one) * shares, axis=1) for one in w], axis=1)
        radius = np.minimum(_longest(w, V, log) / s, region.diameter)
        return MeanSet(centre, unit * radius.reshape(trials))


def weights(s: int, log: float) -> FloatArray:
    """In units of 1/diameter: from the largest down to the one for the largest variance, a quarter of its square."""
    least = min(2 * math.sqrt(2 * log / s), LARGEST)
    halves = 1 + math.ceil(math.log2(LARGEST / least))
    return np.array([LARGEST * 2.0**-k for k in range(halves)])


def _longest(w: FloatArray, V: FloatArray, log: float) -> FloatArray:
    """At least the largest ‖S‖ with the average over k of cosh(w_k‖S‖)e^{−V_k} below 1/δ; log = ln(2/δ)."""
    high = np.min((log + math.log(len(w)) + V) / w, axis=1)  # where one of them alone is too large
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        y = w * middle[:, None]
        grown = y + np.log1p(np.exp(-2 * y)) - V
        most = np.max(grown, axis=1)
        below = most + np.log(np.mean(np.exp(grown - most[:, None]), axis=1)) < log
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high * ROUND_UP


def forecasts(X: FloatArray, region: Region) -> tuple[FloatArray, FloatArray]:
    """μ̂_{i−1} for every day, and ‖X_i − μ̂_{i−1}‖²: by whatever forecast best on the days before."""
    guess = region.first_guess
    start = X[:, :1] if guess is None else np.broadcast_to(guess.centre, X[:, :1].shape)
    ways = [predictable_centres(X, guess), *(_forgetting(X, start, share) for share in FORGETS)]
    squares = np.stack([np.einsum("tmd,tmd->tm", X - way, X - way) for way in ways])
    before = np.concatenate([np.zeros_like(squares[..., :1]), np.cumsum(squares[..., :-1], axis=-1)], axis=-1)
    best = np.argmin(before, axis=0)[None]
    taken = np.take_along_axis(np.stack(ways), best[..., None], axis=0)[0]
    found = np.take_along_axis(squares, best, axis=0)[0]
    if guess is None:  # the first day is its own centre, which nobody foresaw: it counts as far as any point can be
        found[:, 0] = region.farthest(taken[:, :1])[:, 0] ** 2
    return taken, found


def _forgetting(X: FloatArray, start: FloatArray, share: float) -> FloatArray:
    """y_i = share·X_i + (1 − share)·y_{i−1}, one day late."""
    filtered: Any = signal.lfilter([share], [1.0, share - 1.0], X, axis=1, zi=(1 - share) * start)[0]
    return np.concatenate([start, filtered[:, :-1]], axis=1)
