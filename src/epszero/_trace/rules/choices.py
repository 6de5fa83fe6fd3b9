"""What a traced program chooses, of forms: maxima, cut-offs, comparisons, `where`."""

from typing import Any, NamedTuple

import numpy as np

from epszero._trace.intervals.arithmetic import NoEnclosure
from epszero._trace.rules.forms import Form, Given
from epszero._trace.rules.hubers import huber
from epszero._trace.rules.nested import largest_of
from epszero._trace.rules.operations import Random, Walk, minus, operation, shape_made, stacked


class Compared(NamedTuple):
    """Where a form is below 0, which is not decided."""

    margin: Form


@operation("max", "min")
def _extreme(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    """max(a, b) = b + relu(a − b), min(a, b) = b − relu(b − a)."""
    shape, sign = shape_made(equation), 1.0 if equation.primitive.name == "max" else -1.0
    for one, other in (operands, operands[::-1]):
        if isinstance(one, np.ndarray) and np.all(one == -sign * np.inf):
            return [walk.form(other, shape)]
    a, b = (walk.form(operand, shape) for operand in operands)
    if b.affine.flat and not b.terms:
        a, b = b, a
    return [_larger(walk, a, b, sign)]


def _larger(walk: Walk, a: Form, b: Form, sign: float) -> Form:
    if not np.isfinite(a.affine.b.lower).all():
        raise NoEnclosure("a maximum with infinity")
    margin = minus(b, a) if sign > 0 else minus(a, b)
    try:
        bent = walk.atom("relu", None, margin)
    except NoEnclosure:
        return largest_of([a, b], walk.ranges, int(sign))
    return a.plus(bent.times(Given.constant(np.full(a.size, sign))))


@operation("reduce_max", "reduce_min")
def _reduce_max(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    form, shape = operands[0], shape_made(equation)
    axes = tuple(int(axis) for axis in equation.params["axes"])
    kept = [axis for axis in range(len(form.shape)) if axis not in axes]
    size = int(np.prod(shape, dtype=np.int64))
    rows = np.transpose(np.arange(form.size).reshape(form.shape), [*axes, *kept]).reshape(-1, size)
    sign = 1 if equation.primitive.name == "reduce_max" else -1
    return [largest_of([form.take(places, shape) for places in rows], walk.ranges, sign)]


COMPARED = {"lt": (1.0, True), "le": (1.0, False), "gt": (-1.0, True), "ge": (-1.0, False)}


@operation(*COMPARED, "ne")
def _compare(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    """Decided by the range, or kept for `where`."""
    shape = shape_made(equation)
    a, b = (walk.form(operand, shape) for operand in operands)
    if equation.primitive.name == "ne":
        if a.mark == b.mark:  # is it NaN?
            return [np.zeros(shape, dtype=bool)]
        raise NoEnclosure("a comparison for equality")
    sign, strictly = COMPARED[equation.primitive.name]
    margin = minus(a, b) if sign > 0 else minus(b, a)
    reach = walk.ranges.of_form(margin)
    holds = reach.upper < 0 if strictly else reach.upper <= 0
    fails = reach.lower >= 0 if strictly else reach.lower > 0
    if np.all(holds | fails):
        return [holds.reshape(shape)]
    return [Compared(margin)]


@operation("clamp")
def _clamp(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    shape = shape_made(equation)
    low, middle, high = (walk.form(operand, shape) for operand in operands)
    return [_larger(walk, high, _larger(walk, low, middle, 1.0), -1.0)]


@operation("select_n")
def _select(walk: Walk, equation: Any, operands: list[Any]) -> list[Any]:
    """Rows of one or the other, where the choice depends on nothing."""
    which, cases = operands[0], operands[1:]
    shape = shape_made(equation)
    if isinstance(which, Random | Form):
        raise NoEnclosure("where, on what depends on the point or the sample")
    if isinstance(which, Compared):
        return [huber(which.margin, *(walk.form(case, shape) for case in cases))]
    chosen = np.broadcast_to(np.asarray(which), shape).astype(int).reshape(-1)
    used = np.unique(chosen)
    forms = {int(case): walk.form(cases[int(case)], shape) for case in used}
    if len(used) == 1:
        return [forms[int(used[0])]]
    rows, order = np.arange(len(chosen)), np.searchsorted(used, chosen)
    return [stacked([forms[int(case)] for case in used]).take(order * len(chosen) + rows, shape)]
