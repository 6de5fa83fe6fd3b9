"""A watch over new samples: what it tells, what it refuses, and that it leaves what was as it was."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.certificates import AlarmKind, HoldOut, MeanDeviation
from epszero.certificates.e_process import KEEPS, Frame, State, advanced, wagers

H = np.array([[1.2, 0.4], [-0.2, 0.9]])
UNIT = ez.sets.Box(0.0, 1.0, dim=2)
PROBLEM = ez.Inclusion(ez.sets.Box(-5.0, 5.0, dim=2), lambda x, xi: H @ x - xi)


def rows(s, seed, scale=1.0):
    return scale * np.random.default_rng(seed).uniform(size=(s, 2))


@pytest.fixture(scope="module")
def certificate():
    return ez.certify(ez.solve(PROBLEM, ez.Samples(rows(500, 0), support=UNIT)))


def test_no_alarm_without_drift_and_one_soon_after(certificate):
    calm = ez.monitor(certificate).update(rows(1000, 1))
    assert calm.alarm is None
    assert "No alarm after 1000" in str(calm)
    told = calm.update(rows(400, 2, 0.7))
    assert told.alarm is not None
    assert told.alarm.kind is AlarmKind.DRIFT
    assert 1000 < told.alarm.at < 1300
    assert calm.alarm is None
    assert told.update(rows(5, 3)).alarm == told.alarm


def test_pieces_come_to_the_same_as_the_whole(certificate):
    whole = ez.monitor(certificate).update(rows(60, 4))
    pieces = ez.monitor(certificate)
    for row in rows(60, 4):
        pieces = pieces.update(row[None])
    assert pieces.e == pytest.approx(whole.e, rel=1e-12)
    assert pieces.seen == whole.seen == 60


def test_residuals_are_those_of_the_oracle(certificate):
    found = ez.monitor(certificate).update(rows(1, 5))
    solution, xi = certificate.solution, rows(1, 5)
    np.testing.assert_allclose(found.frame.residuals(xi)[0], solution.z + H @ solution.x - xi[0], atol=1e-12)


def test_a_sample_outside_the_support_is_an_alarm_of_its_own(certificate):
    found = ez.monitor(certificate).update(np.array([[0.5, 0.5], [0.5, 1.5], [0.1, 0.1]]))
    assert found.alarm is not None
    assert (found.alarm.kind, found.alarm.at, found.seen) == (AlarmKind.OUTSIDE, 2, 3)


def test_a_record_is_watched_with_its_problem(certificate):
    read = ez.Certificate.from_json(certificate.to_json())
    there = ez.monitor(read, PROBLEM, UNIT).update(rows(80, 6))
    assert there.e == pytest.approx(ez.monitor(certificate).update(rows(80, 6)).e, rel=1e-12)


@pytest.mark.long
def test_a_general_oracle_with_a_declared_range():
    problem = ez.VariationalInequality(
        lambda x, xi: x + jnp.tanh(x - xi), ez.sets.Box(-1.0, 1.0, dim=2), declared=ez.declare(mu=1.0, kappa=2.0, R=1.5)
    )
    solution = ez.solve(problem, ez.Samples(rows(400, 7)), holdout=0.5)
    watch = ez.monitor(ez.certify(solution, using=HoldOut()))
    assert watch.update(rows(300, 8)).alarm is None
    assert watch.update(rows(300, 8) + 0.6).alarm.kind is AlarmKind.DRIFT


def test_refusals(certificate):
    watch = ez.monitor(certificate)
    with pytest.raises(ez.InputError, match="here before"):
        watch.update(certificate.solution.samples[:50])
    new = ez.Samples(rows(50, 9))
    with pytest.raises(ez.InputError, match="here before"):
        watch.update(new).update(new)
    with pytest.raises(ez.InputError, match="problem"):
        ez.monitor(ez.Certificate.from_json(certificate.to_json()))
    with pytest.raises(ez.InputError, match="refused"):
        ez.monitor(ez.certify(ez.solve(PROBLEM, ez.Samples(rows(50, 1)))))
    with pytest.raises(ez.InputError, match="estimated"):
        ez.monitor(ez.certify(ez.solve(PROBLEM, ez.Samples(rows(50, 1))), using=MeanDeviation(support="estimated")))
    with pytest.raises(ez.InputError, match="delta"):
        ez.monitor(certificate, delta=2.0)
    with pytest.raises(ez.InputError, match="must be a certificate"):
        ez.monitor("certificate")


def test_units_do_not_matter():
    found = []
    for scale in (1e-80, 1.0, 1e80):
        frame = Frame(np.zeros(2), None, np.zeros(2), scale * np.ones(2))
        state, rng = State.start(1, 2), np.random.default_rng(0)
        for _ in range(50):
            state = advanced(state, frame, scale * rng.uniform(-0.5, 1.0, size=(1, 2)), 0.05 * scale)
        found.append(state.e[0])
    assert found == pytest.approx([found[1]] * 3, rel=1e-9)


def test_no_bet_can_lose_all_and_none_knows_its_day():
    frame, rng = Frame(np.zeros(3), None, np.zeros(3), np.ones(3)), np.random.default_rng(1)
    state = State.start(5, 3)
    for _ in range(100):
        d, bets = wagers(state, frame, 0.1)
        worst = -np.sum(np.abs(d), axis=-1) - 0.1
        assert np.all(1 + bets * worst >= 0.5 - 1e-9)
        state = advanced(state, frame, rng.uniform(-1, 1, size=(5, 3)) + 0.0, 0.1)
    assert state.S.shape == (5, len(KEEPS))


def test_evidence_starts_at_one_and_a_fair_game_keeps_it_there():
    """E[E_n] by all outcomes of three fair tosses, at the edge: at most 1."""
    frame, values = Frame(np.zeros(1), None, np.zeros(1), np.ones(1)), []
    for word in range(8):
        state = State.start(1, 1)
        for bit in range(3):
            state = advanced(state, frame, np.array([[1.0 if word >> bit & 1 else -1.0]]), 0.0)
        values.append(state.e[0])
    assert np.mean(values) == pytest.approx(1.0, abs=1e-12)
