"""Linear systems of Newton's finish: each way of solving them against the dense matrix, written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import epszero as ez
from epszero._double import double
from epszero._points import flat_of
from epszero.methods.steps import times
from epszero.solve.newton import looked
from epszero.solve.setup import averaged
from epszero.solve.systems import KEPT, LEAST, RESTART, ByAgents, ByRows, Dense, Krylov, system_for


def written_out(A, B, x, Gamma):
    """I − P + PΓH and r, by one derivative of the whole natural map."""
    flat, unravel = ravel_pytree(x)

    def natural(v):
        inside = jax.tree.map(lambda a, b: a - b, unravel(v), times(Gamma, B(unravel(v))))
        return v - ravel_pytree(A.resolvent(inside, Gamma))[0]

    return np.asarray(jax.jacfwd(natural)(flat)), np.asarray(natural(flat))


def shaped(x, flat):
    return jax.tree.map(np.asarray, ravel_pytree(x)[1](jnp.asarray(flat)))


def check(system, problem, x, Gamma, tight=1e-9):
    with double():
        x = jax.tree.map(jnp.asarray, x)
        A, B = problem.placed, averaged(problem, None, x)
        M, r = written_out(A, B, x, Gamma)
        d = system.step(A, B, x, Gamma, shaped(x, r))
        assert d is not None
        np.testing.assert_allclose(M @ d, -r, atol=tight * (1 + np.abs(r).max()))
        if np.linalg.cond(M) < 1e8:
            np.testing.assert_allclose(d, np.linalg.solve(M, -r), atol=1e-6 * (1 + np.abs(d).max()))


def cost(own, average, agent):
    return (
        agent["a"] * jnp.sum(own**4) + own @ (agent["C"] @ average) + jnp.sum(jnp.exp(own - average)) - agent["b"] @ own
    )


def aggregative(agents, t, over):
    rng = np.random.default_rng(agents)
    C = rng.normal(size=(agents, t, t))
    data = {"a": rng.uniform(0.5, 2, agents), "C": C @ C.swapaxes(1, 2) / t, "b": rng.normal(size=(agents, t))}
    return ez.AggregativeGame(cost, data, over), rng.uniform(0.05, 0.4, size=(agents, t))


@pytest.mark.some(6)
@pytest.mark.parametrize("agents", [9, 10, 13])
@pytest.mark.parametrize("side", ["simplex", "box with budget", "ball"])
def test_block_elimination_is_the_dense_solution(agents, side):
    over = {
        "simplex": ez.sets.Simplex(dim=3),
        "box with budget": ez.sets.BoxBudget(0.0, 0.5, at_least=0.6, dim=3),
        "ball": ez.sets.Ball(0.3, dim=3),
    }[side]
    problem, x = aggregative(agents, 3, over)
    check(ByAgents(), problem, x, np.asarray(0.2))
    check(Dense(affine=False), problem, x, np.asarray(0.2))


@pytest.mark.long
def test_each_agent_may_have_a_step_of_its_own():
    problem, x = aggregative(11, 2, ez.sets.Box(0.0, 0.3, dim=2))
    steps = np.linspace(0.05, 0.5, 11)
    check(ByAgents(), problem, x, steps)
    check(Dense(affine=False), problem, x, steps)


@pytest.mark.some(2)
@pytest.mark.parametrize("agents", [9, 12])
def test_strategies_may_be_nested(agents):
    rng = np.random.default_rng(agents)

    def nested(own, average, agent):
        return (
            agent * (jnp.sum(own["a"] ** 4) + own["b"] @ own["b"])
            + own["a"] @ average["b"][:2]
            + own["b"] @ average["b"]
        )

    sets = {"a": ez.sets.Box(-0.5, 0.5, dim=2), "b": ez.sets.Simplex(dim=3)}
    problem = ez.AggregativeGame(nested, rng.uniform(0.5, 1.5, agents), sets)
    x = {"a": rng.uniform(-0.6, 0.6, (agents, 2)), "b": rng.uniform(0, 0.6, (agents, 3))}
    check(ByAgents(), problem, x, np.asarray(0.3))


@pytest.mark.long
def test_without_a_matrix_the_system_is_solved_to_8_digits():
    problem, x = aggregative(40, 3, ez.sets.Simplex(dim=3))
    check(Krylov(), problem, x, np.asarray(0.1), tight=1e-8)


@pytest.mark.long
def test_a_game_with_blocks_of_different_size_and_multipliers():
    costs = [lambda x: jnp.sum(x[0] ** 4) + x[0] @ x[1][:2], lambda x: x[1] @ x[1] - x[1][:2] @ x[0]]
    problem = ez.Game(costs, [ez.sets.Simplex(dim=2), ez.sets.Box(-1, 1, dim=3)], shared=(np.ones((2, 5)), [0.5, 2.0]))
    point = ez.solve(problem, iterations=3).point
    check(Dense(affine=False), problem, point, np.asarray(0.1))
    check(Krylov(), problem, point, np.asarray(0.1), tight=1e-8)


def test_a_singular_matrix_is_made_regular():
    """B = 0 in the second entry: every x₂ solves, and the step is finite and solves what can be solved."""
    problem = ez.VariationalInequality(
        lambda x: jnp.array([2.0, 0.0]) * x - jnp.array([1.0, 0.0]), ez.sets.Box(-9, 9, dim=2)
    )
    check(Dense(affine=True), problem, np.array([0.3, 0.2]), np.asarray(0.5))


@pytest.mark.long
def test_agents_whose_blocks_are_singular_have_a_step_too():
    """Linear costs: M_i = I − P_i is singular, and the long step of the regular one leads to each best vertex."""
    prices = np.random.default_rng(0).uniform(1, 2, size=(20, 3))
    problem = ez.AggregativeGame(
        lambda own, average, price: own @ price + 0 * average[0], prices, ez.sets.Simplex(dim=3)
    )
    with double():
        x, Gamma = jnp.full((20, 3), 1 / 3), np.asarray(0.2)
        A, B = problem.placed, averaged(problem, None, x)
        for _ in range(2):  # far beyond the vertices, and back to them
            d = ByAgents().step(A, B, x, Gamma, shaped(x, written_out(A, B, x, Gamma)[1]))
            assert d is not None
            x = x + d.reshape(20, 3)
        there = looked(A, B, x, Gamma)
    np.testing.assert_array_equal(np.argmax(there.x, axis=1), np.argmin(prices, axis=1))
    assert float(there.residual) < 1e-7


@pytest.mark.parametrize(
    ("x", "rows", "way"),
    [
        (np.zeros(2000), False, Dense),
        (np.zeros(2001), False, Krylov),
        (np.zeros((1000, 3)), True, ByAgents),
        (np.zeros((5, 3)), True, Dense),
        ({"a": np.zeros((1_000_000, 2)), "b": np.zeros((1_000_000, 1))}, True, ByRows),
        (np.zeros((100, 1000)), True, ByRows),
    ],
)
def test_the_way_suits_the_size(x, rows, way):
    assert isinstance(system_for(x, rows, affine=True), way)


def test_krylov_keeps_no_more_than_its_share_of_memory():
    """A million agents with 24 hours each: not even eight vectors, so there is no second way."""
    one = np.zeros(())
    sizes = (50_000, 200_000, 1_000_000)
    first = [system_for(np.broadcast_to(one, (N, 24)), rows=True, affine=True) for N in sizes]
    some, more, many = (system.other if isinstance(system, ByRows) else None for system in first)
    assert isinstance(some, Krylov)
    assert some.vectors == RESTART
    assert isinstance(more, Krylov)
    assert LEAST <= more.vectors < RESTART
    assert more.vectors * 200_000 * 24 <= KEPT
    assert many is None


@pytest.mark.long
def test_no_derivative_no_step():
    import cvxpy as cp  # noqa: PLC0415

    v = cp.Variable(2)
    problem = ez.VariationalInequality(lambda x: x - 2.0, ez.sets.from_cvxpy([cp.norm(v) <= 1, cp.exp(v[0]) <= 2], v))
    with double():
        x = jnp.array([0.3, 0.4])
        B = averaged(problem, None, x)
        for system in (Dense(affine=True), Krylov()):
            assert system.step(problem.placed, B, x, np.asarray(0.5), jnp.asarray(flat_of(x))) is None
