"""Parts of a distance add up to it, and forecasts are about what certificates say when the remedy is taken."""

from dataclasses import replace

import numpy as np
import pytest

import epszero as ez
from epszero.certificates.remedies import Part, Remedy, forecasts, parts

BOX = ez.sets.Box(-9.0, 9.0, dim=2)
PROBLEM = ez.Inclusion(BOX, lambda x, xi: np.array([1.0, 20.0]) * (x - xi))


def certificate(samples=4000, half=1.0, delta=0.05, of=None):
    rows = np.random.default_rng(5).normal(0.0, 0.1, (samples, 2)).clip(-0.45, 0.45)
    return ez.certify(ez.solve(PROBLEM, ez.Samples(rows, support=ez.sets.Box(-half, half))), delta, of=of)


@pytest.fixture(scope="module")
def plain():
    return certificate()


@pytest.mark.long
def test_parts_add_up_and_the_floor_is_below(plain):
    made = parts(plain)
    assert set(made) == set(Part)
    assert sum(made.values()) == pytest.approx(plain.distance, rel=1e-9)
    assert 0 < plain.terms["distance, floor"] < plain.distance


@pytest.mark.parametrize(
    ("remedy", "taken"),
    [
        (Remedy.SAMPLES, {"samples": 8000}),
        (Remedy.SUPPORT, {"half": 0.5}),
        (Remedy.QUESTION, {"of": "distance"}),
        (Remedy.RISK, {"delta": 0.1}),
    ],
)
def test_a_remedy_does_about_what_was_said(plain, remedy, taken):
    told = forecasts(plain)[remedy]
    truth = certificate(**taken).distance
    assert told == pytest.approx(truth, rel=0.1)
    assert abs(told - truth) < 0.5 * (plain.distance - truth)  # it is nearer than saying nothing


def test_nothing_is_said_of_a_distance_that_does_not_come_from_the_piece(plain):
    assert parts(ez.certify(plain.solution, using=ez.certificates.MeanDeviation())) == {}
    assert Remedy.QUESTION not in forecasts(certificate(of="distance"))


def test_parts_of_another_bound_are_not_printed(plain):
    """Where the residual alone says less, the piece's parts would not add up to the distance."""
    smaller = replace(plain, distance=plain.distance / 2)
    assert "by variance" in str(plain)
    assert "by variance" not in str(smaller)
    assert forecasts(smaller) == {}
