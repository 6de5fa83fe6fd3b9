"""Runs that may hang, in a process of their own: interrupted when their time is up, killed where that is not heard."""

import multiprocessing
import signal
import time
import traceback
from dataclasses import dataclass
from typing import Any

import numpy as np

COMPILING = 120.0  # seconds that the first short call may take, and
GRACE = 10.0  # beyond the time given until the process is killed
HUGE = 1e9  # times the scale: no point, and no projection of it can be computed
REPEATS, ENOUGH = 5, 0.5  # calls of which the fastest counts, unless they take longer than this together


@dataclass(frozen=True)
class Outcome:
    """What became of one contender on one problem."""

    problem: str
    contender: str
    status: str  # solved, or: time, inexact, unclaimed (right, but the run says that it failed), refused, failed
    seconds: float  # of a call after the first; infinite where it is not solved
    residual: float  # over the tolerance
    first: float  # seconds of the first call
    note: str = ""


class Worker:
    """A process that keeps one problem, and is made anew where it had to be killed."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        self.process: Any = None

    def run(self, contender: str, budget: float) -> Outcome | None:
        """None where the contender does not apply."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.pipe, other = context.Pipe()
            self.process = context.Process(target=_serve, args=(other, self.problem), daemon=True)
            self.process.start()
        self.pipe.send((contender, budget))
        limit = COMPILING + GRACE
        while self.pipe.poll(limit):
            try:
                kind, value = self.pipe.recv()
            except EOFError:
                break
            if kind == "done":
                return value
            limit = value + GRACE
        self.close()
        return Outcome(self.problem, contender, "time", float("inf"), float("inf"), float("inf"), "killed")

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def _serve(pipe: Any, problem: str) -> None:
    import os  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    from benchmarks._contenders import CONTENDERS, OURS, ours  # noqa: PLC0415
    from benchmarks.collection import CASES  # noqa: PLC0415

    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # some print from C
    signal.signal(signal.SIGALRM, _ring)
    posed = CASES[problem].build()
    while True:
        contender, budget = pipe.recv()
        try:
            call = CONTENDERS[contender](posed)
            if call is not None and contender in OURS:
                _timed(lambda name=contender: ours(posed, name, iterations=1), COMPILING)
            outcome = None if call is None else _measured(pipe, problem, contender, posed, call, budget)
        except Exception as error:  # whatever a contender raises is its result
            said = str(error).strip().splitlines() or [traceback.format_exc(limit=1)]
            refused = type(error).__name__ == "InputError"
            outcome = Outcome(problem, contender, "refused" if refused else "failed", float("inf"), float("inf"), 0.0,
                              f"{type(error).__name__}: {said[0]}"[:200])  # fmt: skip
        except KeyboardInterrupt:
            outcome = Outcome(problem, contender, "time", float("inf"), float("inf"), COMPILING, "while compiling")
        pipe.send(("done", outcome))


def _measured(pipe: Any, problem: str, contender: str, posed: Any, call: Any, budget: float) -> Outcome:
    from benchmarks._contenders import TOLERANCE  # noqa: PLC0415

    def judged(x: Any) -> float:
        fit = np.isfinite(x).all() and np.abs(x).max() < HUGE * posed.scale
        return posed.residual(x) / (TOLERANCE * posed.scale) if fit else float("inf")

    pipe.send(("next", 2 * budget))
    try:
        (x, note, claimed), first = _timed(call, 2 * budget)
    except KeyboardInterrupt:
        return Outcome(problem, contender, "time", float("inf"), float("inf"), 2 * budget)
    pipe.send(("next", COMPILING))
    residual, late = judged(x), first >= 2 * budget
    if not residual <= 1.0 or late or not claimed:
        ended = "time" if late else "unclaimed" if residual <= 1.0 else "inexact"
        return Outcome(problem, contender, ended, float("inf"), residual, first, note)
    fastest, spent = float("inf"), 0.0
    for _ in range(REPEATS):
        pipe.send(("next", budget))
        try:
            (x, note, claimed), seconds = _timed(call, budget)
        except KeyboardInterrupt:
            seconds = budget
        if seconds >= budget:
            return Outcome(problem, contender, "time", float("inf"), residual, first)
        fastest, spent = min(fastest, seconds), spent + seconds
        if spent > ENOUGH:
            break
    residual = judged(x)
    solved = residual <= 1.0 and claimed
    return Outcome(problem, contender, "solved" if solved else "inexact", fastest if solved else float("inf"), residual,
                   first, note)  # fmt: skip


def _timed(call: Any, limit: float) -> tuple[Any, float]:
    """What a call returns, and how long it took; `solve` hears the alarm as it hears the keyboard."""
    signal.setitimer(signal.ITIMER_REAL, limit)
    started = time.perf_counter()
    try:
        found = call()
        return found, time.perf_counter() - started
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _ring(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
