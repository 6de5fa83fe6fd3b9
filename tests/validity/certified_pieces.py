"""The study of certified pieces: all lines of a certificate together, each line alone, and twins broken on purpose.

The worlds are planted (pieces.py). "All lines" is the certificate that users get; a trial misses when any line is
wrong, and what is wrong is counted by lines, too. Where one line is asked for (`of=`), it has nearly all of δ. What is
shared: one solve per data set, and one case, serve all of these and both δ. Left out: `of="residual"`, which is
MeanDeviation at δ (certificates.py); `of="cost gap"` in games and `of="exploitability"` elsewhere, which have no such
line. The twins (broken.py) must be convicted by the same count at the same δ, and their sound halves must not.
"""

import math
from typing import Any

import numpy as np

from .broken import TWINS
from .coverage import Row, quantile
from .pieces import WORLDS, Planted, Tally, judged, planted
from .worlds import flat

DELTAS = (0.3, 0.05)
AT_ONCE = 512  # trials that are solved together
LINES = ("distance", "exploitability", "total", "cost gap", "intervals", "aggregate", "multipliers")


def asked(world: Planted) -> list[str | None]:
    """What may be asked for."""
    costs = ["exploitability"] if world.savings is not None else ["cost gap"] if world.gap is not None else []
    return [None, "distance", *costs, "intervals"]


class Pieces:
    """Certified pieces."""

    name = "of certified pieces"

    def tasks(self) -> list[tuple[str, str]]:
        return [*(("", where) for where in WORLDS), *((twin, TWINS[twin].where) for twin in TWINS)]

    def run(self, task: tuple[str, str], trials: int) -> list[Row]:
        twin, where = task
        return self._twin(twin, trials) if twin else self._world(where, trials)

    def _world(self, where: str, trials: int) -> list[Row]:
        world = planted(where)
        tallies = {(of, delta): Tally() for of in asked(world) for delta in DELTAS}
        away: list[float] = []
        for start in range(0, trials, AT_ONCE):
            solved = world.solved(np.random.default_rng([2024, start]), min(AT_ONCE, trials - start))
            away += [float(np.linalg.norm(flat(one.x) - world.answer)) for one in solved.solutions]
            for of, delta in tallies:
                tallies[of, delta] += judged(world, solved, delta, of)
        rows = []
        for (of, delta), tally in tallies.items():
            truth = quantile(np.array(away), delta)
            width = np.mean(tally.distances) if tally.distances else math.nan
            ratio = float(width / truth) if truth > 1e-9 else math.nan
            common: dict[str, Any] = {"size": str(world.s), "delta": delta, "trials": trials}
            common |= {"ratio": ratio, "certified": tally.certified / trials}
            lines = "all lines" if of is None else f"{of} alone"
            rows.append(Row(self.name, lines, where, misses=tally.misses, **common))
            if of is None:
                rows += [
                    Row(self.name, f"all lines: {line}", where, misses=tally.claims[line], **common)
                    for line in LINES
                    if tally.claims[line]
                ]
        return rows

    def _twin(self, name: str, trials: int) -> list[Row]:
        twin = TWINS[name]
        rows = []
        for broken in (False, True):
            missed = twin.missed(broken, trials)
            half = f"broken: {name}" if broken else f"sound half: {name}"
            rows.append(Row(self.name, half, twin.where, "", twin.delta, missed, trials, math.nan, broken=broken))
        return rows
