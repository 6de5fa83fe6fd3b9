"""Unbounded noise with declared sub-Gaussian tails: ‖X̄ − μ‖ ≤ σ√((d + 2√(d t) + 2t)/m), t = ln(1/δ).

Claim: with probability ≥ 1 − δ. Assumes independent samples with E exp⟨v, X − μ⟩ ≤ exp(σ²‖v‖²/2) for every v, σ
declared. In dimension one σ√(2 ln(2/δ)/m) holds too; the smaller of the two is taken, before any data are seen.
Source: Hsu, Kakade & Zhang, A tail inequality for quadratic forms of subgaussian random vectors (2012), Thm 1, for X̄,
which is sub-Gaussian with σ/√m.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from epszero._checks import one_positive
from epszero.certificates.mean._base import MeanBound, log_of
from epszero.facts.region import Region


@dataclass(frozen=True)
class SubGaussian(MeanBound):
    """A ball for noise with sub-Gaussian tails in every direction; `sigma` is the user's word."""

    title: ClassVar[str] = "sub-Gaussian tails"
    needs_region: ClassVar[bool] = False
    sigma: float

    def __post_init__(self) -> None:
        one_positive("sigma", self.sigma, strict=False)

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        t = log_of(1, delta)
        square = dim + 2 * math.sqrt(dim * t) + 2 * t
        if dim == 1:
            square = min(square, 2 * log_of(2, delta))
        return self.sigma * math.sqrt(square / m)

    def assumptions(self) -> list[tuple[str, str]]:
        return [(f"sub-Gaussian noise with σ = {self.sigma:.4g} in every direction", "declared")]
