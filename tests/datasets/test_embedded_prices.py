"""The Dutch series inside the package: its facts, its gaps by hand, its licence."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero import datasets

DATA = Path(datasets.__file__).parent / "data"


@pytest.fixture(scope="module")
def everything():
    return datasets.dutch_prices(start="2015-01-05", unit="EUR/MWh")


def cell(prices, day: str, hour: int) -> float:
    return float(prices.samples.values[prices.days.index(datetime.date.fromisoformat(day)), prices.hours.index(hour)])


def limits(samples: ez.Samples):
    box: Any = samples.support
    return box.lower, box.upper


def test_the_file_is_small_and_says_whose_it_is():
    (file,) = DATA.glob("*.parquet")
    assert file.stat().st_size < 600_000
    words = (DATA / "ATTRIBUTION.txt").read_text(encoding="utf-8")
    for word in ("ENTSO-E", "Ember", "CC BY 4.0", "ev2gym", file.name):
        assert word in words


def test_the_default_is_what_the_paper_has():
    prices = datasets.day_ahead_prices()
    assert prices.values.shape == (3649, 14)
    assert prices.columns == tuple(f"h{hour:02d}" for hour in range(14))
    assert np.all(prices.support.contains(prices.values))
    assert limits(prices) == (-0.5, 4.0)
    daily = prices.values.mean(axis=1)
    assert np.corrcoef(daily[1:], daily[:-1])[0, 1] == pytest.approx(0.93, abs=0.005)


def test_known_figures(everything):
    assert everything.samples.values.shape == (3649, 24)
    assert everything.samples.values.min() == -500.0
    assert everything.samples.values.max() == 872.96
    assert (everything.days[0], everything.days[-1]) == (datetime.date(2015, 1, 5), datetime.date(2024, 12, 31))
    cents = np.delete(everything.samples.values, everything.mended["row"].unique(), axis=0) * 100
    assert np.allclose(cents, np.round(cents), rtol=0, atol=1e-9)
    raw = pl.read_parquet(next(DATA.glob("*.parquet")))["cents_per_mwh"]
    assert len(raw) == 87_671
    begin = datetime.datetime(2015, 1, 1)
    gaps = [str(begin + datetime.timedelta(hours=row)) for row in raw.is_null().arg_true()]
    assert gaps == ["2023-12-30 23:00:00", "2024-12-30 23:00:00"]
    assert cell(everything, "2024-12-31", 23) == 0.52


def test_the_missing_hours_lie_between_their_neighbours(everything):
    """Midnight of the last day of 2023 and of 2024: from 23:00 the day before and 01:00."""
    assert cell(everything, "2023-12-31", 0) == pytest.approx((43.23 + 12.56) / 2, abs=1e-12)
    assert cell(everything, "2024-12-31", 0) == pytest.approx((36.47 + 54.90) / 2, abs=1e-12)
    assert cell(everything, "2023-12-30", 23) == 43.23
    assert cell(everything, "2023-12-31", 1) == 12.56


def test_the_rule_does_not_depend_on_what_else_is_asked_for(everything):
    for chosen in ({"hours": [0]}, {"hours": [0, 5], "start": "2024-12-31"}, {"hours": range(14)}):
        one = datasets.dutch_prices(unit="EUR/MWh", **chosen)
        assert cell(one, "2024-12-31", 0) == cell(everything, "2024-12-31", 0)


def test_clock_changes(everything):
    mended = everything.mended
    springs = mended.filter(why="the clock skips it")
    assert springs["day"].to_list()[:2] == [datetime.date(2015, 3, 29), datetime.date(2016, 3, 27)]
    assert (springs.height, set(springs["hour"]), set(springs["what"])) == (10, {2}, {"filled"})
    for row, hour in springs.select("row", "hour").rows():
        before, filled, after = everything.samples.values[row, hour - 1 : hour + 2]
        assert filled == pytest.approx((before + after) / 2, abs=1e-12)
    autumns = mended.filter(what="averaged")
    assert (autumns.height, set(autumns["hour"]), set(autumns["why"])) == (10, {2}, {"the clock repeats it"})
    missing = mended.filter(why="missing")
    assert [(str(day), hour) for day, hour in missing.select("day", "hour").rows()] == [
        ("2023-12-31", 0),
        ("2024-12-31", 0),
    ]
    assert (mended.height, everything.dropped) == (22, ())


def test_the_hour_of_autumn_is_the_mean_of_both():
    """By the clock of UTC they are two: 00:00 and 01:00 on 2024-10-27."""
    universal = datasets.dutch_prices(unit="EUR/MWh", time_zone="UTC", start="2024-10-26", end="2024-10-28")
    local = datasets.dutch_prices(unit="EUR/MWh", start="2024-10-27", end="2024-10-27")
    both = [cell(universal, "2024-10-27", hour) for hour in (0, 1)]
    assert both[0] != both[1]
    assert cell(local, "2024-10-27", 2) == pytest.approx(sum(both) / 2, abs=1e-12)
    assert cell(local, "2024-10-27", 1) == cell(universal, "2024-10-26", 23)
    assert cell(local, "2024-10-27", 3) == cell(universal, "2024-10-27", 2)


def test_units_are_the_same_prices(everything):
    for unit, scale in (("EUR/kWh", 1000), ("ct/kWh", 10), ("EUR/MWh", 1)):
        values = datasets.day_ahead_prices(range(24), unit=unit).values
        assert np.array_equal(values, everything.samples.values / scale)


@pytest.mark.parametrize("hours", [[7, 3], np.array([7, 3]), (7, 3), iter([7, 3])])
def test_hours_keep_their_order(everything, hours):
    prices = datasets.day_ahead_prices(hours, datetime.date(2020, 2, 28), "2020-03-01", "EUR/MWh")
    assert prices.columns == ("h07", "h03")
    rows = [everything.days.index(datetime.date(2020, *day)) for day in ((2, 28), (2, 29), (3, 1))]
    assert np.array_equal(prices.values, everything.samples.values[rows][:, [7, 3]])


def test_the_first_day_has_no_midnight():
    """The series begins at 01:00 local time: the one neighbour serves."""
    prices = datasets.dutch_prices(end="2015-01-01", unit="EUR/MWh")
    assert prices.samples.values[0, :3].tolist() == [34.94, 34.94, 32.19]
    assert prices.mended.rows() == [(0, datetime.date(2015, 1, 1), 0, "filled", "missing")]
    strict = datasets.dutch_prices(end="2015-01-02", fill=0)
    assert (len(strict.samples), strict.dropped) == (1, (datetime.date(2015, 1, 1),))


def test_supports():
    box = ez.sets.Box(-1.0, 9.0)
    assert datasets.day_ahead_prices(support=box).support is box
    assert datasets.day_ahead_prices(support=None).support is None
    assert datasets.day_ahead_prices(support=False).support is None
    assert limits(datasets.day_ahead_prices(unit="ct/kWh", support=True)) == (-50.0, 400.0)
    pool = datasets.day_ahead_prices(support="pool", start="2024-01-01")
    assert np.array_equal(limits(pool), (pool.values.min(axis=0), pool.values.max(axis=0)))
    one_day = datasets.day_ahead_prices(support="pool", start="2024-12-31")
    assert len(one_day) == 1


def test_the_report_says_what_was_done(everything):
    text = str(everything)
    assert "3649 days from 2015-01-05 to 2024-12-31, 24 hours each, in EUR/MWh" in text
    assert "10 hours: filled from the neighbouring hours, since the clock skips them in spring." in text
    assert "2 hours: missing and filled" in text
    assert "10 hours: the mean of two" in text
    assert "Ember (CC BY 4.0)" in text
