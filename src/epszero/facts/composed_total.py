"""Costs c·x_i F(S) of agents with one number each, S the total of all: what an oligopoly adds to the slope of O.

Row i of their Jacobian is c F′(S)e_i + u_i 1ᵀ with u_i = c(F′(S) + x_i F″(S)), so with Σx = S
    λ_min ≥ c F′ + ½(⟨u, 1⟩ − √n‖u‖),  ⟨u, 1⟩ = c(nF′ + SF″),  ‖u‖² = c²(nF′² + 2F′F″S + F″²‖x‖²),
as ⟨u, v⟩⟨1, v⟩ ≥ ½(⟨u, 1⟩ − ‖u‖‖1‖)‖v‖². ‖x‖² ≤ Σ((l_i + h_i)x_i − l_i h_i) by chords over l_i ≤ x_i ≤ h_i; no x_i
exceeds S less the least of all others. Enclosed over pieces of the range of S. The relation Σx = S is what enclosures
entry by entry forget. Cost: one evaluation of F and its derivatives on `PIECES` intervals.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals import Interval
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import point
from epszero._trace.rules.expressions import Expression, jet, renamed
from epszero.facts.composed import Block, Composed

PIECES = 4000  # of the range of the total


def slope_of_total(block: Block, found: Composed) -> float | None:
    """At most the least eigenvalue of what a block adds; None where it is not of this form."""
    n, local = len(found.owner), block.local
    outer = _of_total(local.expression)
    if outer is None or block.moves or block.uncertain or local.params or not found.costs or local.rows != n:
        return None
    own, total = outer[0], 1 - outer[0]
    (E, b), (A, start) = local.variables[own].rows, local.variables[total].rows
    weights = arithmetic.mul(block.matrix, Interval(*(end[None] for end in block.weight.values)))
    order = found.owner[np.argmax(E.lower, axis=1)]
    alone = np.zeros((n, n))
    alone[order, np.arange(n)] = 1.0
    c = float(block.weight.values.lower[0])
    shaped = (
        np.array_equal(*E)
        and np.array_equal(E.lower, np.eye(n)[np.argmax(E.lower, axis=1)])
        and len(set(order)) == n
        and np.array_equal(*A)
        and np.all(A.lower == 1.0)
        and not (b.lower.any() or b.upper.any() or start.lower.any() or start.upper.any())
        and np.array_equal(*weights)
        and np.array_equal(weights.lower, c * alone)
    )
    return _least(outer[1], c, found) if shaped else None


def _of_total(u: Expression) -> tuple[int, Expression] | None:
    """Which variable is multiplied, and the function of the other."""
    if u[0] != "mul":
        return None
    for one, other in ((u[1], u[2]), (u[2], u[1])):
        if one[0] == "var" and _variables(other) == {1 - one[1]}:
            return one[1], renamed(other, [0, 0], [])
    return None


def _variables(u: Expression) -> set[int]:
    if u[0] == "var":
        return {u[1]}
    parts = [part for part in u[1:] if isinstance(part, tuple)]
    return set().union(*(_variables(part) for part in parts if part and isinstance(part[0], str)))


def _least(outer: Expression, c: float, found: Composed) -> float:
    low, high = found.ranges.box
    n, least, most = len(low), float(np.sum(low)), float(np.sum(high))
    least, most = least - 1e-14 * np.abs(low).sum(), most + 1e-14 * np.abs(high).sum()
    if not (np.isfinite(least) and np.isfinite(most) and np.all(low >= 0)):
        return -np.inf
    cuts = np.geomspace(max(least, 1e-300), most, PIECES + 1) if least > 0 else np.linspace(least, most, PIECES + 1)
    cuts[0], cuts[-1] = least, most
    S = Interval(cuts[:-1], cuts[1:])
    found_jet: Any = jet(outer, [S], [], set())
    nothing = point(np.zeros(PIECES))
    first, second = found_jet.first.get(0, nothing), found_jet.second.get((0, 0), nothing)
    above = np.minimum(high[:, None], (S.upper[None] - (low.sum() - low)[:, None]) * (1 + 1e-13))  # (n, pieces)
    above = np.maximum(above, low[:, None])
    slopes = low[:, None] + above
    # Σ slopes_i x_i over x ≥ low with Σx = S, and the chords' constants
    chords = slopes.max(axis=0) * np.maximum(S.upper - low.sum(), 0.0) + np.sum(slopes * low[:, None], axis=0)
    squares = (chords - np.sum(low[:, None] * above, axis=0)) * (1 + 1e-12) + 1e-12 * np.sum(above**2, axis=0)
    size = Interval(np.zeros(PIECES), squares)
    scale = point(np.full(PIECES, c))
    mixed = arithmetic.mul(arithmetic.mul(first, second), S)
    u_squared = arithmetic.add(
        arithmetic.add(arithmetic.mul(point(np.full(PIECES, float(n))), arithmetic.square(first)), mixed),
        arithmetic.add(mixed, arithmetic.mul(arithmetic.square(second), size)),
    )
    length = abs(c) * np.sqrt(np.maximum(u_squared.upper, 0.0)) * (1 + 1e-12)
    along = arithmetic.add(arithmetic.mul(point(np.full(PIECES, float(n))), first), arithmetic.mul(S, second))
    own, along = arithmetic.mul(scale, first), arithmetic.mul(scale, along)
    bound = own.lower + (along.lower - np.sqrt(n) * length) / 2
    rounding = 1e-12 * (np.abs(own.lower) + np.abs(along.lower) + length)
    return float(np.min(np.where(np.isnan(bound), -np.inf, bound - rounding)))
