"""The paper's argument with its errors mended: uniform stability of the risk, R in place of 2M, exact q, no ℓ̄.

Claim: with probability ≥ 1 − δ, γ‖e‖ ≤ E ℓ ≤ r̂ + β + (2sβ + γR)√(ln(1/δ)/2s), ℓ(ξ) = γ‖z + O(x, ξ)‖ and r̂ its mean
over the data; β = (1 + q)d, d the stability of the run (methods/stability.py), q the Lipschitz constant of its last
forward step. z ∈ A(x) is known, which repairs the last step of Thm 3.4; all K + 1 forward steps count, which repairs
Lemma 3.7.
Assumes K fixed iterations of plain forward-backward with a fixed step, and the constants that d leans on.
Proof: ℓ changes by ‖(Id − γO(·, ξ))x − (Id − γO(·, ξ))x̃‖ + ‖y − ỹ‖ ≤ qd + d with one sample, so E(r − r̂) ≤ β; r − r̂
changes by at most 2β + γR/s, as ℓ at one output differs by at most γR between two samples; McDiarmid.
Source: docs/theory.md, section 7, notes 1, 2 and 7. It does not vanish with s: r̂ tends to γE‖O − B‖.
"""

import math
from dataclasses import dataclass

import numpy as np

from epszero.certificates._base import Finding, Kind, check_independent
from epszero.certificates.case import Case, lean
from epszero.certificates.noise import Noise
from epszero.certificates.residuals import Residuals
from epszero.certificates.runs import fixed_run, losses, stability
from epszero.facts import Constant


@dataclass(frozen=True, eq=False)
class RepairedStability(Kind):
    """The paper's certificate, mended."""

    @property
    def title(self) -> str:
        return "uniform stability, repaired"

    def examine(self, case: Case, delta: float) -> Finding:
        run, noise = fixed_run(case), Noise(case)
        independent = check_independent(case.samples)
        steps = stability(case, noise)
        s, R = run.s, noise.R
        beta = (1 + float(steps.q[-1])) * steps.difference(s)
        risk = float(np.mean(losses(case))) * run.gamma
        deviation = beta + (2 * s * beta + run.gamma * R.value) * math.sqrt(-math.log(delta) / (2 * s))
        terms = {
            "empirical_risk": risk,
            "beta": beta,
            "deviation_of_risk": deviation,
            "epsilon_residual": risk + deviation,
            "gamma": run.gamma,
            "iterations": float(run.K),
            "R": R.value,
            "epsilon": (risk + deviation) / run.gamma,
        }
        known = [
            lean(name, one)
            for name, one in (("μ", case.mu), ("κ", case.kappa), ("θ", case.theta))
            if isinstance(one, Constant)
        ]
        by = f"{self.title}, {steps.because}, {s} samples"
        leans_on = (lean("R", R), *known, independent, run.leaning)
        return Finding(Residuals.ball(np.zeros_like(case.z), terms["epsilon"]), by, terms, leans_on)
