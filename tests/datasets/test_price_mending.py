"""Gaps, repetitions and contradictions: by rule, and reported."""

import datetime
from typing import Any

import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero import datasets

DAYS = 4
START = datetime.datetime(2024, 1, 9)


def written(tmp_path, prices, times=None):
    """A series in UTC, which here is the clock of the days too."""
    times = [START + datetime.timedelta(hours=hour) for hour in range(len(prices))] if times is None else times
    file = tmp_path / "prices.csv"
    pl.DataFrame({"utc": [f"{t:%Y-%m-%dT%H:%MZ}" for t in times], "eur_per_mwh": prices}).write_csv(file)
    return file


def read(file, **options):
    return datasets.read_prices(file, unit="EUR/MWh", **{"time_zone": "UTC", **options})


def with_gap(tmp_path, *gap, many=24 * DAYS):
    prices = [None if hour in gap else float(hour**2 % 97) for hour in range(many)]
    return written(tmp_path, prices), prices


def test_one_and_two_hours_lie_on_the_line_between_their_neighbours(tmp_path):
    file, given = with_gap(tmp_path, 5, 23, 24, 60)
    prices = read(file)
    flat = prices.samples.values.ravel()
    assert flat[5] == (given[4] + given[6]) / 2
    assert flat[23] == pytest.approx(given[22] + (given[25] - given[22]) / 3)  # across midnight
    assert flat[24] == pytest.approx(given[22] + 2 * (given[25] - given[22]) / 3)
    assert prices.mended.select("row", "hour").rows() == [(0, 5), (0, 23), (1, 0), (2, 12)]
    others = [hour for hour in range(96) if hour not in (5, 23, 24, 60)]
    assert np.array_equal(flat[others], [given[hour] for hour in others])


def test_rows_that_are_not_there_are_as_good_as_empty_ones(tmp_path):
    file, given = with_gap(tmp_path, 5, 23, 24, 60)
    empty = read(file).samples
    kept = [hour for hour in range(96) if given[hour] is not None]
    times = [START + datetime.timedelta(hours=hour) for hour in kept]
    assert read(written(tmp_path, [given[hour] for hour in kept], times)).samples.digest() == empty.digest()


def test_a_longer_gap_drops_its_day(tmp_path):
    file, _ = with_gap(tmp_path, 30, 31, 32)
    prices = read(file)
    assert [day.day for day in prices.days] == [9, 11, 12]
    assert prices.dropped == (datetime.date(2024, 1, 10),)
    assert "1 day left out for larger gaps: 2024-01-10." in str(prices)
    assert prices.mended.height == 0
    assert len(read(file, fill=3).samples) == DAYS
    assert len(read(file, hours=range(6)).samples) == DAYS  # the gap is not among these hours
    assert len(read(file, hours=[6]).samples) == DAYS - 1
    assert read(file, fill=0).dropped == prices.dropped


def test_a_gap_across_midnight_counts_as_one(tmp_path):
    file, _ = with_gap(tmp_path, 22, 23, 24)
    assert [day.day for day in read(file).dropped] == [9, 10]


def test_whole_days_that_are_not_there(tmp_path):
    file, _ = with_gap(tmp_path, *range(24, 48))
    assert [day.day for day in read(file, fill=23).dropped] == [10]


def test_the_ends_take_their_one_neighbour(tmp_path):
    file, given = with_gap(tmp_path, 0, 94, 95)
    flat = read(file).samples.values.ravel()
    assert (flat[0], flat[94], flat[95]) == (given[1], given[93], given[93])


def test_a_neighbour_outside_the_days_asked_for_serves(tmp_path):
    file, given = with_gap(tmp_path, 24)
    prices = read(file, start="2024-01-10", end="2024-01-10")
    assert prices.samples.values[0, 0] == (given[23] + given[25]) / 2


def test_equal_rows_count_once_and_others_are_averaged(tmp_path):
    times = [START + datetime.timedelta(hours=hour) for hour in range(24)]
    prices = [float(hour) for hour in range(24)]
    prices[3] = 0.1  # (0.1 + 0.1 + 0.1) / 3 is another number
    read_back = read(written(tmp_path, [*prices, 0.1, 0.1, 9.0], [*times, times[3], times[3], times[7]]))
    assert read_back.samples.values[0, 3] == 0.1
    assert read_back.samples.values[0, 7] == 8.0
    assert read_back.mended.select("hour", "what", "why").rows() == [
        (7, "averaged", "rows contradict"),
        (3, "merged", "rows repeat"),
    ]
    assert "1 hour: the mean of rows that contradict one another." in str(read_back)


def test_a_file_put_behind_itself(tmp_path):
    times = [START + datetime.timedelta(hours=hour) for hour in range(48)]
    once = read(written(tmp_path, list(range(48)), times))
    twice = read(written(tmp_path, [*range(48)] * 2, times * 2))
    assert twice.samples.digest() == once.samples.digest()
    assert set(twice.mended["what"]) == {"merged"}
    assert twice.mended.height == 48


def test_order_does_not_matter(tmp_path):
    times = [START + datetime.timedelta(hours=hour) for hour in range(48)]
    order = np.random.default_rng(0).permutation(48)
    shuffled = read(written(tmp_path, order.tolist(), [times[place] for place in order]))
    assert shuffled.samples.values.ravel().tolist() == list(range(48))


def test_a_clock_with_half_an_hour(tmp_path):
    """In India it is half past five at midnight of UTC: that hour is the fifth."""
    prices = read(written(tmp_path, list(range(72))), time_zone="Asia/Kolkata")
    assert [day.day for day in prices.days] == [10, 11]
    assert prices.samples.values[0].tolist() == list(range(19, 43))
    assert prices.mended.height == 0


def test_the_dates_of_a_wide_table_follow_the_same_rules(tmp_path):
    file = tmp_path / "wide.csv"
    file.write_text("date,0,1,2,3\n2024-01-01,1,2,3,4\n2024-01-01,1,2,5,4\n2024-01-03,1,,3,4\n2024-03-31,1,2,,4\n")
    prices = datasets.read_prices(file, hours=range(3), unit="EUR/MWh")
    assert prices.samples.values.tolist() == [[1, 2, 4], [1, 2, 3], [1, 2, 3]]
    assert [day.day for day in prices.days] == [1, 3, 31]
    assert prices.mended.select("row", "hour", "what", "why").rows() == [
        (2, 2, "filled", "the clock skips it"),
        (1, 1, "filled", "missing"),
        (0, 2, "averaged", "rows contradict"),
        (0, 0, "merged", "rows repeat"),
        (0, 1, "merged", "rows repeat"),
    ]


def test_no_clock_skips_hours_of_a_table_without_dates(tmp_path):
    file = tmp_path / "wide.csv"
    file.write_text("h01,h02,h03\n" + "1,,3\n" * 2700)
    prices = datasets.read_prices(file, hours=[2])
    assert set(prices.mended["why"]) == {"missing"}
    assert prices.mended.height == 2700


def test_the_pool_is_the_box_of_what_was_kept(tmp_path):
    file, _ = with_gap(tmp_path, 30, 31, 32)
    samples = read(file, support="pool").samples
    box: Any = samples.support
    assert np.array_equal(box.lower, samples.values.min(axis=0))


def test_prices_do_not_change(tmp_path):
    prices = read(with_gap(tmp_path)[0])
    with pytest.raises(AttributeError):
        prices.__setattr__("unit", "ct/kWh")
    assert isinstance(prices.samples, ez.Samples)


def test_nights_pair_the_evening_with_the_next_morning():
    night = ez.datasets.dutch_prices(hours=(22, 23, 0, 1, 2, 3), overnight=True, start="2024-03-01", end="2024-04-02")
    days = ez.datasets.dutch_prices(hours=range(24), start="2024-03-01", end="2024-04-03")
    whole = np.asarray(days.samples.values)
    assert night.days == days.days[:-1]
    assert np.array_equal(night.samples.values, np.hstack([whole[:-1, 22:], whole[1:, :4]]))
    spring = night.mended.filter(pl.col("why") == "the clock skips it")
    assert spring.select("row", "day", "hour").rows() == [(29, datetime.date(2024, 3, 31), 2)]  # the night of the 30th
    assert str(night).startswith("33 nights from 2024-03-01 to 2024-04-02, 6 hours each")


def test_the_last_evening_has_no_morning():
    night = ez.datasets.dutch_prices(hours=(23, 0), overnight=True, start="2024-12-30")
    assert [str(day) for day in night.days] == ["2024-12-30"]
    with pytest.raises(ez.InputError, match=r"end: 2014-01-01|start: 2024-12-31 is after all days"):
        ez.datasets.dutch_prices(hours=(23, 0), overnight=True, start="2024-12-31")


def test_a_night_is_left_out_for_its_own_gaps_only(tmp_path):
    table = pl.DataFrame({f"h{hour:02d}": [float(10 * day + hour) for day in range(5)] for hour in range(24)})
    lacking = table.with_columns(
        *(pl.when(pl.int_range(pl.len()) == 2).then(None).otherwise(f"h{h:02d}").alias(f"h{h:02d}") for h in range(4))
    )
    lacking.insert_column(0, pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 1, 5), eager=True).alias("day"))
    lacking.write_csv(tmp_path / "prices.csv")
    read = ez.datasets.read_prices(tmp_path / "prices.csv", hours=(22, 23, 0, 1), overnight=True, unit="EUR/MWh")
    assert [str(day) for day in read.days] == ["2024-01-01", "2024-01-03", "2024-01-04"]
    assert [str(day) for day in read.dropped] == ["2024-01-02"]  # its morning is missing; the evening of the 3rd is not
    assert read.samples.values[1].tolist() == [42.0, 43.0, 30.0, 31.0]
    plain = ez.datasets.read_prices(tmp_path / "prices.csv", hours=(4, 5), overnight=True, unit="EUR/MWh")
    assert len(plain.days) == 5  # none of them goes beyond midnight
    assert not plain.overnight


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hours": (22, 0, 23, 1), "overnight": True}, "^hours: 22, 0, 23, 1 are not within 24 hours on end"),
        ({"hours": (22, 0, 22), "overnight": True}, "^hours: names 22 more than once"),
        ({"hours": (20, 0, 21), "overnight": True}, "^hours: 20, 0, 21 are not within"),
        ({"overnight": "yes"}, "^overnight: must be True or False"),
    ],
)
def test_hours_that_are_no_night(options, said):
    with pytest.raises(ez.InputError, match=said):
        ez.datasets.dutch_prices(**options)
