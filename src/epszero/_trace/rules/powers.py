"""Powers: squares, whole and other exponents, roots, reciprocals, √(c + t²).

(tᵖ)′ = p tᵖ⁻¹ and (tᵖ)″ = p(p − 1) tᵖ⁻²; where t may be negative the exponents are whole numbers. √(c + t²), c > 0, has
the derivative t/√(c + t²) ∈ (−1, 1) and the second one c/(c + t²)^{3/2} ∈ (0, c^{−½}], largest at 0.
"""

from typing import Any

import numpy as np

from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, NoEnclosure, point, widened, within
from epszero._trace.rules.curves import Atom, Range, curve, where_defined


def _no_pole(t: Interval, exponents: Any) -> None:
    if np.any((t.lower <= 0) & (t.upper >= 0) & (exponents < 0)):
        raise NoEnclosure("a power has a pole somewhere")


def whole_power(y: int) -> Atom:
    """tʸ."""

    def scaled(factor: int, exponent: int) -> Range:
        def over(t: Interval) -> Interval:
            _no_pole(t, y)
            if factor == 0:
                return point(np.zeros(t.lower.shape))
            return arithmetic.mul(point(np.full(t.lower.shape, float(factor))), _whole(t, exponent))

        return over

    said = {2: "squares", 1: ""}.get(y, f"power {y}")
    return Atom("integer_pow", scaled(1, y), scaled(y, y - 1), scaled(y * (y - 1), y - 2), said=said)


def _whole(t: Interval, exponent: int) -> Interval:
    found = arithmetic.integer_power(t, exponent)
    return Interval(*(np.broadcast_to(end, t.lower.shape) for end in found))


def power_of(t: Interval, exponent: Any, drop: int) -> Interval:
    """The derivative of tᵖ of order `drop`, p an array."""
    _no_pole(t, exponent)
    p = np.broadcast_to(np.asarray(exponent, dtype=np.float64), t.lower.shape)
    if np.any((t.lower < 0) & (p != np.round(p))):
        raise NoEnclosure("a power of what may be negative")
    factor = np.ones(p.shape)
    for k in range(drop):
        factor = factor * (p - k)
    lower, upper = np.empty(p.shape), np.empty(p.shape)
    for mask in (t.lower >= 0, t.lower < 0):
        if mask.any():
            lower[mask], upper[mask] = arithmetic.power(Interval(t.lower[mask], t.upper[mask]), point(p[mask] - drop))
    found = arithmetic.mul(widened(factor, factor), Interval(lower, upper)) if drop else Interval(lower, upper)
    nothing = factor == 0
    return Interval(np.where(nothing, 0.0, found.lower), np.where(nothing, 0.0, found.upper))


def real_power(exponent: Any) -> Atom:
    """tᵖ, one p for each entry."""
    value, first, second = ((lambda t, drop=drop: power_of(t, exponent, drop)) for drop in range(3))
    return Atom("pow", value, first, second, kink=np.where(np.asarray(exponent) < 1, 0.0, np.nan), said="powers")


def _root_value(t: Interval, c: Any) -> Interval:
    return curve(lambda v: np.hypot(np.sqrt(c), v), (0.0,), 0.0)(t)


def smooth_root(c: Any) -> Atom:
    """√(c + t²), one c > 0 for each entry."""

    def slope(v: Any) -> Any:
        size = np.where(np.isinf(v), np.sign(v), v)
        return np.where(np.isinf(v), size, v / np.hypot(np.sqrt(c), v))

    return Atom(
        "root",
        lambda t: _root_value(t, c),
        lambda t: within(curve(slope)(t), -1.0, 1.0),
        curve(lambda v: (np.sqrt(c) / np.hypot(np.sqrt(c), v)) ** 2 / np.hypot(np.sqrt(c), v), (0.0,), 0.0),
        said="√(c + t²)″ ≤ 1/√c",
    )


def _negative_power(p: float, factor: float) -> Range:
    return curve(lambda t: factor * np.power(np.abs(t), p))


ATOMS = {
    "sqrt": where_defined(Atom("sqrt", curve(np.sqrt, low=0.0), _negative_power(-0.5, 0.5),
                               _negative_power(-1.5, -0.25), kink=0.0), 0.0),
    "rsqrt": where_defined(Atom("rsqrt", _negative_power(-0.5, 1.0), _negative_power(-1.5, -0.5),
                                _negative_power(-2.5, 0.75)), 0.0, open_end=True),
    "square": whole_power(2),
    "reciprocal": whole_power(-1),
}  # fmt: skip
