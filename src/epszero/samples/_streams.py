"""Which random numbers were used: draws that used the same ones are not independent of each other.

A stream is a bit generator as it was, and how many of its raw numbers were then used. To compare two of them both are
made again: they meet where two raw numbers in a row are in both. That holds for every bit generator, and for a
generator that has moved on. Pairs of raw numbers have 64 bits at least, so others meet with probability 1e-7 at most
for a million draws each.
"""

import copy
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero._checks import refuse

SEED_REMEDY = "Pass seed=0, or numpy.random.default_rng(0)"
AHEAD = 4  # raw numbers by which a place in a stream is recognised
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Stream:
    """`used` raw numbers from `start` on, which nobody moves."""

    start: np.random.BitGenerator
    used: int

    @cached_property
    def name(self) -> bytes:
        """Equal for equal starts, and else not."""
        state: Any = self.start.state
        left = (state.get("has_uint32"), state.get("uinteger")) if state.get("has_uint32") else ()
        return hashlib.sha256(_raw(self.start, AHEAD).tobytes() + repr(left).encode()).digest()

    def meets(self, other: "Stream") -> bool:
        """Whether some random numbers are in both."""
        if not (self.used and other.used):
            return False
        return self.name == other.name or common(self._pairs(), other._pairs())

    def _pairs(self) -> NDArray[np.uint64]:
        raw = _raw(self.start, self.used + 1)
        return raw[:-1] * MIX + raw[1:]


def common(some: NDArray[Any], others: NDArray[Any]) -> bool:
    """Whether a number is in both; quicker than NumPy's own way where numbers follow each other."""
    known = np.sort(others)
    place = np.minimum(np.searchsorted(known, some), len(known) - 1)
    return bool((known[place] == some).any())


def generator(seed: Any) -> np.random.Generator:
    """From a seed, or as it is."""
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        refuse("seed", f"must be an integer ≥ 0 or a numpy Generator, but it is {seed!r}", SEED_REMEDY)
    return np.random.default_rng(int(seed))


def drawn_by(
    rng: np.random.Generator, draw: Callable[[np.random.Generator], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], Stream]:
    """What `draw` returns, and the random numbers that it used."""
    start = copy.deepcopy(rng.bit_generator)
    found = draw(rng)
    ahead, most = _raw(rng.bit_generator, AHEAD), len(found) + AHEAD
    for longer in range(4):  # rejections make it longer than there are numbers to draw, but hardly ever
        reach = most * 4**longer
        raw = _raw(start, reach + AHEAD)
        for place in np.flatnonzero(raw[: reach + 1] == ahead[0]):
            if np.array_equal(raw[place : place + AHEAD], ahead):
                return found, Stream(start, int(place))
    return found, Stream(start, most * 4**3)


def _raw(start: np.random.BitGenerator, many: int) -> NDArray[np.uint64]:
    """The next raw numbers, of a copy."""
    return np.asarray(copy.deepcopy(start).random_raw(many), dtype=np.uint64)
