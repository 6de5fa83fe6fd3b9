"""R and M in closed form: how far samples can pull apart, and how large O can be, over known sets.

Additive noise Cφ(ξ): R = sup ‖C(φ − φ′)‖ over the box of the features, which is attained at corners. Affine O with a
constant Jacobian: every entry of Jx + h + Cφ is bounded by the support functions of domain and features, and M by the
norm of these bounds.
"""

from typing import TYPE_CHECKING

import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import as_data, length
from epszero._types import FloatArray
from epszero.facts.affine import affine_in_features, base_oracle
from epszero.facts.domains import Bounds, domain_support
from epszero.facts.gram import Gram, largest, largest_on_box
from epszero.facts.noise_map import TooLarge, noise_map
from epszero.facts.provenance import Constant, Provenance
from epszero.facts.region import Region, features_region
from epszero.oracles import Collapsed, OwnData
from epszero.sets import Box

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

MOST = 600  # entries of x for whose rows the support function of the domain is asked
ROUND = 1 + 1e-12


def features_regions(facts: "Facts", collapsed: Collapsed) -> list[Region] | None:
    """Where the features of each data set lie; None where the supports do not say."""
    rows = list(facts.row) if isinstance(facts.row, OwnData) else [facts.row]
    sides: list[Region] = []
    for place, phi in enumerate(collapsed.phi):
        support, row = facts.supports[collapsed.sets[place]], rows[collapsed.sets[place]]
        size = collapsed.features[place].shape[1]
        region = None
        if support is not None:
            region = Region.of(support, size) if phi is None else features_region(phi, row, support)
        if region is None or region.lower is None or region.upper is None:
            return None
        sides.append(region)
    return sides


def _box(sides: list[Region]) -> Bounds:
    """Around all of them, one after another."""
    if not sides:
        return Bounds(np.zeros(0), np.zeros(0))
    return Bounds(*(np.concatenate([getattr(side, name) for side in sides]) for name in ("lower", "upper")))


def additive_R(facts: "Facts") -> Constant | None:
    """Where the noise is additive and its support known."""
    found = _additive(facts)
    if found is None:
        return None
    collapsed, sides, _, gram = found
    box = _box(sides)
    width, diameters = box.upper - box.lower, np.array([side.diameter for side in sides])
    by_box = largest_on_box(gram, width) * ROUND if len(width) else 0.0
    group = np.repeat(np.arange(len(sides)), [len(side.lower) for side in sides if side.lower is not None])
    by_diameter = float(largest(gram, diameters, group if len(sides) > 1 else None)) * ROUND if sides else 0.0
    if not np.isfinite(by_box):
        return None
    if by_diameter < by_box * (1 - 1e-6):
        return Constant(by_diameter, Provenance.VERIFIED, "additive noise, by the diameter of the support")
    boxes = all(isinstance(support, Box) for support in facts.supports) and collapsed.own
    how, where = (Provenance.EXACT, "the support") if boxes else (Provenance.VERIFIED, "a box around the support")
    return Constant(by_box, how, f"additive noise, at the corners of {where}")


def affine_M(facts: "Facts") -> Constant | None:
    """Where O is affine with a constant Jacobian, and domain and support are bounded."""
    linear = facts.jacobian
    found = None if linear is None or len(linear.jacobian) > MOST else _additive(facts)
    if linear is None or found is None:
        return None
    collapsed, sides, C, _ = found
    if C is None:
        return None
    box = _box(sides)
    point = np.asarray(ravel_pytree(facts.x)[0])
    ends = np.cumsum([rows.shape[1] for rows in collapsed.features])[:-1]
    middle = (box.lower + box.upper) / 2
    there = collapsed.at(list(np.split(middle, ends)) if collapsed.features else [])(facts.x)
    offset = np.asarray(ravel_pytree(there)[0]) - linear.jacobian @ point
    reach = np.abs(C) @ ((box.upper - box.lower) / 2) if len(middle) else np.zeros(len(point))
    far = np.maximum(np.abs(facts.domain.lower), np.abs(facts.domain.upper))
    rounding = 1e-14 * np.sqrt(len(point)) * (np.abs(linear.jacobian) @ np.where(np.isfinite(far), far, 0.0))
    reach = reach + rounding + 1e-14 * np.abs(linear.jacobian) @ np.abs(point)
    high = domain_support(facts.problem.strategies, facts.x, linear.jacobian) + offset + reach
    low = -domain_support(facts.problem.strategies, facts.x, -linear.jacobian) + offset - reach
    with np.errstate(over="ignore"):
        largest = length(np.maximum(np.abs(high), np.abs(low))) * ROUND
    if not np.isfinite(largest):
        return None
    return Constant(largest, Provenance.EXACT, "at most, entry by entry, by support functions of domain and noise")


def _additive(facts: "Facts") -> tuple[Collapsed, list[Region], FloatArray | None, Gram] | None:
    """Features, where they lie, C and CᵀC, where the noise is additive and its support known."""
    if facts.structure.in_xi not in ("none", "additive"):
        return None
    collapsed = base_oracle(facts.problem).collapsed(as_data(facts.row), facts.x)
    sides = None if collapsed is None else features_regions(facts, collapsed)
    if collapsed is None or sides is None:
        return None
    try:
        return collapsed, sides, *noise_map(collapsed, facts.x, affine=affine_in_features(collapsed, facts.x))
    except TooLarge:
        return None
