"""Pictures with a certificate: what is drawn is what it says, and where it says nothing the figure tells why."""

import io
import re

import numpy as np
import pytest

import epszero as ez

SCARCE = np.array([9.0, 9.0, 4.5, 9.0])


def uniform(*limits):
    return np.random.default_rng(0).uniform(*limits)


def certified(game, rows, low, high):
    return ez.certify(ez.solve(game, ez.Samples(rows, support=ez.sets.Box(low, high))))


@pytest.fixture(scope="module")
def crowded():
    game = ez.models.ev_charging(
        fleet={"need": [6.0, 7.5, 9.0], "cap": [2.5, 2.5, 3.7]}, hours=4, capacity=SCARCE, reference=2.0, weight=2.0
    )
    return certified(game, np.array([0.1, 0.1, 0.04, 0.14]) + uniform(-0.01, 0.01, (1000, 4)), -0.05, 0.25)


@pytest.fixture(scope="module")
def sellers():
    game = ez.models.cournot(firms=3, markets=2, slope=[1.0, 2.0], shared_cap=[1e3, 5.0])
    return certified(game, uniform((18, 28), (22, 32), (1000, 2)), (17.0, 27.0), (23.0, 33.0))


@pytest.fixture(scope="module")
def braess():
    roads = [("s", "a", 0, 10), ("s", "b", 50, 1), ("a", "t", 50, 1), ("b", "t", 0, 10), ("a", "b", 10, 1)]
    game = ez.models.routing(roads, trips=[("s", "t", 6)], uncertain=True)
    return certified(game, uniform(0, 2, (1000, 5)), 0.0, 2.0)


def drawn(certificate, **options):
    figure = certificate.solution.problem.plot(certificate.solution, certificate=certificate, **options)
    figure.savefig(io.BytesIO())
    return figure


def ends(ax):
    """Of all error bars, by place from left to right."""
    black = [one for one in ax.collections if np.array_equal(one.get_color()[0, :3], np.zeros(3))]
    lines = np.concatenate([[line[:, 1] for line in one.get_segments()] for one in black])
    return lines.T


def told(figure):
    return re.sub(r"\s+", " ", figure.get_supxlabel())


@pytest.mark.long
def test_charging_has_bars_of_the_average_of_each_vehicle_and_of_the_capacity(crowded):
    figure = drawn(crowded)
    demand, each, _, scarcity = figure.axes
    total, own, prices = crowded.aggregate, crowded.intervals, crowded.multipliers
    np.testing.assert_allclose(ends(demand), [total.lower / 3, total.upper / 3])
    np.testing.assert_allclose(ends(each), [own.lower.ravel(), own.upper.ravel()])
    np.testing.assert_allclose(ends(scarcity), [prices.lower, prices.upper])
    assert prices.lower[2] > 0
    assert told(figure) == "error bars: with 95 % all hold together, with the certificate"


@pytest.mark.long
def test_many_vehicles_are_drawn_as_their_average_alone():
    game = ez.models.ev_charging(vehicles=60, hours=3, need=3.0, cap=9.0, wear=0.05, fee=0.05, reference=1.0)
    figure = drawn(certified(game, 0.1 + uniform(-0.001, 0.001, (800, 3)), 0.09, 0.11))
    assert len(figure.axes) == 2
    assert ends(figure.axes[0]).shape == (2, 3)


@pytest.mark.long
def test_cournot_has_bars_of_quantities_totals_and_multipliers(sellers):
    quantity, total, price = drawn(sellers).axes
    q, own = sellers.solution.x, sellers.intervals
    below = np.column_stack([np.zeros(3), q[:, 0]])
    np.testing.assert_allclose(ends(quantity), [(below + own.lower).T.ravel(), (below + own.upper).T.ravel()])
    np.testing.assert_allclose(ends(total), [sellers.aggregate.lower, sellers.aggregate.upper])
    mean = sellers.solution.samples.values.mean(axis=0) - np.array([1.0, 2.0]) * q.sum(axis=0)
    np.testing.assert_allclose(ends(price), [mean - sellers.multipliers.upper, mean - sellers.multipliers.lower])


@pytest.mark.long
def test_routing_says_the_bounds_of_every_flow_rounded_outward(braess):
    game, solution = braess.solution.problem, braess.solution
    band = braess.interval(game.picture.network.uses)
    labels = [text.get_text() for text in drawn(braess).axes[0].texts if "…" in text.get_text()]
    assert len(labels) == 5
    for label, low, high in zip(labels, band.lower, band.upper, strict=True):
        said = [float(end) for end in label.split("\n")[1].split(" … ")]
        assert said[0] <= low + 1e-12
        assert said[1] >= high - 1e-12
        np.testing.assert_allclose(said, [low, high], rtol=0.01)
    assert (band.lower < ez.models.traffic(solution).flows).all()
    assert not any("…" in text.get_text() for text in drawn(braess, labels=False).axes[0].texts)


@pytest.mark.long
def test_matrix_games_say_why_they_have_no_bars():
    known = ez.certify(ez.solve(ez.models.zero_sum([[0, 1, -1], [-1, 0, 2], [1, -2, 0]])))
    assert told(drawn(known)) == "without error bars: nothing is uncertain here"
    samples = ez.Samples(uniform(-1, 1, (50, 4)), support=ez.sets.Box(-1.0, 1.0))
    moving = ez.certify(ez.solve(ez.models.zero_sum(shape=(2, 2), norm=10.0), samples))
    assert "without error bars: they need the certified piece" in told(drawn(moving))
    assert not drawn(moving).axes[0].collections


@pytest.mark.long
def test_a_piece_that_is_not_certified_is_drawn_without_bars():
    game = ez.models.ev_charging(vehicles=3, hours=4, need=(2.0, 6.0))
    unsure = certified(game, uniform(0.0, 0.5, (10, 4)), 0.0, 0.5)
    figure = drawn(unsure)
    assert len(figure.axes) == 2
    assert f"without error bars: {unsure.without_intervals}" == told(figure)
    assert "piece is not certified" in unsure.without_intervals
    record = ez.Certificate.from_json(unsure.to_json())
    assert "a record" in told(game.plot(unsure.solution, certificate=record))
    assert game.plot(unsure.solution).get_supxlabel() == ""


@pytest.mark.long
def test_a_guess_is_called_one():
    game = ez.models.cournot(firms=2)
    solution = ez.solve(game, ez.Samples(uniform(18, 22, (500, 1))))
    guess = ez.certify(solution, using=ez.certificates.CertifiedPiece(support="estimated"))
    assert guess.verdict == "heuristic"
    assert "with 95 %, as a guess, all hold" in told(drawn(guess))


@pytest.mark.parametrize("of", ["crowded", "braess"])
def test_a_certificate_of_another_solution_is_refused(request, of, sellers):
    mine = request.getfixturevalue(of).solution
    with pytest.raises(ez.InputError, match="another solution"):
        mine.problem.plot(mine, certificate=sellers)
    with pytest.raises(ez.InputError, match=r"certificate: must come from ez\.certify, but it is a int"):
        mine.problem.plot(mine, certificate=3)
