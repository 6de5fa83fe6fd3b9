"""Fast optimistic gradient, free and constrained: with Γ_k = (1 + k/(k + α))Γ, α > 2, k = 1, 2, …, and z ∈ A(x),

    y = x + k/(k + α) (x − x⁻) − α/(k + α) Γ(B̂(y⁻) + z),
    x⁺ = J_{Γ_kA}(y − Γ_k(B̂(y) − B̂(y⁻) − z)),    z⁺ = Γ_k⁻¹(y − x⁺) − (B̂(y) − B̂(y⁻) − z) ∈ A(x⁺).
For B̂ monotone and κ-Lipschitz on the whole space, as y may leave the domain of A, and γ < 1/(4κ): ‖z + B̂(x)‖ = o(1/k)
at the last iterate, and the iterates converge. A = 0 gives the free method, where z = 0; proved for A = 0 and for
normal cones. The sources leave the first points open: here x¹ = J_{ΓA}(x⁰ − ΓB̂(x⁰)) with its z, and y⁰ = x⁰.
Residual: z⁺ + B̂(x⁺). Cost: one resolvent and two B̂, one of them for the residual.
Source: Boţ, Csetnek & Nguyen, Found. Comput. Math. 25 (2025): the explicit fast OGDA (free; their s is 2γ); Sedlmayer,
Nguyen & Boţ, "A fast optimistic method for monotone variational inequalities", ICML 2023: fOGDA-VI (constrained).
"""

from typing import Any

import jax
import jax.numpy as jnp

from epszero._checks import known_arguments, one_positive, refuse
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange
from epszero.methods._base import Method, State, first_state
from epszero.methods.constant import constant, settled, share_range
from epszero.methods.steps import Steps, StepSize, forward_backward, scaled, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

SHARE = 0.25  # γ < SHARE/κ


class FastOptimisticGradient(Method):
    """Optimistic gradient with momentum k/(k + α), free or with A: residuals fall faster than 1/k.

    `step`: a number below 1/(4κ), or one per block; None takes 0.9 of that for a κ that is declared or derived.
    `alpha`: α > 2.
    """

    static = ("alpha", *Method.texts)
    steps: Steps
    alpha: float
    description: str

    @known_arguments
    def __init__(self, step: StepSize = None, alpha: float = 3.0) -> None:
        value = one_positive("alpha", alpha)
        if value <= 2:
            refuse("alpha", f"must exceed 2, but it is {value:g}", "Leave it out for 3")
        self.steps = constant(step)
        self.alpha = value
        self.description = "fast optimistic gradient"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "alpha": self.alpha}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "FastOptimisticGradient":
        steps = settled(self.steps, x, share_range(problem, x, known, SHARE))
        return self._settled(steps=steps, description=f"fast optimistic gradient, {steps.how}")

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = share_range(problem, x, known, SHARE)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        z = jax.tree.map(jnp.negative, Bx)  # makes the step at k = 0 one of forward-backward
        return first_state(x, Bx, None, (x, Bx, z))

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, k, (x_before, By_before, z) = state.x, state.k, state.own
        Gamma, momentum, pull = self.steps.sizes, k / (k + self.alpha), self.alpha / (k + self.alpha)
        pulled = times(scaled(Gamma, pull), add(By_before, z))
        y = jax.tree.map(lambda x, before, pulled: x + momentum * (x - before) - pulled, x, x_before, pulled)
        By = B(y)
        change = subtract(subtract(By, By_before), z)
        x_next, z_next = forward_backward(A, y, change, scaled(Gamma, 1 + momentum))
        Bx_next = B(x_next)
        residual, own = norm(add(z_next, Bx_next)), (x, By, z_next)
        return State(k + 1, x_next, Bx_next, None, z_next, residual, state.stuck, own)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes
