"""Error bars: bounds on entries of x*, or on any linear function of it, once its piece is certified.

Claim: ℓᵀx* lies between `lower` and `upper` for all rows ℓ at once, on an event of the level that the certificate keeps
for intervals; together with the event of the piece and all other lines that is 1 − δ. Rows that the noise cannot move
cost nothing. Two calls share that level and do not hold together: ask for all rows in one.
Source: docs/theory.md, section 6.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from epszero._checks import real_array, refuse
from epszero._double import double
from epszero._points import flat_of, shaped_like
from epszero._types import FloatArray, PyTree
from epszero.certificates.sharp import Sharp
from epszero.facts import Unknown, places_of
from epszero.oracles import strategies
from epszero.problems import AggregativeGame

if TYPE_CHECKING:
    from epszero.certificates.certificate import Certificate

Linear = int | PyTree | Callable[..., Any]
"""What users may ask an interval of: the number of an entry, a matrix, or a linear function of x."""

BENT = 1e-9  # relative: a function that is further from being linear is not


@dataclass(frozen=True, eq=False)
class Band:
    """Simultaneous bounds: with the stated probability all of them hold."""

    lower: PyTree
    upper: PyTree
    value: PyTree  # at x

    @property
    def width(self) -> PyTree:
        """upper − lower."""
        return jax.tree.map(np.subtract, self.upper, self.lower)

    def __str__(self) -> str:
        rows = zip(flat_of(self.lower), flat_of(self.value), flat_of(self.upper), strict=True)
        return "\n".join(f"{low:.6g} ≤ {value:.6g} ≤ {high:.6g}" for low, value, high in rows)


def entries_band(certificate: "Certificate") -> Band:
    """Of every entry of x."""
    sharp, share, x = _known(certificate)
    n = len(sharp.x)
    lower, upper = sharp.intervals(np.eye(n), share)
    return Band(shaped_like(x, lower), shaped_like(x, upper), x)


def aggregate_band(certificate: "Certificate") -> Band:
    """Of the sum over agents."""
    sharp, share, x = _known(certificate)
    problem = certificate.solution.problem if certificate.solution is not None else None
    if not isinstance(problem, AggregativeGame):
        refuse("aggregate", "is that of a game of agents alike", "Use interval(of=…) with a matrix")
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[0], x)
    places = np.stack(places_of(problem, x))  # (agents, entries of one)
    L = np.zeros((places.shape[1], len(sharp.x)))
    L[np.arange(places.shape[1])[None, :], places] = 1.0
    lower, upper = sharp.intervals(L, share)
    return Band(shaped_like(one, lower), shaped_like(one, upper), shaped_like(one, L @ sharp.x))


def multipliers_band(certificate: "Certificate") -> Band:
    """Of the prices of shared constraints."""
    sharp, share, _ = _known(certificate)
    if not len(sharp.piece.prices):
        refuse("multipliers", "there are none: no constraint is shared", "Use intervals for the entries of x")
    lower, upper = sharp.prices(share)
    return Band(np.maximum(lower, 0.0), upper, sharp.piece.prices)


def band(certificate: "Certificate", of: Linear) -> Band:
    """Of a linear function of x."""
    sharp, share, x = _known(certificate)
    L = _rows(of, x, len(sharp.x))
    lower, upper = sharp.intervals(L, share)
    return Band(lower, upper, L @ sharp.x)


def _known(certificate: "Certificate") -> tuple[Sharp, float, PyTree]:
    sharp = certificate.sharp
    if certificate.solution is None or sharp is None:
        refuse(
            "interval",
            "needs a certificate by the certified piece, straight from ez.certify",
            "Certify a problem with affine B, additive noise and polyhedral sets, with a bounded support",
        )
    if isinstance(sharp.known, Unknown):
        refuse("interval", f"the piece is not certified: {sharp.known.reason}", "Collect more samples")
    share = sharp.levels.intervals
    if not share > 0:
        refuse("interval", "nothing of delta was kept for intervals", 'Leave of= out, or pass of="intervals"')
    return sharp.known, share, strategies(certificate.solution.point)


def _rows(of: Any, x: PyTree, n: int) -> FloatArray:
    if isinstance(of, int | np.integer) and not isinstance(of, bool):
        if not -n <= of < n:
            refuse("of", f"is {of}, but x has {n} entries", f"Pass a number between 0 and {n - 1}")
        return np.eye(n)[[int(of)]]
    if callable(of):
        return _rows_of_function(of, x, n)
    L = np.atleast_2d(real_array("of", of))
    if L.ndim != 2 or L.shape[1] != n:
        refuse("of", f"must have one column per entry of x, {n}, but its shape is {L.shape}", "Pass a matrix, or a row")
    return L


def _rows_of_function(of: Callable[..., Any], x: PyTree, n: int) -> FloatArray:
    """The matrix of a function, which is checked to be linear at points that nobody chose."""

    def at(v: FloatArray) -> FloatArray:
        with double():
            return np.ravel(np.asarray(of(shaped_like(x, v)), dtype=np.float64))

    zero = at(np.zeros(n))
    L = np.stack([at(row) for row in np.eye(n)], axis=1) - zero[:, None]
    rng = np.random.default_rng(0)
    for size in (1.0, 1e3):
        v = size * rng.normal(size=n)
        apart = np.abs(at(v) - L @ v)
        if zero.any() or not (apart <= BENT * size * (1 + np.abs(L).sum(axis=1))).all():
            refuse("of", "is not a linear function of x", "Pass a matrix, or a linear function without a constant")
    return L
