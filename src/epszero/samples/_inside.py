"""Whether samples lie in a support, up to rounding. Bounds rest on the size of the support: its width is the measure.

A sample v with the nearest point p may lie outside by 1e-9 of the width of the set, in the direction of v − p and in
every entry, and by a few units in the last place of the numbers themselves. In an entry in which the set has no width
rounding is all; in another direction in which it has none, as across a simplex, the widths of the entries are the
measure. An infinite width counts as 1. A product is asked part by part, an intersection member by member. A support
that has no `project` is taken at its word.
"""

from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from epszero._types import FloatArray, PyTree, Support

SHARE = 1e-9  # of the width: what rounding explains
ULPS = 16  # units in the last place, of the largest number that is computed with
FURTHER = 1e-3  # of its size: how far from a flat set one goes to see that it is flat
MOST_ENTRIES = 512  # up to which the width of every entry is looked at

Flags = NDArray[np.bool_]


def inside_support(support: Support, values: PyTree) -> NDArray[Any]:
    """For every sample whether it lies in the support."""
    near = _near(support, values)
    if near.shape != (len(jax.tree.leaves(values)[0]),) or not near.any():
        return near
    rows = np.where(near, np.arange(len(near)), int(np.argmax(near)))  # what is far is not asked for again
    return near.astype(bool) & _close(support, jax.tree.map(lambda leaf: np.asarray(leaf)[rows], values))


def _near(support: Support, values: PyTree) -> NDArray[Any]:
    """By the set's own word; a product of sets is asked row by row."""
    if getattr(support, "rank", 1):
        return np.asarray(support.contains(values, SHARE))
    with jax.enable_x64(True):
        return np.asarray(jax.vmap(lambda row: support.contains(row, SHARE))(values))


def _close(support: Any, values: PyTree) -> Flags:
    """By its width, one answer for each entry of the leading axis."""
    members = getattr(support, "sets", None)
    if members is not None:
        sets, structure = jax.tree.flatten(members, is_leaf=_is_set)
        parts = [values] * len(sets) if getattr(support, "rank", 1) else structure.flatten_up_to(values)
        return np.all([_close(one, part) for one, part in zip(sets, parts, strict=True)], axis=0)
    if not all(hasattr(support, name) for name in ("project", "support", "diameter", "batch_shape", "rank")):
        return np.ones(len(jax.tree.leaves(values)[0]), dtype=bool)
    v = np.asarray(values, dtype=np.float64)
    box = vars(support).keys() == {"lower", "upper"}
    found = _in_box(support.lower, support.upper, v) if box else _in_set(support, v)
    return np.all(found.reshape(len(v), -1), axis=1)


def _is_set(value: Any) -> bool:
    return hasattr(value, "contains")


def _in_box(lower: FloatArray, upper: FloatArray, v: FloatArray) -> Flags:
    """Entry by entry; the bounds are the numbers that were rounded."""
    with np.errstate(all="ignore"):
        room = SHARE * _finite(upper - lower)
        over = v - upper <= room + ULPS * np.spacing(np.where(np.isfinite(upper), np.abs(upper), 0.0))
        under = lower - v <= room + ULPS * np.spacing(np.where(np.isfinite(lower), np.abs(lower), 0.0))
    return over & under


def _in_set(support: Any, v: FloatArray) -> Flags:
    """By projection, which is exact up to rounding of the largest numbers, or as good as the set says."""
    point = v.shape[-support.rank :]
    axes = tuple(range(-support.rank, 0))

    def length(of: FloatArray) -> FloatArray:
        return np.sqrt(np.sum(np.square(of), axis=axes, keepdims=True))

    def direction(of: FloatArray) -> tuple[FloatArray, FloatArray]:
        nearest = np.asarray(support.project(of))
        long = length(of - nearest)
        return nearest, (of - nearest) / np.where(long > 0, long, 1.0)

    rounding = ULPS * np.finfo(np.float64).eps * length(v)
    nearest, outwards = direction(v)
    away = v - nearest
    outside = np.squeeze(length(away) > rounding, axis=axes)
    if not outside.any():
        return ~outside

    def width(of: FloatArray) -> FloatArray:
        return np.expand_dims(np.asarray(support.support(of)) + np.asarray(support.support(-of)), axes)

    share, size = getattr(support, "accuracy", SHARE), _size(support, len(point))
    middle = np.mean(nearest, axis=0, keepdims=True)  # away from edges; from there the direction is seen more exactly
    _, seen = direction(middle + FURTHER * size * outwards)
    flat = (length(seen) > 0) & (width(seen) <= share / 100 * size + 4 / FURTHER * rounding)
    room = np.where(flat, np.inf, share * _finite(width(outwards))) + rounding
    every = np.all(np.abs(away) <= share * _widths(support, point) + rounding, axis=axes)
    return ~outside | (every & np.squeeze(length(away) <= room, axis=axes))


def _size(support: Any, axes: int) -> FloatArray:
    """The diameter, with axes for the entries."""
    size = _finite(np.asarray(support.diameter()) if support.point_shape else np.asarray(np.inf))
    return size.reshape(*size.shape, *(1 for _ in range(axes)))


def _widths(support: Any, point: tuple[int, ...]) -> FloatArray:
    """Of the entries; the diameter where there are too many, or where the sets are many."""
    entries = int(np.prod(point))
    if entries > MOST_ENTRIES or support.batch_shape:
        return _size(support, len(point))
    each = np.eye(entries).reshape(entries, *point)
    widths = np.asarray(support.support(each)) + np.asarray(support.support(-each))
    return _finite(widths).reshape(point)


def _finite(widths: Any) -> FloatArray:
    """With 1 for what is infinite."""
    return np.where(np.isfinite(widths), np.maximum(widths, 0.0), 1.0)
