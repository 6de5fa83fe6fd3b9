"""Days in their order: what is certified, against slow formulas, and what is refused."""

import json
import math

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import Betting, HoldOut, MeanDeviation, Prequential, Region, Tightest
from epszero.certificates.prequential import FORGETS, EqualWeights, forecasts, weights

H = np.array([[1.2, 0.4], [-0.2, 0.9]])
UNIT = ez.sets.Box(0.0, 1.0, dim=2)
REGION = Region.box(np.zeros(2), np.ones(2))


def inclusion():
    return ez.Inclusion(ez.sets.Box(-5.0, 5.0, dim=2), lambda x, xi: H @ x - xi)


def days(s, seed=0, scale=1.0):
    """A chain that stays where it is for about fifty days."""
    rng, x = np.random.default_rng(seed), np.empty((s, 2))
    x[0] = 0.5
    for i in range(1, s):
        x[i] = rng.integers(0, 2, size=2) if rng.random() < 0.02 else x[i - 1]
    return ez.Samples(scale * x, support=ez.sets.Box(0.0, scale, dim=2))


def by(samples, delta=0.05, problem=None):
    return ez.certify(ez.solve(problem or inclusion(), samples), delta, Prequential())


@pytest.mark.parametrize(("s", "delta"), [(1, 0.5), (2, 0.1), (40, 0.1), (300, 0.01)])
def test_the_radius_is_that_of_the_formula(s, delta):
    X = np.random.default_rng(1).uniform(size=(s, 2))
    found = EqualWeights().around(X, REGION, delta)
    np.testing.assert_allclose(found.centre, X.mean(axis=0), rtol=1e-12)
    centres = slow_forecasts(X)
    np.testing.assert_allclose(forecasts(X[None], REGION)[0][0], centres, rtol=1e-12)
    squares = np.sum((X - centres) ** 2, axis=1)
    c = np.array([max(np.linalg.norm(corner - one) for corner in corners()) for one in centres])
    w = weights(s, math.log(2 / delta)) / REGION.diameter

    def martingale(length):
        each = [math.cosh(one * length) * math.exp(-sum((-np.log1p(-c * one) - c * one) * squares / c**2)) for one in w]
        return sum(each) / len(each)

    if found.radius < REGION.diameter:
        assert martingale(s * found.radius) == pytest.approx(1 / delta, rel=1e-5)
    else:
        assert martingale(s * REGION.diameter) <= 1 / delta


def corners():
    return np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def slow_forecasts(X):
    def forgetting(a):
        return lambda i: (1 - a) ** i * 0.5 + sum(a * (1 - a) ** (i - 1 - j) * X[j] for j in range(i))

    ways = [lambda i: (0.5 + X[:i].sum(axis=0)) / (i + 1), *map(forgetting, FORGETS)]
    lost, found = np.zeros(len(ways)), []
    for i in range(len(X)):
        found.append(ways[int(np.argmin(lost))](i) * np.ones(2))
        lost += [np.sum((X[i] - way(i)) ** 2) for way in ways]
    return np.array(found)


def test_no_centre_knows_its_day_or_those_to_come():
    X = np.random.default_rng(2).uniform(size=(30, 2))
    other = X.copy()
    other[17:] = np.random.default_rng(3).uniform(size=(13, 2))
    np.testing.assert_array_equal(forecasts(X[None], REGION)[0][0, :18], forecasts(other[None], REGION)[0][0, :18])


def test_days_alike_make_a_short_radius():
    slow = days(2000)
    certificate = by(slow)
    assert ez.certify(ez.solve(inclusion(), slow)).verdict == "refused"
    shuffled = slow.take(2000, seed=0, replace=False)
    assert certificate.epsilon < 0.7 * by(shuffled).epsilon


def test_it_says_what_is_certified_and_no_more():
    certificate = by(days(100))
    assert certificate.verdict == "conditional"
    said = str(certificate)
    assert "the average over these 100 samples" in said
    assert "nothing is said of samples to come" in said
    assert not any("independent" in leaning.what for leaning in certificate.leans_on)
    assert ez.Certificate.from_json(certificate.to_json()).notes["truth"] == certificate.notes["truth"]
    page = ez.report(certificate, certificate.solution).html
    assert "not those to come" in page
    assert "nothing is said of samples to come" in page


def test_the_words_of_a_record_are_compared():
    problem, samples = inclusion(), days(60)
    record = json.loads(by(samples, problem=problem).to_json())
    assert ez.verify(record, problem, samples)
    for forged in ("", "B is the law's, for all days to come"):
        assert not ez.verify(record | {"notes": record["notes"] | {"truth": forged}}, problem, samples)
    quiet = {name: text for name, text in record["notes"].items() if name != "truth"}
    assert not ez.verify(record | {"notes": quiet}, problem, samples)
    assert not ez.verify(record | {"epsilon": 0.9 * record["epsilon"]}, problem, samples)
    backwards = ez.Samples(samples.values[::-1], support=samples.support)
    assert not ez.verify(record, problem, backwards)
    with pytest.raises(ez.InputError, match="more"):
        ez.verify(record | {"notes": record["notes"] | {"more": "x"}}, problem, samples)


def test_few_days():
    """One day says no more than the support does."""
    for s in (1, 2):
        certificate = by(days(s))
        assert certificate.verdict == "conditional"
        assert certificate.epsilon == pytest.approx(math.sqrt(2), rel=1e-6)


@pytest.mark.parametrize("scale", [1e-90, 1e-3, 1e6, 1e90])
def test_units_do_not_matter(scale):
    plain = EqualWeights().around(days(50).values, REGION, 0.1)
    other = EqualWeights().around(scale * days(50).values, Region.box(np.zeros(2), scale * np.ones(2)), 0.1)
    assert other.radius / scale == pytest.approx(plain.radius, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_what_cannot_be_computed_is_refused(scale):
    box = ez.sets.Box(-5.0 * scale, 5.0 * scale, dim=2)
    samples = ez.Samples(scale * np.random.default_rng(0).uniform(size=(50, 2)), support=ez.sets.Box(0.0, scale, dim=2))
    solution = ez.solve(ez.Inclusion(box, lambda x, xi: H @ x - xi), samples, throw=False)
    assert ez.certify(solution, 0.05, Prequential()).verdict == "refused"


def test_a_law_that_is_a_point():
    still = ez.Samples(np.full((30, 2), 0.25), support=ez.sets.Box(0.25, 0.25, dim=2))
    assert by(still).epsilon < 1e-8


@pytest.mark.parametrize(
    ("solution", "word"),
    [
        (lambda: ez.solve(inclusion(), days(40), holdout=0.3), "kept aside"),
        (lambda: ez.solve(inclusion(), days(40)[np.r_[0:40, 0:5]]), "repetitions"),
        (lambda: ez.solve(inclusion(), ez.Samples(days(40).values)), "affine in features|support"),
        (lambda: ez.solve(ez.Inclusion(ez.sets.Box(-5.0, 5.0, dim=2), lambda x: H @ x - 1.0)), "no samples|affine"),
    ],
)
def test_refusals(solution, word):
    certificate = ez.certify(solution(), 0.05, Prequential())
    assert certificate.verdict == "refused"
    assert any(one in certificate.reason for one in word.split("|"))


def test_chosen_rows_are_named():
    samples = days(60)
    certificate = by(samples[np.arange(0, 60, 2)])
    assert any("chosen" in leaning.evidence for leaning in certificate.leans_on)


def test_wrong_settings():
    with pytest.raises(ez.InputError, match="days to come"):
        Prequential(support="estimated")
    with pytest.raises(ez.InputError, match="another B"):
        Tightest([MeanDeviation(), Prequential()])
    assert Tightest([MeanDeviation(), HoldOut()]).other_truth is False


def test_the_remedies_are_named_in_order():
    refused = ez.certify(ez.solve(inclusion(), days(300)))
    told = ez.audit(inclusion(), days(300)).assumptions["independent"].evidence
    for text in (refused.reason, told):
        places = [text.index(word) for word in ("Prequential()", "Dependent(beta=", "samples.take(")]
        assert places == sorted(places)


def test_betting_would_be_wrong_where_means_move():
    """Zeros, then ones: the past promises ½ on average, for sure, and a product that tests one mean excludes it."""
    X = np.repeat([0.0, 1.0], 100)[:, None]
    region = Region.box(np.zeros(1), np.ones(1))
    betting = Betting().around(X, region, 0.05)
    assert abs(betting.centre[0] - 0.5) > betting.radius[0]
    sound = EqualWeights().around(X, region, 0.05)
    assert abs(sound.centre[0] - 0.5) <= sound.radius
