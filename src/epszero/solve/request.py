"""`Request`: what was asked of a run, checked before anything is computed."""

from typing import Any

import numpy as np

from epszero._checks import count, one_positive, refuse
from epszero._types import FloatArray
from epszero.methods import Method
from epszero.problems import Problem

MOST_ITERATIONS = 1_000_000  # where the user sets none


class Request:
    """A problem, perhaps a method, and when to stop and to look."""

    problem: Problem
    method: Method | None  # None: to be chosen
    wants_tol: bool  # stop at a tolerance, not after a fixed number of steps
    steps: int  # to take at most
    tol: FloatArray | None  # None: the loop's own choice; negative: never stop early
    recorded_at: list[int]  # steps after which to record the residual

    def __init__(self, problem: Any, method: Any, iterations: Any, tol: Any, trace: Any) -> None:
        if not isinstance(problem, Problem):
            refuse(
                "problem",
                f"must be a problem such as ez.Inclusion, but it is a {type(problem).__name__}",
                "Build one from your functions and sets",
            )
        if not (method is None or isinstance(method, Method)):
            refuse(
                "method",
                f"must be a method such as ez.ForwardBackward(), but it is {method!r}",
                "Pass an object of that kind, or leave it out",
            )
        self.problem = problem
        self.method = method
        self.wants_tol = tol is not None or iterations is None
        self.steps = 1 + (MOST_ITERATIONS if iterations is None else count("iterations", iterations))
        self.tol = None if self.wants_tol else np.array(-1.0)
        if tol is not None:
            self.tol = np.asarray(one_positive("tol", tol, strict=False))
        self.recorded_at = [k + 1 for k in _looks(trace, self.steps)]


def _looks(trace: Any, steps: int) -> list[int]:
    """Iterations k at which to record the residual."""
    if trace is None:
        return [digit * 10**power for power in range(len(str(steps))) for digit in range(1, 10)]
    if isinstance(trace, int | np.integer):
        return list(range(0, steps, count("trace", trace, least=1)))
    try:
        listed = list(trace)
    except TypeError:
        refuse("trace", f"must be a list of iterations or one number, but it is {trace!r}", "Pass trace=100, say")
    return [count("trace", k) for k in listed]
