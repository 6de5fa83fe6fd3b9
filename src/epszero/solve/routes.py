"""What finishes a run: the systems of Newton's method, and the convex program of an affine problem.

Where the Jacobian is known beforehand, from the problem alone, so are the program and all that is made of it but q.
Then it is known before the first step, too, what should be tried early: one Newton step where nothing bounds x, which
solves the problem; the program where each projection takes a solver (polyhedra); and the linear program where B̂ only
turns, as in a zero-sum game.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from epszero._memory import remembered, shape_of
from epszero._types import FloatArray, PyTree
from epszero.functions import Function
from epszero.methods import Method
from epszero.oracles import Average
from epszero.problems import AggregativeGame, Problem
from epszero.problems.backward import Backward, is_part
from epszero.problems.feasible import is_conic
from epszero.sets import Set
from epszero.sets.conic import ConicForm
from epszero.solve.complementarity import Programme, domain_form
from epszero.solve.newton import AT_ONCE, FIRST, Finish, differentiable
from epszero.solve.packing import Stacking
from epszero.solve.request import Request
from epszero.solve.setup import Setting
from epszero.solve.systems import Dense, system_for


def finish_for(
    request: Request,
    setting: Setting,
    stacking: Stacking | None,
    seen: tuple[Backward, PyTree],
    runs: tuple[list[Method], list[Average]],
) -> Finish | None:
    """Newton's, where the user left the way to the answer to us. `seen`: A and x as the runs see them."""
    problem, facts, (A, x), (methods, averages) = request.problem, setting.facts, seen, runs
    if request.method is not None or not request.wants_tol or not differentiable(problem.A):
        return None
    affine = facts.structure.affine and (problem.coupling is None or problem.coupling.affine)
    rows = isinstance(problem, AggregativeGame) and problem.coupling is None
    systems = [system for system in (system_for(x, rows, affine) for _ in averages) if system is not None]
    if len(systems) < len(averages):  # too large for all of them
        return None
    start = setting.x
    finite = affine and remembered(problem, ("polyhedral", shape_of(start)), lambda: _polyhedral(problem, start))
    if not affine or not isinstance(systems[0], Dense):
        return Finish(A, averages, methods, systems, finite=finite)
    programme = _programme(problem, setting, stacking)
    first = FIRST
    if isinstance(programme, Programme):
        early = programme.linear or not remembered(problem, "by formula", lambda: _by_formula(problem.A))
        first = AT_ONCE if programme.free or (programme.polyhedral and programme.small and early) else FIRST
        return Finish(A, averages, methods, [Dense(affine, programme.H) for _ in averages], programme, first, finite)
    return Finish(A, averages, methods, systems, programme, first, finite)


def _polyhedral(problem: Problem, x: PyTree) -> bool:
    """Whether all sets are polyhedra; what is no set is taken for none."""

    def of(part: Any, leaf: Any) -> bool:
        if not isinstance(part, Set):
            return False
        rank, shape = part.rank, np.shape(leaf) or (1,)
        one = part.member((0,) * len(part.batch_shape)) if part.batch_shape else part
        size = int(np.prod(shape[len(shape) - rank :]))
        return is_conic(one, size) and all(kind in ("Zero", "Nonnegative") for kind, _, _ in one.conic(size).kinds())

    return all(jax.tree.leaves(problem.placed.each(of, x)))


def _by_formula(A: Backward) -> bool:
    """Whether no projection takes a solver of its own."""
    parts = jax.tree.leaves(A.parts, is_leaf=is_part)
    return all(isinstance(part, Set | Function) and part.exact for part in parts)


def _programme(
    problem: Problem, setting: Setting, stacking: Stacking | None
) -> Programme | Callable[[FloatArray], Programme] | None:
    """The program, where H is known; else what makes it from H; None where the sets have no conic form."""
    x, stacked = setting.x, stacking is not None
    form = remembered(problem, ("domain form", shape_of(x), stacked), lambda: _form(problem, x, stacking))
    if form is None:
        return None
    J = setting.facts.jacobian if problem.coupling is None else None
    if J is None:
        return lambda H: Programme(form, H)
    key = "program", setting.facts.shapes, stacked
    return remembered(problem, key, lambda: Programme(form, _reordered(J.jacobian, x, stacking)))


def _reordered(J: FloatArray, x: PyTree, stacking: Stacking | None) -> FloatArray:
    return J if stacking is None else J[np.ix_(stacking.order(x), stacking.order(x))]


def _form(problem: Problem, x: PyTree, stacking: Stacking | None) -> ConicForm | None:
    """The domain, with its columns in the order in which the run sees the entries of x."""
    form = domain_form(problem.placed, x)
    if form is None or stacking is None:
        return form
    order = np.arange(form.A.shape[1])
    strategies = stacking.order(x)
    order[: len(strategies)] = strategies
    return replace(form, A=form.A.tocsc()[:, order].tocsr())
