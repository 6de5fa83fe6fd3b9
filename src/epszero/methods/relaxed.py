"""Relaxation of any fixed-point method T: x⁺ = x + λ(T(x) − x), λ ∈ (0, 1]. λ = 1 is the method itself.

The output, its z and its residual are those of T at x, so they are as exact as before, and the output lies in dom A.
Cost: a step of T, and one B̂ more for λ < 1. Where T comes nearer to the zeros so does this: it converges where T does.
Stability: if T is q-Lipschitz and one sample moves it by c/s, then x + λ(T(x) − x) has 1 − λ + λq and λc, by the
triangle inequality; the last step, whose output is that of T, keeps its own (docs/theory.md#stability).
Source: Krasnosel'skii (1955), Mann (1953); Bauschke & Combettes, Thm 5.15.
"""

from dataclasses import replace
from typing import Any

import jax

from epszero._checks import known_arguments, one_positive, refuse
from epszero._types import PyTree
from epszero.facts import AverageFacts, StepRange
from epszero.methods._base import Method, State
from epszero.methods.stability import ANY_ALGORITHM, Premises, Stability, Unstable
from epszero.methods.steps import Steps
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class Relaxed(Method):
    """x⁺ = x + λ(T(x) − x), with T a step of the method `of` and λ = `relaxation` ∈ (0, 1].

    `of`: forward-backward, forward-backward-forward, extragradient or the preconditioned form, with a step that is not
    searched for: a method that remembers nothing of the steps before.
    """

    static = ("relaxation", *Method.texts)
    of: Method
    relaxation: float
    description: str

    @known_arguments
    def __init__(self, of: Method, relaxation: float) -> None:
        value = one_positive("relaxation", relaxation, strict=False)
        if not 0 < value <= 1:
            refuse("relaxation", f"must lie in (0, 1], but it is {value:g}", "Pass 1 for the plain method")
        self.of = method_within(of)
        self.relaxation = value
        self.description = f"{of.description}, relaxed by {value:g}"

    @property
    def open(self) -> bool:
        return self.of.open

    @property
    def fixed_point(self) -> bool:
        return self.of.fixed_point

    @property
    def settings(self) -> dict[str, Any]:
        return {"of": self.of, "relaxation": self.relaxation}

    @property
    def steps(self) -> Steps | None:
        """Those of T, where it has some."""
        return getattr(self.of, "steps", None)

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "Relaxed":
        of = map_within(self.of, problem, x, known)
        return self._settled(of=of, description=f"{of.description}, relaxed by {self.relaxation:g}")

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        return self.of.limits(problem, x, known)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        state = self.of.init(A, B, x)
        return state if self.relaxation == 1 else state._replace(point=x)

    def step(self, A: Backward, B: Average, state: State) -> State:
        if self.relaxation == 1:
            return self.of.step(A, B, state)
        moved = self.of.step(A, B, state)
        x_next = jax.tree.map(lambda x, Tx: x + self.relaxation * (Tx - x), state.x, moved.x)
        at = self.of.init(A, B, x_next)
        output = moved.x if moved.point is None else moved.point
        return moved._replace(x=x_next, Bx=at.Bx, own=at.own, point=output)

    def last_step(self, state: State) -> PyTree:
        return self.of.last_step(state)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """q → 1 − λ + λq and c → λc, but for the last step."""
        inner, relaxed = self.of.stability(facts, iterations), self.relaxation
        if relaxed == 1:
            return inner
        if inner.extra > 0:
            raise Unstable(
                f"Of {self.of.description} it is known how near it comes to its zeros, and not how far apart two runs "
                f"are; relaxed, no bound is known. Leave the relaxation out, or use {ANY_ALGORITHM}."
            )
        q, c = inner.q.copy(), inner.c.copy()
        q[:-1], c[:-1] = 1 - relaxed + relaxed * q[:-1], relaxed * c[:-1]
        return replace(inner, q=q, c=c, because=f"{inner.because}, relaxed by {relaxed:g}")


def method_within(of: Any) -> Method:
    """A method for a wrapper."""
    if not isinstance(of, Method):
        refuse("of", f"must be a method such as ez.ForwardBackward(step=0.1), but it is {of!r}", "Pass a method")
    return of


def map_within(of: Method, problem: Problem, x: PyTree, known: AverageFacts | None) -> Method:
    """The method settled, if its step is then x⁺ = T_k(x)."""
    settled = of.prepared(problem, x, known)
    if not settled.fixed_point:
        refuse(
            "of",
            f"must be a map of x alone, but {settled.description} remembers more than x, or searches for its step",
            "Pass ez.ForwardBackward(step=γ), ez.ForwardBackwardForward(step=γ) or ez.Extragradient(step=γ)",
        )
    return settled
