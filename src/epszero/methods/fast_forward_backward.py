"""Fast forward-backward, FISTA: x⁺ = J_{ΓA}(y − ΓB̂(y)), t⁺ = (1 + √(1 + 4t²))/2, y⁺ = x⁺ + (t − 1)/t⁺ (x⁺ − x).

For minimisation: B̂ = ∇f with f convex, A a normal cone or a subdifferential ∂g; γ ≤ 1/κ with κ on the whole space, as y
may leave the domain. Then F(x^k) − F(x̂) ≤ 2‖x⁰ − x̂‖²/(γ(k + 1)²), F = f + g, without restart. `restart`: t ← 1
whenever ⟨y − x⁺, x⁺ − x⟩ > 0, as the momentum then points uphill; no value of f is needed. Runs then look linear on
strongly convex problems, whose μ need not be known; that is observed, and not proved.
Residual: z = Γ⁻¹(y − x⁺) − B̂(y) ∈ A(x⁺). Cost: one resolvent and two B̂, one of them for the residual.
Source: Beck & Teboulle, SIAM J. Imaging Sci. 2 (2009): FISTA with a constant step; O'Donoghue & Candès, Found.
Comput. Math. 15 (2015): restart by the gradient scheme.

Claim. Without restart and with f μ-strongly convex, ‖x^k − x̂‖ ≤ 2/((k + 1)√(γμ)) ‖x⁰ − x̂‖: μ/2 ‖x − x̂‖² ≤ F(x) − F(x̂).
"""

import math
from typing import Any

import jax
import jax.numpy as jnp

from epszero._checks import known_arguments, refuse
from epszero._points import add, inner, norm, subtract
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange, declared_only
from epszero.methods._base import Method, State, first_state, no_bound_by_zeros
from epszero.methods.constant import constant, settled, share_range
from epszero.methods.stability import ANY_ALGORITHM, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, StepSize, forward_backward, over
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

SHARE = 1 + 1e-12  # γ ≤ 1/κ


class FastForwardBackward(Method):
    """x⁺ = J_{ΓA}(y − ΓB̂(y)), y⁺ = x⁺ + β(x⁺ − x), for the minimum of a convex function; the output is x⁺.

    `step`: a number, at most 1/κ, or one per block; None takes 1/κ for a κ that is declared or derived.
    `restart`: start the momentum anew whenever it points uphill.
    """

    texts = (*Method.texts, "unbounded")
    static = ("restart", *texts)
    steps: Steps
    restart: bool
    description: str
    unbounded: str  # why there is no stability bound; empty where there is

    @known_arguments
    def __init__(self, step: StepSize = None, restart: bool = True) -> None:
        if not isinstance(restart, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            refuse("restart", f"must be True or False, but it is {restart!r}", "Leave it out for True")
        self.steps = constant(step)
        self.restart = restart
        self.description = "fast forward-backward"

    @property
    def open(self) -> bool:
        return self.steps.searched

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "restart": self.restart}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "FastForwardBackward":
        known = known or declared_only(problem)
        if problem.coupling is not None or not known.gradient:
            refuse(
                "method",
                "fast forward-backward is for the gradient of a convex function, which B is not known to be",
                "Use ez.ForwardBackward(), or say so with declared=ez.declare(gradient=True)",
            )
        steps = settled(self.steps, x, self._range(problem, x, known))
        how = f"{steps.how}{', with restarts' if self.restart else ''}"
        unbounded = no_bound_by_zeros(problem, proximal=True)
        return self._settled(steps=steps, description=f"fast forward-backward, {how}", unbounded=unbounded)

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        found = self._range(problem, x, known)
        return None if found is None else (self.steps.longest, found)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        return first_state(x, B(x), x, jnp.asarray(1.0))  # the state's iterate is y, its point x

    def step(self, A: Backward, B: Average, state: State) -> State:
        y, By, x, t, Gamma = state.x, state.Bx, state.point, state.own, self.steps.sizes
        x_next, z = forward_backward(A, y, By, Gamma)
        moved = subtract(x_next, x)
        if self.restart:
            uphill = inner(over(subtract(y, x_next), Gamma), moved) > 0
            t = jnp.where(uphill, 1.0, t)
        t_next = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        y_next = jax.tree.map(lambda x, d: x + (t - 1) / t_next * d, x_next, moved)
        residual = norm(add(z, B(x_next)))
        return State(state.k + 1, y_next, B(y_next), x_next, z, residual, state.stuck, t_next)

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """Without restart, by the distance to the zeros after K+1 steps, as the header has it."""
        if self.unbounded:
            raise Unstable(self.unbounded)
        if self.restart:
            raise Unstable(f"Restarts depend on the data. Pass restart=False, or use {ANY_ALGORITHM}.")
        if facts.jacobian is None and not facts.everywhere:
            raise Unstable(
                "The constants of B are known on the domain only, which y may leave. "
                f"Use ez.ForwardBackward(step=γ), or {ANY_ALGORITHM}."
            )
        steps = MeasuredSteps(self.steps, facts, iterations)
        m, a = steps.strong()
        if a > SHARE:
            raise Unstable(f"γκ must be at most 1, but it is {a:.6g}. Shorten the step, or use {ANY_ALGORITHM}.")
        return steps.by_distance(2 / ((iterations + 2) * math.sqrt(m)))

    @staticmethod
    def _range(problem: Problem, x: PyTree, known: AverageFacts) -> StepRange | None:
        return share_range(problem, x, known, SHARE, taken=1 / SHARE)
