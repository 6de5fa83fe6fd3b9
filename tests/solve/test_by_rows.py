"""Newton's system without blocks: the same step as with them, and none where blocks are not diagonal enough."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.solve.by_rows import step_by_rows
from epszero.solve.newton import looked
from epszero.solve.setup import averaged
from epszero.solve.systems import ByAgents, ByRows

T = 5
SIDES = {
    "box": ez.sets.Box(0.0, 0.5, dim=T),
    "simplex": ez.sets.Simplex(dim=T),
    "budget": ez.sets.BoxBudget(0.0, 0.5, at_least=1.0, dim=T),
    "l1": ez.functions.L1(0.2),
}


def apart(own, average, agent):
    """Own Hessians are diagonal, also through the own share of the mean."""
    return agent["a"] * jnp.sum(own**4) + 0.3 * own @ own + own @ (agent["c"] * average) - agent["b"] @ own


def mixed(own, average, agent):
    return apart(own, average, agent) + 0.1 * jnp.sum(own) ** 2


def game(cost, side, agents):
    rng = np.random.default_rng(agents)
    c, b = rng.uniform(0, 2, size=(agents, T)), rng.normal(size=(agents, T))
    data = {"a": rng.uniform(0.5, 2, agents), "c": c, "b": b}
    return ez.AggregativeGame(cost, data, side), rng.uniform(0.05, 0.45, size=(agents, T))


def steps(problem, x, agents):
    with double():
        x, Gamma = jnp.asarray(x), jnp.linspace(0.1, 0.9, agents)
        A, B = problem.placed, averaged(problem, None, x)
        r = looked(A, B, x, Gamma).r
        return step_by_rows(A, B, x, Gamma, r), ByAgents().step(A, B, x, Gamma, r)


@pytest.mark.some(4)
@pytest.mark.parametrize("agents", [10, 13])
@pytest.mark.parametrize("side", SIDES)
def test_it_is_the_step_of_the_blocks(side, agents):
    one, other = steps(*game(apart, SIDES[side], agents), agents)
    assert one is not None
    np.testing.assert_allclose(one, other, atol=1e-9 * np.abs(other).max())


@pytest.mark.long
def test_where_own_hessians_are_not_diagonal_there_is_none_and_another_way_is_taken():
    problem, x = game(mixed, SIDES["budget"], 10)
    one, other = steps(problem, x, 10)
    assert one is None
    with double():
        x, Gamma = jnp.asarray(x), jnp.linspace(0.1, 0.9, 10)
        A, B = problem.placed, averaged(problem, None, x)
        system = ByRows(ByAgents())
        np.testing.assert_array_equal(system.step(A, B, x, Gamma, looked(A, B, x, Gamma).r), other)
    assert not system.fits


@pytest.mark.long
def test_nor_where_a_projection_bends_in_several_directions():
    problem, x = game(apart, ez.sets.Ball(0.3, dim=T), 10)
    assert steps(problem, 3 * x, 10)[0] is None


@pytest.mark.long
def test_a_game_of_thousands_ends_exactly():
    rng, agents = np.random.default_rng(0), 4000
    wear = rng.uniform(0.002, 0.2, agents)

    def cost(own, average, p):
        return p["wear"] * own @ own + jnp.linspace(0.0, 0.2, 8) @ own + 0.02 * own @ average

    need = ez.sets.BoxBudget(0.0, 2.5, at_least=rng.uniform(4, 8, agents), dim=8)
    solution = ez.solve(ez.AggregativeGame(cost, {"wear": wear}, need), tol=1e-13)
    assert solution.status is ez.Status.CONVERGED
    assert "Newton" in solution.finished
    assert jax.tree.leaves(solution.x)[0].shape == (agents, 8)
    assert solution.check().residual <= 1e-12
