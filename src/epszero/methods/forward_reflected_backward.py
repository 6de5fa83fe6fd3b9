"""Forward-reflected-backward: x⁺ = J_{ΓA}(x − ΓB̂(x) − Γ(B̂(x) − B̂(x⁻))), x⁻ the iterate before.

For B̂ monotone and κ-Lipschitz on the domain of A, A any maximally monotone operator; converges for γ < 1/(2κ). With
A = 0 it is optimistic gradient descent. Residual: z = Γ⁻¹(x − x⁺) − 2B̂(x) + B̂(x⁻) ∈ A(x⁺). Cost: one B̂, one resolvent.
Source: Malitsky & Tam, SIAM J. Optim. 30 (2020): forward-reflected-backward. That γ < 1/(2κ) cannot be longer for every
problem with constraints: Nguyen, Trinh & Vuong, arXiv 2603.06442 (2026).

Claim. With B̂ μ-strongly monotone, m = γμ and a = γκ < ½, ‖x^k − x̂‖² ≤ (1 + ν)^{−k}/(1 − a) · ‖x⁰ − x̂‖², ν the smaller
root of (2m − ν)(1 − 2a − νa) = ν²a². Proof: docs/theory.md#nearer.
"""

import math

import jax

from epszero._points import add, norm
from epszero._types import PyTree
from epszero.methods._base import State, first_state
from epszero.methods.constant import ConstantStep
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import forward_backward
from epszero.oracles import Average
from epszero.problems.backward import Backward

SHARE = 0.5  # γ < SHARE/κ


class ForwardReflectedBackward(ConstantStep):
    """x⁺ = J_{ΓA}(x − 2ΓB̂(x) + ΓB̂(x⁻)): one B̂ and one resolvent a step, for B̂ that is merely monotone too.

    `step`: a number below 1/(2κ), or one per block; None takes the best for a κ that is declared or derived.
    """

    named = "forward-reflected-backward"
    share = SHARE

    def factor(self, m: float, a: float) -> float:
        return rate(m, a)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        return first_state(x, Bx, None, Bx)  # x⁻ = x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx, Bx_before = state.x, state.Bx, state.own
        reflected = jax.tree.map(lambda now, before: 2 * now - before, Bx, Bx_before)
        x_next, z = forward_backward(A, x, reflected, self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, Bx)

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
