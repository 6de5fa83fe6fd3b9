"""Lists of indices into a vector, checked in sentences."""

from typing import Any

import numpy as np

from epszero._checks import count, refuse


def distinct_indices(argument: str, value: Any) -> list[int]:
    """A nonempty list of whole numbers ≥ 0, each there once."""
    if isinstance(value, str | bytes) or not np.iterable(value):
        refuse(argument, f"must be a list of indices, but it is {value!r}", "Write it as [0, 1, 2]")
    row = [count(f"{argument}[{k}]", index) for k, index in enumerate(value)]
    if not row:
        refuse(argument, "must hold at least one index", "Drop it, or name the entries it covers")
    seen: set[int] = set()
    for index in row:
        if index in seen:
            refuse(argument, f"names entry {index} twice", "Name each entry once")
        seen.add(index)
    return row


def check_reach(argument: str, source: str, reach: int, length: int) -> None:
    """Refuse a vector too short for the indices."""
    if length < reach:
        refuse(
            argument,
            f"has {length} entries, but {source} names entry {reach - 1}",
            f"Pass vectors of length {reach} or more (entries count from 0)",
        )
