"""Error bars: of an entry, a matrix, a function; and a sentence for what is not linear."""

import numpy as np
import pytest

import epszero as ez

BOX = ez.sets.Box(-1.0, 1.0, dim=3)
PROBLEM = ez.Inclusion(BOX, lambda x, xi: x + np.array([3.0, 0.1, -0.2]) - xi)
SAMPLES = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (400, 3)), support=BOX)


@pytest.fixture(scope="module")
def certificate():
    return ez.certify(ez.solve(PROBLEM, SAMPLES))


def test_every_entry_has_bounds_around_it_shaped_like_x(certificate):
    found = certificate.intervals
    x = certificate.solution.x
    assert found.lower.shape == found.upper.shape == x.shape
    assert (found.lower <= x).all()
    assert (x <= found.upper).all()
    assert found.width[0] <= 1e-14  # held by its bound
    assert (found.width[1:] > 0.01).all()


def test_an_entry_a_row_and_a_function_are_the_same(certificate):
    ways = [certificate.interval(1), certificate.interval([0.0, 1.0, 0.0]), certificate.interval(lambda x: x[1])]
    for found in ways:
        np.testing.assert_allclose([found.lower, found.upper], [ways[0].lower, ways[0].upper], atol=1e-12)
    assert (ways[0].width < certificate.intervals.width[1]).all()  # one row does not share its level


def test_a_sum_is_shorter_than_the_sum_of_what_it_adds(certificate):
    total = certificate.interval(np.ones((1, 3)))
    assert total.width[0] < certificate.intervals.width.sum()


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (lambda x: x @ x, "not a linear function"),
        (lambda x: x[:1] + 1.0, "not a linear function"),
        (abs, "not a linear function"),
        (3, "x has 3 entries"),
        (np.ones((2, 2)), "one column per entry"),
    ],
)
def test_what_is_not_a_linear_function_of_x_is_refused(certificate, of, sentence):
    with pytest.raises(ez.InputError, match=sentence):
        certificate.interval(of)


def test_where_nothing_is_shared_there_are_no_multipliers_and_no_aggregate(certificate):
    with pytest.raises(ez.InputError, match="no constraint is shared"):
        _ = certificate.multipliers
    with pytest.raises(ez.InputError, match="agents alike"):
        _ = certificate.aggregate


def test_a_certificate_of_another_line_keeps_nothing_for_intervals(certificate):
    with pytest.raises(ez.InputError, match="nothing of delta"):
        _ = ez.certify(certificate.solution, of="distance").intervals


def test_a_band_says_how_sure_it_is(certificate):
    found = certificate.intervals
    assert found.confidence == pytest.approx(0.95)
    assert str(found).startswith("95 % for all 3 entries of x together, and all lines of the certificate\n")
    alone = certificate.interval(np.ones((2, 3)), together=False)
    assert alone.says == "95 % for all 2 functions of x together, by themselves"
    assert certificate.interval(1).says == "95 % for one of the functions of x, and all lines of the certificate"


def test_a_band_by_itself_is_shorter_and_asks_nothing_of_the_shares(certificate):
    row = np.ones((1, 3))
    alone = certificate.interval(row, together=False)
    assert alone.width[0] < 0.8 * certificate.interval(row).width[0]
    other = ez.certify(certificate.solution, of="distance")
    assert other.without_intervals == "nothing of delta was kept for intervals"
    assert other.interval(row, together=False).width[0] == pytest.approx(alone.width[0], rel=0.05)


def test_bands_end_where_the_domain_does(certificate, monkeypatch):
    """Were the noise ever so large."""
    monkeypatch.setattr(
        type(certificate.sharp.known), "intervals", lambda self, L, delta: (L @ self.x - 9, L @ self.x + 9)
    )
    found = certificate.intervals
    np.testing.assert_allclose([found.lower, found.upper], [-np.ones(3), np.ones(3)], rtol=1e-8)
    wide = certificate.interval(np.array([[2.0, 0.0, 0.0], [0.0, -1.0, 1.0]]))
    np.testing.assert_allclose([wide.lower, wide.upper], [[-2.0, -2.0], [2.0, 2.0]], rtol=1e-8)


@pytest.fixture(scope="module")
def fleet():
    """Agents alike with a cap that they share, which binds in one of two hours."""
    cost = lambda x, mean, xi, p: p * x @ x + xi @ x + np.array([-2.0, -4.0]) @ x  # noqa: E731
    shared = ez.AffineConstraint(lambda x: x.sum(axis=0), [9.0, 4.0])
    game = ez.AggregativeGame(cost, np.array([0.8, 1.0, 1.2]), ez.sets.Box(0.0, 5.0, dim=2), shared)
    data = ez.Samples(np.random.default_rng(1).uniform(-1, 1, (500, 2)), support=ez.sets.Box(-1.0, 1.0))
    return ez.certify(ez.solve(game, data))


@pytest.mark.long
def test_every_group_has_its_part_of_the_share(fleet):
    """Four groups: what one would be with the whole share is shorter, by a known level."""
    share, known = fleet.sharp.levels.intervals, fleet.sharp.known
    sums = np.tile(np.eye(2), 3)
    for level, exact in ((share / 4, True), (share, False)):
        lower, _ = known.intervals(sums, level)
        assert np.allclose(lower, fleet.aggregate.lower, atol=1e-12, rtol=0) == exact
        lower, _ = known.prices(level)
        assert np.allclose(lower, fleet.multipliers.lower, atol=1e-12, rtol=0) == exact
        lower, _ = known.intervals(np.eye(6), level)
        assert np.allclose(lower, np.ravel(fleet.intervals.lower), atol=1e-12, rtol=0) == exact
    assert fleet.aggregate.says.startswith("95 % for all 2 sums over agents together")
    assert fleet.multipliers.says.startswith("95 % for all 2 multipliers together")


def test_a_refused_certificate_has_no_bands():
    walk = ez.Samples(np.cumsum(np.random.default_rng(0).uniform(-0.01, 0.01, (400, 3)), axis=0), support=BOX)
    refused = ez.certify(ez.solve(PROBLEM, walk))
    assert refused.verdict == "refused"
    with pytest.raises(ez.InputError, match="the certificate is refused"):
        _ = refused.intervals


def test_who_has_no_bands_says_why(certificate):
    known = ez.certify(ez.solve(ez.models.zero_sum([[1.0, -1.0], [-1.0, 1.0]])))
    read = ez.Certificate.from_json(certificate.to_json())
    other = ez.certify(certificate.solution, using=ez.certificates.MeanDeviation())
    assert certificate.without_intervals == ""
    for one, why in ((known, "nothing is uncertain"), (read, "a record"), (other, "need the certified piece")):
        assert why in one.without_intervals
        with pytest.raises(ez.InputError, match=why):
            _ = one.intervals
