"""Extra-anchored gradient: y = x + (x⁰ − x)/(k + 2), x̄ = J_{ΓA}(y − ΓB̂(x)), x⁺ = J_{ΓA}(y − ΓB̂(x̄)).

For B̂ monotone and κ-Lipschitz on the domain of A; the anchor x⁰ makes ‖z + B̂(x)‖ fall like 1/k at the last iterate, the
best order there is. Residual: z = Γ⁻¹(y − x⁺) − B̂(x̄) ∈ A(x⁺). Cost: two B̂, two resolvents.
Steps: γ ≤ 1/(8κ) where A = 0, with ‖B̂(x^k)‖² ≤ 260 κ²‖x⁰ − x̂‖²/(k + 1)² at 1/(8κ) (Yoon & Ryu); γ < 1/(√3 κ) for any
maximally monotone A (Cai, Oikonomou & Zheng). The latter write 1/(k + 1) and count from 1, which is the same here.
Source: Yoon & Ryu, ICML 2021: EAG-C; Cai, Oikonomou & Zheng, arXiv 2206.05248 (2022), with constraints.
"""

import math

import jax

from epszero._points import add, norm
from epszero._types import Array, PyTree
from epszero.methods._base import State, first_state
from epszero.methods.constant import ConstantStep
from epszero.methods.steps import forward_backward
from epszero.oracles import Average
from epszero.problems.backward import Backward

SHARE = 1 / math.sqrt(3)  # γ < SHARE/κ


class ExtraAnchoredGradient(ConstantStep):
    """y = x + (x⁰ − x)/(k + 2), x̄ = J_{ΓA}(y − ΓB̂(x)), x⁺ = J_{ΓA}(y − ΓB̂(x̄)): residuals fall like 1/k.

    `step`: a number below 1/(√3 κ), or one per block; None takes 0.9 of that for a κ that is declared or derived.
    """

    named = "extra-anchored gradient"
    share = SHARE

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, x)  # x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx, start, Gamma = state.x, state.Bx, state.own, self.steps.sizes
        y = anchored(x, start, 1 / (state.k + 2.0))
        x_bar, _ = forward_backward(A, y, Bx, Gamma)
        x_next, z = forward_backward(A, y, B(x_bar), Gamma)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, start)


def anchored(x: PyTree, start: PyTree, weight: Array) -> PyTree:
    """x + weight · (x⁰ − x)."""
    return jax.tree.map(lambda x, start: x + weight * (start - x), x, start)
