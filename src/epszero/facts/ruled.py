"""What rules of convexity prove of O (composed.py), as constants with provenance.

Slopes, steepness and sizes hold over domain and support, of any size, where every derivative on the way is bounded.
Costs whose values may have kinks get no slope: at a kink the derivative of O is a jump. That every own cost is convex
is the same matter with the others held still.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epszero._trace.intervals import NoEnclosure
from epszero._types import FloatArray
from epszero.facts.composed import Composed, composed
from epszero.facts.composed_sizes import sizes_of
from epszero.facts.composed_slopes import own_slope, slopes_of
from epszero.facts.domains import domain_ball
from epszero.facts.provenance import Constant, Provenance

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

ROUNDING = 64 * float(np.finfo(float).eps)  # times n and κ: a slope this little below 0 is rounding


@dataclass(frozen=True)
class Ruled:
    """None where rules say nothing."""

    slope: Constant | None = None
    kappa: Constant | None = None
    M: Constant | None = None
    R: Constant | None = None
    monotone: bool = False  # the slope is not negative, beyond rounding
    smooth: bool = False  # O is defined and continuous in x over the domain
    by_costs: bool = False  # that is, B is the derivative of costs that are followed, without kinks
    convex: str = ""  # why every cost is convex in the own strategy; empty where that is not proved
    why_not: str = ""  # what is in the way


NO_RULES = Ruled()


def ruled(facts: "Facts") -> Ruled:
    """Of a problem whose O is not affine."""
    with np.errstate(all="ignore"):
        try:
            return _ruled(facts)
        except NoEnclosure as error:
            return Ruled(why_not=str(error))


def _ruled(facts: "Facts") -> Ruled:
    found = composed(facts)
    if isinstance(found, str):
        return Ruled(why_not=found)
    return claims(found, domain_ball(facts.problem.strategies, facts.x, facts.domain), bounded=facts.support.bounded)


def claims(found: Composed, ball: tuple[FloatArray, float], bounded: bool) -> Ruled:
    """What follows; the domain lies in the ball (centre, radius), and `bounded` says whether the support is."""
    own = own_slope(found) if found.costs else -math.inf
    slopes = slopes_of(found)
    n = len(found.owner)
    tiny = ROUNDING * n * (slopes.largest if math.isfinite(slopes.largest) else 0.0)
    convex = _said(found, convex=True) if own >= -tiny else ""
    if found.kinks:
        kinks = ", ".join(sorted(found.kinks))
        return Ruled(convex=convex, why_not=f"a derivative may jump ({kinks})")
    said = _said(found, convex=slopes.aligned and slopes.least >= -tiny)
    sizes = sizes_of(found, *ball)
    return Ruled(
        Constant(slopes.least, Provenance.VERIFIED, said) if slopes.least > -math.inf else None,
        _finite(slopes.largest, said),
        _finite(sizes.M, said),
        _finite(sizes.R, said) if bounded else None,
        monotone=slopes.least >= -tiny,
        smooth=True,
        by_costs=found.costs,
        convex=convex,
    )


def _said(found: Composed, convex: bool) -> str:
    what = "convex functions of affine maps" if convex and found.costs else "functions of affine maps"
    return f"sum of {what}; {found.said}" if found.said else f"sum of {what}"


def _finite(value: float, said: str) -> Constant | None:
    return Constant(value, Provenance.VERIFIED, said) if math.isfinite(value) else None
