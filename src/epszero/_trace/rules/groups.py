"""Functions of several numbers together: logsumexp, and the Euclidean norm with or without a constant under the root.

log Σ eᵗⁱ has the gradient p, a probability vector, and the Hessian diag(p) − ppᵀ, between 0 and ½I. √(c + ‖t‖²) = v has
the gradient t/v, of norm at most 1, and the Hessian (I − ttᵀ/v²)/v, between 0 and I/v; where v may be 0 it has a kink.
"""

from typing import Any, NamedTuple

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, widened, within
from epszero._trace.rules.forms import Affine, Form, Local, affine, entries, key_of, nothing

MANY = 400  # numbers in a group
WRITTEN = 24  # numbers up to which second derivatives are written down one by one


class GroupJet(NamedTuple):
    """Enclosures, row by row."""

    value: Interval
    first: dict[int, Interval]
    second: dict[tuple[int, int], Interval]  # empty beyond `WRITTEN`
    cap: Any  # the Hessian is at most this times I, and at least 0


class Nested(NamedTuple):
    """What is known of a convex function that is known by its mark alone."""

    mark: bytes
    low: tuple[float, ...]  # its range, row by row
    high: tuple[float, ...]
    kinks: tuple[str, ...]


def group_jet(expression: Any, boxes: list[Interval], kinks: set[str]) -> GroupJet:
    """Over boxes of the numbers."""
    name = expression[0]
    if name == "convex":
        return _any_convex(expression[1], boxes, kinks)
    lower, upper = (np.stack([getattr(box, end) for box in boxes]) for end in ("lower", "upper"))
    if name == "logsumexp":
        value = widened(np.logaddexp.reduce(lower, axis=0), np.logaddexp.reduce(upper, axis=0), 1e-13)
        first, cap = Interval(np.zeros(lower.shape[1]), np.ones(lower.shape[1])), np.full(lower.shape[1], 0.5)
        own, other = (0.0, 0.25), (-0.25, 0.0)
    else:
        size = arithmetic.magnitude(Interval(lower, upper))
        ends = [np.linalg.norm(end, axis=0) for end in size]
        value = within(widened(ends[0], ends[1], 1e-13), 0.0, np.inf)
        first = Interval(-np.ones(lower.shape[1]), np.ones(lower.shape[1]))
        with np.errstate(divide="ignore"):
            cap = 1 / value.lower * (1 + 1e-14)
        own, other = (0.0, 1.0), (-0.5, 0.5)
        if np.any(value.lower <= 0):
            kinks.add("norm")
    second: dict[tuple[int, int], Interval] = {}
    scale = np.ones(lower.shape[1]) if name == "logsumexp" else cap
    for p in range(len(boxes)):
        for q in range(p, len(boxes) if len(boxes) <= WRITTEN else p):
            low, high = own if p == q else other
            second[p, q] = Interval(
                *(np.where(end == 0, 0.0, end * np.where(end == 0, 1.0, scale)) for end in (low, high))
            )
    return GroupJet(value, dict.fromkeys(range(len(boxes)), first), second, cap)


def _any_convex(known: Nested, boxes: list[Interval], kinks: set[str]) -> GroupJet:
    rows = len(boxes[0].lower)
    kinks.update(known.kinks)
    anything = Interval(np.full(rows, -np.inf), np.full(rows, np.inf))
    value = Interval(np.full(rows, min(known.low)), np.full(rows, max(known.high)))
    first = dict.fromkeys(range(len(boxes)), anything)
    return GroupJet(value, first, {}, np.full(rows, np.inf))


def group_of_logarithm(form: Form) -> Form:
    """log Σ wᵢ exp(tᵢ)."""
    return _group(form, "logsumexp", "exp", lambda weight: widened(np.log(weight.lower), np.log(weight.upper)))


def group_of_root(form: Form) -> Form:
    """√(Σ wᵢ tᵢ²)."""
    return _group(form, "norm", "square", lambda weight: widened(np.sqrt(weight.lower), np.sqrt(weight.upper)))


def _group(form: Form, name: str, inner: str, turned: Any) -> Form:
    """Rows of sums of positive multiples of one function of affine maps, and of constants, read as one function."""
    n, rows = form.n, form.size
    columns: list[Affine] = []
    if not form.affine.nothing:
        _, b = form.affine.rows
        if not form.affine.flat or np.any(b.lower <= 0):
            raise NoEnclosure(f"{name} of a sum with something else in it")
        mark = key_of(name, "offset", form.affine.mark)
        columns.append(affine(nothing(rows, n).A, turned(b), mark, False, form.affine.shifts, True))
    for term in form.terms:
        if term.local.expression != (inner, None, ("var", 0)):
            raise NoEnclosure(f"{name} of a sum of something else")
        weights = arithmetic.mul(term.dense(), Interval(*(end[None] for end in term.weight.values)))
        used = (weights.lower != 0) | (weights.upper != 0)
        counts = used.sum(axis=1)
        if np.any(weights.lower[used] <= 0) or np.any(counts != counts[0]):
            raise NoEnclosure(f"{name} of a sum with weights that may not be positive")
        places = np.argsort(~used, axis=1, kind="stable")[:, : counts[0]]
        random = term.random or term.weight.random
        for k in range(counts[0]):
            at = Interval(*(end[np.arange(rows), places[:, k]] for end in weights))
            columns.append(_weighed(term.local.variables[0].take(places[:, k]), at, name, turned(at), random))
    if not 0 < len(columns) <= MANY:
        raise NoEnclosure(f"{name} of {len(columns)} numbers")
    expression = (name, None, *(("var", k) for k in range(len(columns))))
    made = entries(Local(expression, tuple(columns), (), rows))
    return Form(form.shape, made.affine, made.terms)


def _weighed(rows: Affine, weight: Interval, name: str, turned: Interval, random: bool) -> Affine:
    """t + log w, or t √w."""
    if np.all(weight.lower == 1) and np.all(weight.upper == 1) and not random:
        return rows
    A, b = rows.rows
    mark = key_of(name, rows.mark, np.asarray(weight.lower), np.asarray(weight.upper), random)
    if random:
        raise NoEnclosure(f"{name} with weights that depend on the sample")
    if name == "logsumexp":
        return affine(A, arithmetic.add(b, turned), mark, rows.moves, rows.shifts, rows.flat)
    across = Interval(*(end[:, None] for end in turned))
    return affine(arithmetic.mul(across, A), arithmetic.mul(turned, b), mark, rows.moves, rows.shifts, rows.flat)
