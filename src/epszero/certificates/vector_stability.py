"""Stability of the residual as a vector: all samples, no split, vanishes with s.

Claim: with probability ≥ 1 − δ, ‖e − ê‖ ≤ √(σ²/s + L²d²/2) + Ld + (R + Lsd)√(ln(1/δ)/2s) + L‖x − x′‖, where x′ is an
output that changes by at most d with one of the s samples, L = L_Δ, σ² = sup_x E‖O − B‖² ≤ R²/2.
  B̂ μ-strongly monotone for all data: x′ = x̂, its exact zero, d = R/(μs) and ‖x − x̂‖ ≤ ‖ê‖/μ. So any algorithm will
  do, however it was tuned and stopped.
  else, and with shared constraints: x′ = x and d by the method's own recursion (methods/stability.py), for K fixed
  iterations.
  additive noise: L = 0, and neither matters.
Where each sample has its own d_i (mini-batches), d is their mean, and (R + Lsd)/√s becomes √(Σ_i (R/s + Ld_i)²).
Assumes independent samples, R on the domain, and L, μ or the method's constants.
Proof: h = (B̂ − B)(x′) changes by (R + Lsd)/s with one sample, so McDiarmid. For its mean put k_i = O(x^i, ξ_i) −
B(x^i) with ξ_i exchanged in x^i: h is the mean of the k_i up to Ld; E‖k_i‖² ≤ σ²; and for i ≠ j, as k_i has mean zero
in ξ_i, E⟨k_i, k_j⟩ = E⟨k_i − E_j k_i, k_j − E_i k_j⟩ ≤ L²d_id_j/2. ‖x̂_D − x̂_D′‖ ≤ ‖(B̂_D − B̂_D′)(x̂_D′)‖/μ.
Source: docs/theory.md, section 3, stability.
"""

import math
from dataclasses import dataclass

import numpy as np

from epszero._points import length
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Leaning, cannot, check_independent
from epszero.certificates.case import Case, lean
from epszero.certificates.noise import Noise
from epszero.certificates.residuals import Residuals
from epszero.certificates.runs import stability
from epszero.certificates.scales import check_size
from epszero.facts import Constant, Provenance


@dataclass(frozen=True, eq=False)
class VectorStability(Kind):
    """All samples, no split; needs constants instead of structure."""

    @property
    def title(self) -> str:
        return "stability of the residual vector"

    def examine(self, case: Case, delta: float) -> Finding:
        if len(case.samples) != 1:
            cannot("stability bounds are for one data set that all agents see")
        independent = check_independent(case.samples)
        noise, s = Noise(case), len(case.samples[0])
        check_size("‖O(x, ξ) − O(x, ξ′)‖", noise.R.value)
        R, L, variance = noise.R, noise.slope, noise.variance
        residual = length(case.empirical)
        d, off, why, leanings = 0.0, 0.0, "additive noise", list[Leaning]()
        each: FloatArray | None = None  # d of each sample, where they differ
        mu = case.mu
        if L.value > 0 and isinstance(mu, Constant) and case.problem.coupling is None:
            d, off = R.value / (mu.value * s), residual / mu.value
            why, leanings = "the exact zero of strongly monotone data", [lean("μ of every O(·, ξ)", mu)]
        elif L.value > 0:
            steps = stability(case, noise)
            each, why = steps.differences(s), steps.because
            d = float(np.mean(each))
            fixed = Leaning("iterations and steps fixed before the data were seen", Provenance.DECLARED)
            leanings = [
                *[lean(n, one) for n, one in (("κ", case.kappa), ("θ", case.theta)) if isinstance(one, Constant)],
                fixed,
            ]
        deviation = width(s, delta, R.value, variance.value, L.value, d if each is None else each) + L.value * off
        terms = {
            "empirical": residual,
            "deviation": deviation,
            "R": R.value,
            "variance": variance.value,
            "L": L.value,
            "d": d,
            "samples": float(s),
        }
        leans_on = (lean("R", R), Leaning.on("L_Δ", L), *leanings, independent)
        return Finding(Residuals.ball(case.empirical, deviation), f"{self.title}, {why}, {s} samples", terms, leans_on)


def width(s: int, delta: float, R: float, variance: float, L: float, d: float | FloatArray) -> float:
    """The claim's first three terms; d is one number, or one for each sample."""
    least = L * float(np.mean(d))
    mean = math.hypot(math.sqrt(variance / s), least / math.sqrt(2)) + least
    each = np.atleast_1d(R / s + L * np.asarray(d))
    return mean + float(np.linalg.norm(each)) * math.sqrt(s / len(each)) * math.sqrt(-math.log(delta) / 2)
