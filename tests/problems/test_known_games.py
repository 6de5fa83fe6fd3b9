"""Games whose equilibria are known from elsewhere, and what an agent could save where there is no equilibrium."""

import dataclasses

import clarabel
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize, minimize_scalar

import epszero as ez


def moved_to(solution, x):
    """The same game at another point."""
    point = solution.point._replace(x=x) if solution.multipliers is not None else x
    return dataclasses.replace(solution, point=point).check_equilibrium()


def assert_equilibrium(solution, tiny=1e-8):
    check = solution.check_equilibrium()
    assert check.largest < tiny
    assert (check.at_most >= check.saving - tiny).all()
    if check.violation is not None:
        assert check.violation < tiny
        assert check.complementarity < tiny
        assert (check.multipliers >= 0).all()


# -- oligopolies -------------------------------------------------------------------------------------------------------

FIRMS = 5
UNIT_COST = np.array([1.0, 1.2, 1.4, 1.6, 5.0])
DEMAND, SLOPE = 10.0, 0.5


def profit_lost(own, average, unit_cost):
    return jnp.sum(own * (unit_cost - DEMAND + SLOPE * FIRMS * average))


@pytest.mark.long
def test_linear_cournot():
    """x_i = (a − (n + 1) c_i + Σ c)/(b (n + 1)) while all sell; the firm with the highest cost stays out here."""
    sellers = UNIT_COST[:4]
    expected = np.append((DEMAND - 5 * sellers + sellers.sum()) / (SLOPE * 5), 0.0)
    assert DEMAND - SLOPE * expected.sum() < UNIT_COST[4]  # the price does not pay the last firm
    solution = ez.solve(ez.AggregativeGame(profit_lost, UNIT_COST, ez.sets.Box(0.0, 20.0, dim=1)))
    np.testing.assert_allclose(solution.x[:, 0], expected, atol=1e-8)
    assert_equilibrium(solution)
    x = np.full((FIRMS, 1), 1.5)
    check = moved_to(solution, x)
    for i in range(FIRMS):

        def lost(own, i=i):
            return own * (UNIT_COST[i] - DEMAND + SLOPE * (6.0 + own))

        best = minimize_scalar(lost, bounds=(0.0, 20.0), method="bounded", options={"xatol": 1e-12})
        assert check.saving[i] == pytest.approx(lost(1.5) - best.fun, abs=1e-9)
        assert check.responses[i][0] == pytest.approx(best.x, abs=1e-5)
    assert (check.at_most >= check.saving).all()


@pytest.mark.long
def test_rosens_duopoly_with_a_shared_constraint():
    """½x₁² − x₁x₂ and x₂² + x₁x₂ with x₁ + x₂ ≥ 1: the normalised equilibrium for equal weights is (1, 0), λ = 1."""
    costs = [lambda x: 0.5 * x[0] @ x[0] - x[0] @ x[1], lambda x: x[1] @ x[1] + x[0] @ x[1]]
    game = ez.Game(costs, [ez.sets.NonNegative(dim=1)] * 2, shared=([[-1.0, -1.0]], [-1.0]))
    solution = ez.solve(game)
    np.testing.assert_allclose(np.concatenate(solution.x), [1.0, 0.0], atol=1e-7)
    np.testing.assert_allclose(solution.multipliers, [1.0], atol=1e-7)
    assert_equilibrium(solution)
    check = moved_to(solution, [np.array([0.8]), np.array([0.8])])  # agent 1 may go down to 0.2 and no further
    np.testing.assert_allclose(check.saving, [0.0, 1.28 - 0.2], atol=1e-8)
    np.testing.assert_allclose(np.concatenate(check.responses), [0.8, 0.2], atol=1e-6)
    assert check.violation == 0.0
    assert check.complementarity == pytest.approx(0.6)


TARGETS = np.array([[2.0, 0.5], [-1.0, 1.5]])
DISC = [lambda x: jnp.sum((x[0] - TARGETS[0]) ** 2), lambda x: jnp.sum((x[1] - TARGETS[1]) ** 2)]


def ball(x):
    return x[0] @ x[0] + x[1] @ x[1] - 1.0


@pytest.mark.long
def test_two_agents_that_share_a_ball():
    """F = 2(x − t): the variational equilibrium is the projection t/‖t‖, with λ = ‖t‖ − 1."""
    solution = ez.solve(ez.Game(DISC, [ez.sets.Box(-2.0, 2.0, dim=2)] * 2, shared=ball), tol=1e-10)
    length = np.linalg.norm(TARGETS)
    np.testing.assert_allclose(np.stack(solution.x), TARGETS / length, atol=1e-8)
    np.testing.assert_allclose(solution.multipliers, [length - 1], atol=1e-8)
    assert_equilibrium(solution)
    x = np.array([[0.3, -0.2], [0.1, 0.6]])
    check = moved_to(solution, list(x))
    for i in range(2):
        room = np.sqrt(1 - x[1 - i] @ x[1 - i])
        best = room * TARGETS[i] / np.linalg.norm(TARGETS[i])
        saving = np.sum((x[i] - TARGETS[i]) ** 2) - np.sum((best - TARGETS[i]) ** 2)
        assert check.saving[i] == pytest.approx(saving, abs=1e-7)
        np.testing.assert_allclose(check.responses[i], best, atol=1e-6)
    assert (check.at_most >= check.saving).all()


@pytest.mark.long
def test_a_deviation_stays_within_shared_constraints_with_local_functions_too():
    game = ez.Game(DISC, [ez.functions.L1(np.full(2, 0.1)), ez.sets.Box(-2.0, 2.0, dim=2)], shared=ball)
    x = [np.array([0.3, -0.2]), np.array([0.1, 0.6])]
    check = moved_to(ez.solve(game), x)
    room = 1 - x[1] @ x[1]
    best = minimize(
        lambda u: np.sum((u[:2] - u[2:] - TARGETS[0]) ** 2) + 0.1 * u.sum(), np.full(4, 0.2), bounds=[(0, None)] * 4,
        constraints=[{"type": "ineq", "fun": lambda u: room - np.sum((u[:2] - u[2:]) ** 2)}], options={"ftol": 1e-14},
    )  # fmt: skip
    now = np.sum((x[0] - TARGETS[0]) ** 2) + 0.1 * np.abs(x[0]).sum()
    assert ball([check.responses[0], x[1]]) < 1e-8
    assert check.saving[0] == pytest.approx(now - best.fun, abs=1e-6)


# -- rotations ---------------------------------------------------------------------------------------------------------

TURN, PULL, CENTRE = 1.0, 0.1, np.array([0.5, -0.25])


def rotating(**known):
    costs = [
        lambda x: 0.5 * PULL * jnp.sum((x[0] - CENTRE[0]) ** 2) + TURN * (x[0] - CENTRE[0]) @ (x[1] - CENTRE[1]),
        lambda x: 0.5 * PULL * jnp.sum((x[1] - CENTRE[1]) ** 2) - TURN * (x[0] - CENTRE[0]) @ (x[1] - CENTRE[1]),
    ]
    return ez.Game(costs, [ez.sets.WholeSpace(dim=1)] * 2, declared=ez.declare(**known) if known else None)


@pytest.mark.long
def test_a_game_that_rotates_needs_the_right_step():
    """|1 − γ(μ ± iω)| > 1 for γ = ½, < 1 for γ = μ/κ²."""
    with pytest.raises(ez.SolveError, match="shorter step") as caught:
        ez.solve(rotating(), None, ez.ForwardBackward(step=0.5))
    assert caught.value.solution.status is ez.Status.DIVERGED
    for game in (rotating(), rotating(mu=PULL, kappa=float(np.hypot(PULL, TURN)))):
        solution = ez.solve(game)
        np.testing.assert_allclose(np.concatenate(solution.x), CENTRE, atol=1e-7)
        assert_equilibrium(solution)


@pytest.mark.parametrize(
    "pull",
    [
        1.9,
        2.0,
    ],
)
def test_a_leader_whom_the_other_follows(pull):
    """(x₁ − ⅕)² and (x₂ − ax₁)²: monotone for a ≤ 2, and at a = 2 no longer cocoercive."""
    costs = [lambda x: jnp.sum((x[0] - 0.2) ** 2), lambda x: jnp.sum((x[1] - pull * x[0]) ** 2)]
    solution = ez.solve(ez.Game(costs, [ez.sets.Box(-1.0, 1.0, dim=2)] * 2))
    np.testing.assert_allclose(np.stack(solution.x), [[0.2] * 2, [0.2 * pull] * 2], atol=1e-7)


MATRICES = np.random.default_rng(4).normal(size=(3, 4, 5))
MATRIX_GAME = ez.Game(
    [lambda x, A: x[0] @ A @ x[1], lambda x, A: -(x[0] @ A @ x[1])], [ez.sets.Simplex(dim=4), ez.sets.Simplex(dim=5)]
)


def value_of(A):
    """min_x max_j (Aᵀx)_j over the simplex, as a linear programme in (x, v)."""
    m, n = A.shape
    rows = np.hstack([A.T, -np.ones((n, 1))])
    sums = np.append(np.ones(m), 0.0)[None]
    bounds = [(0, None)] * m + [(None, None)]
    return linprog(np.append(np.zeros(m), 1.0), rows, np.zeros(n), sums, [1.0], bounds=bounds).fun


@pytest.mark.long
def test_zero_sum_matrix_games():
    many = [ez.Samples.from_arrays(A[None]) for A in MATRICES]
    solutions = ez.solve_many(MATRIX_GAME, many, ez.ForwardBackwardForward())
    for A, solution in zip(MATRICES, solutions, strict=True):
        x, y = solution.x
        value = value_of(A)
        assert x @ A @ y == pytest.approx(value, abs=1e-7)
        assert (A.T @ x).max() == pytest.approx(value, abs=1e-7)
        assert (A @ y).min() == pytest.approx(value, abs=1e-7)
        assert_equilibrium(solution, 1e-7)
    x, y = np.full(4, 0.25), np.full(5, 0.2)
    check = moved_to(solutions[0], [x, y])
    A = MATRICES[0]
    savings = [x @ A @ y - (A @ y).min(), (A.T @ x).max() - x @ A @ y]
    np.testing.assert_allclose(check.saving, savings, atol=1e-8)
    np.testing.assert_allclose(check.at_most, savings, atol=1e-9)  # for linear costs the bound is the saving


@pytest.mark.long
def test_many_zero_sum_games_need_no_method_to_be_named():
    many = [ez.Samples.from_arrays(A[None]) for A in MATRICES]
    assert all(one.status is ez.Status.CONVERGED for one in ez.solve_many(MATRIX_GAME, many))


# -- Braess ------------------------------------------------------------------------------------------------------------

VEHICLES = 6.0
EDGES = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1]])  # edges × paths: up, down, over the bridge
FREE, STEEP = np.array([0.0, 50, 50, 0, 10]), np.array([10.0, 1, 1, 10, 1])  # 10v, 50 + v, 50 + v, 10v, 10 + v


@pytest.mark.long
def test_braess_paradox():
    """Two vehicles on each of three paths, 92 minutes each; one agent minimises the potential Σ ∫ t."""

    def potential(x):
        flow = EDGES @ x[0]
        return jnp.sum(FREE * flow + 0.5 * STEEP * flow**2)

    solution = ez.solve(ez.Game([potential], [ez.sets.Simplex(VEHICLES, dim=3)]))
    np.testing.assert_allclose(solution.x[0], 2.0, atol=1e-7)
    np.testing.assert_allclose(EDGES.T @ (FREE + STEEP * (EDGES @ solution.x[0])), 92.0, atol=1e-6)
    assert_equilibrium(solution, 1e-6)


@pytest.mark.long
def test_braess_with_drivers_who_know_their_own_weight():
    """Six who may split one vehicle each: equal marginal times give 9f + 11m = 240/7 with 2f + m = 6."""

    def minutes(own, average):
        return (EDGES @ own) @ (FREE + STEEP * (EDGES @ average) * VEHICLES)

    bridge = (240 / 7 - 27) / 6.5
    solution = ez.solve(ez.AggregativeGame(minutes, None, ez.sets.Simplex(dim=3), agents=6))
    np.testing.assert_allclose(solution.x.sum(axis=0), [3 - bridge / 2, 3 - bridge / 2, bridge], atol=1e-7)
    assert_equilibrium(solution, 1e-6)


# -- the charging game of the paper ------------------------------------------------------------------------------------


def charging_cost(own, average, price, car):
    degradation = car["Q"] * own @ own + car["c"] * own.sum()
    return degradation + price @ own + jnp.sum((average - 1.0) ** 2)


@pytest.mark.long
def test_the_charging_game_of_table_one():
    """Its Jacobian is symmetric, so the equilibrium minimises a potential: a quadratic programme for Clarabel."""
    N, T = 20, 14
    rng = np.random.default_rng(0)
    cars = {"Q": rng.uniform(0.002, 0.008, N), "c": rng.uniform(0.02, 0.075, N)}
    need, prices = rng.uniform(12, 18, N), rng.uniform(0.02, 0.25, (50, T))
    strategies = ez.sets.BoxBudget(0.0, 2.5, at_least=need, dim=T)
    game = ez.AggregativeGame(ez.oracles.Affine(charging_cost), cars, strategies)
    solution = ez.solve(game, prices)
    P = 2 * np.kron(np.diag(cars["Q"]), np.eye(T)) + 2 / N**2 * np.kron(np.ones((N, N)), np.eye(T))
    q = (cars["c"][:, None] + prices.mean(axis=0) - 2 / N).ravel()
    eye = np.eye(N * T)
    rows = sp.csc_matrix(np.vstack([-eye, eye, -np.kron(np.eye(N), np.ones(T))]))
    bounds = np.concatenate([np.zeros(N * T), np.full(N * T, 2.5), -need])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    answer = clarabel.DefaultSolver(sp.csc_matrix(np.triu(P)), q, rows, bounds, cones, settings).solve()
    np.testing.assert_allclose(solution.x.ravel(), answer.x, atol=1e-5)
    natural = solution.x - strategies.project(solution.x - (P @ solution.x.ravel() + q).reshape(N, T))
    assert np.abs(natural).max() < 1e-8
    assert_equilibrium(solution, 1e-7)

    flat = np.repeat(need[:, None] / T, T, axis=1)
    check = moved_to(solution, flat)
    i, average = 3, flat.mean(axis=0)

    def own_cost(own):
        wear = cars["Q"][i] * own @ own + cars["c"][i] * own.sum()
        return wear + prices.mean(axis=0) @ own + np.sum((average + (own - flat[i]) / N - 1) ** 2)

    kept = {"type": "ineq", "fun": lambda own: own.sum() - need[i]}
    best = minimize(
        own_cost, flat[i], bounds=[(0, 2.5)] * T, constraints=[kept], options={"ftol": 1e-14, "maxiter": 500}
    )
    assert check.saving[i] == pytest.approx(own_cost(flat[i]) - best.fun, abs=1e-8)
    assert check.saving[i] > 0.01
    assert (check.at_most >= check.saving).all()
