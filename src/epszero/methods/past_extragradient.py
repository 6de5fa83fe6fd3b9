"""Popov's method, past extragradient: x⁺ = J_{ΓA}(x − ΓB̂(y)), y⁺ = J_{ΓA}(x⁺ − ΓB̂(y)); the output is y⁺.

For B̂ monotone and κ-Lipschitz on the domain of A, A a normal cone or a subdifferential; converges for γ < 1/(2κ). Of
extragradient's two B̂ it saves one: B̂(y) of the step before serves in the place of B̂(x⁺). With A = 0, y follows
optimistic gradient descent. Residual: z = Γ⁻¹(x⁺ − y⁺) − B̂(y) ∈ A(y⁺). Cost: one B̂, two resolvents.
Source: Popov, Math. Notes 28 (1980); Hsieh, Iutzeler, Malick & Mertikopoulos, NeurIPS 2019: past extragradient.

Claim. With B̂ μ-strongly monotone, m = γμ and a = γκ < ½, E = ‖x − x̂‖² + w‖x − y⁻‖² shrinks by ρ² a step from the second
on, for all w, c, t > 0 with 2m/t + (1 + w)(1 + c)a² ≤ 1 and ρ² = max{1 − 2m/(1 + t), (1 + w)(1 + 1/c)a²/w}, and
‖y⁺ − x̂‖² ≤ ((1 + a)² + a²/w) E⁺. Proof: docs/theory.md#nearer.
"""

import math
from typing import Any

import numpy as np

from epszero._points import add, norm
from epszero._types import PyTree
from epszero.methods._base import State, first_state
from epszero.methods.constant import ConstantStep
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import forward_backward
from epszero.oracles import Average
from epszero.problems.backward import Backward

SHARE = 0.5  # γ < SHARE/κ
W, C = np.meshgrid(np.geomspace(1e-2, 1e2, 81), np.geomspace(1e-2, 1e2, 81))  # weights among which ρ is the least


class PastExtragradient(ConstantStep):
    """x⁺ = J_{ΓA}(x − ΓB̂(y)), y⁺ = J_{ΓA}(x⁺ − ΓB̂(y)); the output is y⁺.

    `step`: a number below 1/(2κ), or one per block; None takes the best for a κ that is declared or derived.
    """

    named = "past extragradient"
    share = SHARE
    proximal = True

    def factor(self, m: float, a: float) -> float:
        return rate(m, a)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, x)  # y⁰ = x⁰; the state's iterate is y, where B̂ is evaluated

    def step(self, A: Backward, B: Average, state: State) -> State:
        By, x, Gamma = state.Bx, state.own, self.steps.sizes
        x_next, _ = forward_backward(A, x, By, Gamma)
        y_next, z = forward_backward(A, x_next, By, Gamma)
        By_next = B(y_next)
        return State(state.k + 1, y_next, By_next, None, z, norm(add(z, By_next)), state.stuck, x_next)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """By the distance to the zeros: the first step is one of forward-backward, and K more shrink E by ρ²."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        steps = MeasuredSteps(self.steps, facts, iterations)
        (m, a), q = steps.strong(), float(steps.forward()[0][0])
        if a >= SHARE:
            raise Unstable(f"γκ must be below 1/2, but it is {a:.6g}. Shorten the step, or use {ANY_ALGORITHM}.")
        start = q**2 + W * (1 + q) ** 2  # of E after the first step, as ‖x¹ − x̂‖ ≤ q‖x⁰ − x̂‖
        output = (1 + a) ** 2 + a**2 / W  # ‖y⁺ − x̂‖² ≤ output · E⁺
        factor = float(np.min(np.sqrt(start * output) * _squares(m, a) ** (iterations / 2)))
        if not math.isfinite(factor):
            raise Unstable(f"γκ = {a:.6g} is too near to 1/2. Shorten the step, or use {ANY_ALGORITHM}.")
        return steps.by_distance(factor)


def rate(m: float, a: float) -> float:
    """The least ρ."""
    return math.sqrt(float(np.min(_squares(m, a))))


def _squares(m: float, a: float) -> Any:
    """ρ² for all weights; infinite where it is not below 1, or the condition cannot be met."""
    room = 1 - (1 + W) * (1 + C) * a**2
    t = 2 * m / np.where(room > 0, room, 1.0)
    squares = np.maximum(1 - 2 * m / (1 + t), (1 + W) * (1 + 1 / C) * a**2 / W)
    return np.where((room > 0) & (squares < 1), squares, np.inf)
