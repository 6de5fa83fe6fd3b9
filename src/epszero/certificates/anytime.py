"""Valid at every sample size at once: a certificate that may be read whenever one likes, and grows with the stream.

Claim: with probability ≥ 1 − δ the bound holds at all sample sizes at once, so it may be looked at after every sample,
and the smallest of all looks may be kept: `update` never makes it weaker. Where the oracle has features it holds for
every x at once, so x may be solved anew on the way; else x stays frozen and the stream must be fresh.
Assumes what MeanDeviation or HoldOut assume, and a bound with a form for all sample sizes: EmpiricalBernstein, Betting,
Hoeffding (stitched). Source: docs/theory.md, section 3, confidence sets for a mean.
"""

from dataclasses import dataclass, replace
from typing import Any

from epszero._checks import count, refuse
from epszero.certificates._base import Finding, Kind, cannot
from epszero.certificates._inputs import GivenSupport, checked_bound, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.hold_out import FRESH, fresh
from epszero.certificates.mean import MeanBound
from epszero.samples import Samples


@dataclass(frozen=True, eq=False)
class Anytime(Kind):
    """For data that stream in. `samples`: the stream so far; by default what the solution saw, or its hold-out.

    `looks`: earlier sample sizes at which the certificate was read, which it may still use.
    """

    bound: MeanBound | None = None
    support: GivenSupport = None
    samples: Samples | None = None
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        checked_bound(self.bound)
        checked_support(self.support)
        if isinstance(self.support, str):
            refuse("support", "an estimated range changes with the data, so it serves no stream", "Give a set")
        if self.bound is not None and self.bound.streaming() is None:
            refuse(
                "bound",
                f"{self.bound.title} does not hold at every sample size at once",
                "Use EmpiricalBernstein, Betting or Hoeffding",
            )
        looks: Any = self.looks
        if not isinstance(looks, list | tuple):
            refuse("looks", f"must be a tuple of sample sizes, but it is {looks!r}", "Pass (100, 1000), say")
        for look in self.looks:
            count("looks", look, least=1)

    @property
    def title(self) -> str:
        return "anytime deviation"

    def stream(self, case: Case) -> tuple[Samples, bool]:
        """The data, and whether they must not have been seen by the run."""
        if len(case.samples) != 1 or case.own_data:
            cannot("a stream is one data set that all agents see")
        structured = case.collapsed(case.samples) is not None
        if structured:
            return self.samples or case.samples[0], False
        return fresh(case, self.samples), True

    def examine(self, case: Case, delta: float) -> Finding:
        samples, unseen = self.stream(case)
        found: list[Finding] = []
        for look in sorted({*(size for size in self.looks if size < len(samples)), len(samples)}):
            evidence = Evidence(case, [samples[:look]], self.support, case.samples if unseen else None)
            bound = (self.bound or evidence.suited()).streaming()
            assert bound is not None
            if look == len(samples) or look >= bound.least(delta):
                leanings = (FRESH,) if unseen else ()
                found.append(examined(evidence, bound, delta, self.title, *leanings))
        last = found[-1]
        best = min(finding.epsilon for finding in found)
        terms = last.terms | {"deviation": best - last.terms["empirical"]}
        earlier = tuple(one for finding in found[:-1] for one in finding.every)
        return replace(last, terms=terms, alternatives=earlier)

    def grown(self, case: Case, more: Samples) -> "Anytime":
        """With more of the stream, remembering that the certificate was read before."""
        samples, _ = self.stream(case)
        if samples.overlaps(more):
            refuse(
                "new_samples",
                "some of them are in the stream already, or others that were drawn with the same seed, and would count "
                "twice",
                "Pass new ones only, drawn with another seed",
            )
        return replace(self, samples=samples.followed_by(more), looks=(*self.looks, len(samples)))
