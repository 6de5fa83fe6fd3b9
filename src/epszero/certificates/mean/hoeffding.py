"""Hoeffding's inequality in Hilbert space: ‖X̄ − μ‖ ≤ ρ√(2 ln(2/δ)/m), ρ the circumradius of the support.

Claim: with probability ≥ 1 − δ. Assumes independent samples in a ball of radius ρ, wherever its centre.
Source: Pinelis (Ann. Probab. 22, 1994) has b ≥ ‖X − μ‖, up to 2ρ, in place of ρ. The sharper constant is ours. Proof:
let a = w(X − centre), A = ‖a‖ ≤ r = wρ, b = E a, S independent of a, s = ‖S‖, u = S/s. Since the Hessian of cosh‖·‖ is
at most cosh‖·‖ times the identity, t ↦ cosh‖S + ta‖ grows no faster than the solution of y″ = A²y:
    cosh‖S + a‖ ≤ cosh s cosh A + sinh s ⟨u, a⟩ sinh A/A ≤ cosh s cosh r + sinh s ⟨u, a⟩ sinh r/r
(both terms together increase with A as |⟨u, a⟩| ≤ A). In expectation, with p = ⟨u, b⟩ ∈ [−r, r], that is the mean of
cosh(s + Z) for Z = ±r with mean p, at most e^{r²/2} cosh(s + p) by Hoeffding's lemma, and cosh(s + p) ≤ cosh‖S + b‖. So
cosh‖w Σ(X_i − μ)‖ e^{−mr²/2} is a supermartingale, at most 1/δ with probability ≥ 1 − δ; cosh y ≥ e^y/2; w is best.
`Stitched` holds for all m at once: on m ∈ [2^k, 2^{k+1}) the same with 2^{k+1} for m and δ/((k+1)(k+2)) for δ.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from epszero.certificates.mean._base import MeanBound, bounded, log_of
from epszero.facts.region import Region


@dataclass(frozen=True)
class Hoeffding(MeanBound):
    """A ball whose radius depends on the support alone."""

    title: ClassVar[str] = "Hoeffding's inequality in Hilbert space"

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        return bounded(region).circumradius * math.sqrt(2 * log_of(2, delta) / m)

    def streaming(self) -> MeanBound:
        return Stitched()


@dataclass(frozen=True)
class Stitched(MeanBound):
    """Hoeffding's ball, for all sample sizes at once."""

    title: ClassVar[str] = "stitched Hoeffding inequality, valid at every sample size"

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        k = int(m).bit_length() - 1
        return bounded(region).circumradius / m * math.sqrt(2.0 ** (k + 2) * log_of(2 * (k + 1) * (k + 2), delta))

    def streaming(self) -> MeanBound:
        return self
