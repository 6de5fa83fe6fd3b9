"""`Region`: what is known of where a random vector lives. Everything that a confidence set for its mean needs of it.

A region is a convex set through three numbers, each an upper bound: its diameter R = sup ‖x − y‖; its circumradius ρ,
such that some ball of that radius holds it (R/2 for a box or a ball; at most R√(d/(2d+2)) for any set in R^d, by Jung's
theorem); and the distance `farthest(c)` of its farthest point from a point c of it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import length
from epszero._trace.intervals import Enclosed, Interval, NoEnclosure
from epszero._types import FloatArray, PyTree, Support
from epszero.facts.feature_blocks import Around, Block, blocks, cut, monomials
from epszero.sets import Ball, Box, Product, Set

PLAIN = 1e-100, 1e100  # sizes whose squares neither overflow nor vanish
MOST_CORNERS = 20  # entries of a box up to which its corners are looked at, half by half
SLACK = 1e-9  # samples may lie outside their support by this much, relatively; so is every length rounded up


@dataclass(frozen=True, eq=False)
class Prior:
    """What earlier samples told of the law. It tunes weights, and cannot make a bound wrong."""

    centre: FloatArray  # a point of the region
    variance: float  # of the vector
    variances: FloatArray  # of its entries
    count: float  # how many samples it is worth


@dataclass(frozen=True, eq=False)
class Corners:
    """Each is `about`, the middle of them, plus a row of `first` plus a row of `second`."""

    first: FloatArray
    second: FloatArray
    about: FloatArray

    @cached_property
    def squares(self) -> FloatArray:
        """‖a + b‖² for all rows a of the one and b of the other."""
        squares = 2 * self.first @ self.second.T
        squares += np.sum(self.first**2, axis=1)[:, None]
        squares += np.sum(self.second**2, axis=1)
        return squares

    def farthest(self, c: FloatArray) -> FloatArray:
        """At least the distance of the farthest corner from each c, which depends on the c before it alone.

        Exact for the first, the second, the ninth, …; for those between, by the triangle inequality from the last of
        these. All are taken from the middle, so that no square is much larger than the result.
        """
        rows = c.reshape(-1, *c.shape[-2:])
        found, m, moving = np.empty(rows.shape[:-1]), rows.shape[1], np.empty(self.squares.shape)
        anchors = [0, *(8**k for k in range(8) if 8**k < m)]
        for place, until in zip(anchors, [*anchors[1:], m], strict=True):
            moved = rows[:, place:until] - rows[:, place, None]
            np.sqrt(np.einsum("tmd,tmd->tm", moved, moved), out=found[:, place:until])  # what vanishes is below SLACK
            for own, at in zip(found, rows[:, place] - self.about, strict=True):
                np.subtract(self.squares, 2 * (self.second @ at), out=moving)
                moving -= 2 * (self.first @ at)[:, None]
                own[place:until] += math.sqrt(max(float(moving.max() + at @ at), 0.0))
        return found.reshape(c.shape[:-1])

    def __truediv__(self, unit: float) -> "Corners":
        return Corners(self.first / unit, self.second / unit, self.about / unit)


@dataclass(frozen=True, eq=False)
class Region:
    """A bounded convex set in R^d, seen from outside. `lower` and `upper` are None where its place is not known."""

    diameter: float
    circumradius: float
    lower: FloatArray | None = None  # of a box that holds it
    upper: FloatArray | None = None
    centre: FloatArray | None = None  # a point of it
    prior: Prior | None = None  # known before the samples at hand
    corners: "Corners | None" = None  # of an image of a box
    blocks: tuple[Block, ...] = ()  # of its entries, where more is known of these; all entries, or none

    @staticmethod
    def within(diameter: float, dim: int) -> "Region":
        """Somewhere, with at most this diameter."""
        return Region(diameter, diameter * math.sqrt(dim / (2 * dim + 2)))

    @staticmethod
    def box(lower: FloatArray, upper: FloatArray) -> "Region":
        """Between two corners."""
        width = length(upper - lower) * (1 + SLACK)
        return Region(width, width / 2, lower, upper, (lower + upper) / 2)

    @staticmethod
    def of(support: Support, dim: int) -> "Region | None":
        """From a set whose points have `dim` entries; None where it says nothing of its size, or is unbounded."""
        if isinstance(support, Product):
            return _product(support, dim)
        if not isinstance(support, Set) or support.batch_shape or math.prod(support.point_shape or (dim,)) != dim:
            return None
        if isinstance(support, Box) and np.isfinite([support.lower.min(), support.upper.max()]).all():
            return Region.box(np.broadcast_to(support.lower, dim), np.broadcast_to(support.upper, dim))
        shape = support.point_shape or (dim,)
        directions = np.eye(dim).reshape(dim, *shape)
        upper, lower = np.asarray(support.support(directions)), -np.asarray(support.support(-directions))
        if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
            return None
        around = Region.box(lower, upper)
        flat = support.project(around.centre.reshape(shape)).ravel()  # pyright: ignore[reportOptionalMemberAccess]
        diameter = min(around.diameter, _diameter(support) * (1 + SLACK))
        circumradius = diameter / 2 if isinstance(support, Ball) else diameter * math.sqrt(dim / (2 * dim + 2))
        return Region(diameter, min(circumradius, around.circumradius), lower, upper, flat)

    def through(self, R: FloatArray) -> "Region":
        """The image under R of the box around it."""
        assert self.lower is not None
        assert self.upper is not None
        lower, upper, d = self.lower, self.upper, len(self.lower)
        centre, half = R @ (lower + upper) / 2, (upper - lower) / 2
        reach = np.abs(R) @ half * (1 + SLACK)
        corners = None
        if d <= MOST_CORNERS:
            first, second = slice(None, d // 2), slice(d // 2, None)
            halves = [_corners(lower[part], upper[part]) @ R[:, part].T for part in (first, second)]
            corners = Corners(halves[0], halves[1] - centre, centre)
            across = math.sqrt(max(float(corners.squares.max()), 0.0))
        else:
            across = min(length(reach), float(np.sqrt(half @ np.abs(R.T @ R) @ half)))
        diameter = 2 * across * (1 + SLACK)
        prior = self.prior
        if prior is not None:
            spread = np.square(R) @ prior.variances
            prior = Prior(R @ prior.centre, float(np.sum(spread)), spread, prior.count)
        return Region(diameter, diameter / 2, centre - reach, centre + reach, centre, prior, corners)

    def after(self, rows: FloatArray) -> "Region":
        """The same region, with earlier samples of it to tune weights by."""
        spread = np.var(rows, axis=0)
        return replace(self, prior=Prior(np.mean(rows, axis=0), float(np.sum(spread)), spread, float(len(rows))))

    @property
    def first_guess(self) -> Prior | None:
        """What to tune weights by: the prior, else the centre; None where nothing is known of its place."""
        if self.prior is not None or self.centre is None:
            return self.prior
        width = self.upper - self.lower if self.upper is not None and self.lower is not None else self.diameter
        return Prior(self.centre, (self.diameter / 4) ** 2, np.square(width / 4), 1.0)

    @property
    def variance(self) -> float:
        """An upper bound on E‖X − EX‖²: the mean minimises the expected square, so ρ² is one."""
        return self.circumradius**2

    @property
    def is_point(self) -> bool:
        """Whether nothing is random."""
        if self.lower is None or self.upper is None:
            return self.diameter == 0
        return bool(np.all(self.lower == self.upper))

    def farthest(self, c: FloatArray) -> FloatArray:
        """At least sup ‖x − c‖ over the region, for points c of it along the last axis."""
        if self.lower is None or self.upper is None:
            return np.full(c.shape[:-1], self.diameter)
        if self.corners is not None:
            return np.minimum(self.corners.farthest(c) * (1 + SLACK) + SLACK * self.diameter, self.diameter)
        apart = np.abs(c - (self.lower + self.upper) / 2)
        apart += (self.upper - self.lower) / 2
        if self.blocks:
            squares = [np.sum(np.square(apart[..., block.places]), axis=-1) for block in self.blocks]
            each = [np.minimum(block.farthest(c), square) for block, square in zip(self.blocks, squares, strict=True)]
            return np.minimum(np.sqrt(np.sum(each, axis=0)) * (1 + SLACK), self.diameter)
        if not PLAIN[0] < self.diameter < PLAIN[1]:
            return np.minimum(length(apart, axis=-1) * (1 + SLACK), self.diameter)
        return np.minimum(np.sqrt(np.einsum("...d,...d->...", apart, apart)) * (1 + SLACK), self.diameter)


def _corners(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """All corners of a box."""
    return np.where(_bits(len(lower)), upper, lower)


@cache
def _bits(d: int) -> Any:
    """All ways to choose among d pairs."""
    return ((np.arange(2**d)[:, None] >> np.arange(d)) & 1) == 1


def features_region(phi: Callable[[PyTree], Any], row: PyTree, support: Support) -> Region | None:
    """A box around the features φ(ξ) of all ξ in a support, by interval arithmetic, and how long they can be where they
    are monomials of ξ (feature_blocks.py); None where there is none."""
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(row)])
    around = Region.of(support, len(flat))
    if around is None or around.lower is None or around.upper is None:
        return None

    def of_flat(xi: Any) -> Any:
        return phi(ravel_pytree(row)[1](xi))

    try:
        enclosed = Enclosed(of_flat, flat)
        lower, upper = enclosed(Interval(around.lower, around.upper))
    except NoEnclosure:
        return None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        return None
    found = monomials(of_flat, flat)
    if not found or around.centre is None or not any(one is not None and len(one[0]) > 1 for one in found):
        return Region.box(lower, upper)
    place = _around(support, around)
    centre = enclosed(Interval(around.centre, around.centre)).lower
    return _by_blocks(*cut(found, lower, upper, place), blocks(found, place), centre)


def _around(support: Support, region: Region) -> Around:
    assert region.lower is not None
    assert region.upper is not None
    assert region.centre is not None
    parts: list[Around] = []
    if isinstance(support, Product):
        for part, size in zip(_members(support), _sizes(support), strict=True):
            inside = Region.of(part, size)
            assert inside is not None
            parts.append(_around(part, inside))
    return Around(support, region.lower, region.upper, region.centre, region.diameter, tuple(parts))


def _by_blocks(lower: FloatArray, upper: FloatArray, parts: list[Block], centre: FloatArray) -> Region:
    """A box cut by what is known of blocks of entries; `centre` is a point of it."""
    widths = [length((upper - lower)[part.places]) for part in parts]
    diameters = [min(width, part.diameter) for width, part in zip(widths, parts, strict=True)]
    radii = [
        min(width / 2, part.reach, diameter * math.sqrt(len(part.places) / (2 * len(part.places) + 2)))
        for width, diameter, part in zip(widths, diameters, parts, strict=True)
    ]
    diameter, radius = math.hypot(*diameters) * (1 + SLACK), math.hypot(*radii) * (1 + SLACK)
    return Region(diameter, radius, lower, upper, np.clip(centre, lower, upper), blocks=tuple(parts))


def _product(support: Product, dim: int) -> Region | None:
    """Of parts, one after another."""
    members, sizes = _members(support), _sizes(support)
    if sum(sizes) != dim or 0 in sizes:
        return None
    found = [None if part.batch_shape else Region.of(part, size) for part, size in zip(members, sizes, strict=True)]
    parts = [part for part in found if part is not None]
    if len(parts) < len(found):
        return None
    diameter = math.hypot(*(part.diameter for part in parts))
    circumradius = math.hypot(*(part.circumradius for part in parts))
    corners = [np.concatenate([getattr(part, name) for part in parts]) for name in ("lower", "upper", "centre")]
    return Region(diameter, circumradius, corners[0], corners[1], corners[2])


def _members(support: Product) -> list[Set]:
    return jax.tree.leaves(support.sets, is_leaf=lambda leaf: isinstance(leaf, Set))


def _sizes(support: Product) -> list[int]:
    """How many entries each part has; 0 where that is open."""
    return [math.prod(part.batch_shape) * math.prod(part.point_shape or (0,)) for part in _members(support)]


def _diameter(support: Set) -> float:
    return float(support.diameter()) if support.point_shape is not None else math.inf


def brief_support(support: Support) -> str:
    """A support in a few words."""
    lower, upper = getattr(support, "lower", None), getattr(support, "upper", None)
    if lower is None or upper is None:
        return type(support).__name__
    if np.ptp(lower) == 0 and np.ptp(upper) == 0:
        return f"[{np.min(lower):.4g}, {np.max(upper):.4g}] in every entry"
    return f"a box within [{np.min(lower):.4g}, {np.max(upper):.4g}]"
