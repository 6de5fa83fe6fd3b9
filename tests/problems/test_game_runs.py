"""Running games: starts, many data sets, hold-out, methods that do not fit, and questions to `check_equilibrium`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.problems.backward import Backward

pytestmark = pytest.mark.long

SAMPLES = ez.Samples(np.random.default_rng(0).normal(size=(20, 2)) + 0.5)
BOXES = [ez.sets.Box(-1.0, 1.0, dim=2)] * 2
SHARED = (np.ones((1, 4)), [0.1])


def cost(i):
    return lambda x, xi: jnp.sum((x[i] - xi[i]) ** 2) + 0.1 * x[0].sum() * x[1].sum()


FREE = ez.Game([cost(0), cost(1)], BOXES)
BOUND = ez.Game([cost(0), cost(1)], BOXES, SHARED)
CONVEX = ez.Game([cost(0), cost(1)], BOXES, lambda x: x[0].sum() + x[1].sum() - 0.1)


@pytest.fixture(scope="module")
def solution():
    return ez.solve(BOUND, SAMPLES, tol=1e-10)


def test_the_point_of_a_solution_is_a_warm_start(solution):
    assert solution.multipliers[0] > 0.1
    again = ez.solve(BOUND, SAMPLES, tol=1e-9, x0=solution.point)
    assert again.iterations == 0
    assert again.notes == ()
    assert ez.solve(BOUND, SAMPLES, tol=1e-10, x0=solution.x).iterations > 0  # the multipliers are part of the answer
    pushed = ez.solve(BOUND, SAMPLES, tol=1e-10, x0=solution.point._replace(multipliers=[-1.0]))
    assert "projected" in pushed.notes[0]
    np.testing.assert_allclose(np.stack(pushed.x), np.stack(solution.x), atol=1e-8)


@pytest.mark.parametrize(
    ("x0", "words"),
    [
        ([np.zeros(2)] * 3, "^x0: must be nested like .*3 != 2"),
        ([np.zeros(2), np.zeros(3)], r"^x0: Box has points of shape \(2,\), but the last axis is \(3,\)"),
        ([np.zeros(2), [0.0, np.nan]], r"^x0\[1\]: must be finite"),
        (np.zeros((2, 2)), "^x0: must be nested like"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(x0, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(BOUND, SAMPLES, x0=x0)


def test_a_start_with_too_many_multipliers_is_refused_by_name(solution):
    with pytest.raises(ez.InputError, match="^x0: .*multipliers"):
        ez.solve(BOUND, SAMPLES, x0=solution.point._replace(multipliers=np.zeros(3)))


def test_a_tuple_of_strategies_is_a_start_too(solution):
    again = ez.solve(BOUND, SAMPLES, tol=1e-10, x0=tuple(solution.x))
    np.testing.assert_allclose(np.stack(again.x), np.stack(solution.x), atol=1e-8)


def test_many_data_sets_with_shared_constraints(solution):
    """The third is one data set per agent, of different lengths."""
    many = [SAMPLES, ez.Samples(-SAMPLES.values), [ez.Samples(SAMPLES.values[:10]), SAMPLES]]
    together = ez.solve_many(BOUND, many, tol=1e-10)
    np.testing.assert_allclose(np.stack(together[0].x), np.stack(solution.x), atol=1e-9)
    np.testing.assert_allclose(together[0].multipliers, solution.multipliers, atol=1e-9)
    for data, one in zip(many[1:], together[1:], strict=True):
        alone = ez.solve(BOUND, data, tol=1e-10)
        np.testing.assert_allclose(np.stack(one.x), np.stack(alone.x), atol=1e-9)
        np.testing.assert_allclose(one.multipliers, alone.multipliers, atol=1e-9)
    assert together[1].multipliers[0] == 0.0
    assert together[2].check_equilibrium().largest < 1e-9


def test_methods_for_shared_constraints_agree(solution):
    for game, method in ((BOUND, ez.ForwardBackwardForward()), (BOUND, ez.Extragradient()), (CONVEX, None)):
        other = ez.solve(game, SAMPLES, method, tol=1e-10)
        np.testing.assert_allclose(np.stack(other.x), np.stack(solution.x), atol=1e-8)
        np.testing.assert_allclose(other.multipliers, solution.multipliers, atol=1e-8)


@pytest.mark.parametrize(
    ("game", "method", "words"),
    [
        (
            BOUND,
            ez.ForwardBackward(),
            "^method: forward-backward does not converge on shared.*ez.PreconditionedForward",
        ),
        (FREE, ez.PreconditionedForwardBackward(), "^method: is for shared affine.*has none. Use ez.ForwardBackward()"),
        (CONVEX, ez.PreconditionedForwardBackward(), "^method: .*convex ones. Use ez.ForwardBackwardForward"),
        (
            BOUND,
            ez.PreconditionedForwardBackward(0.1, 5.0),
            "^step, dual_step: 1/step − .*must exceed 0, but it is -10",
        ),
        (
            BOUND,
            ez.PreconditionedForwardBackward(dual_step=[1, 2]),
            "^dual_step: must be a number or one per constraint",
        ),
    ],
)
def test_a_method_that_does_not_fit_is_refused(game, method, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(game, SAMPLES, method)


def test_hold_out_and_a_single_step():
    short = ez.solve(BOUND, SAMPLES, iterations=0, holdout=0.3)
    assert (len(short.samples), len(short.holdout)) == (14, 6)
    assert short.iterations == 0
    check = short.check_equilibrium()
    assert check.violation == pytest.approx(max(np.sum(short.x) - 0.1, 0.0))
    assert check.violation > 0.1  # not there yet, and the check says so
    assert check.complementarity == pytest.approx(short.multipliers[0] * check.violation)
    assert (check.at_most >= check.saving).all()
    with pytest.raises(ez.InputError, match="^holdout: needs one data set"):
        ez.solve(BOUND, [SAMPLES, SAMPLES], holdout=0.3)


def test_a_sample_is_not_needed_by_all():
    game = ez.Game([lambda x: jnp.sum((x[0] - 0.5) ** 2), cost(1)], BOXES)
    x = ez.solve(game, SAMPLES).x
    np.testing.assert_allclose(x[0], 0.5, atol=1e-8)


def test_the_same_run_at_very_different_scales():
    """Costs, constraints and strategies in other units: the same equilibrium."""
    for of_cost, of_row, of_x in ((1e6, 1e-6, 1.0), (1e-6, 1e6, 1e3)):
        costs = [lambda x, i=i, c=of_cost, u=of_x: c * jnp.sum((x[i] / u - 0.5 - 0.2 * i) ** 2) for i in range(2)]
        sets = [ez.sets.Box(-of_x, of_x, dim=2)] * 2
        scaled = ez.solve(ez.Game(costs, sets, (of_row * np.ones((1, 4)), of_row * of_x)))
        np.testing.assert_allclose(np.concatenate(scaled.x) / of_x, [0.15, 0.15, 0.35, 0.35], atol=1e-6)
        np.testing.assert_allclose(scaled.multipliers, [0.7 * of_cost / of_row / of_x], rtol=1e-5)


# -- questions to check_equilibrium ------------------------------------------------------------------------------------


def test_some_agents_only(solution):
    check = solution.check_equilibrium(agents=[1])
    assert check.agents == (1,)
    assert check.saving.shape == (1,)
    assert check.at_most.shape == (2,)
    for agents in ([2], [-1], []):
        with pytest.raises(ez.InputError, match="^agents: must be"):
            solution.check_equilibrium(agents=agents)


@pytest.mark.parametrize("agents", [["first"], [0.7], [], "all"])
def test_agents_that_are_no_list_of_numbers_are_refused(solution, agents):
    with pytest.raises(ez.InputError, match="^agents: must be"):
        solution.check_equilibrium(agents=agents)


def test_no_constraints_at_all():
    with pytest.raises(ez.InputError, match="^G: has no row.*Leave shared out"):
        ez.Game([lambda x: x[0] @ x[0], lambda x: x[1] @ x[1]], BOXES, shared=(np.zeros((0, 4)), []))


def test_it_is_for_games_only():
    stated = ez.solve(ez.VariationalInequality(lambda x: x, over=BOXES[0]), iterations=0)
    with pytest.raises(ez.InputError, match="^check_equilibrium: is for games, and this is a VariationalInequality"):
        stated.check_equilibrium()


def test_looking_for_convexity_does_not_project_everybody_for_each_agent(monkeypatch):
    calls = []
    original = Backward.into_domain
    monkeypatch.setattr(Backward, "into_domain", lambda self, x: calls.append(1) or original(self, x))
    agents = 12
    game = ez.AggregativeGame(
        lambda own, average, wear: wear * own @ own - 2 * own.sum() ** 2, np.ones(agents), ez.sets.Simplex(dim=3)
    )
    with jax.enable_x64(True):
        seen = game.examine(None, np.full((agents, 3), 1 / 3))
    assert seen.finite
    assert not seen.bent
    assert len(calls) < 15 * agents  # its own set, once for each point looked at
