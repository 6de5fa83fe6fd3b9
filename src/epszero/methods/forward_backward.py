"""Forward-backward: y = x − ΓB̂(x), x̄ = J_{ΓA}(y), x⁺ = x + λ(x̄ − x).

The paper's Algorithms 1 (B known) and 2 (B̂ from samples), and agent by agent its Algorithm 3. Γ is one step, one per
block, or a schedule k ↦ Γ_k; λ ∈ (0, 1]. Assumes A maximally monotone and B̂ cocoercive; converges for γ < 2θ.
Residual: z = Γ⁻¹(y − x̄) ∈ A(x̄), so z + B̂(x̄) is known exactly. Cost: one B̂ (two when relaxed) and one resolvent.
Source: Bauschke & Combettes, Thm 26.14; the steps from facts/steps.py, or from methods/backtracking.py.
"""

from typing import Any

import jax

from epszero._checks import known_arguments, one_positive, refuse
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange, declared_only, step_range
from epszero.methods._base import (
    Method,
    State,
    first_state,
    starting_pace,
    step_taken,
    step_to_take,
    tested,
)
from epszero.methods.backtracking import cocoercive
from epszero.methods.stability import MeasuredSteps, Premises, Stability
from epszero.methods.steps import Steps, StepSize, forward_backward, over, root, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class ForwardBackward(Method):
    """x⁺ = x + λ(J_{ΓA}(x − ΓB̂(x)) − x).

    `step`: a number; one per row of x, or nested like x (one per block); a function k ↦ step in jax.numpy; or None for
    the best step that the declared constants allow, found by backtracking where none are declared.
    `relaxation`: λ ∈ (0, 1]. The output is the resolvent's point x̄, which lies in the domain of A.
    """

    static = ("relaxation", *Method.texts)
    steps: Steps
    relaxation: float
    description: str

    @known_arguments
    def __init__(self, step: StepSize = None, relaxation: float = 1.0) -> None:
        value = one_positive("relaxation", relaxation, strict=False)
        if not 0 < value <= 1:
            refuse("relaxation", f"must lie in (0, 1], but it is {value:g}", "Pass 1 for the plain method")
        self.steps = Steps.of(step)
        self.relaxation = value
        self.description = "forward-backward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def fixed_point(self) -> bool:
        return not self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "relaxation": self.relaxation}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "ForwardBackward":
        known = known or declared_only(problem)
        if problem.coupling is not None:
            refuse(
                "method",
                "forward-backward does not converge on shared constraints, whose operator is a rotation between "
                "strategies and multipliers",
                "Use ez.PreconditionedForwardBackward() or ez.ForwardBackwardForward()",
            )
        found = None if known.unit_steps is not None and not known.vouched else step_range(known)
        steps = self.steps.settled(x, found, known.unit_steps)
        relaxed = f", relaxed by {self.relaxation:g}" if self.relaxation < 1 else ""
        return self._settled(steps=steps, description=f"forward-backward, {steps.how}{relaxed}")

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = step_range(known)
        return None if found is None or self.steps.searched else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        own = starting_pace(B, x, Bx, self.steps.scale) if self.steps.searched else None
        return first_state(x, Bx, None if self.relaxation == 1 else x, own)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        Gamma = step_to_take(self.steps, state)
        x_bar, z = forward_backward(A, x, Bx, Gamma)
        Bx_bar = B(x_bar)
        if self.relaxation == 1:
            x_next, Bx_next, point = x_bar, Bx_bar, None
        else:
            x_next = jax.tree.map(lambda x, x_bar: x + self.relaxation * (x_bar - x), x, x_bar)
            Bx_next, point = B(x_next), x_bar
        half = root(self.steps.scale)
        d, change = over(subtract(x_bar, x), half), times(half, subtract(Bx_bar, Bx))
        test = cocoercive(d, change, times(half, Bx_bar))
        new = State(state.k + 1, x_next, Bx_next, point, z, norm(add(z, Bx_bar)), state.stuck, None)
        return tested(self.steps, test, new, state)

    def last_step(self, state: State) -> PyTree:
        return step_taken(self.steps, state)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """q → 1 − λ + λq and c → λγR, but for the last step, whose output is x̄ itself: q and γR."""
        steps = MeasuredSteps(self.steps, facts, iterations)
        (q, because), c, relaxed = steps.forward(), steps.longest * facts.R, self.relaxation
        return steps.recursion(1 - relaxed + relaxed * q, relaxed * c, because, last=(q, c))
