"""Units that differ within a point: they do not matter where each entry has a step of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.solve.setup import averaged
from epszero.solve.units import entry_steps

RNG = np.random.default_rng(0)
s, n = 300, 20
ROWS = RNG.normal(size=(s, n))
LABELS = np.where(ROWS @ np.where(np.arange(n) % 4 == 0, 2.0, 0.0) + RNG.normal(size=s) > 0, 1.0, -1.0)
UNITS = RNG.permutation(np.logspace(0, 3, n))


def logistic(x, xi):
    return jax.nn.softplus(-xi[-1] * (xi[:-1] @ x))


def fitted(units, weights, tol=None):
    problem = ez.Minimization(logistic, ez.functions.L1(weights))
    return ez.solve(problem, ez.Samples(np.column_stack([ROWS * units, LABELS])), x0=np.zeros(n), tol=tol)


@pytest.mark.long
def test_a_regression_in_other_units_takes_as_many_steps_and_has_the_same_answer():
    plain, other = fitted(np.ones(n), np.full(n, 0.02)), fitted(UNITS, 0.02 * UNITS)
    assert "entries' units" not in plain.method.description
    assert "entries' units" in other.method.description
    assert other.status is ez.Status.CONVERGED
    assert other.iterations <= 2 * plain.iterations
    np.testing.assert_allclose(other.x * UNITS, plain.x, atol=1e-6)


@pytest.mark.long
def test_one_penalty_for_columns_of_a_thousand_units():
    """One step for all took more than a million iterations."""
    found = fitted(UNITS, np.full(n, 0.02), tol=1e-8)
    assert found.residual <= 1e-8
    assert found.iterations < 2000
    check = found.check()
    assert check.in_domain
    assert check.residual <= 1e-8
    assert abs(check.gap) <= 1e-12


def turned(spread):
    d = RNG.permutation(np.logspace(-spread / 2, spread / 2, 40))
    K, root = RNG.normal(size=(40, 40)) / 6, np.sqrt(d)
    H = root[:, None] * (np.eye(40) + 0.3 * K @ K.T + 0.5 * (K - K.T)) * root
    x = RNG.uniform(-1, 1, 40) / root
    upper = np.where(np.arange(40) % 3 == 0, x, x + 1 / root)
    q = -H @ x - np.where(upper == x, root, 0.0)
    return ez.VariationalInequality(lambda v: H @ v + q, ez.sets.Box(-2 / root, upper)), x, root


@pytest.mark.parametrize("spread", [4, 8])
def test_a_box_with_curvatures_far_apart(spread):
    problem, x, root = turned(spread)
    found = ez.solve(problem, tol=1e-8)
    assert found.residual <= 1e-8
    assert found.iterations < 200
    np.testing.assert_allclose(found.x * root, x * root, atol=1e-5)


def steps_of(problem, x, J=None):
    with double():
        return entry_steps(problem, averaged(problem, None, x), x, J)


def test_steps_are_those_of_the_diagonal():
    d = np.logspace(0, 4, 6)
    problem = ez.VariationalInequality(lambda x: d * x + 0.1 * jnp.sum(x) + x**3, ez.sets.Box(-1.0, 1.0, dim=6))
    x = np.linspace(0.1, 0.6, 6)
    diagonal = d + 0.1 + 3 * x**2
    np.testing.assert_allclose(steps_of(problem, x) * diagonal, np.exp(np.mean(np.log(diagonal))), rtol=1e-12)


@pytest.mark.parametrize(
    ("F", "over"),
    [
        (lambda x: jnp.array([1.0, 1e4, 1.0]) * x, ez.sets.Simplex(dim=3)),  # a projection that mixes entries
        (lambda x: jnp.array([1.0, 50.0, 1.0]) * x, ez.sets.Box(-1.0, 1.0, dim=3)),  # much alike
        (lambda x: jnp.array([1.0, 1e4, 0.0]) * x, ez.sets.Box(-1.0, 1.0, dim=3)),  # no curvature
    ],
)
def test_there_are_none_where_they_mean_nothing(F, over):
    assert steps_of(ez.VariationalInequality(F, over), np.full(3, 0.3)) is None
