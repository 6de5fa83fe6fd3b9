"""Tseng's forward-backward-forward: x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = x̄ − Γ(B̂(x̄) − B̂(x)).

For B̂ monotone and Lipschitz, cocoercive or not: rotations, zero-sum games, shared constraints. Converges for γ < 1/κ;
each iteration brings x nearer to every zero, by (1 − γ²κ²)‖x − x̄‖² in squares. B̂ is evaluated at x⁺ too, which may
lie outside the domain of A: for a B̂ that lives on the domain alone, take extragradient.
Residual: z = Γ⁻¹(x − x̄) − B̂(x) ∈ A(x̄), and the output is x̄. Cost: two B̂ and one resolvent.
Source: Tseng, SIAM J. Control Optim. 38 (2000); Bauschke & Combettes, Thm 26.17.
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

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
from epszero.methods.steps import Steps, StepSize, forward_backward, times
from epszero.oracles import Average, strategies
from epszero.problems import Problem
from epszero.problems.backward import Backward


class ForwardBackwardForward(Method):
    """x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = x̄ − Γ(B̂(x̄) − B̂(x)); the output is x̄, which lies in the domain of A.

    `step`: as in `ez.ForwardBackward`; None takes the best step for a declared Lipschitz constant, or backtracks.
    """

    texts = (*Method.texts, "unbounded")
    static = texts
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound but for affine B; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None) -> None:
        self.steps = Steps.of(step)
        self.description = "forward-backward-forward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def fixed_point(self) -> bool:
        return not self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "ForwardBackwardForward":
        known = known or declared_only(problem)
        steps = self.steps.settled(x, lipschitz_range(known, problem.coupling, strategies(x)))
        unbounded = no_bound_by_zeros(problem, proximal=False)
        return self._settled(steps=steps, description=f"forward-backward-forward, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = lipschitz_range(known, problem.coupling, strategies(x))
        return None if found is None or self.steps.searched else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, x, starting_pace(B, x, Bx) if self.steps.searched else None)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        Gamma = step_to_take(self.steps, state)
        x_bar, z = forward_backward(A, x, Bx, Gamma)
        Bx_bar = B(x_bar)
        x_next = subtract(x_bar, times(Gamma, subtract(Bx_bar, Bx)))
        Bx_next = B(x_next)
        test = lipschitz(subtract(x_bar, x), subtract(Bx_bar, Bx), Bx_bar)
        limit = jnp.where(jnp.isfinite(norm(Bx_next)), test.limit, 0.0)  # too long where B̂ does not exist at x⁺
        new = State(state.k + 1, x_next, Bx_next, x_bar, z, norm(add(z, Bx_bar)), state.stuck, None)
        return tested(self.steps, test._replace(limit=limit), new, state)

    def last_step(self, state: State) -> PyTree:
        return step_taken(self.steps, state)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """B affine: q = ρ and c = γ‖I − γJ‖R. Else the distance to the zeros, which needs κ wherever x⁺ may be.

        The last step's output is x̄ = J_{ΓA}(x − ΓB̂(x)): a step of forward-backward, with its q and c.
        """
        if facts.jacobian is not None:  # what it says holds at x⁺ too, and for strategies and multipliers together
            facts = replace(facts, mu=None, kappa=None, theta=None)
        steps = MeasuredSteps(self.steps, facts, iterations)
        rho, ahead, c = steps.nearer(), steps.ahead, steps.longest * facts.R
        if ahead is not None:
            why = f"ρ ≤ {rho.max():.6g} and ‖I − γJ‖ ≤ {ahead.max():.6g}, B affine"
            return steps.recursion(rho, ahead * c, why, last=(ahead, c))
        if self.unbounded:
            raise Unstable(self.unbounded)
        if not facts.everywhere:
            raise Unstable(
                "B is not affine, and its constants are known on the domain only, which x⁺ may leave. "
                "Use ez.Extragradient(step=γ), all of whose points lie in the domain."
            )
        return steps.by_zeros(rho, last=steps.forward()[0])
