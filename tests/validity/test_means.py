"""Every bound on every law: misses are no more frequent than δ. And broken bounds, which the same test must convict."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

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
    betting,
    empirical_bernstein,
    median_of_means,
)

from .coverage import CONTENDERS, Question, allowed, ask, misses, quantile, too_many
from .laws import LAWS

pytestmark = pytest.mark.some(2)

DELTAS = (0.3, 0.05)
SIZES = (2, 10, 100)
GRID = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 16, 20, 24, 31, 32, 45, 63, 64, 90, 127, 128)  # each 2^k and its neighbour
PAIRS = [(c, law) for law in LAWS.values() for c in CONTENDERS.values() if c.applies(law)]


def params(pairs):
    """Betting is slow, so `make test` has it on some laws only."""
    slow = {law.name for place, law in enumerate(LAWS.values()) if place % 3}
    return [
        pytest.param(c, law, id=f"{c.name}-{law.name}",
                     marks=pytest.mark.long if "betting" in c.name and law.name in slow else [])
        for c, law in pairs
    ]  # fmt: skip


def trials_for(entries: int, dear: bool) -> int:
    """Fewer where a trial is many numbers, or the bound is slow."""
    return int(np.clip((1.2e5 if dear else 2e6) / entries, 200, 1500))


@pytest.mark.some(4)
@pytest.mark.parametrize(("contender", "law"), params(PAIRS))
def test_misses_are_no_more_frequent_than_delta(contender, law):
    bound, region = contender.bound(law), contender.region(law)
    for m in SIZES:
        if contender.dear and m * law.dim > 3000:
            continue
        trials = trials_for(m * law.dim, contender.dear)
        tallies, _ = ask(law, [Question(bound, region, delta) for delta in DELTAS], [m], trials, seed=1)
        for delta, tally in zip(DELTAS, tallies, strict=True):
            assert not too_many(tally.misses, trials, delta), f"m = {m}, δ = {delta}: {tally.misses} of {trials}"
            assert math.isfinite(tally.width) or isinstance(bound, MedianOfMeans)  # whose median may not converge


STREAMS = [(c, law) for c, law in PAIRS if c.anytime and (law.dim <= 3 or not c.dear)]


@pytest.mark.parametrize(("contender", "law"), params(STREAMS))
def test_anytime_bounds_hold_at_all_sizes_at_once(contender, law):
    entries = sum(GRID) * law.dim
    trials = int(np.clip((2e5 if contender.dear else 1e6) / entries, 150, 800))
    questions = [Question(contender.bound(law), contender.region(law), delta) for delta in DELTAS]
    for delta, tally in zip(DELTAS, ask(law, questions, GRID, trials, seed=2)[0], strict=True):
        assert not too_many(tally.misses, trials, delta), f"δ = {delta}: {tally.misses} of {trials}"


def test_streaming_gives_the_anytime_form():
    assert EmpiricalBernstein().streaming() == EmpiricalBernstein(anytime=True)
    assert Betting().streaming() == Betting(anytime=True)
    assert Hoeffding().streaming() == Stitched() == Stitched().streaming()
    assert all(bound.streaming() is None for bound in (McDiarmid(), Bernstein(), SubGaussian(1.0), MedianOfMeans(1.0)))


@pytest.mark.parametrize("name", LAWS)
def test_a_law_is_what_it_says(name):
    law = LAWS[name]
    X = law.draw(np.random.default_rng(3), (1, max(2000, 400_000 // law.dim)))[0]
    error = np.abs(X.mean(axis=0) - law.mean) / np.maximum(X.std(axis=0), 1e-9) * math.sqrt(len(X))
    assert error.max() < 5
    if "Student" not in name:  # whose squares have no variance
        assert np.mean(np.sum((X - law.mean) ** 2, axis=1)) == pytest.approx(law.variance, rel=0.1, abs=1e-12)
    if law.support is not None:
        assert np.all(law.region.lower - 1e-12 <= X)
        assert np.all(law.region.upper + 1e-12 >= X)
        assert law.variance <= law.region.variance + 1e-15
        assert np.all(np.linalg.norm(X - law.region.centre, axis=1) <= law.region.farthest(law.region.centre) + 1e-12)
    if law.sigma is not None:  # E e^{⟨v, X − μ⟩} ≤ e^{σ²‖v‖²/2}, along some directions
        for v in np.random.default_rng(4).standard_normal((5, law.dim)):
            slope = v / np.linalg.norm(v) / max(law.sigma, 1e-9)
            assert np.mean(np.exp((X - law.mean) @ slope)) <= math.exp(0.5) * 1.05


# Broken bounds. Each has one thing wrong, and there is a law on which the test convicts it.


@dataclass(frozen=True)
class Scaled(MeanBound):
    """The radius times a number."""

    bound: MeanBound
    by: float

    def around(self, X, region, delta):
        found = self.bound.around(X, region, delta)
        return MeanSet(found.centre, found.radius * self.by)


@dataclass(frozen=True)
class Repeated(MeanBound):
    """Data seen more than once: every sample is presented `times` times over."""

    bound: MeanBound
    times: int

    def around(self, X, region, delta):
        return self.bound.around(np.repeat(X, self.times, axis=-2), region, delta)


@dataclass(frozen=True)
class RangeOffTheData(MeanBound):
    """The support is taken for the box around the samples seen."""

    bound: MeanBound

    def around(self, X, region, delta):
        boxes = [Region.box(x.min(axis=0), x.max(axis=0) + 1e-9) for x in X]
        found = [self.bound.around(x[None], box, delta) for x, box in zip(X, boxes, strict=True)]
        return MeanSet(np.concatenate([f.centre for f in found]), np.concatenate([f.radius for f in found]))


class PeekingWeights(EmpiricalBernstein):
    """The weight of X_i follows its own square: outliers are weighed down after they were seen."""

    def around(self, X, region, delta):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(empirical_bernstein, "predictable_variance", lambda squares, *_: squares + 1e-6)
            return super().around(X, region, delta)


class PeekingBets(Betting):
    """The bet on x_i follows its own square."""

    def around(self, X, region, delta):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(betting, "predictable_variance", lambda squares, *_: squares + 1e-6)
            return super().around(X, region, delta)


class CentreOnItself(EmpiricalBernstein):
    """μ̂_i is X_i and the samples before, the last weighing half: squares are a quarter of what they should be."""

    def around(self, X, region, delta):
        honest = empirical_bernstein.lagging_centres

        def peeking(X, guess, often):
            centres, repeats = honest(X, guess, often)
            return (np.repeat(centres, repeats, axis=-2) + X) / 2, np.ones(X.shape[-2], dtype=int)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(empirical_bernstein, "lagging_centres", peeking)
            return super().around(X, region, delta)


class LevelNotDivided(Betting):
    """Every coordinate at level δ, rather than δ/dim."""

    def around(self, X, region, delta):
        alone = [
            (X[..., j : j + 1], Region.box(region.lower[j : j + 1], region.upper[j : j + 1]))
            for j in range(X.shape[-1])
        ]
        found = [super(LevelNotDivided, self).around(own, box, delta) for own, box in alone]
        return MeanSet(
            *(np.concatenate([getattr(one, part) for one in found], axis=-1) for part in ("centre", "radius"))
        )


class VarianceAcrossCoordinates(Bernstein):
    """The variance along the wrong axis: that of the entries of one sample."""

    def around(self, X, region, delta):
        variance = float(np.mean(np.var(X, axis=-1)))
        return Bernstein(variance=variance).around(X, region, delta)


class VarianceOfOneCoordinate(Bernstein):
    """The mean over coordinates of their variances, where their sum is meant."""

    def around(self, X, region, delta):
        variance = float(np.mean(np.var(X, axis=-2)))
        return Bernstein(variance=variance).around(X, region, delta)


class MeanOfTheNormForgotten(McDiarmid):
    """‖X̄ − μ‖ taken to have mean 0, and one sample to move it by ρ/m rather than R/m."""

    def around(self, X, region, delta):
        radius = region.circumradius * math.sqrt(math.log(1 / delta) / (2 * X.shape[-2]))
        return MeanSet(X.mean(axis=-2), np.full(X.shape[:-2], radius))


class EachSizeAtItsOwnLevel(Hoeffding):
    """Hoeffding's ball at every sample size, δ not shared out among them; at 0.7 of its radius, as it is so loose."""

    def around(self, X, region, delta):
        found = super().around(X, region, delta)
        return MeanSet(found.centre, found.radius * 0.7)


class DimensionForgotten(SubGaussian):
    """The bound of dimension one, whatever the dimension."""

    def radius(self, m, dim, region, delta):
        return super().radius(m, 1, region, delta)


class CommonLogarithm(Hoeffding):
    """log₁₀ for ln: still valid at large δ, where the bound is loose enough to forgive it."""

    def radius(self, m, dim, region, delta):
        return super().radius(m, dim, region, delta) / math.sqrt(math.log(10))


@dataclass(frozen=True)
class SharesOfOne(MedianOfMeans):
    """The radius σ/√n instead of C σ/√(n p): as if the mean of a block were never far."""

    def around(self, X, region, delta):
        blocks = median_of_means._plan(X.shape[-2], X.shape[-1] == 1, delta)[0]
        found = super().around(X, region, delta)
        return MeanSet(found.centre, np.full_like(found.radius, self.sigma / math.sqrt(X.shape[-2] // blocks)))


HALF = 0.5
BROKEN = {
    "half of Hoeffding": (Scaled(Hoeffding(), HALF), "random corners, d = 1", 100, 0.05),
    "Hoeffding, range off the data": (RangeOffTheData(Hoeffding()), "rare, p = 0.005", 100, 0.3),
    "Hoeffding, samples four times": (Repeated(Hoeffding(), 4), "random corners, d = 1", 100, 0.05),
    "Hoeffding, common logarithm": (CommonLogarithm(), "random corners, d = 1", 100, 0.01),
    "half of stitched": (Scaled(Stitched(), HALF), "random corners, d = 1", GRID, 0.05),
    "each size at its own level": (EachSizeAtItsOwnLevel(), "random corners, d = 1", GRID, 0.05),
    "half of McDiarmid": (Scaled(McDiarmid(), HALF), "random corners, d = 1", 100, 0.05),
    "McDiarmid without the mean": (MeanOfTheNormForgotten(), "random corners, d = 200", 10, 0.3),
    "half of Bernstein, variance known": (Scaled(Bernstein(variance=1.0), HALF), "random corners, d = 1", 1000, 0.05),
    "Bernstein, wrong axis": (VarianceAcrossCoordinates(), "two opposite corners, d = 14", 100, 0.3),
    "Bernstein, mean for sum": (VarianceOfOneCoordinate(), "prices, d = 14", 1000, 0.05),
    "Bernstein, range off the data": (RangeOffTheData(Bernstein()), "rare, p = 0.005", 100, 0.3),
    "half of empirical Bernstein": (Scaled(EmpiricalBernstein(), HALF), "uniform, d = 1", 1000, 0.05),
    "empirical Bernstein, range off the data": (RangeOffTheData(EmpiricalBernstein()), "rare, p = 0.005", 100, 0.3),
    "empirical Bernstein, samples five times": (Repeated(EmpiricalBernstein(), 5), "random corners, d = 1", 100, 0.05),
    "empirical Bernstein, peeking weights": (PeekingWeights(), "rare, p = 0.05", 100, 0.3),
    "empirical Bernstein, peeking centres": (CentreOnItself(), "random corners, d = 1", 1000, 0.05),
    "half of empirical Bernstein, anytime": (
        Scaled(EmpiricalBernstein(anytime=True), HALF),
        "random corners, d = 1",
        GRID,
        0.3,
    ),
    "half of betting": (Scaled(Betting(), HALF), "random corners, d = 1", 1000, 0.05),
    "half of betting, anytime": (Scaled(Betting(anytime=True), HALF), "random corners, d = 1", GRID, 0.3),
    "betting, samples four times": (Repeated(Betting(), 4), "uniform, d = 1", 100, 0.05),
    "betting, peeking": (PeekingBets(), "four atoms, d = 2", 100, 0.3),
    "betting, level not divided": (LevelNotDivided(), "random corners, d = 200", 10, 0.3),
    "betting, range off the data": (RangeOffTheData(Betting()), "rare, p = 0.005", 100, 0.3),
    "half of sub-Gaussian": (Scaled(SubGaussian(0.5), HALF), "Gaussian, d = 1", 10, 0.05),
    "sub-Gaussian, dimension forgotten": (DimensionForgotten(2.0), "Gaussian, d = 14", 10, 0.05),
    "median of means without Chebyshev": (SharesOfOne(1.0), "Student t₃, d = 2", 100, 0.3),
    "median of means, σ of one coordinate": (MedianOfMeans(1.2), "Gaussian, d = 14", 100, 0.3),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_bound_is_convicted(name):
    bound, law, m, delta = BROKEN[name]
    law, largest = LAWS[law], m if isinstance(m, int) else max(m)
    dear = largest * law.dim > 400 and ("betting" in name or "range" in name)
    trials = 300 if dear else 1000 if delta > 0.01 else 4000
    missed = misses(bound, law, m, delta, trials, seed=5)
    assert too_many(missed, trials, delta), f"{missed} of {trials}, allowed {allowed(trials, delta)}"


# Valid is not enough: the radius follows the variance.


def test_the_radius_of_empirical_bernstein_tends_to_its_limit():
    law, m = LAWS["uniform, d = 14"], 20_000
    for delta in DELTAS:
        (tally,), _ = ask(law, [Question(EmpiricalBernstein(), law.region, delta)], [m], 5, seed=6)
        limit = math.sqrt(2 * math.log(2 / delta) / m * law.variance)
        assert 1 <= tally.width / limit < 1.1


@pytest.mark.parametrize("name", [name for name, law in LAWS.items() if law.dim == 1 and law.support is not None])
def test_betting_is_at_most_twice_empirical_bernstein(name):
    law = LAWS[name]
    for m in SIZES:
        questions = [Question(bound, law.region, 0.05) for bound in (Betting(), EmpiricalBernstein())]
        (bets, ball), _ = ask(law, questions, [m], 100, seed=7)
        assert bets.width <= 2 * ball.width


def test_no_bound_beats_the_truth():
    law = LAWS["prices, d = 14"]
    contenders = [c for c in CONTENDERS.values() if c.applies(law)]
    questions = [Question(c.bound(law), c.region(law), 0.05) for c in contenders]
    tallies, errors = ask(law, questions, [100], 400, seed=8)
    ratios = {c.name: t.width / quantile(errors, 0.05) for c, t in zip(contenders, tallies, strict=True)}
    assert min(ratios.values()) > 1
    assert ratios["empirical Bernstein"] < 5


def test_the_judgement():
    assert not too_many(allowed(1000, 0.05), 1000, 0.05)
    assert too_many(allowed(1000, 0.05) + 1, 1000, 0.05)
    assert 70 < allowed(1000, 0.05) < 80
    assert allowed(10, 0.3) == 9
