"""`solve`: from a problem and samples to a solution."""

import warnings
from collections.abc import Iterable

from epszero._checks import known_arguments, one_of, one_positive, refuse
from epszero._double import double
from epszero._types import PyTree
from epszero.methods import Method
from epszero.problems import ConvexityWarning, Problem
from epszero.samples import Samples
from epszero.solve.attempt import solutions_of, trial_of
from epszero.solve.choice import refuse_disproved
from epszero.solve.kinks import answered
from epszero.solve.progress import Report as Progress
from epszero.solve.progress import checked_progress
from epszero.solve.request import Request
from epszero.solve.setup import GivenSamples, checked_samples, setting_of, values_of
from epszero.solve.solution import Solution
from epszero.solve.status import SolveError, Status

HOLDOUT_SEED = 1752132964  # which samples are kept aside must not depend on their values, so nobody draws them with it


@known_arguments
def solve(  # noqa: PLR0913  (each is one thing to ask)
    problem: Problem,
    samples: GivenSamples = None,
    method: Method | None = None,
    *,
    x0: PyTree = None,
    iterations: int | None = None,
    tol: float | None = None,
    holdout: float | None = None,
    progress: bool | Progress | None = None,
    trace: int | Iterable[int] | None = None,
    throw: bool = True,
) -> Solution:
    """Find x ∈ dom A and z ∈ A(x) with z + B̂(x) ≈ 0, B̂ the average of the problem's oracle over `samples`.

    `iterations=K` takes the steps k = 0, …, K and returns x^{K+1}, the paper's output; `tol` stops as soon as the
    residual ‖z + B̂(x)‖ is that small; with neither, tol is 1e-9 of the size of B̂ near x, or what float64 can show where
    that is more (solve/loop.py, solve/rounding.py).
    `method=None` chooses method and step from what is known of B̂ (all, where it is affine): forward-backward where it
    is strongly monotone or cocoercive, its preconditioned form for shared affine constraints, forward-backward-forward
    where it is merely monotone, the adaptive golden ratio where nothing more is known; and Newton's method, or a convex
    program, finishes what they begin (solve/newton.py), unless `iterations` asks for so many steps. What is not proved
    is told in `solution.notes`. An inclusion or a game that is shown not to be monotone is refused; `throw=False` runs
    it all the same. A loss with kinks that are recognised is solved as one programme (solve/kinks.py).
    `holdout=0.3` keeps 30 % of the samples aside (solution.holdout), unseen by the run. `trace`: iterations at which to
    record the residual (a list, or every n-th; by default 1, 2, …, 10, 20, …, 100, …). `progress=True` shows a bar;
    a function is called with (k, residual).
    A run that does not reach `tol` raises `SolveError`, which carries the solution; `throw=False` returns it instead.
    Ctrl-C returns the last point reached.
    """
    request = Request(problem, method, iterations, tol, trace)
    checked_progress(progress)
    one_of("throw", throw, (True, False), "Pass one of the two")
    data, kept = _kept_aside(checked_samples(problem, samples), holdout)
    with double():
        setting = setting_of(problem, data, kept, x0)
        for bent in setting.examination.bent:
            warnings.warn(str(bent), ConvexityWarning, stacklevel=3)
        solution = answered(request, setting)
        if solution is None:
            trial = trial_of(request, setting)
            if throw:
                refuse_disproved(problem, trial.choice)
            (solution,) = solutions_of(request, [trial], progress)
        if solution.status is Status.NOT_FINITE:
            problem.refuse_undefined(values_of(data), setting.point)
    short = solution.status is Status.ITERATIONS_USED_UP and request.wants_tol
    if throw and (solution.status.is_failure or short):
        raise SolveError(solution.message, solution)
    return solution


def _kept_aside(
    samples: Samples | list[Samples] | None, holdout: float | None
) -> tuple[Samples | list[Samples] | None, Samples | None]:
    if holdout is None:
        return samples, None
    fraction = one_positive("holdout", holdout)
    if not 0 < 1 - fraction < 1:  # as float64 has it
        refuse(
            "holdout", f"is the fraction of samples to keep aside, in (0, 1), but it is {fraction:g}", "Pass 0.3, say"
        )
    if not isinstance(samples, Samples):
        refuse("holdout", "needs one data set to divide", "Leave it out, or pass one Samples")
    used, kept = samples.split(1 - fraction, seed=HOLDOUT_SEED)
    return used, kept
