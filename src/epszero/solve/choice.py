"""Which method a problem gets when the user names none: one that is proved to converge, the fastest by that proof."""

from typing import NamedTuple

from epszero._checks import refuse
from epszero._types import PyTree
from epszero.constants import Known, Provenance, lipschitz_range, step_range
from epszero.methods import (
    Extragradient,
    ForwardBackward,
    ForwardBackwardForward,
    Method,
    PreconditionedForwardBackward,
)
from epszero.problems import Problem


class Choice(NamedTuple):
    """A method, and what to try when backtracking finds that B is not cocoercive, which the first one needs."""

    method: Method
    second: Method | None
    doubts: list[str]  # why nothing is proved to converge
    disproved: bool = False  # B is seen not to be monotone


def chosen(problem: Problem, known: Known, x: PyTree) -> Choice:
    """From what is known of B̂.

    strongly monotone or cocoercive   forward-backward, preconditioned where affine constraints are shared
    merely monotone, or turning much  forward-backward-forward, which evaluates B twice a step: where it gains more
                                      than two steps of forward-backward
    monotone, nothing more            forward-backward with backtracking, and the other where that finds no step
    """
    doubts = [] if known.monotone not in (None, Provenance.VIOLATED) else [_doubt(known)]
    no = known.monotone is Provenance.VIOLATED
    tseng, convex = ForwardBackwardForward(), problem.coupling is not None and not problem.coupling.affine
    exact = known.monotone is Provenance.EXACT
    merely = (exact or known.kappa is not None) and not known.cocoercive
    if known.flat and (convex or merely):  # the other method leaves the domain
        return Choice(Extragradient(), None, doubts, no)
    if convex or merely:
        return Choice(tseng, None, doubts, no)
    if problem.coupling is not None:
        return Choice(PreconditionedForwardBackward(), tseng, doubts, no)
    one, two = step_range(known), lipschitz_range(known, None, x)
    if one is not None and two is not None and two.rate < one.rate**2 and problem.unit_steps is None and not known.flat:
        return Choice(tseng, None, doubts, no)
    return Choice(ForwardBackward(), tseng, doubts, no)


def _doubt(known: Known) -> str:
    if known.monotone is Provenance.VIOLATED:
        return f"B is not monotone: {known.why}"
    return f"B is not known to be monotone: {known.why}"


def refuse_doubts(choice: Choice) -> None:
    """Where nothing is proved to converge, and the user did not choose a method."""
    if choice.doubts:
        vouch = "" if choice.disproved else "vouch for it by ez.declare(monotone=True), "
        remedy = f"{vouch}name a method to try, such as ez.ForwardBackward(), or pass throw=False to run and see"
        why = choice.doubts[0].rstrip(".")
        refuse("method", f"no method is proved to converge, as {why}", remedy[0].upper() + remedy[1:])


def unproved(choice: Choice) -> list[str]:
    """The note that the run goes on nonetheless."""
    return [f"Nothing is proved to converge here: {doubt}." for doubt in choice.doubts]


def instead(first: Method) -> str:
    """The note that the fallback was used."""
    return (
        f"The first choice, {first.description}, did not converge, as B is not cocoercive along the path; "
        "forward-backward-forward was used instead."
    )
