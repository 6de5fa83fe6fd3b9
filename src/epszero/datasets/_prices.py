"""`Prices`: samples of daily prices, which days they are, and what was mended on the way."""

import datetime
from dataclasses import dataclass
from typing import final

import polars as pl

import epszero as ez

SHOWN = 5  # days that the report names before it only counts

WHY = {  # (what was done, why): how the report says it
    ("filled", "the clock skips it"): "filled from the neighbouring hours, since the clock skips them in spring",
    ("filled", "missing"): "missing and filled from the neighbouring hours",
    ("averaged", "the clock repeats it"): "the mean of two, since the clock repeats them in autumn",
    ("averaged", "parts are missing"): "the mean of those parts of the hour that are there",
    ("averaged", "rows contradict"): "the mean of rows that contradict one another",
    ("merged", "rows repeat"): "given more than once, with the same price",
}


@final
@dataclass(frozen=True, eq=False)
class Prices:
    """One row of `samples` per local day, or per night, named by its evening.

    Prints as a report of what was read, and of what was mended by which rule.

    `mended` has a line per cell that is not as it was read: `row` (of the samples), `day`, `hour`, `what` was done
    ("filled", "averaged", "merged") and `why`. `dropped` are the days between the first and the last that have too
    large gaps.
    """

    samples: ez.Samples
    days: tuple[datetime.date, ...]  # one per row; none where a table has no dates
    hours: tuple[int, ...]  # one per column
    unit: str
    time_zone: str
    source: str
    mended: pl.DataFrame
    dropped: tuple[datetime.date, ...]
    notes: tuple[str, ...] = ()  # what else was done, in sentences
    overnight: bool = False  # a row is a night: hours that follow a later one are of the next day

    def __str__(self) -> str:
        rows, what = len(self.samples), "night" if self.overnight else "day"
        when = f" from {self.days[0]} to {self.days[-1]}" if self.days else ", without dates"
        clock = f", by the clock of {self.time_zone}" if self.days else ""
        lines = [
            f"{counted(rows, what)}{when}, {counted(len(self.hours), 'hour')} each, in {self.unit}{clock}.",
            f"Source: {self.source}.",
            *self.notes,
        ]
        groups = self.mended.group_by("what", "why", maintain_order=True).len().rows()
        lines += [f"{counted(number, 'hour')}: {WHY[what, why]}." for what, why, number in groups]
        if not groups:
            lines.append("No hour was mended.")
        if self.dropped:
            lines.append(f"{counted(len(self.dropped), what)} left out for larger gaps: {listed(self.dropped)}.")
        return "\n".join(lines)


def counted(number: int, what: str) -> str:
    """1 day, 2 days."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(things: tuple[object, ...]) -> str:
    """The first few."""
    shown = ", ".join(str(thing) for thing in things[:SHOWN])
    return shown if len(things) <= SHOWN else f"{shown}, …"
