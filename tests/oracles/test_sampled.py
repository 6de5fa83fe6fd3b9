"""Means over some of the samples: the same for every kind of oracle as the slow sum."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.oracles.sampled import sampled

RNG = np.random.default_rng(0)
DATA = RNG.uniform(0.5, 1.5, (9, 3))
BATCH = np.array([7, 0, 4])
COSTS = [lambda x, xi: xi[0] * x[0] @ x[0] + x[1] @ x[0], lambda x, xi: jnp.exp(xi[1] * x[1]).sum()]
GAMES = {
    "affine in features": ez.Inclusion(ez.sets.Box(-1, 1, dim=3), lambda x, xi: xi * x - xi),
    "general": ez.Inclusion(ez.sets.Box(-1, 1, dim=3), lambda x, xi: jnp.sin(xi * x)),
    "blocks": ez.Game(COSTS, [ez.sets.Box(-1, 1, dim=2)] * 2),
    "agents": ez.AggregativeGame(
        lambda own, average, xi, p: p["w"] * own @ own + average @ own - xi @ own,
        {"w": np.array([1.0, 2.0])},
        ez.sets.Box(0, 1, dim=3),
    ),
    "agents, general": ez.AggregativeGame(
        lambda own, average, xi, p: jnp.cos(own * xi).sum() + p["w"] * average @ own,
        {"w": np.array([1.0, 2.0])},
        ez.sets.Box(0, 1, dim=3),
    ),
}
ONE_EVALUATION = {"affine in features", "agents"}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", GAMES)
def test_the_mean_over_a_batch_is_the_slow_sum(name):
    problem = GAMES[name]
    x = jax.tree.map(lambda leaf: RNG.uniform(0.1, 0.9, np.shape(leaf)), problem.start)
    with jax.enable_x64(True):
        B = sampled(problem.oracle, DATA, x, problem.oracle.average(DATA, x))
        assert B.size == 9
        assert (B.each is None) == (name in ONE_EVALUATION)
        found, whole = B.over(x, BATCH), B(x)
        slow = [problem.oracle(x, DATA[i]) for i in range(9)]
        for over, value in ((BATCH, found), (range(9), whole)):
            mean = jax.tree.map(lambda *rows: np.mean(rows, axis=0), *(slow[i] for i in over))
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-14), value, mean)
