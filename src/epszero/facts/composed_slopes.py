"""Slopes of a composed O (composed.py): how monotone, and how steep.

A row e of several costs is *aligned* where all agents whose strategies it touches weigh it alike: then it adds
c_e R_eᵀ D_e R_e to J, symmetric, at least the same with a lower end of D_e over domain and support; a row of a given
operator is aligned where l_e = c_e r_eᵀ. The sum of all lower ends is one matrix, of which the least eigenvalue bounds
the slope; rows whose maps depend on ξ add at least min(0, λ_min(c_e D_e))‖R_e‖². What is not aligned is enclosed entry
by entry, and interval_matrices.py says what that does to an eigenvalue. κ: the largest eigenvalue of the upper ends
where all is symmetric, else the norm of the constant part plus that of the rest.
Valid as O(x) − O(y) is the integral of J(x − y) along the segment, O continuous with derivatives almost everywhere.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epszero._trace.intervals import Interval, NoEnclosure
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import point
from epszero._trace.rules.forms import Affine, Places, matmul
from epszero._types import FloatArray
from epszero.facts.composed import Block, Composed
from epszero.facts.composed_total import slope_of_total
from epszero.facts.interval_matrices import largest_norm, least_eigenvalue

ALIKE = 1e-12  # relative: a column this near to a multiple of a row counts as one, and the rest is enclosed
ROUND = 1 + 1e-12
NEARLY = 1e-9  # relative: a matrix known so well has eigenvalues by one eigenproblem
BACKWARD, EPS = 32.0, float(np.finfo(float).eps)  # of which, times n and the norm, is granted to LAPACK


class Slopes(NamedTuple):
    """Of every O(·, ξ), over the domain."""

    least: float  # at most inf λ_min of the symmetric part of J
    largest: float  # at least sup ‖J‖
    aligned: bool  # nothing was enclosed entry by entry
    symmetric: bool  # J is, everywhere


class _Sums:
    """J in parts."""

    def __init__(self, n: int) -> None:
        self.base = point(np.zeros((n, n)))  # constant, or enclosed
        self.low = point(np.zeros((n, n)))  # the lower ends of aligned rows
        self.up = point(np.zeros((n, n)))  # their upper ends
        self.size = point(np.zeros((n, n)))  # and their sizes
        self.below, self.above = 0.0, 0.0  # what rows that depend on ξ add to eigenvalues
        self.rest: Interval | None = None  # rows that are not aligned
        self.other: Interval | None = None  # of these, all but functions of a total
        self.total: float | None = None  # what functions of a total add at least
        self.bends_up = True  # every aligned row adds a positive semidefinite matrix, and there is nothing else


def slopes_of(found: Composed) -> Slopes:
    """Lower and upper bounds."""
    n = len(found.owner)
    with np.errstate(all="ignore"):
        sums = _Sums(n)
        if not found.costs:
            sums.base = found.linear
            sums.bends_up = not (found.linear.lower.any() or found.linear.upper.any())
        for block in found.blocks:
            _add(sums, block, found)
        return _bounds(sums, symmetric=found.costs and sums.rest is None)


def own_slope(found: Composed) -> float:
    """The least eigenvalue of any agent's own Hessian, at most, over domain and support."""
    if not found.blocks or found.owner.max(initial=0) == 0:
        return slopes_of(found).least
    least = np.inf
    for agent in range(int(found.owner.max()) + 1):
        least = min(least, slopes_of(_of_agent(found, agent)).least)
        if least == -np.inf:
            break
    return float(least)


def _of_agent(found: Composed, agent: int) -> Composed:
    """One agent's cost as a function of the own strategy: no more than its rows, its columns, its weights."""
    mine = np.flatnonzero(found.owner == agent)
    blocks: list[Block] = []
    for block in found.blocks:
        rows = np.flatnonzero((block.matrix.lower[agent] != 0) | (block.matrix.upper[agent] != 0))
        if not len(rows):
            continue
        local = block.local.take(rows)
        variables = tuple(_restricted(one, mine) for one in local.variables)
        matrix = Interval(*(end[agent][rows][None] for end in block.matrix))
        first = {key: _rows(part, rows) for key, part in block.first.items()}
        second = {key: _rows(part, rows) for key, part in block.second.items()}
        value = _rows(block.value, rows)
        local = replace(local, variables=variables)
        cap = None if block.cap is None else block.cap[rows]
        blocks.append(Block(local, matrix, block.weight.take(rows), block.random, value, first, second, cap))
    nobody = np.zeros(len(mine), dtype=int)
    return replace(found, owner=nobody, blocks=tuple(blocks))


def _rows(values: Interval, rows: Places) -> Interval:
    return Interval(values.lower[rows], values.upper[rows])


def _restricted(one: Affine, columns: Places) -> Affine:
    lower = one.A.lower[:, columns]
    A = Interval(lower, lower if one.A.lower is one.A.upper else one.A.upper[:, columns])
    return replace(one, A=A)


def _bounds(sums: _Sums, symmetric: bool) -> Slopes:
    base = sums.base if sums.rest is None else arithmetic.add(sums.base, sums.rest)
    least = _least(arithmetic.add(base, sums.low)) + sums.below
    if sums.rest is not None and sums.total is not None:  # what is known of functions of a total, apart
        apart = sums.base if sums.other is None else arithmetic.add(sums.base, sums.other)
        least = max(least, _least(arithmetic.add(apart, sums.low)) + sums.below + sums.total)
    if sums.bends_up and sums.rest is None:
        least = max(least, 0.0)
    if symmetric:
        top = -_least(arithmetic.negative(arithmetic.add(base, sums.up))) + sums.above
        largest = max(top, -least, 0.0)
    else:
        largest = float(largest_norm(*base)) - _least(arithmetic.negative(sums.size)) + sums.above
    return Slopes(least, largest * ROUND if np.isfinite(largest) else np.inf, sums.rest is None, symmetric)


def _least(H: Interval) -> float:
    """λ_min of the symmetric part, at most; of a matrix known up to rounding by one eigenproblem."""
    reach = H.upper - H.lower
    size = float(np.abs(H.lower).max(initial=0.0))
    if not (np.isfinite(size) and reach.max(initial=0.0) <= NEARLY * size):
        return float(least_eigenvalue(*H)) if reach.any() or size > 0 else 0.0
    n = len(reach)
    middle = H.lower + reach / 2
    room = BACKWARD * n * EPS * float(np.linalg.norm(middle)) + float(reach.sum(axis=1).max() + reach.sum(axis=0).max())
    return float(np.linalg.eigvalsh((middle + middle.T) / 2)[0]) - room


def _add(sums: _Sums, block: Block, found: Composed) -> None:
    maps = [one.rows[0] for one in block.local.variables]
    aligned, share, rest = aligned_rows(block, maps, found)
    m = len(maps)
    if aligned.any():
        here = np.flatnonzero(aligned)
        if block.cap is not None and found.costs:
            _group(sums, block, share, here)
            return _rest(sums, rest)
        q = curvature(block, share, here, m, found.costs)
        sums.bends_up &= bool(np.all(q.lower >= 0) if m == 1 else np.all(least_eigenvalue(*q) >= 0))
        rows = [Interval(A.lower[here], A.upper[here]) for A in maps]
        if block.moves:
            _random(sums, q, rows)
        else:
            _constant(sums, q, rows)
    total = None if rest is None or aligned.any() else slope_of_total(block, found)
    if total is not None:
        sums.total = total + (sums.total or 0.0)
    return _rest(sums, rest, known=total is not None)


def _rest(sums: _Sums, rest: Interval | None, known: bool = False) -> None:
    if rest is None:
        return
    sums.rest = rest if sums.rest is None else arithmetic.add(sums.rest, rest)
    if not known:
        sums.other = rest if sums.other is None else arithmetic.add(sums.other, rest)


def _group(sums: _Sums, block: Block, share: Interval, here: Places) -> None:
    """Functions of several numbers together: c_e R_eᵀ D_e R_e with 0 ⪯ D_e ⪯ cap·I."""
    low, high = (np.minimum(share.lower[here], 0.0), np.maximum(share.upper[here], 0.0))
    cap = block.cap[here]
    low, high = np.where(low < 0, low * cap, 0.0) * ROUND, np.where(high > 0, high * cap, 0.0) * ROUND
    sums.bends_up &= bool(np.all(low >= 0))
    for one in block.local.variables:
        A = one.rows[0]
        rows = [Interval(A.lower[here], A.upper[here])]
        q = Interval(low[:, None, None], high[:, None, None])
        (_random if block.moves else _constant)(sums, q, rows)


def aligned_rows(block: Block, maps: list[Interval], found: Composed) -> tuple[Places, Interval, Interval | None]:
    """Which rows are aligned, c_e for these, and what all else adds to J."""
    if not found.costs:
        return _parallel(block, maps)
    outputs = len(block.matrix.lower)
    touched = np.zeros((outputs, block.local.rows), dtype=bool)
    for A in maps:
        hit = ((A.lower != 0) | (A.upper != 0)).T  # (n, rows)
        np.logical_or.at(touched, found.owner, hit)
    low = np.where(touched, block.matrix.lower, np.inf).min(axis=0)
    high = np.where(touched, block.matrix.upper, -np.inf).max(axis=0)
    idle = ~touched.any(axis=0)
    low, high = np.where(idle, 0.0, low), np.where(idle, 0.0, high)
    aligned = (touched.sum(axis=0) <= 1) | (low == high)
    return aligned, arithmetic.mul(Interval(low, high), block.weight.values), _unaligned(block, maps, found, ~aligned)


def _unaligned(block: Block, maps: list[Interval], found: Composed, here: Places) -> Interval | None:
    places = np.flatnonzero(here)
    if not len(places):
        return None
    if not block.second:
        raise NoEnclosure("a function of many numbers that agents weigh differently")
    total: Interval | None = None
    weights = Interval(*(end[found.owner][:, places] for end in _weights(block)))  # (n, rows)
    for (p, q), bend in block.second.items():
        d = Interval(*(end[places][None] for end in bend))
        for one, other in {(p, q), (q, p)}:
            A, B = (Interval(maps[k].lower[places], maps[k].upper[places]) for k in (one, other))
            left = arithmetic.mul(arithmetic.mul(weights, Interval(A.lower.T, A.upper.T)), d)
            part = matmul(left, B)
            total = part if total is None else arithmetic.add(total, part)
    return total


def _weights(block: Block) -> Interval:
    return arithmetic.mul(block.matrix, Interval(*(end[None] for end in block.weight.values)))


def _parallel(block: Block, maps: list[Interval]) -> tuple[Places, Interval, Interval | None]:
    """Of an operator: l_e = c_e r_eᵀ up to what is enclosed."""
    rows, left = block.local.rows, _weights(block)
    share, aligned = np.zeros(rows), np.zeros(rows, dtype=bool)
    total: Interval | None = None
    if len(maps) == 1 and not block.moves:
        A = (maps[0].lower + maps[0].upper) / 2
        L = (left.lower + left.upper) / 2
        norms = np.sum(A * A, axis=1)
        share = np.where(norms > 0, np.sum(L.T * A, axis=1) / np.where(norms > 0, norms, 1.0), 0.0)
        gap = np.abs(L.T - share[:, None] * A).max(axis=1, initial=0.0)
        aligned = gap <= ALIKE * np.abs(L).max(axis=0, initial=0.0)
        part = arithmetic.mul(point(np.where(aligned, share, 0.0)[None]), Interval(maps[0].lower.T, maps[0].upper.T))
        left = arithmetic.sub(left, part)
    for p, slope in block.first.items():
        scaled = arithmetic.mul(left, Interval(*(end[None] for end in slope)))
        part = matmul(scaled, maps[p])
        total = part if total is None else arithmetic.add(total, part)
    nothing = total is None or not (total.lower.any() or total.upper.any())
    return aligned, point(share), None if nothing else total


def curvature(block: Block, share: Interval, here: Places, m: int, costs: bool) -> Interval:
    """c_e D_e, (rows, m, m)."""
    lower, upper = np.zeros((len(here), m, m)), np.zeros((len(here), m, m))
    c = Interval(share.lower[here], share.upper[here])
    parts = block.second if costs else {(p, p): slope for p, slope in block.first.items()}
    for (p, q), bend in parts.items():
        part = arithmetic.mul(c, Interval(bend.lower[here], bend.upper[here]))
        for one, other in {(p, q), (q, p)}:
            lower[:, one, other], upper[:, one, other] = part
    return Interval(lower, upper)


def ends_of(q: Interval) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Matrices below and above all of q, in the order of quadratic forms; and their sizes, as multiples of I."""
    m = q.lower.shape[-1]
    own = np.arange(m)
    middle = np.where(q.lower == q.upper, q.lower, (q.lower + q.upper) / 2)
    reach = np.where(q.lower == q.upper, 0.0, np.nextafter(np.maximum(middle - q.lower, q.upper - middle), np.inf))
    reach[:, own, own] = 0.0
    off = reach.sum(axis=2) * ROUND
    low, up = middle.copy(), middle.copy()
    low[:, own, own], up[:, own, own] = (
        np.nextafter(q.lower[:, own, own] - off, -np.inf) if off.any() else q.lower[:, own, own],
        np.nextafter(q.upper[:, own, own] + off, np.inf) if off.any() else q.upper[:, own, own],
    )
    if m > 1:
        bends_up = least_eigenvalue(*q) >= 0
        low = np.where((bends_up & off.any(axis=1))[:, None, None], 0.0, low)
    return low, up, largest_norm(*q)


def _constant(sums: _Sums, q: Interval, rows: list[Interval]) -> None:
    """Rows whose maps are constant."""
    fixed = (q.lower == q.upper).all(axis=(1, 2))
    low, up, size = ends_of(q)
    if fixed.any():
        sums.base = arithmetic.add(sums.base, _sandwich(rows, low, fixed))
    if not fixed.all():
        sums.low = arithmetic.add(sums.low, _sandwich(rows, low, ~fixed))
        sums.up = arithmetic.add(sums.up, _sandwich(rows, up, ~fixed))
        unit = size[:, None, None] * np.eye(len(rows))
        sums.size = arithmetic.add(sums.size, _sandwich(rows, unit, ~fixed))


def _sandwich(rows: list[Interval], middle: FloatArray, here: Places) -> Interval:
    """Σ R_pᵀ diag(middle_pq) R_q."""
    n = rows[0].lower.shape[1]
    total = point(np.zeros((n, n)))
    for p, A in enumerate(rows):
        for q, B in enumerate(rows):
            values = middle[here, p, q]
            if not values.any():
                continue
            left = arithmetic.mul(Interval(A.lower[here].T, A.upper[here].T), point(values[None]))
            total = arithmetic.add(total, matmul(left, Interval(B.lower[here], B.upper[here])))
    return total


def _random(sums: _Sums, q: Interval, rows: list[Interval]) -> None:
    """Rows whose maps depend on ξ."""
    squares = np.zeros(len(q.lower))
    for A in rows:
        squares += np.sum(np.maximum(np.abs(A.lower), np.abs(A.upper)) ** 2, axis=1)
    below = np.minimum(least_eigenvalue(*q), 0.0)
    sums.below += float(np.sum(np.where(squares > 0, below * squares, 0.0))) * ROUND
    size = largest_norm(*q)
    above = float(np.sum(np.where(squares > 0, size * squares, 0.0))) * ROUND
    if len(rows) == 1 and len(squares) > 1 and np.isfinite(size).all():
        root = np.sqrt(size)[:, None]
        above = min(above, float(largest_norm(rows[0].lower * root, rows[0].upper * root)) ** 2 * ROUND)
    sums.above += above
