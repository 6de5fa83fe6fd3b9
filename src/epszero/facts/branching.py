"""Branch and bound: an upper bound on the supremum of a function over a box, from bounds over ever smaller boxes.

The answer is valid whenever it is asked for: the largest of the bounds over boxes that together hold the first one. The
boxes with the largest bounds are halved first, across the direction that has mattered most, until the bound is close to
a value that is attained, or so many boxes were looked at as the search may cost: work, not seconds, so that it ends the
same way on every machine. Where a bound is wanted that is as small as `enough`, the search also ends as soon as more is
attained, or as its bounds fall too slowly for that.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epszero._types import FloatArray
from epszero.facts.domains import Bounds

CLOSE = 0.01  # relative gap between bound and attained value at which to stop
BEYOND = 1e-6  # of the first bound: so much above what would do is no rounding
DOUBTFUL = 0.1  # of the boxes, after which a bound that falls too slowly to be of use is given up
SLACK = 4.0  # times what would do: as near as a forecast must come
ROUND = 1e-9  # of a bound
HOPELESS = 0.25  # of the boxes, after which a bound that is still infinite is given up
MANY = 64  # directions beyond which all are taken to matter alike

Bound = Callable[[FloatArray, FloatArray], FloatArray]


class Supremum(NamedTuple):
    """What is known of sup f."""

    at_most: float
    seen: float  # about the largest value at the middle of a box
    boxes: int  # looked at


@dataclass(frozen=True, eq=False)
class Task:
    """`above(lower, upper)` bounds f over each of `batch` boxes; `outside` says which of them do not count."""

    above: Bound
    box: Bounds
    batch: int
    outside: Bound | None = None
    nearest: Callable[[FloatArray], FloatArray] | None = None  # the point that counts nearest to each of `batch` points
    enough: float = -np.inf  # a bound that is as small as this will do
    dear: bool = False  # `nearest` takes long: it is asked once


def supremum(task: Task, most: int) -> Supremum:
    """sup f over the box, at most; `most` boxes are looked at, at most, and one batch more."""
    lower, upper = task.box.lower[None], task.box.upper[None]
    bounds = _batched(task.above, lower, upper, task.batch)
    seen, looked = _at_middles(task, lower, upper), 1
    weights, first = _influence(task, lower[0], upper[0], float(bounds[0]), most // 4), float(bounds[0])
    tops: list[tuple[int, float]] = []
    rounds = 0
    while len(bounds) and looked < most:
        top = float(bounds.max())
        if top <= task.enough or (np.isfinite(task.enough) and seen - task.enough > BEYOND * abs(first)):
            break  # it will do, or it never will: so much is attained
        tops.append((looked, top))
        if np.isfinite(task.enough) and looked > DOUBTFUL * most and not _in_reach(tops, seen, task.enough, most):
            break
        if not np.isfinite(top) and looked > HOPELESS * most:
            break
        if top <= seen + CLOSE * (abs(seen) if np.isfinite(seen) else 0.0) or not weights.any():
            break
        order = np.argsort(-bounds)
        chosen, kept = order[: max(1, task.batch // 2)], order[max(1, task.batch // 2) :]
        if rounds % 16 == 15:
            worst = chosen[0]
            weights = np.maximum(0.5 * weights, _influence(task, lower[worst], upper[worst], top, most // 16))
        low, high = _halves(lower[chosen], upper[chosen], task.box, weights)
        parents = np.repeat(bounds[chosen], 2)
        if task.outside is not None:
            inside = _batched(task.outside, low, high, task.batch) == 0
            low, high, parents = low[inside], high[inside], parents[inside]
        fresh = np.minimum(_batched(task.above, low, high, task.batch), parents)
        looked += len(fresh)
        if len(fresh) and not task.dear:
            best = np.argsort(-fresh)[: max(1, task.batch // 4)]
            seen = max(seen, _at_middles(task, low[best], high[best]))
        lower, upper = np.concatenate([lower[kept], low]), np.concatenate([upper[kept], high])
        bounds = np.concatenate([bounds[kept], fresh])
        rounds += 1
    return Supremum(float(bounds.max(initial=-np.inf)), seen, looked)


def _in_reach(tops: list[tuple[int, float]], seen: float, enough: float, most: int) -> bool:
    """Whether the bound falls so fast, with the number of boxes, that it may come down to `enough` before `most`.

    What it is above the truth falls like a power of that number, which the last two doublings tell.
    """
    looked, top = tops[-1]
    before, higher = next(one for one in tops if one[0] >= looked // 4)
    left, allowed = top - seen, max(enough - seen, ROUND * abs(top))
    if not (np.isfinite(left) and left > allowed and looked > before):
        return True
    power = np.log(max(higher - seen, left) / left) / np.log(looked / before)
    return bool(left * (looked / most) ** power <= SLACK * allowed)


def _batched(above: Bound, lower: FloatArray, upper: FloatArray, batch: int) -> FloatArray:
    """`above` in batches of one size, the last filled up."""
    found = [np.zeros(0)]
    for start in range(0, len(lower), batch):
        low, high = lower[start : start + batch], upper[start : start + batch]
        missing = batch - len(low)
        values = above(*(np.concatenate([side, np.repeat(side[-1:], missing, axis=0)]) for side in (low, high)))
        found.append(np.asarray(values)[: len(low)])
    values = np.concatenate(found)
    return np.where(np.isnan(values), np.inf, values)


def _at_middles(task: Task, lower: FloatArray, upper: FloatArray) -> float:
    def at(low: FloatArray, high: FloatArray) -> FloatArray:
        middle = _middle(low, high) if task.nearest is None else task.nearest(_middle(low, high))
        return task.above(middle, middle)

    values = _batched(at, lower, upper, task.batch)
    return float(np.max(values[np.isfinite(values)], initial=-np.inf))


def _middle(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Halfway; at a finite point where a side is open."""
    with np.errstate(invalid="ignore"):
        low = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper - 2 * (1 + np.abs(upper)), -1.0))
        high = np.where(np.isfinite(upper), upper, np.where(np.isfinite(lower), lower + 2 * (1 + np.abs(lower)), 1.0))
    return (low + high) / 2


def _influence(task: Task, lower: FloatArray, upper: FloatArray, bound: float, most: int) -> FloatArray:
    """How much the bound falls when one direction is held still, for each; all alike where that takes too many."""
    matters = (upper > lower).astype(float)
    directions = np.flatnonzero(matters)
    if len(directions) > min(MANY, most):
        return matters
    middle = _middle(lower, upper)
    low, high = np.repeat(lower[None], len(directions), axis=0), np.repeat(upper[None], len(directions), axis=0)
    each = np.arange(len(directions))
    low[each, directions] = high[each, directions] = middle[directions]
    weights = np.zeros_like(matters)
    for start in range(0, len(directions), task.batch):
        here = slice(start, start + task.batch)
        found = _batched(task.above, low[here], high[here], task.batch)
        finite = np.isfinite(found)
        fallen = np.where(finite, bound - found, 0.0) if np.isfinite(bound) else np.where(finite, 1.0, 1e-3)
        weights[directions[here]] = np.maximum(fallen, 0.0)
    least = 1e-3 * weights.max(initial=0.0)
    return np.where(matters > 0, np.maximum(weights, least) if least > 0 else 1.0, 0.0)


def _halves(lower: FloatArray, upper: FloatArray, whole: Bounds, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Every box in two, across the direction that is widest, as compared with the whole, and matters most."""
    with np.errstate(invalid="ignore", divide="ignore"):
        full, width = whole.upper - whole.lower, upper - lower
        bent = np.arctan(np.clip(upper, -1e300, 1e300)) - np.arctan(np.clip(lower, -1e300, 1e300))
        share = np.where(np.isfinite(full), width / np.where(full > 0, full, 1.0), bent / np.pi)
    across = np.argmax(share * weights, axis=1)
    each = np.arange(len(lower))
    at = _middle(lower, upper)[each, across]
    low, high = np.repeat(lower, 2, axis=0), np.repeat(upper, 2, axis=0)
    high[2 * each, across] = at
    low[2 * each + 1, across] = at
    return low, high
