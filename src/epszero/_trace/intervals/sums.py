"""How sums, products, extremes and contractions along axes act on intervals."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.arithmetic import Interval, point
from epszero._trace.intervals.rules import Value, interval, rule_for


@rule_for("reduce_sum")
def _reduce_sum(params: Any, operands: list[Value], _: int) -> list[Value]:
    axes = tuple(int(axis) for axis in params["axes"])
    total = arithmetic.summed(interval(operands[0]), lambda v: np.asarray(np.sum(v, axis=axes)))
    return [Interval(np.maximum(total.lower, params.get("at_least", -np.inf)), total.upper)]


@rule_for("cumsum", "cummax", "cummin", "cumprod")
def _cumulative(params: Any, operands: list[Value], _: int) -> list[Value]:
    x, axis, name = interval(operands[0]), params["axis"], params["name"]
    turn: Callable[[Any], Any] = (lambda v: np.flip(v, axis)) if params["reverse"] else (lambda v: v)
    x = Interval(turn(x.lower), turn(x.upper))
    if name == "cumsum":
        result = arithmetic.summed(x, lambda v: np.cumsum(v, axis=axis))
    elif name == "cumprod":
        rows = _rows(x, (axis,))
        partial = [rows[0]] if rows else []
        for row in rows[1:]:
            partial.append(arithmetic.mul(partial[-1], row))
        result = Interval(*(np.stack([p[k] for p in partial], axis) if rows else x[k] for k in (0, 1)))
    else:
        running = np.maximum.accumulate if name == "cummax" else np.minimum.accumulate
        result = Interval(*(running(end, axis=axis) for end in x))
    return [Interval(turn(result.lower), turn(result.upper))]


def _rows(x: Interval, axes: Sequence[int]) -> list[Interval]:
    """x in slices along some axes."""
    kept = [axis for axis in range(x.lower.ndim) if axis not in axes]
    shape = [math.prod(x.lower.shape[axis] for axis in axes), *(x.lower.shape[axis] for axis in kept)]
    flat = [np.transpose(end, [*axes, *kept]).reshape(shape) for end in x]
    return [Interval(low, high) for low, high in zip(*flat, strict=True)]


@rule_for("reduce_prod", "reduce_max", "reduce_min")
def _reduce(params: Any, operands: list[Value], _: int) -> list[Value]:
    x, axes = interval(operands[0]), tuple(int(axis) for axis in params["axes"])
    if params["name"] != "reduce_prod":
        reduce, first = (np.max, -np.inf) if params["name"] == "reduce_max" else (np.min, np.inf)
        return [Interval(*(np.asarray(reduce(end, axis=axes, initial=first)) for end in x))]
    rows = _rows(x, axes)
    result = rows[0] if rows else point(np.ones([n for k, n in enumerate(x.lower.shape) if k not in axes]))
    for row in rows[1:]:
        result = arithmetic.mul(result, row)
    return [result]


@rule_for("dot_general")
def _dot_general(params: Any, operands: list[Value], _: int) -> list[Value]:
    x, y = map(interval, operands)
    (left, right), (left_batch, right_batch) = params["dimension_numbers"]
    left_free = [axis for axis in range(x.lower.ndim) if axis not in (*left, *left_batch)]
    right_free = [axis for axis in range(y.lower.ndim) if axis not in (*right, *right_batch)]
    batch, rows, columns = (
        [v.lower.shape[axis] for axis in axes] for v, axes in ((x, left_batch), (x, left_free), (y, right_free))
    )
    if x is y and not rows and not columns and tuple(left) == tuple(right) and tuple(left_batch) == tuple(right_batch):
        squares = Interval(*(np.transpose(end, [*left_batch, *left]) for end in arithmetic.square(x)))
        over = tuple(range(len(batch), squares.lower.ndim))
        return [arithmetic.summed(squares, lambda v: np.asarray(np.sum(v, axis=over)))]
    inner = math.prod(x.lower.shape[axis] for axis in left)
    a = _moved(x, [*left_batch, *left_free, *left], (math.prod(batch), math.prod(rows), inner))
    b = _moved(y, [*right_batch, *right, *right_free], (math.prod(batch), inner, math.prod(columns)))
    return [Interval(*(end.reshape([*batch, *rows, *columns]) for end in arithmetic.matmul(a, b)))]


def _moved(x: Interval, order: Sequence[int], shape: Sequence[int]) -> Interval:
    lower = np.transpose(x.lower, order).reshape(shape)
    return Interval(lower, lower if x.lower is x.upper else np.transpose(x.upper, order).reshape(shape))
