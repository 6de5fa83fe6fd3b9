"""Where features that are monomials of ξ lie, closer than in a box around each: by the length of ξ.

The monomials of degree d of a = ξ_S, each times √(d!/Πα!), are the entries of a ⊗ … ⊗ a: they have length ‖a‖ᵈ, and two
of them the inner product ⟨a, b⟩ᵈ, which is not negative where d is even. So with N ≥ ‖ξ_S‖ over the support
- any of these monomials, with factors of at most √w, have length at most √w Nᵈ; they are at most √(2w) Nᵈ apart where d
  is even, as the whole of a ⊗ … ⊗ a is, of which they are a part; 2√w Nᵈ where it is odd;
- all of them together, with equal factors, are at most √(w N²ᵈ + ‖c‖²) from a mean c of theirs where d is even: there
  ⟨φ(ξ), c⟩ ≥ 0.
N² ≤ σ_S(l + u) − Σ l_i u_i, σ the support function and [l, u] the box: t² lies below its chord. For a ball or an
ellipsoid N is ‖centre‖ and half the diameter. A product ξ_iξ_j = ¼(ξ_i + ξ_j)² − ¼(ξ_i − ξ_j)² lies between squares of
support functions.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from epszero._points import length
from epszero._trace.intervals.arithmetic import Interval, integer_power, mul, point
from epszero._trace.polynomials import Monomial, NotPolynomial, terms_of
from epszero._trace.separated import XI, Reading, inlined
from epszero._types import FloatArray, Support
from epszero.sets import Ball, Box, Ellipsoid, Set

ALIKE = 1e-9  # relative: factors that are equal but for rounding
PAIRS = 400  # products whose support functions a solver is asked for
ROUND = 1 + 1e-8  # samples may lie outside of their support by 1e-9; no more than four factors

Power = tuple[Monomial, float]
"""A monomial of entries of ξ, and a factor."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some entries of the features, of a length and a diameter of at most so much."""

    places: Any  # which
    reach: float  # sup ‖φ‖
    diameter: float
    acute: bool  # whether no two points of it have a negative inner product

    def farthest(self, c: FloatArray) -> FloatArray:
        """At least the square of sup ‖φ − c‖, for means c of points of the block along the last axis."""
        size = np.sum(np.square(c[..., self.places]), axis=-1)
        by_length = self.reach**2 + size if self.acute else np.square(self.reach + np.sqrt(size))
        return np.minimum(by_length, self.diameter**2)


@dataclass(frozen=True, eq=False)
class Around:
    """What is known of the support of ξ, flat."""

    support: Support
    lower: FloatArray
    upper: FloatArray
    centre: FloatArray  # a point of it
    diameter: float
    parts: "tuple[Around, ...]" = ()  # of a product, one after another

    def longest(self, entries: Sequence[int]) -> float:
        """At least sup ‖ξ_S‖, for these entries."""
        here = np.array(entries, dtype=int)
        lower, upper, centre = self.lower[here], self.upper[here], self.centre[here]
        found = [length(np.maximum(np.abs(lower), np.abs(upper))), length(centre) + self.diameter]
        if self.parts:
            starts = np.cumsum([0, *(len(part.lower) for part in self.parts)])
            inside = [here[(here >= start) & (here < end)] - start for start, end in itertools.pairwise(starts)]
            return math.hypot(*(part.longest(list(own)) for part, own in zip(self.parts, inside, strict=True)))
        if isinstance(self.support, Ball | Ellipsoid):
            middle = np.broadcast_to(self.support.center, self.lower.shape)[here]
            found.append(length(middle) + self.diameter / 2)
        chord = np.zeros(len(self.lower))
        chord[here] = lower + upper
        if chord.any() and not isinstance(self.support, Box):
            ends, above = lower * upper, float(self.supremum(chord[None])[0])
            rounding = 1e-12 * (abs(above) + float(np.sum(np.abs(ends))))
            found.append(math.sqrt(max(above - float(np.sum(ends)) + rounding, 0.0)))
        return min(found)

    def supremum(self, directions: FloatArray) -> FloatArray:
        """At least σ, in each direction."""
        if isinstance(self.support, Box) or not isinstance(self.support, Set):
            return np.sum(np.maximum(directions * self.lower, directions * self.upper), axis=-1)
        if self.parts:
            ends = np.cumsum([len(part.lower) for part in self.parts])[:-1]
            pieces = zip(self.parts, np.split(directions, ends, axis=-1), strict=True)
            return np.sum([part.supremum(piece) for part, piece in pieces], axis=0)
        dim = len(self.lower)
        rows = np.zeros((-(-len(directions) // dim) * dim, dim))  # as many at once as the box around it took
        rows[: len(directions)] = directions
        shape = dim, *(self.support.point_shape or (dim,))
        found = np.concatenate(
            [np.asarray(self.support.support(rows[k : k + dim].reshape(shape))) for k in range(0, len(rows), dim)]
        )
        return (found + 1e-9 * np.abs(found))[: len(directions)]

    def product(self, pairs: Any) -> tuple[FloatArray, FloatArray] | None:
        """Between what the products of these pairs of entries lie."""
        if not isinstance(self.support, Set) or isinstance(self.support, Box):
            return None
        if len(pairs) > PAIRS and not self.support.formula:
            return None
        units = np.eye(len(self.lower))
        plus, minus = units[pairs[:, 0]] + units[pairs[:, 1]], units[pairs[:, 0]] - units[pairs[:, 1]]
        found = self.supremum(np.concatenate([plus, -plus, minus, -minus]))
        high, higher, low, lower = np.abs(found).reshape(4, -1)
        return -np.square(np.maximum(low, lower)) / 4, np.square(np.maximum(high, higher)) / 4


def monomials(phi: Callable[[Any], Any], flat: FloatArray) -> list[Power | None]:
    """Of each feature of a flat ξ, which monomial of its entries it is, and the factor; None where it is none."""
    closed = jax.make_jaxpr(inlined(phi))(flat)
    try:
        reading = Reading(closed, [XI], folded=False)
        outputs = reading.outputs()
    except NotPolynomial:
        return []
    (given,) = closed.jaxpr.invars
    found: list[Power | None] = []
    for entry in outputs:
        terms = list(terms_of(entry).items())
        own = len(terms) == 1 and bool(terms[0][0]) and all(reading.atoms[a].variable is given for a in terms[0][0])
        whole = tuple(sorted(reading.atoms[atom].entry for atom in terms[0][0])) if own else ()
        found.append((whole, terms[0][1]) if own else None)
    return found


def cut(
    found: list[Power | None], lower: FloatArray, upper: FloatArray, around: Around
) -> tuple[FloatArray, FloatArray]:
    """The box around features, cut where it is seen to be wider than monomials range over a box around ξ, and products
    of two entries over the support."""
    lower, upper = lower.copy(), upper.copy()
    for place, one in enumerate(found):
        if one is not None:
            low, high = _range(one, around)
            lower[place], upper[place] = max(lower[place], low), min(upper[place], high)
    pairs = [(place, *one) for place, one in enumerate(found) if one is not None and _is_pair(one[0])]
    ends = around.product(np.array([pair for _, pair, _ in pairs])) if pairs else None
    if ends is not None:
        places, factors = [place for place, _, _ in pairs], np.array([factor for _, _, factor in pairs])
        sides = np.sort(np.stack([factors * end for end in ends]) * ROUND, axis=0)
        lower[places], upper[places] = np.maximum(lower[places], sides[0]), np.minimum(upper[places], sides[1])
    return lower, upper


def _is_pair(monomial: Monomial) -> bool:
    return len(monomial) == 2 and monomial[0] != monomial[1]


def _range(one: Power, around: Around) -> tuple[float, float]:
    """Of a monomial over the box: its entries are apart from each other, so that this is exact but for rounding."""
    monomial, factor = one
    product = point(np.asarray(factor))
    for entry, power in Counter(monomial).items():
        side = Interval(np.asarray(around.lower[entry]), np.asarray(around.upper[entry]))
        product = mul(product, integer_power(side, power))
    return float(product.lower), float(product.upper)


def blocks(found: list[Power | None], around: Around) -> list[Block]:
    """Monomials of one degree with equal factors, and the rest, of which nothing is said here."""
    weights: dict[Monomial, float] = {}
    for one in found:
        if one is not None:
            weights[one[0]] = weights.get(one[0], 0.0) + one[1] ** 2 / _orders(one[0])
    kinds: list[tuple[int, float]] = []
    members: dict[int, list[int]] = {}
    for place, one in enumerate(found):
        kind = -1
        if one is not None:
            degree, weight = len(one[0]), weights[one[0]]
            same = [k for k, (d, w) in enumerate(kinds) if d == degree and abs(w - weight) <= ALIKE * weight]
            if not same:
                kinds.append((degree, weight))
            kind = same[0] if same else len(kinds) - 1
        members.setdefault(kind, []).append(place)
    made = [_block(found, members[kind], degree, weight, around) for kind, (degree, weight) in enumerate(kinds)]
    return [*made, *(Block(np.array(rest), math.inf, math.inf, False) for rest in [members.get(-1)] if rest)]


def _block(found: list[Any], places: list[int], degree: int, weight: float, around: Around) -> Block:
    every = {found[place][0] for place in places}
    entries = sorted({entry for monomial in every for entry in monomial})
    even, factor = degree % 2 == 0, math.sqrt(weight * (1 + ALIKE))
    reach = factor * around.longest(entries) ** degree * ROUND
    apart = reach * (math.sqrt(2) if even else 2.0)
    if degree == 1:
        apart = min(apart, factor * around.diameter * ROUND)
    return Block(np.array(places), reach, apart, even and len(every) == math.comb(len(entries) + degree - 1, degree))


def _orders(monomial: Monomial) -> int:
    """d!/Πα!: in how many orders its factors can be written."""
    return math.factorial(len(monomial)) // math.prod(map(math.factorial, Counter(monomial).values()))
