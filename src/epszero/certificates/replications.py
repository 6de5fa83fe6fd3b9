"""How much dearer than the best, probably: the same question put to several parts of the data. Always heuristic.

`MultipleReplications`: n groups of m samples with gaps G_1, …, G_n (certificates/gaps.py), mean Ḡ, deviation s:
    Ḡ + t s/√n,  t the (1 − δ)-quantile of Student's law with n − 1 degrees of freedom.
Source: Mak, Morton & Wood, Operations Research Letters 24 (1999), section 3.
`TwoReplications` (A2RP): two halves of m samples, and how differences f(x̂, ξ_i) − f(x_k, ξ_i) vary within each, s_k²:
    G′ + z s′/√(2m),  G′ = (G_1 + G_2)/2,  s′² = (s_1² + s_2²)/2,  z the (1 − δ)-quantile of the normal law.
Source: Bayraksan & Morton, Mathematical Programming 108 (2006), section 4, (10).
Ḡ exceeds the gap on average, the more so the smaller the groups: wide, rather than short, for few samples. The halves
undercover where s′ happens to be near 0. Assumes independent samples and what gaps.py assumes. Cost: n solves, or 2.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epszero._checks import count
from epszero.certificates._base import Finding, Kind
from epszero.certificates.case import Case
from epszero.certificates.gaps import data_of, finding, gaps
from epszero.samples import Samples

FEWEST = 2  # rows of a group


@dataclass(frozen=True, eq=False)
class MultipleReplications(Kind):
    """The cost gap, probably: solved again on each of `groups` parts of the data, drawn with `seed`."""

    guess: ClassVar[bool] = True
    groups: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        count("groups", self.groups, least=2)
        count("seed", self.seed, least=0)

    @property
    def title(self) -> str:
        return f"multiple replications in {self.groups} groups"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = data_of(case, FEWEST * self.groups)

        def gap() -> tuple[float, float]:
            each = gaps(case, samples, parts(samples, self.groups, self.seed)).each
            return float(each.mean()), student(1 - delta, self.groups - 1) * float(each.std(ddof=1) / self.groups**0.5)

        return finding(case, samples, self.title, delta, gap)


@dataclass(frozen=True, eq=False)
class TwoReplications(Kind):
    """The cost gap, probably, from two solves, each on half of the data, drawn with `seed`."""

    guess: ClassVar[bool] = True
    seed: int = 0

    def __post_init__(self) -> None:
        count("seed", self.seed, least=0)

    @property
    def title(self) -> str:
        return "two replications"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = data_of(case, 2 * FEWEST)

        def gap() -> tuple[float, float]:
            found = gaps(case, samples, parts(samples, 2, self.seed))
            m, pooled = found.differences.shape[1], float(found.differences.var(axis=1, ddof=1).mean())
            return float(found.each.mean()), normal(1 - delta) * math.sqrt(pooled / (2 * m))

        return finding(case, samples, self.title, delta, gap)


def parts(samples: Samples, groups: int, seed: int) -> Any:
    """Numbers of rows, (groups, m); what is left of the division is left out."""
    s = len(samples)
    m = s // groups
    return np.random.default_rng([seed, s]).permutation(s)[: groups * m].reshape(groups, m)


def normal(level: float) -> float:
    """Quantile of the normal law."""
    from scipy.special import ndtri  # noqa: PLC0415  (slow to load)

    return float(ndtri(level))


def student(level: float, freedom: int) -> float:
    """Quantile of Student's law."""
    from scipy.special import stdtrit  # noqa: PLC0415  (slow to load)

    return float(stdtrit(freedom, level))
