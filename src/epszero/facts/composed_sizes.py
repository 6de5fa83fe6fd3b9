"""How large a composed O (composed.py) is, and how far samples pull it apart.

O = J₀x + c(ξ) + v(x, ξ): rows whose second derivatives are constant make the affine part, of all else every entry of v
is enclosed as Σ_e l_e g′_e(t_e), g′ over the range of t_e: a logistic gradient is at most ‖a‖, on any domain.
M: the norm of the entries' bounds, J₀x by support functions, or by ‖J₀‖ and the radius of the domain. R: what does not
depend on ξ cancels in O(x, ξ) − O(x, ξ′); of the rest no entry changes by more than the width of its enclosure, and
Σ_e l_e(ξ)g′ by no more than twice its largest norm.
"""

from typing import NamedTuple

import numpy as np

from epszero._points import length
from epszero._trace.intervals import Interval
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import point
from epszero._trace.rules.expressions import GROUPS, jet
from epszero._trace.rules.forms import affine, key_of, matmul
from epszero._types import FloatArray
from epszero.facts.composed import Block, Composed
from epszero.facts.interval_matrices import largest_norm

ROUND = 1 + 1e-12


class Sizes(NamedTuple):
    """Upper bounds; ∞ where there is none."""

    M: float
    R: float


class _Parts:
    """O in parts."""

    def __init__(self, n: int) -> None:
        self.linear = point(np.zeros((n, n)))  # J₀
        self.fixed = point(np.zeros(n))  # entries that do not depend on ξ
        self.random = point(np.zeros(n))  # entries that do


def sizes_of(found: Composed, centre: FloatArray, radius: float) -> Sizes:
    """Over domain and support; the domain lies within `radius` of `centre`."""
    n = len(found.owner)
    with np.errstate(all="ignore"):
        parts = _Parts(n)
        _affine(parts, found)
        for block in found.blocks:
            _add(parts, block, found)
        shift = arithmetic.add(parts.fixed, parts.random)
        moved = found.ranges.of_affine(affine(parts.linear, shift, key_of("O"), False, False))
        by_entry = _norm(moved)
        at_centre = arithmetic.add(_times(parts.linear, point(centre)), shift)
        by_radius = float(largest_norm(*parts.linear)) * radius + _norm(at_centre) if np.isfinite(radius) else np.inf
        width = parts.random.upper - parts.random.lower
        R = min(float(length(width)), 2 * _norm(parts.random)) * ROUND
    M = min(by_entry, by_radius) * ROUND
    return Sizes(M if np.isfinite(M) else np.inf, R if np.isfinite(R) else np.inf)


def _affine(parts: _Parts, found: Composed) -> None:
    n = len(found.owner)
    if not found.costs:
        if found.moves:
            whole = affine(found.linear, found.offset, key_of("affine part"), True, True)
            parts.random = found.ranges.of_affine(whole)
        else:
            parts.linear = found.linear
            _put(parts, found.offset, found.shifts)
        return
    own = Interval(*(end[found.owner, np.arange(n)] for end in found.linear))
    _put(parts, own, found.moves)


def _put(parts: _Parts, values: Interval, random: bool) -> None:
    if random:
        parts.random = arithmetic.add(parts.random, values)
    else:
        parts.fixed = arithmetic.add(parts.fixed, values)


def _add(parts: _Parts, block: Block, found: Composed) -> None:
    weights = arithmetic.mul(block.matrix, Interval(*(end[None] for end in block.weight.values)))
    if not found.costs:
        _put(parts, _times(weights, block.value), block.uncertain)
        return
    weights = Interval(*(end[found.owner] for end in weights))
    maps = [one.rows[0] for one in block.local.variables]
    lefts = [arithmetic.mul(weights, Interval(A.lower.T, A.upper.T)) for A in maps]  # (n, rows)
    if block.local.expression[0] in ("logsumexp", "norm"):
        _put(parts, _of_group(block, weights, maps), block.uncertain)
        return
    group = block.local.expression[0] in GROUPS
    constant = not block.moves and not group and all(np.array_equal(*bend) for bend in block.second.values())
    first = block.first
    if constant:
        first = _at_zero(block, found)
        for (p, q), bend in block.second.items():
            for one, other in {(p, q), (q, p)}:
                scaled = arithmetic.mul(lefts[one], Interval(*(end[None] for end in bend)))
                parts.linear = arithmetic.add(parts.linear, matmul(scaled, maps[other]))
    for p, slope in first.items():
        whole = Interval(*(np.broadcast_to(end, (block.local.rows,)) for end in slope))
        _put(parts, _times(lefts[p], whole), block.uncertain)


def _at_zero(block: Block, found: Composed) -> dict[int, Interval]:
    """∇g at x = 0, continued from a point of the range, as an affine function of t = Rx + b."""
    local = block.local
    here = [found.ranges.of_affine(one) for one in local.variables]
    start = [point(np.clip(0.0, *box)) for box in here]
    first = dict(jet(local.expression, start, [one.values for one in local.params], set()).first)
    back = [arithmetic.sub(one.rows[1], t) for one, t in zip(local.variables, start, strict=True)]
    for (p, q), bend in block.second.items():
        for one, other in {(p, q), (q, p)}:
            first[one] = arithmetic.add(first[one], arithmetic.mul(bend, back[other]))
    return first


def _of_group(block: Block, weights: Interval, maps: list[Interval]) -> Interval:
    """Entries of Σ_e w_e R_eᵀ∇g: of convex combinations of rows (logsumexp), or with ‖∇g‖ ≤ 1."""
    lower, upper = (np.stack([getattr(A, end) for A in maps]) for end in ("lower", "upper"))  # (m, rows, n)
    if block.local.expression[0] == "logsumexp":
        entries = Interval(lower.min(axis=0), upper.max(axis=0))
    else:
        size = np.sqrt(np.sum(np.maximum(np.abs(lower), np.abs(upper)) ** 2, axis=0)) * ROUND
        entries = Interval(-size, size)
    products = arithmetic.mul(weights, Interval(entries.lower.T, entries.upper.T))
    return arithmetic.summed(products, lambda v: np.sum(v, axis=1))


def _times(matrix: Interval, vector: Interval) -> Interval:
    products = arithmetic.mul(matrix, Interval(*(end[None] for end in vector)))
    return arithmetic.summed(products, lambda v: np.sum(v, axis=1))


def _norm(entries: Interval) -> float:
    return float(length(np.maximum(np.abs(entries.lower), np.abs(entries.upper))))
