"""What is tried before the iterations: linear programs of games that only turn, and one Newton step where x is free."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.solve import systems
from epszero.solve.newton import AT_ONCE, FIRST


@pytest.mark.some(2)
@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_a_matrix_game_is_solved_by_its_program_before_long(scale):
    A = scale * np.random.default_rng(0).uniform(size=(12, 15))
    found = ez.solve(ez.models.zero_sum(A))
    assert found.iterations < AT_ONCE
    assert "a convex program" in found.finished
    x, y = found.x
    assert np.max(x @ A) - np.min(A @ y) <= 1e-12 * scale


@pytest.mark.long
def test_what_the_iterations_solve_sooner_is_left_to_them():
    found = ez.solve(ez.models.zero_sum(np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])))
    assert found.iterations == 0
    assert not found.finished


@pytest.mark.long
def test_many_agents_whose_points_are_stacked_have_a_program_too():
    """Twenty players on a ring, each in a zero-sum game with the next."""
    rng, agents = np.random.default_rng(1), 20
    payoffs = rng.normal(size=(agents, 2, 2))

    def cost(i):
        return lambda x: x[i] @ payoffs[i] @ x[(i + 1) % agents] - x[i] @ payoffs[i - 1].T @ x[i - 1]

    found = ez.solve(ez.Game([cost(i) for i in range(agents)], [ez.sets.Simplex(dim=2) for _ in range(agents)]))
    assert found.iterations < AT_ONCE
    assert "a convex program" in found.finished
    assert found.check().residual <= 1e-12
    assert found.check().in_domain


@pytest.mark.some(2)
@pytest.mark.parametrize("turning", [0.0, 1.0], ids=["a gradient", "turning"])
def test_a_linear_system_takes_one_newton_step(turning):
    rng, n = np.random.default_rng(2), 30
    M, q = rng.normal(size=(n, n)), rng.normal(size=n)
    M = np.diag(np.logspace(0, 5, n)) + turning * (M - M.T)
    found = ez.solve(ez.Inclusion(ez.sets.WholeSpace(n), lambda x: M @ x + q))
    assert (found.iterations, found.finished) == (0, "1 Newton step")
    np.testing.assert_allclose(found.x, np.linalg.solve(M, -q), rtol=1e-9)


@pytest.mark.long
def test_nothing_is_tried_early_where_curvature_is_left():
    M = np.array([[0.3, 1.0], [-1.0, 1e-3]])
    found = ez.solve(ez.VariationalInequality(lambda x: M @ x - 1.0, over=ez.sets.Box(-0.9, 0.7, dim=2)))
    assert found.iterations + 1 >= FIRST or not found.finished


def test_programs_are_made_from_the_data_where_these_turn_the_operator():
    """H depends on the samples: nothing of one data set is kept for the next."""

    def turned(x, xi):
        return jnp.stack([xi[0] * x[1] + 0.3, -xi[0] * x[0] - 0.2])

    problem = ez.VariationalInequality(turned, over=ez.sets.Box(-1.0, 1.0, dim=2))
    one, other = (ez.solve(problem, np.full((4, 1), turn)) for turn in (0.4, 3.0))
    np.testing.assert_allclose(one.x, [-0.5, -0.75], atol=1e-9)
    np.testing.assert_allclose(other.x, [-0.2 / 3, -0.1], atol=1e-9)


@pytest.mark.long
def test_affine_problems_over_polyhedra_end_exact_to_rounding_and_say_so():
    rng, n = np.random.default_rng(4), 20
    turning, q = rng.normal(size=(n, n)), rng.normal(size=n)
    M = np.diag(np.logspace(-3, 1, n)) + 0.3 * (turning - turning.T)
    found = ez.solve(ez.VariationalInequality(lambda x: M @ x + q, over=ez.sets.Box(-1.0, 1.0, dim=n)))
    assert found.exact
    assert found.message.startswith("converged")
    assert "exact to rounding" in found.message
    assert found.check().residual <= 1e-14 * (1 + np.abs(M).sum())


@pytest.mark.long
def test_what_is_not_affine_or_not_polyhedral_does_not_claim_it():
    n = 6
    M, q = np.diag(np.logspace(-4, 2, n)), -np.ones(n)
    round_set = ez.solve(ez.VariationalInequality(lambda x: M @ x + q, over=ez.sets.Ball(1.0, dim=n)))
    side = ez.sets.BoxBudget(-1.0, 2.0, at_least=0.0, dim=n)  # not entry by entry, so that units differ
    bent = ez.solve(ez.VariationalInequality(lambda x: M @ x + q + 1e-3 * x**3, over=side))
    coarse = ez.solve(ez.VariationalInequality(lambda x: x - 0.3, over=ez.sets.Box(0.0, 1.0, dim=n)))
    for found in (round_set, bent, coarse):
        assert found.status is ez.Status.CONVERGED
        assert not found.exact
        assert "exact to rounding" not in found.message
    assert round_set.finished  # by Newton's method all the same
    assert bent.finished


@pytest.mark.long
def test_agents_by_blocks_say_it_too():
    game = ez.models.ev_charging(vehicles=20, seed=0)
    prices = np.random.default_rng(0).uniform(0.02, 0.25, size=(50, 14))
    found = ez.solve(game, prices)
    assert found.finished
    assert found.exact


@pytest.mark.long
def test_a_point_too_large_for_every_system_is_left_to_the_method(monkeypatch):
    n = 2001
    slopes = np.linspace(0.005, 1.0, n)
    side = ez.sets.BoxBudget(0.0, 3.0, at_least=1.0, dim=n)  # not entry by entry, so that units differ
    problem = ez.VariationalInequality(lambda x: slopes * x - 1.0, over=side)
    assert ez.solve(problem).finished  # otherwise the test says nothing
    monkeypatch.setattr(systems, "KEPT", n)
    alone = ez.solve(problem)
    assert not alone.finished
    np.testing.assert_allclose(alone.x, np.minimum(1 / slopes, 3.0), atol=1e-6)
