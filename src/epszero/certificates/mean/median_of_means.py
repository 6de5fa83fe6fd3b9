"""Unbounded noise with a declared variance: the geometric median of the means of k blocks.

Claim: ‖Z − μ‖ ≤ C_α σ/√(n p) with probability ≥ 1 − δ. Assumes independent samples with E‖X − μ‖² ≤ σ², σ declared.
Blocks have n = ⌊m/k⌋ samples, so by Chebyshev each mean is farther than r = σ/√(n p) from μ with probability ≤ p. If
the geometric median Z of the k means is farther than C_α r from μ, at least αk of them are farther than r, where
C_α = (1 − α)/√(1 − 2α); that has probability P(Bin(k, p) ≥ αk), and p is the largest that makes it δ. In dimension one
the median does with α = ½ and C = 1. α and k are the best for m, δ: they do not depend on the data.
Source: Minsker, Geometric median and robust estimation in Banach spaces (Bernoulli 2015), Lemma 2.1; the binomial tail
is taken exactly. The median is computed by Weiszfeld's iteration until the mean η of the unit vectors towards the
points is short; the lemma's proof then gives C = (1 − α)/√((1 − α)² − (α + η)²), which is used. It
looks at points within r of μ, which are farther than (C − 1)r from z, so nearer than that the norm may be rounded off.
"""

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.stats import beta

from epszero._checks import positive
from epszero._types import FloatArray
from epszero.certificates.mean._base import MeanBound, MeanSet
from epszero.constants.region import Region

SWEEPS = 200
SHARES = tuple(np.linspace(0.15, 0.45, 25))  # α


@dataclass(frozen=True)
class MedianOfMeans(MeanBound):
    """A ball for heavy tails; `sigma`, the root of the variance E‖X − EX‖², is the user's word."""

    title: ClassVar[str] = "median of means"
    needs_region: ClassVar[bool] = False
    sigma: float

    def __post_init__(self) -> None:
        positive("sigma", self.sigma, strict=False)

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        *trials, m, d = X.shape
        blocks, share, factor = _plan(m, d == 1, delta)
        size = m // blocks
        means = X[..., : blocks * size, :].reshape(*trials, blocks, size, d).mean(axis=-2)
        if d == 1 or blocks == 1 or self.sigma == 0:
            return MeanSet(np.median(means, axis=-2), np.full(trials, factor * self.sigma))
        constant = float(_constant(share, 0.0))
        centre, eta = geometric_median(means, (1 - 1 / constant) * factor * self.sigma)
        return MeanSet(centre, factor * self.sigma * _constant(share, eta) / _constant(share, 0.0))

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        return _plan(m, dim == 1, delta)[2] * self.sigma

    def assumptions(self) -> list[tuple[str, str]]:
        return [(f"E‖X − EX‖² ≤ {self.sigma:.4g}²", "declared")]


@functools.lru_cache(maxsize=1024)
def _plan(m: int, scalar: bool, delta: float) -> tuple[int, float, float]:
    """How many blocks, α, and the radius for σ = 1."""
    best = 1, 0.5, 1 / math.sqrt(m * delta)  # one block: Chebyshev
    for k in range(2, min(m, 400) + 1):
        for share in (0.5,) if scalar else SHARES:
            at_least = math.ceil(share * k - 1e-9)
            with np.errstate(all="ignore"):
                p = float(beta.ppf(delta, at_least, k - at_least + 1))  # P(Bin(k, p) ≥ at_least) = δ
            if not p > 0:
                continue
            factor = (1.0 if scalar else float(_constant(share, 0.0))) / math.sqrt((m // k) * p)
            if factor < best[2]:
                best = k, share, factor
    return best


def _constant(share: float, eta: Any) -> Any:
    """C_α, for a median at which the unit vectors towards the points have a mean of length η."""
    room = (1 - share) ** 2 - (share + eta) ** 2
    return np.where(room > 0, (1 - share) / np.sqrt(np.maximum(room, 1e-300)), np.inf)


def geometric_median(points: FloatArray, near: float) -> tuple[FloatArray, FloatArray]:
    """argmin Σ‖z − points_j‖ along the last axis but one, by Weiszfeld's iteration, and η: how far from it z may be.

    The norm is rounded off below `near`.
    """
    z = np.mean(points, axis=-2)
    eta = np.full(z.shape[:-1], np.inf)
    for _ in range(SWEEPS):
        towards = points - z[..., None, :]
        weight = 1 / np.maximum(np.linalg.norm(towards, axis=-1), near)
        eta = np.linalg.norm(np.mean(weight[..., None] * towards, axis=-2), axis=-1)
        if np.all(eta < 1e-6):
            break
        z = np.einsum("...k,...kd->...d", weight / weight.sum(axis=-1, keepdims=True), points)
    return z, eta
