"""The adaptive golden ratio: against Malitsky's Algorithm 1 in NumPy, on rotations, in any units, in the domain."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.methods.adaptive_golden_ratio import LONGEST, PHI, RHO

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
H = np.kron(np.eye(2), TURN) * 2.0 + 0.1 * np.eye(4)
SHIFT = np.array([0.3, -0.2, 0.9, 0.1])
BOX = ez.sets.Box(-0.4, np.array([0.5, 0.6, 0.7, 0.8]))
SIDES = {
    "box": (BOX, lambda v, step: np.clip(v, -0.4, [0.5, 0.6, 0.7, 0.8])),
    "l1": (ez.functions.L1(0.3), lambda v, step: np.sign(v) * np.maximum(np.abs(v) - 0.3 * step, 0.0)),
}


def operator(x):
    return H @ x + x**3 - SHIFT


def algorithm_1(F, prox, x0, step0, K):
    """Letter by letter, from x¹ = x⁰: λ, then x̄, then x⁺, then θ; phi, rho and lambda-bar as the method has them."""
    x, x_bar, lam, theta = x0, x0, step0, 1.0
    before, last = x0, None
    for k in range(K + 1):
        moved, change = np.sum((x - before) ** 2), np.sum((F(x) - F(before)) ** 2)
        bound = np.inf if k == 0 else PHI * theta / (4 * lam) * moved / change
        new = min(RHO * lam, bound, LONGEST * step0)
        x_bar = ((PHI - 1) * x + x_bar) / PHI
        before, x, last = x, prox(x_bar - new * F(x), new), (x_bar, x)
        theta, lam = PHI * new / lam, new
    return x, (last[0] - lam * F(before) - x) / lam, lam


def first_step(prox, x):
    """0.4 over the slope between x and a point that a thousandth of ‖x‖ leads to."""
    F = operator
    probe = 1e-3 * max(1.0, np.linalg.norm(x)) / np.linalg.norm(F(x))
    near = prox(x - probe * F(x), probe)
    return 0.1 * 4.0 / (np.linalg.norm(F(near) - F(x)) / np.linalg.norm(near - x))


@pytest.mark.some(3)
@pytest.mark.parametrize("K", [0, 1, 2, 30])
@pytest.mark.parametrize("side", SIDES)
def test_iterates_are_those_of_algorithm_1(side, K):
    A, prox = SIDES[side]
    x0 = np.array([0.45, -0.3, 0.2, 0.7])
    solution = ez.solve(ez.Inclusion(A, operator), None, ez.AdaptiveGoldenRatio(), x0=x0, iterations=K)
    x, z, step = algorithm_1(operator, prox, x0, first_step(prox, x0), K)
    np.testing.assert_allclose(solution.x, x, atol=1e-12)
    np.testing.assert_allclose(solution.z, z, atol=1e-11)
    assert solution.step == pytest.approx(step, rel=1e-9)
    assert abs(solution.check().gap) < 1e-12


def test_the_constants_are_those_of_the_source():
    assert 1 < PHI <= (1 + np.sqrt(5)) / 2
    assert pytest.approx(1 / PHI + 1 / PHI**2) == RHO
    assert RHO > 1  # or steps could not grow


@pytest.mark.some(2)
@pytest.mark.parametrize("over", [ez.sets.Ball(10.0, dim=2), ez.sets.WholeSpace(2)], ids=["ball", "space"])
def test_a_pure_rotation_converges(over):
    solution = ez.solve(ez.Inclusion(over, lambda x: TURN @ x), None, ez.AdaptiveGoldenRatio(), x0=[1.0, 2.0])
    np.testing.assert_allclose(solution.x, 0, atol=1e-8)


@pytest.mark.some(4)
@pytest.mark.parametrize("of_B", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize("of_x", [1e-50, 1.0, 1e50])
def test_nothing_depends_on_the_units(of_x, of_B):
    def scaled(x):
        return of_B * operator(x / of_x)

    problem = ez.VariationalInequality(scaled, over=ez.sets.Box(of_x * BOX.lower, of_x * BOX.upper))
    there = ez.solve(problem, None, ez.AdaptiveGoldenRatio(), x0=np.full(4, 0.3 * of_x))
    here = ez.solve(ez.VariationalInequality(operator, over=BOX), x0=np.full(4, 0.3), tol=1e-12)
    assert there.status is ez.Status.CONVERGED
    np.testing.assert_allclose(there.x / of_x, here.x, atol=1e-7)


@pytest.mark.long
def test_agents_have_steps_in_proportion_to_their_units():
    """Two agents whose strategies are measured in units that differ by 1e6: the run is that of the same game in one."""
    by = np.array([1.0, 1e6])

    def game(by):
        costs = [
            lambda x: jnp.sum((x[0] / by[0]) ** 4) + (x[0] / by[0]) @ (x[1] / by[1] - 0.3),
            lambda x: jnp.sum((x[1] / by[1]) ** 4) - (x[1] / by[1]) @ (x[0] / by[0] - 0.1),
        ]
        return ez.Game(costs, [ez.sets.Box(-one, one, dim=2) for one in by])

    x0 = [np.full(2, 0.5), np.full(2, -0.5)]
    alike = ez.solve(game(np.ones(2)), None, ez.AdaptiveGoldenRatio(), x0=x0)
    apart = ez.solve(
        game(by), None, ez.AdaptiveGoldenRatio(), x0=[one * unit for one, unit in zip(x0, by, strict=True)]
    )
    assert "in proportion to the agents' units" in apart.method.description
    assert apart.iterations < 3 * alike.iterations + 50
    for one, other, unit in zip(alike.x, apart.x, by, strict=True):
        np.testing.assert_allclose(other / unit, one, atol=1e-5)


def test_it_stays_where_the_operator_is_defined():
    """∇(−log x) is NaN below 0: it is never asked for there."""
    problem = ez.VariationalInequality(lambda x: 2.0 + jnp.log(x) / 4 - 1 / x, over=ez.sets.Box(1e-3, 5.0, dim=3))
    solution = ez.solve(problem, None, ez.AdaptiveGoldenRatio(), x0=np.full(3, 4.0))
    assert solution.status is ez.Status.CONVERGED
    np.testing.assert_allclose(2.0 + np.log(solution.x) / 4 - 1 / solution.x, 0, atol=1e-7)


def test_where_B_is_constant_steps_grow_to_their_limit_and_no_further():
    problem = ez.VariationalInequality(lambda x: jnp.array([1.0, -1.0]), over=ez.sets.Box(-1e8, 1e8, dim=2))
    solution = ez.solve(problem, None, ez.AdaptiveGoldenRatio(), x0=[0.0, 0.0], iterations=400)
    assert solution.step == pytest.approx(0.1 * LONGEST)  # no slope can be read: the first step is 0.1
    np.testing.assert_array_equal(solution.x, [-1e8, 1e8])


def test_it_needs_no_argument_and_takes_none():
    with pytest.raises(ez.InputError):
        ez.AdaptiveGoldenRatio(step=0.1)
