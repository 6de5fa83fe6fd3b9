"""Accelerated reflected gradient: with the anchor x⁰ and v = x + (x⁰ − x)/(k + 1), for k = 1, 2, …

    y = 2x − x⁻ + (x⁰ − x)/(k + 1) − (x⁰ − x⁻)/k = x + v − v⁻,    x⁺ = J_{ΓA}(v − ΓB̂(y)).
For B̂ monotone and κ-Lipschitz on the whole space, as y may leave the domain of A, and A any maximally monotone
operator; for γ ≤ 1/(12κ) the residual ‖z + B̂(x)‖ falls like 1/k at the last iterate. The first step is
x¹ = J_{ΓA}(x⁰ − ΓB̂(x⁰)). Residual: z = Γ⁻¹(v − x⁺) − B̂(y) ∈ A(x⁺). Cost: one resolvent and two B̂, one of them for the
residual.
Source: Cai & Zheng, "Accelerated single-call methods for constrained min-max optimization", ICLR 2023: ARG.
"""

import jax
import jax.numpy as jnp

from epszero._points import add, norm
from epszero._types import PyTree
from epszero.methods._base import State, first_state
from epszero.methods.constant import ConstantStep
from epszero.methods.extra_anchored_gradient import anchored
from epszero.methods.steps import forward_backward
from epszero.oracles import Average
from epszero.problems.backward import Backward

SHARE = 1 / 12 * (1 + 1e-12)  # γ ≤ 1/(12κ)


class AcceleratedReflectedGradient(ConstantStep):
    """y = 2x − x⁻ + (x⁰ − x)/(k + 1) − (x⁰ − x⁻)/k, x⁺ = J_{ΓA}(x + (x⁰ − x)/(k + 1) − ΓB̂(y)).

    `step`: a number, at most 1/(12κ), or one per block; None takes 0.9 of that for a κ that is declared or derived.
    """

    named = "accelerated reflected gradient"
    share = SHARE

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, (x, x))  # x⁻ = x⁰, so that the first y is x⁰ too

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, k, (x_before, start) = state.x, jnp.asarray(state.k, jnp.float64), state.own
        now = anchored(x, start, 1 / (k + 1))
        before = anchored(x_before, start, 1 / jnp.maximum(k, 1.0))
        y = jax.tree.map(lambda x, now, before: x + now - before, x, now, before)
        x_next, z = forward_backward(A, now, B(y), self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, (x, start))
