"""Newton's finish: splitting methods find the face, semismooth Newton finds the point.

x solves 0 ∈ A(x) + B̂(x) exactly when r(x) = x − J_{ΓA}(y) = 0, y = x − ΓB̂(x), for any Γ > 0. With H = ∇B̂(x) and P an
element of the generalized Jacobian of J_{ΓA} at y (automatic differentiation of the projections and proxes),
    (I − P + PΓH) d = −r(x),    x ← x + d,
up to MOST steps. Each step is looked at through the output that it leads to, x̄ = J_{ΓA}(y) with z = Γ⁻¹(y − x̄) ∈ A(x̄):
‖z + B̂(x̄)‖ is a fact, and the best is kept. It is taken only where it halves the residual that the splitting method
reached, and the method then goes on from it: as its residual cannot be halved for ever above a tolerance, either the
finish ends the run, or it is the splitting method alone from some step on, which converges as it does without.
Where B̂ is affine and that did not end the run, a convex program is asked for a better start, once
(solve/complementarity.py).
Assumes that the parts of A can be differentiated (`differentiable`). Ends in finitely many steps near a solution where
B̂ is affine and A polyhedral. Cost a step: one factorisation (solve/systems.py).
Source: Qi & Sun, "A nonsmooth version of Newton's method", Math. Program. 58 (1993); OSQP's polish (2020).
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, flat_of, norm, pick, shaped_like, stacked, subtract
from epszero._types import Array, FloatArray, PyTree
from epszero.functions import Function
from epszero.methods import Method, State
from epszero.methods.steps import forward_backward, over
from epszero.oracles import Average
from epszero.problems.backward import Backward, is_part
from epszero.sets import Set
from epszero.solve.complementarity import Programme
from epszero.solve.loop import CONVERGED, ROUNDED, RUNNING, Run, judged_anew
from epszero.solve.systems import Dense, System

FIRST = 200  # steps of the splitting method before the first try; the next after twice as many
AT_ONCE = 1  # where B̂ is affine, and nothing bounds x, each projection takes a solver, or the program is linear
MOST = 12  # Newton steps at a time
FEW = 4  # where a convex program may still be asked
HALF = 0.5  # of the residual, or the point is not taken
NEAR = 1e-6  # of the first residual: from there each step should gain much, or it is done
TIMES = 8  # roundings that a residual may be made of
BACK = (1.0, 0.25, 1 / 64)  # shorter steps where B̂ does not exist at the whole one


class Candidate(NamedTuple):
    """A point of the domain, and what is known there."""

    x: PyTree  # x̄
    Bx: PyTree  # B̂(x̄)
    z: PyTree  # in A(x̄)
    residual: Array  # ‖z + B̂(x̄)‖
    r: PyTree  # x − x̄, at the x that led to it
    rounding: Array  # what the residual cannot be told from 0 below


def differentiable(A: Backward) -> bool:
    """Whether A is made of sets and functions of the library; those of a solver without a derivative say NaN."""
    parts = jax.tree.leaves(A.parts, is_leaf=is_part)
    return all(isinstance(part, Set | Function) and not part.foreign for part in parts)


class Finish:
    """Tries Newton's method on runs that go on, every now and then."""

    def __init__(
        self,
        A: Backward,
        averages: list[Average],
        methods: list[Method],
        systems: Sequence[System],
        programme: Programme | Callable[[FloatArray], Programme] | None = None,
        first: int = FIRST,
        finite: bool = False,
    ) -> None:
        self.A = A
        self.averages = averages
        self.methods = methods
        self.systems = systems
        self.programme = programme  # of all runs, or what makes one from H
        self.steps = [0] * len(averages)  # Newton steps that led to each output
        self.finite = finite  # B̂ is affine, A polyhedral: it ends in finitely many steps
        self.exact = [False] * len(averages)  # whether the output is a solution to rounding, therefore
        self.asked = [False] * len(averages)  # whether a convex program was asked already
        self.helped = [False] * len(averages)  # whether its answer was taken
        self.costly = first == AT_ONCE  # rather a convex program than further steps
        self.next = first

    def __call__(self, run: Run, done: int) -> Run:
        """The run, or the runs along a leading axis, each moved where that halves its residual."""
        while self.next <= done:
            self.next = max(FIRST, 2 * self.next)
        if np.ndim(run.code) == 0:
            return self._moved(0, run)
        run = to_numpy(run)
        return stacked([self._moved(i, pick(run, i)) for i in range(len(self.averages))])

    def last(self, i: int, run: Run) -> Run:
        """A run that did not end well: by Newton's method after all, or as it ended."""
        before = self.steps[i], self.helped[i], self.exact[i]
        moved: Run = to_numpy(self._moved(i, run._replace(code=np.asarray(RUNNING))))
        if int(moved.code) == CONVERGED:
            return moved
        self.steps[i], self.helped[i], self.exact[i] = before
        return run

    def _moved(self, i: int, run: Run) -> Run:
        if int(run.code) != RUNNING:
            return run
        state, system = run.state, self.systems[i]
        here = state.x if state.point is None else state.point
        if not isinstance(system, Dense) or self.programme is None or self.asked[i]:
            return self._taken(i, run, here)
        programme = self._programme(system, self.averages[i], here)
        by_program = (programme.linear or self.costly) and not programme.free
        moved = run if by_program else self._taken(i, run, here, FEW if programme.small else MOST)
        if int(moved.code) == RUNNING:
            self.asked[i] = True
            start = self._by_program(programme, state)
            better = moved if start is None else self._taken(i, moved, start)
            self.helped[i], moved = better is not moved, better
        return moved

    def _programme(self, system: Dense, B: Average, x: PyTree) -> Programme:
        assert self.programme is not None
        return self.programme if isinstance(self.programme, Programme) else self.programme(system.slopes(B, x))

    def how(self, i: int) -> str:
        """What led to the output, beside the method; empty where nothing did."""
        steps = f"{self.steps[i]} Newton step{'s' * (self.steps[i] != 1)}" if self.steps[i] else ""
        return " and ".join(part for part in ("a convex program" if self.helped[i] else "", steps) if part)

    def _taken(self, i: int, run: Run, start: PyTree, most: int = MOST) -> Run:
        """The run at the best point that Newton's method finds from `start`, if that halves the residual."""
        method, B, state = self.methods[i], self.averages[i], run.state
        wanted = np.inf if run.tol is None else float(run.tol)
        best, steps = self._best(B, start, method.last_step(state), self.systems[i], (most, wanted))
        if not float(best.residual) <= HALF * float(state.residual):
            return run
        self.steps[i] += steps
        self.exact[i] = self.finite and float(best.residual) <= TIMES * float(best.rounding)
        return judged_anew(method, self.A, B, run, best.x, best.z, best.residual)

    def _by_program(self, programme: Programme, state: State) -> PyTree | None:
        """The solution as a convex program has it."""
        if not np.isfinite(programme.H).all():
            return None
        Bx, at = flat_of(state.Bx), flat_of(state.x)
        q = Bx - programme.H @ at
        rounded = 2 * ROUNDED * (np.abs(Bx) + np.abs(programme.H) @ np.abs(at))
        answer = programme.solution(np.where(np.abs(q) > rounded, q, 0.0))  # HiGHS is slow where zeros are not quite 0
        return None if answer is None else shaped_like(state.x, answer)

    def _best(
        self, B: Average, x: PyTree, Gamma: PyTree, system: System, until: tuple[int, float]
    ) -> tuple[Candidate, int]:
        """The best candidate, and after how many steps it was found; `until` so many, or a residual that is wanted."""
        most, wanted = until
        best = here = looked(self.A, B, x, Gamma)
        found, first = 0, float(here.residual)
        for step in range(1, most + 1):
            rounding = float(best.rounding)
            if float(best.residual) <= max(rounding, min(TIMES * rounding, wanted)):
                break
            d = system.step(self.A, B, x, Gamma, here.r)
            if d is None:
                break
            x, here = self._ahead(B, x, Gamma, d)
            residual, least = float(here.residual), float(best.residual)
            if residual < least or not np.isfinite(least):
                best, found = here, step
            if not (np.isfinite(residual) and residual > 0) or (least < NEAR * first and residual > HALF * least):
                break  # it cannot go on, or gains nothing more
        return best, found

    def _ahead(self, B: Average, x: PyTree, Gamma: PyTree, d: FloatArray) -> tuple[PyTree, Candidate]:
        flat = flat_of(x)
        moved, here = x, None
        for share in BACK:
            moved = shaped_like(x, flat + share * d)
            here = looked(self.A, B, moved, Gamma)
            if np.isfinite(float(here.residual)):
                break
        assert here is not None
        return moved, here


@jax.jit
def looked(A: Backward, B: Average, x: PyTree, Gamma: PyTree) -> Candidate:
    """The output that one step of forward-backward from x leads to."""
    x_bar, z = forward_backward(A, x, B(x), Gamma)
    Bx_bar = B(x_bar)
    rounding = ROUNDED * (norm(over(x_bar, Gamma)) + norm(Bx_bar))
    return Candidate(x_bar, Bx_bar, z, norm(add(z, Bx_bar)), subtract(x, x_bar), rounding)
