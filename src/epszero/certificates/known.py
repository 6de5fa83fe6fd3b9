"""Nothing is uncertain: e = ê, known up to rounding.

Claim: e = z + B(x), which is computed. Assumes nothing beyond z ∈ A(x), which is checked.
"""

from dataclasses import dataclass

from epszero._points import length
from epszero.certificates._base import Finding, Kind, cannot
from epszero.certificates.case import Case
from epszero.certificates.residuals import Residuals


@dataclass(frozen=True, eq=False)
class Known(Kind):
    """For problems without samples."""

    @property
    def title(self) -> str:
        return "direct evaluation, as nothing is uncertain"

    def examine(self, case: Case, delta: float) -> Finding:
        if case.problem.oracle.uncertain:
            cannot("the problem depends on samples")
        empirical = length(case.empirical)
        return Finding(Residuals.ball(case.empirical, 0.0), self.title, {"empirical": empirical, "deviation": 0.0})
