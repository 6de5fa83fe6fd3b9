"""Matrix games against linear programming; their picture."""

import io

import numpy as np
import pytest
from scipy.optimize import linprog

import epszero as ez

MATRIX = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 2.0], [1.0, -2.0, 0.0]])


def value_by_linear_programming(A):
    """min v over x ∈ Δ with Aᵀx ≤ v."""
    m, n = A.shape
    answer = linprog(
        np.r_[np.zeros(m), 1.0], A_ub=np.c_[A.T, -np.ones(n)], b_ub=np.zeros(n),
        A_eq=np.r_[np.ones(m), 0.0][None], b_eq=[1.0], bounds=[(0, None)] * m + [(None, None)],
    )  # fmt: skip
    return answer.fun


@pytest.fixture(scope="module")
def page(example):
    return example("Zero-sum games")


@pytest.fixture(scope="module")
def known(page):
    return page["solution"]


@pytest.mark.long
def test_the_value_is_that_of_the_linear_programme(known):
    x, y = known.x
    value = value_by_linear_programming(MATRIX)
    assert x @ MATRIX @ y == pytest.approx(value, abs=1e-8)
    assert (MATRIX @ y).min() == pytest.approx(value, abs=1e-8)
    assert (MATRIX.T @ x).max() == pytest.approx(value, abs=1e-8)
    assert x == pytest.approx([0.5, 0.25, 0.25], abs=1e-7)
    assert known.check_equilibrium().largest <= 1e-8


def test_the_norm_is_declared_and_chooses_the_method(known):
    assert known.problem.declared.kappa == pytest.approx(np.linalg.svd(MATRIX)[1][0])
    assert isinstance(known.method, ez.ForwardBackwardForward)


@pytest.mark.long
def test_samples_are_matrices_nested_or_flat(page):
    nested, draws = page["from_samples"], page["matrices"]
    flat = ez.solve(page["uncertain"], ez.Samples(draws.reshape(100, 6)))
    x, y = nested.x
    assert isinstance(nested.method, ez.ForwardBackwardForward)
    assert x @ draws.mean(axis=0) @ y == pytest.approx(value_by_linear_programming(draws.mean(axis=0)), abs=1e-8)
    for one, other in zip(nested.x, flat.x, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)


def test_a_game_about_nothing():
    assert ez.models.zero_sum(np.zeros((2, 2))).declared.kappa is None


def test_the_picture_shows_strategies_and_value(page, known):
    figure = known.problem.plot(known, rows=list("abc"))
    for ax, strategy in zip(figure.axes, known.x, strict=True):
        np.testing.assert_allclose([bar.get_height() for bar in ax.patches], strategy)
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list("abc")
    assert figure.axes[0].get_ylabel() == "probability"
    assert figure.get_suptitle() == "value 0"
    figure.savefig(io.BytesIO())
    value = value_by_linear_programming(page["matrices"].mean(axis=0))
    title = page["uncertain"].plot(page["from_samples"]).get_suptitle()
    assert title == f"value {value:.4g} under the mean of 100 matrices"


def test_pictures_of_other_games_are_refused(known):
    with pytest.raises(ez.InputError, match=r"solution: has strategies of shape \[\(3,\), \(3,\)\], but this game's"):
        ez.models.ev_charging().plot(known)
    with pytest.raises(ez.InputError, match="solution: was found without samples, but this game has them"):
        ez.models.zero_sum(shape=(3, 3)).plot(known)
    with pytest.raises(ez.InputError, match="rows: has 1 names for 3. Give one name per row"):
        known.problem.plot(known, rows=["a"])
