"""Data that are recognised by their values, where nothing else tells that they were here before.

Rows are not recognised where they may be equal by chance: p, the share of the row that is there most often, bounds the
probability that two independent rows are equal, so k rows on end are equal somewhere in s and m rows with probability
s·m·pᵏ at most.
"""

import hashlib
import math
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from epszero._points import flat_rows
from epszero._types import FloatArray
from epszero.samples._streams import common

Leaves = tuple[FloatArray, ...]

CHANCE = 1e-9  # what does not happen by chance
LOOKED_AT = 1000  # rows that tell how often rows are equal
TELLING = 3  # so many equal rows,
MANY = 0.45  # and such a share of those that are not expected, are not there by chance
BASE = 0x9E3779B97F4A7C15  # of the numbers that stand for runs of rows, modulo 2^64


def content(leaves: Leaves) -> bytes | None:
    """A digest that is equal for equal data only; None for data that others could equal by chance."""
    some = [row.tobytes() for row in flat_rows(tuple(leaf[:LOOKED_AT] for leaf in leaves))]
    most = max(Counter(some).values()) / len(some)
    if len(some) * -math.log(most) < -math.log(CHANCE):
        return None
    text = hashlib.sha256()
    for leaf in leaves:
        text.update(f"{leaf.shape}\n".encode())
        text.update(np.ascontiguousarray(leaf, dtype="<f8").data)
    return text.digest()


def shared_values(leaves: Leaves, others: Leaves) -> bool:
    """Whether so many of the other rows are among these, or so many on end, that it cannot be chance.

    Single rows are compared to seven digits and in full. Where most rows are repetitions, as with few outcomes, they
    tell nothing, but a long run of them does.
    """
    mine, theirs = flat_rows(leaves), flat_rows(others)
    if mine.shape[1] != theirs.shape[1]:
        return False
    with np.errstate(all="ignore"):
        short = [[row.tobytes() for row in one.astype(np.float32)] for one in (mine, theirs)]
    full = [[row.tobytes() for row in one] for one in (mine, theirs)]
    return _many(*short) or _many(*full) or _run(*full)


def _many(known: list[bytes], rows: list[bytes]) -> bool:
    """Fresh rows are among these as often as these are among each other."""
    among = Counter(known)
    telling = len(set(rows)) >= len(rows) / 2 and len(among) >= len(known) / 2
    expected = sum(times for times in among.values() if times > 1) / len(known)
    share = expected + MANY * (1 - expected)
    return telling and sum(row in among for row in rows) >= max(TELLING, share * len(rows))


def _run(known: list[bytes], rows: list[bytes]) -> bool:
    """Whether a run of rows is in both that is too long for chance."""
    counts = Counter(known) + Counter(rows)
    most = max(counts.values()) / (len(known) + len(rows))
    if most == 1:
        return False
    length = math.ceil(math.log(len(known) * len(rows) / CHANCE) / -math.log(most))
    if length > min(len(known), len(rows)):
        return False
    marks = np.random.default_rng(0).integers(2**63, size=len(counts), dtype=np.uint64)
    place = {row: marks[at] for at, row in enumerate(counts)}
    first, second = (_sums(np.array([place[row] for row in one], dtype=np.uint64), length) for one in (known, rows))
    return common(first, second)


def _sums(marks: NDArray[np.uint64], length: int) -> NDArray[np.uint64]:
    """Σ_j marks[i + j] BASE^j modulo 2^64 for every i, over `length` entries: equal for equal runs."""
    powers, back = (
        np.multiply.accumulate(np.full(len(marks) + 1, base, dtype=np.uint64))
        for base in (BASE, pow(BASE, -1, 1 << 64))
    )
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.add.accumulate(marks * powers[:-1])])
    return (sums[length:] - sums[:-length]) * back[: len(marks) - length + 1]
