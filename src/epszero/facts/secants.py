"""How B bends between a point x and all others of its domain: S with ⟨B(x) − B(y), x − y⟩ ≥ (x − y)ᵀS(x − y) for all y.

Of a composed O (composed.py) every aligned row e adds c_e R_eᵀD_eR_e to the Jacobian; along the segment from x to y it
adds the mean of that. For a function g of one variable the mean of g″ between t = R_e x + b_e and t′ is the slope of a
secant of g′: at least the least of those from t to either end of the range of R_e x + b_e, which is positive where t is
inside, though g″ may vanish elsewhere (powers at 0). The range is cut into pieces on either side of t, on which g″ is
enclosed: the mean up to a point inside a piece lies between those up to its ends. Rows whose maps depend on ξ, and
functions of several variables, add no more than their lower ends over the domain; of those whose maps depend on ξ that
is 0, or S is not known; what is not aligned has no S either. Of an operator that is given the same holds with g′ in
place of g″. An O that is affine with a constant Jacobian J has the symmetric part of J. x is taken to lie in its
domain: what rounding leaves of that is not looked at. Cost: PIECES enclosures of g″ on either side for each row.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from epszero._points import flat_of
from epszero._trace.intervals import Interval, NoEnclosure
from epszero._trace.rules.expressions import GROUPS, jet
from epszero._types import FloatArray, PyTree
from epszero.facts.composed import Block, Composed, composed
from epszero.facts.composed_slopes import aligned_rows, curvature, ends_of
from epszero.facts.interval_matrices import largest_norm, least_eigenvalue
from epszero.facts.provenance import Unknown

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

PIECES = 64  # on either side
ROUNDING = 1e-13  # of sums
NEARLY = 1e-9  # relative: rows and columns that differ by less are alike, and the rest is room
EPS = 32 * float(np.finfo(np.float64).eps)  # times n and the norm: what an eigenvalue may be off by
NOT_ALIGNED = "B is not seen to be the gradient of a sum of convex functions of affine maps"


class Bend(NamedTuple):
    """⟨B(x) − B(y), x − y⟩ ≥ (x − y)ᵀS(x − y) − room·‖x − y‖²."""

    S: FloatArray  # symmetric
    room: float


def bend_at(facts: "Facts", x: PyTree) -> Bend | Unknown:
    """S at x; why not, where there is none."""
    J = facts.jacobian
    if J is not None:
        S = (J.jacobian + J.jacobian.T) / 2
        return Bend(S, _rounded(S) + J.noise)
    if facts.structure.constant_jacobian:
        return Unknown("x has too many entries for its Jacobian to be written down")
    with np.errstate(all="ignore"):
        try:
            found = composed(facts)
            return Unknown(found) if isinstance(found, str) else _summed(found, flat_of(x))
        except NoEnclosure as error:
            return Unknown(str(error))


def _rounded(S: FloatArray) -> float:
    return EPS * max(len(S), 4) * float(np.linalg.norm(S))


def _summed(found: Composed, x: FloatArray) -> Bend | Unknown:
    if found.kinks:
        return Unknown(f"a derivative may jump ({', '.join(sorted(found.kinks))})")
    parts = [] if found.costs else [Bend(*_middle(found.linear))]
    for block in found.blocks:
        part = _of_block(block, found, x)
        if isinstance(part, Unknown):
            return part
        parts.append(part)
    S = np.sum([part.S for part in parts], axis=0)
    room = sum(part.room for part in parts) + _rounded(S)
    if not (parts and np.isfinite(S).all() and room <= NEARLY * float(np.linalg.norm(S))):
        return Unknown(NOT_ALIGNED)
    return Bend((S + S.T) / 2, room)


def _middle(values: Interval) -> tuple[FloatArray, float]:
    """And how far all else is from it, in norm."""
    middle = (values.lower + values.upper) / 2
    return middle, float(np.linalg.norm(values.upper - values.lower))


def _of_block(block: Block, found: Composed, x: FloatArray) -> Bend | Unknown:
    maps = [one.rows[0] for one in block.local.variables]
    aligned, share, rest = aligned_rows(block, maps, found)
    n, room = len(x), 0.0 if rest is None else float(largest_norm(*rest))
    nothing = Bend(np.zeros((n, n)), room)
    if not aligned.all():
        return Unknown(NOT_ALIGNED)
    if block.cap is not None and found.costs:
        return nothing if np.all(share.lower >= 0) else Unknown(NOT_ALIGNED)
    q = curvature(block, share, np.arange(block.local.rows), len(maps), found.costs)
    if block.moves:
        return nothing if np.all(least_eigenvalue(*q) >= 0) else Unknown(NOT_ALIGNED)
    low = ends_of(q)[0].copy()
    if len(maps) == 1:
        low[:, 0, 0] = np.maximum(low[:, 0, 0], _secants(block, share, found, x))
    rows = [_middle(A) for A in maps]
    pairs = [(p, k) for p in range(len(rows)) for k in range(len(rows))]
    steep = float(np.abs(low).max(initial=0.0)) * len(maps)
    room += sum(steep * off * (2 * float(np.linalg.norm(A)) + off) for A, off in rows)
    return Bend(np.sum([rows[p][0].T @ (low[:, p, k, None] * rows[k][0]) for p, k in pairs], axis=0), room)


def _secants(block: Block, share: Interval, found: Composed, x: FloatArray) -> Any:
    """c_e times the least slope of a secant at t; −∞ where nothing is said."""
    local = block.local
    (row,) = local.variables
    never = np.full(local.rows, -np.inf)
    if row.shifts or local.expression[0] in GROUPS or np.any(share.lower < 0):
        return never
    (A, _), (b, _) = row.rows
    reach = found.ranges.of_affine(row)
    t = A @ x + b
    room = ROUNDING * (np.abs(A) @ np.abs(x) + np.abs(b))[:, None]
    params = [Interval(*(np.reshape(end, (-1, 1)) for end in one.values)) for one in local.params]
    least, kinks = np.full(local.rows, np.inf), set[str]()
    for end in reach:
        cuts = t[:, None] + (end - t)[:, None] * np.linspace(0.0, 1.0, PIECES + 1)
        high = np.minimum(np.maximum(cuts[:, :-1], cuts[:, 1:]) + room, reach.upper[:, None])
        low = np.maximum(np.minimum(cuts[:, :-1], cuts[:, 1:]) - room, reach.lower[:, None])
        over = jet(local.expression, [Interval(np.minimum(low, high), high)], params, kinks)
        bends = over.second.get((0, 0)) if found.costs else over.first.get(0)
        if bends is None or kinks:
            return never
        slopes = np.broadcast_to(bends.lower, low.shape)
        sums = np.cumsum(slopes, axis=1) - ROUNDING * np.cumsum(np.abs(slopes), axis=1)
        least = np.minimum(least, np.where(end == t, np.inf, (sums / np.arange(1, PIECES + 1)).min(axis=1)))
    return np.where(np.isfinite(least) & (least >= 0), share.lower * least * (1 - ROUNDING), -np.inf)
