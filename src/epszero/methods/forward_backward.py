"""Forward-backward: y = x − ΓB̂(x), p = J_{ΓA}(y), x⁺ = x + λ(p − x).

The paper's Algorithms 1 (B known) and 2 (B̂ from samples), and agent by agent its Algorithm 3. Γ is one step, one per
block, or a schedule k ↦ Γ_k; λ ∈ (0, 1]. Assumes A maximally monotone and B̂ cocoercive; converges for γ < 2θ.
Residual: z = Γ⁻¹(y − p) ∈ A(p), so z + B̂(p) is known exactly. Cost: one B̂ (two when relaxed) and one resolvent.
Source: Bauschke & Combettes, Thm 26.14; the steps from constants/steps.py, or from methods/backtracking.py.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, real_array, refuse
from epszero._points import add, norm, subtract
from epszero._types import PyTree
from epszero.constants import StepRange, step_range
from epszero.methods._base import Method, State
from epszero.methods.backtracking import first_pace, guess, next_pace, probe, search
from epszero.methods.steps import checked_schedule, checked_step, over, times
from epszero.oracles import Average, Opaque
from epszero.problems import Problem
from epszero.problems.backward import Backward


class ForwardBackward(Method):
    """x⁺ = x + λ(J_{ΓA}(x − ΓB̂(x)) − x).

    `step`: a number; one per row of x, or nested like x (one per block); a function k ↦ step in jax.numpy; or None for
    the best step that the declared constants allow, found by backtracking where none are declared.
    `relaxation`: λ ∈ (0, 1]. The output is the resolvent's point p, which lies in the domain of A.
    """

    static = ("schedule", "relaxation", "description")
    sizes: PyTree  # Γ, or None where it is scheduled or searched for
    schedule: Opaque | None  # k ↦ Γ_k
    relaxation: float
    description: str

    @known_arguments
    def __init__(self, step: Any = None, relaxation: float = 1.0) -> None:
        value = float(real_array("relaxation", relaxation))
        if not 0 < value <= 1:
            refuse("relaxation", f"must lie in (0, 1], but it is {value:g}", "Pass 1 for the plain method")
        if isinstance(step, int | float):
            checked_step(step, np.zeros(()))
        self.schedule = Opaque(step) if callable(step) else None
        self.sizes = None if callable(step) else step
        self.relaxation = value
        self.description = "forward-backward"

    def prepared(self, problem: Problem, x: PyTree) -> "ForwardBackward":
        known = step_range(problem)
        if self.schedule is not None:
            _check_range(checked_schedule(self.schedule, x), known)
            return self._settled(None, "scheduled step")
        if self.sizes is not None:
            step = checked_step(self.sizes, x)
            _check_range(step, known)
            return self._settled(step, f"step {_brief(step)}")
        if known is not None:
            return self._settled(jnp.asarray(known.best), f"step {known.best:.6g} from {known.because}")
        return self._settled(None, "step by backtracking")

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        Bx = B(x)
        own = None
        if self._searches:
            p, _ = _forward_backward(A, x, Bx, probe(x, Bx))
            own = first_pace(guess(x, Bx, p, B(p)))
        zero = jax.tree.map(jnp.zeros_like, x)
        point = None if self.relaxation == 1 else x
        return State(jnp.asarray(0), x, Bx, point, zero, jnp.asarray(jnp.inf), jnp.asarray(False), own)

    def step(self, A: Backward, B: Average, state: State) -> State:
        x, Bx = state.x, state.Bx
        if self._searches:
            trial = search(lambda step: _attempt(A, B, x, Bx, step), x, Bx, state.own)
            p, z, Bp = trial.p, trial.z, trial.Bp
            stuck, own = ~trial.accepted, next_pace(state.own, trial)
        else:
            step = self.sizes if self.schedule is None else self.schedule(state.k)
            p, z, Bp = _attempt(A, B, x, Bx, step)
            stuck, own = state.stuck, None
        residual = norm(add(z, Bp))
        if self.relaxation == 1:
            new, B_new, point = p, Bp, None
        else:
            new = jax.tree.map(lambda a, b: a + self.relaxation * (b - a), x, p)
            B_new, point = B(new), p
        return State(state.k + 1, new, B_new, point, z, residual, stuck, own)

    def last_step(self, state: State) -> Any:
        if self._searches:
            return state.own.used
        return self.sizes if self.schedule is None else self.schedule(jnp.maximum(state.k - 1, 0))

    @property
    def _searches(self) -> bool:
        return self.sizes is None and self.schedule is None

    def _settled(self, step: PyTree, how: str) -> "ForwardBackward":
        method = object.__new__(ForwardBackward)
        method.sizes, method.schedule, method.relaxation = step, self.schedule, self.relaxation
        relaxed = f", relaxed by {self.relaxation:g}" if self.relaxation < 1 else ""
        method.description = f"forward-backward, {how}{relaxed}"
        return method


def _forward_backward(A: Backward, x: PyTree, Bx: PyTree, step: PyTree) -> tuple[PyTree, PyTree]:
    """p = J_{ΓA}(y) with y = x − ΓB̂(x), and z = Γ⁻¹(y − p) ∈ A(p)."""
    y = subtract(x, times(step, Bx))
    p = A.resolvent(y, step)
    return p, over(subtract(y, p), step)


def _attempt(A: Backward, B: Average, x: PyTree, Bx: PyTree, step: PyTree) -> tuple[PyTree, PyTree, PyTree]:
    p, z = _forward_backward(A, x, Bx, step)
    return p, z, B(p)


def _check_range(step: PyTree, known: StepRange | None) -> None:
    if known is None:
        return
    longest = max(float(np.max(leaf)) for leaf in jax.tree.leaves(step))
    if longest >= known.limit:
        refuse(
            "step",
            f"must be below {known.limit:.6g}, the limit for the declared constants ({known.because}), "
            f"but it is {longest:.6g}",
            f"Take a shorter one, or step=None for {known.best:.6g}, the best",
        )


def _brief(step: PyTree) -> str:
    sizes = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(step)])
    return f"{sizes[0]:.6g}" if np.ptp(sizes) == 0 else f"from {sizes.min():.6g} to {sizes.max():.6g} by block"
