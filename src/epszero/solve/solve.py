"""`solve`: from a problem and samples to a solution."""

from collections.abc import Iterable
from typing import Any

import equinox as eqx
import jax
import numpy as np

from epszero._checks import count, known_arguments, positive, refuse
from epszero._double import on_device, to_numpy
from epszero._points import inner, norm, subtract
from epszero._types import PyTree
from epszero.constants import Known, declared_only, known_of
from epszero.methods import Method, State
from epszero.oracles import Average, PrimalDual
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.solve.choice import Choice, chosen, instead, refuse_doubts, unproved
from epszero.solve.loop import CONVERGED, DIVERGED, NOT_FINITE, STALLED, STUCK, Drive, Run, advance_one, begin_one
from epszero.solve.progress import checked_progress, reporting
from epszero.solve.setup import averaged, check_oracle, checked_samples, starting_point, supports_of, values_of
from epszero.solve.solution import Solution, Trace
from epszero.solve.status import SolveError, Status

MOST_ITERATIONS = 1_000_000  # where the user sets none
PROOF = 1.0  # seconds to prove that a nonlinear B is monotone
HOLDOUT_SEED = 0  # which samples are kept aside must not depend on their values

ENDINGS = {CONVERGED: Status.CONVERGED, DIVERGED: Status.DIVERGED, STALLED: Status.STALLED,
           NOT_FINITE: Status.NOT_FINITE, STUCK: Status.NO_STEP}  # fmt: skip


@known_arguments
def solve(  # noqa: PLR0913  (fixed by DESIGN)
    problem: Problem,
    samples: Any = None,
    method: Method | None = None,
    *,
    x0: PyTree = None,
    iterations: int | None = None,
    tol: float | None = None,
    holdout: float | None = None,
    progress: Any = None,
    trace: int | Iterable[int] | None = None,
    throw: bool = True,
) -> Solution:
    """Find x ∈ dom A and z ∈ A(x) with z + B̂(x) ≈ 0, B̂ the average of the problem's oracle over `samples`.

    `iterations=K` takes the steps k = 0, …, K and returns x^{K+1}, the paper's output; `tol` stops as soon as the
    residual ‖z + B̂(x)‖ is that small; with neither, tol is 1e-9·min(max(1, ‖B̂(x)‖), max(1, ‖x‖)/γ).
    `method=None` chooses method and step from what is known of B̂ (all, where it is affine): forward-backward where it
    is strongly monotone or cocoercive, its preconditioned form for shared affine constraints, forward-backward-forward
    where it is merely monotone. Where B is not proved to be monotone, and nobody vouches for it, that is refused;
    `throw=False` runs and says so in `solution.notes`.
    `holdout=0.3` keeps 30 % of the samples aside (solution.holdout), unseen by the run. `trace`: iterations at which to
    record the residual (a list, or every n-th; by default 1, 2, …, 10, 20, …, 100, …). `progress=True` shows a bar;
    a function is called with (k, residual).
    A run that does not reach `tol` raises `SolveError`, which carries the solution; `throw=False` returns it instead.
    Ctrl-C returns the last point reached.
    """
    plan = Plan(problem, method, iterations, tol, trace)
    checked_progress(progress)
    data = checked_samples(problem, samples)
    data, kept = _kept_aside(data, holdout)
    with jax.enable_x64(True):
        x, notes = starting_point(problem, data, x0)
        notes = notes + check_oracle(problem, data, x)
        B, x = on_device((averaged(problem, data, x), x))
        A = problem.placed
        known = plan.known(B, data, x)
        choice = plan.choice(known, x)
        if throw:
            refuse_doubts(choice)
        notes += unproved(choice)
        run, residuals, settled, interrupted = _driven(plan, (choice.method, known), (A, B, x), progress)
        if choice.second is not None and int(run.code) in (STUCK, STALLED, DIVERGED):
            again = _driven(plan, (choice.second, known), (A, B, x), progress)
            if int(again[0].code) == CONVERGED or again[0].state.residual < run.state.residual:
                notes.append(instead(settled))
                run, residuals, settled, interrupted = again
        if ENDINGS.get(int(run.code), Status.ITERATIONS_USED_UP).is_failure:
            notes += not_monotone(B, x, run.state)
    solution = plan.finished(run, residuals, settled, notes, data, interrupted, kept)
    return plan.answer(solution, throw)


def not_monotone(B: Average, x: PyTree, state: State) -> list[str]:
    """A note where B is seen not to be monotone between the start and the end."""
    end = state.x if state.point is None else state.point
    change, d = to_numpy(_differences(B, x, end))
    along, size = float(inner(change, d)), float(norm(change) * norm(d))
    if not along < -1e-9 * size:
        return []
    return [f"B is not monotone: ⟨B(x) − B(x0), x − x0⟩ = {along:.3g} between the start and the end."]


@eqx.filter_jit
def _differences(B: Average, x: PyTree, end: PyTree) -> tuple[PyTree, PyTree]:
    return subtract(B(end), B(x)), subtract(end, x)


def _driven(
    plan: "Plan", chosen: tuple[Method, Known], given: tuple[Any, Any, PyTree], progress: Any
) -> tuple[Run, list[tuple[int, float]], Method, bool]:
    """One method, from x⁰ to its end: the run, the residuals on the way, the method as settled, and whether it was
    interrupted."""
    A, B, x = given
    method, known = chosen
    settled = on_device(method.prepared(plan.problem, x, known))
    run = begin_one(settled, A, B, x, plan.tol)
    drive = Drive(plan.steps, plan.looks, (run, B))
    interrupted = False
    with reporting(progress, plan.steps - 1, settled.description) as report:
        try:
            drive.run(
                lambda run, stops: advance_one(settled, A, B, run, stops), run,
                lambda run: report(int(run.state.k) - 1, float(run.state.residual)),
            )  # fmt: skip
        except KeyboardInterrupt:
            if int(drive.latest.state.k) == 0:
                raise
            interrupted = True
    run = to_numpy(drive.latest)
    residuals = [(look, float(r)) for look, r in zip(drive.seen, drive.residuals, strict=True)]
    return run, residuals, settled, interrupted


class Plan:
    """What was asked for: checked before anything is computed."""

    def __init__(self, problem: Any, method: Any, iterations: Any, tol: Any, trace: Any) -> None:
        if not isinstance(problem, Problem):
            refuse("problem", f"must be a problem such as ez.Inclusion, but it is a {type(problem).__name__}",
                   "Build one from your functions and sets")  # fmt: skip
        if not (method is None or isinstance(method, Method)):
            refuse("method", f"must be a method such as ez.ForwardBackward(), but it is {method!r}",
                   "Pass an object of that kind, or leave it out")  # fmt: skip
        self.problem: Problem = problem
        self.method: Method | None = method
        self.wants_tol = tol is not None or iterations is None
        self.steps = 1 + (MOST_ITERATIONS if iterations is None else count("iterations", iterations))
        self.tol = None if self.wants_tol else np.array(-1.0)  # None: the loop's own choice; negative: never stop early
        if tol is not None:
            self.tol = positive("tol", tol, strict=False)
        self.looks = [k + 1 for k in _looks(trace, self.steps)]  # counted in steps taken

    def known(self, B: Average, data: Any, x: PyTree) -> Known:
        """What is known of B̂; only what is declared where the user chose method and step."""
        if self.method is not None and not self.method.open:
            return declared_only(self.problem)
        return self.all_known(B, data, x)

    def all_known(self, B: Average, data: Any, x: PyTree) -> Known:
        """All that can be said of B̂."""
        point = x.x if isinstance(x, PrimalDual) else x
        budget = PROOF if self.method is None else 0.0
        return known_of(self.problem, B, values_of(data), point, supports_of(self.problem, data), budget)

    def choice(self, known: Known, x: PyTree) -> Choice:
        """The method to run: the user's, or the one that suits what is known."""
        if self.method is not None:
            return Choice(self.method, None, [])
        return chosen(self.problem, known, x.x if isinstance(x, PrimalDual) else x)

    def finished(
        self, run: Run, residuals: list[tuple[int, float]], settled: Method, notes: list[str], data: Any,
        interrupted: bool = False, kept: Samples | None = None,
    ) -> Solution:  # fmt: skip
        """The solution that a run ended with."""
        state, code = run.state, int(run.code)
        last = int(state.k)
        wanted = {look for look in self.looks if look < last}
        kept_looks = [(look, r) for look, r in residuals if look in wanted] + [(last, float(state.residual))]
        trace = Trace(np.array([look - 1 for look, _ in kept_looks]), np.array([r for _, r in kept_looks]))
        unfinished = Status.INTERRUPTED if interrupted else Status.ITERATIONS_USED_UP
        with jax.enable_x64(True):
            step = to_numpy(settled.last_step(state))
        return Solution(
            point=state.x if state.point is None else state.point,
            element=state.z, residual=float(state.residual), iterations=last - 1,
            status=ENDINGS.get(code, unfinished), notes=tuple(notes),
            trace=trace, step=step, problem=self.problem, samples=data, method=settled, holdout=kept,
            fixed_iterations=not self.wants_tol,
        )  # fmt: skip

    def answer(self, solution: Solution, throw: bool) -> Solution:
        """The solution, or an error that carries it where the run did not end as asked."""
        short = solution.status is Status.ITERATIONS_USED_UP and self.wants_tol
        if throw and (solution.status.is_failure or short):
            raise SolveError(solution.message, solution)
        return solution


def _kept_aside(samples: Any, holdout: float | None) -> tuple[Any, Samples | None]:
    if holdout is None:
        return samples, None
    fraction = float(positive("holdout", holdout))
    if fraction >= 1:
        refuse(
            "holdout", f"is the fraction of samples to keep aside, in (0, 1), but it is {fraction:g}", "Pass 0.3, say"
        )
    if not isinstance(samples, Samples):
        refuse("holdout", "needs one data set to divide", "Leave it out, or pass one Samples")
    used, kept = samples.split(1 - fraction, seed=HOLDOUT_SEED)
    return used, kept


def _looks(trace: Any, steps: int) -> list[int]:
    """Iterations k at which to record the residual."""
    if trace is None:
        return [digit * 10**power for power in range(len(str(steps))) for digit in range(1, 10)]
    if isinstance(trace, int | np.integer):
        return list(range(0, steps, count("trace", trace, least=1)))
    if not isinstance(trace, Iterable):
        refuse("trace", f"must be a list of iterations or one number, but it is {trace!r}", "Pass trace=100, say")
    return [count("trace", k) for k in trace]
