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

from epszero._types import PyTree
from epszero.constants.domains import tangent
from epszero.constants.knowledge import Knowledge, knowledge
from epszero.constants.linear import DENSE, Linear, first_rows
from epszero.constants.provenance import Provenance
from epszero.oracles import Average, CoupledMean, OwnData
from epszero.problems import Problem
from epszero.sets import Box

SUBNORMAL = 1e-300
ALMOST = 1e-9  # of κ: a slope this little below 0 is rounding


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
    if facts.structure.affine and facts.structure.entries <= DENSE:
        linear = facts.linear or _linear_of(B.base if isinstance(B, CoupledMean) else B, x)
        if not linear.monotone and problem.coupling is None and (basis := tangent(problem.strategies, x)) is not None:
            on_domain = _exact(Linear(basis.T @ linear.jacobian @ basis))
            if on_domain.cocoercive:
                return replace(on_domain, fixed=facts.linear is not None)
        return replace(_exact(linear), fixed=facts.linear is not None)
    if facts.aggregate is not None:
        mu, kappa = facts.aggregate.mu_kappa
        gradient = facts.gradient is not None
        word = Provenance.EXACT if mu >= -ALMOST * kappa else Provenance.VIOLATED
        return Known(mu if mu > 0 else None, kappa, None, gradient, None, word, _because(mu, kappa),
                     f"the least eigenvalue of its symmetric Jacobian is {mu:.4g}", fixed=True)  # fmt: skip
    if said.monotone is not None or budget <= 0:
        return said
    return _verified(facts if facts.support.bounded or not facts.structure.degree.mixed else
                     knowledge(problem, _hulls(data), row, x), said, budget)  # fmt: skip


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
    return f"the exact constants mu = {max(mu, 0.0):.4g}, kappa = {kappa:.4g}"


def _linear_of(B: Average, x: PyTree) -> Linear:
    """The Jacobian of B̂ itself, where every O(·, ξ) is affine."""
    return Linear(np.asarray(_jacobian(B, x)))


@jax.jit
def _jacobian(B: Average, x: PyTree) -> Any:
    flat, unravel = ravel_pytree(x)
    return jax.jacfwd(lambda v: ravel_pytree(B(unravel(v)))[0])(flat)


def _verified(facts: Knowledge, said: Known, budget: float) -> Known:
    """Whether B̂ is proved to be monotone by enclosures."""
    slope = facts.slope(budget)
    if slope is None or not math.isfinite(slope.value):
        return replace(said, why=facts.why or "its slopes have no bound on the domain")
    kappa = facts.kappa(budget / 4)
    size = abs(facts.refined["mu"][1].seen) + abs(slope.value) if kappa is None else kappa.value
    if slope.value < -ALMOST * size - SUBNORMAL:
        return replace(said, why=f"that its slopes are not negative could not be proved (at least {slope.value:.4g}, "
                       f"{slope.evidence})")  # fmt: skip
    strong = slope.value > ALMOST * size
    return replace(said, mu=slope.value if strong else None, monotone=Provenance.VERIFIED,
                   because=f"mu = {slope.value:.4g}, verified" if strong else "")  # fmt: skip


def _hulls(data: PyTree) -> list[Any]:
    """Boxes around the samples, which hold all that B̂ is made of."""
    sets = list(data) if isinstance(data, OwnData) else [data]
    rows = [np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(own)], axis=1)
            for own in sets]  # fmt: skip
    return [Box(matrix.min(axis=0), matrix.max(axis=0)) for matrix in rows]
