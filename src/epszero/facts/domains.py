"""Boxes: around the domain of A, around the support of ξ; and whether a box misses the domain altogether."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._memory import shape_of
from epszero._types import FloatArray, PyTree, Support
from epszero.facts.region import Region
from epszero.functions import Indicator
from epszero.oracles import OwnData
from epszero.problems import Problem
from epszero.problems.backward import Backward, is_part
from epszero.sets import Ball, Box, CvxpySet, Intersection, Polyhedron, Set

ROOM = 1e-9  # relative to the width: what a support function may be off by


class Bounds(NamedTuple):
    """Between two corners, flat; ±∞ where it is open."""

    lower: FloatArray
    upper: FloatArray

    @property
    def bounded(self) -> bool:
        """Whether it is finite in every direction."""
        return bool(np.isfinite(self.lower).all() and np.isfinite(self.upper).all())


def domain_box(strategies: Backward, x: PyTree) -> Bounds:
    """The least box around the domain of A, for points like x; open where a part is not a set."""
    sides = jax.tree.leaves(strategies.each(_sides, x), is_leaf=lambda leaf: isinstance(leaf, Bounds))
    return Bounds(*(np.concatenate([getattr(side, name) for side in sides]) for name in ("lower", "upper")))


def point_of(problem: Problem, x: PyTree) -> PyTree:
    """A point of the domain that depends on the problem alone."""
    start = problem.start
    if jax.tree.structure(start) == jax.tree.structure(x) and shape_of(start) == shape_of(x):
        return start
    return problem.strategies.into_domain(jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), x))


def _sides(part: Any, x: Any) -> Bounds:
    part = part.set if isinstance(part, Indicator) else part
    flat = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    if not isinstance(part, Set):
        return Bounds(np.full(flat, -np.inf), np.full(flat, np.inf))
    shape = np.shape(np.atleast_1d(x))
    lead, point = shape[: -part.rank], shape[-part.rank :]
    size = int(np.prod(point))
    if isinstance(part, Box):
        return Bounds(*(np.broadcast_to(side, shape).ravel() for side in (part.lower, part.upper)))
    upper, lower = np.empty((*lead, size)), np.empty((*lead, size))
    for k in range(size):
        direction = np.zeros(size)
        direction[k] = 1.0
        towards = np.broadcast_to(direction.reshape(point), shape)
        upper[..., k], lower[..., k] = part.support(towards), -part.support(-towards)
    return _roomy(lower.ravel(), upper.ravel())


def _roomy(lower: FloatArray, upper: FloatArray) -> Bounds:
    """A little larger, as support functions are rounded, and some are computed by solvers."""
    with np.errstate(invalid="ignore"):
        width = np.where(np.isfinite(lower) & np.isfinite(upper), upper - lower, 0.0)
    room = [ROOM * width + 1e-14 * np.where(np.isfinite(side), np.abs(side), 0.0) for side in (lower, upper)]
    return Bounds(lower - room[0], upper + room[1])


def support_centre(supports: Sequence[Support | None], row: PyTree) -> PyTree:
    """A point of the supports of the data sets, shaped like `row`; 0 where nothing is known of one."""
    rows, every = _each_support(supports, row)
    found = [_centre(support, one) for support, one in zip(every, rows, strict=True)]
    return OwnData(found) if isinstance(row, OwnData) else found[0]


def _centre(support: Support | None, row: PyTree) -> PyTree:
    flat, nested_back = ravel_pytree(jax.tree.map(jnp.asarray, row))
    region = None if support is None else Region.of(support, len(flat))
    here = np.zeros(len(flat)) if region is None or region.centre is None else region.centre
    return nested_back(jnp.asarray(here, flat.dtype))


def _each_support(supports: Sequence[Support | None], row: PyTree) -> tuple[list[PyTree], Sequence[Support | None]]:
    """The sample of each data set, and its support; one support serves all where there is one."""
    rows = list(row) if isinstance(row, OwnData) else [row]
    return rows, supports if len(supports) == len(rows) else [*supports] * len(rows)


def support_box(supports: Sequence[Support | None], row: PyTree) -> tuple[Bounds, bool]:
    """The box around the supports of the data sets, one after another, and whether it is no larger than they are."""
    rows, every = _each_support(supports, row)
    sizes = [sum(np.size(leaf) for leaf in jax.tree.leaves(one)) for one in rows]
    boxes = [_support(support, size) for support, size in zip(every, sizes, strict=True)]
    exact = all(isinstance(support, Box) for support in every)
    return Bounds(*(np.concatenate([getattr(box, name) for box in boxes]) for name in ("lower", "upper"))), exact


def _support(support: Support | None, size: int) -> Bounds:
    if isinstance(support, Box) and not support.batch_shape and support.point_shape in (None, (size,)):
        return Bounds(*(np.broadcast_to(side, (size,)) for side in (support.lower, support.upper)))
    region = None if support is None else Region.of(support, size)
    if region is None or region.lower is None or region.upper is None:
        return Bounds(np.full(size, -np.inf), np.full(size, np.inf))
    return _roomy(region.lower, region.upper)


def misses(strategies: Backward, x: PyTree, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Which of the boxes (rows of lower and upper) have no point in common with the domain: by a plane between."""
    centres, reach = nested((lower + upper) / 2, x), nested((upper - lower) / 2, x)
    apart = [found for found in jax.tree.leaves(strategies.each(_apart, centres, reach)) if found is not None]
    return np.any(apart, axis=0) if apart else np.zeros(len(lower), dtype=bool)


def nearest(strategies: Backward, x: PyTree, points: FloatArray) -> FloatArray:
    """The points of the domain nearest to each row of `points`; the row itself where a part is not a set."""
    found = jax.tree.leaves(strategies.each(_nearest, nested(points, x)))
    return np.concatenate([np.reshape(leaf, (len(points), -1)) for leaf in found], axis=1)


def _nearest(part: Any, points: Any) -> Any:
    part = part.set if isinstance(part, Indicator) else part
    if not isinstance(part, Set):
        return points
    rows = points if points.ndim > part.rank else points[:, None]
    return np.asarray(part.project(rows)).reshape(points.shape)


def nested(flat: FloatArray, x: PyTree) -> PyTree:
    """Rows of flat points as one point with a leading axis, nested like x."""
    leaves, structure = jax.tree.flatten(x)
    pieces = np.split(flat, np.cumsum([np.size(leaf) for leaf in leaves])[:-1], axis=-1)
    shaped = [piece.reshape(len(flat), *np.shape(leaf)) for piece, leaf in zip(pieces, leaves, strict=True)]
    return structure.unflatten(shaped)


def _apart(part: Any, centre: Any, reach: Any) -> Any:
    part = part.set if isinstance(part, Indicator) else part
    if not isinstance(part, Set) or isinstance(part, Box):
        return np.zeros(len(jax.tree.leaves(centre)[0]), dtype=bool)
    axes = tuple(range(-part.rank, 0))
    if centre.ndim <= part.rank:
        centre, reach = centre[:, None], reach[:, None]
    direction = centre - np.asarray(part.project(centre))
    least = np.sum(direction * centre - np.abs(direction) * reach, axis=axes)
    room = ROOM * (1 + np.sum(np.abs(direction) * (np.abs(centre) + reach), axis=axes))
    beyond = least > np.asarray(part.support(direction)) + room
    return np.any(beyond, axis=tuple(range(1, beyond.ndim)))


def by_solver(strategies: Backward) -> bool:
    """Whether a solver projects on some part of the domain, which takes too long to be asked box by box."""
    return any(_by_solver(part) for part in jax.tree.leaves(strategies.parts, is_leaf=is_part))


def _by_solver(part: Any) -> bool:
    if isinstance(part, Polyhedron | Intersection | CvxpySet):
        return True
    return isinstance(part, Set | Indicator) and any(_by_solver(one) for one in vars(part).values())


def only_boxes(strategies: Backward) -> bool:
    """Whether the domain is a box itself."""
    parts = jax.tree.leaves(strategies.parts, is_leaf=is_part)
    return all(isinstance(part.set if isinstance(part, Indicator) else part, Box) for part in parts)


def domain_diameter(strategies: Backward, x: PyTree) -> float:
    """sup ‖y − z‖ over the domain, or an upper bound on it; ∞ where it is unbounded."""
    found = [np.ravel(part) for part in jax.tree.leaves(strategies.each(_width, x))]
    widths = np.concatenate(found) if found else np.zeros(0)
    unit = float(np.max(widths, initial=0.0))
    return unit * float(np.linalg.norm(widths / unit)) if 0 < unit < np.inf else unit


def domain_ball(strategies: Backward, x: PyTree, box: Bounds) -> tuple[FloatArray, float]:
    """A point, and how far from it the domain reaches at most: by the box around it, or by a ball that it is."""
    with np.errstate(invalid="ignore"):
        centre = np.where(np.isfinite(box.lower + box.upper), (box.lower + box.upper) / 2, 0.0)
        half = np.where(np.isfinite(box.lower) & np.isfinite(box.upper), (box.upper - box.lower) / 2, np.inf)
    shaped = nested(half[None], x)
    reaches = jax.tree.leaves(strategies.each(_reach_of, shaped))
    return centre, float(np.linalg.norm(np.array(reaches)))


def _reach_of(part: Any, half: Any) -> Any:
    """How far a part reaches from the middle of the box around it."""
    part = part.set if isinstance(part, Indicator) else part
    by_box = float(np.linalg.norm(np.ravel(half)))
    one = isinstance(part, Ball) and not part.batch_shape and np.ndim(half) == 2 and part.norm == 2
    return min(by_box, float(np.max(half)) * (1 + ROOM)) if one else by_box


def _width(part: Any, x: Any) -> Any:
    """The diameter of the part's domain, one for each row that it acts on."""
    part = part.set if isinstance(part, Indicator) else part
    if not isinstance(part, Set):
        return np.inf
    rows = np.shape(np.atleast_1d(x))[: -part.rank]
    try:
        return np.broadcast_to(np.asarray(part.diameter()), rows)
    except ValueError:  # its dimension is open
        return np.inf


def tangent(strategies: Backward, x: PyTree) -> FloatArray | None:
    """An orthonormal basis, in columns, of the directions between points of the domain; None where they are all.

    Directions across which the domain has no width are guessed from random points and proved by support functions.
    """
    flat = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(x)])
    box = domain_box(strategies, x)
    with np.errstate(invalid="ignore"):
        width = box.upper - box.lower
    width = np.where(np.isfinite(width), width, 10.0 * (1 + np.abs(flat)))
    thin = width <= 1e-12 * np.maximum(np.abs(flat), 1e-300)
    unit = np.where(thin, 1.0, width)  # every direction in its own units
    away = np.random.default_rng(0).normal(size=(2 * len(flat) + 4, len(flat)))
    points = nearest(strategies, x, flat + 3.0 * width * away) / unit
    _, sizes, rows = np.linalg.svd(points - points.mean(axis=0))
    rank = int(np.sum(sizes > 1e-9 * max(sizes[0], 1e-300)))
    across = rows[rank:] / unit
    if not len(across):
        return None
    if np.any(domain_support(strategies, x, across) + domain_support(strategies, x, -across) > 1e-8):
        return None
    _, _, rows = np.linalg.svd(across)
    return rows[len(across) :].T


def domain_support(strategies: Backward, x: PyTree, rows: FloatArray) -> FloatArray:
    """sup ⟨row, y⟩ over the domain, for each row."""

    def of_part(part: Any, direction: Any) -> Any:
        part = part.set if isinstance(part, Indicator) else part
        if not isinstance(part, Set):
            leaves = [np.reshape(leaf, (len(rows), -1)) for leaf in jax.tree.leaves(direction)]
            return np.where(np.concatenate(leaves, axis=1).any(axis=1), np.inf, 0.0)
        asked = direction if direction.ndim > part.rank else direction[:, None]
        return np.asarray(part.support(asked)).reshape(len(rows), -1).sum(axis=1)

    return np.sum(jax.tree.leaves(strategies.each(of_part, nested(rows, x))), axis=0)
