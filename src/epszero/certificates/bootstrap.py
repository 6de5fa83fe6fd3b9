"""What is likely, by solving again on data drawn from the data: always heuristic, never a guarantee.

Data sets of s rows are drawn from the samples with replacement, and all are solved in one run. ‖x̂ − x*‖ is taken to
vary as ‖x_b − x̂‖ does, and ‖(B̂ − B)(x̂)‖ as ‖(B̂_b − B̂)(x̂)‖: their (1 − δ)-quantiles, of rank (1 − δ)(r + 1) among r
replications, which one more of their kind exceeds with probability δ. For days in their order whole blocks of
neighbours are drawn (moving blocks, Künsch 1989); their length, unless given, is that of Politis & White (2004) for the
feature that asks for the longest, with the constants of Patton, Politis & White (2009).
Wrong, and mostly too small, for rare outcomes, near a kink of x(·), for heavy tails, for dependence longer than blocks.
Any oracle, any convex sets. Source: Efron (1979). Cost: `replications` solves, in one batch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np

from epszero._checks import count
from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Leaning, cannot
from epszero.certificates._near import Near
from epszero.certificates.case import Case
from epszero.certificates.likely import Redrawn, quantile_of
from epszero.certificates.residuals import Residuals
from epszero.facts import Provenance
from epszero.oracles import Collapsed
from epszero.oracles.features import sample_rows
from epszero.samples import Samples
from epszero.solve import solve, solve_many

COLUMNS = 64  # of a sample that are asked for the length of a block
AS_THE_DATA = Leaning("data as the samples vary: drawn from themselves", Provenance.ESTIMATED, "no guarantee")


@dataclass(frozen=True, eq=False)
class Bootstrap(Kind):
    """How far, probably: solved again on data drawn from the data.

    `replications`: how many. `block`: rows on end that are drawn together, 1 for independent samples; by a rule where
    it is not given. `seed`: of the draws.
    """

    guess: ClassVar[bool] = True
    replications: int = 200
    block: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        count("replications", self.replications, least=20)
        count("seed", self.seed, least=0)
        if self.block is not None:
            count("block", self.block, least=1)

    @property
    def title(self) -> str:
        return "bootstrap"

    def block_of(self, samples: Samples) -> int:
        """How many rows on end are drawn together."""
        return min(len(samples), self.block or block_length(sample_rows(samples.values)))

    def rows(self, samples: Samples) -> list[Any]:
        """Numbers of the rows of each data set that is drawn from the data, as large as these."""
        s, block = len(samples), self.block_of(samples)
        rng = np.random.default_rng([self.seed, s])
        return [blocks(rng, s, block) for _ in range(self.replications)]

    def drawn(self, samples: Samples) -> list[Samples]:
        """These data sets."""
        return [drawn_rows(samples, rows) for rows in self.rows(samples)]

    def examine(self, case: Case, delta: float) -> Finding:
        if len(case.samples) != 1 or case.own_data:
            cannot("the bootstrap draws from one data set that all agents see")
        (samples,) = case.samples
        s = len(samples)
        if s < 2:
            cannot("one sample says nothing of how samples vary")
        block = self.block_of(samples)
        same, *drawn = redrawn(case, samples, [np.arange(s), *self.rows(samples)])
        problem, here = case.problem, flat_of(case.x)
        middle = flat_of(solve(problem, same, x0=case.point, throw=False).x)  # where the run need not have got
        others = np.stack([flat_of(one.x) for one in solve_many(problem, drawn, x0=case.point)])
        away = length(others - middle, axis=1)
        moved = [self._moved(case, one) for one in drawn]
        distance, residual = (quantile_of(one, delta) for one in (away, moved))
        near = Near(
            distance + length(here - middle), math.inf, f"{self.replications} data sets drawn from the data", ()
        )
        terms = {"empirical": length(case.empirical), "deviation": residual, "samples": float(s), "block": float(block)}
        guessed = Redrawn(here, middle, others)
        how = "rows" if block == 1 else f"blocks of {block} rows on end"
        by = f"{self.title}, {self.replications} data sets drawn by {how} from {s} samples"
        return Finding(Residuals.ball(case.empirical, residual), by, terms, (AS_THE_DATA,), near=near, guessed=guessed)

    @staticmethod
    def _moved(case: Case, drawn: Samples) -> float:
        """‖(B̂_b − B̂)(x̂)‖."""
        through = case.collapsed(case.samples)
        if through is not None and _by_means(case, through):
            C, _ = case.noise_map(through)
            if C is not None:
                (mean,) = case.means(case.samples)
                return length(C @ (sample_rows(drawn.values)[0] - mean))
        average = case.problem.oracle.average(case.data([drawn]), case.point)
        return length(case.residual(average) - case.empirical)


def redrawn(case: Case, samples: Samples, parts: Sequence[Any]) -> list[Samples]:
    """The rows of each part, without a history: they show how data vary, and are certified by nobody.

    Where the noise is additive in ξ itself, the average over a part is O at the mean of its rows: one row serves.
    """
    through = case.collapsed([samples])
    if through is not None and _by_means(case, through):
        means = [jax.tree.map(lambda leaf, rows=rows: leaf[rows].mean(axis=0)[None], samples.values) for rows in parts]
        return [Samples.from_arrays(one) for one in means]
    return [drawn_rows(samples, rows) for rows in parts]


def drawn_rows(samples: Samples, rows: Any) -> Samples:
    """Without a history."""
    return Samples.from_arrays(jax.tree.map(lambda leaf: leaf[rows], samples.values), samples.support)


def _by_means(case: Case, through: Collapsed) -> bool:
    """Whether B̂ is known by the mean of ξ, and O's Jacobian in x knows no ξ."""
    return through.own and case.additive(through)


def blocks(rng: np.random.Generator, s: int, block: int) -> Any:
    """Numbers of s rows, in blocks that start anywhere."""
    starts = rng.integers(s - block + 1, size=-(-s // block))
    return (starts[:, None] + np.arange(block)).ravel()[:s]


def block_length(rows: FloatArray) -> int:
    """The longest that a column asks for."""
    return max((_politis_white(column) for column in rows[:, :COLUMNS].T), default=1)


def _politis_white(y: FloatArray) -> int:
    """(2G²/D)^⅓ s^⅓, G = Σ λ|k|R(k), D = (4/3)(ΣλR(k))², λ a flat top as wide as autocorrelations are not noise."""
    s, spread = len(y), float(np.ptp(y))
    if s < 10 or not spread > 0:
        return 1
    centred = (y - y.mean()) / spread
    runs, most = max(5, math.ceil(math.sqrt(math.log10(s)))), math.ceil(math.sqrt(s))
    last = min(most + runs, s - 1)
    R = np.array([centred[: s - k] @ centred[k:] / s for k in range(last + 1)])
    small = np.abs(R / R[0]) < 2 * math.sqrt(math.log10(s) / s)
    quiet = next((k for k in range(max(1, last - runs)) if small[k + 1 : k + 1 + runs].all()), most)
    width = min(2 * max(quiet, 1), last)
    k = np.arange(1, width + 1)
    top = np.minimum(1.0, 2 * (1 - k / width)) * R[1 : width + 1]
    G, D = 2 * float(np.sum(top * k)), 4 / 3 * (R[0] + 2 * float(np.sum(top))) ** 2
    found = (2 * G**2 / D) ** (1 / 3) * s ** (1 / 3) if D > 0 and quiet > 0 else 1.0
    return max(1, min(math.ceil(min(3 * math.sqrt(s), s / 3)), round(found)))
