"""Exponentials and what is made of them: exp, log, softplus, logistic, tanh, x log x and their kin.

softplus(t) = log(1 + eᵗ) has the derivative σ(t), the logistic function, and σ′ = σ(1 − σ) ∈ [0, ¼], largest at 0;
σ″ = σ′ tanh(−t/2), of size at most 1/(6√3), at σ = ½ ± 1/(2√3). tanh(t) = 2σ(2t) − 1. (x log x)′ = 1 + log x, x > 0.
"""

from typing import Any

import numpy as np

from epszero._lazy import expit, special
from epszero._trace.intervals.arithmetic import Interval, add, point, widened
from epszero._trace.rules.curves import Atom, curve, where_defined

SIGMA_TURN = float(np.log(2 + np.sqrt(3)))  # where σ″ is largest in size; a little off changes it by the square of that
TANH_TURN = SIGMA_TURN / 2


def _bump(t: Any) -> Any:
    """σ(t)σ(−t)."""
    return expit(t) * expit(-t)


def _steepness(t: Any) -> Any:
    """σ″."""
    return _bump(t) * np.tanh(-t / 2)


def _flank(t: Any) -> Any:
    """tanh″ = −2 tanh(t)(1 − tanh²(t)) = −8 tanh(t) σ′(2t)."""
    return -8 * np.tanh(t) * _bump(2 * t)


def _inverse(t: Any) -> Any:
    return 1 / t


def _square_inverse(t: Any) -> Any:
    return -((1 / t) ** 2)


def _entropy(t: Any) -> Any:
    return special.xlogy(t, t)


def _log_slope(t: Interval) -> Interval:
    """1 + log t, which cancels near 1/e."""
    with np.errstate(divide="ignore"):
        lower, upper = np.log(t.lower), np.log(t.upper)
    return add(widened(lower, upper), point(np.ones(())))


exp, log2 = curve(np.exp, low=0.0), float(np.log(2.0))
sigma = curve(expit, low=0.0, high=1.0)
bump = curve(_bump, (0.0,), 0.0, 0.25)
steepness = curve(_steepness, (-SIGMA_TURN, SIGMA_TURN))


ATOMS = {
    atom.name: atom
    for atom in (
        Atom("exp", exp, exp, exp),
        Atom("expm1", curve(np.expm1, low=-1.0), exp, exp),
        Atom("exp2", curve(np.exp2, low=0.0), curve(lambda t: log2 * np.exp2(t), low=0.0),
             curve(lambda t: log2**2 * np.exp2(t), low=0.0)),
        where_defined(Atom("log", curve(np.log), curve(_inverse), curve(_square_inverse)), 0.0, open_end=True),
        where_defined(Atom("log1p", curve(np.log1p), curve(lambda t: _inverse(1.0 + t)),
                           curve(lambda t: _square_inverse(1.0 + t))), -1.0, open_end=True),
        Atom("softplus", curve(lambda t: np.logaddexp(t, 0.0), low=0.0), sigma, bump, said="softplus″ ≤ ¼"),
        Atom("logistic", sigma, bump, steepness, said="logistic′ ≤ ¼"),
        Atom("tanh", curve(np.tanh, low=-1.0, high=1.0), curve(lambda t: 4 * _bump(2 * t), (0.0,), 0.0, 1.0),
             curve(_flank, (-TANH_TURN, TANH_TURN)), said="tanh′ ≤ 1"),
        where_defined(Atom("xlogx", curve(_entropy, (float(np.exp(-1.0)),)), _log_slope,
                           curve(lambda t: _inverse(np.abs(t))), kink=0.0), 0.0),
    )
}  # fmt: skip
