"""Projected reflected gradient: x⁺ = J_{ΓA}(x − ΓB̂(2x − x⁻)), x⁻ the iterate before.

For B̂ monotone and κ-Lipschitz on the whole space, as 2x − x⁻ may leave the domain of A; converges for γ < (√2 − 1)/κ.
For an affine B̂ it is forward-reflected-backward, iterate for iterate, as B̂(2x − x⁻) = 2B̂(x) − B̂(x⁻) there.
Residual: z = Γ⁻¹(x − x⁺) − B̂(2x − x⁻) ∈ A(x⁺). Cost: one resolvent and two B̂, one of them for the residual.
Source: Malitsky, SIAM J. Optim. 25 (2015), for projections; Cevher & Vũ, Set-Valued Var. Anal. 29 (2021), for any A.
"""

import math
from typing import Any

import jax

from epszero._checks import known_arguments
from epszero._points import add, norm
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange
from epszero.methods._base import Method, State, first_state, no_bound_by_zeros
from epszero.methods.constant import constant, settled, share_range
from epszero.methods.forward_reflected_backward import by_reflection, rate
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

SHARE = math.sqrt(2) - 1  # γ < SHARE/κ


class ProjectedReflectedGradient(Method):
    """x⁺ = J_{ΓA}(x − ΓB̂(2x − x⁻)).

    `step`: a number below (√2 − 1)/κ, or one per block; None takes the best for a κ that is declared or derived.
    """

    texts = (*Method.texts, "unbounded")
    static = texts
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound for an affine B either; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None) -> None:
        self.steps = constant(step)
        self.description = "projected reflected gradient"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "ProjectedReflectedGradient":
        steps = settled(self.steps, x, share_range(problem, x, known, SHARE, rate))
        unbounded = no_bound_by_zeros(problem, proximal=False)
        return self._settled(steps=steps, description=f"projected reflected gradient, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = share_range(problem, x, known, SHARE)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, x)  # x⁻ = x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, x_before = state.x, state.own
        y = jax.tree.map(lambda now, before: 2 * now - before, x, x_before)
        x_next, z = forward_backward(A, x, B(y), self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, x)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """B affine: that of forward-reflected-backward. Else nothing is known."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        if facts.jacobian is None:
            raise Unstable(
                "For projected reflected gradient a bound is known where B is affine with one Jacobian only. "
                f"Use ez.ForwardReflectedBackward(step=γ), or {ANY_ALGORITHM}."
            )
        return by_reflection(MeasuredSteps(self.steps, facts, iterations))
