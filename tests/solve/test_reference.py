"""The paper's reference scheme: against a loop in NumPy that is handed the same draws, and what it converges to."""

import jax
import numpy as np
import pytest

import epszero as ez

RNG = np.random.default_rng(5)
POOL = ez.Samples(RNG.gamma(2.0, 0.05, (200, 3)))
STRATEGIES = ez.sets.BoxBudget(0.0, 2.0, at_least=np.array([1.0, 2.0]), dim=3)
WEAR = np.array([0.4, 0.9])


def cost(own, average, price, wear):
    return wear * own @ own + price @ own + 0.5 * np.float64(1.0) * (average @ average)


GAME = ez.AggregativeGame(ez.oracles.Affine(cost), WEAR, STRATEGIES, declared=ez.declare(mu=0.8, kappa=2.3))
LOW, HIGH = POOL.values.min(axis=0), POOL.values.max(axis=0)


def draws(k, batch, seed):
    """The samples of iteration k, drawn as the scheme draws them."""
    key = jax.random.fold_in(jax.random.key(seed), k)
    with jax.enable_x64(True):
        keys = [jax.random.split(jax.random.fold_in(key, j), batch) for j in range(k)]
        units = [jax.random.uniform(jax.random.split(one, 1)[0], (3,)) for group in keys for one in group]
    return LOW + (HIGH - LOW) * np.stack([np.asarray(unit) for unit in units])


@pytest.mark.long
def test_each_iteration_averages_ten_more_fresh_samples():
    x, step = STRATEGIES.project(np.zeros((2, 3))), 0.3
    for k in range(1, 5):
        fresh = draws(k, 10, seed=3)
        assert fresh.shape == (10 * k, 3)
        F = 2 * WEAR[:, None] * x + fresh.mean(axis=0) + x.mean(axis=0) / 2
        x = STRATEGIES.project(x - step * F)
    found = ez.reference_equilibrium(GAME, POOL, step=step, iterations=4, seed=3, x0=np.zeros((2, 3)))
    np.testing.assert_allclose(found.x, x, atol=1e-12)
    assert found.drawn == 10 + 20 + 30 + 40


@pytest.mark.long
def test_it_finds_the_equilibrium_of_the_uniform_law_and_not_of_the_pool():
    found = ez.reference_equilibrium(GAME, POOL, iterations=150, seed=0)
    uniform = ez.solve(GAME, ez.Samples((LOW + HIGH)[None] / 2)).x
    own = ez.solve(GAME, POOL).x
    assert np.linalg.norm(found.x - uniform) < 0.01
    assert np.linalg.norm(found.x - own) > 5 * np.linalg.norm(found.x - uniform)
    again = ez.reference_equilibrium(GAME, POOL, iterations=150, seed=0)
    np.testing.assert_array_equal(found.x, again.x)


@pytest.mark.long
def test_costs_of_their_own_are_averaged_too():
    costs = [lambda x, xi: (x[0] - xi[:1]) @ (x[0] - xi[:1]), lambda x, xi: (x[1] - x[0]) @ (x[1] - x[0])]
    game = ez.Game(costs, [ez.sets.Box(-9.0, 9.0, dim=1)] * 2)
    found = ez.reference_equilibrium(game, POOL, step=0.3, iterations=200)
    np.testing.assert_allclose(np.concatenate(found.x), (LOW + HIGH)[0] / 2, atol=0.01)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ez.reference_equilibrium(GAME, POOL.values), "^pool: must be one ez.Samples"),
        (lambda: ez.reference_equilibrium(GAME, POOL, iterations=0), "^iterations: must be at least 1"),
        (lambda: ez.reference_equilibrium(GAME, POOL, step=-0.1), "^step: must be positive"),
        (lambda: ez.reference_equilibrium(ez.models.ev_charging(2, hours=3, need=1.0), POOL), "^step: is needed"),
        (lambda: ez.reference_equilibrium(ez.models.zero_sum([[1.0, 2.0]]), POOL), "^problem: .*take a sample"),
        (lambda: ez.reference_equilibrium(ez.models.ev_charging(2, hours=3, need=1.0, capacity=9.0), POOL),
         "^problem: has shared constraints"),
        (lambda: ez.reference_equilibrium(GAME, POOL, batches=3), "^batches: .*Did you mean 'batch'"),
    ],
)  # fmt: skip
def test_bad_input(call, words):
    with pytest.raises(ez.InputError, match=words):
        call()
