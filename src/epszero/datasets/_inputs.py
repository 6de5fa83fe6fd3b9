"""What every loader is asked: which hours, days, unit, support, clock, and how long a gap may be filled.

Everything is checked before a file is opened or a server is called.
"""

import datetime
import difflib
import os
import zoneinfo
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, Protocol, TypedDict, cast

import numpy as np

import epszero as ez

PathLike = str | os.PathLike[str]
Day = str | datetime.date

PER_MWH = {"EUR/kWh": 1000.0, "EUR/MWh": 1.0, "ct/kWh": 10.0}  # a price in EUR/MWh, divided by this, is in the unit


class PriceSet(Protocol):
    """A set that holds every price that can occur, such as `ez.sets.Box`."""

    def contains(self, v: Any, tol: float = ..., /) -> Any: ...


Support = Literal["market", "pool"] | PriceSet | None


class Form(TypedDict, total=False):
    """How prices are handed out, the same for every loader; all by name."""

    hours: Iterable[int]  # of the local day, 0 to 23, in the order of the columns; all 24
    overnight: bool  # hours that follow a later one belong to the next day: 22, 23, 0, 1; False
    unit: str  # "EUR/kWh" (default), "EUR/MWh" or "ct/kWh"
    support: Support  # "market" (default), "pool", None, or a set
    time_zone: str  # whose clock days and hours follow; "Europe/Amsterdam"
    fill: int  # the longest gap, in hours, that is filled from its neighbours; 2


class Options(Form, total=False):
    """What every reader of data that are at hand takes by name."""

    start: Day | None  # first day, ISO or datetime.date; the first there is
    end: Day | None  # last day, inclusive; the last there is


@dataclass(frozen=True)
class Asked:
    """The options, checked."""

    hours: tuple[int, ...]
    start: datetime.date | None
    end: datetime.date | None
    unit: str
    support: Support
    time_zone: str
    fill: int
    evening: int | None = None  # how many of the hours belong to the first of two days; None where all are of one


def refuse(argument: str, rule: str, remedy: str) -> NoReturn:
    """Raise `ez.InputError` with one sentence and its remedy."""
    raise ez.InputError.about(argument, rule, remedy)


def checked(options: Mapping[str, Any]) -> Asked:
    """The options with their defaults filled in; a misspelt one is answered with the nearest."""
    known = Options.__annotations__
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else f"Choose among {', '.join(known)}"
            refuse(name, "is not an option of a loader", remedy)
    start, end = (_day(name, options.get(name)) for name in ("start", "end"))
    if start is not None and end is not None and start > end:
        refuse("start", f"{start} is after end, {end}", "Exchange the two")
    hours = _hours(options.get("hours", range(24)))
    return Asked(
        hours,
        start,
        end,
        checked_unit("unit", options.get("unit", "EUR/kWh")),
        _support(options.get("support", "market")),
        _time_zone(options.get("time_zone", "Europe/Amsterdam")),
        _fill(options.get("fill", 2)),
        _evening(options.get("overnight", False), hours),
    )


def checked_unit(argument: str, unit: object) -> str:
    """One of the three units."""
    if not isinstance(unit, str) or unit not in PER_MWH:
        refuse(argument, f"must be {' or '.join(map(repr, PER_MWH))}, but it is {unit!r}", "Pass one of them")
    return unit


def name_of(argument: str, value: object) -> str | None:
    """A name, or None where none is given."""
    if value is not None and not (isinstance(value, str) and value.strip()):
        refuse(argument, f"must be a name, but it is {value!r}", f"Write for instance {argument}='NL'")
    return value


def _hours(hours: Any) -> tuple[int, ...]:
    remedy = "Pass distinct whole numbers from 0 to 23, for instance range(14)"
    if isinstance(hours, str | bytes) or not isinstance(hours, Iterable):
        refuse("hours", f"must be a collection of hours, but it is {hours!r}", remedy)
    try:
        listed = tuple(cast("Iterable[Any]", hours))
    except TypeError:
        refuse("hours", f"must be a collection of hours, but it is {hours!r}", remedy)
    if not listed:
        refuse("hours", "names no hour", remedy)
    for hour in listed:
        if isinstance(hour, bool | np.bool_) or not isinstance(hour, int | np.integer) or not 0 <= int(hour) <= 23:
            refuse("hours", f"must be whole numbers from 0 to 23, but one is {hour!r}", remedy)
        if listed.count(hour) > 1:
            refuse("hours", f"names {hour} more than once", remedy)
    return tuple(int(hour) for hour in listed)


def _evening(overnight: object, hours: tuple[int, ...]) -> int | None:
    """How many hours come before midnight, where a row goes on beyond it."""
    if not isinstance(overnight, bool | np.bool_):
        refuse("overnight", f"must be True or False, but it is {overnight!r}", "Pass one of them")
    if not overnight:
        return None
    falls = [place for place in range(1, len(hours)) if hours[place] < hours[place - 1]]
    if len(falls) > 1 or (falls and hours[-1] > hours[0]):
        refuse(
            "hours",
            f"{', '.join(map(str, hours))} are not within 24 hours on end, so they are no night",
            "Write the evening first and then the morning, as in (22, 23, 0, 1)",
        )
    return falls[0] if falls else None


def _day(argument: str, day: Any) -> datetime.date | None:
    if isinstance(day, datetime.datetime):
        return day.date()
    if day is None or isinstance(day, datetime.date):
        return day
    try:
        return datetime.date.fromisoformat(day)
    except (TypeError, ValueError):
        refuse(argument, f"must be a date, but it is {day!r}", 'Write it as "2024-12-31", or pass a datetime.date')


def _support(support: Support | bool) -> Support:
    """None, one of the two words, or a set."""
    if support is None or isinstance(support, bool):
        return "market" if support else None
    if isinstance(support, str) and support in ("market", "pool"):
        return support
    if not callable(getattr(support, "contains", None)):
        refuse(
            "support",
            f'must be "market", "pool", None or a set, but it is {support!r}',
            "Pass one of these, for instance ez.sets.Box(-0.5, 4.0)",
        )
    return support


def _time_zone(name: Any) -> str:
    try:
        zoneinfo.ZoneInfo(name)
    except (TypeError, ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        near = difflib.get_close_matches(str(name), zoneinfo.available_timezones(), n=1)
        refuse(
            "time_zone",
            f"there is no time zone {name!r}",
            f"Did you mean {near[0]!r}?" if near else 'Pass an IANA name such as "Europe/Amsterdam"',
        )
    return name


def _fill(fill: Any) -> int:
    if isinstance(fill, bool) or not isinstance(fill, int | np.integer) or not 0 <= fill <= 23:
        refuse("fill", f"must be a whole number of hours from 0 to 23, but it is {fill!r}", "Pass for instance 2")
    return int(fill)
