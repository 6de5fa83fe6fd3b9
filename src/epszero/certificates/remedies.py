"""What a distance on a certified piece is made of, and about how far other data or another question would take it.

The bound is v + r + d: v = √(2σ²ln(2/δ)/s) by variance, r the rest of the radius at level δ, by range, d by the split
of δ among lines. v is in proportion to √(ln(2/δ)/s), r to ln(2/δ)·width/s, and the split is taken to multiply both by
(v + r + d)/(v + r). So twice the samples make v/√2 + r/2, a support half as wide v + r/2, twice the risk v√q + rq with
q = ln(2/δ′)/ln(2/δ″), δ′ and δ″ the distance's parts of 2δ and of δ, each times that factor; asked for alone, the line
has all of δ but ALONE in place of its share.
Forecasts, not bounds: the variance is taken to stay, and r to be in proportion. Cost: nothing.
"""

import math
from enum import StrEnum
from typing import TYPE_CHECKING

from epszero.certificates.certified_piece import ALONE, CertifiedPiece
from epszero.facts import has_costs

if TYPE_CHECKING:
    from epszero.certificates.certificate import Certificate

FLOOR = "distance, floor"
ROUNDING = 1e-9


class Part(StrEnum):
    """Of a distance."""

    VARIANCE = "variance"
    RANGE = "range"
    SPLIT = "the split of delta"


class Remedy(StrEnum):
    """What could be changed."""

    SAMPLES = "twice the samples"
    SUPPORT = "a support half as wide"
    QUESTION = "only the distance asked for"
    RISK = "twice the risk"


def parts(certificate: "Certificate") -> dict[Part, float]:
    """The parts, which add up to the distance; none where it does not come from the piece."""
    found = {part: certificate.terms.get(f"distance by {part}", math.nan) for part in Part}
    away = certificate.distance
    by_piece = away is not None and away > 0 and sum(found.values()) <= away * (1 + ROUNDING)
    return found if by_piece else {}


def forecasts(certificate: "Certificate") -> dict[Remedy, float]:
    """About what the distance would be."""
    made = parts(certificate)
    if not made or certificate.distance is None:
        return {}
    v, r = made[Part.VARIANCE], made[Part.RANGE]
    split = certificate.distance / (v + r) if v + r > 0 else 1.0
    log = math.log(2 / certificate.delta)
    found = {Remedy.SAMPLES: (v / math.sqrt(2) + r / 2) * split, Remedy.SUPPORT: (v + r / 2) * split}
    if isinstance(certificate.using, CertifiedPiece) and certificate.using.of is None:
        q = math.log(2 / (certificate.delta * (1 - sum(ALONE.values())))) / log
        found[Remedy.QUESTION] = v * math.sqrt(q) + r * q
    if 2 * certificate.delta < 1:
        q = math.log(2 / _spent(certificate, 2.0)) / math.log(2 / _spent(certificate, 1.0))
        found[Remedy.RISK] = (v * math.sqrt(q) + r * q) * split
    return {remedy: away for remedy, away in found.items() if away < certificate.distance}


def _spent(certificate: "Certificate", times: float) -> float:
    """What the distance would have of so many times δ."""
    delta, solution = times * certificate.delta, certificate.solution
    if not isinstance(certificate.using, CertifiedPiece) or solution is None:
        return delta
    samples = int(certificate.terms["samples"])
    return delta * certificate.using.shares(has_costs(solution.problem), delta, samples)["distance"]
