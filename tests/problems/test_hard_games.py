"""What a hurried or unlucky user brings: units that differ, costs that are not convex, undefined or misspelt."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

pytestmark = pytest.mark.long

UNIT = ez.sets.Box(-1.0, 1.0, dim=1)


@pytest.mark.some(2)
@pytest.mark.parametrize(("first", "second"), [(1e2, 1e-1), (1e5, 1e-3)])
def test_agents_with_units_of_their_own_get_steps_of_their_own(first, second):
    """In scaled quantities both pay (q − 1)² + ½ q r, so q = r = 0.8."""

    def scaled(x):
        return x[0][0] / first, x[1][0] / second

    costs = [
        lambda x: (scaled(x)[0] - 1) ** 2 + 0.5 * scaled(x)[0] * scaled(x)[1],
        lambda x: (scaled(x)[1] - 1) ** 2 + 0.5 * scaled(x)[0] * scaled(x)[1],
    ]
    game = ez.Game(costs, [ez.sets.Box(0.0, 100 * first, dim=1), ez.sets.Box(0.0, 100 * second, dim=1)])
    solution = ez.solve(game)
    np.testing.assert_allclose(np.concatenate(solution.x), [0.8 * first, 0.8 * second], rtol=1e-7)
    assert solution.iterations < 100
    assert "units" in solution.method.description
    given = ez.solve(game, None, ez.ForwardBackward([0.4 * first**2, 0.4 * second**2]))
    np.testing.assert_allclose(np.concatenate(given.x), [0.8 * first, 0.8 * second], rtol=1e-7)


def test_stacked_agents_with_units_of_their_own():
    sizes = np.array([1e-3, 1.0, 1e3])
    game = ez.AggregativeGame(
        lambda own, average, size: jnp.sum((own / size - 1) ** 2) + 1e-4 * average @ own, sizes,
        ez.sets.Box(0.0, 10 * np.outer(sizes, np.ones(2))),
    )  # fmt: skip
    solution = ez.solve(game)
    assert "units" in solution.method.description
    assert solution.step.shape == (3,)
    assert solution.check_equilibrium().largest < 1e-9


def quartic(x):
    return x[0][0] ** 4 - x[0][0] ** 2 + 0.2 * x[0][0]


def test_a_better_strategy_far_away_is_found_where_the_cost_is_not_convex():
    with pytest.warns(ez.ConvexityWarning, match="several points"):
        solution = ez.solve(ez.Game([quartic], [UNIT]), x0=[np.array([0.9])], throw=False)
    assert "Nothing is proved to converge" in solution.message
    assert solution.x[0][0] == pytest.approx(0.6505, abs=1e-4)
    check = solution.check_equilibrium()
    grid = np.linspace(-1, 1, 20001)
    best = np.min(grid**4 - grid**2 + 0.2 * grid)
    assert check.largest == pytest.approx(float(quartic(solution.x)) - best, abs=1e-6)


def test_an_agent_at_its_bound_may_keep_a_violation_that_is_only_rounding():
    costs = [lambda x: (x[0][0] - 1) ** 2, lambda x: 0.1 * (x[1][0] + 1) ** 2 + 0.01 * x[1][0]]
    game = ez.Game(costs, [ez.sets.Box(0.0, 1.0, dim=1)] * 2, shared=(np.ones((1, 2)), 0.5))
    check = ez.solve(game).check_equilibrium()
    assert not np.isnan(check.saving).any()
    assert check.largest < 1e-8


def test_the_bound_covers_what_a_response_may_do_where_x_violates_a_constraint():
    """Agent 1 violates x₂ ≥ 1 by 1, at a multiplier of 2; agent 0 has no part in it and saves ¼ by going to 1."""
    game = ez.Game([lambda x: (x[0][0] - 1) ** 2, lambda x: x[1][0] ** 2], [ez.sets.Box(0.0, 2.0, dim=1)] * 2,
                   shared=(np.array([[0.0, -1.0]]), -1.0))  # fmt: skip
    solution = ez.solve(game)
    point = solution.point._replace(x=[np.array([0.5]), np.array([0.0])], multipliers=np.array([2.0]))
    check = replace(solution, point=point).check_equilibrium()
    assert check.saving[0] == pytest.approx(0.25, abs=1e-9)
    assert (check.at_most >= check.saving).all()


@pytest.mark.parametrize(
    ("cost", "box"),
    [
        (lambda x: jnp.log(x[0][0] - 2) + x[0][0] ** 2, UNIT),
        (lambda x: jnp.where(x[0][0] > 5, 0.0, jnp.nan) + x[0][0] ** 2, UNIT),
        (lambda x: 2 * x[0][0] - jnp.log(x[0][0]), ez.sets.Box(0.0, 1.0, dim=1)),
        (lambda x: -jnp.sqrt(x[0][0]), ez.sets.Box(0.0, 1.0, dim=1)),
    ],
)
def test_a_cost_that_is_undefined_at_the_start_is_refused(cost, box):
    with pytest.raises(ez.InputError, match=r"^costs\[0\]: is NaN or infinite, .*at the start.*Pass x0"):
        ez.solve(ez.Game([cost], [box]))


def test_a_start_where_it_is_defined_helps():
    game = ez.Game([lambda x: 2 * x[0][0] - jnp.log(x[0][0])], [ez.sets.Box(0.0, 1.0, dim=1)],
                   declared=ez.declare(monotone=True))  # fmt: skip
    solution = ez.solve(game, x0=[[0.9]])
    np.testing.assert_allclose(solution.x[0], 0.5, atol=1e-8)


def test_a_constraint_undefined_at_the_start_is_refused():
    game = ez.Game([lambda x: x[0] @ x[0]], [UNIT], shared=lambda x: jnp.sqrt(x[0] @ x[0]) - 1)
    with pytest.raises(ez.InputError, match="^shared: is not finite, .*at the start.*Pass x0"):
        ez.solve(game)


def test_a_cost_that_ignores_its_own_agent_is_noticed():
    costs = [lambda x: jnp.sum((x[i] - 0.5 * (i + 1)) ** 2) for i in range(2)]  # noqa: B023  (the classic mistake)
    solution = ez.solve(ez.Game(costs, [ez.sets.Box(-1, 1, dim=2)] * 2))
    assert "costs[0] does not depend on the strategy of agent 0" in solution.message
    right = ez.solve(ez.Game([lambda x, i=i: jnp.sum((x[i] - 0.5 * (i + 1)) ** 2) for i in range(2)], [UNIT] * 2))
    assert right.notes == ()


def test_a_game_that_is_not_monotone_is_called_so():
    M = 0.2 * np.eye(3) + np.array([[0.0, 1.0, 3.0], [3.0, 0.0, 1.0], [1.0, 3.0, 0.0]])

    def cost(i):
        rest = [j for j in range(3) if j != i]
        return lambda x: 0.5 * M[i, i] * x[i][0] ** 2 + x[i][0] * sum(M[i, j] * x[j][0] for j in rest)

    game = ez.Game([cost(i) for i in range(3)], [UNIT] * 3)
    with pytest.raises(ez.InputError, match="^method: no method is proved to converge, as B is not monotone: "):
        ez.solve(game)
    with pytest.raises(ez.SolveError, match="B is not monotone: "):
        ez.solve(game, None, ez.ForwardBackward(), x0=[[0.5], [-0.3], [0.1]])


def absolute(x):
    return x[0][0] if x[0][0] > 0 else -x[0][0]


@pytest.mark.parametrize(
    ("cost", "words"),
    [
        (absolute, r"^costs\[1\]: decides in Python .*jnp.where"),
        (lambda x: x[1] @ np.ones(7), r"^costs\[1\]: cannot be evaluated at arguments of shape .*Make the shapes"),
        (lambda x: x[1][0] + x["b"], r"^costs\[1\]: cannot be evaluated"),
        (lambda x: x[0][0].foo, r"^costs\[1\]: cannot be evaluated .*Correct the name"),
    ],
)
def test_the_cost_that_fails_is_named(cost, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(ez.Game([lambda x: x[0] @ x[0], cost], [UNIT] * 2))


def test_unbounded_agents_are_counted_apart():
    check = ez.solve(ez.models.cournot(firms=3, intercept=10.0)).check_equilibrium()
    assert "with unbounded strategies" in str(check)
    assert "inf" not in str(check)
