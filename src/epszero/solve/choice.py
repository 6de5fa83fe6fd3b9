"""Which method a problem gets when the user names none: one that suits what is known, the fastest by its proof.

A run that ends with ‖z + B̂(x)‖ at rounding level has found a zero, whatever was known before. So nothing is refused for
want of a proof, and `solution.notes` says what is not proved; only an inclusion or a game that is shown not to be
monotone is.
"""

from typing import NamedTuple

from epszero._checks import refuse
from epszero._types import PyTree
from epszero.facts import AverageFacts, Provenance
from epszero.methods import Method
from epszero.methods.recommend import suited
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
    """From what is known of B̂, by the table of methods/recommend.py."""
    method, second, _ = suited(problem, known, x)
    return Choice(method, second, known.doubt, known.monotone is Provenance.VIOLATED)


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
