"""The operations of a recorded program (recorded.py), and what they read."""

from typing import Any, NamedTuple

Ref = tuple[int, int]
"""What an operation reads: one of the kinds below, and its place among those."""

VALUE, INPUT, SCALAR, ARRAY, LITERAL, SHARED = range(6)
"""An earlier result, an argument, a number, an array, a number that is not real; SHARED: a result outside of a loop."""


class Step(NamedTuple):
    """One operation."""

    primitive: Any
    params: dict[str, Any]
    operands: tuple[Ref, ...]
    made: tuple[Any, ...]  # (shape, kind of numbers, whether weak) of each result
    first: int  # place of the first result
    starts: tuple[int, ...]  # places of the starts of a constant slice; empty for all else

    @property
    def outputs(self) -> int:
        """How many results there are."""
        return len(self.made)
