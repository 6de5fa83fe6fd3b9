"""Every confidence set against its claim, written down slowly: one sample, one coordinate, one line at a time."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from epszero.certificates.dependent import PhiMixing
from epszero.certificates.mean import (
    Bernstein,
    Betting,
    EmpiricalBernstein,
    Hoeffding,
    McDiarmid,
    MeanSet,
    MedianOfMeans,
    Region,
    Stitched,
    SubGaussian,
)
from epszero.certificates.mean._base import in_units, log_of
from epszero.certificates.mean.betting import upper_mean
from epszero.certificates.mean.empirical_bernstein import best_lambda, lagging_centres, predictable_centres
from epszero.certificates.mean.median_of_means import _plan, geometric_median  # pyright: ignore[reportPrivateUsage]
from epszero.certificates.scales import in_range
from epszero.certificates.vector_stability import width
from epszero.facts.region import Prior

LOWER, UPPER = np.array([-1.0, 2.0]), np.array([3.0, 2.5])
BOX = Region.box(LOWER, UPPER)
DIAMETER = math.sqrt(4.0**2 + 0.5**2)
DELTAS = [0.4, 0.05, 1e-6]


def drawn(m, seed=0):
    return LOWER + (UPPER - LOWER) * np.random.default_rng(seed).beta(0.6, 1.7, size=(m, 2))


def within(found, expected):
    """Equal, but for rounding to the safe side."""
    assert found == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("m", [1, 2, 3, 4, 7, 8, 9, 1023, 1024, 1025])
def test_radii_that_depend_on_the_support_alone(m, delta):
    within(Hoeffding().radius(m, 2, BOX, delta), DIAMETER / 2 * math.sqrt(2 * math.log(2 / delta) / m))
    by_mean = DIAMETER / 2 / math.sqrt(m)
    within(McDiarmid().radius(m, 2, BOX, delta), by_mean + DIAMETER * math.sqrt(math.log(1 / delta) / 2 / m))
    k = next(k for k in range(20) if 2**k <= m < 2 ** (k + 1))
    level = delta / ((k + 1) * (k + 2))
    # Hoeffding with w for 2^{k+1} samples: ‖Σ(X − μ)‖ ≤ ρ√(2 · 2^{k+1} ln(2/level))
    within(Stitched().radius(m, 2, BOX, delta), DIAMETER / 2 * math.sqrt(2 * 2 ** (k + 1) * math.log(2 / level)) / m)
    by_mixing = DIAMETER * (1 + 2 * 0.75) * math.sqrt(2 * math.log(2 / delta) / m)
    within(PhiMixing(0.75).radius(m, 2, BOX, delta), by_mixing)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("dim", [1, 2, 7])
def test_radii_by_declared_tails(dim, delta):
    t = math.log(1 / delta)
    square = dim + 2 * math.sqrt(dim * t) + 2 * t
    if dim == 1:
        square = min(square, 2 * math.log(2 / delta))
    within(SubGaussian(3.0).radius(50, dim, None, delta), 3.0 * math.sqrt(square / 50))


def bernstein(m, variance, delta):
    """The root r of m r² = 2 ln(2/δ)(σ² + b r/3), which is where Bernstein's tail is δ."""
    L = math.log(2 / delta)
    return max(np.roots([m, -2 * L * DIAMETER / 3, -2 * L * variance]).real)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("m", [2, 5, 60])
def test_bernstein(m, delta):
    X = drawn(m)
    found = Bernstein(variance=0.3).around(X, BOX, delta)
    within(float(found.radius), bernstein(m, 0.3, delta))
    within(Bernstein(variance=1e6).radius(m, 2, BOX, delta), bernstein(m, (DIAMETER / 2) ** 2, delta))
    pairs = [np.sum((X[2 * j] - X[2 * j + 1]) ** 2) / 2 for j in range(m // 2)]
    scaled = np.array(pairs) / (BOX.diameter**2 / 2)
    for share in (0.2, 0.6):
        above = one_sided(scaled, share * delta) * BOX.diameter**2 / 2
        own = Bernstein(share=share).around(X, BOX, delta)
        expected = bernstein(m, min(above, (DIAMETER / 2) ** 2), (1 - share) * delta)
        assert float(own.radius) == pytest.approx(expected, rel=1e-6)
        np.testing.assert_allclose(own.centre, X.mean(axis=0))


# -- bets, one after another -----------------------------------------------------------------------------------------


def bets(x, log, anytime, guess):
    """l_i for numbers in [0, 1]: λ for the variance of what came before, at most 0.95."""
    found, weight = [], guess.count
    mean, square = weight * guess.centre, weight * guess.variance
    for i, value in enumerate(x, 1):
        horizon = i * math.log(1 + i) if anytime else len(x)
        count = weight + i - 1
        found.append(min(0.95, float(best_lambda(np.array([log * count / (horizon * square)]))[0])))
        square += (value - mean / count) ** 2
        mean += value
    return found


FIRST = SimpleNamespace(centre=0.5, variance=1 / 16, count=1.0)


def one_sided(x, delta):
    """The largest v with Π(1 + l_i(v − x_i)) < 1/δ."""
    log = math.log(1 / delta)
    chosen = bets(x, log, False, FIRST)

    def wealth(v):
        return sum(math.log(1 + bet * (v - value)) for bet, value in zip(chosen, x, strict=True)) - log

    return 1.0 if wealth(1.0) < 0 else brentq(wealth, np.dot(chosen, x) / sum(chosen), 1.0, xtol=1e-13)


def two_sided(x, odds, anytime, guess):
    """Both v with ½Π(1 + l_i(x_i − v)) + ½Π(1 − l_i(x_i − v)) = odds."""
    chosen = bets(x, math.log(2 * odds), anytime, guess)

    def wealth(v):
        up = math.prod(1 + bet * (value - v) for bet, value in zip(chosen, x, strict=True))
        down = math.prod(1 - bet * (value - v) for bet, value in zip(chosen, x, strict=True))
        return (up + down) / 2 - odds

    inside = np.dot(chosen, x) / sum(chosen)
    return [end if wealth(end) < 0 else brentq(wealth, inside, end, xtol=1e-13) for end in (0.0, 1.0)]


@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize("m", [1, 2, 25])
def test_betting(m, anytime):
    X, delta = drawn(m, 3), 0.1
    earlier = drawn(7, 4)
    for region in (BOX, BOX.after(earlier)):
        found = Betting(anytime=anytime).around(X, region, delta)
        for j in range(2):
            x = (X[:, j] - LOWER[j]) / (UPPER - LOWER)[j]
            guess = FIRST
            if region is not BOX:
                before = (earlier[:, j] - LOWER[j]) / (UPPER - LOWER)[j]
                guess = SimpleNamespace(centre=before.mean(), variance=before.var(), count=7.0)
            low, high = (LOWER[j] + (UPPER - LOWER)[j] * end for end in two_sided(x, 2 / delta, anytime, guess))
            assert found.centre[j] - found.radius[j] == pytest.approx(low, abs=3e-8)
            assert found.centre[j] + found.radius[j] == pytest.approx(high, abs=3e-8)
            assert found.centre[j] - found.radius[j] <= low + 1e-12
            assert found.centre[j] + found.radius[j] >= high - 1e-12


def test_an_upper_bound_on_a_mean():
    x = np.random.default_rng(5).beta(0.5, 3.0, size=(2, 40))
    for delta in (0.3, 1e-3):
        found = upper_mean(x, math.log(1 / delta))
        expected = [one_sided(row, delta) for row in x]
        np.testing.assert_allclose(found, expected, atol=1e-8)
        assert np.all(found >= np.array(expected) - 1e-12)


def psi(lam):
    return -math.log(1 - lam) - lam


@pytest.mark.parametrize("anytime", [False, True])
@pytest.mark.parametrize("place", ["a box", "anywhere", "a box, after others"])
def test_empirical_bernstein(place, anytime):
    X, delta, earlier = drawn(30, 6), 0.1, drawn(4, 7)
    region = {"a box": BOX, "anywhere": Region.within(DIAMETER, 2), "a box, after others": BOX.after(earlier)}[place]
    log = math.log(2 / delta)
    if place == "anywhere":
        total, weight, square, first = X[0].copy(), 1.0, (DIAMETER / 4) ** 2, 1
    elif place == "a box":
        total, weight, square, first = (LOWER + UPPER) / 2, 1.0, (DIAMETER / 4) ** 2, 0
    else:
        total, weight, square, first = 4 * earlier.mean(axis=0), 4.0, 4 * earlier.var(axis=0).sum(), 0
    counted, sums, spread, weights = weight, np.zeros(2), log, 0.0
    for i in range(first, 30):
        centre = total / weight
        c = math.sqrt(sum(max(UPPER[j] - centre[j], centre[j] - LOWER[j]) ** 2 for j in range(2)))
        c = DIAMETER if place == "anywhere" else min(c, DIAMETER)
        horizon = (i + 1) * math.log(2 + i) if anytime else 30
        # without a place the first sample is its own centre: it counts for the variance, with a square of 0
        seen = counted + (1 if place == "anywhere" else 0)
        lam = float(best_lambda(np.array([c**2 * log / (horizon * square / seen)]))[0])
        apart = float(np.sum((X[i] - centre) ** 2))
        spread += psi(lam) * apart / c**2
        weights += lam / c
        sums += lam / c * X[i]
        total, weight, square, counted = total + X[i], weight + 1, square + apart, counted + 1
    found = EmpiricalBernstein(anytime=anytime).around(X, region, delta)
    np.testing.assert_allclose(found.centre, sums / weights, rtol=1e-6)
    within(float(found.radius), min(spread / weights, DIAMETER))


@pytest.mark.parametrize("guess", [None, Prior(np.array([0.3, -1.0]), 1.0, np.ones(2), 0.1)])
def test_centres_lag_behind_but_never_look_ahead(guess):
    X = np.random.default_rng(8).normal(size=(1, 300, 2))
    centres, repeats = lagging_centres(X, guess, 64)
    starts = np.cumsum(repeats) - repeats
    assert repeats.sum() == 300
    assert repeats[:64].max() == 1
    np.testing.assert_allclose(centres, predictable_centres(X, guess)[:, starts], atol=1e-12)


@pytest.mark.parametrize("target", [1e-12, 1e-6, 1e-3, 0.1, 1.0, 5.0, 50.0])
def test_the_best_weight_solves_its_equation(target):
    exact = brentq(lambda lam: lam**2 / (1 - lam) - psi(lam) - target, 1e-8, 1 - 1e-12)
    assert float(best_lambda(np.array([target]))[0]) == pytest.approx(min(exact, 0.999), rel=2e-3)
    assert float(best_lambda(np.array([1e12]))[0]) == 0.999


# -- medians ---------------------------------------------------------------------------------------------------------


@pytest.mark.some(4)
@pytest.mark.parametrize("delta", [0.3, 0.05, 1e-4])
@pytest.mark.parametrize(("m", "dim"), [(1, 1), (9, 1), (60, 1), (9, 3), (60, 3)])
def test_the_radius_of_a_median_of_means_is_the_least_of_all_blocks(m, dim, delta):
    best, blocks = 1 / math.sqrt(m * delta), 1
    for k in range(2, m + 1):
        for share in [0.5] if dim == 1 else np.linspace(0.15, 0.45, 25):
            least = math.ceil(share * k - 1e-9)
            p = brentq(lambda p, k=k, least=least: binom.sf(least - 1, k, p) - delta, 1e-14, 1 - 1e-14, xtol=1e-16)
            constant = 1.0 if dim == 1 else (1 - share) / math.sqrt(1 - 2 * share)
            best, blocks = min((best, blocks), (constant / math.sqrt((m // k) * p), k))
    assert _plan(m, dim == 1, delta)[2] == pytest.approx(best, rel=1e-4)
    assert _plan(m, dim == 1, delta)[2] >= best * (1 - 1e-12)
    promised = MedianOfMeans(2.0).radius(m, dim, None, delta)
    assert promised is None if blocks > 1 else promised == pytest.approx(2 * best)


@pytest.mark.parametrize(("m", "dim"), [(9, 1), (64, 1), (64, 3)])
def test_a_median_of_means_by_hand(m, dim):
    X = np.random.default_rng(m).standard_t(3, size=(m, dim))
    blocks, share, factor = _plan(m, dim == 1, 1e-3)
    size = m // blocks
    means = np.array([X[i * size : (i + 1) * size].mean(axis=0) for i in range(blocks)])
    found = MedianOfMeans(1.7).around(X, None, 1e-3)
    assert blocks > 1
    if dim == 1:
        assert found.centre[0] == pytest.approx(np.median(means))
        assert float(found.radius) == pytest.approx(1.7 * factor)
        return
    towards = means - found.centre
    lengths = np.linalg.norm(towards, axis=1, keepdims=True)
    C = (1 - share) / math.sqrt(1 - 2 * share)
    r = 1.7 * factor / C
    eta = np.linalg.norm(np.mean(towards / np.maximum(lengths, (C - 1) * r), axis=0))
    mended = (1 - share) / math.sqrt((1 - share) ** 2 - (share + eta) ** 2)
    assert float(found.radius) == pytest.approx(mended * r, rel=1e-9)


def test_a_geometric_median_is_the_least_sum_of_distances():
    points = np.random.default_rng(8).standard_normal((4, 11, 3)) ** 3
    z, eta = geometric_median(points, 1e-9)
    for trial in range(4):
        towards = points[trial] - z[trial]
        units = towards / np.linalg.norm(towards, axis=1, keepdims=True)
        assert np.linalg.norm(units.mean(axis=0)) == pytest.approx(eta[trial], abs=1e-9)
        assert eta[trial] < 1e-2
        least = np.linalg.norm(towards, axis=1).sum()
        for step in np.random.default_rng(9).standard_normal((20, 3)) * 1e-2:
            assert np.linalg.norm(points[trial] - z[trial] - step, axis=1).sum() >= least - 2e-4


# -- what they are made of -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.7, np.array([0.3, 1.1])], ids=["ball", "box"])
def test_a_confidence_set_by_its_points(radius):
    centre, direction, away = np.array([1.0, -2.0]), np.array([0.4, -1.3]), np.array([0.5, 0.5])
    found = MeanSet(centre, np.asarray(radius))
    angles = np.linspace(0, 2 * np.pi, 100_001)
    edge = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    edge = edge / np.abs(edge).max(axis=1, keepdims=True) if found.is_box else edge
    points = centre + radius * edge
    assert found.support(direction) == pytest.approx((points @ direction).max(), rel=1e-4)
    assert found.norm_from(away) == pytest.approx(np.linalg.norm(points - away, axis=1).max(), rel=1e-4)
    assert found.contains(centre + 0.999 * radius * edge).all()
    assert not found.contains(centre + 1.001 * radius * edge).any()
    assert found.contains(points).all()  # up to rounding


def test_regions_by_hand():
    guess = BOX.first_guess
    assert guess.variance == pytest.approx((DIAMETER / 4) ** 2)
    np.testing.assert_allclose(guess.variances, [(4.0 / 4) ** 2, (0.5 / 4) ** 2])
    np.testing.assert_allclose(guess.centre, [1.0, 2.25])
    assert guess.count == 1.0
    rows = drawn(9, 2)
    later = BOX.after(rows).first_guess
    assert later.variance == pytest.approx(np.sum((rows - rows.mean(axis=0)) ** 2) / 9)
    np.testing.assert_allclose(later.variances, np.mean((rows - rows.mean(axis=0)) ** 2, axis=0))
    assert later.count == 9.0
    assert BOX.variance == pytest.approx((DIAMETER / 2) ** 2)
    assert Region.within(2.0, 3).variance == pytest.approx(4 * 3 / 8)
    assert not BOX.is_point
    assert Region.box(LOWER, LOWER).is_point
    assert Region.within(0.0, 2).is_point
    assert not Region.within(1.0, 2).is_point
    for c in (LOWER, UPPER, np.array([0.0, 2.2])):
        corners = [math.dist(c, (a, b)) for a in (-1.0, 3.0) for b in (2.0, 2.5)]
        assert float(BOX.farthest(c)) == pytest.approx(min(max(corners), DIAMETER))


def test_units_change_nothing():
    X = drawn(5)
    same, region, unit = in_units(X, BOX)
    assert unit == 1.0
    assert region is BOX
    assert same is X
    huge = Region.box(LOWER * 2.0**300, UPPER * 2.0**300).after(X * 2.0**300)
    small, region, unit = in_units(X * 2.0**300, huge)
    assert 0.5 <= region.diameter < 1
    np.testing.assert_array_equal(small * unit, X * 2.0**300)
    for name in ("lower", "upper", "centre"):
        np.testing.assert_array_equal(getattr(region, name) * unit, getattr(huge, name))
    assert region.circumradius * unit == huge.circumradius
    assert region.prior.variance * unit * unit == pytest.approx(huge.prior.variance)
    np.testing.assert_allclose(region.prior.variances * unit * unit, huge.prior.variances)
    np.testing.assert_array_equal(region.prior.centre * unit, huge.prior.centre)
    assert region.prior.count == 5.0


def test_logarithms_and_ranges():
    assert log_of(3, 0.05) == pytest.approx(math.log(60))
    assert [in_range(value) for value in (0.0, 1e-150, 1e-139, 1.0, 1e139, 1e150, math.inf, math.nan)] == [
        True, False, True, True, True, False, False, False,
    ]  # fmt: skip


@pytest.mark.parametrize("delta", DELTAS)
def test_the_width_of_vector_stability(delta):
    s, R, variance, L, d = 37, 1.3, 0.6, 2.5, 0.02
    by_mean = math.sqrt(variance / s + L * L * d * d / 2) + L * d
    within(width(s, delta, R, variance, L, d), by_mean + (R + L * s * d) * math.sqrt(math.log(1 / delta) / 2 / s))
