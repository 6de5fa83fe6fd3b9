"""Ranges of functions of one number over intervals, from their values at the ends and at the points where they turn.

A continuous function that is monotone between known turning points takes its extremes over [a, b] at a, b and the
turning points between: evaluated there, and rounded outward by what the libraries are trusted to. It must give its
limits at ±∞, and be accurate to a relative error there (no cancellation).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, widened, within

Range = Callable[..., Interval]  # of an interval, and of parameters as arrays


class Atom(NamedTuple):
    """A function of one number: ranges of its value and of its first and second derivative."""

    name: str
    value: Range
    first: Range
    second: Range
    kink: Any = None  # where the first derivative jumps, or has a pole; NaN where it does not
    said: str = ""  # what bounds its second derivative, in a few words


def curve(
    function: Callable[[Any], Any], turns: Sequence[float] = (), low: float = -np.inf, high: float = np.inf
) -> Range:
    """The range of a function with these turning points, known to lie between `low` and `high`."""

    def over(t: Interval) -> Interval:
        ends = [function(t.lower)] if t.lower is t.upper else [function(t.lower), function(t.upper)]
        lower, upper = np.minimum.reduce(ends), np.maximum.reduce(ends)
        for turn in turns:
            inside = (t.lower <= turn) & (turn <= t.upper)
            value = function(np.asarray(turn))
            lower, upper = (
                np.where(inside, np.minimum(lower, value), lower),
                np.where(inside, np.maximum(upper, value), upper),
            )
        return within(widened(lower, upper), low, high)

    return over


def where_defined(atom: Atom, low: float, *, open_end: bool = False) -> Atom:
    """The same, refused where the interval leaves [low, ∞), or (low, ∞)."""

    def guarded(over: Range) -> Range:
        def checked(t: Interval) -> Interval:
            if np.any(t.lower < low) or (open_end and np.any(t.lower == low)):
                raise NoEnclosure(f"{atom.name} is undefined somewhere")
            return over(t)

        return checked

    return atom._replace(value=guarded(atom.value), first=guarded(atom.first), second=guarded(atom.second))
