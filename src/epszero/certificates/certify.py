"""`certify`: from a solution to a certificate. What it says is examined by a kind, converted, and put together here."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from epszero._checks import known_arguments, one_of, refuse
from epszero._double import double
from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Obstacle, Refused, cannot
from epszero.certificates._inputs import checked_delta
from epszero.certificates.anytime import Anytime
from epszero.certificates.bands import Image, Linear, rows_of
from epszero.certificates.case import Case
from epszero.certificates.certificate import Certificate, verdict_of
from epszero.certificates.certified_piece import IMAGE, LINES
from epszero.certificates.choose import chosen
from epszero.certificates.consequences import Consequence, cost_gap, distance, exploitability
from epszero.certificates.image import image_of
from epszero.certificates.scales import check_point, computable, out_of_range
from epszero.certificates.together import prepare
from epszero.facts import Unknown, has_costs
from epszero.oracles import strategies
from epszero.samples import Samples
from epszero.solve import Solution, Solutions

NOTHING = Consequence(None, "")
NAMED = "named by the user"
APART = 1e30  # sizes of rows of one image, whose squares must not be lost


@known_arguments
def certify(
    solution: Solution,
    delta: float = 0.05,
    using: Kind | None = None,
    of: str | Linear | None = None,
    likely: bool = True,
) -> Certificate:
    """How far is the solution from the truth behind the data, with probability 1 − δ?

    `using`: a kind of certificate, such as `ez.certificates.MeanDeviation()`; by default the one that suits the
    problem's structure, chosen before the values of the data are looked at. Where nothing can be said, ε = ∞ and
    `reason` says why. Several kinds tried in turn on the same data need `ez.certificates.Tightest`.
    `of`: the one line that matters, "distance", "exploitability", "cost gap", "intervals" or "residual": most of δ is
    then spent on it, where lines would share δ. Or a linear image of x, as a matrix with one column per entry of x
    (flat) or as a linear function of x: `certificate.image` then says how far L x is from L x*, and bounds its entries,
    also where L x* is unique and x* is not (flows on roads, sums, predictions). To be decided before the data are
    looked at.
    `likely=False`: print what is sure only, without the guess beside it (`certificate.likely`).
    """
    share = _checked(solution, delta, using)
    line, rows = _asked(solution, using, of)
    one_of("likely", likely, (True, False), "Pass False to leave the guess out")
    return replace(certificate_of(Case.of(solution), share, using, line, rows), solution=solution, beside=likely)


def _asked(solution: Solution, using: Kind | None, of: Any) -> tuple[str | None, FloatArray | None]:
    """The line that matters, and the matrix of an image."""
    if of is None or isinstance(of, str):
        _check_line(using, of)
        return of, None
    x = strategies(solution.point)
    rows = rows_of(of, x, len(flat_of(x)))
    if not np.isfinite(rows).all() or not rows.any():
        refuse("of", "is an image that is 0, or not finite, whatever x is", "Pass a matrix with other entries")
    sizes = np.abs(rows).max(axis=1)
    if sizes[sizes > 0].min() < sizes.max() / APART:
        refuse("of", f"has rows that differ in size by more than {APART:.0e}", "Ask for them one by one")
    return IMAGE, rows


def _check_line(using: Kind | None, of: Any) -> None:
    if of is None:
        return
    one_of("of", of, LINES, "Pass one of these, or leave it out for all lines")
    if using is not None:
        refuse("of", "goes with the certificate that is chosen for you", "Leave using= or of= out")


def _checked(solution: Any, delta: Any, using: Any) -> float:
    share = checked_delta(delta)
    if not isinstance(solution, Solution):
        refuse(
            "solution", f"must come from ez.solve, but it is a {type(solution).__name__}", "Pass what ez.solve returned"
        )
    if not (using is None or isinstance(using, Kind)):
        refuse(
            "using",
            f"must be a kind such as ez.certificates.MeanDeviation(), but it is {using!r}",
            "Pass an object of that kind, or leave it out",
        )
    return share


def _is_listed(given: Any) -> bool:
    return isinstance(given, list | tuple | Solutions)


@known_arguments
def certify_many(
    solutions: Sequence[Solution], delta: float = 0.05, using: Kind | None = None, of: str | Linear | None = None
) -> list[Certificate]:
    """A certificate for each solution of `ez.solve_many`, each at level δ; what they share is computed together."""
    if not _is_listed(solutions) or not len(solutions):
        refuse("solutions", "must be a list with at least one solution", "Pass what ez.solve_many returned")
    share = _checked(solutions[0], delta, using)
    for solution in solutions[1:]:
        _checked(solution, delta, using)
    line, rows = _asked(solutions[0], using, of)
    with double():
        cases = [Case.of(solution) for solution in solutions]
        prepare(cases, using or chosen(cases[0], line)[0], share)
    return [
        replace(certificate_of(case, share, using, line, rows), solution=solution)
        for case, solution in zip(cases, solutions, strict=True)
    ]


def certificate_of(
    case: Case, delta: float, using: Kind | None, of: str | None = None, rows: FloatArray | None = None
) -> Certificate:
    """The certificate, from checked arguments; `rows`: of a linear image that is asked for."""
    with double():
        kind, why = (using, NAMED) if using is not None else chosen(case, of)
        consequences = dict.fromkeys(("distance", "exploitability", "total", "cost_gap"), NOTHING)
        obstacle, doubt, image = None, "", None
        try:
            if case.problem.oracle.uncertain and not case.samples:
                cannot("the solution carries no samples")
            check_point(case)
            case.check_membership()
            found = computable(case, kind.examine(case, delta))
            if math.isfinite(found.epsilon):
                consequences, doubt = _consequences(case, found), _doubt(case)
                found = replace(found, terms=found.terms | _parts(found))
                image = None if rows is None else _image(case, found, consequences["distance"], rows)
            else:
                why, obstacle = "the bound is infinite", Obstacle.OTHER
        except Refused as refused:
            found, why = Finding(None, kind.title, refused.terms, refused.leans_on), str(refused)
            obstacle = refused.obstacle
        size = length(flat_of(case.x))
        known_side = case.known_side if obstacle is None else ()
    further = [one for consequence in consequences.values() for one in consequence.leans_on]
    further += [] if image is None else image.leans_on
    leans_on = tuple(dict.fromkeys([*found.leans_on, *further, *known_side]))
    away, gap = consequences["distance"].value, consequences["cost_gap"].value
    return Certificate(
        epsilon=found.epsilon,
        delta=delta,
        verdict=verdict_of(found.epsilon, leans_on),
        by=found.by,
        reason=why,
        distance=away,
        relative_distance=away / size if away is not None and 0 < size < math.inf else None,
        exploitability=consequences["exploitability"].value,
        total_exploitability=consequences["total"].value,
        cost_gap=None if gap is None else float(gap[0]),
        notes={name: consequence.because for name, consequence in consequences.items()}
        | {"stationary": doubt}
        | ({"truth": found.truth} if found.truth else {}),
        terms=found.terms,
        leans_on=leans_on,
        using=kind,
        sharp=found.sharp,
        guessed=found.guessed,
        obstacle=obstacle,
        image=image,
    )


def _image(case: Case, found: Finding, away: Consequence, rows: FloatArray) -> Image:
    with np.errstate(all="ignore"):
        image = image_of(case, found, away, rows)
    lost = "" if image.distance is None else out_of_range(case, found.epsilon, image.distance, False)
    return replace(image, distance=None, lower=None, upper=None, because=lost) if lost else image


def _parts(found: Finding) -> dict[str, float]:
    """What the distance on a certified piece is made of, and what no bound can be below."""
    sharp = found.sharp
    if sharp is None or isinstance(sharp.known, Unknown) or not sharp.levels.distance > 0:
        return {}
    return sharp.known.parts(sharp.levels, sharp.delta)


def _doubt(case: Case) -> str:
    """Why the point is called stationary, and no more; empty where it is what was asked for."""
    convex = case.facts.convex
    if not has_costs(case.problem):
        return ""
    return convex.reason if isinstance(convex, Unknown) else str(case.bent[0]) if case.bent else ""


def _consequences(case: Case, found: Finding) -> dict[str, Consequence]:
    with np.errstate(all="ignore"):  # what is lost to the range of float64 is not claimed
        each, total = exploitability(case, found)
        away, gap = distance(case, found), cost_gap(case, found)
    if case.moved and away.value is not None:  # which was that of a point nearby
        away = replace(away, value=away.value + case.moved)
    made = {"distance": away, "exploitability": each, "total": total, "cost_gap": gap}
    lost = {
        name: "" if one.value is None else out_of_range(case, found.epsilon, one.value, name == "distance")
        for name, one in made.items()
    }
    sharp = found.sharp
    if sharp is not None and not isinstance(sharp.known, Unknown) and sharp.known.piece.is_vertex:
        lost["distance"] = ""  # the truth is that vertex, and rounding is all there is
    if case.elsewhere:
        nearby = f"z is in A only at a point {case.moved:.2g} away from x"
        lost |= {name: lost[name] or nearby for name in made if name != "distance" and made[name].value is not None}
    return {name: Consequence(None, lost[name]) if lost[name] else one for name, one in made.items()}


def streamed(old: Certificate, more: Samples, solution: Solution | None) -> tuple[Solution, float, Kind]:
    """What to certify after an update."""
    assert isinstance(old.using, Anytime)
    assert old.solution is not None
    with double():
        case = Case.of(old.solution)
        if solution is not None and case.collapsed(case.samples) is None:
            refuse("solution", "must stay as it is: without features the stream certifies one frozen x", "Leave it out")
        if solution is not None and solution.problem is not old.solution.problem:
            refuse("solution", "is of another problem", "Solve the same problem again, or certify anew")
        return solution or old.solution, old.delta, old.using.grown(case, more)
