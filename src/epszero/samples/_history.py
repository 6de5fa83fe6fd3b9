"""Which samples are whose: so that data which a solution has seen are not taken for fresh ones.

Every row gets a number when it comes in, and keeps it when rows are selected, copied or pickled. Equal data get equal
numbers, on any machine, unless they could be equal by chance. A draw with replacement makes new rows (independent ones
of the law of the pool), but not new for the pool they were drawn from, nor for draws with the same random numbers: both
are remembered. The same draw from the same pool gives the same rows.

Rows are "drawn at random" as long as their values had no say in which of them are here: whole draws, slices, and random
parts, by other random numbers than those that drew them. Rows that were named one by one, or by a mask, are "chosen".
"""

import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero.samples._streams import Stream, common
from epszero.samples._values import Leaves, content

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

BITS = 62  # of a row's number: its data set begins somewhere, and the rows count on from there


@dataclass(frozen=True, eq=False)
class Draw:
    """One draw with replacement."""

    size: int  # rows of the pool
    sources: tuple[Rows, ...]  # the pool, and those it was drawn from: the ends of every stretch of numbers
    stream: Stream
    before: tuple[Stream, ...]  # random numbers that made the pool what it is

    def depends_on(self, rows: Rows) -> bool:
        """Whether one of the rows is in the pool, or in those that the pool was drawn from."""
        return any(bool(_within(rows, stretches).any()) for stretches in self.sources)

    def related(self, other: "Draw") -> bool:
        """Whether both were drawn from some rows: then they have equal values."""
        begins = [[rows[0] for rows in draw.sources] for draw in (self, other)]
        return any(map(self.depends_on, begins[1])) or any(map(other.depends_on, begins[0]))


@dataclass(frozen=True, eq=False)
class History:
    """The numbers of the rows, and where they come from."""

    rows: Rows
    origins: dict[int, Draw | None]  # by the number at which they begin: a draw, or data from outside
    choices: tuple[Stream, ...] = ()  # random numbers that had a say in which rows are here
    chosen: bool = False  # whether values may have had a say in it, too

    @staticmethod
    def new(leaves: Leaves) -> "History":
        """Of rows that come from outside."""
        known = content(leaves)
        first = secrets.randbits(BITS) if known is None else _number(known)
        return History(first + np.arange(len(leaves[0]), dtype=np.int64), {first: None})

    @property
    def repeated(self) -> int:
        """How many rows are there again, or come with what they were drawn from, or from the same random numbers."""
        again = int(np.count_nonzero(np.diff(np.sort(self.rows)) == 0))
        parts = list(self._parts())
        if len(parts) == 1:
            return again
        for place, (_, draw, many) in enumerate(parts):
            others = [other for _, other, _ in parts[:place] if other is not None]
            if draw is not None and (
                draw.depends_on(self.rows) or any(draw.stream.meets(other.stream) for other in others)
            ):
                again += many
        return min(again, len(self.rows))

    @property
    def pool(self) -> int | None:
        """Of how many rows these are random draws; None where they are not, or not all of one draw."""
        parts = list(self._parts())
        draw = parts[0][1]
        return (
            draw.size if len(parts) == 1 and draw is not None and len(draw.sources) == 1 and not self.chosen else None
        )

    def sliced(self, index: slice) -> "History":
        """Some of the rows, by their place only."""
        return replace(self, rows=self.rows[index])

    def picked(self, index: Any) -> "History":
        """Some of the rows, which their values may have had a say in."""
        return replace(self, rows=self.rows[index], chosen=True)

    def shuffled(self, index: Rows, stream: Stream) -> "History":
        """Some of the rows, at random."""
        known = any(stream.meets(one) for one in self._streams())
        chosen = self.chosen or known
        return History(self.rows[index], self.origins, (*self.choices, stream), chosen)

    def drawn(self, length: int, stream: Stream) -> "History":
        """Rows drawn at random from these, with replacement."""
        first = _number(stream.name + hashlib.sha256(self.rows.tobytes()).digest())
        draws = [draw for _, draw, _ in self._parts() if draw is not None]
        before = tuple(self._streams())
        made = Draw(
            size=len(self.rows),
            sources=(_stretches(self.rows), *(rows for draw in draws for rows in draw.sources)),
            stream=stream,
            before=before,
        )
        known = any(stream.meets(one) for one in before)
        return History(first + np.arange(length, dtype=np.int64), {first: made}, chosen=known)

    def followed_by(self, more: "History") -> "History":
        """These rows, then others. Stretches of one draw are chosen, unless together they are one stretch."""
        rows = np.concatenate([self.rows, more.rows])
        known = {first: draw for one in (self, more) for first, draw, _ in one._parts()}
        pieces = len(known) == 1 and _stretches(rows).shape[1] > 1
        chosen = self.chosen or more.chosen or pieces
        return History(rows, known, tuple(dict.fromkeys((*self.choices, *more.choices))), chosen)

    def shares(self, other: "History") -> bool:
        """Whether some row is both's, or was drawn from the other's, or with random numbers of the other's."""
        if common(self.rows, other.rows):
            return True
        return self._made_with(other) or other._made_with(self)

    def strangers(self, other: "History") -> Flags:
        """Which rows have nothing to do with the other's: of these, equal values would tell something."""
        theirs = {first: draw for first, draw, _ in other._parts()}
        related = [
            first
            for first, draw, _ in self._parts()
            if first in theirs
            or (draw is not None and any(one is not None and draw.related(one) for one in theirs.values()))
        ]
        begins, place = self._places()
        return ~np.isin(begins[place], related)

    def _made_with(self, other: "History") -> bool:
        """Whether draws of these depend on the other's rows, or used random numbers that the other's depend on."""
        for first, draw, _ in self._parts():
            if draw is None:
                continue
            used = [one.stream for begin, one, _ in other._parts() if one is not None and begin != first]
            known = [*used, *other._used_before()]
            if draw.depends_on(other.rows) or any(draw.stream.meets(one) for one in known):
                return True
        return False

    def _streams(self) -> Iterator[Stream]:
        """All random numbers that these rows depend on."""
        yield from (draw.stream for _, draw, _ in self._parts() if draw is not None)
        yield from self._used_before()

    def _used_before(self) -> Iterator[Stream]:
        yield from self.choices
        yield from (stream for _, draw, _ in self._parts() if draw is not None for stream in draw.before)

    def _parts(self) -> Iterator[tuple[int, Draw | None, int]]:
        """The origins of the rows that are here, as they come: where each begins, its draw, how many rows."""
        begins, place = self._places()
        counts = np.bincount(place, minlength=len(begins))
        for at in sorted(np.flatnonzero(counts).tolist(), key=lambda at: int(np.argmax(place == at))):
            yield int(begins[at]), self.origins[int(begins[at])], int(counts[at])

    def _places(self) -> tuple[Rows, Rows]:
        """Where origins begin, in order, and for each row which of them is its own."""
        begins = np.array(sorted(self.origins), dtype=np.int64)
        return begins, np.searchsorted(begins, self.rows, side="right") - 1


def _number(name: bytes) -> int:
    """Where the rows of that name begin."""
    return int.from_bytes(hashlib.sha256(name).digest()[:8], "big") >> (64 - BITS)


def _stretches(rows: Rows) -> Rows:
    """The first and the last of every stretch of numbers on end: 2 × stretches."""
    each = np.sort(rows)
    gaps = np.flatnonzero(np.diff(each) > 1)
    return np.stack([each[np.concatenate([[0], gaps + 1])], each[np.concatenate([gaps, [len(each) - 1]])]])


def _within(rows: Rows, stretches: Rows) -> Flags:
    first, last = stretches
    place = np.searchsorted(first, rows, side="right") - 1
    return (place >= 0) & (rows <= last[np.maximum(place, 0)])
