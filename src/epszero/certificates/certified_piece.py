"""The certified piece: sharp bounds on distance, savings and single entries, for affine B over polyhedra.

Claim: with probability ≥ 1 − δ, all of these hold at once: what `MeanDeviation` says at its share of δ; and, where the
piece of x̂ is certified to be that of the truth (certificates/sharp.py), the bounds that follow from it. Of two bounds
on one number the smaller is taken; the shares are fixed before the data are looked at. `of="distance"` spends on that
line all but what it needs: the piece, and a residual for where the piece is not certified.
The residual has the share ρ = max(0.65, δ^0.14) of δ, so that ln(1/ρδ) ≤ 1.14 ln(1/δ) and ln(2/ρδ) ≤ 1.115 ln(2/δ):
where the range rules, a radius grows like that, and else like its root. With fewer samples than a piece takes, all of δ
is the residual's. So ε is at most 12 % above that of `MeanDeviation` at δ, whatever δ is.
Assumes what `MeanDeviation` assumes, with additive noise; B affine and monotone; A polyhedral; a support with corners.
Source: docs/theory.md, section 6.
"""

from dataclasses import dataclass, replace

from epszero._checks import one_of
from epszero.certificates._base import Finding, Kind, cannot
from epszero.certificates._inputs import GivenSupport, checked_support
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.first_exit import Partial, first_exit
from epszero.certificates.mean_deviation import every_sample
from epszero.certificates.piece import may_have_pieces
from epszero.certificates.sharp import FEWEST, Levels, Sharp, Undecided, certified
from epszero.facts import Unknown, has_costs

RESIDUAL, LOOSER = 0.65, 0.14  # of δ, or δ^0.14 where that is more
OTHERS = {"piece": 10, "distance": 200, "exploitability": 130, "intervals": 15}  # parts of what is left
WITHOUT_COSTS = OTHERS | {"distance": 330, "exploitability": 0}  # nobody saves anything
ALONE = {"residual": 0.2, "piece": 0.02}  # where one line is asked for: what is left for the others
LINES = ("residual", "distance", "exploitability", "cost gap", "intervals")
IMAGE = "image"  # the line of a linear image of x (certificates/image.py)


@dataclass(frozen=True, eq=False)
class Sharpened:
    """The certified piece, or why there is none, and what of δ is left for each line."""

    known: Sharp | Unknown
    delta: float
    shares: dict[str, float]  # in δ, 0 where a line is not asked for
    partial: Partial | None = None  # what is certified of the piece where it is not certified whole

    @property
    def intervals(self) -> Sharp | Partial | Unknown:
        """What bounds linear functions of x*."""
        return self.known if self.partial is None else self.partial

    @property
    def levels(self) -> Levels:
        """Of the events on the piece."""
        return Levels(self.shares["distance"], self.shares["exploitability"], self.shares["intervals"])


@dataclass(frozen=True, eq=False)
class CertifiedPiece(Kind):
    """Everything on the piece that the truth lies on, where it can be certified; else what `MeanDeviation` says.

    `of`: one line, such as "distance", to spend all of δ on; None for all of them. `support`: as in `MeanDeviation`.
    """

    of: str | None = None
    support: GivenSupport = None

    def __post_init__(self) -> None:
        if self.of is not None:
            one_of("of", self.of, (*LINES, IMAGE), "Pass one of these, or leave it out for all lines")
        checked_support(self.support)

    @property
    def title(self) -> str:
        return "sample-mean deviation and the certified piece"

    def examine(self, case: Case, delta: float) -> Finding:
        evidence = Evidence(case, every_sample(case), self.support)
        if evidence.collapsed is None or not may_have_pieces(case):
            cannot(
                "the certified piece needs B affine and monotone with additive noise, and polyhedral sets or "
                "functions: use MeanDeviation, or leave using= out"
            )
        count = len(evidence.rows[0]) if evidence.rows else 0
        shares = {name: delta * part for name, part in self.shares(has_costs(case.problem), delta, count).items()}
        bound = evidence.suited()
        found = examined(evidence, bound, shares["residual"], self.title)
        (region,), _ = evidence.regions(bound)
        C, _ = case.noise_map(evidence.collapsed)
        known = Unknown("the features have no bounded support") if region is None else Unknown("C is too large")
        doubtful = [one for one in (case.facts.derivative, case.facts.constraints) if isinstance(one, Unknown)]
        if doubtful:
            known = doubtful[0]  # a zero of B need not be what is meant by x*
        elif region is not None and C is not None and self.of != "residual":
            known = certified(case, evidence.rows[0], region, C, shares["piece"])
        partial = None
        if isinstance(known, Undecided) and C is not None and found.residuals is not None:
            partial = first_exit(case, known, found.residuals, C)
        return replace(found, sharp=Sharpened(known, delta, shares, partial))

    def shares(self, costs: bool, delta: float, samples: int) -> dict[str, float]:
        """Of δ, for each event. `costs`: there are some that x could fail to minimise."""
        line = "exploitability" if self.of == "cost gap" else self.of
        if line == "residual" or samples < FEWEST:
            return dict.fromkeys(OTHERS, 0.0) | {"residual": 1.0}
        if line is not None:
            return dict.fromkeys(OTHERS, 0.0) | ALONE | {line: 1 - sum(ALONE.values())}
        residual, parts = max(RESIDUAL, delta**LOOSER), OTHERS if costs else WITHOUT_COSTS
        whole = sum(parts.values())
        return {"residual": residual} | {name: (1 - residual) * part / whole for name, part in parts.items()}
