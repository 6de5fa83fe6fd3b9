"""Days in their order, and monitors: misses no more frequent than δ, in a small count; twins convicted."""

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import Prequential

from .coverage import too_many
from .days import CONTENDERS, LAWS, SOUND, STREAMS, WATCHES, days_missed, delays, drawn, false_alarms

FEW = 200


@pytest.mark.parametrize("law", LAWS)
def test_what_the_past_promised_is_missed_no_more_often_than_delta(law):
    for delta in (0.3, 0.05):
        assert not too_many(days_missed(SOUND, law, 100, delta, FEW)[0], FEW, delta)


@pytest.mark.parametrize("twin", [name for name in CONTENDERS if name != SOUND])
def test_twins_of_days_are_convicted(twin):
    for law, s in CONTENDERS[twin].broken:
        assert too_many(days_missed(twin, law, s, 0.05, 40)[0], 40, 0.05)


@pytest.mark.long
def test_whole_certificates_of_days():
    problem = ez.Inclusion(ez.sets.Box(-0.2, 0.4, dim=3), lambda x, xi: 2.0 * x - xi)
    rng, trials, missed = np.random.default_rng(5), 60, 0
    X, promised = drawn("sticky", 60, trials, rng)
    many = [ez.Samples(one, support=ez.sets.Box(0.0, 1.0, dim=3)) for one in X]
    for solution, mean in zip(ez.solve_many(problem, many), promised, strict=True):
        found = ez.certify(solution, 0.3, Prequential())
        truth = np.clip(mean / 2.0, -0.2, 0.4)
        off = np.linalg.norm(solution.z + 2.0 * solution.x - mean) > found.epsilon + 1e-9
        missed += bool(off or np.linalg.norm(solution.x - truth) > found.distance + 1e-9)
    assert not too_many(missed, trials, 0.3)


@pytest.mark.parametrize("stream", STREAMS)
def test_false_alarms_are_no_more_frequent_than_delta(stream):
    assert not too_many(false_alarms(WATCHES[0], stream, 0.3, FEW, long=150), FEW, 0.3)


@pytest.mark.parametrize("twin", WATCHES[1:])
def test_twins_of_the_monitor_are_convicted(twin):
    convicted = [too_many(false_alarms(twin, stream, 0.05, 100, long=400), 100, 0.05) for stream in STREAMS]
    assert any(convicted)


def test_a_drift_is_told_and_a_larger_one_sooner():
    small, large = (np.median(delays(shift, 40)) for shift in (0.2, 0.5))
    assert large < small < 1000
