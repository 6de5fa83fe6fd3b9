"""What possible residuals mean: the distance to the truth, what an agent could save, how much too dear an optimum is.

All of these are suprema over one event, so no further δ is spent. With u = x − x*, ⟨B(x) − B(x*), u⟩ ≤ ⟨e, u⟩ gives
(docs/theory.md, what ε means)
- distance: ‖u‖ ≤ ‖e‖/μ. For affine B with symmetric part H: ‖u‖² ≤ (ν²/4) eᵀ(νH − I)⁻¹e for every ν > 1/μ (S-lemma).
- shared constraints: μ‖u‖² ≤ ‖e_x‖‖u‖ + ‖e_λ‖(‖λ‖ + ‖λ*‖), and by a Slater point x̃ with h(x̃) ≤ −η:
  η Σλ* ≤ ⟨F(x̃), x̃ − x*⟩, which is bounded over the domain and over the means that are possible.
- saving of agent i, own cost convex: ≤ max_y ⟨F_i(x), x_i − y⟩ + g_i(x_i) − g_i(y); own Hessian ⪰ M_i: ≤ ½e_iᵀM_i⁻¹e_i.
  With shared constraints v = F + ∇hᵀλ in place of F, and λᵀ[−h(x)]₊ more (solve/equilibrium.py).
- cost gap of a minimisation: the same with one agent.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from epszero._memory import remembered
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Leaning
from epszero.certificates._near import Near
from epszero.certificates.agents import (
    Curvatures,
    constraints_leaning,
    curvatures,
    derivative_leaning,
    reach,
    slack_of,
    support_savings,
    uncertain_savings,
)
from epszero.certificates.case import Case
from epszero.certificates.certificate import NO_GAME, NO_MINIMUM
from epszero.certificates.certified_piece import Sharpened
from epszero.certificates.residuals import Residuals
from epszero.certificates.shared import multiplier_slack
from epszero.facts import DENSE, ConstantJacobian, Gram, Provenance, Unknown, bent
from epszero.problems import AggregativeGame, Game, Minimization

NOT_CLOSED = (
    "nothing bounds x*: the domain is unbounded, and the samples are too few for their random Jacobian to be known "
    "well enough (a bounded set, a narrower support or more samples)"
)


@dataclass(frozen=True, eq=False)
class Consequence:
    """A converted bound: a number or one per agent, what it used, and what that leans on; None with the reason."""

    value: Any
    because: str
    leans_on: tuple[Leaning, ...] = ()

    @staticmethod
    def none(reason: Unknown) -> "Consequence":
        """There is no bound."""
        return Consequence(None, reason.reason)


def distance(case: Case, found: Finding) -> Consequence:
    """‖x − x*‖: the smaller of what the residuals say, and the noise at the truth, and the certified piece."""
    if found.near is not None:
        return _near(case, found.near)
    by_residuals, sharp = _by_residuals(case, found.every), found.sharp
    if sharp is None or isinstance(case.facts.derivative, Unknown) or isinstance(case.facts.constraints, Unknown):
        return by_residuals
    leans_on = *derivative_leaning(case.facts.derivative), *constraints_leaning(case, case.facts.constraints)
    if isinstance(sharp.known, Unknown):
        value, why = (np.inf, "") if sharp.partial is None else (sharp.partial.distance(), sharp.partial.said)
        said = f"S-lemma, where {why}"
        by_residuals = replace(
            by_residuals, because=f"{by_residuals.because}; no certified piece: {sharp.known.reason}"
        )
    else:
        value = sharp.known.distance(sharp.levels) if sharp.levels.distance > 0 else np.inf
        said = "the piece that the truth is certified to lie on"
    least = np.inf if by_residuals.value is None else by_residuals.value
    return Consequence(value, said, leans_on) if value < least else by_residuals


def _near(case: Case, near: Near) -> Consequence:
    """By the noise at the truth."""
    derivative = case.facts.derivative
    if isinstance(derivative, Unknown):
        return Consequence.none(derivative)
    if not math.isfinite(near.distance):
        return Consequence(None, NOT_CLOSED)
    return Consequence(near.distance, near.because, (*near.leans_on, *derivative_leaning(derivative)))


def _by_residuals(case: Case, sets: tuple[Residuals, ...]) -> Consequence:
    mu, derivative, shared = case.mu, case.facts.derivative, case.facts.constraints
    if isinstance(derivative, Unknown):
        return Consequence.none(derivative)  # a zero of B need not be what is meant by x*
    if isinstance(shared, Unknown):
        return Consequence.none(shared)
    if isinstance(mu, Unknown):
        return Consequence(None, _why_no_mu(case, mu.reason))
    if mu.provenance is Provenance.VIOLATED:
        return Consequence(None, f"μ = {mu.value:.4g} is declared, but {mu.evidence}")
    distances = [_distance(case, one, mu.value) for one in sets]
    known = [value for value in distances if not isinstance(value, Unknown)]
    if not known:
        return next(Consequence.none(value) for value in distances if isinstance(value, Unknown))
    affine = case.jacobian is not None or min(known) < min(one.epsilon for one in sets) / mu.value
    how = "S-lemma, affine B" if affine else "‖e‖/μ"
    leans_on = Leaning.on("strong monotonicity μ", mu), *derivative_leaning(derivative)
    leans_on = *leans_on, *constraints_leaning(case, shared)
    far, said = float(np.linalg.norm(reach(case, case.x))), f"{how} with μ = {mu.value:.4g}"
    if far < min(known):  # x* is in the domain, too
        said = f"no point of the domain is farther, and {said} says less"
    return Consequence(min(far, *known), said, leans_on)


def _why_no_mu(case: Case, reason: str) -> str:
    if case.jacobian is not None:
        return "B is affine but not strongly monotone"
    if len(case.z) > DENSE:
        return f"x has {len(case.z)} entries, too many to find μ (at most {DENSE}): ez.declare(mu=…)"
    return f"no strong monotonicity μ is known ({reason}), so the zero may not be unique: ez.declare(mu=…)"


def _distance(case: Case, residuals: Residuals, mu: float) -> float | Unknown:
    """From one set of residuals; with shared constraints ⟨e_λ, λ − λ*⟩ comes on top."""
    slack = 0.0 if case.problem.coupling is None else multiplier_slack(case, residuals)
    if isinstance(slack, Unknown):
        return slack
    slack += case.inexactness
    plain = (residuals.epsilon + np.sqrt(residuals.epsilon**2 + 4 * mu * slack)) / (2 * mu)
    if case.jacobian is None:
        return min(plain, _through_structure(case, residuals, slack))
    return min(plain, _s_lemma(case, case.jacobian, residuals, slack))


def _through_structure(case: Case, residuals: Residuals, slack: float) -> float:
    """The same for an aggregative game of any size (facts/mean_field.py)."""
    whole, C = case.facts.aggregate, residuals.map
    if whole is None or C is None or [np.ndim(leaf) for leaf in jax.tree.leaves(case.x)] != [2]:
        return np.inf
    n = whole.own.shape[0] * whole.own.shape[1]
    found = bent(whole, np.column_stack([C[:n], residuals.centre[:n]]))
    if found is None:
        return np.inf
    nu, K = found
    known = np.isfinite(K).all(axis=(1, 2))
    if not known.any():
        return np.inf
    fixed = np.sqrt(np.maximum(K[known, -1, -1], 0.0))
    spread = residuals.through(Gram(K[known, :-1, :-1]))
    return float(np.min(np.sqrt((nu[known] / 2 * (fixed + spread)) ** 2 + nu[known] * slack)))


def _s_lemma(case: Case, J: ConstantJacobian, residuals: Residuals, slack: float) -> float:
    """The least over ν of the largest over e of √((ν²/4) eᵀ(νH − I)⁻¹e + ν·slack). Every ν is valid; many are tried."""
    C = residuals.map
    if C is None and not residuals.round:
        return np.inf
    nu, weight = J.multipliers
    centre = J.spectrum[1].T @ residuals.centre[: len(J.jacobian)]
    fixed = np.sqrt(weight @ centre**2)
    if C is None:
        spread = residuals.radii[0] * np.sqrt(weight.max(axis=1))
    else:
        bent = remembered(residuals.gram, ("S-lemma", case.facts.shapes), lambda: Gram(J.weighted(C)))
        spread = residuals.through(bent)
    return float(np.min(np.sqrt((nu / 2 * (fixed + spread)) ** 2 + nu * slack)))


def exploitability(case: Case, found: Finding) -> tuple[Consequence, Consequence]:
    """What each agent could save alone, and all of them together (the Nikaido–Isoda gap)."""
    if not isinstance(case.problem, Game | AggregativeGame):
        none = Consequence(None, NO_GAME)
        return none, none
    known = curvatures(case, search=found.near is None or case.facts.over_corners is not None)
    if isinstance(known, Unknown):
        return Consequence.none(known), Consequence.none(known)
    return _savings(case, found, known)


def cost_gap(case: Case, found: Finding) -> Consequence:
    """How much dearer x is than the best, in a minimisation."""
    if not isinstance(case.problem, Minimization):
        return Consequence(None, NO_MINIMUM)
    if found.gap is not None:
        return Consequence(np.array([found.gap.value]), found.gap.because)
    known = curvatures(case, search=found.near is None or case.facts.over_corners is not None)
    return Consequence.none(known) if isinstance(known, Unknown) else _savings(case, found, known)[0]


def _savings(case: Case, found: Finding, known: Curvatures) -> tuple[Consequence, Consequence]:
    """By curvature, by support functions, or on the certified face, whichever is least for an agent."""
    each, total = _by_all_residuals(case, found.every, known)
    sharp, near = found.sharp, found.near
    gap = near.cost_gap if near is not None and isinstance(case.problem, Minimization) else math.inf
    if near is not None and gap < (math.inf if each.value is None else each.value[0]):
        each = Consequence(np.array([gap]), near.because, (*near.leans_on, *known.leans_on))
    on_face = None if sharp is None else _on_face(case, sharp)
    if on_face is None or (each.value is not None and (each.value <= on_face).all()):
        return each, total
    least = on_face if each.value is None else np.minimum(each.value, on_face)
    if not np.isfinite(least).any():
        return each, total
    together = float(np.sum(least)) if total.value is None else min(float(np.sum(least)), total.value)
    others = "" if each.value is None or (on_face < each.value).all() else f"; {each.because}"
    why = f"½vᵀSv on the certified faces{others}"
    return Consequence(least, why, known.leans_on), Consequence(together, why, known.leans_on)


def _on_face(case: Case, sharp: Sharpened) -> FloatArray | None:
    if isinstance(sharp.known, Unknown):
        saved = None if sharp.partial is None else sharp.partial.savings()
    else:
        saved = sharp.known.savings(sharp.levels) if sharp.levels.savings > 0 else None
    return None if saved is None else saved + case.inexactness


def _by_all_residuals(case: Case, sets: tuple[Residuals, ...], known: Curvatures) -> tuple[Consequence, Consequence]:
    slack = slack_of(case) + case.inexactness
    by_curvature = np.min([_by_curvature(known, one) for one in sets], axis=0) + slack
    by_support = np.min([uncertain_savings(case, known, one) for one in sets], axis=0) + slack  # at least
    if not (by_curvature <= by_support).all():
        by_support = np.min([support_savings(case, known, one) for one in sets], axis=0) + slack
    each = np.maximum(np.minimum(by_curvature, by_support), 0.0)
    together = min(float(np.sum(each)), min(_together(known, one) for one in sets) + slack * len(each))
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
        return Consequence(None, nothing), Consequence(None, nothing)
    return Consequence(each, why, known.leans_on), Consequence(together, why, known.leans_on)


def _by_curvature(known: Curvatures, residuals: Residuals) -> FloatArray:
    """½ sup ‖M_i^{−½}e_i‖² for every agent."""
    fixed = known.lengths(residuals.centre)
    if residuals.round:
        spread = residuals.radii[0] * known.steepest
    elif residuals.map is None:
        return np.full(len(fixed), np.inf)
    else:
        spread = np.asarray(residuals.through(known.grams(residuals)))
    return (fixed + spread) ** 2 / 2


def _together(known: Curvatures, residuals: Residuals) -> float:
    """½ sup Σ ‖M_i^{−½}e_i‖², for one e that all agents face."""
    if residuals.map is None and not residuals.round:
        return np.inf
    fixed = float(np.linalg.norm(known.lengths(residuals.centre)))
    if residuals.round:
        spread = float(residuals.radii[0] * known.steepest.max())
    else:
        spread = float(residuals.through(known.gram_of_all(residuals)))
    return float((fixed + spread) ** 2 / 2)
