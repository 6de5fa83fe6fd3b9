"""Five laws whose truth is known, for `likely`: kind, dependent, rare, near a kink, heavy-tailed.

The first two are the charging game on real prices: days drawn from the pool, and days by the chain of `dependent`. The
others minimise E ½xᵀHx − ξᵀx over a box in two entries, so that the cost gap is known, too. In all five the answer
depends on the data through their mean only: with m the mean of the law, x* = x(m).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

import epszero as ez
from epszero.experiments._charging import DELTA, FloatArray, charging
from epszero.experiments._outcome import size
from epszero.experiments.dependent import STAY, chain

H = np.array([[1.0, 0.3], [0.3, 0.8]])
RARE = 0.005  # the probability of the rare outcome
RARELY = f"a rare outcome ({100 * RARE:g} %)"
NEAR = np.array([0.01, 0.5])  # x* of the law near a kink: where the first entry is 0
SHOCK, LOG = np.array([0.005, 0.003]), 2.0  # the heavy-tailed law: ½ + SHOCK·exp(LOG·normal), one normal for both
HEAVY = size(SHOCK) * math.sqrt(math.exp(LOG**2) * math.expm1(LOG**2))  # √(E‖ξ − Eξ‖²) of it
SWEEPS = 30  # of the search for a corner


@dataclass(frozen=True, eq=False)
class Drawn:
    """A data set; `promised`: the average over its days of the mean that the past promises, where days depend."""

    samples: ez.Samples
    promised: FloatArray | None = None


@dataclass(frozen=True, eq=False)
class Law:
    """A problem, and a law of its data: its mean, how to draw from it, and what is declared of its support."""

    key: str
    title: str
    problem: Any
    mean: FloatArray
    draw: Callable[[np.random.Generator, int], Drawn]
    support: tuple[FloatArray, FloatArray] | None = None  # the least and the greatest of every entry

    @cached_property
    def exact(self) -> FloatArray:
        """x*."""
        return ez.solve(self.problem, ez.Samples(self.mean[None]), tol=1e-12).x

    @property
    def has_cost(self) -> bool:
        """Whether there is a cost gap."""
        return isinstance(self.problem, ez.Minimization)

    def under(self, means: Sequence[FloatArray]) -> list[FloatArray]:
        """x(m) for many m."""
        return [one.x for one in ez.solve_many(self.problem, [ez.Samples(mean[None]) for mean in means])]

    def gap(self, x: FloatArray) -> float:
        """How much dearer x is than x*: (x − x*)ᵀ(½H(x + x*) − m), which is exact where they are close."""
        return float((x - self.exact) @ (H @ (x + self.exact) / 2 - self.mean))

    def floor(self, s: int) -> float:
        """How far an outcome that s samples show none of with probability δ can move x*; NaN without a support.

        The law (1 − p)P + p·corner with (1 − p)^s = δ looks like P with probability δ, and its mean is m + p(corner −
        m): no bound for all laws of the support can be below ‖x(that) − x(m)‖ (docs/theory.md#piece). Corners are
        searched entry by entry, which finds a good one: the largest of all may be larger.
        """
        if self.support is None:
            return math.nan
        low, high = self.support
        share = 1 - DELTA ** (1 / s)
        start = self.under([self.mean])[0]

        def moved(corners: list[FloatArray]) -> list[float]:
            return [size(x - start) for x in self.under([self.mean + share * (one - self.mean) for one in corners])]

        found: list[float] = []
        for corner in (low, high):
            best, far = corner, moved([corner])[0]
            for _ in range(SWEEPS):
                other = low + high - best
                flips = [np.where(np.arange(len(best)) == k, other, best) for k in range(len(best))]
                tried = moved(flips)
                k = int(np.argmax(tried))
                if tried[k] <= far:
                    break
                best, far = flips[k], tried[k]
            found.append(far)
        return max(found)


@cache
def laws() -> dict[str, Law]:
    """All five, by their keys."""
    it = charging()
    days, mean = it.pool.values, it.pool.values.mean(axis=0)
    box = (days.min(axis=0), days.max(axis=0))
    both, reach = np.ones(2), np.array([0.5, 0.05])
    around = (H @ NEAR - reach, H @ NEAR + reach)

    def pool(rng: np.random.Generator, s: int) -> Drawn:
        return Drawn(it.pool.take(s, seed=rng))

    def dependent(rng: np.random.Generator, s: int) -> Drawn:
        rows = chain(rng, len(days), s)
        follow = STAY * days[(rows[:-1] + 1) % len(days)] + (1 - STAY) * mean
        return Drawn(ez.Samples(days[rows], support=it.pool.support), (mean + follow.sum(axis=0)) / s)

    def rare(rng: np.random.Generator, s: int) -> Drawn:
        usual = rng.uniform(0.09, 0.11, size=(s, 2))
        return _small(np.where(rng.random((s, 1)) < RARE, 1.0, usual), 0 * both, both)

    def kink(rng: np.random.Generator, s: int) -> Drawn:
        return _small(rng.uniform(*around, size=(s, 2)), *around)

    def heavy(rng: np.random.Generator, s: int) -> Drawn:
        return Drawn(ez.Samples(0.5 + SHOCK * rng.lognormal(0.0, LOG, size=(s, 1))))

    game, least = it.game, _least_cost()
    return {
        one.key: one
        for one in (
            Law("pool", "the price pool", game, mean, pool, box),
            Law("dependent", "dependent days", game, mean, dependent, box),
            Law("rare", RARELY, least, (0.1 * (1 - RARE) + RARE) * both, rare, (0 * both, both)),
            Law("kink", "near a kink", least, H @ NEAR, kink, around),
            Law("heavy", "heavy tails", least, 0.5 + SHOCK * math.exp(LOG**2 / 2), heavy),
        )
    }


def _least_cost() -> ez.Minimization:
    def cost(x: Any, xi: Any) -> Any:
        return x @ H @ x / 2 - xi @ x

    return ez.Minimization(cost, ez.sets.Box(0.0, 4.0, dim=2))


def _small(values: FloatArray, low: FloatArray, high: FloatArray) -> Drawn:
    return Drawn(ez.Samples(values, support=ez.sets.Box(low, high)))
