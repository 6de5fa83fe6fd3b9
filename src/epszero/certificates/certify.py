"""`certify`: from a solution to a certificate. What it says is examined by a kind, converted, and put together here."""

import math
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero.certificates._base import Finding, Kind, Refused, cannot
from epszero.certificates._inputs import checked_delta
from epszero.certificates.anytime import Anytime
from epszero.certificates.case import Case
from epszero.certificates.certificate import Certificate, verdict_of
from epszero.certificates.choose import chosen
from epszero.certificates.convert import Meaning, cost_gap, distance, exploitability
from epszero.certificates.together import prepare
from epszero.problems._views import flat_of
from epszero.samples import Samples
from epszero.solve import Solution

NOTHING = Meaning(None, "")


@known_arguments
def certify(solution: Any, delta: float = 0.05, using: Any = None) -> Certificate:
    """How far is the solution from the truth behind the data, with probability 1 − δ?

    `using`: a kind of certificate, such as `ez.certificates.MeanDeviation()`; by default the one that suits the
    problem's structure, chosen before the values of the data are looked at. Where nothing can be said, ε = ∞ and
    `reason` says why. Several kinds tried in turn on the same data need `ez.certificates.Tightest`.
    """
    return certificate_of(solution, _checked(solution, delta, using), using)


def _checked(solution: Any, delta: Any, using: Any) -> float:
    share = checked_delta(delta)
    if not isinstance(solution, Solution):
        refuse(
            "solution", f"must come from ez.solve, but it is a {type(solution).__name__}", "Pass what ez.solve returned"
        )
    if not (using is None or isinstance(using, Kind)):
        refuse("using", f"must be a kind such as ez.certificates.MeanDeviation(), but it is {using!r}",
               "Pass an object of that kind, or leave it out")  # fmt: skip
    return share


@known_arguments
def certify_many(solutions: Sequence[Solution], delta: float = 0.05, using: Kind | None = None) -> list[Certificate]:
    """A certificate for each solution of `ez.solve_many`, each at level δ; what they share is computed together."""
    if not isinstance(solutions, list | tuple) or not solutions:
        refuse("solutions", "must be a list with at least one solution", "Pass what ez.solve_many returned")
    share = _checked(solutions[0], delta, using)
    for solution in solutions[1:]:
        _checked(solution, delta, using)
    with jax.enable_x64(True):
        cases = [Case(solution) for solution in solutions]
        prepare(cases, using or chosen(cases[0])[0], share)
    return [_certificate(case, share, using) for case in cases]


def certificate_of(solution: Solution, delta: float, using: Kind | None) -> Certificate:
    """The certificate, from checked arguments."""
    return _certificate(Case(solution), delta, using)


def _certificate(case: Case, delta: float, using: Kind | None) -> Certificate:
    with jax.enable_x64(True):
        kind, why = (using, "named by the user") if using is not None else chosen(case)
        meanings = dict.fromkeys(("distance", "exploitability", "total", "cost_gap"), NOTHING)
        try:
            if case.problem.oracle.uncertain and not case.samples:
                cannot("the solution carries no samples")
            case.check_membership()
            found = kind.examine(case, delta)
            if math.isfinite(found.epsilon):
                meanings = _meanings(case, found)
            else:
                why = "the bound is infinite"
        except Refused as refused:
            found, why = Finding(None, kind.title, refused.terms, refused.leans_on), str(refused)
    leans_on = tuple(dict.fromkeys([*found.leans_on, *(one for m in meanings.values() for one in m.leans_on)]))
    away = meanings["distance"].value
    size = float(np.linalg.norm(flat_of(case.x)))
    return Certificate(
        epsilon=found.epsilon, delta=delta, verdict=verdict_of(found.epsilon, leans_on), by=found.by, reason=why,
        distance=away, relative_distance=away / size if away is not None and size > 0 else None,
        exploitability=meanings["exploitability"].value, total_exploitability=meanings["total"].value,
        cost_gap=None if meanings["cost_gap"].value is None else float(meanings["cost_gap"].value[0]),
        notes={name: meaning.because for name, meaning in meanings.items()},
        terms=found.terms, leans_on=leans_on, using=kind, solution=case.solution,
    )  # fmt: skip


def _meanings(case: Case, found: Finding) -> dict[str, Meaning]:
    each, total = exploitability(case, found.every)
    return {"distance": distance(case, found.every), "exploitability": each, "total": total,
            "cost_gap": cost_gap(case, found.every)}  # fmt: skip


def streamed(old: Certificate, more: Samples, solution: Solution | None) -> tuple[Solution, float, Kind]:
    """What to certify after an update."""
    assert isinstance(old.using, Anytime)
    assert old.solution is not None
    with jax.enable_x64(True):
        case = Case(old.solution)
        if solution is not None and case.collapsed(case.samples) is None:
            refuse("solution", "must stay as it is: without features the stream certifies one frozen x", "Leave it out")
        if solution is not None and solution.problem is not old.solution.problem:
            refuse("solution", "is of another problem", "Solve the same problem again, or certify anew")
        return solution or old.solution, old.delta, old.using.grown(case, more)
