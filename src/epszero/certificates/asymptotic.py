"""What is likely, by the normal approximation on the piece of x̂: always heuristic, never a guarantee.

On the piece of x̂ (certificates/piece.py) x̂ − x* = T(φ̄ − m), up to the run's own residual, and √s(φ̄ − m) tends to
N(0, Σ) as s → ∞. So ‖x̂ − x*‖ is about the norm of N(0, TΣ̂Tᵀ/s), and ‖e‖ that of N(0, CΣ̂Cᵀ/s): their (1 − δ)-quantiles,
by draws with one seed. Wrong, and mostly too small, for rare outcomes, near a kink of x(·), for heavy tails.
Assumes B affine with additive noise over polyhedra, independent samples, and that s is large enough for all that. No
support is needed. Source: the delta method; Lu & Budhiraja (2013) for stochastic variational inequalities.
Cost: one eigenvalue decomposition of d × d, and DRAWS sums.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from epszero._points import length
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Leaning, cannot, check_independent
from epszero.certificates._near import Near
from epszero.certificates.case import Case
from epszero.certificates.mean_deviation import every_sample
from epszero.certificates.piece import may_have_pieces, piece_of
from epszero.certificates.residuals import Residuals
from epszero.facts import Provenance, Unknown

DRAWS, SEED = 20_000, 17
IN_THE_LIMIT = Leaning(
    "so many samples that the mean is normal", Provenance.ESTIMATED, "right as s grows, no guarantee"
)
ON_THE_PIECE = Leaning("x* on the piece of x", Provenance.ESTIMATED, "not certified here")


@dataclass(frozen=True, eq=False)
class Asymptotic(Kind):
    """How far, probably: the normal approximation on the piece of x."""

    guess: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "normal approximation on the piece of x"

    def examine(self, case: Case, delta: float) -> Finding:
        samples = every_sample(case)
        collapsed = case.collapsed(samples)
        if collapsed is None or len(samples) != 1 or not may_have_pieces(case):
            cannot(
                "the normal approximation needs B affine and monotone with additive noise, polyhedral sets or "
                "functions, and one data set: ez.certificates.Bootstrap() needs none of it"
            )
        (features,), independent = collapsed.features, check_independent(samples)
        if len(features) < 2:
            cannot("one sample says nothing of how samples vary")
        C, _ = case.noise_map(collapsed)
        piece = Unknown("C is too large to be written down") if C is None else piece_of(case, C)
        if isinstance(piece, Unknown):
            cannot(f"x lies on no piece: {piece.reason}")
        assert C is not None
        residual, away = (likely_norm(features, map_, delta) for map_ in (C, piece.T))
        empirical = length(case.empirical)
        near = Near(away + length(piece.start), math.inf, "the normal approximation on the piece of x", ())
        terms = {"empirical": empirical, "deviation": residual, "samples": float(len(features))}
        by = f"{self.title}, {len(features)} samples"
        leans_on = (IN_THE_LIMIT, ON_THE_PIECE, independent)
        return Finding(Residuals.ball(case.empirical, residual), by, terms, leans_on, near=near)


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
