"""From quoted prices to whole days, by rule. The same for every source.

1. Rows for one time: equal ones count once, contradicting ones are averaged.
2. Parts of an hour (30, 15, … minutes) are averaged to the hour; where a part is missing, those that are there.
3. An hour that the clock repeats in autumn is the mean of the two.
4. A gap of at most `fill` hours in a row, and so an hour that the clock skips in spring, lies on the straight line
   between the hour before and the hour after it, across midnight too; at either end of the data it takes the one
   neighbour that it has.
5. A day that still lacks one of the hours asked for is dropped.
Of nights (`overnight`) a row has the evening of its day and the morning of the next; the last day, whose morning is not
there, is no night, and a night is dropped if one of its own hours is missing.
"""

import datetime
import zoneinfo
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

import epszero as ez
from epszero.datasets._inputs import PER_MWH, Asked, refuse
from epszero.datasets._prices import Prices, counted, listed

FloatArray = NDArray[np.float64]

MARKET = (-500.0, 4000.0)  # EUR/MWh, the harmonised limits of the day-ahead market, cap as raised in May 2022
DAY = datetime.timedelta(days=1)
FLAGS = {  # a column of the hourly table: what was done, and why
    "skipped": ("filled", "the clock skips it"),
    "missing": ("filled", "missing"),
    "twice": ("averaged", "the clock repeats it"),
    "partial": ("averaged", "parts are missing"),
    "contradicting": ("averaged", "rows contradict"),
    "repeated": ("merged", "rows repeat"),
}


CELLS = {"hour": pl.Int64, "evening": pl.Boolean}


@dataclass(frozen=True, eq=False)
class Quotes:
    """What was read: `table` has day, hour, offset (seconds from UTC), part (its time), minutes (its length), price."""

    table: pl.DataFrame
    source: str
    notes: tuple[str, ...] = ()
    dated: bool = True


def local(series: pl.DataFrame, time_zone: str) -> pl.DataFrame:
    """Times `utc` (aware) and `price` in EUR/MWh, by the local clock. A day's prices are as long as its least step."""
    here = pl.col("utc").dt.convert_time_zone(time_zone)
    table = series.drop_nulls().with_columns(
        day=here.dt.date(),
        hour=here.dt.hour().cast(pl.Int64),
        offset=(here.dt.base_utc_offset() + here.dt.dst_offset()).dt.total_seconds(),
        part=pl.col("utc").dt.epoch("s"),
    )
    steps = table.select("day", "part").unique().sort("part").group_by("day", maintain_order=True)
    lengths = steps.agg(seconds=pl.col("part").diff().min().fill_null(3600).clip(upper_bound=3600))
    odd = lengths.filter(3600 % pl.col("seconds") != 0)
    if odd.height:
        refuse(
            "prices",
            f"those of {odd['day'][0]} are {odd['seconds'][0] / 60:g} minutes apart, which no hour is made of",
            "Pass prices per hour, or per equal parts of it",
        )
    minutes = lengths.select("day", minutes=pl.col("seconds") / 60)
    return table.join(minutes, on="day").select("day", "hour", "offset", "part", "minutes", "price")


def mended(quotes: Quotes, asked: Asked) -> Prices:
    """The days asked for, whole, by the rules above."""
    hourly = _filled(_hourly(quotes.table), asked.fill)
    first, last = (hourly["day"][place] for place in (0, -1))
    if asked.evening is not None:
        last -= DAY  # its morning is not there
        if last < first:
            refuse("hours", "go beyond midnight, but the data have one day only", "Pass prices of the next day, too")
    chosen = hourly.filter(pl.col("day").is_between(asked.start or first, min(asked.end or last, last)))
    if chosen.height == 0:
        name, day, side = (
            ("start", asked.start, "after") if (asked.start or first) > last else ("end", asked.end, "before")
        )
        refuse(name, f"{day} is {side} all days of the data", f"Choose days between {first} and {last}")
    days = chosen["day"].gather_every(24).to_numpy().astype(object)
    values = chosen["price"].to_numpy().reshape(-1, 24)[:, asked.hours]
    if asked.evening is not None:
        shifted = hourly.filter(pl.col("day").is_between(days[0] + DAY, days[-1] + DAY))
        mornings = shifted["price"].to_numpy().reshape(-1, 24)
        values[:, asked.evening :] = mornings[:, asked.hours[asked.evening :]]
    whole = np.isfinite(values).all(axis=1)
    dropped = tuple(days[~whole].tolist())
    if not whole.any():
        refuse(
            "prices",
            f"none of the {counted(len(days), 'day')} from {days[0]} to {days[-1]} is whole: "
            f"each lacks hours, more than {asked.fill} in a row",
            "Choose other days or hours, or raise fill",
        )
    kept = tuple(days[whole].tolist())
    notes = quotes.notes
    if not quotes.dated and dropped:
        numbers = tuple(int(row) for row in np.flatnonzero(~whole))
        notes = (*notes, f"{counted(len(dropped), 'row')} left out for larger gaps: {listed(numbers)}.")
    return Prices(
        samples=_samples(values[whole], kept if quotes.dated else (), asked),
        days=kept if quotes.dated else (),
        hours=asked.hours,
        unit=asked.unit,
        time_zone=asked.time_zone,
        source=quotes.source,
        mended=_report(hourly, kept, asked, quotes.dated),
        overnight=asked.evening is not None,
        dropped=dropped if quotes.dated else (),
        notes=notes,
    )


def _hourly(table: pl.DataFrame) -> pl.DataFrame:
    """Rules 1 to 3: one row per day and hour there is."""
    price = pl.col("price")
    times = table.group_by("day", "hour", "offset", "part", "minutes").agg(
        price=price.mean(), least=price.min(), repeated=pl.len() > 1, contradicting=price.min() < price.max()
    )
    times = times.with_columns(pl.when("contradicting").then(price).otherwise("least").alias("price"))
    noted = [pl.col(name).any() for name in ("repeated", "contradicting")]
    parts = times.sort("part").group_by("day", "hour", "offset", "minutes", maintain_order=True)
    hours = parts.agg(price.mean(), *noted, partial=pl.len() < 60 / pl.col("minutes").first())
    clock = hours.sort("offset").group_by("day", "hour", maintain_order=True)
    whole = clock.agg(price.mean(), *noted, pl.col("partial").any(), twice=pl.len() > 1)
    return whole.with_columns(repeated=pl.col("repeated") & ~pl.col("contradicting"))


def _filled(hours: pl.DataFrame, fill: int) -> pl.DataFrame:
    """Rule 4, over all 24 hours of every day from the first to the last; `gap` marks what was filled."""
    days = pl.date_range(pl.col("day").min(), pl.col("day").max()).alias("day")
    grid = hours.select(days).join(pl.DataFrame({"hour": range(24)}), how="cross", maintain_order="left_right")
    price, run = pl.col("price"), pl.col("price").is_null().rle_id()
    near = pl.coalesce(price.interpolate(), price.forward_fill(), price.backward_fill())
    table = grid.join(hours, on=["day", "hour"], how="left", maintain_order="left")
    return table.with_columns(
        pl.when(price.is_not_null() | (pl.len().over(run) <= fill)).then(near).alias("price"),
        pl.col("repeated", "contradicting", "partial", "twice").fill_null(value=False),
        gap=price.is_null(),
    )


def _report(hourly: pl.DataFrame, kept: tuple[datetime.date, ...], asked: Asked, dated: bool) -> pl.DataFrame:
    """A line per cell of the samples that is not as it was read."""
    rows = pl.DataFrame({"day": kept, "row": range(len(kept))}, schema={"day": pl.Date, "row": pl.Int64})
    zone = zoneinfo.ZoneInfo(asked.time_zone)
    table = rows.with_columns(evening=pl.lit(value=True))
    wanted = pl.DataFrame({"hour": asked.hours, "evening": [True] * len(asked.hours)}, schema=CELLS)
    if asked.evening is not None:
        table = pl.concat([table, rows.with_columns(pl.col("day") + DAY, evening=pl.lit(value=False))])
        first = [place < asked.evening for place in range(len(asked.hours))]
        wanted = pl.DataFrame({"hour": asked.hours, "evening": first}, schema=CELLS)
    touched = (
        hourly.filter(pl.any_horizontal("gap", *list(FLAGS)[2:]))
        .join(table, on="day", maintain_order="left")
        .join(wanted, on=["hour", "evening"], how="semi", maintain_order="left")
        .select("row", "day", "hour", "gap", *list(FLAGS)[2:])
    )
    skips = [
        gap and dated and not _exists(day, hour, zone) for day, hour, gap in touched.select("day", "hour", "gap").rows()
    ]
    flagged = touched.with_columns(skipped=pl.Series(skips, dtype=pl.Boolean)).with_columns(
        missing=pl.col("gap") & ~pl.col("skipped"), day=pl.col("day") if dated else pl.lit(None, pl.Date)
    )
    found = [
        flagged.filter(pl.col(flag)).select("row", "day", "hour", what=pl.lit(what), why=pl.lit(why))
        for flag, (what, why) in FLAGS.items()
    ]
    return pl.concat(found)


def _exists(day: datetime.date, hour: int, zone: zoneinfo.ZoneInfo) -> bool:
    """Whether the clock of the zone shows this hour on this day."""
    moment = datetime.datetime(day.year, day.month, day.day, hour, tzinfo=zone)
    return moment.astimezone(datetime.UTC).astimezone(zone).replace(tzinfo=None) == moment.replace(tzinfo=None)


def _samples(values: FloatArray, days: tuple[datetime.date, ...], asked: Asked) -> ez.Samples:
    """In the unit and with the support asked for."""
    scale = PER_MWH[asked.unit]
    word = asked.support if isinstance(asked.support, str) else None
    support = None if isinstance(asked.support, str) else asked.support
    if word == "market":
        beyond = np.argwhere((values < MARKET[0]) | (values > MARKET[1]))
        if beyond.size:
            row, column = beyond[0]
            place = f"on {days[row]}" if days else f"in row {row}"
            refuse(
                "support",
                f"the price {values[row, column]:g} EUR/MWh of hour {asked.hours[column]} {place} is beyond "
                f"the market's limits, {MARKET[0]:g} to {MARKET[1]:g} EUR/MWh",
                "Check the unit; else pass support=None, or a set that holds every price that can occur",
            )
        support = ez.sets.Box(MARKET[0] / scale, MARKET[1] / scale)
    elif word == "pool":
        support = ez.sets.Box(values.min(axis=0) / scale, values.max(axis=0) / scale)
    return ez.Samples(values / scale, support, [f"h{hour:02d}" for hour in asked.hours])
