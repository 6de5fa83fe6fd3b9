"""Sines, arcs and hyperbolas: sin, cos, atan, sinh, cosh, asinh, erf.

atan′ = 1/(1 + t²), atan″ = −2t/(1 + t²)², extreme at ±1/√3. asinh′ = (1 + t²)^{−½}, asinh″ = −t(1 + t²)^{−3/2}, extreme
at ±1/√2. erf′ = (2/√π)e^{−t²}, erf″ = −2t erf′, extreme at ±1/√2.
"""

from typing import Any

import numpy as np

from epszero._lazy import erf
from epszero._trace.intervals import arithmetic
from epszero._trace.intervals.arithmetic import Interval, negative
from epszero._trace.rules.curves import Atom, Range, curve

HALF_ROOT = float(np.sqrt(0.5))


def _sin(t: Interval) -> Interval:
    return arithmetic.wave(np.sin, t, np.pi / 2)


def _cos(t: Interval) -> Interval:
    return arithmetic.wave(np.cos, t, 0.0)


def _minus(over: Range) -> Range:
    return lambda t: negative(over(t))


def _far(function: Any) -> Any:
    """0 at ±∞."""
    return lambda t: np.where(np.isinf(t), 0.0, function(np.where(np.isinf(t), 0.0, t)))


def _bell(t: Any) -> Any:
    return 2 / np.sqrt(np.pi) * np.exp(-(t**2))


sinh, cosh = curve(np.sinh), curve(np.cosh, (0.0,), 1.0)
ATOMS = {
    atom.name: atom
    for atom in (
        Atom("sin", _sin, _cos, _minus(_sin)),
        Atom("cos", _cos, _minus(_sin), _minus(_cos)),
        Atom("atan", curve(np.arctan), curve(lambda t: 1 / (1 + t**2), (0.0,), 0.0, 1.0),
             curve(_far(lambda t: -2 * t / (1 + t**2) ** 2), (-1 / np.sqrt(3), 1 / np.sqrt(3))), said="atan′ ≤ 1"),
        Atom("sinh", sinh, cosh, sinh),
        Atom("cosh", cosh, sinh, cosh),
        Atom("asinh", curve(np.arcsinh), curve(lambda t: 1 / np.hypot(1.0, t), (0.0,), 0.0, 1.0),
             curve(_far(lambda t: -t / np.hypot(1.0, t) ** 3), (-HALF_ROOT, HALF_ROOT))),
        Atom("erf", curve(erf, low=-1.0, high=1.0), curve(_bell, (0.0,), 0.0),
             curve(_far(lambda t: -2 * t * _bell(t)), (-HALF_ROOT, HALF_ROOT))),
    )
}  # fmt: skip
