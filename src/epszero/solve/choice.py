"""Which method a problem gets when the user names none: one that suits what is known, the fastest by its proof.

A run that ends with ‖z + B̂(x)‖ at rounding level has found a zero, whatever was known before. So nothing is refused for
want of a proof, and `solution.notes` says what is not proved; only an inclusion or a game that is shown not to be
monotone is.
"""

from typing import NamedTuple

from epszero._checks import refuse
from epszero._types import PyTree
from epszero.facts import AverageFacts, Provenance, lipschitz_range, step_range
from epszero.methods import (
    AdaptiveGoldenRatio,
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
    B_disproved: bool = False  # B̂ is shown not to be monotone
    A_disproved: bool = False  # A is

    @property
    def notes(self) -> list[str]:
        """That the run goes on nonetheless."""
        return [f"Nothing is proved to converge here: {self.doubt}."] if self.doubt else []


def chosen(problem: Problem, known: AverageFacts, x: PyTree) -> Choice:
    """From what is known of B̂.

    strongly monotone or cocoercive   forward-backward, preconditioned where affine constraints are shared
    merely monotone, or turning much  forward-backward-forward, which evaluates B twice a step: where it gains more
                                      than two steps of forward-backward
    a gradient, nothing more          forward-backward with backtracking, and the other where that finds no step
    monotone or not, nothing more     the adaptive golden ratio, which needs no constant
    """
    doubt, no = known.doubt, known.monotone is Provenance.VIOLATED
    tseng, convex = ForwardBackwardForward(), problem.coupling is not None and not problem.coupling.affine
    exact = known.monotone is Provenance.EXACT
    merely = (exact or known.kappa is not None) and not known.cocoercive
    if known.flat and (convex or merely):  # the other method leaves the domain
        return Choice(Extragradient(), None, doubt, no)
    if convex or merely:
        return Choice(tseng, None, doubt, no)
    if not known.cocoercive and (problem.coupling is None or doubt) and not no:
        return Choice(AdaptiveGoldenRatio(), tseng, doubt)
    if problem.coupling is not None:
        return Choice(PreconditionedForwardBackward(), tseng, doubt, no)
    one, two = step_range(known), lipschitz_range(known, None, x)
    if one is not None and two is not None and two.rate < one.rate**2 and known.unit_steps is None and not known.flat:
        return Choice(tseng, None, doubt, no)
    return Choice(ForwardBackward(), AdaptiveGoldenRatio() if known.gradient else tseng, doubt, no)


def refuse_disproved(problem: Problem, choice: Choice) -> None:
    """An inclusion or a game that is shown not to be monotone, unless the user chose the method.

    A minimisation may have a loss that is not convex: it ends at a point that is stationary, and is told so.
    """
    if choice.A_disproved or (choice.B_disproved and not problem.is_gradient):
        remedy = "Name a method to try, such as ez.ForwardBackward(), or pass throw=False to run and see"
        refuse("method", f"no method is proved to converge, as {choice.doubt.rstrip('.')}", remedy)


def fallback_note(first: Method) -> str:
    """That the second method was used."""
    return f"The first choice, {first.description}, did not converge; another method was used instead."
