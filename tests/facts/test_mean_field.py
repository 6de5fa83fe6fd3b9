"""Rᵀ(νH − I)⁻¹R of aggregative games, through their structure: against the matrix that is never written down."""

import numpy as np
import pytest

import epszero as ez
from epszero.facts import Aggregate
from epszero.facts.mean_field import bent


def _bent(game: Aggregate, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = bent(game, R)
    assert found is not None
    return found


def _game(agents: int, entries: int, *, diagonal: bool, seed: int) -> Aggregate:
    rng = np.random.default_rng(seed)
    own = 2.0 * np.eye(entries) + 0.3 * rng.normal(size=(agents, entries, entries))
    average = 0.5 * rng.normal(size=(agents, entries, entries))
    if not diagonal:
        return Aggregate(own, average)
    return Aggregate(*(np.ascontiguousarray(np.diagonal(part, axis1=1, axis2=2)) for part in (own, average)))


def _matrix(game: Aggregate) -> np.ndarray:
    """H, written down entry by entry as the header of facts/aggregates.py says."""
    agents, entries = game.own.shape[:2]
    J = np.zeros((agents * entries, agents * entries))
    for i in range(agents):
        rows = slice(i * entries, (i + 1) * entries)
        J[rows, rows] += np.diag(game.own[i]) if game.diagonal else game.own[i]
        for j in range(agents):
            E = np.diag(game.average[i]) if game.diagonal else game.average[i]
            J[rows, j * entries : (j + 1) * entries] += E / agents
    return (J + J.T) / 2


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize(("agents", "entries"), [(1, 1), (3, 2), (7, 4), (40, 3)])
def test_it_is_that_of_the_whole_matrix(agents, entries, diagonal):
    game = _game(agents, entries, diagonal=diagonal, seed=agents)
    H, R = _matrix(game), np.random.default_rng(1).normal(size=(agents * entries, 3))
    nu, found = _bent(game, R)
    assert (nu > 1 / np.linalg.eigvalsh(H)[0]).all()
    known = np.isfinite(found).all(axis=(1, 2))
    assert known.sum() >= 12
    for one, K in zip(nu[known], found[known], strict=True):
        exact = R.T @ np.linalg.solve(one * H - np.eye(len(H)), R)
        np.testing.assert_allclose(K, exact, rtol=1e-6, atol=1e-8 * np.abs(exact).max())
        assert np.linalg.eigvalsh(K - exact)[0] >= -1e-12 * np.abs(exact).max()  # never less


def test_a_multiplier_at_which_a_block_is_singular_says_nothing():
    own, average = np.full((4, 1), 1.0), np.full((4, 1), 2.0)
    for _ in range(60):  # until one block is singular at a multiplier that is tried, though νH − I is not
        nu, found = _bent(Aggregate(own, average), np.ones((4, 1)))
        own[0] = 1 / nu[8]
    gaps = np.abs(nu[:, None] * own[:, 0] - 1).min(axis=1)
    assert gaps[8] < 1e-5
    assert not np.isfinite(found[8]).any()
    assert np.isfinite(found[gaps > 1e-2]).all()


def test_without_strong_monotonicity_there_is_nothing_to_try():
    assert bent(Aggregate(np.zeros((3, 2)), np.ones((3, 2))), np.ones((6, 1))) is None


def _cost(own, average, price, agent):
    return agent["wear"] * own @ own + price @ own + 0.1 * own @ average


def _charging(agents: int) -> tuple[ez.AggregativeGame, ez.Samples, ez.Samples]:
    rng = np.random.default_rng(0)
    sets = ez.sets.BoxBudget(np.zeros(4), 2.5, at_least=rng.uniform(1, 4, size=agents))
    game = ez.AggregativeGame(_cost, {"wear": rng.uniform(0.05, 0.5, size=agents)}, sets)
    prices = rng.uniform(0.0, 0.2, size=(400, 4))
    return game, ez.Samples(prices, support=ez.sets.Box(0.0, 0.2, dim=4)), ez.Samples(np.full((1, 4), 0.1))


@pytest.mark.long
def test_many_agents_get_the_distance_of_the_s_lemma():
    """Above the size up to which a Jacobian is written down: shorter than ‖e‖/μ, and above the truth."""
    game, samples, law = _charging(400)
    solution = ez.solve(game, samples)
    found = ez.certify(solution, using=ez.certificates.MeanDeviation())
    mu = ez.audit(game, samples).constants["mu"].value
    truth = ez.solve(game, law)
    assert "S-lemma" in found.notes["distance"]
    assert found.distance < 0.8 * found.epsilon / mu
    assert np.linalg.norm(solution.x - truth.x) < found.distance
