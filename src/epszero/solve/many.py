"""`solve_many`: many data sets, one compiled run.

The averages B̂ of all trials are stacked along a new axis and the loop is vmapped over it. Every trial keeps its own
status: one that ends, well or badly, waits unchanged while the others go on.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._double import on_device, to_numpy
from epszero._points import pick, stack
from epszero._types import PyTree
from epszero.constants import Known
from epszero.methods import Method
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.solve.choice import instead, unproved
from epszero.solve.loop import Drive, advance_many, begin_many
from epszero.solve.progress import checked_progress, reporting
from epszero.solve.setup import averaged, check_oracle, checked_samples, starting_point
from epszero.solve.solution import Solution
from epszero.solve.solve import Plan
from epszero.solve.status import Status

FAILED = (Status.NO_STEP, Status.STALLED, Status.DIVERGED)  # another method may do better


@known_arguments
def solve_many(  # noqa: PLR0913  (the arguments of solve)
    problem: Problem,
    many_samples: Sequence[Any],
    method: Method | None = None,
    *,
    x0: PyTree = None,
    iterations: int | None = None,
    tol: float | None = None,
    progress: Any = None,
    trace: int | Iterable[int] | None = None,
) -> list[Solution]:
    """`solve` for each data set, in one vmapped run: a list of solutions in the same order.

    Nothing is raised for a trial that fails: its `status` says so, and the others are not touched by it.
    The arguments are those of `solve`; x0 is shared.
    """
    plan = Plan(problem, method, iterations, tol, trace)
    checked_progress(progress)
    if not isinstance(many_samples, list | tuple) or not many_samples:
        refuse("many_samples", "must be a list with at least one data set", "Pass [samples_1, samples_2, ...]")
    trials = [checked_samples(problem, samples) for samples in many_samples]
    if not problem.oracle.uncertain:
        refuse("many_samples", "are given, but nothing in the problem depends on them", "Use ez.solve")
    with jax.enable_x64(True):
        x, notes = starting_point(problem, trials[0], x0)
        notes += sorted({note for data in trials for note in check_oracle(problem, data, x)})
        x = on_device(x)
        averages = [averaged(problem, data, x) for data in trials]
        known = plan.known(averages[0], trials[0], x)
        known = known if known.fixed or known.vouched else replace(known, mu=None, kappa=None, theta=None)
        choice = plan.choice(known, x)
        notes += unproved(choice)
        solutions = _driven(plan, (choice.method, known), (averages, x), trials, notes, progress)
        failed = [
            i for i, one in enumerate(solutions) if one.status in (Status.NO_STEP, Status.STALLED, Status.DIVERGED)
        ]
        if choice.second is not None and failed:
            rest = [averages[i] for i in failed], x
            said = [*notes, instead(solutions[failed[0]].method)]
            again = _driven(plan, (choice.second, known), rest, [trials[i] for i in failed], said, progress)
            for i, one in zip(failed, again, strict=True):
                if one.status is Status.CONVERGED or one.residual < solutions[i].residual:
                    solutions[i] = one
    return solutions


def _driven(
    plan: Plan,
    chosen: tuple[Method, Known],
    given: tuple[list[Average], PyTree],
    trials: list[Any],
    notes: list[str],
    progress: Any,
) -> list[Solution]:
    """One method on all trials, those with averages of the same shape together."""
    averages, x = given
    method, known = chosen
    settled, A = on_device(method.prepared(plan.problem, x, known)), plan.problem.placed
    solutions: dict[int, Solution] = {}
    with reporting(progress, plan.steps - 1, f"{len(trials)} trials, {settled.description}") as report:
        for group in _alike(averages):
            B = stack([averages[i] for i in group])
            start = begin_many(settled, A, B, x, plan.tol)
            drive = Drive(plan.steps, plan.looks, (start, B))
            drive.run(
                lambda run, stops, B=B: advance_many(settled, A, B, run, stops),
                start,
                lambda run: report(int(np.max(run.state.k)) - 1, float(np.max(run.state.residual))),
            )  # fmt: skip
            run = to_numpy(drive.latest)
            for place, i in enumerate(group):
                residuals = [(look, float(r[place])) for look, r in zip(drive.seen, drive.residuals, strict=True)]
                solutions[i] = plan.finished(pick(run, place), residuals, settled, notes, trials[i])
    return [solutions[i] for i in range(len(trials))]


def _alike(averages: list[Average]) -> list[list[int]]:
    """Trials whose averages have the same shapes, and so can be stacked, together."""
    groups: dict[str, list[int]] = {}
    for i, average in enumerate(averages):
        leaves, structure = jax.tree.flatten(average)
        groups.setdefault(f"{structure} {[np.shape(leaf) for leaf in leaves]}", []).append(i)
    return list(groups.values())
