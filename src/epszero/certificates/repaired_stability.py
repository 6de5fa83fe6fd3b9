"""The paper's argument with its errors mended: uniform stability of the risk, R in place of 2M, exact q, no ℓ̄.

Claim: with probability ≥ 1 − δ, γ‖e‖ ≤ E ℓ ≤ r̂ + β̄ + √(Σ_i (2β_i + γR/s)² ln(1/δ)/2), ℓ(ξ) = γ‖z + O(x, ξ)‖ and r̂
its mean over the data; β_i = (1 + q)d_i and β̄ their mean, d_i how far sample i can move the output's y
(methods/stability.py), x = J_{γA}(y), q the Lipschitz constant of Id − γO(·, ξ). One d for all samples: r̂ + β + (2sβ
+ γR)√(ln(1/δ)/2s). z ∈ A(x) is known, which repairs the last step of Thm 3.4; all K + 1 forward steps count, which
repairs Lemma 3.7. Assumes K fixed iterations with a fixed step, and the constants that d leans on: of plain
forward-backward; of mini-batches of it, with a seed that does not know the data; of Douglas–Rachford, where y = 2p −
ζ, which beyond the paper is new. Proof: ℓ changes by ‖(Id − γO(·, ξ))x − (Id − γO(·, ξ))x̃‖ + ‖y − ỹ‖ ≤ qd_i + d_i
with sample i, so E(r − r̂) ≤ β̄; r − r̂ changes by at most 2β_i + γR/s, as ℓ at one output differs by at most γR
between two samples; McDiarmid. Source: docs/theory.md, section 7, notes 1, 2 and 7. It does not vanish with s: r̂
tends to γE‖O − B‖.
"""

import math
from dataclasses import dataclass

import numpy as np

from epszero.certificates._base import Finding, Kind, cannot, check_independent
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
        ahead = steps.q[-1] if steps.ahead is None else steps.ahead
        betas = (1 + float(ahead)) * np.broadcast_to(steps.differences(s), s)
        beta = float(np.mean(betas))
        if not math.isfinite(beta):
            cannot("no Lipschitz constant of every O(·, ξ) is known: declare kappa or theta with ez.declare")
        risk = float(np.mean(losses(case))) * run.gamma
        changes = float(np.linalg.norm(2 * betas + run.gamma * R.value / s))
        deviation = beta + changes * math.sqrt(-math.log(delta) / 2)
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
