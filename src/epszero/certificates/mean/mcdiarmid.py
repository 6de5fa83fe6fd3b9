"""‖X̄ − μ‖ ≤ σ/√m + R√(ln(1/δ)/2m), with σ² ≥ E‖X − μ‖² and R the diameter of the support.

Claim: with probability ≥ 1 − δ. Assumes independent samples in a region of diameter R; σ² is the square of its
circumradius. Source: McDiarmid's inequality for ‖X̄ − μ‖, which changes by at most R/m with one sample, and whose mean
is at most σ/√m by Jensen's inequality.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from epszero.certificates.mean._base import MeanBound, bounded, log_of
from epszero.facts.region import Region


@dataclass(frozen=True)
class McDiarmid(MeanBound):
    """A ball whose radius depends on the support alone; smaller than Hoeffding's only where δ is not small."""

    title: ClassVar[str] = "McDiarmid's inequality"

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        known = bounded(region)
        return known.circumradius / math.sqrt(m) + known.diameter * math.sqrt(log_of(1, delta) / (2 * m))
