"""Functions with corners and with bends: |t|, max(t, 0), Huber's loss.

|t| and max(t, 0) are convex, and their derivatives jump at 0: no second derivative bounds them there. Huber's loss,
t²/2 for |t| ≤ δ and δ(|t| − δ/2) beyond, has the derivative t cut off at ±δ, and the second one 1 or 0; max(t, 0)² has
2 max(t, 0), and 2 or 0.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, point, widened, within
from epszero._trace.rules.curves import Atom


def _jump(t: Interval, below: float) -> Interval:
    return Interval(np.where(t.lower <= 0, np.where(t.upper < 0, below, np.minimum(below, 1.0)), 1.0),
                    np.where(t.upper >= 0, 1.0, below))  # fmt: skip


def _peak(t: Interval) -> Interval:
    across = (t.lower <= 0) & (t.upper >= 0)
    return Interval(np.zeros(t.lower.shape), np.where(across, np.inf, 0.0))


def _positive(t: Interval) -> Interval:
    return Interval(np.maximum(t.lower, 0.0), np.maximum(t.upper, 0.0))


def huber(delta: Any) -> Atom:
    """One δ > 0 for each entry."""

    def cut(t: Interval) -> Interval:
        return Interval(np.clip(t.lower, -delta, delta), np.clip(t.upper, -delta, delta))

    def value(t: Interval) -> Interval:
        size = arithmetic.magnitude(t)
        low, high = (np.where(v <= delta, v**2 / 2, delta * (v - delta / 2)) for v in size)
        return within(widened(low, high), 0.0, np.inf)

    def second(t: Interval) -> Interval:
        size = arithmetic.magnitude(t)
        return Interval(np.where(size.upper < delta, 1.0, 0.0), np.where(size.lower <= delta, 1.0, 0.0))

    return Atom("huber", value, cut, second, said="huber″ ≤ 1")


def _halved(t: Interval) -> Interval:
    return Interval(np.where(t.lower > 0, 2.0, 0.0), np.where(t.upper >= 0, 2.0, 0.0))


ATOMS = {
    "hinge": Atom("hinge", lambda t: arithmetic.square(_positive(t)),
                  lambda t: arithmetic.mul(point(np.full(t.lower.shape, 2.0)), _positive(t)), _halved,
                  said="squared hinge″ ≤ 2"),
    "abs": Atom("abs", arithmetic.magnitude, lambda t: _jump(t, -1.0), _peak, 0.0),
    "relu": Atom("relu", _positive, lambda t: _jump(t, 0.0), _peak, 0.0),
    "neg": Atom("neg", arithmetic.negative, lambda t: point(np.full(t.lower.shape, -1.0)),
                lambda t: point(np.zeros(t.lower.shape))),
}  # fmt: skip
