"""Forward-reflected-backward: x⁺ = J_{ΓA}(x − ΓB̂(x) − Γ(B̂(x) − B̂(x⁻))), x⁻ the iterate before.

For B̂ monotone and κ-Lipschitz on the domain of A, A any maximally monotone operator; converges for γ < 1/(2κ). With
A = 0 it is optimistic gradient descent. Residual: z = Γ⁻¹(x − x⁺) − 2B̂(x) + B̂(x⁻) ∈ A(x⁺). Cost: one B̂, one resolvent.
Source: Malitsky & Tam, SIAM J. Optim. 30 (2020): forward-reflected-backward. That γ < 1/(2κ) cannot be longer for every
problem with constraints: Nguyen, Trinh & Vuong, arXiv 2603.06442 (2026).

Claim. With B̂ μ-strongly monotone, m = γμ and a = γκ < ½, ‖x^k − x̂‖² ≤ (1 + ν)^{−k}/(1 − a) · ‖x⁰ − x̂‖², ν the smaller
root of (2m − ν)(1 − 2a − νa) = ν²a². Proof: docs/theory.md#nearer.
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
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

SHARE = 0.5  # γ < SHARE/κ


class ForwardReflectedBackward(Method):
    """x⁺ = J_{ΓA}(x − 2ΓB̂(x) + ΓB̂(x⁻)): one B̂ and one resolvent a step, for B̂ that is merely monotone too.

    `step`: a number below 1/(2κ), or one per block; None takes the best for a κ that is declared or derived.
    """

    texts = (*Method.texts, "unbounded")
    static = texts
    steps: Steps
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None) -> None:
        self.steps = constant(step)
        self.description = "forward-reflected-backward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "ForwardReflectedBackward":
        steps = settled(self.steps, x, share_range(problem, x, known, SHARE, rate))
        unbounded = no_bound_by_zeros(problem, proximal=False)
        return self._settled(steps=steps, description=f"forward-reflected-backward, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = share_range(problem, x, known, SHARE)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, None, Bx)  # x⁻ = x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx, Bx_before = state.x, state.Bx, state.own
        reflected = jax.tree.map(lambda now, before: 2 * now - before, Bx, Bx_before)
        x_next, z = forward_backward(A, x, reflected, self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, Bx)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """By the distance to the zeros, after K+1 steps."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        return by_reflection(MeasuredSteps(self.steps, facts, iterations))


def by_reflection(steps: MeasuredSteps) -> Stability:
    """The claim of the header for a run of K+1 steps."""
    m, a = steps.strong()
    if a >= SHARE:
        raise Unstable(f"γκ must be below 1/2, but it is {a:.6g}. Shorten the step, or use {ANY_ALGORITHM}.")
    return steps.by_distance(rate(m, a) ** (steps.K + 1) / math.sqrt(1 - a))


def rate(m: float, a: float) -> float:
    """(1 + ν)^{−½}."""
    p, q, r = a * (1 - a), 1 - 2 * a + 2 * m * a, 2 * m * (1 - 2 * a)  # pν² − qν + r = 0
    nu = 2 * r / (q + math.sqrt(max(q * q - 4 * p * r, 0.0)))
    return 1 / math.sqrt(1 + nu)
