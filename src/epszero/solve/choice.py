"""Which method a problem gets when the user names none: one that is proved to converge, the fastest by that proof."""

from typing import NamedTuple

from epszero._checks import refuse
from epszero._types import PyTree
from epszero.facts import AverageFacts, Provenance, lipschitz_range, step_range
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
    doubt: str  # why nothing is proved to converge; empty where something is, or the user chose
    disproved: bool = False  # B is seen not to be monotone

    @property
    def notes(self) -> list[str]:
        """That the run goes on nonetheless."""
        return [f"Nothing is proved to converge here: {self.doubt}."] if self.doubt else []


def chosen(problem: Problem, known: AverageFacts, x: PyTree) -> Choice:
    """From what is known of B̂.

    strongly monotone or cocoercive   forward-backward, preconditioned where affine constraints are shared
    merely monotone, or turning much  forward-backward-forward, which evaluates B twice a step: where it gains more
                                      than two steps of forward-backward
    monotone, nothing more            forward-backward with backtracking, and the other where that finds no step
    """
    doubt, no = known.doubt, known.monotone is Provenance.VIOLATED
    tseng, convex = ForwardBackwardForward(), problem.coupling is not None and not problem.coupling.affine
    exact = known.monotone is Provenance.EXACT
    merely = (exact or known.kappa is not None) and not known.cocoercive
    if known.flat and (convex or merely):  # the other method leaves the domain
        return Choice(Extragradient(), None, doubt, no)
    if convex or merely:
        return Choice(tseng, None, doubt, no)
    if problem.coupling is not None:
        return Choice(PreconditionedForwardBackward(), tseng, doubt, no)
    one, two = step_range(known), lipschitz_range(known, None, x)
    if one is not None and two is not None and two.rate < one.rate**2 and known.unit_steps is None and not known.flat:
        return Choice(tseng, None, doubt, no)
    return Choice(ForwardBackward(), tseng, doubt, no)


def refuse_doubt(choice: Choice) -> None:
    """Where nothing is proved to converge, and the user did not choose a method."""
    if choice.doubt:
        vouch = "" if choice.disproved else "vouch for it by ez.declare(monotone=True), "
        remedy = f"{vouch}name a method to try, such as ez.ForwardBackward(), or pass throw=False to run and see"
        why = choice.doubt.rstrip(".")
        refuse("method", f"no method is proved to converge, as {why}", remedy[0].upper() + remedy[1:])


def fallback_note(first: Method) -> str:
    """That the second method was used."""
    return (
        f"The first choice, {first.description}, did not converge, as B is not cocoercive along the path; "
        "forward-backward-forward was used instead."
    )
