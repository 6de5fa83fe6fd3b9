"""Unbounded noise with a declared variance: the geometric median of the means of k blocks.

Claim: ‖Z − μ‖ ≤ C_α σ/√(n p) with probability ≥ 1 − δ. Assumes independent samples with E‖X − μ‖² ≤ σ², σ declared.
Blocks have n = ⌊m/k⌋ samples, so by Chebyshev each mean is farther than r = σ/√(n p) from μ with probability ≤ p. If
the geometric median Z of the k means is farther than C_α r from μ, at least αk of them are farther than r, where
C_α = (1 − α)/√(1 − 2α); that has probability P(Bin(k, p) ≥ αk), and p is the largest that makes it δ. In dimension one
the median does with α = ½ and C = 1. α and k are the best for m, δ: they do not depend on the data. For the smallest δ,
where no quantile of the binomial tail can be trusted, p is the largest with C(k, a)pᵃ = δ, a = ⌈αk⌉, which bounds it.
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

from epszero._checks import one_positive
from epszero._types import FloatArray
from epszero.certificates.mean._base import MeanBound, MeanSet, log_of
from epszero.facts.region import Region

SWEEPS = 200
SHARES = tuple(np.linspace(0.15, 0.45, 25))  # α
SMALLEST = 1e-20  # δ below which quantiles of the binomial tail are not computed
INWARD = 1 - 1e-9  # by which a computed quantile is made smaller


@dataclass(frozen=True)
class MedianOfMeans(MeanBound):
    """A ball for heavy tails; `sigma`, the root of the variance E‖X − EX‖², is the user's word."""

    title: ClassVar[str] = "median of means"
    needs_region: ClassVar[bool] = False
    sigma: float

    def __post_init__(self) -> None:
        one_positive("sigma", self.sigma, strict=False)

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        log_of(1, delta)
        *trials, m, d = X.shape
        blocks, share, factor = _plan(m, d == 1, delta)
        if not math.isfinite(factor * self.sigma):
            return MeanSet(np.mean(X, axis=-2), np.full(trials, math.inf))
        size = m // blocks
        means = X[..., : blocks * size, :].reshape(*trials, blocks, size, d).mean(axis=-2)
        if d == 1 or blocks == 1 or self.sigma == 0:
            return MeanSet(np.median(means, axis=-2), np.full(trials, factor * self.sigma))
        constant = float(_constant(share, 0.0))
        centre, eta = geometric_median(means, (1 - 1 / constant) * factor * self.sigma)
        return MeanSet(centre, factor * self.sigma * _constant(share, eta) / _constant(share, 0.0))

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float | None:
        """Only where there is one block: else the median, about which the ball is, is not the mean of the samples."""
        log_of(1, delta)
        blocks, _, factor = _plan(m, dim == 1, delta)
        return factor * self.sigma if blocks == 1 else None

    def assumptions(self) -> list[tuple[str, str]]:
        return [(f"E‖X − EX‖² ≤ {self.sigma:.4g}²", "declared")]


@functools.lru_cache(maxsize=1024)
def _plan(m: int, scalar: bool, delta: float) -> tuple[int, float, float]:
    """How many blocks, α, and the radius for σ = 1."""
    one = 1, 0.5, 1 / (math.sqrt(m) * math.sqrt(delta))  # one block: Chebyshev
    blocks, shares, rare = _rare(scalar, delta)
    fits = (blocks <= m) & (rare > 0) & (rare < 1)
    if not fits.any():
        return one
    constants = np.ones_like(shares) if scalar else _constant(shares, 0.0)
    with np.errstate(divide="ignore"):
        factors = np.where(fits, constants / np.sqrt((m // blocks) * rare), np.inf)
    best = int(np.argmin(factors))
    return one if factors[best] >= one[2] else (int(blocks[best]), float(shares[best]), float(factors[best]))


@functools.lru_cache(maxsize=64)
def _rare(scalar: bool, delta: float) -> tuple[Any, Any, Any]:
    """For every k and α: a probability p with P(Bin(k, p) ≥ αk) ≤ δ, about as large as it can be."""
    from scipy.special import gammaln  # noqa: PLC0415  (needed here only, and slow to import)
    from scipy.stats import beta  # noqa: PLC0415

    k, share = (one.ravel() for one in np.meshgrid(np.arange(2, 401), (0.5,) if scalar else SHARES, indexing="ij"))
    a = np.ceil(share * k - 1e-9)
    if delta < SMALLEST:
        ways = gammaln(k + 1) - gammaln(a + 1) - gammaln(k - a + 1)
        return k, share, INWARD * np.exp((math.log(delta) - ways) / a)
    with np.errstate(all="ignore"):
        return k, share, INWARD * beta.ppf(delta, a, k - a + 1)


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
    for sweep in range(SWEEPS):
        towards = points - z[..., None, :]
        weight = 1 / np.maximum(np.linalg.norm(towards, axis=-1), near)
        eta = np.linalg.norm(np.mean(weight[..., None] * towards, axis=-2), axis=-1)
        if np.all(eta < 1e-6) or sweep == SWEEPS - 1:  # η is that of the z which is returned
            break
        z = np.einsum("...k,...kd->...d", weight / weight.sum(axis=-1, keepdims=True), points)
    return z, eta
