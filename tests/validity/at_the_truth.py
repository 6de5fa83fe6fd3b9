"""The study of the noise at the truth: all lines of a certificate together on the worlds of truths.py, and twins.

A trial misses when any line is wrong. One solve per data set serves both δ. A twin is broken on purpose and must be
convicted by the same count; its world is the same as that of a sound row.
"""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from epszero.certificates import truth as room

from .coverage import Row, quantile
from .truths import WORLDS, judged, pool
from .worlds import flat

DELTAS = (0.3, 0.05)
AT_ONCE = 250  # trials that are solved together


@contextmanager
def no_noise() -> Iterator[None]:
    """The radius forgets the variance, and most of ln(2/δ)."""
    with patch.object(room.Aim, "over", lambda self, many, parts: 0.02 * self.log / (many * self.w)):
        yield


@contextmanager
def steeper() -> Iterator[None]:
    """Curvature that is not there."""
    curvature = room.Inside.curvature.func
    with patch.object(room.Inside, "curvature", property(lambda self: 40 * curvature(self))):
        yield


@contextmanager
def at_no_distance() -> Iterator[None]:
    """A ball that does not hold the truth."""
    with patch.object(room.Search, "run", lambda self, ground, start: room.Known(1e-3 * start, 0.0, 0.0)):
        yield


TWINS = {"no noise": no_noise, "steeper": steeper, "at no distance": at_no_distance}
WHERE = "turning"  # the world of the twins


class AtTruth:
    """The noise at the truth."""

    name = "at the truth"

    def tasks(self) -> list[tuple[str, str]]:
        return [*(("", where) for where in WORLDS), *((twin, WHERE) for twin in TWINS)]

    def run(self, task: tuple[str, str], trials: int) -> list[Row]:
        twin, where = task
        world, tallies, away = pool(where), {delta: Counter[str]() for delta in DELTAS}, list[float]()
        said: dict[float, list[float]] = {delta: [] for delta in DELTAS}
        for start in range(0, trials, AT_ONCE):
            solutions = world.solved(min(AT_ONCE, trials - start), seed=10_000 + start)
            away += [float(np.linalg.norm(flat(one.x) - world.answer)) for one in solutions]
            for delta in DELTAS:
                if twin:
                    with TWINS[twin]():
                        tallies[delta] += judged(world, solutions, delta)
                else:
                    tallies[delta] += judged(world, solutions, delta, said=said[delta])
        rows = []
        for delta, tally in tallies.items():
            truth, name = quantile(np.array(away), delta), f"broken: {twin}" if twin else "all lines"
            width = float(np.mean(said[delta])) if said[delta] else math.nan
            certified = math.nan if twin else tally["distances"] / trials
            rows.append(Row(self.name, name, where, size=str(world.s), delta=delta, trials=trials, misses=tally["any"],
                            ratio=width / truth if truth > 1e-9 else math.nan,
                            certified=certified, broken=bool(twin)))  # fmt: skip
        return rows
