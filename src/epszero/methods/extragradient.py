"""Extragradient: x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = J_{ΓA}(x − ΓB̂(x̄)).

For B̂ monotone and Lipschitz and A a normal cone or a subdifferential; converges for γ < 1/κ. All points lie in the
domain of A, so B̂ need exist there only. Residual: z = Γ⁻¹(x − x⁺) − B̂(x̄) ∈ A(x⁺). Cost: two B̂ and two resolvents.
Source: Korpelevich (1976); Facchinei & Pang, Thm 12.1.11; Nemirovski (2004) for subdifferentials.
"""

from typing import Any

from epszero._checks import known_arguments
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange, declared_only, lipschitz_range
from epszero.methods._base import (
    Method,
    State,
    first_state,
    no_bound_by_zeros,
    starting_pace,
    step_taken,
    step_to_take,
    tested,
)
from epszero.methods.backtracking import lipschitz
from epszero.methods.stability import MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average, strategies
from epszero.problems import Problem
from epszero.problems.backward import Backward


class Extragradient(Method):
    """x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = J_{ΓA}(x − ΓB̂(x̄)).

    `step`: as in `ez.ForwardBackward`; None takes the best step for a declared Lipschitz constant, or backtracks.
    """

    texts = (*Method.texts, "unbounded")
    static = texts
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None) -> None:
        self.steps = Steps.of(step)
        self.description = "extragradient"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def fixed_point(self) -> bool:
        return not self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "Extragradient":
        known = known or declared_only(problem)
        steps = self.steps.settled(x, lipschitz_range(known, problem.coupling, strategies(x)))
        unbounded = no_bound_by_zeros(problem, proximal=True)
        return self._settled(steps=steps, description=f"extragradient, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = lipschitz_range(known, problem.coupling, strategies(x))
        return None if found is None or self.steps.searched else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, None, starting_pace(B, x, Bx) if self.steps.searched else None)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        Gamma = step_to_take(self.steps, state)
        x_bar, _ = forward_backward(A, x, Bx, Gamma)
        Bx_bar = B(x_bar)
        x_next, z = forward_backward(A, x, Bx_bar, Gamma)
        Bx_next = B(x_next)
        test = lipschitz(subtract(x_bar, x), subtract(Bx_bar, Bx), Bx_bar)
        new = State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, None)
        return tested(self.steps, test, new, state)

    def last_step(self, state: State) -> PyTree:
        return step_taken(self.steps, state)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """By the distance to the zeros: each of the K+1 steps brings the iterate, the output too, nearer by ρ_k."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        steps = MeasuredSteps(self.steps, facts, iterations)
        rho = steps.nearer()
        return steps.by_zeros(rho, last=rho)
