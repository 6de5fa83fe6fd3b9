"""Matrix games against linear programming; their picture."""

import io

import numpy as np
import pytest
from scipy.optimize import linprog

import epszero as ez

MATRIX = np.random.default_rng(5).normal(size=(4, 3))
DRAWS = MATRIX + np.random.default_rng(6).normal(0, 0.3, size=(40, 4, 3))


def value_by_linear_programming(A):
    """min v over x ∈ Δ with Aᵀx ≤ v."""
    m, n = A.shape
    answer = linprog(
        np.r_[np.zeros(m), 1.0], A_ub=np.c_[A.T, -np.ones(n)], b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m), 0.0][None], b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)],
    )  # fmt: skip
    return answer.fun


@pytest.fixture(scope="module")
def known():
    return ez.solve(ez.models.zero_sum(MATRIX))


@pytest.fixture(scope="module")
def game_of_samples():
    return ez.models.zero_sum(shape=(4, 3), norm=10.0)


@pytest.fixture(scope="module")
def sampled(game_of_samples):
    return ez.solve(game_of_samples, ez.Samples(DRAWS.reshape(40, 12)))


def test_the_value_is_that_of_the_linear_programme(known):
    x, y = known.x
    value = value_by_linear_programming(MATRIX)
    assert x @ MATRIX @ y == pytest.approx(value, abs=1e-8)
    assert (MATRIX @ y).min() == pytest.approx(value, abs=1e-8)
    assert (MATRIX.T @ x).max() == pytest.approx(value, abs=1e-8)
    assert known.check_equilibrium().largest <= 1e-8


def test_the_norm_is_declared_and_chooses_the_method(known):
    assert known.problem.declared.kappa == pytest.approx(np.linalg.svd(MATRIX)[1][0])
    assert isinstance(known.method, ez.ForwardBackwardForward)


def test_samples_are_matrices_flat_or_nested(game_of_samples, sampled):
    nested = ez.solve(game_of_samples, ez.Samples.from_arrays(DRAWS))
    x, y = sampled.x
    assert x @ DRAWS.mean(axis=0) @ y == pytest.approx(value_by_linear_programming(DRAWS.mean(axis=0)), abs=1e-8)
    for flat, other in zip(sampled.x, nested.x, strict=True):
        np.testing.assert_allclose(flat, other, atol=1e-7)


def test_a_game_about_nothing():
    assert ez.models.zero_sum(np.zeros((2, 2))).declared.kappa is None


def test_the_picture_shows_strategies_and_value(known, sampled):
    figure = known.problem.plot(known, rows=list("abcd"))
    for ax, strategy in zip(figure.axes, known.x, strict=True):
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], strategy)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list("abcd")
    assert figure.axes[0].get_ylabel() == "probability"
    assert figure.get_suptitle() == f"value {value_by_linear_programming(MATRIX):.4g}"
    figure.savefig(io.BytesIO())
    value = value_by_linear_programming(DRAWS.mean(axis=0))
    assert sampled.problem.plot(sampled).get_suptitle() == f"value {value:.4g} under the mean of 40 matrices"
