"""How a run ended, with a remedy in each ending."""

from enum import Enum
from typing import Any


class Status(Enum):
    """The value says what happened; `remedy` says what to do about it."""

    CONVERGED = "converged"
    STATIONARY = "stationary"
    ITERATIONS_USED_UP = "iterations used up"
    DIVERGED = "diverged"
    STALLED = "stalled"
    NO_STEP = "no step works"
    NOT_FINITE = "not finite"
    INTERRUPTED = "interrupted"

    @property
    def remedy(self) -> str:
        """What a user can do; empty where nothing is wrong."""
        return _REMEDIES[self]

    @property
    def is_failure(self) -> bool:
        """Whether the output should not be taken for an answer."""
        return self in (Status.DIVERGED, Status.STALLED, Status.NO_STEP, Status.NOT_FINITE)


_REMEDIES = {
    Status.CONVERGED: "",
    Status.STATIONARY: "The run converged, but a cost or a shared constraint was seen not to be convex: derivatives "
    "balance at this point, which need not be a minimum or an equilibrium. Try other x0, and compare.",
    Status.ITERATIONS_USED_UP: "The iterations allowed were used up. For a smaller residual raise iterations; where a "
    "method was named, leave it and iterations out: Newton's method then finishes what the method begins.",
    Status.DIVERGED: "The residual grew out of all proportion: take a shorter step, or step=None; if B is merely "
    "monotone (a rotation), forward-backward does not converge with any step: use ez.ForwardBackwardForward() or "
    "ez.AdaptiveGoldenRatio(), or leave method out.",
    Status.STALLED: "The residual stopped shrinking before it reached tol: raise tol to what float64 can reach here, "
    "or rescale the problem; if it is still large the iterates go round in circles: forward-backward then needs a "
    "shorter step, or ez.AdaptiveGoldenRatio() in its place, and if that circles too, B is not monotone, or jumps.",
    Status.NO_STEP: "Backtracking cut the step to nothing: B does not look cocoercive along the path (a rotation, or "
    "not monotone). Leave method out, or use ez.AdaptiveGoldenRatio(), which needs B monotone and no constant.",
    Status.NOT_FINITE: "B or the resolvent returned NaN or infinity: look at the oracle on the domain of A and at the "
    "samples, or take a shorter step; solution.trace says how far it went.",
    Status.INTERRUPTED: "Stopped by the keyboard: this is the last point reached; pass it as x0 to go on.",
}


class SolveError(RuntimeError):
    """The run did not end as asked. `solution` holds what there is; `throw=False` returns it instead."""

    def __init__(self, message: str, solution: Any) -> None:
        super().__init__(message)
        self.solution = solution
