"""Steps that stay the same for all k, from a range γ < share/κ: what most methods with a memory ask for.

One step for all blocks, or one per block. The latter is the method itself in the norm of Γ⁻¹, as A is separable between
blocks, with γ_max κ for γκ. Without κ there is no such step, and nothing is searched for: the methods are refused, with
the name of one that needs no constant. The step that is taken by itself has the least proved factor ρ(m, a), m = γμ,
a = γκ, where μ is known and ρ is proved; else it is 0.9 of the limit.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange, declared_only, lipschitz_range
from epszero.methods._base import Method, State, no_bound_by_zeros
from epszero.methods.steps import Steps, StepSize
from epszero.oracles import strategies
from epszero.problems import Problem

TAKEN = 0.9  # of the limit, where no factor is proved
FRACTIONS = np.linspace(0.02, 0.98, 49)  # of the limit, among which the best step is sought

Rate = Callable[[float, float], float]
"""(m, a) ↦ ρ, the factor by which a method comes nearer to the zero; 1 or more where none is proved."""


def constant(step: StepSize) -> Steps:
    """What a user passed as `step`, which must not depend on k."""
    if callable(step):
        refuse("step", "cannot change with k here", "Pass a number, or one per block")
    return Steps.of(step)


def share_range(
    problem: Problem,
    x: PyTree,
    known: AverageFacts | None,
    share: float,
    rate: Rate | None = None,
    taken: float = TAKEN,
) -> StepRange | None:
    """Steps below share/κ, and the best of them; None where κ is not known."""
    known = known or declared_only(problem)
    found = lipschitz_range(known, problem.coupling, strategies(x))
    if found is None:
        return None
    kappa, limit = 1 / found.limit, share * found.limit
    best, least = taken * limit, 1.0
    if rate is not None and known.mu is not None and problem.coupling is None:
        factors = [rate(known.mu * step, kappa * step) for step in FRACTIONS * limit]
        if (least := min(*factors, 1.0)) < 1:
            best = float(FRACTIONS[int(np.argmin(factors))]) * limit
    return replace(found, best=best, limit=limit, rate=least)


def settled(steps: Steps, x: PyTree, found: StepRange | None) -> Steps:
    """`steps` checked against the range; the best of it where left open."""
    if steps.searched and found is None:
        refuse(
            "step",
            "is left out, and no Lipschitz constant of B is known to choose it by",
            "Pass step=γ, declare kappa, or take ez.AdaptiveGoldenRatio(), which needs neither",
        )
    return steps.settled(x, found)


class ConstantStep(Method):
    """A method with one step γ < share/κ for all k; what is left to say is `init`, `step` and `stability`."""

    texts = (*Method.texts, "unbounded")
    static = texts
    named: ClassVar[str]  # in descriptions
    share: ClassVar[float]
    proximal: ClassVar[bool] = False  # whether its bound through the zeros asks that A be a subdifferential
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None) -> None:
        self.steps = constant(step)
        self.description = self.named

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given}

    def factor(self, m: float, a: float) -> float:
        """ρ(m, a); 1 where none is proved."""
        del m, a
        return 1.0

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> Self:
        steps = settled(self.steps, x, share_range(problem, x, known, self.share, self.factor))
        unbounded = no_bound_by_zeros(problem, proximal=self.proximal)
        return self._settled(steps=steps, description=f"{self.named}, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = share_range(problem, x, known, self.share)
        return None if found is None else (self.steps.longest, found)

    def last_step(self, state: State) -> PyTree:
        del state
        return self.steps.sizes
