"""What is known of one average B̂ before a run: enough to choose a method and a step, and to say why it converges.

Where B̂ is affine its Jacobian says all. Elsewhere what is declared counts, and that B̂ is monotone may be verified; its
step is then found on the way, which is faster than one from constants that must hold on all of the domain.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._types import FloatArray, PyTree
from epszero.constants.aggregates import WRITTEN
from epszero.constants.domains import domain_support, tangent
from epszero.constants.knowledge import Knowledge, knowledge
from epszero.constants.large import LARGEST, jacobian, mu_kappa
from epszero.constants.linear import DENSE, Linear, first_rows
from epszero.constants.provenance import Provenance
from epszero.constants.search import between
from epszero.oracles import Average, CoupledMean, OwnData
from epszero.oracles.features import sample_rows
from epszero.problems import Problem
from epszero.problems._viewing import view_of
from epszero.problems._views import flat_of, shaped_like
from epszero.sets import Box

SUBNORMAL = 1e-300
MANY = 400  # entries of x beyond which a monotone B is not asked whether it is more on a flat domain
ALMOST = 1e-9  # of κ: what eigenvalues through the structure of a game are good to
ROUNDING = 64 * float(np.finfo(float).eps)  # times n and κ: a verified slope this little below 0 is rounding


@dataclass(frozen=True)
class Known:
    """Constants of B̂, None where nothing is known."""

    mu: float | None = None
    kappa: float | None = None
    theta: float | None = None
    gradient: bool = False  # of a convex function
    contraction: tuple[float, float] | None = None  # (γ, ‖I − γJ‖) at the best γ
    monotone: Provenance | None = None  # whether B̂ is, and on whose word; violated: it is not
    because: str = ""  # what the numbers lean on
    why: str = ""  # where it is not known to be monotone: why
    vouched: bool = False  # the numbers are the user's word: what they forbid is refused
    fixed: bool = False  # the same for every data set
    flat: bool = False  # true between points of the domain, not in all directions

    @property
    def cocoercive(self) -> bool:
        """Whether forward-backward is known to converge for short steps."""
        return self.theta is not None or self.gradient or (self.mu is not None and self.kappa is not None)


def declared_only(problem: Problem) -> Known:
    """What the user says, and nothing more."""
    given = problem.declared
    numbers = {"mu": given.mu, "kappa": given.kappa, "theta": given.theta}
    words = [f"{name} = {value:g}" for name, value in numbers.items() if value is not None]
    gradient = problem.is_gradient or given.gradient
    word = given.monotone or gradient or given.mu is not None or given.theta is not None
    return Known(
        given.mu, given.kappa, given.theta, gradient, None, Provenance.DECLARED if word else None,
        "declared " + ", ".join([*words, "a gradient"] if given.gradient else words), "nothing is declared", True,
    )  # fmt: skip


def known_of(problem: Problem, B: Average, data: PyTree, x: PyTree, supports: list[Any], budget: float) -> Known:
    """Of B̂, the average over `data`, for points like x (strategies)."""
    said = declared_only(problem)
    row = None if data is None else first_rows(data)
    facts = knowledge(problem, supports, row, x)
    base = B.base if isinstance(B, CoupledMean) else B
    if facts.structure.affine and facts.structure.entries <= DENSE:
        linear = facts.linear or _linear_of(base, x)
        return said if linear is None else replace(_affine(problem, linear, x), fixed=facts.linear is not None)
    if facts.aggregate is not None:
        return _aggregate(problem, facts, said)
    if facts.structure.affine and facts.structure.entries <= LARGEST:
        return _large(base, x, said)
    if said.monotone is not None or budget <= 0:
        return said
    narrow = facts.structure.degree.mixed and not facts.support.bounded  # then the samples themselves say where ξ is
    seen = Knowledge(problem, _hulls(data), row, x) if narrow else facts
    return _verified(seen, said, budget)


def _affine(problem: Problem, linear: Linear, x: PyTree) -> Known:
    """All there is to know; between points of the domain only, where it is flat and that makes a difference."""
    if linear.mu > 0 or (linear.monotone and len(linear.jacobian) > MANY):
        return _exact(linear)
    basis = directions(problem, x)
    if basis is None:
        return _exact(linear)
    if not basis.shape[1]:
        return Known(gradient=True, monotone=Provenance.EXACT, because="a domain of one point", flat=True)
    found = _exact(restricted(linear, basis))
    if linear.monotone and not found.cocoercive:  # then it says no more
        return _exact(linear)
    return replace(found, flat=True, because=f"{found.because} between points of the domain")


def restricted(linear: Linear, basis: FloatArray) -> Linear:
    """J between points whose differences the columns of `basis` span."""
    return Linear(basis.T @ linear.jacobian @ basis, 1e-14 * linear.kappa * math.sqrt(len(basis)))


def directions(problem: Problem, x: PyTree) -> FloatArray | None:
    """Between points of the domain, as a basis; None where they are all. Worked out once."""
    key = "directions", tuple(np.shape(leaf) for leaf in jax.tree.leaves(x))
    if key not in problem.derived:
        problem.derived[key] = tangent(problem.strategies, x)
    return problem.derived[key]


def _aggregate(problem: Problem, facts: Knowledge, said: Known) -> Known:
    assert facts.aggregate is not None
    mu, kappa = facts.aggregate.mu_kappa
    because, why = _because(mu, kappa), f"the least eigenvalue of its symmetric Jacobian is {mu:.4g}"
    if mu >= -ALMOST * kappa:
        gradient = facts.gradient is not None
        return Known(mu if mu > 0 else None, kappa, None, gradient, None, Provenance.EXACT, because, fixed=True)
    flat = _flat_aggregate(problem, facts)
    if flat is not None:
        return flat
    away = np.random.default_rng(0).normal(size=(8, facts.structure.entries))
    seen = between(problem, facts.x, away, facts.row, None)
    refuted = seen is not None and seen.value < 0
    return replace(said, monotone=Provenance.VIOLATED if refuted else said.monotone,
                   why=why if refuted else f"{why}; between points of the domain it may be none below 0")  # fmt: skip


def _flat_aggregate(problem: Problem, facts: Knowledge) -> Known | None:
    """Where all agents' sets are flat in the same directions, and B̂ is monotone in the others."""
    whole, N = facts.aggregate, len(jax.tree.leaves(facts.x)[0])
    if whole is None or whole.own.size * facts.structure.entries > WRITTEN * N:
        return None
    view = view_of(problem, None, facts.x)
    basis = tangent(view.own_side(0), view.own_tree(facts.x, 0))
    if basis is None or not basis.shape[1]:
        return None
    across = np.linalg.svd(basis.T)[2][basis.shape[1] :]
    rows = np.stack([flat_of(jax.tree.map(lambda leaf: np.broadcast_to(leaf, (N, *np.shape(leaf))),
                                          shaped_like(view.own_tree(facts.x, 0), row))) for row in across])  # fmt: skip
    width = sum(domain_support(problem.strategies, facts.x, sign * rows) for sign in (1, -1))
    inside = whole.restricted(basis)
    mu, kappa = inside.mu_kappa
    if np.any(width > 1e-8 * N) or mu < -ALMOST * kappa:
        return None
    because = f"{_because(mu, kappa)} between points of the domain"
    return Known(mu if mu > 0 else None, kappa, None, inside.symmetric, None, Provenance.EXACT, because, fixed=True,
                 flat=True)  # fmt: skip


def _large(B: Average, x: PyTree, said: Known) -> Known:
    J = jacobian(B, x)
    if not np.isfinite(J).all():
        return said
    mu, kappa = mu_kappa(J)
    symmetric = bool(np.abs(J - J.T).max() <= 1e-12 * np.abs(J).max())
    if mu < 0:
        return replace(said, why="that its Jacobian is positive semidefinite could not be shown")
    return Known(mu if mu > 0 else None, kappa, None, symmetric, None, Provenance.EXACT,
                 f"the constants mu ≥ {mu:.4g}, kappa ≤ {kappa:.4g}")  # fmt: skip


def _exact(linear: Linear) -> Known:
    mu, kappa = linear.mu, linear.kappa
    if kappa == 0:
        return Known(gradient=True, monotone=Provenance.EXACT, because="a constant B")
    word = Provenance.EXACT if linear.monotone else Provenance.VIOLATED
    return Known(
        mu if mu > 0 else None, kappa, linear.theta, linear.symmetric and linear.monotone, linear.contraction, word,
        _because(mu, kappa), f"the least eigenvalue of its symmetric Jacobian is {mu:.4g}",
    )  # fmt: skip


def _because(mu: float, kappa: float) -> str:
    return f"the exact constants mu = {mu if abs(mu) > ALMOST * kappa else 0.0:.4g}, kappa = {kappa:.4g}"


def _linear_of(B: Average, x: PyTree) -> Linear | None:
    """The Jacobian of B̂ itself, where every O(·, ξ) is affine."""
    J = np.asarray(_jacobian(B, x))
    return Linear(J) if np.isfinite(J).all() else None


@jax.jit
def _jacobian(B: Average, x: PyTree) -> Any:
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(lambda v: ravel_pytree(B(unravel(v)))[0])(flat)


def _verified(facts: Knowledge, said: Known, budget: float) -> Known:
    """Whether B̂ is proved to be monotone by enclosures."""
    slope = facts.slope(budget, enough=0.0)
    if slope is None or not math.isfinite(slope.value):
        return replace(said, why=facts.why or "its slopes have no bound on the domain")
    kappa = facts.kappa(budget / 4) if slope.value < 0 else None
    size = 0.0 if kappa is None else kappa.value
    if slope.value < -ROUNDING * facts.structure.entries * size - SUBNORMAL:
        return replace(said, why=f"that its slopes are not negative could not be proved (at least {slope.value:.4g}, "
                       f"{slope.evidence})")  # fmt: skip
    strong = slope.value > 0
    return replace(said, mu=slope.value if strong else None, monotone=Provenance.VERIFIED,
                   because=f"mu = {slope.value:.4g}, verified" if strong else "")  # fmt: skip


def _hulls(data: PyTree) -> list[Any]:
    """Boxes around the samples, which hold all that B̂ is made of."""
    sets = list(data) if isinstance(data, OwnData) else [data]
    return [Box(rows.min(axis=0), rows.max(axis=0)) for rows in map(sample_rows, sets)]
