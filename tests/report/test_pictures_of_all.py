"""A picture of any problem: what is drawn is what was found, with the error bars of the certificate, and names."""

import io
import re

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

RNG = np.random.default_rng(0)
NAMES = ["night", "day", "evening"]
DATA = ez.Samples(RNG.uniform(0.4, 0.6, size=(800, 3)), support=ez.sets.Box(0.3, 0.7), columns=NAMES)


def drawn(problem, solution, **options):
    figure = problem.plot(solution, **options)
    figure.savefig(io.BytesIO())
    return figure


def heights(ax):
    return np.array([patch.get_height() for patch in ax.patches])


def ends(ax):
    lines = [one for one in ax.collections if hasattr(one, "get_segments")]
    black = [one for one in lines if np.array_equal(one.get_color()[0, :3], np.zeros(3))]
    return np.concatenate([[line[:, 1] for line in one.get_segments()] for one in black]).T


def cost(x, mean_x, price, car):
    return car["wear"] * x @ x - price @ x + 0.1 * jnp.sum(mean_x**2)


def fleet(agents, **options):
    wear = {"wear": np.linspace(0.5, 0.8, agents)}
    return ez.AggregativeGame(ez.oracles.Affine(cost), wear, ez.sets.Box(-2.0, 2.0, dim=3), **options)


@pytest.fixture(scope="module")
def few():
    game = fleet(3)
    return game, ez.certify(ez.solve(game, DATA))


@pytest.mark.long
def test_few_agents_are_bars_with_names_and_error_bars(few):
    game, certificate = few
    figure = drawn(game, certificate.solution, certificate=certificate)
    (ax,) = figure.axes
    np.testing.assert_allclose(heights(ax), certificate.solution.x.ravel())
    band = certificate.intervals
    np.testing.assert_allclose(ends(ax), [band.lower.ravel(), band.upper.ravel()])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == NAMES
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1", "2"]
    assert "all hold together" in re.sub(r"\s+", " ", figure.get_supxlabel())
    assert drawn(game, certificate.solution).get_supxlabel() == ""


@pytest.mark.long
def test_many_agents_are_their_mean_with_its_bounds():
    game = fleet(30)
    certificate = ez.certify(ez.solve(game, DATA))
    (ax,) = drawn(game, certificate.solution, certificate=certificate).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), certificate.solution.x.mean(axis=0))
    total = certificate.aggregate
    np.testing.assert_allclose(ends(ax), [total.lower / 30, total.upper / 30])


@pytest.mark.long
def test_shared_constraints_have_a_panel_of_their_own():
    game = fleet(3, shared=ez.AffineConstraint(lambda x: x.sum(axis=0), 0.6))
    certificate = ez.certify(ez.solve(game, DATA))
    _, prices = drawn(game, certificate.solution, certificate=certificate).axes
    np.testing.assert_allclose(heights(prices), certificate.solution.multipliers)
    assert (certificate.solution.multipliers > 0).all()
    if not certificate.without_intervals:
        np.testing.assert_allclose(ends(prices), [certificate.multipliers.lower, certificate.multipliers.upper])


@pytest.mark.long
def test_games_with_strategies_alike_share_a_panel_and_others_have_their_own():
    costs = [lambda x: jnp.sum((x[0] - 1) ** 2), lambda x: jnp.sum((x[1] + 1) ** 2)]
    alike = ez.Game(costs, [ez.sets.Box(-2.0, 2.0, dim=2)] * 2)
    (ax,) = drawn(alike, ez.solve(alike)).axes
    np.testing.assert_allclose(heights(ax), [1, 1, -1, -1], atol=1e-6)
    unlike = ez.Game(costs, [ez.sets.Box(-2.0, 2.0, dim=2), ez.sets.Box(-2.0, 2.0, dim=5)])
    found = ez.solve(unlike)
    one, other = drawn(unlike, found, certificate=ez.certify(found)).axes
    assert (len(one.patches), len(other.patches)) == (2, 5)
    assert (one.get_ylabel(), other.get_ylabel()) == ("agent 0", "agent 1")


@pytest.mark.long
def test_minimisation_variational_inequality_and_parts():
    loss = ez.Minimization(lambda x, xi: 0.5 * jnp.sum(x**2) - xi @ x, ez.sets.Box(0.0, 1.0, dim=3))
    certificate = ez.certify(ez.solve(loss, DATA))
    (ax,) = drawn(loss, certificate.solution, certificate=certificate).axes
    np.testing.assert_allclose(heights(ax), certificate.solution.x)
    np.testing.assert_allclose(ends(ax), [certificate.intervals.lower, certificate.intervals.upper])
    long = ez.VariationalInequality(lambda x: x - jnp.linspace(0, 1, 500), over=ez.sets.Box(0.0, 1.0, dim=500))
    (ax,) = drawn(long, ez.solve(long)).axes
    np.testing.assert_allclose(ax.lines[0].get_ydata(), np.linspace(0, 1, 500), atol=1e-6)
    parts = ez.VariationalInequality(lambda x: x, over={"a": ez.sets.Box(0.0, 1.0, dim=2), "b": ez.sets.Box(1.0, 2.0)})
    first, second = drawn(parts, ez.solve(parts, x0={"a": np.zeros(2), "b": np.ones((9, 4))})).axes
    assert (first.get_ylabel(), second.get_ylabel()) == ("a", "b")
    numbers = ez.AggregativeGame(lambda x, m: jnp.sum((x - 1) ** 2), None, ez.sets.Box(0.0, 2.0, dim=1), agents=9)
    (ax,) = drawn(numbers, ez.solve(numbers)).axes
    assert len(ax.patches) == 9
    assert ax.get_xlabel() == "agent"


def test_wrong_words(few):
    game, certificate = few
    with pytest.raises(ez.InputError, match="solution: is that of another problem"):
        fleet(4).plot(certificate.solution)
    with pytest.raises(ez.InputError, match="certificate: speaks of another solution"):
        game.plot(ez.solve(game, DATA[:400]), certificate=certificate)
    with pytest.raises(ez.InputError, match=r"solution: must come from ez\.solve, but it is a int"):
        game.plot(3)
    with pytest.raises(ez.InputError, match="colour: plot has no such argument here"):
        game.plot(certificate.solution, colour="red")
