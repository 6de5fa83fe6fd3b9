"""The one driver of `solve` and `solve_many`: from data sets to solutions, each by the method that suits it.

What is known of each average, and so its method and step, does not depend on the others. Runs whose compiled programs
are alike go together, along a new axis; a run that ends, well or badly, waits unchanged while the others go on.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._double import on_device, to_numpy
from epszero._memory import key_of, remembered
from epszero._points import entries, pick, shared_apart, stacked
from epszero._types import PyTree
from epszero.facts import AverageFacts, average_facts, declared_only
from epszero.methods import Method, State
from epszero.oracles import Average, strategies
from epszero.problems import Problem
from epszero.problems.refuted import contradicted
from epszero.samples import Samples
from epszero.solve.choice import Choice, chosen, fallback_note
from epszero.solve.diagnosis import likely_reasons
from epszero.solve.kinks import AsProgramme, at_a_jump, kink_note
from epszero.solve.loop import (
    CONVERGED,
    DIVERGED,
    NOT_FINITE,
    RELATIVE,
    RUNNING,
    STALLED,
    STUCK,
    Drive,
    Run,
    advance_many,
    advance_one,
    set_off_many,
    set_off_one,
)
from epszero.solve.packing import stacking_of
from epszero.solve.progress import reporting
from epszero.solve.request import Request
from epszero.solve.rounding import rounding_floor, too_fine
from epszero.solve.routes import finish_for
from epszero.solve.setup import Setting, averaged, setting_of, values_of, with_samples
from epszero.solve.solution import Solution, Trace
from epszero.solve.status import Status
from epszero.solve.units import entry_steps
from epszero.solve.witness import not_monotone

ENDINGS = {
    CONVERGED: Status.CONVERGED,
    DIVERGED: Status.DIVERGED,
    STALLED: Status.STALLED,
    NOT_FINITE: Status.NOT_FINITE,
    STUCK: Status.NO_STEP,
}
SMALL = 100_000  # numbers of an average up to which it need not be moved beforehand
FAILED = (STUCK, STALLED, DIVERGED)  # another method may do better


class Trial(NamedTuple):
    """One data set: what was found before its run, and what is known of its average."""

    setting: Setting
    B: Average
    known: AverageFacts
    choice: Choice


class Attempt(NamedTuple):
    """What one method made of one trial."""

    run: Run
    residuals: list[tuple[int, float]]  # (step, residual) on the way
    settled: Method
    interrupted: bool
    finished: str = ""  # by what other than the method, where it was
    exact: bool = False  # finished so, and a solution to rounding
    floor: float | None = None  # what float64 can show of the residual, where the run ended there and not at tol


def trial_of(request: Request, setting: Setting) -> Trial:
    """The average, what is known of it, and the method to run: the user's, or the one that suits."""
    problem, x = request.problem, setting.x
    draws = request.method is not None and request.method.needs_samples
    B = (with_samples if draws else averaged)(problem, setting.samples, x)
    known, units = _known(request, setting, B), setting.examination.unit_steps
    if request.method is None and request.wants_tol and units is None:
        units = _units(problem, setting, B)
    known = known if units is None else _with_units(known, units)
    against = contradicted(problem, x, jax.tree.map(np.zeros_like, x))
    if request.method is not None:
        told = f"A is not monotone, or not what it says: {against}."
        noted = setting._replace(notes=(*setting.notes, told)) if against else setting
        return Trial(noted, B, known, Choice(request.method, None, ""))
    choice = chosen(problem, known, setting.point)
    if against:
        choice = choice._replace(doubt=f"A is not monotone, or not what it says: {against}", A_disproved=True)
    return Trial(setting, B, known, choice)


def _units(problem: Problem, setting: Setting, B: Average) -> PyTree:
    """Steps of single entries, where their units differ; what does not depend on the data is worked out once."""
    J = setting.facts.jacobian
    if J is None and problem.oracle.uncertain:
        return entry_steps(problem, B, setting.x, None)
    jacobian = None if J is None else J.jacobian
    return remembered(
        problem, ("units of entries", key_of(setting.x)), lambda: entry_steps(problem, B, setting.x, jacobian)
    )


def _with_units(known: AverageFacts, units: PyTree) -> AverageFacts:
    """One object for the same facts and units, for those who remember what they make of it."""
    return remembered(known, ("with units", key_of(units)), lambda: replace(known, unit_steps=units))


def _known(request: Request, setting: Setting, B: Average) -> AverageFacts:
    """All that can be said of B̂; only what is declared where the user chose method and step."""
    if request.method is not None and not request.method.open:
        return declared_only(request.problem)
    data = values_of(setting.samples)
    return average_facts(setting.facts, B, data, setting.point, prove=request.method is None)


def solutions_of(request: Request, trials: Sequence[Trial], progress: Any, title: str = "") -> list[Solution]:
    """One for each trial, in their order: by its first method, or by its second where that does better."""
    first = _attempts(request, [(trial, trial.choice.method) for trial in trials], progress, title)
    again = [i for i, one in enumerate(first) if trials[i].choice.second is not None and int(one.run.code) in FAILED]
    second = _attempts(request, [(trials[i], _second(trials[i])) for i in again], progress, title) if again else []
    notes: dict[int, str] = {}
    for i, one in zip(again, second, strict=True):
        if int(one.run.code) == CONVERGED or one.run.state.residual < first[i].run.state.residual:
            notes[i] = fallback_note(first[i].settled)
            first[i] = one
    return [
        _finished(request, trial, one, notes.get(i)) for i, (trial, one) in enumerate(zip(trials, first, strict=True))
    ]


def _second(trial: Trial) -> Method:
    assert trial.choice.second is not None
    return trial.choice.second


def _attempts(request: Request, given: list[tuple[Trial, Method]], progress: Any, title: str) -> list[Attempt]:
    """Each trial by its method; those whose programs are alike together."""
    settled = [_settled(request, trial, method) for trial, method in given]
    groups: dict[Any, list[int]] = {}
    for i, ((trial, _), method) in enumerate(zip(given, settled, strict=True)):
        leaves, structure = jax.tree.flatten((method.bare(), trial.B))
        groups.setdefault((structure, tuple(np.shape(leaf) for leaf in leaves)), []).append(i)
    found: dict[int, Attempt] = {}
    with reporting(progress, request.steps - 1, title or settled[0].description) as report:
        for group in groups.values():
            trials = [given[i][0] for i in group]
            found |= dict(zip(group, _driven(request, trials, [settled[i] for i in group], report), strict=True))
    return [found[i] for i in range(len(given))]


def _settled(request: Request, trial: Trial, method: Method) -> Method:
    """The method with its parameters settled: once for all trials of which the same is known."""

    def prepared() -> Method:
        return on_device(method.prepared(request.problem, trial.setting.x, trial.known))

    if request.method is not None:  # with settings of its own
        return prepared()
    return remembered(trial.known, ("settled", type(method), trial.setting.facts.shapes), prepared)


def _driven(
    request: Request, trials: list[Trial], settled: list[Method], report: Callable[[int, float], None] | None
) -> list[Attempt]:
    """Runs with programs alike, from x⁰ to their ends."""
    side, x, alone = request.problem.placed, trials[0].setting.x, len(trials) == 1
    methods, averages = [one.bare() for one in settled], [trial.B for trial in trials]
    stacking = stacking_of(side, x, methods)
    if stacking is not None:  # many small blocks: stacked, as long as the run lasts
        averages, methods = stacking.averages(averages, x), stacking.packed_within(methods)
    A = side if stacking is None else stacking.side(side, x)
    x = x if stacking is None else stacking.pack(x)
    apart, same = shared_apart(averages)
    method, average = (methods[0], averages[0]) if alone else (stacked(methods), stacked(apart))
    B, same = (on_device(one) if entries(one) > SMALL else one for one in (average, same))
    set_off, advance = (set_off_one, advance_one) if alone else (set_off_many, advance_many)
    rest = () if alone else (same,)
    drive = Drive(request.steps, request.recorded_at, (x, x, x, averages))
    finish = finish_for(request, trials[0].setting, stacking, (A, x), (methods, averages))

    def onward(run: Run | None, stops: Any) -> tuple[Run, Any]:
        if run is None:
            return set_off(method, A, B, x, request.tol, stops, *rest)
        return advance(method, A, B, run, stops, *rest)

    def told(run: Run) -> None:
        k, residual = (np.max(np.asarray(leaf)) for leaf in (run.state.k, run.state.residual))
        assert report is not None
        report(int(k) - 1, float(residual))

    interrupted = False
    try:
        drive.run(onward, None if report is None else told, finish)
    except KeyboardInterrupt:
        if not alone or drive.latest is None:
            raise
        interrupted = True
    run: Run = to_numpy(drive.latest)
    ends = [run] if alone else [pick(run, place) for place in range(len(trials))]
    if finish is not None and not interrupted:
        ends = [finish.last(place, end) if int(end.code) in FAILED else end for place, end in enumerate(ends)]
    ends = ends if stacking is None else [stacking.unpacked_within(end) for end in ends]
    seen = [(look, np.atleast_1d(residual)) for look, residual in zip(drive.seen, drive.residuals, strict=True)]
    return [
        _looked_at(
            request,
            trials[place].B,
            Attempt(
                ends[place],
                [(look, float(residual[place])) for look, residual in seen],
                settled[place],
                interrupted,
                "" if finish is None else finish.how(place),
                finish is not None and finish.exact[place] and int(ends[place].code) == CONVERGED,
            ),
        )
        for place in range(len(trials))
    ]


def _looked_at(request: Request, B: Average, attempt: Attempt) -> Attempt:
    """Converged after all, by the default tolerance, where the residual is as small as float64 can show."""
    run, default = attempt.run, request.wants_tol and request.tol is None
    unfinished = default and int(run.code) == RUNNING and not attempt.interrupted
    if int(run.code) not in (STALLED, STUCK) and not unfinished:
        return attempt
    floor = rounding_floor(attempt.settled, B, run.state, float(run.unit))
    if not run.state.residual <= floor:
        return attempt
    return attempt._replace(run=run._replace(code=np.asarray(CONVERGED)) if default else run, floor=floor)


def _finished(request: Request, trial: Trial, attempt: Attempt, fallback: str | None) -> Solution:
    """The solution that an attempt ended with."""
    setting, (run, residuals, settled, interrupted, finished, exact, floor) = trial.setting, attempt
    state, last = run.state, int(run.state.k)
    status = ENDINGS.get(int(run.code), Status.INTERRUPTED if interrupted else Status.ITERATIONS_USED_UP)
    notes = [*setting.notes, *trial.choice.notes, *([] if fallback is None else [fallback])]
    data, end = values_of(setting.samples), strategies(state.x if state.point is None else state.point)
    large = request.tol is None and state.residual > RELATIVE * run.scale
    if status is Status.CONVERGED and large and at_a_jump(request.problem, data, end, trial.B):
        status, floor = Status.STALLED, None
    if floor is not None and status is not Status.CONVERGED:
        notes.append(too_fine(floor))
    if status is Status.CONVERGED and not _defined(request, setting, state):
        status = Status.NOT_FINITE
        notes.append("A cost is NaN or infinite at x, though its derivative is not.")
    elif status is Status.CONVERGED and (setting.examination.bent or setting.wrong or trial.choice.B_disproved):
        status = Status.STATIONARY
    failed = floor is None and (status.is_failure or (status is Status.ITERATIONS_USED_UP and request.wants_tol))
    if failed or (status is Status.CONVERGED and trial.choice.doubt):
        witness = not_monotone(trial.B, setting.x, state.x if state.point is None else state.point)
        notes += witness
        status = Status.STATIONARY if witness and status is Status.CONVERGED else status
    if failed:
        kinks = kink_note(request.problem, data, end, named=request.method is not None)
        notes += kinks or likely_reasons(request.problem, trial.B, state)
    wanted = {look for look in request.recorded_at if look < last}
    kept = [(look, r) for look, r in residuals if look in wanted] + [(last, float(state.residual))]
    with jax.enable_x64(True):
        step = to_numpy(settled.last_step(state))
    return Solution(
        point=state.x if state.point is None else state.point,
        element=state.z,
        residual=float(state.residual),
        iterations=last - 1,
        status=status,
        notes=tuple(notes),
        trace=Trace(np.array([look - 1 for look, _ in kept]), np.array([r for _, r in kept])),
        step=step,
        problem=request.problem,
        samples=setting.samples,
        method=settled,
        holdout=setting.kept_aside,
        fixed_iterations=not request.wants_tol,
        start=jax.tree.map(np.array, setting.x),
        asked=request.method,
        finished=finished,
        exact=exact and status is Status.CONVERGED,
    )


def _defined(request: Request, setting: Setting, state: State) -> bool:
    """Whether the costs have values at the end, where they are not proved to have them everywhere."""
    costs = setting.facts.costs
    if costs is None or not costs.jumps:
        return True
    end = strategies(state.x if state.point is None else state.point)
    with jax.enable_x64(True):
        return request.problem.defined(values_of(setting.samples), end)


def settled_again(
    problem: Problem,
    data: tuple[Any, Samples | None],
    start: PyTree,
    asked: tuple[Method | None, int | None],
    found: tuple[str, str],
) -> Method | None:
    """The method of a run that is known by its class and description, settled anew; None where it is not that of this
    problem. `asked`: the user's method, and how many iterations."""
    if found[0] == AsProgramme.__name__:
        return AsProgramme(found[1])
    request = Request(problem, asked[0], asked[1], None, None)
    trial = trial_of(request, setting_of(problem, *data, start))
    for method in (trial.choice.method, trial.choice.second):
        if type(method).__name__ == found[0] and method is not None:
            settled = _settled(request, trial, method)
            if settled.description == found[1]:
                return settled
    return None
