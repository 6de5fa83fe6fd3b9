"""The charging game against its potential, minimised by a conic solver; its fleets; its picture."""

import io
from typing import Any

import cvxpy as cp
import jax
import numpy as np
import polars as pl
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

import epszero as ez

P = np.eye(14) + 0.4 * np.eye(14, k=1) + 0.4 * np.eye(14, k=-1)


def equilibrium_by_potential(solution, capacity=None):
    """Schedules and multipliers from one quadratic programme: the sum of own terms plus the common one."""
    fleet = solution.problem.parameters
    x = cp.Variable(solution.x.shape)
    own = fleet.wear @ cp.sum(cp.square(x), axis=1) + fleet.fee @ cp.sum(x, axis=1)
    energy = cp.sum(x @ solution.samples.values.mean(axis=0))
    common = cp.sum_squares(cp.sum(x, axis=0) / len(fleet.need) - 1.0)
    limits = [x >= 0, x <= fleet.cap[:, None], cp.sum(x, axis=1) >= fleet.need]
    shared = [] if capacity is None else [cp.sum(x, axis=0) <= capacity]
    cp.Problem(cp.Minimize(own + energy + common), limits + shared).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-13, tol_gap_rel=1e-13, tol_feas=1e-13
    )
    return x.value, shared[0].dual_value if shared else None


@pytest.fixture(scope="module")
def page(example):
    return example("Electric vehicles")


@pytest.fixture(scope="module")
def solution(page):
    return page["solution"]


@pytest.fixture(scope="module")
def crowded(page):
    return page["plan"]


@pytest.mark.long
def test_the_equilibrium_minimises_the_potential(solution):
    np.testing.assert_allclose(solution.x, equilibrium_by_potential(solution)[0], atol=1e-6)
    assert solution.check_equilibrium().largest <= 1e-8


@pytest.mark.long
def test_with_a_capacity_the_multipliers_agree_too(crowded):
    x, multipliers = equilibrium_by_potential(crowded, capacity=3.3)
    np.testing.assert_allclose(crowded.x, x, atol=1e-6)
    np.testing.assert_allclose(crowded.multipliers, multipliers, atol=1e-6)
    assert (crowded.multipliers > 1e-3).any()  # it binds
    assert (crowded.multipliers < 1e-9).any()


@pytest.mark.parametrize(("weight", "matrix"), [(0.7, 0.7 * np.eye(14)), (range(14), np.diag(range(14))), (P, P)])
def test_the_cost_is_the_formula(weight, matrix):
    rng = np.random.default_rng(0)
    own, average, price, reference = rng.uniform(0, 2, size=(4, 14))
    game = ez.models.ev_charging(3, weight=list(weight) if isinstance(weight, range) else weight, reference=reference)
    car = ez.models.Fleet(wear=0.3, fee=0.2, need=5.0, cap=2.0)
    off = average - reference
    by_hand = 0.3 * own @ own + 0.2 * own.sum() + price @ own + off @ matrix @ off
    with jax.enable_x64(True):
        assert float(game.cost(own, average, price, car)) == pytest.approx(by_hand, rel=1e-13)


def test_the_defaults_are_table_one():
    game = ez.models.ev_charging()
    fleet = game.parameters
    assert game.agents == 20
    for column, low, high in ((fleet.wear, 0.002, 0.008), (fleet.fee, 0.02, 0.075), (fleet.need, 12, 18)):
        assert ((low <= column) & (column <= high)).all()
        assert np.ptp(column) > 0.5 * (high - low)
    assert (fleet.cap == 2.5).all()
    with pytest.raises(ez.InputError, match="14 hours at 2.5 kWh give 35"):
        ez.models.ev_charging(need=35.1)


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
    fleet = ez.models.ev_charging(20, seed=5).parameters
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
    with pytest.raises(ez.InputError, match="^capacity: in the hour that has the least it is 2.9 kWh"):
        ez.models.ev_charging(hours=2, fleet=fleet, capacity=[3.1, 2.9])


def steps(ax) -> list[Any]:
    """What was drawn hour by hour, in that order."""
    return [patch.get_data() for patch in ax.patches if isinstance(patch, StepPatch)]


def test_the_picture_shows_demand_and_prices(solution):
    figure = solution.problem.plot(solution)
    assert isinstance(figure, Figure)
    demand, price = figure.axes
    assert "kWh" in demand.get_ylabel()
    assert "€/kWh" in price.get_ylabel()
    assert price.get_xlabel() == "time of day"
    assert [label.get_text() for label in price.get_xticklabels()] == [f"{h}:00" for h in range(0, 15, 2)]
    for ax, rows in ((demand, solution.x), (price, solution.samples.values)):
        band, middle = steps(ax)[:2]
        np.testing.assert_allclose(middle.values, rows.mean(axis=0))
        np.testing.assert_allclose([band.baseline, band.values], np.percentile(rows, (10, 90), axis=0))
    np.testing.assert_allclose(steps(demand)[2].values, np.ones(14))
    figure.savefig(io.BytesIO())


def test_the_picture_shows_the_capacity_and_its_price(crowded):
    demand, _, scarcity = crowded.problem.plot(crowded, first_hour=20).axes
    np.testing.assert_allclose(steps(demand)[3].values, np.full(14, 3.3 / 3))
    np.testing.assert_allclose([bar.get_height() for bar in scarcity.patches], crowded.multipliers)
    assert "€/kWh" in scarcity.get_ylabel()
    assert [label.get_text() for label in scarcity.get_xticklabels()][:3] == ["20:00", "22:00", "0:00"]


@pytest.mark.long
def test_vehicles_that_are_there_in_part_and_charge_no_more_than_they_need():
    present = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 1.0]])
    fleet = {"need": [2.0, 3.0], "cap": [2.0, 2.0]}
    game = ez.models.ev_charging(fleet=fleet, hours=3, wear=0.01, fee=0.0, weight=0.0, present=present, exactly=True)
    prices = ez.Samples(np.array([[-0.1, -0.2, -0.3], [-0.1, -0.2, -0.1]]))
    x = ez.solve(game, prices).x
    assert x.sum(axis=1) == pytest.approx([2.0, 3.0])  # though all prices are negative
    assert (x <= 2.0 * present + 1e-9).all()
    assert x[0] == pytest.approx([1.0, 1.0, 0.0])
    more = ez.models.ev_charging(fleet={"need": [2.0], "cap": [2.0]}, hours=3, wear=1e-6, fee=0.0, weight=0.0)
    assert ez.solve(more, prices).x.sum() > 5.9  # at least what they need


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"present": [[1.0, 1.0]]}, "present: must be vehicles × hours, 1 × 3"),
        ({"present": [[1.0, 1.0, 1.5]]}, "present: must be parts of an hour, but one is 1.5"),
        ({"present": [[1.0, 0.0, 0.0]]}, "needs 3 kWh, but within the hours that it is there it gets 2"),
        ({"present": [[1.0, 1.0, 0.0]], "capacity": 1.0}, "capacity: lets all vehicles together charge 2 kWh"),
    ],
)
def test_presence_that_cannot_be(options, said):
    with pytest.raises(ez.InputError, match=said):
        ez.models.ev_charging(fleet={"need": [3.0], "cap": [2.0]}, hours=3, **options)
