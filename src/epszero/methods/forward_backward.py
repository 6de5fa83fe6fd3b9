"""Forward-backward: y = x − ΓB̂(x), p = J_{ΓA}(y), x⁺ = x + λ(p − x).

The paper's Algorithms 1 (B known) and 2 (B̂ from samples), and agent by agent its Algorithm 3. Γ is one step, one per
block, or a schedule k ↦ Γ_k; λ ∈ (0, 1]. Assumes A maximally monotone and B̂ cocoercive; converges for γ < 2θ.
Residual: z = Γ⁻¹(y − p) ∈ A(p), so z + B̂(p) is known exactly. Cost: one B̂ (two when relaxed) and one resolvent.
Source: Bauschke & Combettes, Thm 26.14; the steps from constants/steps.py, or from methods/backtracking.py.
"""

from typing import Any

import jax

from epszero._checks import known_arguments, real_array, refuse
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.constants import Known, StepRange, declared_only, step_range
from epszero.methods._base import (
    Method,
    State,
    first_search,
    first_state,
    forward_backward,
    last_size,
    settled,
    this_size,
)
from epszero.methods.backtracking import cocoercive
from epszero.methods.stability import Facts, Measured, Stability
from epszero.methods.steps import Steps, over, root, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class ForwardBackward(Method):
    """x⁺ = x + λ(J_{ΓA}(x − ΓB̂(x)) − x).

    `step`: a number; one per row of x, or nested like x (one per block); a function k ↦ step in jax.numpy; or None for
    the best step that the declared constants allow, found by backtracking where none are declared.
    `relaxation`: λ ∈ (0, 1]. The output is the resolvent's point p, which lies in the domain of A.
    """

    static = ("relaxation", "description")
    steps: Steps
    relaxation: float
    description: str

    @known_arguments
    def __init__(self, step: Any = None, relaxation: float = 1.0) -> None:
        value = float(real_array("relaxation", relaxation))
        if not 0 < value <= 1:
            refuse("relaxation", f"must lie in (0, 1], but it is {value:g}", "Pass 1 for the plain method")
        self.steps = Steps.of(step)
        self.relaxation = value
        self.description = "forward-backward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    def prepared(self, problem: Problem, x: PyTree, known: Known | None = None) -> "ForwardBackward":
        known = known or declared_only(problem)
        if problem.coupling is not None:
            refuse("method", "forward-backward does not converge on shared constraints, whose operator is a rotation "
                   "between strategies and multipliers",
                   "Use ez.PreconditionedForwardBackward() or ez.ForwardBackwardForward()")  # fmt: skip
        method = object.__new__(ForwardBackward)
        steps = None if problem.unit_steps is not None and not known.vouched else step_range(known)
        method.steps = self.steps.settled(x, steps, problem.unit_steps)
        method.relaxation = self.relaxation
        relaxed = f", relaxed by {self.relaxation:g}" if self.relaxation < 1 else ""
        method.description = f"forward-backward, {method.steps.how}{relaxed}"
        return method

    def limits(self, problem: Problem, x: PyTree, known: Known) -> tuple[float, StepRange] | None:
        found = step_range(known)
        return None if found is None or self.steps.searched else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        own = first_search(B, x, Bx, self.steps.scale) if self.steps.searched else None
        return first_state(x, Bx, None if self.relaxation == 1 else x, own)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        p, z = forward_backward(A, x, Bx, this_size(self.steps, state))
        Bp = B(p)
        half = root(self.steps.scale)
        d, change = over(subtract(p, x), half), times(half, subtract(Bp, Bx))
        verdict = cocoercive(d, change, times(half, Bp))
        if self.relaxation == 1:
            new, B_new, point = p, Bp, None
        else:
            new = jax.tree.map(lambda a, b: a + self.relaxation * (b - a), x, p)
            B_new, point = B(new), p
        next_state = State(state.k + 1, new, B_new, point, z, norm(add(z, Bp)), state.stuck, None)
        return settled(self.steps, verdict, next_state, state)

    def last_step(self, state: State) -> Any:
        return last_size(self.steps, state)

    def stability(self, facts: Facts, iterations: int) -> Stability:
        """q → 1 − λ + λq and c → λγR, but for the last step, whose output is p itself: q and γR."""
        steps = Measured(self.steps, facts, iterations)
        (q, because), c, relaxed = steps.forward(), steps.longest * facts.R, self.relaxation
        return steps.recursion(1 - relaxed + relaxed * q, relaxed * c, because, last=(q, c))
