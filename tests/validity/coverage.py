"""How often a confidence set misses the mean, how wide it is, and whether that many misses are too many.

The judgement is an exact binomial test: misses of a valid bound are at most as frequent as Bin(trials, δ), so a count
that such a variable reaches with probability below 1e-4 convicts the bound.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom

from epszero.certificates.mean import (
    Bernstein,
    Betting,
    EmpiricalBernstein,
    Hoeffding,
    McDiarmid,
    MeanBound,
    MeanSet,
    MedianOfMeans,
    Region,
    Stitched,
    SubGaussian,
)

from .laws import Law

CONVICTED = 1e-4
ENTRIES = 1 << 21  # numbers drawn at once: 16 MB
ROUNDING = 1e-13  # relative to the largest number about; a mean of many equal numbers is not quite that number


@dataclass(frozen=True)
class Contender:
    """A bound as it applies to a law: `bound` is None where it does not, `region` is what it is told of the support."""

    name: str
    bound: Callable[[Law], MeanBound | None]
    region: Callable[[Law], Region | None] = lambda law: law.region
    anytime: bool = False
    dear: bool = False  # slow: fewer numbers will do

    def applies(self, law: Law) -> bool:
        bound = self.bound(law)
        return bound is not None and not (bound.needs_region and law.support is None)


CONTENDERS = {
    contender.name: contender
    for contender in [
        Contender("empirical Bernstein", lambda law: EmpiricalBernstein()),
        Contender(
            "empirical Bernstein, diameter only",
            lambda law: EmpiricalBernstein(),
            lambda law: None if law.region is None else Region.within(law.region.diameter, law.dim),
        ),
        Contender("empirical Bernstein, anytime", lambda law: EmpiricalBernstein(anytime=True), anytime=True),
        Contender("betting", lambda law: Betting(), dear=True),
        Contender("betting, anytime", lambda law: Betting(anytime=True), anytime=True, dear=True),
        Contender("Bernstein", lambda law: Bernstein()),
        Contender("Bernstein, variance declared", lambda law: Bernstein(variance=law.variance)),
        Contender("Hoeffding", lambda law: Hoeffding()),
        Contender("stitched Hoeffding", lambda law: Stitched(), anytime=True),
        Contender("McDiarmid", lambda law: McDiarmid()),
        Contender("sub-Gaussian", lambda law: None if law.sigma is None else SubGaussian(law.sigma)),
        Contender("median of means", lambda law: MedianOfMeans(math.sqrt(law.variance))),
    ]
}


@dataclass(frozen=True)
class Question:
    """One confidence set on trial."""

    bound: MeanBound
    region: Region | None
    delta: float


@dataclass
class Tally:
    """What became of it."""

    misses: int = 0
    width: float = 0.0  # the mean distance of the farthest point from the centre


def ask(
    law: Law, questions: Sequence[Question], sizes: Sequence[int], trials: int, seed: int
) -> tuple[list[Tally], np.ndarray]:
    """One tally per question, and ‖X̄ − μ‖ of every trial. The same samples for all.

    A trial is one stream of samples; it misses when at any of `sizes` the mean is outside. The width is at the last.
    """
    rng = np.random.default_rng([seed, max(sizes), law.dim])
    at_once = max(1, ENTRIES // (max(sizes) * law.dim))
    tallies, errors = [Tally() for _ in questions], []
    for start in range(0, trials, at_once):
        X = law.draw(rng, (min(at_once, trials - start), max(sizes)))
        errors.append(np.linalg.norm(X.mean(axis=1) - law.mean, axis=-1))
        for question, tally in zip(questions, tallies, strict=True):
            missed = np.zeros(len(X), dtype=bool)
            for m in sizes:
                found = question.bound.around(X[:, :m], question.region, question.delta)
                missed |= ~holds(found, law)
                if m == max(sizes):
                    tally.width += float(np.sum(found.norm_from(found.centre))) / trials
            tally.misses += int(missed.sum())
    return tallies, np.concatenate(errors)


def holds(found: MeanSet, law: Law) -> np.ndarray:
    """Whether the mean is inside, up to rounding."""
    return MeanSet(found.centre, found.radius + ROUNDING * law.size).contains(law.mean)


def misses(
    bound: MeanBound,
    law: Law,
    m: int | Sequence[int],
    delta: float,
    trials: int,
    seed: int,
    region: Region | None = None,
) -> int:
    """How many trials missed the mean; with several m, at any of these sizes of one stream."""
    sizes = [m] if isinstance(m, int) else m
    question = Question(bound, law.region if region is None else region, delta)
    return ask(law, [question], sizes, trials, seed)[0][0].misses


def too_many(missed: int, trials: int, delta: float) -> bool:
    """Whether a valid bound would miss as often with probability below 1e-4 only."""
    return bool(binom.sf(missed - 1, trials, delta) < CONVICTED)


def allowed(trials: int, delta: float) -> int:
    """The largest number of misses that is not too many."""
    most = int(binom.isf(CONVICTED, trials, delta)) + 1
    while too_many(most, trials, delta):
        most -= 1
    return most


@dataclass(frozen=True)
class Row:
    """One line of a study: a bound, or a whole certificate, against its δ."""

    study: str
    bound: str
    law: str
    size: str  # the number of samples
    delta: float
    misses: int
    trials: int
    ratio: float  # the mean width over the true (1 − δ)-quantile
    certified: float = math.nan  # the share of trials in which the piece of the truth was certified
    broken: bool = False  # on purpose, so that the same count must convict it

    @property
    def failed(self) -> bool:
        return too_many(self.misses, self.trials, self.delta) != self.broken

    @property
    def rate(self) -> float:
        return self.misses / self.trials


def quantile(errors: np.ndarray, delta: float) -> float:
    """The (1 − δ)-quantile of ‖X̄ − μ‖: no bound that knew the law could do with less."""
    return float(np.quantile(errors, 1 - delta))
