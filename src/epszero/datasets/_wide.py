"""A row per day and a column per hour, or per quarter of one; what the columns are called says when their hours begin.

h00 … h23, also some of them         by their beginning, as `Prices` name their own
0 … 23, 00:00 … 23:00                by their beginning: a column 0, first of all
1 … 24, Hour 1 … Hour 24, … 24:00    by their end: a column 24. Column 1 is 00:00 to 01:00, and the report says so
00:00-01:00 …, HB 0 …, HE 1 …        say it themselves
1 … 25                               counted from midnight, as on the day of autumn; so are 1 … 24 on a day of spring
                                     that has no price in the last
3A, 3B                               the hour that the clock repeats

Where neither 0 nor 24 is there, or 0 comes last, nothing tells, and the file is refused until the user does.
"""

import datetime
import itertools
import re
import zoneinfo
from typing import NamedTuple

import polars as pl

from epszero.datasets._inputs import PER_MWH, Asked
from epszero.datasets._mend import Quotes, local
from epszero.datasets._table import days, prices
from epszero.samples import TextTable

LABEL = re.compile(
    r"(?:(?P<word>hour ending|hour beginning|hour|hr|he|hb|h|stunde|std)[\s_.-]*)?0*(?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d\d)(?::00)?)?\s*(?P<twice>[ab])?(?:\s*(?:-|–|to|bis)\s*(?P<to>\d{1,2}(?::\d\d(?::00)?)?))?"
    r"\s*(?:h|uhr)?",
    re.IGNORECASE,
)
DAY = ("day", "date", "datum", "tag", "delivery date", "delivery day", "delivery_date", "delivery_day")
STEPS = (60, 30, 15)
MIDNIGHT = 24 * 60
ASK = 'Say hour_labels="beginning" if 7 is the hour from 7:00 on, hour_labels="ending" if it is the one until 7:00'


class Label(NamedTuple):
    """What the name of a column says."""

    minutes: int  # since midnight
    word: str  # before the number: "h", "hour", "he", …
    again: bool  # the hour that the clock repeats, once more
    ends: bool  # the column says when it ends, too


class Hours(NamedTuple):
    """When the hours of columns begin."""

    starts: dict[str, int]  # by column, minutes since midnight
    again: frozenset[str]
    step: int  # minutes
    counted: bool  # from midnight, whatever the clock does
    note: str


def hour_columns(table: TextTable) -> dict[str, Label]:
    """The columns that are hours, by name."""
    found: dict[str, Label] = {}
    for name in table.cells.columns:
        match = LABEL.fullmatch(name)
        if (
            match
            and int(match["hour"]) <= 25
            and int(match["minute"] or 0) % 15 == 0
            and int(match["minute"] or 0) < 60
        ):
            minutes = 60 * int(match["hour"]) + int(match["minute"] or 0)
            word = (match["word"] or "").lower()
            found[name] = Label(minutes, word, (match["twice"] or "").lower() == "b", match["to"] is not None)
    return found


def wide(table: TextTable, unit: str, asked: Asked, labels: str | None) -> Quotes:
    """A row per day and a column per hour; rows without dates are read as days in a row."""
    hours = _hours(table, hour_columns(table), labels)
    have = {start // 60 for start in hours.starts.values()}
    absent = [hour for hour in asked.hours if hour not in have]
    if absent:
        table.refuse(f"has no column for hour {absent[0]}", f"Choose hours among {sorted(have & set(range(24)))}")
    label = next((name for name in table.cells.columns if name.strip().lower() in DAY), None)
    if label is None and (asked.start or asked.end):
        table.refuse("has no column 'day' or 'date', so start and end cannot be found", "Leave both out")
    if label is None:
        dates = pl.Series("day", range(table.cells.height)).cast(pl.Date)
    else:
        dates = days(table, label)
        if dates.null_count():
            table.refuse_row(int(dates.is_null().arg_true()[0]), "no date", "Give it one")
    names = list(hours.starts)
    columns = [column.alias(name) for name, column in zip(names, prices(table, *names), strict=True)]
    long = pl.DataFrame(columns).with_columns(day=dates).unpivot(index="day", variable_name="name", value_name="price")
    long = long.with_columns(
        pl.col("price") * PER_MWH[unit],
        minute=pl.col("name").replace_strict(hours.starts, return_dtype=pl.Int64),
        again=pl.col("name").is_in(list(hours.again)),
    )
    quoted, note = _quoted(long, hours, asked, dated=label is not None)
    if quoted.height == 0:
        table.refuse("holds no price", "Pass a file with prices")
    notes = tuple(one for one in (hours.note, note) if one)
    return Quotes(quoted, f"{table.name}, a row per day, in {unit}", notes, dated=label is not None)


def _quoted(long: pl.DataFrame, hours: Hours, asked: Asked, *, dated: bool) -> tuple[pl.DataFrame, str]:
    """Quotes by the local clock; days whose columns are counted from midnight are told apart."""
    filled = long.drop_nulls("price")
    shifted = filled.clear()
    note = ""
    if dated and hours.counted:
        filled, shifted = filled.clear(), filled
    elif dated:
        spring = [day for day in long["day"].unique() if _length(day, asked.time_zone) < MIDNIGHT]
        last = MIDNIGHT - hours.step
        have = {
            (day, minute) for day, minute in filled.filter(pl.col("day").is_in(spring)).select("day", "minute").rows()
        }
        moved = [day for day in spring if (day, last) not in have and _skipped(day, asked.time_zone) <= {
            minute for one, minute in have if one == day}]  # fmt: skip
        if moved and last in hours.starts.values():
            shifted, filled = filled.filter(pl.col("day").is_in(moved)), filled.filter(~pl.col("day").is_in(moved))
            note = (
                f"On {moved[0]} the clock skips an hour and the last column is empty: its hours were counted from "
                "midnight."
            )
    plain = filled.select(
        "day",
        hour=pl.col("minute") // 60,
        offset=pl.col("again").cast(pl.Int64),
        part=pl.col("minute") * 60,
        minutes=pl.lit(float(hours.step)),
        price="price",
    ).filter(pl.col("hour") < 24)
    if shifted.height == 0:
        return plain, note
    midnight = pl.col("day").cast(pl.Datetime("us")).dt.replace_time_zone(asked.time_zone).dt.convert_time_zone("UTC")
    moved_rows = shifted.select(utc=midnight + pl.duration(minutes=pl.col("minute")), price="price")
    real = local(moved_rows, asked.time_zone)
    schema = real.schema
    return pl.concat([plain.select([pl.col(name).cast(kind) for name, kind in schema.items()]), real]), note


def _length(day: datetime.date, zone: str) -> int:
    """Minutes of a local day."""
    here = zoneinfo.ZoneInfo(zone)
    ends = [datetime.datetime.combine(one, datetime.time(), here) for one in (day, day + datetime.timedelta(days=1))]
    return int((ends[1].astimezone(datetime.UTC) - ends[0].astimezone(datetime.UTC)).total_seconds()) // 60


def _skipped(day: datetime.date, zone: str) -> set[int]:
    """Whole hours that the clock does not show on that day, in minutes since midnight."""
    here = zoneinfo.ZoneInfo(zone)
    moments = [datetime.datetime.combine(day, datetime.time(hour), here) for hour in range(24)]
    back = [one.astimezone(datetime.UTC).astimezone(here).replace(tzinfo=None) for one in moments]
    return {60 * one.hour for one, seen in zip(moments, back, strict=True) if seen != one.replace(tzinfo=None)}


def _hours(table: TextTable, found: dict[str, Label], labels: str | None) -> Hours:
    """When columns begin, from all their names together and from what the user says."""
    names = {name: label for name, label in found.items() if not label.again}
    minutes = sorted({label.minutes for label in names.values()})
    gaps = [later - earlier for earlier, later in itertools.pairwise(minutes)]
    step = next((one for one in STEPS if all(gap % one == 0 for gap in gaps)), 15)
    counted = 25 * 60 in minutes
    shift, note = _shift(table, names, labels, (minutes, step))
    starts: dict[str, int] = {}
    for name, label in found.items():
        start = label.minutes - shift
        if shift and label.minutes == 0:  # the last of the day, until midnight
            start = MIDNIGHT - shift
        if label.again:
            starts[name] = start
            continue
        twin = next((one for one, begun in starts.items() if begun == start and not found[one].again), None)
        if twin is not None:
            table.refuse(f"has two columns for hour {start // 60}: {twin!r} and {name!r}", "Leave one of them out")
        starts[name] = start
    again = frozenset(name for name, label in found.items() if label.again)
    return Hours(starts, again, step, counted, note)


def _shift(
    table: TextTable, names: dict[str, Label], labels: str | None, found: tuple[list[int], int]
) -> tuple[int, str]:
    """By how many minutes names are later than the beginning of their hours, and what is to be told of it."""
    minutes, step = found
    first, last = min(names, key=lambda name: names[name].minutes), max(names, key=lambda name: names[name].minutes)
    order = list(names)
    said = {label.word in ("he", "hour ending") for label in names.values()}
    told = f"Columns {first!r} to {last!r} were read as hours by their {{}}: {first!r} is {{}}."
    ending = (step, told.format("end", f"{_clock(minutes[0] - step)} to {_clock(minutes[0])}"))
    zero, end = 0 in minutes, max(minutes) >= MIDNIGHT
    result: tuple[int, str] | None = None
    if all(label.ends for label in names.values()) or all(
        label.word in ("hb", "hour beginning") for label in names.values()
    ):
        result = (0, "")
    elif said == {True}:
        result = ending
    elif zero and end:
        table.refuse("has columns for 0 and for 24, so nothing tells whether hours are named by their beginning", ASK)
    elif end:
        result = ending
    elif all(re.fullmatch(r"[hH]\d\d", name) for name in order):  # as `Prices` name their own
        result = (0, "")
    elif zero and (order.index(first) == 0 or order.index(first) != len(order) - 1):
        result = (0, told.format("beginning", f"{_clock(0)} to {_clock(step)}"))
    if labels is None:
        if result is None:
            which = f"{first!r} comes last" if zero else "neither 0 nor 24 among them"
            table.refuse(
                f"has columns {order[0]!r} to {order[-1]!r} for hours, {which}: they may be named by their beginning "
                "or their end",
                ASK,
            )
        return result
    if result is not None and bool(result[0]) != (labels == "ending"):
        meant = "end" if result[0] else "beginning"
        table.refuse(
            f"names hours by their {meant} ({first!r} to {last!r}), but hour_labels is {labels!r}", "Leave it out"
        )
    return ending if labels == "ending" else (0, told.format("beginning", f"from {_clock(minutes[0])} on"))


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
