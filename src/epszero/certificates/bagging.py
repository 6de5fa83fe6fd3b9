"""How much dearer than the best, probably: averaged over bags of samples drawn from the data. Always heuristic.

B bags of k of the n samples, with gaps G_1, …, G_B (certificates/gaps.py), mean Ḡ. Over all bags the mean is a
U-statistic (drawn without replacement; a V-statistic with), normal as n grows; its variance, by the jackknife:
    σ² = c Σ_i C_i²,  C_i = mean over bags of (N_i − k/n)(G − Ḡ),  N_i how often sample i is in a bag,
c = 1 with replacement, (n − 1)n/(n − k)² without (which makes it exact for means). With finite B, Σ C_i² is too large
by about Σ var(N_i) var(G)/B, which is taken off (Wager, Hastie & Efron 2014), and Ḡ is off by var(G)/B, which is added:
    Ḡ + z √(max(σ², 0) + var(G)/B),  z the (1 − δ)-quantile of the normal law.
Ḡ exceeds the gap on average, as a best of k samples is further down than a best of all. Assumes independent samples and
what gaps.py assumes. Source: Lam & Qian (2018), arXiv:1810.02905; the factor c of U-statistics: Wager & Athey (2018).
Cost: `bags` solves on `size` samples, in one batch.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epszero._checks import count, one_of
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, cannot
from epszero.certificates.case import Case
from epszero.certificates.gaps import data_of, finding, gaps
from epszero.certificates.replications import normal

FEWEST = 8  # samples
POWER = 2 / 3  # of n: the size of a bag


@dataclass(frozen=True, eq=False)
class Bagging(Kind):
    """The cost gap, probably: averaged over bags of samples.

    `bags`: how many. `size`: samples in each, s^(2/3) where it is not given; more make less of a bias, and vary more.
    `seed`: of the draws. `replacement`: whether a sample may be in one bag twice.
    """

    guess: ClassVar[bool] = True
    bags: int = 300
    size: int | None = None
    seed: int = 0
    replacement: bool = False

    def __post_init__(self) -> None:
        count("bags", self.bags, least=20)
        count("seed", self.seed, least=0)
        if self.size is not None:
            count("size", self.size, least=2)
        one_of("replacement", self.replacement, (True, False), "Pass True to draw with replacement")

    @property
    def title(self) -> str:
        return "bagging"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = data_of(case, FEWEST)
        n = len(samples)
        k = math.ceil(n**POWER) if self.size is None else self.size
        if not k < n:
            cannot(f"bags of {k} from {n} samples are all of them: pass a smaller size")
        rng = np.random.default_rng([self.seed, n])
        drawn = np.stack([rng.choice(n, size=k, replace=self.replacement) for _ in range(self.bags)])

        def gap() -> tuple[float, float]:
            each = gaps(case, samples, drawn).each
            variance = jackknife(each, drawn, n, self.replacement)
            return float(each.mean()), normal(1 - delta) * math.sqrt(variance + float(each.var()) / self.bags)

        return finding(case, samples, f"{self.title}, {self.bags} bags of {k}", delta, gap)


def jackknife(each: FloatArray, drawn: Any, n: int, replacement: bool) -> float:
    """The infinitesimal jackknife's variance of the mean over all bags."""
    bags, k = drawn.shape
    times = np.zeros((bags, n))
    np.add.at(times, (np.arange(bags)[:, None], drawn), 1.0)
    apart = each - each.mean()
    C = (times - k / n).T @ apart / bags
    factor, spread = (1.0, k * (1 - 1 / n)) if replacement else ((n - 1) * n / (n - k) ** 2, k * (1 - k / n))
    return factor * max(float(C @ C) - spread * float(each.var()) / bags, 0.0)
