"""Hours on the command line: which of the day are planned (22-5 goes beyond midnight), and when each vehicle is there.

A plan has hours h_1, h_2, … on end or with gaps, within the 24 hours that follow h_1. A vehicle that arrives at a and
departs at d, on any clock, can use the part of each hour that lies between the two.
"""

import datetime
import itertools
import re
import zoneinfo
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epszero.cli.endings import refuse

if TYPE_CHECKING:
    from epszero.cli.fleet import FleetFile

CLOCK = re.compile(r"(\d{1,2})(?:(?::|h)(\d{2})(?::(\d{2}))?|h)?", re.IGNORECASE)
EPS = 1e-9


class Span(NamedTuple):
    """The hours of a plan."""

    hours: tuple[int, ...]  # on the clock
    overnight: bool  # those that follow a later one are of the next day

    @property
    def names(self) -> list[str]:
        """22:00, 23:00, 00:00."""
        return [f"{hour:02d}:00" for hour in self.hours]

    @property
    def said(self) -> str:
        """From 22:00 to 06:00."""
        on_end = all((b - a) % 24 == 1 for a, b in itertools.pairwise(self.hours))
        if not on_end:
            return f"the hours {', '.join(str(hour) for hour in self.hours)}"
        after = " of the next day" if self.overnight else ""
        return f"from {self.hours[0]:02d}:00 to {self._end:02d}:00{after}"

    @property
    def _end(self) -> int:
        end = self.hours[-1] + 1
        return end % 24 if self.overnight else end


def span_of(text: str) -> Span:
    """`0-13`, `7`, `22-5` or several of these: the hours they name, none of them twice."""
    parts = [re.fullmatch(r"\s*(\d{1,2})\s*(?:-\s*(\d{1,2})\s*)?", part) for part in text.split(",")]
    pairs = [(int(part[1]), int(part[2] or part[1])) for part in parts if part]
    right = len(pairs) == len(parts) and all(max(pair) <= 23 for pair in pairs)
    hours = [hour % 24 for a, b in pairs for hour in range(a, (b if b >= a else b + 24) + 1)] if right else []
    falls = sum(b < a for a, b in itertools.pairwise(hours))
    if not hours or len(set(hours)) < len(hours) or falls > 1 or (falls and hours[-1] > hours[0]):
        refuse(
            "--hours",
            f"{text!r} is not a list of different hours from 0 to 23, within a day and a night",
            "Write --hours 0-13, or 22-5 for a night, or 0-5,22,23",
        )
    return Span(tuple(hours), falls == 1)


class Stay(NamedTuple):
    """When a vehicle is there; hours on the clock, None where the file does not say."""

    arrive: float | None
    depart: float | None

    @property
    def said(self) -> str:
        """From 22:00 to 06:30."""
        begin = "" if self.arrive is None else f"from {_shown(self.arrive)}"
        end = "" if self.depart is None else f"to {_shown(self.depart)}"
        return " ".join(part for part in (begin, end) if part)


def stays(fleet: "FleetFile", time_zone: str) -> list[Stay]:
    """Of every vehicle, from the columns arrive and depart."""
    zone, found = zoneinfo.ZoneInfo(time_zone), list[Stay]()
    for i in range(len(fleet.vehicles)):
        moments = [_moment(fleet, name, i, zone) for name in ("arrive", "depart")]
        (arrive, first), (depart, last) = moments
        if first is not None and last is not None and not datetime.timedelta() < last - first <= HOURS_24:
            refuse(
                "--fleet",
                f"{fleet.who(i)} arrives on {first:%Y-%m-%d at %H:%M} and departs on {last:%Y-%m-%d at %H:%M}",
                "Let it depart after it arrives, within 24 hours",
            )
        whole = first is not None and last is not None and last - first == HOURS_24
        if arrive is not None and depart is not None and abs(arrive % 24 - depart % 24) < EPS and not whole:
            refuse(
                "--fleet",
                f"{fleet.who(i)} arrives and departs at {_shown(arrive)}",
                "Give it two times, or leave both cells empty if it is always there",
            )
        found.append(Stay(None, None) if whole else Stay(arrive, depart))
    return found


HOURS_24 = datetime.timedelta(hours=24)


def presence(fleet: "FleetFile", where: list[Stay], span: Span) -> NDArray[np.float64]:
    """Which part of each hour each vehicle is there, vehicles × hours."""
    there = np.ones((len(where), len(span.hours)))
    begin = np.array([(hour - span.hours[0]) % 24 for hour in span.hours], dtype=float)  # since the first hour
    for i, stay in enumerate(where):
        if stay.arrive is None and stay.depart is None:
            continue
        if stay.arrive is None or stay.depart is None:
            there[i] = _one_end(fleet, i, stay, span, begin)
            continue
        start = (stay.arrive - span.hours[0]) % 24
        end = start + (stay.depart - stay.arrive) % 24
        late, early = _overlap(begin, start, min(end, 24.0)), _overlap(begin, 0.0, end - 24.0)
        if late.any() and early.any():
            refuse(
                "--fleet",
                f"{fleet.who(i)} is there {stay.said}, which --hours cuts in two: it has {span.said}",
                f"Let the hours begin when it arrives, as in --hours {_whole(stay)}",
            )
        there[i] = late + early
    return there


def _one_end(fleet: "FleetFile", i: int, stay: Stay, span: Span, begin: NDArray[np.float64]) -> NDArray[np.float64]:
    """From the first hour, or to the last, where one of the two times is not given."""
    if stay.arrive is not None:
        since = (stay.arrive - span.hours[0]) % 24
        part, word, other = _overlap(begin, since, 24.0), "arrives", "depart"
        inside = since < begin[-1] + 1
    else:
        assert stay.depart is not None
        until = (stay.depart - span.hours[0]) % 24 or 24.0
        part, word, other = _overlap(begin, 0.0, until), "departs", "arrive"
        inside = until <= begin[-1] + 1
    if not inside:
        time = _shown(stay.arrive if stay.arrive is not None else stay.depart or 0.0)
        refuse(
            "--fleet",
            f"{fleet.who(i)} {word} at {time}, outside of --hours, which has {span.said}",
            f"Give its {other}, too, or leave the cell empty if it is there all the time",
        )
    return part


def refuse_unreachable(fleet: "FleetFile", where: list[Stay], caps: NDArray[np.float64], span: Span) -> None:
    """Refuse a vehicle that cannot charge what it needs while it is there, with what it could."""
    need = fleet.columns["need"]
    short = np.flatnonzero(need > caps.sum(axis=1) * (1 + 1e-9))
    if not len(short):
        return
    i = int(short[0])
    most, own = float(caps[i].sum()), float(caps[i].max())
    when = where[i].said or span.said
    how = f"{when} it is never there in the hours of --hours, {span.said}"
    if where[i].said == "":
        how = "its cap is 0"
    if most > 0:
        hours = most / own
        how = f"{when} it can charge {most:g} kWh, {hours:.3g} hours at {own:g} kWh"
    more = f" ({len(short) - 1} more need more than they can charge)" if len(short) > 1 else ""
    refuse(
        "--fleet",
        f"{fleet.who(i)} needs {need[i]:g} kWh, but {how}{more}",
        "Lower its need, raise its cap, or let it stay longer",
    )


def _overlap(begin: NDArray[np.float64], start: float, end: float) -> NDArray[np.float64]:
    """Of each hour that begins there with the time between start and end."""
    part = np.clip(np.minimum(begin + 1, end) - np.maximum(begin, start), 0.0, 1.0)
    return np.where(part > EPS, part, 0.0)


def _moment(
    fleet: "FleetFile", name: str, i: int, zone: zoneinfo.ZoneInfo
) -> tuple[float | None, datetime.datetime | None]:
    """The time on the clock, in hours, and the moment where the cell has a date."""
    cell = (fleet.times.get(name, [""] * len(fleet.vehicles))[i] or "").strip()
    if not cell:
        return None, None
    clock = CLOCK.fullmatch(cell)
    if clock:
        hour, minute, second = (int(part or 0) for part in clock.groups())
        if hour + minute / 60 + second / 3600 <= 24 and minute < 60 and second < 60:
            return (hour + minute / 60 + second / 3600) % 24, None
    else:
        try:
            moment = datetime.datetime.fromisoformat(cell)
        except ValueError:
            pass
        else:
            here = moment.astimezone(zone) if moment.tzinfo is not None else moment
            bare = here.replace(tzinfo=None)
            return bare.hour + bare.minute / 60 + bare.second / 3600, bare
    refuse(
        "--fleet",
        f"{fleet.who(i)} has {cell!r} in the column {name}, which is no time of day",
        "Write it as 22:00, as 22, or as 2024-05-31T22:00",
    )


def _shown(hour: float) -> str:
    minutes = round(hour * 60) % 1440
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _whole(stay: Stay) -> str:
    """Whole hours that hold a stay."""
    assert stay.arrive is not None
    assert stay.depart is not None
    return f"{int(stay.arrive)}-{(int(np.ceil(stay.depart)) - 1) % 24}"
