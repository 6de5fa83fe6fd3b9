"""`Method`: an endless stepper for 0 ∈ A(x) + B̂(x).

A method writes `prepared` (check its parameters against the problem and settle what was left open), `init` and `step`,
and `stability` where it is known how much one sample can change its output.
It knows nothing of loops, tolerances, samples or printing. After every step the state holds a point of dom A together
with a z ∈ A(point), and the norm of the residual z + B̂(point).
"""

from abc import abstractmethod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from epszero._points import subtract
from epszero._pytree import Node
from epszero._types import Array, PyTree
from epszero.constants import Known, StepRange
from epszero.functions import Function
from epszero.methods.backtracking import Judgement, Pace, Verdict, first_pace, guess, judged, probe
from epszero.methods.stability import Facts, Stability, Unstable
from epszero.methods.steps import Steps, over, root, scaled, times
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward, is_part
from epszero.sets import Set


class State(NamedTuple):
    """What every method carries from one iteration to the next."""

    k: Array  # steps taken
    x: PyTree  # the iterate
    Bx: PyTree  # B̂ at the iterate
    point: PyTree  # the output, in dom A; None while it is the iterate itself
    z: PyTree  # an element of A(point)
    residual: Array  # ‖z + B̂(point)‖
    stuck: Array  # the method cannot go on
    own: PyTree  # what only this method knows


class Method(Node):
    """A splitting method."""

    description: str  # one line for reports: the method, its step and where the step came from

    @property
    def open(self) -> bool:
        """Whether a step is still to be chosen."""
        return False

    def limits(self, problem: Problem, x: PyTree, known: Known) -> tuple[float, StepRange] | None:
        """The longest step of a settled method and those that are proved to converge; None where it is not known."""
        del problem, x, known
        return None

    @abstractmethod
    def prepared(self, problem: Problem, x: PyTree, known: Known | None = None) -> "Method":
        """The method with its parameters checked and settled for this problem and points like `x`.

        `known`: what is known of B̂; only what is declared where it is left out.
        """

    @abstractmethod
    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        """The state before the first step."""

    @abstractmethod
    def step(self, A: Backward, B: Average, state: State) -> State:
        """One iteration."""

    @abstractmethod
    def last_step(self, state: State) -> Any:
        """The step sizes of the iteration that led to `state`."""

    def stability(self, facts: Facts, iterations: int) -> Stability:
        """How much one sample changes the output after the steps 0, …, K of a settled method; raises `Unstable`."""
        del facts, iterations
        raise Unstable(f"No stability bound is known for {self.description}. Use ez.ForwardBackward(step=γ).")


def first_state(x: PyTree, Bx: PyTree, point: PyTree, own: PyTree) -> State:
    """Before the first step there is no z yet, and no residual."""
    zero = jax.tree.map(jnp.zeros_like, x)
    return State(jnp.asarray(0), x, Bx, point, zero, jnp.asarray(jnp.inf), jnp.asarray(False), own)


def first_search(B: Average, x: PyTree, Bx: PyTree, scale: PyTree = None) -> Pace:
    """The first step to try, from the slope of B̂ between x and a point nearby, in the domain or not."""
    half = root(scale)
    near = subtract(x, times(scaled(scale, probe(over(x, half), times(half, Bx))), Bx))
    return first_pace(guess(over(subtract(near, x), half), times(half, subtract(B(near), Bx))))


def last_size(steps: Steps, state: State) -> Any:
    """The step sizes that led to a state whose `own` is a pace where they are searched for."""
    return scaled(steps.scale, state.own.used) if steps.searched else steps.at(state.k - 1)


def this_size(steps: Steps, state: State) -> PyTree:
    """The step sizes to take, or to try, from a state."""
    return scaled(steps.scale, state.own.step) if steps.searched else steps.at(state.k)


def settled(steps: Steps, verdict: Verdict, new: State, old: State) -> State:
    """The new state; where the step is searched for and was not accepted, the old one with a shorter step."""
    if not steps.searched:
        return new
    judgement = judged(old.own, verdict)
    return chosen(judgement, new._replace(own=judgement.pace), old._replace(own=judgement.pace))


def chosen(judgement: Judgement, new: State, old: State) -> State:
    """The new state where the attempt was accepted or is the last one, else the old one."""
    state = jax.tree.map(lambda a, b: jnp.where(judgement.accepted | judgement.stuck, a, b), new, old)
    return state._replace(stuck=judgement.stuck)


def forward_backward(A: Backward, x: PyTree, Bx: PyTree, step: PyTree) -> tuple[PyTree, PyTree]:
    """p = J_{ΓA}(y) with y = x − ΓB̂(x), and z = Γ⁻¹(y − p) ∈ A(p)."""
    y = subtract(x, times(step, Bx))
    p = A.resolvent(y, step)
    return p, over(subtract(y, p), step)


def no_bound_by_zeros(problem: Problem, proximal: bool) -> str:
    """Why d ≤ R/(μs) + 2ρ^K sup_D ‖x⁰ − x̂_D‖ is not known here; empty where it is. `proximal`: A must be a ∂g."""
    if problem.coupling is not None:
        return ("Strategies and multipliers together are never strongly monotone. For affine constraints use "
                "ez.PreconditionedForwardBackward(step=α, dual_step=β).")  # fmt: skip
    parts = jax.tree.leaves(problem.A.parts, is_leaf=is_part)
    if proximal and not all(isinstance(part, Set | Function) for part in parts):
        return "The bound holds for sets and functions, and A is another operator. Use ez.ForwardBackwardForward()."
    return ""
