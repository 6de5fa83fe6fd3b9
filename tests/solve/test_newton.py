"""Newton's finish: never worse than the method alone, exact where it should be, silent where there is no derivative."""

import cvxpy as cp
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import linprog

import epszero as ez
from epszero._double import double, to_numpy
from epszero.methods import Method
from epszero.solve.loop import CONVERGED, STALLED, set_off_one
from epszero.solve.newton import FIRST, Finish, differentiable
from epszero.solve.setup import averaged
from epszero.solve.systems import Dense

RNG = np.random.default_rng(0)
n = 6
ROOT = RNG.normal(size=(n, n))
H = 0.01 * ROOT @ ROOT.T + ROOT - ROOT.T  # turns much: splitting methods take their time
q = RNG.normal(size=n)
POLYHEDRAL = {
    "whole space": ez.sets.WholeSpace(n),
    "box": ez.sets.Box(-np.ones(n), 1.0),
    "nonnegative": ez.sets.NonNegative(n),
    "simplex": ez.sets.Simplex(dim=n),
    "capped simplex": ez.sets.CappedSimplex(2.0, 0.5, dim=n),
    "box with budget": ez.sets.BoxBudget(0.0, 1.0, at_least=1.0, at_most=2.0, dim=n),
    "polyhedron": ez.sets.Polyhedron(
        np.vstack([np.eye(n), -np.eye(n), np.ones((1, n))]), [*np.ones(n), *np.ones(n), -0.5]
    ),
    "ball of norm 1": ez.sets.Ball(0.5, norm=1, dim=n),
    "ball of norm inf": ez.sets.Ball(0.5, norm="inf", dim=n),
    "half-space": ez.sets.HalfSpace(np.ones(n), -1.0),
    "slab": ez.sets.Slab(np.ones(n), -1.0, -0.5),
    "hyperplane": ez.sets.Hyperplane(np.ones(n), 1.0),
    "subspace": ez.sets.AffineSubspace(RNG.normal(size=(2, n)), [1.0, 0.0]),
    "intersection": ez.sets.Intersection(ez.sets.Box(-np.ones(n), 1.0), ez.sets.HalfSpace(np.ones(n), -1.0)),
    "translated": ez.sets.Translated(ez.sets.Simplex(dim=n), np.full(n, 0.1)),
    "l1": ez.functions.L1(0.3),
    "max": ez.functions.MaxEntry(0.7),
    "variation": ez.functions.TotalVariation1D(0.4),
}


def same(one, other):
    np.testing.assert_array_equal(one.x, other.x)
    assert one.message == other.message
    assert one.residual == other.residual


@pytest.mark.some(12)
@pytest.mark.parametrize("name", POLYHEDRAL)
def test_affine_problems_over_polyhedra_end_exactly(name):
    A = POLYHEDRAL[name]
    solution = ez.solve(ez.Inclusion(A, lambda x: H @ x + q), x0=np.full(n, 0.2), tol=1e-13)
    assert solution.status is ez.Status.CONVERGED
    assert solution.residual <= 1e-13
    assert "Newton" in solution.finished or "program" in solution.finished or solution.iterations < FIRST
    check = solution.check()
    assert check.in_domain
    assert abs(check.gap) < 1e-10  # supports of intersections are a solver's


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["box", "simplex", "l1", "polyhedron"])
def test_it_is_never_worse_than_the_method_alone(name):
    """The same splitting method, so many steps, without and with the finish."""
    problem = ez.Inclusion(POLYHEDRAL[name], lambda x: H @ x + q)
    finished = ez.solve(problem, x0=np.full(n, 0.2), tol=0.0, iterations=FIRST + 10, throw=False)
    alone = ez.solve(problem, x0=np.full(n, 0.2), iterations=finished.iterations)
    assert type(finished.method) is type(alone.method)
    assert alone.finished == ""
    assert finished.residual <= max(alone.residual, 1e-14)


@pytest.mark.parametrize("size", [5, 20, pytest.param(60, marks=pytest.mark.long)])
def test_matrix_games_have_the_value_that_linprog_finds(size):
    A = np.random.default_rng(size).uniform(size=(size, size + 1))
    sets = [ez.sets.Simplex(dim=size), ez.sets.Simplex(dim=size + 1)]
    solution = ez.solve(ez.VariationalInequality(lambda x: [A @ x[1], -(A.T @ x[0])], over=sets))
    x, y = solution.x
    rows = np.hstack([A.T, -np.ones((size + 1, 1))])
    value = linprog(
        [*np.zeros(size), 1.0], A_ub=rows, b_ub=np.zeros(size + 1), A_eq=[[*np.ones(size), 0.0]], b_eq=[1.0]
    ).fun
    assert np.max(x @ A) == pytest.approx(value, abs=1e-12)
    assert np.min(A @ y) == pytest.approx(value, abs=1e-12)


WIDE = RNG.normal(size=(2, n))
DEGENERATE = {
    "many solutions": (lambda x: WIDE.T @ (WIDE @ x - 0.1), ez.sets.Box(-np.ones(n), 1.0)),
    "many solutions on a face": (lambda x: WIDE.T @ (WIDE @ x), ez.sets.Simplex(dim=n)),
    "zero multipliers": (lambda x: x - jnp.array([1.0, 0.0, 0.0, 0.5, -0.5, 1.0]), ez.sets.Box(0.0, 1.0, dim=n)),
    "a vertex where too many rows meet": (
        lambda x: x + 1.0,
        ez.sets.Polyhedron(np.vstack([-np.eye(n), -np.ones((3, n)) * [[1], [2], [3]]]), np.zeros(n + 3)),
    ),
    "nothing at all": (lambda x: 0.0 * x, ez.sets.Simplex(dim=n)),
    "a singular derivative at the solution": (lambda x: x**3, ez.sets.Box(-1.0, 1.0, dim=n)),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_problems(name):
    F, over = DEGENERATE[name]
    solution = ez.solve(ez.VariationalInequality(F, over), x0=np.full(n, 0.3), tol=1e-12)
    assert solution.status is ez.Status.CONVERGED
    np.testing.assert_allclose(over.project(solution.x - F(solution.x)), solution.x, atol=1e-11)


@pytest.mark.some(3)
@pytest.mark.parametrize("condition", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("dense", [False, True], ids=["diagonal", "dense"])
def test_conditioning_is_no_obstacle(dense, condition):
    rng, size = np.random.default_rng(1), 30
    d = np.geomspace(1.0, condition, size)
    axes = np.linalg.qr(rng.normal(size=(size, size)))[0] if dense else np.eye(size)
    M, point = (axes * d) @ axes.T, rng.uniform(-1.5, 1.5, size)
    M = (M + M.T) / 2
    solution = ez.solve(ez.VariationalInequality(lambda x: M @ (x - point), ez.sets.Box(-np.ones(size), 1.0)))
    assert solution.status is ez.Status.CONVERGED
    if dense:
        expected = solution.x  # by the conditions that it is optimal for
        slope = M @ (expected - point)
        assert (slope[expected >= 1] <= 1e-8 * condition).all()
        assert (slope[expected <= -1] >= -1e-8 * condition).all()
        np.testing.assert_allclose(slope[np.abs(expected) < 1] / condition, 0.0, atol=1e-12)
    else:
        np.testing.assert_allclose(solution.x, np.clip(point, -1, 1), atol=1e-7)


X = np.random.default_rng(2).normal(size=(30, 20))
Y = X[:, :3] @ np.ones(3) + 0.1 * np.random.default_rng(3).normal(size=30)
LABELS = np.sign(Y)
FUNCTIONS = {
    "lasso": (ez.functions.L1(2.0), lambda x: cp.norm1(x) * 2.0),
    "elastic net": (ez.functions.ElasticNet(2.0, 0.1), lambda x: cp.norm1(x) * 2.0 + 0.05 * cp.sum_squares(x)),
    "variation": (ez.functions.TotalVariation1D(2.0), lambda x: 2.0 * cp.norm1(x[1:] - x[:-1])),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_in_A(name):
    A, written = FUNCTIONS[name]
    steep = np.geomspace(1.0, 30.0, 20)  # so that the splitting method does not finish by itself
    loss = ez.Minimization(lambda x: 0.5 * jnp.sum((X @ (steep * x) - Y) ** 2), A)
    solution = ez.solve(loss, x0=np.zeros(20), tol=1e-9)
    x = cp.Variable(20)
    best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(X @ cp.multiply(steep, x) - Y) + written(x)))
    best.solve(solver=cp.CLARABEL)
    value = 0.5 * np.sum((X @ (steep * solution.x) - Y) ** 2) + A(solution.x)
    assert value <= best.value + 1e-7
    assert solution.residual <= 1e-9
    assert "Newton" in solution.finished


@pytest.mark.long
def test_logistic_regression():
    loss = ez.Minimization(lambda x: jnp.mean(jnp.logaddexp(0.0, -LABELS * (X @ x))), ez.functions.L1(0.01))
    solution = ez.solve(loss, x0=np.zeros(20), tol=1e-14)
    assert solution.residual <= 1e-14
    assert "Newton" in solution.finished


@pytest.mark.some(2)
@pytest.mark.parametrize("turn", [0.0, 3.0])
def test_shared_affine_constraints_with_their_multipliers(turn):
    """Against the equations that the equilibrium solves: x₁ + x₂ = 1 binds, 2x₁ ≤ 9 does not."""
    costs = [
        lambda x: 0.05 * x[0] @ x[0] + turn * x[0] @ x[1] - 3 * x[0].sum(),
        lambda x: x[1] @ x[1] - turn * x[0] @ x[1] - 2 * x[1].sum(),
    ]
    game = ez.Game(
        costs, [ez.sets.Box(-50.0, 50.0, dim=1)] * 2, shared=(np.array([[1.0, 1.0], [2.0, 0.0]]), [1.0, 99.0])
    )
    solution = ez.solve(game, tol=1e-12)
    M = np.array([[0.1, turn, 1.0], [-turn, 2.0, 1.0], [1.0, 1.0, 0.0]])
    x1, x2, multiplier = np.linalg.solve(M, [3.0, 2.0, 1.0])
    np.testing.assert_allclose(np.concatenate(solution.x), [x1, x2], atol=1e-10)
    np.testing.assert_allclose(solution.multipliers, [multiplier, 0.0], atol=1e-10)


def slow(x, xi):
    return jnp.array([1.0, 1e5]) * x - xi


SLOW = ez.VariationalInequality(slow, ez.sets.BoxBudget(-3.0, 3.0, at_most=6.0, dim=2))  # steps of one size
MANY = [ez.Samples(np.random.default_rng(k).normal(size=(20, 2)) * [1.0, 1e5]) for k in range(3)]


@pytest.mark.long
def test_many_are_finished_as_each_alone():
    together = ez.solve_many(SLOW, MANY)
    for one, samples in zip(together, MANY, strict=True):
        alone = ez.solve(SLOW, samples)
        assert "Newton" in one.finished
        assert one.finished == alone.finished
        assert one.iterations == alone.iterations
        np.testing.assert_allclose(one.x, alone.x, rtol=1e-13)
        np.testing.assert_allclose(one.x, samples.values.mean(axis=0) / [1.0, 1e5], atol=1e-9)


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "keywords", [{"method": ez.ForwardBackward()}, {"iterations": 500}], ids=["method", "iterations"]
)
def test_whoever_names_a_method_or_so_many_steps_gets_them(keywords):
    solution = ez.solve(SLOW, MANY[0], **keywords, throw=False)
    assert solution.finished == ""
    assert solution.iterations >= 500


def test_the_finish_is_told():
    solution = ez.solve(SLOW, MANY[0])
    assert ", finished by " in solution.message
    assert "Newton step" in solution.message
    assert solution.iterations == FIRST - 1
    same(solution, ez.solve(SLOW, MANY[0]))


def test_sets_without_a_derivative_fall_back_silently():
    v = cp.Variable(2)
    curved = ez.sets.from_cvxpy([cp.norm(v) <= 1, cp.exp(v[0]) <= 2], v)
    turning = ez.VariationalInequality(lambda x: jnp.stack([x[1], -x[0]]) + 0.05 * x - 0.1, curved)
    solution = ez.solve(turning, x0=[0.5, 0.5], tol=1e-6)
    assert solution.status is ez.Status.CONVERGED
    assert solution.finished == ""
    assert solution.notes == ez.solve(turning, None, ez.ForwardBackwardForward(), x0=[0.5, 0.5], tol=1e-6).notes


def test_a_resolvent_of_ones_own_is_not_differentiated():
    class Mine:
        def resolvent(self, v, step):
            return v / (1 + step)

    assert not differentiable(ez.Inclusion(Mine(), lambda x: x).A)
    assert differentiable(ez.Inclusion(ez.functions.L1(), lambda x: x).A)


@pytest.mark.long
def test_where_B_does_not_exist_a_shorter_step_is_taken():
    """∇(−log x) is NaN below 0, where a whole Newton step from the right leads to."""
    F = lambda x: jnp.array([1.0, 1e4]) * (2.0 - 1 / x)  # noqa: E731
    solution = ez.solve(ez.Inclusion(ez.functions.Zero(), F), x0=[0.9, 0.9])
    np.testing.assert_allclose(solution.x, 0.5, atol=1e-8)


def test_a_last_try_that_is_not_taken_is_not_told():
    problem = ez.VariationalInequality(lambda x: x**3 + x - 2.3, ez.sets.Box(-3.0, 3.0, dim=1))
    with double():
        x = np.array([0.0])
        B, A = averaged(problem, None, x), problem.placed
        method: Method = ez.ForwardBackward(0.05).prepared(problem, x).bare()
        run = to_numpy(set_off_one(method, A, B, x, np.asarray(1e-300), np.asarray([5] * 40))[0])
        run = run._replace(code=np.asarray(STALLED))
        finish = Finish(A, [B], [method], [Dense(affine=False)])
        assert finish.last(0, run) is run
        assert finish.how(0) == ""
        taken = finish.last(0, run._replace(tol=np.asarray(1e-9)))
        assert int(taken.code) == CONVERGED
        assert "Newton step" in finish.how(0)
