"""Where forms and local functions lie while x ranges over the domain: enclosures of values and derivatives.

The range of A(ξ)x + b(ξ) is that of interval arithmetic over the box around the domain, cut back by what else the
domain says of it (`reach`: support functions). Enclosures of composed functions are refined by cutting the ranges of
their variables into pieces, since intervals forget that two occurrences are one number.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval
from epszero._trace.rules.expressions import GROUPS, Jet, is_plain, jet
from epszero._trace.rules.forms import Affine, Form, Local, taken
from epszero._trace.rules.groups import group_jet

PIECES = {1: (256,), 2: (24, 24)}  # of the ranges of one and of two variables
NUMBERS = 2_000_000  # of all pieces together

Reach = Callable[[Interval], Interval]  # where A x lies, for the rows of A


class Ranges:
    """Over one box of x."""

    def __init__(self, lower: Any, upper: Any, reach: Reach | None = None) -> None:
        self.box = Interval(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64))
        self._reach = reach
        self._known: dict[bytes, Interval] = {}

    def of_affine(self, rows: Affine) -> Interval:
        """Of its rows."""
        if rows.key not in self._known:
            self._known[rows.key] = self._base(rows)
        return taken(self._known[rows.key], rows.src)

    def _base(self, rows: Affine) -> Interval:
        if rows.flat:
            return rows.b
        linear = arithmetic.mul(rows.A, Interval(self.box.lower[None], self.box.upper[None]))
        total = arithmetic.summed(linear, lambda v: np.sum(v, axis=1))
        if self._reach is not None:
            cut = self._reach(rows.A)
            total = Interval(np.maximum(total.lower, cut.lower), np.minimum(total.upper, cut.upper))
        return arithmetic.add(total, rows.b)

    def jet(self, local: Local, kinks: set[str]) -> Jet:
        """Enclosures of value and derivatives, row by row."""
        boxes = [self.of_affine(one) for one in local.variables]
        params = [one.values for one in local.params]
        name = local.expression[0]
        if name in GROUPS:
            found = group_jet(local.expression, boxes, kinks)
            return Jet(found.value, found.first, found.second, found.cap)
        with np.errstate(all="ignore"):
            whole = jet(local.expression, boxes, params, kinks)
            if not is_plain(local.expression) and len(boxes) in PIECES:
                whole = _refined(local, boxes, params, whole)
        return _full(whole, local.rows, _over_linear(local.expression, boxes))

    def of_local(self, local: Local) -> Interval:
        """Of its values."""
        return self.jet(local, set()).value

    def of_form(self, form: Form) -> Interval:
        """Of its values."""
        total = self.of_affine(form.affine)
        for term in form.terms:
            part = arithmetic.mul(term.weight.values, self.of_local(term.local))
            if term.matrix is not None:
                products = arithmetic.mul(term.matrix, Interval(part.lower[None], part.upper[None]))
                part = arithmetic.summed(products, lambda v: np.sum(v, axis=1))
            total = arithmetic.add(total, part)
        return total


def _refined(local: Local, boxes: list[Interval], params: list[Interval], whole: Jet) -> Jet:
    """The hull over pieces, where that is not too much, cut with the whole."""
    counts = PIECES[len(boxes)]
    many = max(1, min(counts[0], int((NUMBERS / max(local.rows, 1)) ** (1 / len(boxes)))))
    if many < 4:
        return whole
    cuts = [_cuts(box, many) for box in boxes]  # (rows, many + 1)
    axes = len(boxes)
    pieces: list[Interval] = []
    for place, cut in enumerate(cuts):
        shape = [local.rows, *(many if axis == place else 1 for axis in range(axes))]
        low, high = cut[:, :-1].reshape(shape), cut[:, 1:].reshape(shape)
        full = (local.rows, *(many,) * axes)
        pieces.append(Interval(np.broadcast_to(low, full), np.broadcast_to(high, full)))
    spread = [Interval(*(end.reshape((-1,) + (1,) * axes) if end.ndim else end for end in one)) for one in params]
    found = jet(local.expression, pieces, spread, set())
    return Jet(
        _hull(found.value, whole.value, axes),
        {key: _hull(part, whole.first[key], axes) for key, part in found.first.items()},
        {key: _hull(part, whole.second[key], axes) for key, part in found.second.items()},
    )


def _hull(parts: Interval, whole: Interval, axes: int) -> Interval:
    over = tuple(range(1, 1 + axes))
    if parts.lower.ndim <= axes:  # the same for all pieces
        return whole
    lower, upper = parts.lower.min(axis=over), parts.upper.max(axis=over)
    return Interval(np.maximum(lower, whole.lower), np.minimum(upper, whole.upper))


def _cuts(box: Interval, many: int) -> Any:
    """Points from one end to the other: evenly in asinh, which is fine near 0 and reaches infinity at the ends."""
    low, high = box.lower[:, None], box.upper[:, None]
    start, stop = (np.arcsinh(np.clip(end, -1e6, 1e6)) for end in (low, high))
    share = np.linspace(0.0, 1.0, many + 1)[None]
    inner = np.sinh(start + (stop - start) * share)
    inner[:, :1], inner[:, -1:] = low, high
    return np.clip(np.maximum.accumulate(inner, axis=1), low, high)


def _over_linear(expression: Any, boxes: list[Interval]) -> Any:
    """Of u²/v, v > 0, which is convex: 2/v + 2u²/v³ is the trace of its Hessian; None of anything else."""
    if expression[0] != "mul" or expression[1][0] != "square" or expression[2][0] != "reciprocal":
        return None
    u, v = expression[1][2], expression[2][2]
    if u[0] != "var" or v[0] != "var" or np.any(boxes[v[1]].lower <= 0):
        return None
    size, below = arithmetic.magnitude(boxes[u[1]]).upper, boxes[v[1]].lower
    return (2 / below + 2 * (size / below) ** 2 / below) * (1 + 1e-14)


def _full(found: Jet, rows: int, cap: Any) -> Jet:
    def spread(part: Interval) -> Interval:
        return Interval(*(np.broadcast_to(end, (rows,)) for end in part))

    return Jet(
        spread(found.value),
        {key: spread(part) for key, part in found.first.items()},
        {key: spread(part) for key, part in found.second.items()},
        cap,
    )
