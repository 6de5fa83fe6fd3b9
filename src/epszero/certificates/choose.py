"""Which certificate a solution gets when the user names none: from structure and assumptions, never from values."""

from epszero.certificates._base import Kind
from epszero.certificates.at_the_truth import LINE_OF, AtTheTruth, obstacle_to
from epszero.certificates.case import Case
from epszero.certificates.certified_piece import IMAGE, CertifiedPiece
from epszero.certificates.hold_out import HoldOut
from epszero.certificates.known import Known
from epszero.certificates.mean_deviation import MeanDeviation
from epszero.certificates.piece import may_have_pieces
from epszero.certificates.vector_stability import VectorStability

AT_THE_TRUTH = "the Jacobian depends on ξ: all samples serve, at the truth, which does not depend on them"
NOT_AFFINE = (
    "nothing was kept aside: all samples serve, at the truth (holdout=0.5 of ez.solve may give a shorter bound)"
)
CONSTANTS = "the size of the noise and a Lipschitz constant are declared, and no samples were kept aside"


def chosen(case: Case, of: str | None = None) -> tuple[Kind, str]:
    """The kind, and why; `of`: the line that matters most."""
    line = "distance" if of == IMAGE else of if of in LINE_OF else None  # of those that `AtTheTruth` knows
    if not case.problem.oracle.uncertain:
        return Known(), "the problem has no samples"
    structure, collapsed = case.facts.structure, case.collapsed(case.samples)
    if collapsed is not None and of != "residual" and may_have_pieces(case):
        return CertifiedPiece(of), "B is affine over polyhedra, with additive noise: all samples serve, on one piece"
    if structure.affine and structure.degree.mixed and not obstacle_to(case):
        return AtTheTruth(line), AT_THE_TRUTH
    if collapsed is not None:
        return MeanDeviation(), "the oracle is affine in features of ξ, so all samples serve, for any x"
    return _for_general_oracles(case, line)


def _for_general_oracles(case: Case, line: str | None) -> tuple[Kind, str]:
    declared = case.problem.declared
    if case.kept_aside is not None:
        return HoldOut(), "nothing is known of how the oracle depends on ξ, and samples were kept aside"
    if (declared.R is not None or declared.M is not None) and declared.kappa is not None:
        return VectorStability(), CONSTANTS
    if len(case.samples) == 1 and not obstacle_to(case):
        return AtTheTruth(line), NOT_AFFINE
    return HoldOut(), "nothing is known of how the oracle depends on ξ"
