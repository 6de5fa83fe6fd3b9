"""Golden ratio: x̄ = ((φ − 1)x + x̄⁻)/φ, x⁺ = J_{ΓA}(x̄ − ΓB̂(x)), φ ∈ (1, (1 + √5)/2].

For B̂ monotone and κ-Lipschitz on the domain of A, A a normal cone or a subdifferential; converges for γ < φ/(2κ). As
φ → 1 the anchor x̄ stands still. Residual: z = Γ⁻¹(x̄ − x⁺) − B̂(x) ∈ A(x⁺). Cost: one B̂, one resolvent.
Source: Malitsky, Math. Program. 184 (2020): the golden ratio algorithm with a fixed step.

Claim. With B̂ μ-strongly monotone, m = γμ and a = γκ < φ/2, E = φ/(φ − 1) ‖x̄ − x̂‖² + φ/2 ‖x − x⁻‖² shrinks a step by
ρ² = max{1 − 2m(φ − 1)/(2m + φ), 4a²/φ²} from the second on, and ‖x⁺ − x̂‖² ≤ max{(φ − 1)/φ, 2a²/(φ(2 − φ))} E.
Proof: docs/theory.md#nearer.
"""

import math
from typing import Any

import jax

from epszero._checks import known_arguments, one_positive, refuse
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

GOLDEN = (1 + math.sqrt(5)) / 2


class GoldenRatio(Method):
    """x̄ = ((φ − 1)x + x̄⁻)/φ, x⁺ = J_{ΓA}(x̄ − ΓB̂(x)), with a fixed step.

    `step`: a number below φ/(2κ), or one per block; None takes the best for a κ that is declared or derived.
    `phi`: φ ∈ (1, (1 + √5)/2].
    """

    texts = (*Method.texts, "unbounded")
    static = ("phi", *texts)
    steps: Steps
    phi: float
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None, phi: float = GOLDEN) -> None:
        value = one_positive("phi", phi)
        if not 1 < value <= GOLDEN:
            refuse("phi", f"must lie in (1, (1 + √5)/2], but it is {value:g}", "Leave it out for the golden ratio")
        self.steps = constant(step)
        self.phi = value
        self.description = "golden ratio"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "phi": self.phi}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "GoldenRatio":
        steps = settled(self.steps, x, share_range(problem, x, known, self.phi / 2, self.rate))
        unbounded = no_bound_by_zeros(problem, proximal=True)
        return self._settled(steps=steps, description=f"golden ratio, {steps.how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = share_range(problem, x, known, self.phi / 2)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), None, x)  # x̄⁻ = x⁰

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx, phi = state.x, state.Bx, self.phi
        x_bar = jax.tree.map(lambda x, x_bar: ((phi - 1) * x + x_bar) / phi, x, state.own)
        x_next, z = forward_backward(A, x_bar, Bx, self.steps.sizes)
        Bx_next = B(x_next)
        return State(state.k + 1, x_next, Bx_next, None, z, norm(add(z, Bx_next)), state.stuck, x_bar)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """By the distance to the zeros: the first step is one of forward-backward, and E bounds what follows."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        steps, phi = MeasuredSteps(self.steps, facts, iterations), self.phi
        (m, a), q = steps.strong(), float(steps.forward()[0][0])
        if a >= phi / 2:
            raise Unstable(f"γκ must be below φ/2, but it is {a:.6g}. Shorten the step, or use {ANY_ALGORITHM}.")
        if iterations == 0:
            return steps.by_distance(q)
        start = phi / (phi - 1) * (((phi - 1) * q + 1) / phi) ** 2 + phi / 2 * (1 + q) ** 2  # of E after the first step
        output = max((phi - 1) / phi, 2 * a**2 / (phi * (2 - phi)))
        return steps.by_distance(math.sqrt(start * output) * self.rate(m, a) ** (iterations - 1))

    def rate(self, m: float, a: float) -> float:
        """ρ."""
        phi = self.phi
        return math.sqrt(max(1 - 2 * m * (phi - 1) / (2 * m + phi), 4 * a**2 / phi**2))
