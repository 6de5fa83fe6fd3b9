"""Hours of a plan and stays of vehicles, against an obviously right count by the minute."""

import itertools

import numpy as np
import pytest

import epszero as ez
from epszero.cli.fleet import FleetFile
from epszero.cli.windows import Stay, presence, span_of, stays


def fleet(**times):
    many = len(next(iter(times.values())))
    names = [f"van {i}" for i in range(many)]
    written = {name: list(cells) for name, cells in times.items()}
    return FleetFile({"need": np.ones(many)}, "name", names, list(range(2, many + 2)), "line", written, ())


@pytest.mark.parametrize(
    ("text", "hours", "overnight"),
    [
        ("0-13", tuple(range(14)), False),
        ("7", (7,), False),
        ("0-5,22,23", (0, 1, 2, 3, 4, 5, 22, 23), False),
        ("22-5", (22, 23, 0, 1, 2, 3, 4, 5), True),
        ("22,23,0-5", (22, 23, 0, 1, 2, 3, 4, 5), True),
        (" 23 - 0 ", (23, 0), True),
        ("5-4", (*range(5, 24), *range(5)), True),
    ],
)
def test_hours_of_a_plan(text, hours, overnight):
    assert span_of(text) == (hours, overnight)


@pytest.mark.parametrize(
    "text", ["", "24", "3-25", "22,3,23", "22-5,4", "22-5,21-22", "1;2", "a-b", "1-2-3", "20,1,21"]
)
def test_hours_that_are_none(text):
    with pytest.raises(ez.InputError, match="^--hours: "):
        span_of(text)


def by_the_minute(arrive, depart, span):
    """Each minute of 24 hours from the first hour on: is the vehicle there?"""
    first, counts = span.hours[0] * 60, np.zeros(len(span.hours))
    for minute in range(1440):
        clock = (first + minute) % 1440
        there = (clock - arrive) % 1440 < (depart - arrive) % 1440
        hour = clock // 60
        if there and hour in span.hours:
            counts[span.hours.index(hour)] += 1 / 60
    return counts


@pytest.mark.parametrize("text", ["22-5", "0-23", "8-17", "0-5,22,23", "18-8"])
def test_stays_are_counted_to_the_minute(text):
    span = span_of(text)
    first, planned = span.hours[0] * 60, [(hour - span.hours[0]) % 24 for hour in span.hours]
    for arrive, depart in itertools.product(range(0, 1440, 95), range(35, 1440, 115)):
        if arrive == depart:
            continue
        start = (arrive - first) % 1440
        end = start + (depart - arrive) % 1440
        before = any(minute < end - 1440 for hour in planned for minute in (60 * hour,))
        after = any(60 * hour + 59 >= start and 60 * hour < end for hour in planned)
        given = fleet(arrive=[""]), [Stay(arrive / 60, depart / 60)], span
        if before and after:
            with pytest.raises(ez.InputError, match="cuts in two"):
                presence(*given)
        else:
            assert presence(*given)[0] == pytest.approx(by_the_minute(arrive, depart, span), abs=1e-9)


def test_a_refused_stay_names_hours_that_hold_it():
    with pytest.raises(ez.InputError, match=r"--hours 22-6\.$"):
        presence(fleet(arrive=["22:30"], depart=["6:15"]), [Stay(22.5, 6.25)], span_of("0-23"))
    assert presence(fleet(arrive=[""]), [Stay(22.5, 6.25)], span_of("22-6"))[0] == pytest.approx([0.5, *[1] * 7, 0.25])


def test_times_as_people_write_them():
    cells = [
        "22",
        "22:00",
        "7h30",
        "22:00:30",
        "2024-05-31T22:00",
        "2024-05-31 22:15",
        "2024-05-31T20:00Z",
        "24:00",
        "",
        "6h",
    ]
    found = [stay.arrive for stay in stays(fleet(arrive=cells), "Europe/Amsterdam")]
    assert found == pytest.approx([22, 22, 7.5, 22 + 1 / 120, 22, 22.25, 22, 0, None, 6])


def test_a_whole_day_by_dates_is_all_the_time():
    given = fleet(arrive=["2024-05-01T18:00"], depart=["2024-05-02T18:00"])
    assert stays(given, "UTC") == [Stay(None, None)]


def test_one_of_two_times():
    span = span_of("22-5")
    assert presence(fleet(arrive=["23:30"]), [Stay(23.5, None)], span)[0] == pytest.approx([0, 0.5, 1, 1, 1, 1, 1, 1])
    assert presence(fleet(depart=["1:15"]), [Stay(None, 1.25)], span)[0] == pytest.approx([1, 1, 1, 0.25, 0, 0, 0, 0])
    assert presence(fleet(depart=["6"]), [Stay(None, 6.0)], span)[0] == pytest.approx([1] * 8)


@pytest.mark.parametrize("cell", ["22.30", "midnight", "25", "22:60", "2024-13-01T00:00", "-3"])
def test_times_that_are_none(cell):
    with pytest.raises(ez.InputError, match="^--fleet: line 2 .*no time of day"):
        stays(fleet(arrive=[cell]), "UTC")
