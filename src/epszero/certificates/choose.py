"""Which certificate a solution gets when the user names none: from structure and assumptions, never from values."""

from epszero.certificates._base import Kind
from epszero.certificates.case import Case
from epszero.certificates.certified_piece import CertifiedPiece
from epszero.certificates.hold_out import HoldOut
from epszero.certificates.known import Known
from epszero.certificates.mean_deviation import MeanDeviation
from epszero.certificates.piece import may_have_pieces
from epszero.certificates.vector_stability import VectorStability


def chosen(case: Case, of: str | None = None) -> tuple[Kind, str]:
    """The kind, and why; `of`: the line that matters most."""
    declared = case.problem.declared
    if not case.problem.oracle.uncertain:
        return Known(), "the problem has no samples"
    if case.collapsed(case.samples) is not None and of != "residual" and may_have_pieces(case):
        return CertifiedPiece(of), "B is affine over polyhedra, with additive noise: all samples serve, on one piece"
    if case.collapsed(case.samples) is not None:
        return MeanDeviation(), "the oracle is affine in features of ξ, so all samples serve, for any x"
    if case.kept_aside is not None:
        return HoldOut(), "nothing is known of how the oracle depends on ξ, and samples were kept aside"
    if (declared.R is not None or declared.M is not None) and declared.kappa is not None:
        return (
            VectorStability(),
            "the size of the noise and a Lipschitz constant are declared, and no samples were kept aside",
        )
    return HoldOut(), "nothing is known of how the oracle depends on ξ"
