"""Where x* probably is: `Normal`, by the normal approximation; `Redrawn`, by solving again. Guesses, never bounds.

Both know x̂ and give simultaneous intervals of linear functions ℓᵀx*: ℓᵀx̂ ± (q σ_ℓ + |ℓᵀstart|), σ_ℓ the deviation of
ℓᵀ(x̂ − x*), q the (1 − δ)-quantile of the largest standardised deviation over all rows ℓ (max-t; Hothorn, Bretz &
Westfall 2008), by draws with one seed or over the data sets that were solved again; there each deviation is measured by
σ_ℓ of the others, as x̂ − x* is none of those that σ_ℓ was found with.
Cost: draws times rows, a block of draws at a time.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from epszero._points import length
from epszero._types import FloatArray

DRAWS, SEED = 20_000, 17
OF_INTERVALS = 4_000  # draws
AT_ONCE = 4_000_000  # numbers


class Guessed(ABC):
    """Where x* probably is."""

    x: FloatArray  # x̂, flat

    @abstractmethod
    def intervals(self, L: Any, delta: float) -> tuple[FloatArray, FloatArray]:
        """Of the rows of a sparse matrix, all at once."""


@dataclass(frozen=True, eq=False)
class Normal(Guessed):
    """x* ≈ x̂ + start − T(φ̄ − m), and the residual moves by C(φ̄ − m)."""

    x: FloatArray
    start: FloatArray  # how far x̂ is from where its own data put it
    features: FloatArray  # (s, d)
    T: FloatArray  # (n, d)
    C: FloatArray | None  # None for the identity

    def distance(self, delta: float) -> float:
        """About how far x̂ is from x*."""
        return likely_norm(self.features, self.T, delta) + length(self.start)

    def residual(self, delta: float) -> float:
        """About how far B̂(x̂) is from B(x̂)."""
        return likely_norm(self.features, self.C, delta)

    def intervals(self, L: Any, delta: float) -> tuple[FloatArray, FloatArray]:
        rows = np.asarray(L @ self.T) @ self._root
        sizes = np.asarray(length(rows, axis=1))
        moved = sizes > 0
        width = np.abs(L @ self.start)
        width[moved] += sizes[moved] * self._largest(rows[moved] / sizes[moved, None], delta)
        return L @ self.x - width, L @ self.x + width

    @cached_property
    def _root(self) -> FloatArray:
        """R with RRᵀ = Σ̂/s."""
        s, centred = len(self.features), self.features - self.features.mean(axis=0)
        _, values, basis = np.linalg.svd(centred, full_matrices=False)
        return basis.T * values / math.sqrt((s - 1) * s)

    @staticmethod
    def _largest(rows: FloatArray, delta: float) -> float:
        """The (1 − δ)-quantile of the largest |⟨row, g⟩|, g normal."""
        if not len(rows):
            return 0.0
        rng, count = np.random.default_rng([SEED, rows.shape[1]]), max(1, AT_ONCE // len(rows))
        sizes = [min(count, OF_INTERVALS - at) for at in range(0, OF_INTERVALS, count)]
        most = [np.abs(rng.normal(size=(size, rows.shape[1])) @ rows.T).max(axis=1) for size in sizes]
        return float(np.quantile(np.concatenate(most), 1 - delta))


@dataclass(frozen=True, eq=False)
class Redrawn(Guessed):
    """x* is to x̂ as x̂ is to what data drawn from the data give."""

    x: FloatArray
    middle: FloatArray  # where its own data put x̂
    others: FloatArray  # (replications, n)

    def intervals(self, L: Any, delta: float) -> tuple[FloatArray, FloatArray]:
        moves = np.asarray(L @ (self.others - self.middle).T)  # (rows, replications)
        unit, r = np.max(np.abs(moves), axis=1), len(self.others)
        moved = unit > 0
        width = np.abs(L @ (self.x - self.middle))
        if moved.any():
            squares = (moves[moved] / unit[moved, None]) ** 2
            mean = np.mean(squares, axis=1, keepdims=True)
            others = np.maximum((r * mean - squares) / (r - 1), mean / r)  # mean squares of all but each
            most = np.sqrt((squares / others).max(axis=0))
            width[moved] += unit[moved] * np.sqrt(mean[:, 0]) * quantile_of(most, delta)
        return L @ self.x - width, L @ self.x + width


def quantile_of(values: Any, delta: float) -> float:
    """What one more of these values exceeds with probability δ: that of rank (1 − δ)(r + 1), the largest at most."""
    return float(np.quantile(values, 1 - delta, method="weibull"))


def likely_norm(features: FloatArray, map_: FloatArray | None, delta: float) -> float:
    """The (1 − δ)-quantile of the norm of N(0, TΣ̂Tᵀ/s): a weighted sum of squares, drawn with one seed."""
    s, d = features.shape
    scale = 1.0 if map_ is None else float(np.max(np.abs(map_), initial=0.0))
    unit = scale * float(np.max(np.ptp(features, axis=0), initial=0.0))
    if not 0 < unit < math.inf:
        return 0.0 if unit == 0 else math.inf
    apart = (features - features.mean(axis=0)) / (unit / scale)
    apart = apart if map_ is None else apart @ np.asarray(np.linalg.qr(map_ / scale, mode="r")).T
    values = np.linalg.svd(apart, compute_uv=False) ** 2 / (s - 1) / s
    normals = np.random.default_rng([SEED, d]).normal(size=(DRAWS, len(values)))
    return unit * float(np.sqrt(np.quantile(normals**2 @ values, 1 - delta)))
