"""Jumps and bends that only a corner of the domain shows: proofs must look at all of it, for every agent of a batch."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.facts import Unknown, facts_of
from epszero.facts.low_rank import _DiagonalAndLowRank

UNIT = ez.sets.Box(-1.0, 1.0, dim=2)
SAMPLES = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (60, 2)), support=UNIT)


def _derivative(game, x):
    with double():
        return facts_of(game, (UNIT,), np.zeros(2), x).derivative


@pytest.mark.parametrize("at", [-0.97, 0.05, 0.97, 5.0])
def test_a_jump_in_the_own_strategy_of_agents_alike(at):
    """Their costs are looked at together; beyond the domain there may be jumps."""

    def cost(i):
        return lambda x, xi: x[i] @ x[i] + 0.1 * x[0] @ x[1] + xi @ x[i] + 5.0 * jnp.where(x[i][0] > at, 1.0, 0.0)

    game = ez.Game([cost(i) for i in range(3)], [UNIT] * 3)
    assert isinstance(_derivative(game, [np.zeros(2)] * 3), Unknown) == (at < 1.0)


@pytest.mark.parametrize("at", [1.8, 0.1, -1.9, 2.5])
def test_a_jump_that_the_average_reaches_when_all_are_at_an_end(at):
    def cost(x, average, xi, p):
        return p * x @ x + xi @ x + 5.0 * jnp.where(average[0] > at, 1.0, 0.0)

    game = ez.AggregativeGame(cost, np.linspace(1.0, 2.0, 4), ez.sets.Box(-2.0, 2.0, dim=2))
    assert isinstance(_derivative(game, np.zeros((4, 2))), Unknown) == (at < 2.0)


def test_nothing_is_proved_of_numbers_that_overflow():
    """diag(0, 1) − vvᵀ with v as long as can be: its least eigenvalue is far below every shift."""
    huge = _DiagonalAndLowRank(np.array([0.0, 1.0]), np.array([[1e200, 1e200]]), np.array([-1.0]), 0.0)
    for shift in (-1e-200, -1.0):
        assert not huge.seen_from(shift)[0]
    small = _DiagonalAndLowRank(np.array([0.0, 1.0]), np.array([[1.0, 0.0]]), np.array([1.0]), 0.0)
    assert small.seen_from(-0.5)[0]
    assert small.seen_from(0.5)[0]
    assert not small.seen_from(1.5)[0]


@pytest.mark.parametrize(("features", "word"), [(True, "proved"), (False, None)])
def test_structure_says_whether_features_are_proved(features, word):
    def field(x, xi):
        return x + (xi if features else jnp.tanh(x - xi))

    with double():
        known = facts_of(ez.Inclusion(UNIT, field), (UNIT,), np.zeros(2), np.zeros(2)).structure
    assert known.as_record()["affine in features"] == word
