"""Balls that are foreseen, against those that come."""

import numpy as np
import pytest

from epszero.certificates import Betting, EmpiricalBernstein
from epszero.certificates.foreseen import Chance, Foreseen
from epszero.facts import Region


@pytest.mark.parametrize("wide", [1.0, 8.0])
@pytest.mark.parametrize("size", [2, 30, 500, 5000, 40_000])
@pytest.mark.parametrize("bound", [EmpiricalBernstein(), Betting()])
def test_a_ball_that_is_foreseen_is_as_large_as_it_will_be(bound, size, wide):
    rng = np.random.default_rng(3)
    d = 1 if isinstance(bound, Betting) else 3
    region = Region.box(np.full(d, (1 - wide) / 2), np.full(d, (1 + wide) / 2))
    pilot = rng.beta(0.7, 1.5, size=(3000, d))
    found = [bound.around(rng.beta(0.7, 1.5, size=(size, d)), region, 0.02).radius for _ in range(9)]
    foreseen = [Foreseen(size, Chance.of(rng, 3000), bound).around(pilot, region, 0.02).radius for _ in range(9)]
    assert np.median(foreseen) == pytest.approx(np.median(found), rel=0.1)


def test_the_centre_is_pulled_as_far_as_weights_pull_it():
    rng = np.random.default_rng(4)
    region, pilot = Region.box(np.zeros(2), np.ones(2)), rng.uniform(size=(2000, 2))
    bound = EmpiricalBernstein()
    drawn = [rng.uniform(size=(300, 2)) for _ in range(200)]
    found = [np.linalg.norm(bound.around(X, region, 0.02).centre - X.mean(axis=0)) for X in drawn]
    foreseen = [Foreseen(300, Chance.of(rng, 2000)).around(pilot, region, 0.02).centre for _ in range(200)]
    apart = np.linalg.norm(foreseen - pilot.mean(axis=0), axis=1)
    assert np.median(apart) == pytest.approx(np.median(found), rel=0.3)


def test_what_cannot_move_has_no_radius():
    point = Region.box(np.ones(2), np.ones(2))
    assert Foreseen(100, Chance.of(np.random.default_rng(0), 5)).around(np.ones((5, 2)), point, 0.05).radius == 0
