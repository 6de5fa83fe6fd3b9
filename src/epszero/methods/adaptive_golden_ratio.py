"""Adaptive golden ratio: x̄ = ((φ − 1)x + x̄⁻)/φ, x⁺ = J_{λA}(x̄ − λB̂(x)), and λ from the slope just seen.

    λ = min(ρ λ⁻, φ θ⁻/(4 λ⁻) · ‖x − x⁻‖²/‖B̂(x) − B̂(x⁻)‖², λ_max),   θ = φ λ/λ⁻,   ρ = 1/φ + 1/φ²,   φ = 3/2
(x⁻, x̄⁻, λ⁻, θ⁻ are those of the step before). Assumes A a normal cone or a subdifferential and B̂ monotone and locally
Lipschitz on the domain of A; no constant, no line search. Converges to a zero for every φ ∈ (1, (1 + √5)/2]. Residual:
z = (x̄ − λB̂(x) − x⁺)/λ ∈ A(x⁺), and the output is x⁺. Cost: one B̂ and one resolvent.
The second bound is that of the source; agents with very different units get steps in fixed proportions Γ, and all of
this holds in the norm of Γ⁻¹, as in methods/backtracking.py.
Source: Malitsky, "Golden ratio algorithms for variational inequalities", Math. Program. 184 (2020):
the adaptive golden ratio algorithm.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from epszero._checks import known_arguments
from epszero._points import add, norm, subtract
from epszero._types import Array, PyTree
from epszero.facts import AverageFacts
from epszero.methods._base import Method, State, first_state
from epszero.methods.backtracking import ROUNDING, first_step, probing_step
from epszero.methods.steps import forward_backward, in_units, over, root, scaled, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

PHI = 1.5
RHO = 1 / PHI + 1 / PHI**2
LONGEST = 1e8  # λ_max, in units of the first step


class Memory(NamedTuple):
    """What the next step needs of this one."""

    x: PyTree  # x⁻
    Bx: PyTree  # B̂(x⁻)
    x_bar: PyTree  # x̄⁻
    step: Array  # λ⁻
    theta: Array  # θ⁻
    longest: Array  # λ_max


class AdaptiveGoldenRatio(Method):
    """x̄ = ((φ − 1)x + x̄⁻)/φ, x⁺ = J_{λA}(x̄ − λB̂(x)), with λ found on the way: nothing need be known of B̂."""

    static = Method.texts
    scale: PyTree  # Γ, how long each block's step is relative to the others; None: alike
    description: str

    @known_arguments
    def __init__(self) -> None:
        self.scale = None
        self.description = "adaptive golden ratio"

    @property
    def open(self) -> bool:
        return True

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "AdaptiveGoldenRatio":
        scale = None if known is None or problem.coupling is not None else known.unit_steps
        units = "" if scale is None else f", {in_units(scale, x)}"
        return self._settled(scale=scale, description=f"adaptive golden ratio, step from the slopes on the way{units}")

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx, half = B(x), root(self.scale)
        probe = probing_step(over(x, half), times(half, Bx))
        near, _ = forward_backward(A, x, Bx, self._steps(probe))  # in the domain, where B̂ exists
        change, d = times(half, subtract(B(near), Bx)), over(subtract(near, x), half)
        step = 0.1 * first_step(d, change)
        return first_state(x, Bx, None, Memory(x, Bx, x, step, jnp.asarray(1.0), LONGEST * step))

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx, before = state.x, state.Bx, state.own
        lam = self._next_step(x, Bx, before)
        x_bar = jax.tree.map(lambda x, x_bar: ((PHI - 1) * x + x_bar) / PHI, x, before.x_bar)
        x_next, z = forward_backward(A, x_bar, Bx, self._steps(lam))
        Bx_next = B(x_next)
        memory = Memory(x, Bx, x_bar, lam, PHI * lam / before.step, before.longest)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, memory)

    def last_step(self, state: State) -> PyTree:
        return self._steps(state.own.step)

    def _next_step(self, x: PyTree, Bx: PyTree, before: Memory) -> Array:
        """λ; where B̂ did not change but for rounding, no slope can be read off it."""
        half = root(self.scale)
        d = norm(over(subtract(x, before.x), half))
        change = norm(times(half, subtract(Bx, before.Bx)))
        told = change > ROUNDING * norm(times(half, Bx))
        ratio = d / jnp.where(told, change, 1.0)
        by_slope = jnp.where(told, PHI * before.theta / 4 * (ratio / before.step) * ratio, jnp.inf)
        return jnp.minimum(jnp.minimum(RHO * before.step, by_slope), before.longest)

    def _steps(self, lam: Array | float) -> PyTree:
        return scaled(self.scale, jnp.asarray(lam))
