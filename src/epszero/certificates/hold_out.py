"""Hold-out: x is frozen, and its residual is measured on samples that it has not seen. Any oracle.

Claim: e ∈ z + U, U a confidence set for the mean of O(x, ξ_j) over m fresh samples (of C(x)φ(ξ_j) where the oracle has
features), with probability ≥ 1 − δ. Needs no monotonicity of samples, no structure and no number of iterations.
Assumes fresh, independent samples and a bound on ‖O(x, ξ) − O(x, ξ′)‖ at this x (declared R or M), or a support of the
features. Source: docs/theory.md, section 3, hold-out.
"""

from dataclasses import dataclass

from epszero._checks import refuse
from epszero.certificates._base import Finding, Kind, Leaning, Obstacle, cannot
from epszero.certificates._inputs import GivenSupport, checked_bound, checked_data_set, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.mean import MeanBound
from epszero.facts import Provenance
from epszero.samples import Samples

FRESH = Leaning("fresh, independent samples of one law", Provenance.DECLARED, "the run has not seen them")


@dataclass(frozen=True, eq=False)
class HoldOut(Kind):
    """Fresh samples, any oracle.

    `samples`: the fresh ones; by default those that `ez.solve(..., holdout=0.3)` kept aside. Samples that the solution
    has seen are refused. `bound`, `support` as in MeanDeviation; without features the support is that of O(x, ξ).
    """

    bound: MeanBound | None = None
    support: GivenSupport = None
    samples: Samples | None = None

    def __post_init__(self) -> None:
        checked_bound(self.bound)
        checked_support(self.support)
        checked_data_set(self.samples)

    @property
    def title(self) -> str:
        return "hold-out"

    def examine(self, case: Case, delta: float) -> Finding:
        evidence = Evidence(case, [fresh(case, self.samples)], self.support, case.samples)
        return examined(evidence, self.bound or evidence.suited(), delta, self.title, FRESH)


def fresh(case: Case, given: Samples | None) -> Samples:
    """Samples that the solution has not seen; everything else is refused."""
    samples = case.kept_aside if given is None else given
    if samples is None:
        cannot(
            "no samples were kept aside: ez.solve(..., holdout=0.3) does, or pass HoldOut(samples=fresh)",
            obstacle=Obstacle.NOTHING_KEPT_ASIDE,
        )
    if case.own_data:
        cannot("hold-out needs one data set for all agents")
    if given is not None and any(samples.overlaps(seen) for seen in case.samples):
        refuse(
            "samples",
            "the solution has seen some of these samples, or others that were drawn with the same seed, so they say "
            "nothing about it",
            "Keep samples aside with ez.solve(..., holdout=0.3), or pass others, drawn with another seed",
        )
    return samples
