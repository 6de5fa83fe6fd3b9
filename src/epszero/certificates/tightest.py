"""The tightest of several certificates.

Claim: each holds with probability ≥ 1 − δ_j, Σδ_j = δ, so all hold together with probability ≥ 1 − δ, and every
quantity may be taken from whichever bounds it best. Choosing after the fact needs this split of δ. Source: THEORY 3(e).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero._checks import positive, refuse
from epszero.certificates._base import Finding, Kind, Refused, cannot
from epszero.certificates.case import Case


@dataclass(frozen=True, eq=False)
class Tightest(Kind):
    """The smallest of several, δ split equally or by `weights`."""

    kinds: Sequence[Any]
    weights: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.kinds, list | tuple) or not self.kinds:
            refuse("kinds", "must be a list of certificates", "Pass [MeanDeviation(), VectorStability()], say")
        if not all(isinstance(kind, Kind) for kind in self.kinds):
            refuse(
                "kinds", "must hold certificates such as ez.certificates.MeanDeviation()", "Pass objects of that kind"
            )
        if self.weights is not None and positive("weights", self.weights).shape != (len(self.kinds),):
            refuse(
                "weights",
                f"must be one number for each of the {len(self.kinds)} certificates",
                "Leave it out to split evenly",
            )

    @property
    def title(self) -> str:
        return "the tightest of " + ", ".join(kind.title for kind in self.kinds)

    def examine(self, case: Case, delta: float) -> Finding:
        weights = np.ones(len(self.kinds)) if self.weights is None else positive("weights", self.weights)
        weights = weights / weights.max()
        shares = delta * weights / weights.sum()
        found: list[Finding] = []
        reasons: list[str] = []
        for kind, share in zip(self.kinds, shares, strict=True):
            try:
                found.append(kind.examine(case, float(share)))
            except Refused as refused:
                reasons.append(f"{kind.title}: {refused}")
        if not found:
            cannot("none of them can say anything. " + " ".join(f"{reason.rstrip('.')}." for reason in reasons))
        best = min(found, key=lambda one: one.epsilon)
        others = tuple(one for finding in found for one in finding.every if one is not best.residuals)
        leans_on = tuple(dict.fromkeys(leaning for finding in found for leaning in finding.leans_on))
        terms = best.terms | {f"epsilon by {finding.by}": finding.epsilon for finding in found}
        return Finding(best.residuals, f"{best.by}, the best of {len(self.kinds)} with delta split", terms, leans_on,
                       alternatives=others)  # fmt: skip
