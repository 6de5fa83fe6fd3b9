"""Networks and trips in the TNTP format of the collection "Transportation Networks for Research", as it is described.

A file begins with metadata, `<NAME> value` a line, up to `<END OF METADATA>`; `~` begins a comment, `;` ends a record.
A network has one link a line: tail, head, capacity, length, free-flow time, b, power, speed limit, toll, type; it takes
free · (1 + b (v/capacity)^power), plus `<TOLL FACTOR>` · toll + `<DISTANCE FACTOR>` · length where the metadata have
them. Nodes below `<FIRST THRU NODE>` are not passed through. Trips are `Origin i`, then `j : demand;` as often as there
are destinations. With power 0 or b = 0 a link takes free · (1 + b), whatever its capacity. Trips of nobody, and those
that end where they begin, are left out.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from epszero.models._inputs import PathLike, refuse
from epszero.models._network import Edge, Trip

FIELDS = ("tail", "head", "capacity", "length", "free-flow time", "b", "power", "speed limit", "toll", "type")
NEEDED = 7  # of these
END = "END OF METADATA"
TAG = re.compile(r"<([^<>]*)>(.*)", re.DOTALL)
MISCOUNT = 1e-3  # of the total demand that metadata promise: they are rounded


@dataclass(frozen=True)
class Streets:
    """What a network file says."""

    edges: tuple[Edge, ...]
    closed: frozenset[int]  # nodes that are not passed through
    zones: int | None


def read_network(path: PathLike) -> Streets:
    """Links of a `_net.tntp` file."""
    page = _Page("network", path)
    told, body = page.parts()
    first = int(told.get("FIRST THRU NODE", 1.0))
    toll, distance = told.get("TOLL FACTOR", 0.0), told.get("DISTANCE FACTOR", 0.0)
    edges: list[Edge] = []
    for line, text in body:
        fields = text.rstrip("; \t").split()
        if len(fields) < NEEDED:
            page.refuse(
                line,
                f"has {len(fields)} fields, but a link needs {NEEDED}: {', '.join(FIELDS[:NEEDED])}",
                "Complete the line, or put ~ before a comment",
            )
        numbers = [page.number(line, one, name) for one, name in zip(fields, FIELDS, strict=False)]
        values: dict[str, float] = dict(zip(FIELDS, numbers, strict=False))
        edges.append(_link(page, line, values, toll * values.get("toll", 0.0) + distance * values["length"]))
    if not edges:
        page.refuse(None, "has no links", "Pass a file with one link a line after the metadata")
    page.same(told, "NUMBER OF LINKS", len(edges), "links")
    nodes: set[int] = {int(str(node)) for edge in edges for node in (edge.tail, edge.head)}
    most = told.get("NUMBER OF NODES")
    beyond = max(nodes) if most is not None and max(nodes) > most else None
    if beyond is not None:
        page.refuse(None, f"has a node {beyond}, but <NUMBER OF NODES> is {most:g}", "Correct one of the two")
    zones = told.get("NUMBER OF ZONES")
    return Streets(
        tuple(edges), frozenset(node for node in nodes if node < first), None if zones is None else int(zones)
    )


def _link(page: "_Page", line: int, values: dict[str, float], extra: float) -> Edge:
    tail, head = (page.whole(line, values[name], name) for name in ("tail", "head"))
    capacity, free, b, power = (values[name] for name in ("capacity", "free-flow time", "b", "power"))
    if tail == head:
        page.refuse(line, f"leads from {tail} to itself", "Drop the line")
    for name in ("capacity", "free-flow time", "b", "power"):
        if values[name] < 0:
            page.refuse(line, f"has {name} {values[name]:g}, which must be at least 0", "Correct it")
    if free + extra < 0:
        page.refuse(line, f"takes {free + extra:g} when it is empty, less than no time", "Correct time, toll or length")
    if b == 0 or power == 0 or free == 0:
        return Edge(tail, head, free * (1 + b * (power == 0)) + extra)
    if capacity == 0:
        page.refuse(line, "has capacity 0, but its time grows with the flow", "Give it a capacity, or b = 0")
    if power < 1:
        page.refuse(line, f"has power {power:g}, which must be 0 or at least 1", "Correct it")
    try:
        slope = free * b * math.exp(-power * math.log(capacity))
    except OverflowError:
        page.refuse(line, f"has capacity {capacity:g} at power {power:g}, beyond float64", "Use larger units of flow")
    return Edge(tail, head, free + extra, slope, power)


def read_trips(path: PathLike) -> tuple[Trip, ...]:
    """Trips of a `_trips.tntp` file, but for those of nobody and those that end where they begin."""
    page = _Page("trips", path)
    told, body = page.parts()
    trips: list[Trip] = []
    seen: set[tuple[int, int]] = set()
    origin: int | None = None
    total, zones = 0.0, told.get("NUMBER OF ZONES", math.inf)
    for line, text in body:
        words = text.split()
        if words[0].lower() == "origin":
            if len(words) != 2:
                page.refuse(line, f"must be 'Origin' and a number, but it is {text!r}", "Write one origin a line")
            origin = page.zone(line, words[1], "origin", zones)
            continue
        for record in filter(None, (one.strip() for one in text.split(";"))):
            parts = record.split(":")
            if len(parts) != 2:
                page.refuse(line, f"must be 'destination : demand;', but it is {record!r}", "Write it so")
            if origin is None:
                page.refuse(line, "comes before the first 'Origin'", "Begin with a line such as 'Origin 1'")
            destination = page.zone(line, parts[0].strip(), "destination", zones)
            demand = page.number(line, parts[1].strip(), "demand")
            if demand < 0:
                page.refuse(line, f"has demand {demand:g}, which must be at least 0", "Correct it")
            if (origin, destination) in seen:
                page.refuse(line, f"has the trip from {origin} to {destination} a second time", "Drop one of the two")
            seen.add((origin, destination))
            total += demand
            if demand > 0 and origin != destination:
                trips.append((origin, destination, demand))
    if not trips:
        page.refuse(None, "has no trips", "Pass a file with demands after the metadata")
    promised = told.get("TOTAL OD FLOW", total)
    if abs(promised - total) > MISCOUNT * max(total, promised):
        page.refuse(
            None, f"has demands of {total:g} in all, but <TOTAL OD FLOW> is {promised:g}", "Is the file complete?"
        )
    return tuple(trips)


class _Page:
    """A file that is read line by line, and what is said of it."""

    def __init__(self, argument: str, path: PathLike) -> None:
        self.argument, self.path = argument, Path(path)
        try:
            self.text = self.path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            refuse(argument, f"there is no file {str(self.path)!r}", "Check the path")
        except (OSError, UnicodeDecodeError) as error:
            refuse(argument, f"{str(self.path)!r} cannot be read as text ({error})", "Check the file")

    def refuse(self, line: int | None, rule: str, remedy: str) -> NoReturn:
        where = f"{self.argument}: {self.path.name}" + ("" if line is None else f", line {line}")
        refuse(where, rule, remedy)

    def parts(self) -> tuple[dict[str, float], list[tuple[int, str]]]:
        """The numbers among the metadata, and the lines after them."""
        lines = self._lines()
        told: dict[str, float] = {}
        for line, text in lines:
            tag = TAG.match(text)
            if tag is None:
                self.refuse(line, f"comes before <{END}>", f"Write <{END}> after the metadata")
            name, value = tag[1].strip().upper(), tag[2].strip()
            if name == END:
                return told, list(lines)
            if name.startswith(("NUMBER OF", "FIRST", "TOTAL")) or name.endswith("FACTOR"):
                told[name] = self.number(line, value, f"<{name}>")
        self.refuse(None, f"has no <{END}>", "Write it after the metadata, or pass another file")

    def _lines(self) -> Iterator[tuple[int, str]]:
        for line, text in enumerate(self.text.splitlines(), start=1):
            kept = text.split("~")[0].strip()
            if kept.strip("; \t"):
                yield line, kept

    def number(self, line: int, text: str, name: str) -> float:
        try:
            value = float(text)
        except ValueError:
            self.refuse(line, f"has {name} {text!r}, which is no number", "Correct it")
        if not math.isfinite(value):
            self.refuse(line, f"has {name} {text!r}, which is not finite", "Correct it")
        return value

    def whole(self, line: int, value: float, name: str) -> int:
        if value != int(value) or value < 1:
            self.refuse(line, f"has {name} {value:g}, which must be a whole number ≥ 1", "Correct it")
        return int(value)

    def zone(self, line: int, text: str, name: str, most: float) -> int:
        found = self.whole(line, self.number(line, text, name), name)
        if found > most:
            self.refuse(line, f"has {name} {found}, but <NUMBER OF ZONES> is {most:g}", "Correct one of the two")
        return found

    def same(self, told: dict[str, float], name: str, found: int, what: str) -> None:
        if name in told and told[name] != found:
            self.refuse(None, f"has {found} {what}, but <{name}> is {told[name]:g}", "Is the file complete?")
