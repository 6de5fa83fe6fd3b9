"""Which method a problem gets when the user names none."""

from epszero.constants import step_range
from epszero.methods import ForwardBackward, ForwardBackwardForward, Method, PreconditionedForwardBackward
from epszero.problems import Problem


def suited(problem: Problem) -> Method:
    """From the problem's structure and what is declared, before anything runs."""
    if problem.coupling is not None:
        return PreconditionedForwardBackward() if problem.coupling.affine else ForwardBackwardForward()
    merely_monotone = problem.declared.kappa is not None and step_range(problem) is None
    return ForwardBackwardForward() if merely_monotone else ForwardBackward()


def fallback(first: Method) -> Method | None:
    """What to try when backtracking finds that B is not cocoercive, which the first method needs."""
    return None if isinstance(first, ForwardBackwardForward) else ForwardBackwardForward()


def instead(first: Method) -> str:
    """The note that the fallback was used."""
    return (
        f"The first choice, {first.description}, did not converge, as B is not cocoercive along the path; "
        "forward-backward-forward was used instead."
    )
