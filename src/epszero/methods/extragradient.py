"""Extragradient: x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = J_{ΓA}(x − ΓB̂(x̄)).

For B̂ monotone and Lipschitz and A a normal cone or a subdifferential; converges for γ < 1/κ. All points lie in the
domain of A, so B̂ need exist there only. Residual: z = Γ⁻¹(x − x⁺) − B̂(x̄) ∈ A(x⁺). Cost: two B̂ and two resolvents.
Source: Korpelevich (1976); Facchinei & Pang, Thm 12.1.11; Nemirovski (2004) for subdifferentials.
"""

from typing import Any

from epszero._checks import known_arguments
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.constants import Known, StepRange, declared_only, lipschitz_range
from epszero.methods._base import (
    Method,
    State,
    first_search,
    first_state,
    forward_backward,
    last_size,
    no_bound_by_zeros,
    settled,
    this_size,
)
from epszero.methods.backtracking import lipschitz
from epszero.methods.stability import Facts, Measured, Stability, Unstable
from epszero.methods.steps import Steps
from epszero.oracles import Average, PrimalDual
from epszero.problems import Problem
from epszero.problems.backward import Backward


class Extragradient(Method):
    """x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = J_{ΓA}(x − ΓB̂(x̄)).

    `step`: as in `ez.ForwardBackward`; None takes the best step for a declared Lipschitz constant, or backtracks.
    """

    static = ("description", "unbounded")
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: Any = None) -> None:
        self.steps = Steps.of(step)
        self.description = "extragradient"

    @property
    def open(self) -> bool:
        return self.steps.searched

    def prepared(self, problem: Problem, x: PyTree, known: Known | None = None) -> "Extragradient":
        known = known or declared_only(problem)
        method = object.__new__(Extragradient)
        point = x.x if isinstance(x, PrimalDual) else x
        method.steps = self.steps.settled(x, lipschitz_range(known, problem.coupling, point))
        method.description = f"extragradient, {method.steps.how}"
        method.unbounded = no_bound_by_zeros(problem, proximal=True)
        return method

    def limits(self, problem: Problem, x: PyTree, known: Known) -> tuple[float, StepRange] | None:
        found = lipschitz_range(known, problem.coupling, x.x if isinstance(x, PrimalDual) else x)
        return None if found is None or self.steps.searched else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, None, first_search(B, x, Bx) if self.steps.searched else None)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        step = this_size(self.steps, state)
        middle, _ = forward_backward(A, x, Bx, step)
        B_middle = B(middle)
        p, z = forward_backward(A, x, B_middle, step)
        Bp = B(p)
        verdict = lipschitz(subtract(middle, x), subtract(B_middle, Bx), B_middle)
        next_state = State(state.k + 1, p, Bp, None, z, norm(add(z, Bp)), state.stuck, None)
        return settled(self.steps, verdict, next_state, state)

    def last_step(self, state: State) -> Any:
        return last_size(self.steps, state)

    def stability(self, facts: Facts, iterations: int) -> Stability:
        """By the distance to the zeros: each of the K+1 steps brings the iterate, the output too, nearer by ρ_k."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        steps = Measured(self.steps, facts, iterations)
        rho = steps.nearer()
        return steps.by_zeros(rho, last=rho)
