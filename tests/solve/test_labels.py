"""Answers and error bars as tables: a line per agent or entry, by the names that are known."""

import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest

import epszero as ez

NAMES = ["night", "day", "evening"]
DATA = ez.Samples(np.random.default_rng(0).uniform(0.4, 0.6, (300, 3)), support=ez.sets.Box(0.3, 0.7), columns=NAMES)


def cost(x, mean_x, price, car):
    return car["wear"] * x @ x - price @ x + 0.1 * jnp.sum(mean_x**2)


@pytest.fixture(scope="module")
def certificate():
    game = ez.AggregativeGame(ez.oracles.Affine(cost), {"wear": np.array([0.5, 0.8])}, ez.sets.Box(-2.0, 2.0, dim=3))
    return ez.certify(ez.solve(game, DATA))


@pytest.mark.long
def test_a_line_per_agent(certificate):
    frame = certificate.solution.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["agent", *NAMES]
    np.testing.assert_array_equal(frame.select(NAMES).to_numpy(), certificate.solution.x)
    named = certificate.solution.to_frame(agents=["van", "bus"], library="pandas")
    assert isinstance(named, pd.DataFrame)
    assert named["agent"].tolist() == ["van", "bus"]
    assert named.loc[1, "day"] == certificate.solution.x[1, 1]


def test_error_bars_line_by_line(certificate):
    frame = certificate.to_frame(agents=["van", "bus"])
    assert frame.columns == ["agent", "entry", "lower", "value", "upper"]
    band = certificate.intervals
    bus = frame.filter((pl.col("agent") == "bus") & (pl.col("entry") == "day"))
    assert bus.rows() == [("bus", "day", band.lower[1, 1], certificate.solution.x[1, 1], band.upper[1, 1])]
    total = certificate.to_frame("aggregate")
    assert total["entry"].to_list() == NAMES
    np.testing.assert_array_equal(total["upper"], certificate.aggregate.upper)
    with pytest.raises(ez.InputError, match="multipliers: there are none"):
        certificate.to_frame("multipliers")


@pytest.mark.long
def test_games_parts_and_numbers():
    costs = [lambda x: jnp.sum((x[0] - 1) ** 2), lambda x: jnp.sum((x[1] + 1) ** 2)]
    game = ez.solve(ez.Game(costs, [ez.sets.Box(-2.0, 2.0, dim=2), ez.sets.Box(-2.0, 2.0, dim=1)]))
    assert game.to_frame().columns == ["agent", "entry", "x"]
    assert game.to_frame()["agent"].to_list() == [0, 0, 1]
    assert game.to_frame(agents=["a", "b"])["agent"].to_list() == ["a", "a", "b"]
    loss = ez.Minimization(lambda x, xi: 0.5 * jnp.sum(x**2) - xi @ x, ez.sets.Box(0.0, 1.0, dim=3))
    assert ez.solve(loss, DATA).to_frame()["entry"].to_list() == NAMES
    assert ez.solve(loss, DATA.values).to_frame()["entry"].to_list() == [0, 1, 2]
    parts = ez.VariationalInequality(lambda x: x, over={"a": ez.sets.Box(0.0, 1.0), "b": ez.sets.Box(1.0, 2.0)})
    frame = ez.solve(parts, x0={"a": np.zeros(1), "b": np.ones((2, 2))}).to_frame()
    assert frame.columns == ["part", "row", "entry", "x"]
    assert frame.rows()[-1] == ("b", 1, 1, 1.0)
    rows = ez.VariationalInequality(lambda x: x, over=ez.sets.Box(1.0, 2.0))
    assert ez.solve(rows, x0=np.ones((4, 2))).to_frame().columns == ["row", "x[0]", "x[1]"]


def test_wrong_words(certificate):
    with pytest.raises(ez.InputError, match="agents: has 1 names, but there are 2 agents"):
        certificate.solution.to_frame(agents=["van"])
    with pytest.raises(ez.InputError, match="agents: is one text"):
        certificate.solution.to_frame(agents="ab")
    with pytest.raises(ez.InputError, match="library: must be one of"):
        certificate.to_frame(library="excel")
    with pytest.raises(ez.InputError, match="of: must be one of"):
        certificate.to_frame("likely")
    loss = ez.Minimization(lambda x: jnp.sum(x**2), ez.sets.Box(0.0, 1.0, dim=1))
    with pytest.raises(ez.InputError, match="agents: are named, but this problem has none"):
        ez.solve(loss).to_frame(agents=["a"])
