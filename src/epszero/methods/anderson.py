"""Safeguarded Anderson acceleration, type II, of any fixed-point method T. Memory 0 is the method itself.

With f_i = T(x_i) − x_i, ΔF = (f_{k−m+1} − f_{k−m}, …, f_k − f_{k−1}) and ΔT the same of T(x_i),
    c = argmin ‖f_k − ΔF c‖,    x_{k+1} = T(x_k) − ΔT c.
Safeguard: the step from an accelerated x is kept only where its residual ‖z + B̂(output)‖ is below 0.999 of the least
so far; else the run goes back to T(x) of the last point that was kept, whose step is kept in any case. So if
accelerated points are kept for ever, the least residual tends to 0, and if they are not, it is T alone from some step
on, which converges as it does without. Accelerated points may lie outside the domain of A; outputs never do. Where B̂
does not exist at one, its residual is not a number, and it is not kept.
Cost: a step of T, one B̂ more, and m² inner products. The normal equations have unit columns and a ridge of 1e-12.
Stability: none known, as the coefficients depend on the data.
Source: Anderson (1965); Walker & Ni, SIAM J. Numer. Anal. 49 (2011); for the safeguard Zhang, O'Donoghue &
Boyd, SIAM J. Optim. 30 (2020).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from epszero._checks import count, known_arguments
from epszero._points import flat, shaped, subtract
from epszero._types import Array, PyTree
from epszero.facts import AverageFacts, StepRange
from epszero.methods._base import Method, State
from epszero.methods.relaxed import map_within, method_within
from epszero.methods.steps import Steps
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward

LOWER = 0.999  # of the least residual: an accelerated point that does not reach it is not kept
RIDGE = 1e-12


class Memory(NamedTuple):
    """What is remembered of the points that were kept."""

    own: PyTree  # T's, at x
    Tx: PyTree  # T(x) of the last point that was kept
    f: Array  # T(x) − x there, flat
    dF: Array  # columns of ΔF, as rows; those not yet known are 0
    dT: Array  # columns of ΔT, as rows
    kept: Array  # how many points were kept
    ahead: Array  # whether x is accelerated
    least: Array  # the least residual


class Anderson(Method):
    """x⁺ = T(x) − ΔT c, c = argmin ‖f − ΔF c‖, with T a step of the method `of`; kept where it lowers the residual.

    `of`: as in `ez.Relaxed`. `memory`: how many differences are kept.
    """

    static = ("memory", *Method.texts)
    of: Method
    memory: int
    description: str

    @known_arguments
    def __init__(self, of: Method, memory: int = 5) -> None:
        self.of = method_within(of)
        self.memory = count("memory", memory)
        self.description = f"{of.description}, Anderson acceleration with memory {memory}"

    @property
    def open(self) -> bool:
        return self.of.open

    @property
    def settings(self) -> dict[str, Any]:
        return {"of": self.of, "memory": self.memory}

    @property
    def steps(self) -> Steps | None:
        """Those of T, where it has some."""
        return getattr(self.of, "steps", None)

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "Anderson":
        of = map_within(self.of, problem, x, known)
        return self._settled(of=of, description=f"{of.description}, Anderson acceleration with memory {self.memory}")

    def limits(self, problem: Problem, x: PyTree, known: AverageFacts) -> tuple[float, StepRange] | None:
        return self.of.limits(problem, x, known)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        state = self.of.init(A, B, x)
        if self.memory == 0:
            return state
        f = jnp.zeros_like(flat(x))
        rows, no = jnp.zeros((self.memory, f.size)), jnp.asarray(False)
        own = Memory(state.own, x, f, rows, rows, jnp.asarray(0), no, jnp.asarray(jnp.inf))
        return state._replace(point=x, own=own)

    def step(self, A: Backward, B: Average, state: State) -> State:
        if self.memory == 0:
            return self.of.step(A, B, state)
        before: Memory = state.own
        moved = self.of.step(A, B, state._replace(own=before.own))
        keep = ~before.ahead | (moved.residual <= LOWER * before.least)
        new, x_new = self._remembered(before, state.x, moved)
        old = before._replace(ahead=jnp.asarray(False))
        memory, x_next = _either(keep, (new, x_new), (old, before.Tx))
        output = (moved.x if moved.point is None else moved.point, moved.z, moved.residual)
        point, z, residual = _either(keep, output, (state.point, state.z, state.residual))
        at = self.of.init(A, B, x_next)
        return State(state.k + 1, x_next, at.Bx, point, z, residual, moved.stuck, memory._replace(own=at.own))

    def last_step(self, state: State) -> PyTree:
        return self.of.last_step(state._replace(own=state.own.own) if self.memory else state)

    def _remembered(self, before: Memory, x: PyTree, moved: State) -> tuple[Memory, PyTree]:
        """The memory with x in it, and the accelerated point."""
        Tx, f = flat(moved.x), flat(subtract(moved.x, x))
        first = before.kept == 0
        place = jnp.maximum(before.kept - 1, 0) % self.memory
        dF = jnp.asarray(before.dF).at[place].set(jnp.where(first, 0.0, f - before.f))
        dT = jnp.asarray(before.dT).at[place].set(jnp.where(first, 0.0, Tx - flat(before.Tx)))
        lengths = jnp.sqrt(jnp.sum(dF**2, axis=1))
        unit = dF / jnp.where(lengths > 0, lengths, 1.0)[:, None]
        gram = unit @ unit.T + RIDGE * jnp.eye(self.memory) + jnp.diag(jnp.where(lengths > 0, 0.0, 1.0))
        c = jnp.linalg.solve(gram, unit @ f) / jnp.where(lengths > 0, lengths, 1.0)
        ahead = ~first & jnp.all(jnp.isfinite(c))
        x_next = shaped(x, jnp.where(ahead, Tx - jnp.where(ahead, c, 0.0) @ dT, Tx))
        least = jnp.minimum(before.least, moved.residual)
        return Memory(before.own, moved.x, f, dF, dT, before.kept + 1, ahead, least), x_next


def _either(keep: Array, new: PyTree, old: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(keep, a, b), new, old)
