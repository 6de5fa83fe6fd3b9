"""Intervals of real numbers, elementwise in NumPy float64: sums, products, functions, each rounded outwards.

Every operation returns an interval that holds the exact result for all points of its operands. Sums find out by an
error-free transformation whether they rounded; products with 0 and ±1, or of two numbers of single precision, are
known not to. Functions of the libraries are trusted to `ULPS` units in the last place.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from epszero._types import FloatArray

EPS = float(np.finfo(np.float64).eps)
LARGEST = float(np.finfo(np.float64).max)
TINY = 1e-322  # twenty of the smallest numbers: what a library's function may be wrong by among the subnormals
ULPS = 16  # what NumPy's and SciPy's functions are trusted to, several times what they promise
PRODUCTS = 2**20  # so many products of a contraction are held at a time
DENSE = 2**26  # contractions of more products than that are enclosed by midpoint and radius

Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Interval(NamedTuple):
    """All numbers between `lower` and `upper`, elementwise; a bound may be infinite, none is NaN."""

    lower: FloatArray
    upper: FloatArray


class NoEnclosure(Exception):
    """A function has no enclosure here; the message says which of its operations has no rule, or why."""


def point(values: Any) -> Interval:
    """A single number, elementwise; NaN, which is undefined, may be anything."""
    array = np.asarray(values, dtype=np.float64)
    undefined = np.isnan(array)
    if undefined.any():
        return Interval(np.where(undefined, -np.inf, array), np.where(undefined, np.inf, array))
    return Interval(array, array)


def is_point(x: Interval) -> bool:
    """Whether every entry is a single number."""
    return x.lower is x.upper or bool(np.all(x.lower == x.upper))


def finite(x: Interval) -> bool:
    """Whether all bounds are finite."""
    return bool(np.all(np.isfinite(x.lower)) and np.all(np.isfinite(x.upper)))


def outward(lower: Any, upper: Any) -> Interval:
    """One step further on both sides; what is not a number becomes infinite."""
    lower, upper = np.nextafter(lower, -np.inf), np.nextafter(upper, np.inf)
    return Interval(np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper))


def widened(lower: Any, upper: Any, relative: float = ULPS * EPS) -> Interval:
    """Further on both sides by a relative error, and by a few of the smallest numbers."""
    lower, upper = np.minimum(lower, LARGEST), np.maximum(upper, -LARGEST)
    return outward(lower - (relative * np.abs(lower) + TINY), upper + (relative * np.abs(upper) + TINY))


def hull(parts: Sequence[Interval]) -> Interval:
    """The least interval around all of them."""
    lower, upper = parts[0]
    for part in parts[1:]:
        lower, upper = np.minimum(lower, part.lower), np.maximum(upper, part.upper)
    return Interval(lower, upper)


def within(x: Interval, low: float, high: float) -> Interval:
    """Cut back to the range a function is known to have."""
    return Interval(np.clip(x.lower, low, high), np.clip(x.upper, low, high))


def negative(x: Interval) -> Interval:
    """−x."""
    return Interval(-x.upper, -x.lower)


def _two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The rounded sum, and what is missing of the exact one (Knuth); NaN where something overflows."""
    total = a + b
    shifted = total - a
    return total, (a - (total - shifted)) + (b - shifted)


def add(x: Interval, y: Interval) -> Interval:
    """x + y, widened only where it rounds."""
    lower, below = _two_sum(x.lower, y.lower)
    upper, above = _two_sum(x.upper, y.upper)
    further = outward(lower, upper)
    return Interval(np.where(below >= 0, lower, further.lower), np.where(above <= 0, upper, further.upper))


def sub(x: Interval, y: Interval) -> Interval:
    """x − y; exactly 0 when both are the same variable, and finite."""
    if x is y and finite(x):
        return point(np.zeros(x.lower.shape))
    return add(x, negative(y))


def _unit(x: FloatArray) -> Mask:
    return (x == 0) | (np.abs(x) == 1)


def _single(x: FloatArray) -> Mask:
    return x == x.astype(np.float32)


def _exact(x: Interval, y: Interval) -> Mask:
    """Whether no product of their ends rounds: a factor 0 or ±1, or both of at most 24 binary digits."""
    (a, b), (c, d) = x, y
    return (_unit(a) & _unit(b)) | (_unit(c) & _unit(d)) | (_single(a) & _single(b) & _single(c) & _single(d))


def _signed(x: Interval, y: Interval, low: Any, high: Any) -> Interval:
    """Bounds of a product or quotient, cut at 0 where the signs of its operands are known."""
    same = ((x.lower >= 0) & (y.lower >= 0)) | ((x.upper <= 0) & (y.upper <= 0))
    opposite = ((x.lower >= 0) & (y.upper <= 0)) | ((x.upper <= 0) & (y.lower >= 0))
    return Interval(np.where(same, np.maximum(low, 0.0), low), np.where(opposite, np.minimum(high, 0.0), high))


def mul(x: Interval, y: Interval) -> Interval:
    """x · y: the extremes of the products of the ends; 0 times anything is 0."""
    if x is y:
        return square(x)
    ends = [a * b for a in set_of_ends(x) for b in set_of_ends(y)]
    ends = [np.where(np.isnan(end), 0.0, end) for end in ends]  # 0 · ∞: the infinite bound is not attained
    low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
    exact, further = _exact(x, y), outward(low, high)
    return _signed(x, y, np.where(exact, low, further.lower), np.where(exact, high, further.upper))


def set_of_ends(x: Interval) -> tuple[FloatArray, ...]:
    """Both ends, or the one there is."""
    return (x.lower,) if x.lower is x.upper else (x.lower, x.upper)


def magnitude(x: Interval) -> Interval:
    """|x|."""
    high = np.maximum(np.abs(x.lower), np.abs(x.upper))
    return Interval(np.maximum(np.maximum(x.lower, -x.upper), 0.0), high)


def square(x: Interval) -> Interval:
    """x², never negative."""
    size = magnitude(x)
    return mul(size, Interval(size.lower, size.upper))


def div(x: Interval, y: Interval) -> Interval:
    """x / y: everything when y may have either sign, a half-line when it ends at 0."""
    low = np.where(y.lower == 0, 0.0, y.lower)  # +0: approached from above
    high = np.where(y.upper == 0, -0.0, y.upper)  # −0: from below
    nears: list[Any] = []
    fars: list[Any] = []
    for a in set_of_ends(x):
        for b in (low, high):
            end = a / b
            exact = (end * b == a) & _single(end) & _single(b) | (a == 0)
            end = np.where(np.isnan(end), 0.0, end)  # 0/0 at an end, and ∞/∞, whose other ends say the rest
            further = outward(end, end)
            nears.append(np.where(exact, end, further.lower))
            fars.append(np.where(exact, end, further.upper))
    bounds = _signed(x, y, np.minimum.reduce(nears), np.maximum.reduce(fars))
    anything = ((y.lower < 0) & (y.upper > 0)) | ((y.lower == 0) & (y.upper == 0))
    return Interval(np.where(anything, -np.inf, bounds.lower), np.where(anything, np.inf, bounds.upper))


def monotone(function: Callable[[Any], Any], x: Interval, fixed: Sequence[tuple[float, float]] = ()) -> Interval:
    """An increasing function of x, exact at the given pairs of argument and value."""
    lower, upper = function(x.lower), function(x.upper)
    result = widened(lower, upper)
    for argument, value in fixed:
        at_lower, at_upper = x.lower == argument, x.upper == argument
        result = Interval(np.where(at_lower, value, result.lower), np.where(at_upper, value, result.upper))
    return result


def sqrt(x: Interval) -> Interval:
    """The root, of what must not be negative."""
    if np.any(x.lower < 0):
        raise NoEnclosure("sqrt of what may be negative")
    lower, upper = np.sqrt(x.lower), np.sqrt(x.upper)
    exact_lower, exact_upper = ((r * r == v) & _single(r) for r, v in ((lower, x.lower), (upper, x.upper)))
    further = outward(lower, upper)
    return Interval(
        np.where(exact_lower, lower, np.maximum(further.lower, 0.0)), np.where(exact_upper, upper, further.upper)
    )


def _reaches(x: Interval, offset: float, period: float) -> Mask:
    """Whether offset + k · period may lie in x for an integer k."""
    slack = 8 * EPS * (np.maximum(np.abs(x.lower), np.abs(x.upper)) / period + 2.0)
    first, last = (x.lower - offset) / period - slack, (x.upper - offset) / period + slack
    return ~(np.floor(last) < np.ceil(first))  # NaN: it may


def _wave_end(function: Callable[[Any], Any], x: FloatArray) -> Interval:
    """At a single argument: away from 0 the reduction to one period may cost an absolute error."""
    value = function(x)
    slack = np.where(np.abs(x) <= 1.0, 0.0, ULPS * EPS)
    low, high = widened(value - slack, value + slack)
    still = x == 0
    return Interval(np.where(still, value, low), np.where(still, value, high))


def wave(function: Callable[[Any], Any], x: Interval, peak: float) -> Interval:
    """sin or cos, which has its greatest value at `peak` and every 2π from there."""
    ends = within(hull([_wave_end(function, end) for end in set_of_ends(x)]), -1.0, 1.0)
    top, bottom = _reaches(x, peak, 2 * np.pi), _reaches(x, peak + np.pi, 2 * np.pi)
    bottom, top = (mask & (x.lower != x.upper) | ~np.isfinite(x.upper - x.lower) for mask in (bottom, top))
    return Interval(np.where(bottom, -1.0, ends.lower), np.where(top, 1.0, ends.upper))


def tan(x: Interval) -> tuple[Interval, Mask]:
    """The tangent, and where it may have a pole."""
    pole = _reaches(x, np.pi / 2, np.pi)
    low, high = _wave_end(np.tan, x.lower).lower, _wave_end(np.tan, x.upper).upper
    return Interval(np.where(pole, -np.inf, low), np.where(pole, np.inf, high)), pole


def integer_power(x: Interval, exponent: int) -> Interval:
    """x to a whole number."""
    if exponent < 0:
        return div(point(np.ones(())), integer_power(x, -exponent))
    if exponent == 0:
        return point(np.ones(x.lower.shape))
    if exponent == 1:
        return x
    if exponent == 2:
        return square(x)
    fixed = ((0.0, 0.0), (1.0, 1.0), (-1.0, -1.0))
    if exponent % 2:
        return monotone(lambda v: np.power(v, float(exponent)), x, fixed)
    size = magnitude(x)
    return within(monotone(lambda v: np.power(v, float(exponent)), size, fixed[:2]), 0.0, np.inf)


def power(x: Interval, y: Interval) -> Interval:
    """x to the power y, for x ≥ 0: y log x has its extremes at the corners; or to whole numbers y, for any x."""
    if np.all(x.lower >= 0):
        ends = [np.power(a, b) for a in set_of_ends(x) for b in set_of_ends(y)]
        low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
        result = within(widened(low, high), 0.0, np.inf)
        itself, nothing = (y.lower == 1) & (y.upper == 1), (x.upper == 0) & (y.lower > 0)
        one = ((y.lower == 0) & (y.upper == 0)) | ((x.lower == 1) & (x.upper == 1))
        lower, upper = (
            np.where(itself, end, np.where(one, 1.0, np.where(nothing, 0.0, bound)))
            for end, bound in zip(x, result, strict=True)
        )
        return Interval(lower, upper)
    exponents = np.unique(y.lower)
    if not (is_point(y) and np.all(np.isfinite(exponents)) and np.all(exponents == np.round(exponents))):
        raise NoEnclosure("pow of what may be negative")
    if len(exponents) > 16:
        raise NoEnclosure("pow with so many exponents")
    shape = np.broadcast_shapes(x.lower.shape, y.lower.shape)
    result = point(np.zeros(shape))
    for exponent in exponents:
        part, here = integer_power(x, int(exponent)), y.lower == exponent
        result = Interval(np.where(here, part.lower, result.lower), np.where(here, part.upper, result.upper))
    return result


def _gamma(count: Any) -> Any:
    """A bound on the relative error of `count` roundings, itself rounded generously."""
    return 1.000001 * count * EPS


def summed(x: Interval, add_up: Callable[[FloatArray], FloatArray]) -> Interval:
    """A sum of entries of x as `add_up` does it, in whichever order; exact with at most one entry that is not 0."""
    roundings = np.maximum(add_up(((x.lower != 0) | (x.upper != 0)).astype(np.float64)) - 1, 0)
    slack_low, slack_high = (_gamma(roundings) * add_up(np.abs(end)) + TINY for end in x)
    lower, upper = add_up(x.lower), add_up(x.upper)
    further = outward(lower - slack_low, upper + slack_high)
    some_below = add_up((x.lower < 0).astype(np.float64)) > 0
    some_above = add_up((x.upper > 0).astype(np.float64)) > 0
    further = Interval(
        np.where(some_below, further.lower, np.maximum(further.lower, 0.0)),
        np.where(some_above, further.upper, np.minimum(further.upper, 0.0)),
    )
    exact = (roundings == 0) & ~np.isnan(lower) & ~np.isnan(upper)
    return Interval(np.where(exact, lower, further.lower), np.where(exact, upper, further.upper))


def matmul(x: Interval, y: Interval) -> Interval:
    """x @ y in batches, (…, m, k) by (…, k, n): product by product, or by midpoint and radius when one is a point."""
    (batch, m, k), n = x.lower.shape, y.lower.shape[-1]
    certain = is_point(x) or is_point(y)
    if finite(x) and finite(y) and (certain or batch * m * k * n > DENSE):
        return centred(x, y)
    result = point(np.zeros((batch, m, n)))
    step = max(1, PRODUCTS // max(1, batch * m * n))
    for start in range(0, k, step):
        part = slice(start, start + step)
        a = Interval(*(end[:, :, part, None] for end in x))
        b = Interval(*(end[:, None, part, :] for end in y))
        result = add(result, summed(mul(a, b), lambda v: np.sum(v, axis=2)))
    return result


def _centre(x: Interval) -> tuple[FloatArray, FloatArray]:
    """Midpoint and radius of an interval around x."""
    middle = np.where(x.lower == x.upper, x.lower, 0.5 * x.lower + 0.5 * x.upper)
    reach = np.maximum(middle - x.lower, x.upper - middle)
    return middle, np.where(x.lower == x.upper, 0.0, np.nextafter(reach, np.inf))


def centred(x: Interval, y: Interval) -> Interval:
    """A product by midpoints and radii (Rump), with a bound on the rounding of all of it added."""
    (a, r), (b, s) = _centre(x), _centre(y)
    sizes = np.abs(a), np.abs(b)
    terms = ((a != 0) | (r != 0)).astype(np.float64) @ ((b != 0) | (s != 0)).astype(np.float64)
    middle = a @ b
    reach = sizes[0] @ s if s.any() else np.zeros(())
    if r.any():
        reach = reach + r @ np.nextafter(sizes[1] + s, np.inf)
    slack = reach + _gamma(2 * terms + 8) * (sizes[0] @ sizes[1] + reach) + (2 * terms + 4) * TINY
    further = outward(middle - slack, middle + slack)
    empty = terms == 0
    lower, upper = np.where(empty, 0.0, further.lower), np.where(empty, 0.0, further.upper)
    if np.all(x.lower >= 0) and np.all(y.lower >= 0):
        lower = np.maximum(lower, 0.0)
    return Interval(lower, upper)
