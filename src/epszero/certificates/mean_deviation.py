"""Sample-mean deviation, for oracles that are affine in features: O(x, ξ) = G(x) + C(x)φ(ξ).

Claim: if U holds E φ(ξ) with probability ≥ 1 − δ, then e ∈ z + G(x) + C(x)U for every x at once. So all samples are
used, for any algorithm, any number of iterations, any tuning after the fact. Vanishes like 1/√s.
Assumes independent samples, the structure (found by tracing the function, or declared: ez.oracles.Additive, Affine,
AffineInFeatures), and what the bound on the mean assumes: a bounded support of φ(ξ), or declared tails.
Source: docs/theory.md, section 3, structure.
"""

from dataclasses import dataclass

from epszero.certificates._base import Finding, Kind, cannot
from epszero.certificates._inputs import GivenSupport, checked_bound, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.mean import MeanBound
from epszero.samples import Samples


@dataclass(frozen=True, eq=False)
class MeanDeviation(Kind):
    """All samples, any x.

    `bound`: a confidence set for a mean, such as EmpiricalBernstein() or Betting(); by default the one that suits the
    number of features. `support`: a set that holds every possible φ(ξ), where φ(ξ) is not ξ itself, whose support the
    samples bring along; "estimated" takes the range of the data, and the certificate is then heuristic.
    """

    bound: MeanBound | None = None
    support: GivenSupport = None

    def __post_init__(self) -> None:
        checked_bound(self.bound)
        checked_support(self.support)

    @property
    def title(self) -> str:
        return "sample-mean deviation"

    def examine(self, case: Case, delta: float) -> Finding:
        evidence = Evidence(case, every_sample(case), self.support)
        if evidence.collapsed is None:
            cannot(
                "the oracle is not known to be affine in features of ξ: wrap it in ez.oracles.Affine or Additive if "
                "it is; else keep samples aside (ez.solve(..., holdout=0.3)) and use HoldOut"
            )
        return examined(evidence, self.bound or evidence.suited(), delta, self.title)


def every_sample(case: Case) -> list[Samples]:
    """What the run has seen, and what was kept aside: a bound for every x at once may use both."""
    kept = case.kept_aside
    return case.samples if kept is None else [case.samples[0].followed_by(kept)]
