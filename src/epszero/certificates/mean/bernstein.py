"""Bernstein with an upper bound on the variance, itself from the data.

Claim: ‖X̄ − μ‖ ≤ (1/m)(L b/3 + √(L²b²/9 + 2L m σ̄²)) with probability ≥ 1 − δ; L = ln(2/δ₁), b ≥ ‖X − μ‖ (the diameter
R will do), σ̄² an upper (1 − δ₂)-bound on E‖X − μ‖², δ₁ + δ₂ = δ. Assumes independent samples in a region of diameter
R. σ̄²: ½‖X_{2j−1} − X_{2j}‖² ∈ [0, R²/2] has mean E‖X − μ‖²; its upper bound is by betting.
Source: Pinelis (1994), Thm 3.3 and Cor. 3.2 in a Hilbert space. A declared variance goes with δ₂ = 0.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epszero._checks import one_positive, refuse
from epszero._types import FloatArray
from epszero.certificates.mean._base import MeanBound, MeanSet, bounded, in_units, log_of, sample_mean
from epszero.certificates.mean.betting import upper_mean
from epszero.facts.region import Region


@dataclass(frozen=True)
class Bernstein(MeanBound):
    """A ball that adapts to the variance. `share` of δ goes to the bound on it; `variance` declares one instead."""

    title: ClassVar[str] = "Bernstein's inequality with an upper bound on the variance"
    share: float = 0.2
    variance: float | None = None

    def __post_init__(self) -> None:
        if not 0 < one_positive("share", self.share) < 1:
            refuse("share", f"is the part of delta for the variance, in (0, 1), but it is {self.share}", "Pass 0.2")
        if self.variance is not None:
            one_positive("variance", self.variance, strict=False)

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        if self.variance is not None:
            return super().around(X, region, delta)
        small, region, unit = in_units(X, bounded(region))
        m, log = X.shape[-2], log_of(1, delta)
        variance = np.full(X.shape[:-2], region.variance)
        if m > 1 and region.diameter > 0:
            half = region.diameter**2 / 2
            apart = small[..., 1 : m // 2 * 2 : 2, :] - small[..., 0 : m // 2 * 2 : 2, :]
            squares = np.clip(np.sum(apart**2, axis=-1) / 2 / half, 0.0, 1.0)
            variance = np.minimum(upper_mean(squares, log - math.log(self.share)) * half, variance)
        log += math.log(2) - math.log1p(-self.share)
        return MeanSet(sample_mean(X), unit * _radius(m, region.diameter, variance, log))

    def least(self, delta: float) -> int:
        return 2

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float | None:
        if self.variance is None or region is None:
            return None
        _, small, unit = in_units(np.zeros(0), region)
        return unit * float(
            _radius(m, small.diameter, min(self.variance / unit / unit, small.variance), log_of(2, delta))
        )

    def assumptions(self) -> list[tuple[str, str]]:
        return [] if self.variance is None else [(f"E‖X − EX‖² ≤ {self.variance:.4g}", "declared")]


def _radius(m: int, b: float, variance: Any, log: float) -> Any:
    """The claim, with L = `log`."""
    return (log * b / 3 + np.sqrt((log * b / 3) ** 2 + 2 * log * m * variance)) / m
