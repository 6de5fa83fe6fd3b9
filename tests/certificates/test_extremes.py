"""Bounds at the ends of the scale: a correct number, ∞ or a sentence; never NaN, a warning, or too small a number."""

import math

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import MeanDeviation, Tightest, VectorStability
from epszero.certificates.mean import (
    Bernstein,
    Betting,
    EmpiricalBernstein,
    Hoeffding,
    McDiarmid,
    MedianOfMeans,
    Region,
    Stitched,
    SubGaussian,
)
from epszero.certificates.mean.median_of_means import _plan  # pyright: ignore[reportPrivateUsage]

WIDTHS = [1e-150, 1e-60, 1.0, 1e150]


def bounds(width):
    return [Hoeffding(), Stitched(), McDiarmid(), EmpiricalBernstein(), EmpiricalBernstein(anytime=True), Betting(),
            Betting(anytime=True), Bernstein(), Bernstein(variance=width * width / 9), SubGaussian(width),
            MedianOfMeans(width)]  # fmt: skip


def regions(width, dim):
    lower, upper = np.full(dim, 3 * width), np.full(dim, 4 * width)
    box = Region.box(lower, upper)
    earlier = lower + width * np.random.default_rng(1).uniform(size=(5, dim))
    return [box, Region.within(math.sqrt(dim) * width, dim), box.after(earlier)]


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("m", [1, 2, 3, 50])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_bound_at_every_delta_and_width(width, m, dim):
    X = 3 * width + width * np.random.default_rng(m).uniform(size=(m, dim))
    for place, region in enumerate(regions(width, dim)):
        for bound in bounds(width):
            if isinstance(bound, Betting) and place == 1:
                continue  # which has no corners
            before = math.inf
            for delta in (5e-324, 1e-300, 1e-20, 0.05, 0.5, 1 - 1e-16):
                found = bound.around(X, region, delta)
                size = float(np.max(found.radius))
                assert np.isfinite(found.centre).all()
                assert 0 <= size <= before * (1 + 1e-9) or isinstance(bound, EmpiricalBernstein | Betting)
                assert delta > 0.04 or found.contains(np.full(dim, 3.5 * width))
                before = size


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 2.0, math.nan, math.inf])
def test_what_is_no_probability_is_refused_by_every_bound(delta):
    X, region = np.full((5, 2), 0.5), Region.box(np.zeros(2), np.ones(2))
    for bound in bounds(1.0):
        with pytest.raises(ez.InputError, match="delta"):
            bound.around(X, region, delta)


def test_units_do_not_matter_at_the_ends_of_the_scale():
    X = np.random.default_rng(0).uniform(size=(30, 2))
    plain = Region.box(np.zeros(2), np.ones(2))
    for unit in (2.0**-498, 2.0**498):
        scaled = Region.box(np.zeros(2), np.full(2, unit))
        for bound, other in zip(bounds(1.0), bounds(unit), strict=True):
            here, there = bound.around(X, plain, 0.05), other.around(unit * X, scaled, 0.05)
            np.testing.assert_allclose(there.radius, unit * here.radius, rtol=1e-6)


def test_one_sample_of_a_region_that_may_be_anywhere_is_its_own_centre():
    found = EmpiricalBernstein().around(np.full((1, 2), 100.0), Region.within(1.0, 2), 0.05)
    assert found.contains([100.5, 100.5])  # the centre was 0 once


@pytest.mark.parametrize("delta", [5e-324, 1e-300, 1e-100, 1e-19, 0.05])
def test_the_median_of_means_trusts_no_quantile_that_is_wrong(delta):
    """P(Bin(k, p) ≥ a) ≤ δ, by adding up its logarithms; quantiles were wrong by a factor of e^500 once."""
    for m in (20, 100, 1000):
        for scalar in (False, True):
            k, share, factor = _plan(m, scalar, delta)
            if k == 1:
                assert factor >= 1 / math.sqrt(m * delta) * (1 - 1e-6)
                continue
            constant = 1.0 if scalar else (1 - share) / math.sqrt(1 - 2 * share)
            p = (constant / factor) ** 2 / (m // k)
            a = math.ceil(share * k - 1e-9)
            logs = [math.lgamma(k + 1) - math.lgamma(i + 1) - math.lgamma(k - i + 1) + i * math.log(p)
                    + (k - i) * math.log1p(-p) for i in range(a, k + 1)]  # fmt: skip
            assert np.logaddexp.reduce(logs) <= math.log(delta)


@pytest.mark.parametrize("weights", [[1e300, 1e300], [1e-300, 1e-300], [1.7e308, 1.7e308], [5e-324, 5e-324]])
def test_weights_of_any_size_share_delta(run, weights):
    kinds = [MeanDeviation(), VectorStability()]
    found = ez.certify(run, 0.05, Tightest(kinds, weights=weights))
    assert found.epsilon == pytest.approx(ez.certify(run, 0.05, Tightest(kinds)).epsilon, rel=1e-12)


@pytest.mark.parametrize("weights", [[1e300, 1e-300], [0, 1], [math.nan, 1], [-1, 1], [math.inf, 1], [1], "ab"])
def test_weights_that_share_nothing_are_refused(weights):
    with pytest.raises(ez.InputError, match="weights"):
        Tightest([MeanDeviation(), VectorStability()], weights=weights)


def test_a_share_that_cannot_be_written_down_is_no_share(run):
    found = ez.certify(run, 5e-324, Tightest([MeanDeviation(), VectorStability()]))
    assert found.verdict == "refused"
    assert "share of delta" in found.reason
    for delta in (5e-324, 1e-300, 1 - 1e-16):
        assert 0 < ez.certify(run, delta, VectorStability()).epsilon < math.inf


@pytest.mark.parametrize("made", [lambda: SubGaussian([1.0, 2.0]), lambda: MedianOfMeans([1.0]),
                                  lambda: Bernstein(share=[0.1, 0.2]), lambda: Bernstein(variance=[1.0])])  # fmt: skip
def test_settings_are_one_number(made):
    with pytest.raises(ez.InputError, match="one number"):
        made()
