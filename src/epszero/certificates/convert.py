"""What possible residuals mean: the distance to the truth, what an agent could save, how much too dear an optimum is.

All of these are suprema over one event, so no further δ is spent. With u = x − x*, ⟨B(x) − B(x*), u⟩ ≤ ⟨e, u⟩ gives
(THEORY section 4)
- distance: ‖u‖ ≤ ‖e‖/μ. For affine B with symmetric part H: ‖u‖² ≤ (ν²/4) eᵀ(νH − I)⁻¹e for every ν > 1/μ (S-lemma).
- shared constraints: μ‖u‖² ≤ ‖e_x‖‖u‖ + ‖e_λ‖(‖λ‖ + ‖λ*‖), and by a Slater point x̃ with h(x̃) ≤ −η:
  η Σλ* ≤ ⟨F(x̃), x̃ − x*⟩, which is bounded over the domain and over the means that are possible.
- saving of agent i, own cost convex: ≤ max_y ⟨F_i(x), x_i − y⟩ + g_i(x_i) − g_i(y); own Hessian ⪰ M_i: ≤ ½e_iᵀM_i⁻¹e_i.
  With shared constraints v = F + ∇hᵀλ in place of F, and λᵀ[−h(x)]₊ more (solve/equilibrium.py).
- cost gap of a minimisation: the same with one agent.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero._types import FloatArray
from epszero.certificates._base import Leaning
from epszero.certificates.agents import Curvatures, curvatures, not_convex, slack_of, support_savings
from epszero.certificates.case import Case
from epszero.certificates.certificate import NO_GAME
from epszero.certificates.residuals import Residuals
from epszero.certificates.shared import multiplier_slack
from epszero.constants import DENSE, Provenance
from epszero.problems import AggregativeGame, Game, Minimization


@dataclass(frozen=True, eq=False)
class Meaning:
    """A converted bound: a number or one per agent, what it used, and what that leans on; None with the reason."""

    value: Any
    because: str
    leans_on: tuple[Leaning, ...] = ()


def distance(case: Case, sets: tuple[Residuals, ...]) -> Meaning:
    """‖x − x*‖."""
    if case.mu is None:
        return Meaning(None, _why_no_mu(case))
    if case.mu.provenance is Provenance.VIOLATED:
        return Meaning(None, f"μ = {case.mu.value:.4g} is declared, but {case.mu.evidence}")
    leans = (Leaning.on("strong monotonicity μ", case.mu),)
    found = [_distance(case, one, case.mu.value) for one in sets]
    known = [value for value in found if not isinstance(value, str)]
    if not known:
        return Meaning(None, str(found[0]))
    how = "S-lemma, affine B" if case.linear is not None else "‖e‖/μ"
    return Meaning(min(known), f"{how} with μ = {case.mu.value:.4g}", leans)


def _why_no_mu(case: Case) -> str:
    if case.linear is not None:
        return "B is affine but not strongly monotone"
    if len(case.z) > DENSE:
        return f"x has {len(case.z)} entries, too many to find μ (at most {DENSE}): ez.declare(mu=…)"
    return "no strong monotonicity μ is known, so the zero may not be unique: ez.declare(mu=…)"


def _distance(case: Case, residuals: Residuals, mu: float) -> float | str:
    """From one set of residuals; with shared constraints ⟨e_λ, λ − λ*⟩ comes on top."""
    slack: float | str = 0.0
    if case.problem.coupling is not None:
        slack = multiplier_slack(case, residuals)
    if isinstance(slack, str):
        return slack
    slack += case.inexactness
    plain = (residuals.epsilon + np.sqrt(residuals.epsilon**2 + 4 * mu * slack)) / (2 * mu)
    return plain if case.linear is None else min(plain, _s_lemma(case, residuals, slack))


def _s_lemma(case: Case, residuals: Residuals, slack: float) -> float:
    """The least over ν of the largest over e of √((ν²/4) eᵀ(νH − I)⁻¹e + ν·slack). Every ν is valid; many are tried."""
    assert case.linear is not None
    if residuals.map is None and not residuals.round:
        return np.inf
    nu, weight = case.linear.multipliers
    centre = case.linear.spectrum[1].T @ residuals.centre[: len(case.linear.jacobian)]
    fixed = np.sqrt(weight @ centre**2)
    if residuals.map is None:
        spread = residuals.radii[0] * np.sqrt(weight.max(axis=1))
    else:
        spread = residuals.through(case.seen_through(residuals.map))
    return float(np.min(np.sqrt((nu / 2 * (fixed + spread)) ** 2 + nu * slack)))


def exploitability(case: Case, sets: tuple[Residuals, ...]) -> tuple[Meaning, Meaning]:
    """What each agent could save alone, and all of them together (the Nikaido–Isoda gap)."""
    if not isinstance(case.problem, Game | AggregativeGame):
        none = Meaning(None, NO_GAME)
        return none, none
    doubts = [note for note in case.solution.notes if "not convex" in note]
    known = doubts[0] if doubts else curvatures(case)
    if isinstance(known, str):
        return Meaning(None, known), Meaning(None, known)
    return _savings(case, sets, known)


def cost_gap(case: Case, sets: tuple[Residuals, ...]) -> Meaning:
    """How much dearer x is than the best, in a minimisation."""
    if not isinstance(case.problem, Minimization):
        return Meaning(None, "the problem is not a minimisation")
    known = not_convex(case) or curvatures(case)
    return Meaning(None, known) if isinstance(known, str) else _savings(case, sets, known)[0]


def _savings(case: Case, sets: tuple[Residuals, ...], known: Curvatures) -> tuple[Meaning, Meaning]:
    slack = slack_of(case) + case.inexactness
    by_curvature = np.min([_by_curvature(case, known, one) for one in sets], axis=0) + slack
    by_support = np.min([support_savings(case, known, one) for one in sets], axis=0) + slack
    each = np.maximum(np.minimum(by_curvature, by_support), 0.0)
    together = min(float(np.sum(each)), min(_together(case, known, one) for one in sets) + slack * len(each))
    curved = by_curvature <= by_support
    why = (
        known.because
        if curved.all()
        else "support functions"
        if not curved.any()
        else f"{known.because}; support functions"
    )
    if not np.isfinite(each).any():
        nothing = "no curvature of the own cost is known, and the strategies are unbounded (ez.declare(mu=…))"
        return Meaning(None, nothing), Meaning(None, nothing)
    return Meaning(each, why, known.leans_on), Meaning(together, why, known.leans_on)


def _by_curvature(case: Case, known: Curvatures, residuals: Residuals) -> FloatArray:
    """½ sup ‖M_i^{−½}e_i‖² for every agent."""
    fixed = known.lengths(residuals.centre)
    if residuals.round:
        spread = residuals.radii[0] * known.steepest
    elif residuals.map is None:
        return np.full(len(fixed), np.inf)
    else:
        spread = np.asarray(residuals.through(known.grams(case, residuals.map)))
    return (fixed + spread) ** 2 / 2


def _together(case: Case, known: Curvatures, residuals: Residuals) -> float:
    """½ sup Σ ‖M_i^{−½}e_i‖², for one e that all agents face."""
    if residuals.map is None and not residuals.round:
        return np.inf
    fixed = float(np.linalg.norm(known.lengths(residuals.centre)))
    if residuals.round:
        spread = float(residuals.radii[0] * known.steepest.max())
    else:
        spread = float(residuals.through(known.gram_of_all(case, residuals.map)))
    return float((fixed + spread) ** 2 / 2)
