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
    assert found.width[0] == 0.0  # held by its bound
    assert (found.width[1:] > 0).all()


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
