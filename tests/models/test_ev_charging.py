"""The charging game against its potential, minimised by a conic solver; its fleets; its picture."""

import io

import cvxpy as cp
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure

import epszero as ez

N, T = 6, 5
SHAPE = np.array([0.9, 1.2, 1.0, 0.7, 1.1])
PRICES = ez.Samples(0.1 * SHAPE + np.random.default_rng(3).normal(0, 0.02, size=(200, T)))
CAPACITY = np.array([6.0, 6.0, 9.0, 12.0, 7.0])
P = np.eye(T) + 0.4 * np.eye(T, k=1) + 0.4 * np.eye(T, k=-1)


def small(**options):
    return ez.models.ev_charging(N, T, seed=4, need=(4.0, 7.0), reference=SHAPE, **options)


def equilibrium_by_potential(fleet, weight, capacity=None):
    """Schedules and multipliers from one quadratic programme: the sum of own terms plus the common one."""
    x = cp.Variable((N, T))
    own = fleet.wear @ cp.sum(cp.square(x), axis=1) + fleet.fee @ cp.sum(x, axis=1)
    energy = cp.sum(x @ PRICES.values.mean(axis=0))
    common = cp.quad_form(cp.sum(x, axis=0) / N - SHAPE, weight)
    limits = [x >= 0, x <= fleet.cap[:, None], cp.sum(x, axis=1) >= fleet.need]
    shared = [] if capacity is None else [cp.sum(x, axis=0) <= capacity]
    cp.Problem(cp.Minimize(own + energy + common), limits + shared).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    return x.value, shared[0].dual_value if shared else None


@pytest.fixture(scope="module")
def solution():
    return ez.solve(small(weight=0.7), PRICES, tol=1e-11)


@pytest.fixture(scope="module")
def crowded():
    return ez.solve(small(weight=P, capacity=CAPACITY), PRICES, tol=1e-11)


def test_the_equilibrium_minimises_the_potential(solution):
    x, _ = equilibrium_by_potential(solution.problem.parameters, 0.7 * np.eye(T))
    np.testing.assert_allclose(solution.x, x, atol=1e-6)
    assert solution.check_equilibrium().largest <= 1e-8


def test_with_a_capacity_the_multipliers_agree_too(crowded):
    x, multipliers = equilibrium_by_potential(crowded.problem.parameters, P, CAPACITY)
    np.testing.assert_allclose(crowded.x, x, atol=1e-6)
    np.testing.assert_allclose(crowded.multipliers, multipliers, atol=1e-6)
    assert (crowded.multipliers > 1e-3).any()  # it binds
    assert (crowded.multipliers < 1e-9).any()


def test_the_cost_is_the_formula(solution):
    fleet, x, price = solution.problem.parameters, solution.x, PRICES.values[0]
    average = x.mean(axis=0)
    car = type(fleet)(*(column[2] for column in fleet))
    by_hand = car.wear * np.sum(x[2] ** 2) + car.fee * x[2].sum() + price @ x[2] + 0.7 * np.sum((average - SHAPE) ** 2)
    assert float(solution.problem.cost(x[2], average, price, car)) == pytest.approx(by_hand, rel=1e-5)  # float32 here


def test_the_defaults_are_table_one():
    game = ez.models.ev_charging()
    fleet = game.parameters
    assert game.agents == 20
    assert game.start().shape == (20, 14)
    for column, low, high in ((fleet.wear, 0.002, 0.008), (fleet.fee, 0.02, 0.075), (fleet.need, 12, 18)):
        assert ((low <= column) & (column <= high)).all()
        assert np.ptp(column) > 0.5 * (high - low)
    assert (fleet.cap == 2.5).all()


def test_the_same_seed_gives_the_same_fleet():
    first, again, other = (ez.models.ev_charging(seed=seed).parameters for seed in (7, np.random.default_rng(7), 8))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert not np.array_equal(first.wear, other.wear)


def test_what_is_given_does_not_change_what_is_drawn():
    drawn = ez.models.ev_charging(3).parameters
    given = ez.models.ev_charging(3, wear=[0.1, 0.2, 0.3], need=10.0).parameters
    assert given.wear.tolist() == [0.1, 0.2, 0.3]
    assert given.need.tolist() == [10.0] * 3
    assert np.array_equal(given.fee, drawn.fee)


def test_a_fleet_survives_a_csv_file(tmp_path):
    fleet = ez.models.ev_charging(7, seed=5).parameters
    pl.DataFrame(fleet._asdict()).write_csv(tmp_path / "fleet.csv")
    for source in (tmp_path / "fleet.csv", str(tmp_path / "fleet.csv")):
        back = ez.models.ev_charging(fleet=source, seed=99).parameters
        assert all(np.array_equal(a, b) for a, b in zip(fleet, back, strict=True))


@pytest.mark.parametrize("kind", [dict, pl.DataFrame, lambda table: ez.models.Fleet(**table, wear=None, fee=None)])
def test_columns_that_a_fleet_lacks_are_drawn(kind):
    game = ez.models.ev_charging(fleet=kind({"need": [5.0, 6.0, 7.0], "cap": [1.0, 2.0, 3.0]}), fee=0.5)
    assert game.agents == 3
    assert game.parameters.need.tolist() == [5.0, 6.0, 7.0]
    assert game.parameters.cap.tolist() == [1.0, 2.0, 3.0]
    assert game.parameters.fee.tolist() == [0.5] * 3
    assert np.array_equal(game.parameters.wear, ez.models.ev_charging(3).parameters.wear)


def test_feasible_to_the_last_kilowatt_hour():
    fleet = {"need": [4.0, 2.0], "cap": [2.0, 1.0]}  # both charge all the time
    ez.models.ev_charging(hours=2, fleet=fleet, capacity=3.0)
    with pytest.raises(ez.InputError, match="^capacity: in the 1 hours that have the least, it is 2.9 kWh"):
        ez.models.ev_charging(hours=2, fleet=fleet, capacity=[3.1, 2.9])


def test_games_that_differ_in_numbers_share_the_cost():
    assert small(weight=0.7).cost is ez.models.ev_charging(N, T, weight=[0.7] * T, reference=SHAPE.tolist()).cost


def test_the_picture_shows_demand_and_prices(solution):
    figure = solution.problem.plot(solution)
    assert isinstance(figure, Figure)
    demand, price = figure.axes
    assert "kWh" in demand.get_ylabel()
    assert "€/kWh" in price.get_ylabel()
    assert price.get_xlabel() == "time of day"
    assert [label.get_text() for label in price.get_xticklabels()] == [f"{h}:00" for h in range(T + 1)]
    for ax, rows in ((demand, solution.x), (price, PRICES.values)):
        band, middle = (patch.get_data() for patch in ax.patches[:2])
        np.testing.assert_allclose(middle.values, rows.mean(axis=0))
        np.testing.assert_allclose([band.baseline, band.values], np.percentile(rows, (10, 90), axis=0))
    np.testing.assert_allclose(demand.patches[2].get_data().values, SHAPE)
    figure.savefig(io.BytesIO())


def test_the_picture_shows_the_capacity_and_its_price(crowded):
    demand, _, scarcity = crowded.problem.plot(crowded, first_hour=22).axes
    np.testing.assert_allclose(demand.patches[3].get_data().values, CAPACITY / N)
    np.testing.assert_allclose([bar.get_height() for bar in scarcity.patches], crowded.multipliers)
    assert "€/kWh" in scarcity.get_ylabel()
    assert [label.get_text() for label in scarcity.get_xticklabels()][:3] == ["22:00", "23:00", "0:00"]
