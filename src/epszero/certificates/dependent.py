"""Samples that depend on each other, with a declared rate of mixing; for oracles that are affine in features.

Claim (β-mixing): keep every a-th sample, m = ⌊s/a⌋ of them; what holds for m independent samples with probability 1 −
δ′ holds for these with probability ≥ 1 − δ′ − (m − 1)β(a). So δ′ = δ − (m − 1)β(a). The gap a, where not given, is the
one that makes the most of ln(2/δ′)/m, which does not depend on the data.
Claim (φ-mixing): ‖φ̄ − Eφ‖ ≤ R(1 + 2Σφ(k))√(2 ln(2/δ)/s), all samples.
Assumes a stationary sequence with these rates, which are the user's word, and a bounded support. Source:
Berbee's coupling, as in Yu (1994); and the martingale of E[Σφ(ξ_j) | ξ_1 … ξ_i] with the inequality of Pinelis (1994).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from epszero._checks import count, positive, refuse
from epszero.certificates._base import Finding, Kind, Leaning, cannot
from epszero.certificates._inputs import GivenSupport, checked_bound, checked_delta, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.mean import MeanBound, Region
from epszero.certificates.mean._base import bounded, log_of
from epszero.facts import Provenance

Rates = Callable[[int], float] | Mapping[int, float] | Sequence[float]


@dataclass(frozen=True)
class Promise:
    """What a declared rate would promise."""

    gap: int  # between samples that are kept
    kept: int  # samples that count; one always does
    delta_left: float  # for the bound
    width: float  # relative to as many independent samples: about how much wider the variance part of ε is


@dataclass(frozen=True, eq=False)
class Dependent(Kind):
    """Every a-th sample under β-mixing, or all samples under φ-mixing.

    `beta`: β(a), as a function of the gap a, a list β(1), β(2), …, or a dictionary. `phi`: the sum of φ(1), φ(2), …, or
    a list of them (0 beyond). Exactly one of the two. `gap`: a. `bound`, `support` as in MeanDeviation.
    """

    beta: Rates | None = None
    phi: float | Sequence[float] | None = None
    gap: int | None = None
    bound: MeanBound | None = None
    support: GivenSupport = None

    def __post_init__(self) -> None:
        checked_bound(self.bound)
        checked_support(self.support)
        if (self.beta is None) == (self.phi is None):
            refuse(
                "beta, phi", "exactly one rate of mixing must be declared", "Pass beta=lambda a: 2 * 0.9**a, or phi=…"
            )
        if self.phi is not None:
            positive("phi", self.phi, strict=False)
            if self.bound is not None or self.gap is not None:
                refuse("phi", "has a bound of its own and uses all samples", "Leave bound and gap out")
        if self.gap is not None:
            count("gap", self.gap, least=1)

    @property
    def title(self) -> str:
        return "dependent samples"

    def recordable(self, most: int) -> "Dependent":
        """With a function for a rate of mixing replaced by its values."""
        if not callable(self.beta):
            return self
        return replace(self, beta=[float(self.beta(gap)) for gap in range(1, most + 1)])

    def examine(self, case: Case, delta: float) -> Finding:
        if case.collapsed(case.samples) is None or len(case.samples) != 1:
            cannot("dependent samples need an oracle that is affine in features, and one data set for all agents")
        (samples,) = case.samples
        if self.phi is not None:
            total = float(np.sum(self.phi))
            said = Leaning(f"φ-mixing samples with Σφ(k) ≤ {total:.4g}", Provenance.DECLARED)
            return examined(
                Evidence(case, [samples], self.support, independent=False), PhiMixing(total), delta, self.title, said
            )
        gap, left = self._thinned(len(samples), delta)
        kept = samples[::gap][: len(samples) // gap]
        said = Leaning(f"β-mixing samples with β({gap}) ≤ {self._rate(gap):.3g}", Provenance.DECLARED)
        evidence = Evidence(case, [kept], self.support, independent=False)
        finding = examined(
            evidence, self.bound or evidence.suited(), left, f"{self.title}, every {gap}-th of {len(samples)}", said
        )
        finding.terms.update(gap=float(gap), beta=self._rate(gap), delta_left=left)
        return finding

    @staticmethod
    def table(samples: int, rates: Sequence[Rates], delta: float = 0.05) -> "list[Promise]":
        """What different declared rates β would promise of so many samples, before any data are looked at.

        `rates`: as `beta`. None is better than another by itself: which of them is true is for the user to know. The
        width is √(ln(2/δ′)/m), relative to that of as many independent samples.
        """
        s, share = count("samples", samples, least=1), checked_delta(delta)
        found: list[Promise] = []
        for beta in rates:
            gap, left = Dependent(beta=beta)._thinned(s, share)
            width = math.sqrt(log_of(2, left) / (s // gap) / (log_of(2, share) / s))
            found.append(Promise(gap, s // gap, left, width))
        return found

    def _thinned(self, s: int, delta: float) -> tuple[int, float]:
        """The gap and what is left of δ; no data are looked at."""
        gaps = [self.gap] if self.gap is not None else range(1, s + 1)
        left = {gap: delta - (max(s // gap, 1) - 1) * self._rate(gap) for gap in gaps if s // gap >= 1}
        good = {gap: share for gap, share in left.items() if share > 0}
        if not good:
            cannot(
                f"the samples depend on each other too long: for no gap is (m − 1)β(gap) below "
                f"delta = {delta:g}; take more samples"
            )
        best = min(good, key=lambda gap: log_of(2, good[gap]) / (s // gap))
        return best, good[best]

    def _rate(self, gap: int) -> float:
        rates = self.beta
        if callable(rates):
            value = rates(gap)
        elif isinstance(rates, Mapping):
            value = rates.get(gap, 1.0)
        else:
            assert rates is not None
            value = rates[gap - 1] if gap <= len(rates) else 1.0
        value = float(positive(f"beta({gap})", value, strict=False))
        return min(value, 1.0)


@dataclass(frozen=True)
class PhiMixing(MeanBound):
    """The φ-mixing ball; `total` is Σφ(k)."""

    title: ClassVar[str] = "φ-mixing inequality"
    total: float

    def radius(self, m: int, dim: int, region: Region | None, delta: float) -> float:
        return bounded(region).diameter * (1 + 2 * self.total) * math.sqrt(2 * log_of(2, delta) / m)
