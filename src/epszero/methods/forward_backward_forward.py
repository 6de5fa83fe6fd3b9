"""Tseng's forward-backward-forward: x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = x̄ − Γ(B̂(x̄) − B̂(x)).

For B̂ monotone and Lipschitz, cocoercive or not: rotations, zero-sum games, shared constraints. Converges for γ < 1/κ;
each iteration brings x nearer to every zero, by (1 − γ²κ²)‖x − x̄‖² in squares. B̂ is evaluated at x⁺ too, which may lie
outside the domain of A: for a B̂ that lives on the domain alone, take extragradient.
Residual: z = Γ⁻¹(x − x̄) − B̂(x) ∈ A(x̄), and the output is x̄. Cost: two B̂ and one resolvent.
Source: Tseng, SIAM J. Control Optim. 38 (2000), Thm 3.4; Bauschke & Combettes, Thm 26.17.
"""

from typing import Any

import jax.numpy as jnp

from epszero._checks import known_arguments
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.constants import lipschitz_range
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
from epszero.methods.backtracking import lipschitz
from epszero.methods.steps import Steps, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class ForwardBackwardForward(Method):
    """x̄ = J_{ΓA}(x − ΓB̂(x)), x⁺ = x̄ − Γ(B̂(x̄) − B̂(x)); the output is x̄, which lies in the domain of A.

    `step`: as in `ez.ForwardBackward`; None takes the best step for a declared Lipschitz constant, or backtracks.
    """

    static = ("description",)
    steps: Steps
    description: str

    @known_arguments
    def __init__(self, step: Any = None) -> None:
        self.steps = Steps.of(step)
        self.description = "forward-backward-forward"

    def prepared(self, problem: Problem, x: PyTree) -> "ForwardBackwardForward":
        method = object.__new__(ForwardBackwardForward)
        method.steps = self.steps.settled(x, lipschitz_range(problem, x))
        method.description = f"forward-backward-forward, {method.steps.how}"
        return method

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, x, first_search(B, x, Bx) if self.steps.searched else None)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        step = this_size(self.steps, state)
        p, z = forward_backward(A, x, Bx, step)
        Bp = B(p)
        new = subtract(p, times(step, subtract(Bp, Bx)))
        B_new = B(new)
        verdict = lipschitz(subtract(p, x), subtract(Bp, Bx), Bp)
        limit = jnp.where(jnp.isfinite(norm(B_new)), verdict.limit, 0.0)  # too long where B̂ does not exist at x⁺
        next_state = State(state.k + 1, new, B_new, p, z, norm(add(z, Bp)), state.stuck, None)
        return settled(self.steps, verdict._replace(limit=limit), next_state, state)

    def last_step(self, state: State) -> Any:
        return last_size(self.steps, state)
