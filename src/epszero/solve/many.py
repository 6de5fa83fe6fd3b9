"""`solve_many`: many data sets, one compiled run for those that are alike."""

import warnings
from collections.abc import Iterable, Sequence

from epszero._checks import known_arguments, refuse
from epszero._double import double
from epszero._types import PyTree
from epszero.methods import Method
from epszero.problems import ConvexityWarning, Problem
from epszero.solve.attempt import solutions_of, trial_of
from epszero.solve.kinks import answered
from epszero.solve.progress import Report as Progress
from epszero.solve.progress import checked_progress
from epszero.solve.request import Request
from epszero.solve.setup import GivenSamples, checked_samples, setting_of
from epszero.solve.solutions import Solutions


@known_arguments
def solve_many(  # noqa: PLR0913  (the arguments of solve)
    problem: Problem,
    many_samples: Sequence[GivenSamples],
    method: Method | None = None,
    *,
    x0: PyTree = None,
    iterations: int | None = None,
    tol: float | None = None,
    progress: bool | Progress | None = None,
    trace: int | Iterable[int] | None = None,
) -> Solutions:
    """`solve` for each data set, in one vmapped run: a sequence of solutions in the same order.

    What they have in common: `.x` (stacked), `.residuals`, `.statuses`, and `.certify(delta)` for all of them.
    Nothing is raised for a trial that fails: its `status` says so, and the others are not touched by it.
    The arguments are those of `solve`; x0 is shared.
    """
    request = Request(problem, method, iterations, tol, trace)
    checked_progress(progress)
    if not isinstance(many_samples, list | tuple) or not many_samples:
        refuse("many_samples", "must be a list with at least one data set", "Pass [samples_1, samples_2, ...]")
    every = [checked_samples(problem, samples) for samples in many_samples]
    if not problem.oracle.uncertain:
        refuse("many_samples", "are given, but nothing in the problem depends on them", "Use ez.solve")
    with double():
        settings = [setting_of(problem, samples, None, x0) for samples in every]
        for bent in dict.fromkeys(bent for setting in settings for bent in setting.examination.bent):
            warnings.warn(str(bent), ConvexityWarning, stacklevel=3)
        direct = [answered(request, setting) for setting in settings]
        trials = [trial_of(request, setting) for setting, one in zip(settings, direct, strict=True) if one is None]
        title = f"{len(trials)} trials, {trials[0].choice.method.description}" if trials else ""
        others = iter(solutions_of(request, trials, progress, title) if trials else [])
        return Solutions(next(others) if one is None else one for one in direct)
