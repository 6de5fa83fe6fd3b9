"""The paper's certificate, exactly as published: uniform stability of the risk (Fabiani & Franci, Thms 3.4, 3.8, 4.5).

Loss ℓ(ξ) = ‖x − γO(x, ξ) − y‖ = γ‖z + O(x, ξ)‖ at the output; r̂ its mean over the data, ℓ̄ its largest value. Claim:
with probability ≥ 1 − δ the risk E ℓ is at most ε_residual, and ‖e‖ ≤ ε = ε_residual/γ, where
    replacement:  ε_residual = r̂ + β + (sβ + ℓ̄)√(2 ln(1/δ)/s)
    removal:      ε_residual = r̂ + 2β + (4sβ + ℓ̄)√(ln(1/δ)/2s)                                           (Lemma 2.4)
    strongly monotone:  β = 2γM(1 + τ)/(s(1 − τ)),  τ = √(1 − γ(2μ − γκ²)),  γ < 2μ/κ²               (Lemmas 3.3, 4.4)
    cocoercive:         β = 4γMK/s,  γ < 2θ                                                                (Lemma 3.7)
Assumes K fixed iterations of forward-backward with a fixed step, M ≥ ‖O‖ on the domain, and μ, κ or θ of every sample.
Errata (docs/theory.md, section 7): it does not vanish with s, as its limit is E‖O − B‖; Lemma 3.7 counts K forward
steps where K + 1 are taken, so the cocoercive form is reported as heuristic. RepairedStability and the other
kinds mend this.
"""

import math
from dataclasses import dataclass

import numpy as np

from epszero._checks import one_of, positive
from epszero.certificates._base import Finding, Kind, Leaning, Refused, cannot, check_independent
from epszero.certificates.case import Case, lean
from epszero.certificates.noise import Noise
from epszero.certificates.residuals import Residuals
from epszero.certificates.runs import FixedRun, fixed_run, losses
from epszero.facts import Constant, Provenance

RULES = ("replacement", "removal")


@dataclass(frozen=True, eq=False)
class UniformStability(Kind):
    """As published. `loss_bound` is ℓ̄, by default 2γM, which holds where A is the normal cone of a set."""

    rule: str = "replacement"
    loss_bound: float | None = None

    def __post_init__(self) -> None:
        one_of("rule", self.rule, tuple(RULES), "Pass one of the two")
        if self.loss_bound is not None:
            positive("loss_bound", self.loss_bound)

    @property
    def title(self) -> str:
        return f"uniform stability as published ({self.rule})"

    def examine(self, case: Case, delta: float) -> Finding:
        run, noise = fixed_run(case, published=True), Noise(case)
        independent = check_independent(case.samples)
        M = noise.M
        beta, known, doubt = _beta(case, run, M.value)
        if self.loss_bound is not None:
            loss = Constant(float(self.loss_bound), Provenance.DECLARED, "UniformStability(loss_bound=…)")
        else:
            if not case.only_sets:
                cannot("ℓ̄ = 2γM holds where A is the normal cone of a set: pass UniformStability(loss_bound=…)")
            loss = Constant(2 * run.gamma * M.value, M.provenance, "2γM")
        values = losses(case) * run.gamma
        terms = published(self.rule, run.s, delta, beta, loss.value, float(np.mean(values)))
        terms |= {"largest_loss": float(np.max(values)), "gamma": run.gamma, "iterations": float(run.K), "M": M.value}
        terms["epsilon"] = terms["epsilon_residual"] / run.gamma
        try:
            constants = [lean(name, one) for name, one in (("M", M), *known)]
        except Refused as refused:  # what the paper would say is kept in the terms
            raise Refused(str(refused), refused.leans_on, terms, refused.obstacle) from refused
        leans_on = (*constants, *doubt, Leaning.on("ℓ̄", loss), independent, run.leaning)
        if terms["largest_loss"] > loss.value * (1 + 1e-9):
            violated = Leaning("ℓ̄", Provenance.VIOLATED, "by a sample's loss")
            said = f"a sample's loss is {terms['largest_loss']:.4g}, beyond ℓ̄ = {loss.value:.4g}"
            raise Refused(said, [violated], terms)
        return Finding(
            Residuals.ball(np.zeros_like(case.z), terms["epsilon"]), f"{self.title}, {run.s} samples", terms, leans_on
        )


def published(rule: str, s: int, delta: float, beta: float, loss_bound: float, risk: float) -> dict[str, float]:
    """ε_residual and what it is made of."""
    if rule == "removal":
        deviation = 2 * beta + (4 * s * beta + loss_bound) * math.sqrt(-math.log(delta) / (2 * s))
    else:
        deviation = beta + (s * beta + loss_bound) * math.sqrt(-2 * math.log(delta) / s)
    return {
        "empirical_risk": risk,
        "beta": beta,
        "loss_bound": loss_bound,
        "deviation_of_risk": deviation,
        "epsilon_residual": risk + deviation,
    }


def strongly_monotone_beta(gamma: float, mu: float, kappa: float, M: float, s: int) -> float:
    """Lemma 3.3."""
    tau = math.sqrt(1 - 2 * gamma * mu + (gamma * kappa) ** 2)
    return 2 * gamma * M * (1 + tau) / (s * (1 - tau))


def _beta(case: Case, run: FixedRun, M: float) -> tuple[float, list[tuple[str, Constant]], list[Leaning]]:
    """β, the constants it leans on, and what is doubtful about it."""
    mu, kappa, theta = case.mu, case.kappa, case.theta
    if (
        isinstance(mu, Constant)
        and isinstance(kappa, Constant)
        and run.gamma * kappa.value < 2 * mu.value / kappa.value
    ):
        beta = strongly_monotone_beta(run.gamma, mu.value, kappa.value, M, run.s)
        return beta, [("μ", mu), ("κ", kappa)], []
    if isinstance(theta, Constant) and run.gamma < 2 * theta.value:
        wrong = Leaning(
            "Lemma 3.7 as published", Provenance.ESTIMATED, "it counts K forward steps where K + 1 are taken"
        )
        return 4 * run.gamma * M * run.K / run.s, [("θ", theta)], [wrong]
    known = ", ".join(
        f"{name} = {one.value:.4g}"
        for name, one in (("μ", mu), ("κ", kappa), ("θ", theta))
        if isinstance(one, Constant)
    )
    cannot(
        f"the step γ = {run.gamma:.4g} is not below 2μ/κ² or 2θ ({known or 'no constants are known'}): declare "
        "constants with ez.declare, or take a shorter step"
    )
