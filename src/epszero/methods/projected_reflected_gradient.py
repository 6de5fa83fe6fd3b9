"""Projected reflected gradient: x⁺ = J_{ΓA}(x − ΓB̂(2x − x⁻)), x⁻ the iterate before.

For B̂ monotone and κ-Lipschitz on the whole space, as 2x − x⁻ may leave the domain of A; converges for γ < (√2 − 1)/κ.
For an affine B̂ it is forward-reflected-backward, iterate for iterate, as B̂(2x − x⁻) = 2B̂(x) − B̂(x⁻) there.
Residual: z = Γ⁻¹(x − x⁺) − B̂(2x − x⁻) ∈ A(x⁺). Cost: one resolvent and two B̂, one of them for the residual.
Source: Malitsky, SIAM J. Optim. 25 (2015), for projections; Cevher & Vũ, Set-Valued Var. Anal. 29 (2021), for any A.
"""

import math

import jax

from epszero._points import add, norm
from epszero._types import PyTree
from epszero.methods._base import State, first_state
from epszero.methods.constant import ConstantStep
from epszero.methods.forward_reflected_backward import by_reflection, rate
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import forward_backward
from epszero.oracles import Average
from epszero.problems.backward import Backward

SHARE = math.sqrt(2) - 1  # γ < SHARE/κ


class ProjectedReflectedGradient(ConstantStep):
    """x⁺ = J_{ΓA}(x − ΓB̂(2x − x⁻)).

    `step`: a number below (√2 − 1)/κ, or one per block; None takes the best for a κ that is declared or derived.
    """

    named = "projected reflected gradient"
    share = SHARE

    def factor(self, m: float, a: float) -> float:
        return rate(m, a)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, x)  # x⁻ = x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, x_before = state.x, state.own
        y = jax.tree.map(lambda now, before: 2 * now - before, x, x_before)
        x_next, z = forward_backward(A, x, B(y), self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, x)

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
