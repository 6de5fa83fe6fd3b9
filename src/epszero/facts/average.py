"""What is known of one average B̂ before a run: enough to choose a method and a step, and to say why it converges.

Where B̂ is affine its Jacobian says all. Elsewhere what is declared counts, and that B̂ is monotone may be verified; its
step is then found on the way, which is faster than one from constants that must hold on all of the domain. Where all
that is known follows from the facts, it is the same for every data set, and worked out once.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._memory import remembered
from epszero._points import flat_of, shaped_like
from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.facts.affine import DENSE, ConstantJacobian, by_agents
from epszero.facts.aggregates import WRITTEN, Aggregate
from epszero.facts.domains import domain_support, tangent
from epszero.facts.facts import Facts, facts_of
from epszero.facts.large import LARGEST, jacobian, mu_kappa
from epszero.facts.provenance import Provenance, Unknown
from epszero.facts.search import between
from epszero.oracles import Average, CoupledMean, OwnData
from epszero.oracles.features import sample_rows
from epszero.problems import Problem
from epszero.problems.viewing import view_of
from epszero.sets import Box

SUBNORMAL = 1e-300
MANY = 400  # entries of x beyond which a monotone B is not asked whether it is more on a flat domain
ALMOST = 1e-9  # of κ: what eigenvalues through the structure of a game are good to
ROUNDING = 64 * float(np.finfo(float).eps)  # times n and κ: a verified slope this little below 0 is rounding

NOTHING = Unknown("nothing is declared")


@dataclass(frozen=True, eq=False)
class AverageFacts:
    """Constants of B̂, None where nothing is known."""

    mu: float | None = None
    kappa: float | None = None
    theta: float | None = None
    gradient: bool = False  # of a convex function
    contraction: tuple[float, float] | None = None  # (γ, ‖I − γJ‖) at the best γ
    monotone: Provenance | Unknown = NOTHING  # on whose word B̂ is; violated: it is not
    because: str = ""  # what the numbers lean on; where B̂ is not monotone: what shows it
    vouched: bool = False  # the numbers are the user's word: what they forbid is refused
    flat: bool = False  # true between points of the domain, not in all directions
    unit_steps: PyTree = None  # of each agent relative to the others, where their units differ much

    @property
    def cocoercive(self) -> bool:
        """Whether forward-backward is known to converge for short steps."""
        return self.theta is not None or self.gradient or (self.mu is not None and self.kappa is not None)

    @property
    def doubt(self) -> str:
        """Why B̂ is not known to be monotone; empty where it is."""
        if isinstance(self.monotone, Unknown):
            return f"B is not known to be monotone: {self.monotone.reason}"
        return f"B is not monotone: {self.because}" if self.monotone is Provenance.VIOLATED else ""


def declared_only(problem: Problem) -> AverageFacts:
    """What the user says, and nothing more."""
    given = problem.declared
    numbers: dict[str, Any] = {"mu": given.mu, "kappa": given.kappa, "theta": given.theta}
    words = [f"{name} = {value:g}" for name, value in numbers.items() if value is not None]
    gradient = problem.is_gradient or given.gradient
    word = given.monotone or gradient or given.mu is not None or given.theta is not None
    return AverageFacts(
        **numbers,
        gradient=gradient,
        monotone=Provenance.DECLARED if word else NOTHING,
        because="declared " + ", ".join([*words, "a gradient"] if given.gradient else words),
        vouched=True,
    )


def average_facts(facts: Facts, B: Average, data: PyTree, x: PyTree, prove: bool) -> AverageFacts:
    """Of B̂, the average over `data`, for points like x (strategies). `prove`: monotonicity may take a search."""
    found = remembered(facts.problem, ("average", prove, facts.key), lambda: _same_for_all(facts, prove))
    if found is not None:
        return found
    base = B.base if isinstance(B, CoupledMean) else B
    said, structure = declared_only(facts.problem), facts.structure
    if structure.affine and structure.entries <= DENSE:
        found = by_agents(getattr(base, "joint", None), x, getattr(base, "mean", None))
        J = np.asarray(_jacobian(base, x)) if found is None else found
        return _affine(facts, ConstantJacobian(J)) if np.isfinite(J).all() else said
    if structure.affine and structure.entries <= LARGEST and structure.constant_jacobian:
        return remembered(facts.problem, ("large average", facts.key), lambda: _large(base, x, said))
    if structure.affine and structure.entries <= LARGEST:
        return _large(base, x, said)
    hulls = facts_of(facts.problem, _hulls(data), facts.row, x)  # the samples themselves say where ξ is
    return remembered(facts.problem, ("average of samples", hulls.key), lambda: _verified(hulls, said))


def _same_for_all(facts: Facts, prove: bool) -> AverageFacts | None:
    """What does not depend on the data; None where it does."""
    said, structure = declared_only(facts.problem), facts.structure
    if structure.affine and structure.entries <= DENSE:
        return None if facts.jacobian is None else _affine(facts, facts.jacobian)
    if facts.aggregate is not None:
        return _aggregate(facts, facts.aggregate, said)
    if structure.affine and structure.entries <= LARGEST:
        return None
    if not isinstance(said.monotone, Unknown) or not prove:
        return said
    return None if structure.degree.mixed and not facts.support.bounded else _verified(facts, said)


def _affine(facts: Facts, J: ConstantJacobian) -> AverageFacts:
    """All there is to know; between points of the domain only, where it is flat and that makes a difference."""
    if J.mu > 0 or (J.monotone and len(J.jacobian) > MANY):
        return _exact(J)
    basis = facts.directions
    if basis is None:
        return _exact(J)
    if not basis.shape[1]:
        return AverageFacts(gradient=True, monotone=Provenance.EXACT, because="a domain of one point", flat=True)
    on_domain = _exact(restricted(J, basis))
    if J.monotone and not on_domain.cocoercive:  # then it says no more
        return _exact(J)
    between_points = "" if on_domain.monotone is Provenance.VIOLATED else " between points of the domain"
    return replace(on_domain, flat=True, because=f"{on_domain.because}{between_points}")


def restricted(J: ConstantJacobian, basis: FloatArray) -> ConstantJacobian:
    """J between points whose differences the columns of `basis` span."""
    return ConstantJacobian(basis.T @ J.jacobian @ basis, 1e-14 * J.kappa * math.sqrt(len(basis)))


def _aggregate(facts: Facts, whole: Aggregate, said: AverageFacts) -> AverageFacts:
    mu, kappa = whole.mu_kappa
    if mu >= -ALMOST * kappa:
        gradient = facts.gradient is not None
        strong = mu if mu > 0 else None
        return AverageFacts(strong, kappa, None, gradient, None, Provenance.EXACT, _because(mu, kappa))
    flat = _flat_aggregate(facts, whole)
    if flat is not None:
        return flat
    why = f"the least eigenvalue of its symmetric Jacobian is {mu:.4g}"
    away = np.random.default_rng(0).normal(size=(8, facts.structure.entries))
    seen = between(facts.problem, facts.x, away, facts.row, None)
    if seen is not None and seen.value < 0:
        return replace(said, monotone=Provenance.VIOLATED, because=why)
    if isinstance(said.monotone, Unknown):
        return replace(said, monotone=Unknown(f"{why}; between points of the domain it may be none below 0"))
    return said


def _flat_aggregate(facts: Facts, whole: Aggregate) -> AverageFacts | None:
    """Where all agents' sets are flat in the same directions, and B̂ is monotone in the others."""
    problem, N = facts.problem, len(jax.tree.leaves(facts.x)[0])
    if whole.own.size * facts.structure.entries > WRITTEN * N:
        return None
    view = view_of(problem, None, facts.x)
    own = view.own_tree(facts.x, 0)
    basis = tangent(view.own_side(0), own)
    if basis is None or not basis.shape[1]:
        return None
    across = [shaped_like(own, row) for row in np.linalg.svd(basis.T)[2][basis.shape[1] :]]
    rows = np.stack(
        [flat_of(jax.tree.map(lambda leaf: np.broadcast_to(leaf, (N, *np.shape(leaf))), row)) for row in across]
    )
    width = sum(domain_support(problem.strategies, facts.x, sign * rows) for sign in (1, -1))
    inside = whole.restricted(basis)
    mu, kappa = inside.mu_kappa
    if np.any(width > 1e-8 * N) or mu < -ALMOST * kappa:
        return None
    because = f"{_because(mu, kappa)} between points of the domain"
    strong = mu if mu > 0 else None
    return AverageFacts(strong, kappa, None, inside.symmetric, None, Provenance.EXACT, because, flat=True)


def _large(B: Average, x: PyTree, said: AverageFacts) -> AverageFacts:
    J = jacobian(B, x)
    if not np.isfinite(J).all():
        return said
    mu, kappa = mu_kappa(J)
    symmetric = bool(np.abs(J - J.T).max() <= 1e-12 * np.abs(J).max())
    if mu < 0:
        open_still = Unknown("that its Jacobian is positive semidefinite could not be shown")
        return replace(said, monotone=open_still) if isinstance(said.monotone, Unknown) else said
    because = f"the constants mu ≥ {mu:.4g}, kappa ≤ {kappa:.4g}"
    return AverageFacts(mu if mu > 0 else None, kappa, None, symmetric, None, Provenance.EXACT, because)


def _exact(J: ConstantJacobian) -> AverageFacts:
    mu, kappa = J.mu, J.kappa
    if kappa == 0:
        return AverageFacts(gradient=True, monotone=Provenance.EXACT, because="a constant B")
    word, because = Provenance.EXACT, _because(mu, kappa)
    if not J.monotone:
        word, because = Provenance.VIOLATED, f"the least eigenvalue of its symmetric Jacobian is {mu:.4g}"
    strong, gradient = mu if mu > 0 else None, J.symmetric and J.monotone
    return AverageFacts(strong, kappa, J.theta, gradient, J.contraction, word, because)


def _because(mu: float, kappa: float) -> str:
    return f"the exact constants mu = {mu if abs(mu) > ALMOST * kappa else 0.0:.4g}, kappa = {kappa:.4g}"


@jax.jit
def _jacobian(B: Average, x: PyTree) -> Any:
    """Of B̂ itself, where every O(·, ξ) is affine."""
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]))(flat)


def _verified(facts: Facts, said: AverageFacts) -> AverageFacts:
    """Whether B̂ is proved to be monotone by enclosures."""
    slope = facts.nonnegative_slope
    if isinstance(slope, Unknown) or not math.isfinite(slope.value):
        return replace(said, monotone=Unknown(facts.unenclosed or "its slopes have no bound on the domain"))
    if slope.value < 0:
        kappa = facts.kappa
        size = 0.0 if isinstance(kappa, Unknown) else kappa.value
        if slope.value < -ROUNDING * facts.structure.entries * size - SUBNORMAL:
            found = f"at least {slope.value:.4g}, {slope.evidence}"
            return replace(said, monotone=Unknown(f"that its slopes are not negative could not be proved ({found})"))
    strong = slope.value > 0
    because = f"mu = {slope.value:.4g}, verified" if strong else ""
    return replace(said, mu=slope.value if strong else None, monotone=Provenance.VERIFIED, because=because)


def _hulls(data: PyTree) -> list[Box]:
    """Boxes around the samples, which hold all that B̂ is made of."""
    sets = list(data) if isinstance(data, OwnData) else [data]
    return [Box(rows.min(axis=0), rows.max(axis=0)) for rows in map(sample_rows, sets)]
