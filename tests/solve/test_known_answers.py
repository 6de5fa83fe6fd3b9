"""Solutions that are known from elsewhere: published, in closed form, or found by another solver."""

import clarabel
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import epszero as ez

LASSO_A = np.array([[1, -2, 3, -4, 5], [2, -1, 0, -1, 3], [-1, 0, 4, -3, 2], [-1, -1, -1, 1, 3.0]])
LASSO_B = np.array([1, 2, 3, 4.0])


def test_affine_variational_inequality_on_the_disc():
    def F(x):
        return jnp.stack([3 * x[0] + x[1] - 5, 2 * x[0] + 5 * x[1] - 3])

    solution = ez.solve(ez.VariationalInequality(F, over=ez.sets.Ball(dim=2)))
    np.testing.assert_allclose(solution.x, [0.9889888857, 0.1479898107], atol=1e-9)


def test_box_constrained_quadratic_programme():
    P, q = np.array([[3.4, 1.2], [1.2, 4.5]]), np.array([-2.3, 9.9])
    problem = ez.Minimization(lambda x: 0.5 * x @ P @ x + q @ x, ez.sets.Box([0, 0], 1))
    np.testing.assert_allclose(ez.solve(problem).x, [0.6764706, 0], atol=1e-7)


@pytest.mark.long
def test_lasso():
    problem = ez.Minimization(lambda x: 0.5 * jnp.sum((LASSO_A @ x - LASSO_B) ** 2), ez.functions.L1(2.9))
    solution = ez.solve(problem, x0=np.zeros(5))
    np.testing.assert_allclose(solution.x, [-0.3877279, 0, 0, 0.0217415, 0.6168435], atol=1e-7)


@pytest.mark.long
def test_oligopoly_of_murphy_sherali_and_soyster():
    """Five firms, demand Q = 5000 p^-1.1; Math. Prog. 24 (1982). The published equilibrium has four digits."""
    c, beta, K, elasticity = np.array([10, 8, 6, 4, 2.0]), np.array([1.2, 1.1, 1.0, 0.9, 0.8]), 5.0, 1.1

    def F(x):
        total = jnp.sum(x)
        price = (5000 / total) ** (1 / elasticity)
        return c + (x / K) ** (1 / beta) - price + x * price / (elasticity * total)

    problem = ez.VariationalInequality(F, over=ez.sets.Box(1e-3, 150, dim=5), declared=ez.declare(monotone=True))
    solution = ez.solve(problem, x0=np.full(5, 10.0))
    np.testing.assert_allclose(solution.x, [36.9318, 41.8175, 43.7060, 42.6588, 39.1786], atol=1e-3)


@pytest.mark.long
def test_water_filling():
    """max Σ log(α + x) over the simplex: x = (ν − α)₊ with ν such that it sums to one (Boyd & Vandenberghe, 5.2)."""
    alpha = np.array([0.1, 0.4, 0.9, 1.7])
    level = (1 + alpha[:2].sum()) / 2  # two channels are used: α₃ is above the level 0.75
    problem = ez.Minimization(lambda x: -jnp.sum(jnp.log(alpha + x)), ez.sets.Simplex(dim=4))
    np.testing.assert_allclose(ez.solve(problem).x, np.maximum(level - alpha, 0), atol=1e-8)


def test_mean_estimation_is_soft_thresholding_of_the_sample_mean():
    samples = ez.Samples(np.random.default_rng(0).normal(size=(500, 6)) + np.linspace(-1, 1, 6))
    problem = ez.Minimization(lambda x, xi: 0.5 * jnp.sum((x - xi) ** 2), ez.functions.L1(0.3))
    mean = samples.values.mean(axis=0)
    expected = np.sign(mean) * np.maximum(np.abs(mean) - 0.3, 0)
    np.testing.assert_allclose(ez.solve(problem, samples, x0=np.zeros(6)).x, expected, atol=1e-9)


@pytest.mark.some(5)
@pytest.mark.parametrize("seed", range(10))
def test_random_strongly_monotone_affine_problems_agree_with_clarabel(seed):
    """VI(Mx + q, box) with M = symmetric + skew has no QP; its symmetric part does. Both are tried."""
    rng = np.random.default_rng(seed)
    n = 6
    root = rng.normal(size=(n, n))
    symmetric, skew = root @ root.T / n + np.eye(n), rng.normal(size=(n, n))
    q = 3 * rng.normal(size=n)
    box = ez.sets.Box(-np.ones(n), np.ones(n))

    potential = ez.solve(ez.VariationalInequality(lambda x: symmetric @ x + q, over=box), tol=1e-11)
    rows = sp.csc_matrix(np.vstack([np.eye(n), -np.eye(n)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    cones = [clarabel.NonnegativeConeT(2 * n)]
    answer = clarabel.DefaultSolver(sp.csc_matrix(symmetric), q, rows, np.ones(2 * n), cones, settings).solve()
    np.testing.assert_allclose(potential.x, answer.x, atol=1e-6)

    M = symmetric + 0.5 * (skew - skew.T)
    rotated = ez.solve(ez.VariationalInequality(lambda x: M @ x + q, over=box), tol=1e-10)
    natural = rotated.x - np.clip(rotated.x - (M @ rotated.x + q), -1, 1)  # zero exactly at a solution
    assert np.linalg.norm(natural) < 1e-9


@pytest.mark.long
def test_the_solution_can_be_checked_from_x_z_and_the_samples_alone():
    samples = ez.Samples(np.random.default_rng(1).uniform(size=(200, 3)))
    problem = ez.VariationalInequality(lambda x, xi: x - 2 * xi, over=ez.sets.Simplex(dim=3))
    solution = ez.solve(problem, samples)
    check = solution.check()
    assert check.in_domain
    assert abs(check.gap) < 1e-12
    assert check.residual == pytest.approx(solution.residual, rel=1e-3, abs=1e-12)
    assert "in the domain" in str(check)
