"""The tightest of several certificates.

Claim: each holds with probability ≥ 1 − δ_j, Σδ_j = δ, so all hold together with probability ≥ 1 − δ, and every
quantity may be taken from whichever bounds it best. Choosing after the fact needs this split of δ.
Source: docs/theory.md, section 3, several certificates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epszero._checks import positive, refuse
from epszero._types import Real
from epszero.certificates._base import Finding, Kind, Refused, cannot
from epszero.certificates.case import Case
from epszero.samples import Samples

LEAST = 1e-100  # of the largest weight, that every other must be


@dataclass(frozen=True, eq=False)
class Tightest(Kind):
    """The smallest of several, δ split equally or by `weights`."""

    kinds: Sequence[Kind]
    weights: Real | None = None

    def __post_init__(self) -> None:
        _check_kinds(self.kinds)
        if self.weights is None:
            return
        weights = positive("weights", self.weights)
        if weights.shape != (len(self.kinds),):
            refuse(
                "weights",
                f"must be one number for each of the {len(self.kinds)} certificates",
                "Leave it out to split evenly",
            )
        if not weights.min() / weights.max() >= LEAST:
            refuse(
                "weights",
                f"are too far apart: {weights.min():g} of {weights.max():g} leaves that certificate nothing of delta",
                f"Pass weights that are at least {LEAST:g} of the largest, or leave that certificate out",
            )

    @property
    def title(self) -> str:
        return "the tightest of " + ", ".join(kind.title for kind in self.kinds)

    @property
    def brought(self) -> list[Samples]:
        return [one for kind in self.kinds for one in kind.brought]

    def recordable(self, most: int) -> "Tightest":
        return replace(self, kinds=[kind.recordable(most) for kind in self.kinds])

    def examine(self, case: Case, delta: float) -> Finding:
        weights = np.ones(len(self.kinds)) if self.weights is None else positive("weights", self.weights)
        weights = weights / weights.max()  # their sum is finite now
        shares = delta * (weights / weights.sum())
        found: list[Finding] = []
        reasons: list[str] = []
        for kind, share in zip(self.kinds, shares, strict=True):
            if not share > 0:
                reasons.append(f"{kind.title}: its share of delta = {delta:g} is too small to be written down")
                continue
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
        return Finding(
            best.residuals,
            f"{best.by}, the best of {len(self.kinds)} with delta split",
            terms,
            leans_on,
            alternatives=others,
        )


def _check_kinds(kinds: Any) -> None:
    if not isinstance(kinds, list | tuple) or not kinds:
        refuse("kinds", "must be a list of certificates", "Pass [MeanDeviation(), VectorStability()], say")
    if not all(isinstance(kind, Kind) for kind in kinds):
        refuse("kinds", "must hold certificates such as ez.certificates.MeanDeviation()", "Pass objects of that kind")
    apart = [kind.title for kind in kinds if kind.other_truth]
    if apart:
        refuse("kinds", f"one of them, {apart[0]}, speaks of another B than the others", "Certify by it alone")
    guesses = [kind.title for kind in kinds if kind.guess]
    if guesses:
        refuse("kinds", f"one of them, {guesses[0]}, is a guess, which would make all of them one", "Ask it by itself")
