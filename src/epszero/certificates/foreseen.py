"""What a bound on a mean that adapts will say of s samples, before they are drawn: its own formula on a known law.

The law is that of rows, each as likely as any other, such as those of a pilot. The radius of empirical Bernstein needs
of the samples only the squares q_i = ‖X_i − μ̂_{i−1}‖², the ranges c_i and the weights that follow from them. The first
HEAD squares are drawn from the rows; those after come in blocks that grow by a tenth, each with its mean and a normal
deviation. The centres run from the first guess to the mean, and so do the ranges, at most along the chord. Weights that
are not equal pull the centre away from the mean of the samples: by a normal vector of that covariance.
Betting, for a single number: the bound itself on up to DRAWN samples from the rows; beyond that empirical Bernstein,
times their ratio where betting is wider, which it ceases to be.
It is a forecast, and no bound: for one draw of what can come. Cost: HEAD + ln(s)/ln(1.1) numbers, whatever s.
"""

import math
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from epszero._points import length
from epszero._types import FloatArray
from epszero.certificates.mean import Betting, EmpiricalBernstein, MeanBound, MeanSet, Region
from epszero.certificates.mean._base import bounded, log_of
from epszero.certificates.mean.empirical_bernstein import best_lambda, psi

HEAD = 512  # samples that are drawn one by one
DRAWN = 4096  # the same, for betting
BLOCK = 1.1  # how much a block of the others grows over the one before
BLOCKS = 320  # at most, for any number of samples that can be planned for
FLAT = 1e-8  # of the squared diameter: the least variance that weights are tuned for
TINY = 1e-100


@dataclass(frozen=True, eq=False)
class Chance:
    """One draw of everything that is random."""

    first: FloatArray  # (DRAWN,), uniform: which rows come first
    sums: FloatArray  # (BLOCKS,), normal: how blocks of squares deviate
    pulls: FloatArray  # (n,), normal: where the centre is pulled

    @staticmethod
    def of(rng: np.random.Generator, n: int) -> "Chance":
        """For a law of n rows."""
        return Chance(rng.uniform(size=DRAWN), rng.normal(size=BLOCKS), rng.normal(size=n))


@dataclass(frozen=True, eq=False)
class Foreseen(MeanBound):
    """The ball that `size` samples of the law of the rows will give."""

    title: ClassVar[str] = "what is foreseen of a bound that adapts"
    size: int
    chance: Chance
    by: MeanBound = field(default_factory=EmpiricalBernstein)

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        if not isinstance(self.by, Betting) or self.size < 2:
            return self._ball(X, bounded(region), delta)
        if self.size <= DRAWN:
            return self._drawn(self.size, X, bounded(region), delta)
        boxed, ball = self._drawn(DRAWN, X, bounded(region), delta), self._ball(X, bounded(region), delta)
        small = replace(self, size=DRAWN)._ball(X, bounded(region), delta)
        return MeanSet(ball.centre, np.full(X.shape[1], ball.radius * max(1.0, float(boxed.radius[0] / small.radius))))

    def _drawn(self, size: int, X: FloatArray, region: Region, delta: float) -> MeanSet:
        """About the mean of the rows, as it would be about that of the samples."""
        rows = X[(self.chance.first[:size] * len(X)).astype(int)]
        found = self.by.around(rows, region, delta)
        return MeanSet(np.mean(X, axis=0) + found.centre - np.mean(rows, axis=0), found.radius)

    def _ball(self, X: FloatArray, region: Region, delta: float) -> MeanSet:
        log, mean = log_of(2, delta), np.mean(X, axis=0)
        if not X.shape[1] or region.diameter == 0 or self.size < 2:
            return MeanSet(mean, np.array(region.diameter))
        apart = X - mean
        squares = np.einsum("nd,nd->n", apart, apart)
        starts, sizes = _blocks(self.size)
        guess, far = region.first_guess, float(region.farthest(mean[None])[0])
        count, variance = (1.0, (region.diameter / 4) ** 2) if guess is None else (guess.count, guess.variance)
        first = far if guess is None else float(region.farthest(guess.centre[None])[0])
        gap = float(np.mean(squares)) if guess is None else length(guess.centre - mean) ** 2
        left = count / (starts + count)  # how much of the first guess is left in the centre
        seen = _blockwise(squares, sizes, self.chance)
        seen = seen + float(np.mean(squares)) * starts / (starts + count) ** 2 + gap * left**2
        c = np.maximum(far + (first - far) * left, TINY)
        before = np.concatenate([[0.0], np.cumsum(sizes * seen)[:-1]]) + count * max(
            variance, FLAT * region.diameter**2
        )
        lam = best_lambda(c**2 * log / (self.size * np.maximum(before / (starts + count), TINY)))
        total = float(np.sum(sizes * lam / c))
        radius = (log + float(np.sum(sizes * psi(lam) * seen / c**2))) / total
        uneven = math.sqrt(float(np.sum(sizes * (lam / c / total - 1 / self.size) ** 2)))
        pulled = apart.T @ self.chance.pulls[: len(X)] * (uneven / math.sqrt(len(X)))
        return MeanSet(mean + pulled, np.array(min(radius, region.diameter)))


def _blocks(size: int) -> tuple[FloatArray, FloatArray]:
    """Where blocks start, and how many samples each has."""
    head = min(size, HEAD)
    steps = max(0, math.ceil(math.log(size / head) / math.log(BLOCK)))
    ends = np.minimum(np.ceil(head * BLOCK ** np.arange(1, steps + 1)), float(size))
    starts = np.concatenate([np.arange(head, dtype=np.float64), [head][: min(steps, 1)], ends[:-1]])
    return starts, np.diff(np.concatenate([starts, [float(size)]]))


def _blockwise(squares: FloatArray, sizes: FloatArray, chance: Chance) -> FloatArray:
    """The mean square of each block."""
    head = min(len(sizes), HEAD)
    first = squares[(chance.first[:head] * len(squares)).astype(int)]
    rest = sizes[head:]
    spread = float(np.std(squares)) * chance.sums[: len(rest)] / np.sqrt(rest)
    return np.concatenate([first, np.maximum(float(np.mean(squares)) + spread, 0.0)])
