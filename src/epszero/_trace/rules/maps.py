"""Linear operations of traced programs as matrices, or as places where entries come from.

Every entry of the matrix of a contraction with C is an entry of C, or 0: nothing is rounded.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals.arithmetic import Interval, NoEnclosure
from epszero._trace.rules.forms import NUMBERS


def contraction(C: Interval, dims: Any, shape: tuple[int, ...], first: bool) -> Interval:
    """The matrix of dot_general with C, on flat arrays of that shape; `first`: C is the first operand."""
    size = int(np.prod(shape, dtype=np.int64))
    (left, right), (left_batch, right_batch) = dims
    own, own_batch, other, other_batch = (
        (left, left_batch, right, right_batch) if first else (right, right_batch, left, left_batch)
    )
    own_free = [axis for axis in range(C.lower.ndim) if axis not in (*own, *own_batch)]
    free = [axis for axis in range(len(shape)) if axis not in (*other, *other_batch)]
    batch = [shape[axis] for axis in other_batch]
    out = int(np.prod([*batch, *(C.lower.shape[axis] for axis in own_free), *(shape[axis] for axis in free)]))
    if out * size > NUMBERS:
        raise NoEnclosure("a contraction is too large to be written down")
    places = np.arange(size).reshape(shape)

    def matrix(end: Any) -> Any:
        a = np.transpose(end, [*own_batch, *own_free, *own])
        a = a.reshape(int(np.prod(batch)), -1, int(np.prod([end.shape[axis] for axis in own])))
        p = np.transpose(places, [*other_batch, *other, *free]).reshape(a.shape[0], a.shape[2], -1)
        found = np.zeros((a.shape[0], a.shape[1], p.shape[2], size))
        b, i, c, k = np.ix_(*(range(length) for length in (a.shape[0], a.shape[1], a.shape[2], p.shape[2])))
        found[b, i, k, p[b, c, k]] = a[b, i, c]
        if not first:
            found = found.transpose(0, 2, 1, 3)
        return found.reshape(out, size)

    lower = matrix(C.lower)
    return Interval(lower, lower if C.lower is C.upper else matrix(C.upper))


def pairs(shapes: tuple[tuple[int, ...], tuple[int, ...]], dims: Any) -> tuple[Any, Any, int]:
    """For dot_general of two arrays: of each product the places of its factors, and how many make up one entry."""
    (left, right), (left_batch, right_batch) = dims
    places = [np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape) for shape in shapes]
    frees = [
        [axis for axis in range(len(shape)) if axis not in (*inner, *batch)]
        for shape, inner, batch in zip(shapes, (left, right), (left_batch, right_batch), strict=True)
    ]
    batch = int(np.prod([shapes[0][axis] for axis in left_batch], dtype=np.int64))
    inner = int(np.prod([shapes[0][axis] for axis in left], dtype=np.int64))
    a = np.transpose(places[0], [*left_batch, *frees[0], *left]).reshape(batch, -1, 1, inner)
    b = np.transpose(places[1], [*right_batch, *frees[1], *right]).reshape(batch, 1, -1, inner)
    full = (batch, a.shape[1], b.shape[2], inner)
    if int(np.prod(full)) > NUMBERS:
        raise NoEnclosure("a contraction is too large to be written down")
    return np.broadcast_to(a, full).reshape(-1), np.broadcast_to(b, full).reshape(-1), inner


def summing(shape: tuple[int, ...], axes: Any) -> Any:
    """The matrix of a sum over axes."""
    size = int(np.prod(shape, dtype=np.int64))
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rows = np.transpose(np.arange(size).reshape(shape), [*kept, *axes])
    rows = rows.reshape(int(np.prod([shape[axis] for axis in kept], dtype=np.int64)), -1)
    if len(rows) * size > NUMBERS:
        raise NoEnclosure("a sum is too large to be written down")
    found = np.zeros((len(rows), size))
    found[np.arange(len(rows))[:, None], rows] = 1.0
    return found


def running(shape: tuple[int, ...], axis: int, reverse: bool) -> Any:
    """The matrix of a cumulative sum."""
    size = int(np.prod(shape, dtype=np.int64))
    if size * size > NUMBERS:
        raise NoEnclosure("a sum is too large to be written down")
    unit = np.eye(size).reshape(*shape, size)
    unit = np.flip(unit, axis) if reverse else unit
    found = np.cumsum(unit, axis=axis)
    return (np.flip(found, axis) if reverse else found).reshape(size, size)
