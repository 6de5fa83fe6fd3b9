"""Cournot against the closed form, and against its potential where bounds bind; its picture."""

import io

import cvxpy as cp
import numpy as np
import pytest

import epszero as ez

MARGINAL, QUADRATIC, SLOPE = np.array([1.0, 2.0, 3.0]), np.array([0.5, 1.0, 0.2]), np.array([1.0, 2.0])
NUMBERS = {"marginal": MARGINAL, "quadratic": QUADRATIC, "slope": SLOPE}


@pytest.fixture(scope="module")
def page(example):
    return example("Cournot")


@pytest.fixture(scope="module")
def interior(page):
    return page["solution"]


@pytest.fixture(scope="module")
def bounded():
    game = ez.models.cournot(3, 2, intercept=[20.0, 30.0], capacity=[3.0, 9.0, 9.0], shared_cap=[8.0, 50.0], **NUMBERS)
    return ez.solve(game)


@pytest.mark.long
def test_the_closed_form(interior):
    mean, firms = interior.samples.values.mean(axis=0), interior.problem.parameters
    for market in range(2):
        matrix = np.diag(firms.quadratic + SLOPE[market]) + SLOPE[market]
        by_hand = np.linalg.solve(matrix, mean[market] - firms.marginal)
        np.testing.assert_allclose(interior.x[:, market], by_hand, atol=1e-7)


def test_the_duopoly_of_the_textbooks(page):
    np.testing.assert_allclose(page["duopoly"], np.full((2, 1), (10.0 - 1.0) / 3), atol=1e-7)


@pytest.mark.long
def test_bounds_that_bind_against_the_potential(bounded):
    q = cp.Variable((3, 2))
    total = cp.sum(q, axis=0)
    potential = (
        MARGINAL @ cp.sum(q, axis=1) + 0.5 * QUADRATIC @ cp.sum(cp.square(q), axis=1) - np.array([20.0, 30.0]) @ total
        + 0.5 * SLOPE @ (cp.square(total) + cp.sum(cp.square(q), axis=0))
    )  # fmt: skip
    limits = [total <= np.array([8.0, 50.0]), q >= 0, q <= np.array([[3.0], [9.0], [9.0]])]
    cp.Problem(cp.Minimize(potential), limits).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
    )
    np.testing.assert_allclose(bounded.x, q.value, atol=1e-6)
    np.testing.assert_allclose(bounded.multipliers, limits[0].dual_value, atol=1e-6)
    assert bounded.multipliers[0] > 0.1
    assert bounded.x[0].max() == pytest.approx(3.0)
    assert bounded.check_equilibrium().largest <= 1e-7


def test_draws_are_seeded():
    first, again, other = (ez.models.cournot(seed=seed).parameters.marginal for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert ((first >= 1.0) & (first <= 3.0)).all()


def test_the_picture_shows_quantities_and_prices(interior):
    figure = interior.problem.plot(interior)
    quantities, price = figure.axes
    assert (quantities.get_xlabel(), quantities.get_ylabel()) == ("firm", "quantity")
    assert (price.get_xlabel(), price.get_ylabel()) == ("market", "price per unit")
    np.testing.assert_allclose([bar.get_height() for bar in quantities.patches], interior.x.T.ravel())
    prices = interior.samples.values - SLOPE * interior.x.sum(axis=0)
    np.testing.assert_allclose(price.lines[0].get_ydata(), prices.mean(axis=0))
    ends = np.array([segment[:, 1] for segment in price.collections[0].get_segments()])
    np.testing.assert_allclose(ends.T, np.percentile(prices, (10, 90), axis=0))
    figure.savefig(io.BytesIO())


def test_the_picture_of_a_known_market_with_a_shared_cap(bounded):
    _, price = bounded.problem.plot(bounded).axes
    prices = np.array([20.0, 30.0]) - SLOPE * bounded.x.sum(axis=0)
    np.testing.assert_allclose(price.lines[0].get_ydata(), prices)
    np.testing.assert_allclose(price.lines[1].get_ydata(), prices - bounded.multipliers)
    assert not price.collections
