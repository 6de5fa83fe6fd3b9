"""`plan`: how many samples does it take, or what will so many samples give, before there are any?

Two answers. Promised, whatever the data: by a kind whose bound does not depend on them, which is then passed to
`ez.certify` (plan_rows.py); the support alone decides, so it is a worst case. Expected, from a pilot: by the
certificate that `ez.certify` makes by itself, which adapts to the data (forecast.py). `plan.best` is the smaller of the
two, the number to collect. Iterate until the empirical residual is negligible.
"""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from epszero._checks import count, known_arguments, one_of, one_positive, refuse
from epszero._doors import html_of
from epszero._double import double
from epszero.certificates._base import Kind
from epszero.certificates._inputs import checked_bound, checked_delta, checked_problem
from epszero.certificates.case import Case
from epszero.certificates.forecast import Forecast
from epszero.certificates.mean import MeanBound
from epszero.certificates.plan_rows import EXPECTED, MOST, Prospects, Row, called, row_of
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve.setup import GivenSamples, check_shapes, checked_samples, starting_point

MEASURES = ("residual", "distance", "exploitability", "cost gap")
MANY = 10**9  # samples that nobody collects


@dataclass(frozen=True)
class Plan:
    """The table, fewest samples first."""

    question: str
    rows: tuple[Row, ...]
    asked: str = ""  # what the bound is of, and how large
    counts: bool = True  # answers are numbers of samples; else bounds that so many give

    @property
    def promised(self) -> list[Row]:
        """The rows with an answer that holds whatever the data, best first: the worst case."""
        return [row for row in self.rows if row.promised]

    @property
    def expected(self) -> Row | None:
        """What `ez.certify(solution)` is expected to need or to give, by the pilot; None where nothing says so."""
        return next((row for row in self.rows if row.usual and row.answer is not None), None)

    @property
    def best(self) -> Row:
        """What to go by: the row of `ez.certify(solution)`, or the best that is promised, where that is no more."""
        found = self.promised[:1] + ([] if self.expected is None else [self.expected])
        if not found:
            refuse(
                "plan",
                "no kind can promise that: " + "; ".join(f"{row.kind}: {row.note}" for row in self.rows),
                "Give a support (Samples(values, support=…)), declare constants, or raise the target",
            )
        return min(found, key=lambda row: row.answer or 0.0)

    @property
    def using(self) -> Kind | None:
        """What goes with `best`: `ez.certify(solution, delta, using=plan.using)`; None for the default."""
        return self.best.using

    @property
    def samples(self) -> int:
        """How many to collect: with so many, `ez.certify(solution, delta, using=plan.using)` meets the target.

        Whatever they are where `best.promised`; else it is expected, in nine cases of ten.
        """
        if not self.counts:
            refuse(
                "size",
                "was given, so the plan says what so many samples give",
                "Read plan.best.answer, or pass target=",
            )
        return int(self.best.answer or 0)

    @property
    def advice(self) -> str:
        """One sentence: what to go by. Empty where nothing has an answer."""
        if not self.promised and self.expected is None:
            return ""
        best, said = self.best, number(self.best.answer)
        if best.promised:
            return f"{said}{' samples are enough' if self.counts else ''} whatever the data, with {best.call}."
        sure = f" Whatever the data: {number(self.promised[0].answer)}." if self.promised else ""
        if self.counts:
            return f"Collect {said} samples: {best.call} should then do, in nine cases of ten.{sure}"
        return f"{best.call} should give {said} or less, in nine cases of ten.{sure}"

    _repr_html_ = html_of

    def __str__(self) -> str:
        width = max(len(row.kind) for row in self.rows)
        shown = [(row.kind, number(row.answer), row.note) for row in self.rows]
        table = [f"  {kind:<{width}}  {answer:>12}  {note}".rstrip() for kind, answer, note in shown]
        return "\n".join([self.question, *table, *([self.advice] if self.advice else [])])


@known_arguments
def plan(
    problem: Problem,
    target: float | None = None,
    delta: float = 0.05,
    *,
    of: str = "residual",
    samples: GivenSamples | Set = None,
    size: int | None = None,
    bounds: list[MeanBound] | None = None,
) -> Plan:
    """How many samples are needed so that a certificate at level δ is at most `target`? A table, one row per kind.

    `plan.samples` is what to collect: with so many independent samples, of the support given here, and a solution whose
    empirical residual is negligible, `ez.certify(solution, delta, using=plan.using)` meets the target. With a pilot
    that is the default certificate as a rule (`using` is None), and it is expected: in nine cases of ten, where the
    samples are of the law of the pilot. The rows of `plan.promised` hold whatever the data are, with their `using`.

    `of`: what the target speaks of: "residual", "distance", "exploitability" (the largest of an agent) or "cost gap".
    `size` instead of `target` asks what that many samples give. `samples`: a pilot data set with its support, or
    a set that holds every possible sample; where it has no support, declared constants (R, M, kappa, mu) must do.
    `bounds`: further confidence sets for a mean, such as SubGaussian(sigma).
    """
    share = checked_delta(delta)
    checked_problem(problem)
    one_of("of", of, tuple(MEASURES), 'Pass of="distance", say')
    if (target is None) == (size is None):
        refuse("target, size", "exactly one of them must be given", "Pass target=0.1, or size=3000")
    goal = None if target is None else one_positive("target", target)
    many = None if size is None else count("size", size, least=1)
    if many is not None and many > MOST:
        refuse("size", f"is more than {MOST:.0e} samples", "Pass fewer")
    _check_bounds(bounds)
    if not problem.oracle.uncertain:
        refuse("problem", "does not depend on samples", "Solve it: its residual is known exactly")
    with double():
        case = _case(problem, samples)
        rows = [row_of(prospect, goal, many) for prospect in Prospects(case, share, of, tuple(bounds or ())).every()]
        rows += _expected(Forecast(case, share, of), goal, many, pilot=not isinstance(samples, Set))
    confidence = f"{100 * (1 - share):.6g} %"
    question = (
        f"{of} ≤ {goal:.4g} at {confidence}: samples needed"
        if goal is not None
        else f"{of} that {many} samples give at {confidence}"
    )
    ordered = tuple(sorted(rows, key=lambda row: (row.answer is None, row.answer or 0.0)))
    asked = question if goal is None else f"{of} ≤ {goal:.4g} at {confidence}"
    return Plan(question, ordered, asked, counts=goal is not None)


def _check_bounds(bounds: Any) -> None:
    if not isinstance(bounds, list | tuple | None):
        refuse("bounds", f"must be a list of bounds, but it is {bounds!r}", "Pass [SubGaussian(sigma)], say")
    for bound in bounds or ():
        checked_bound(bound)


def number(answer: float | None) -> str:
    """As tables show it."""
    if answer is None:
        return "—"
    return f"{answer:,.4g}" if answer % 1 else f"{int(answer):,}"


def _expected(forecast: Forecast, goal: float | None, many: int | None, *, pilot: bool) -> list[Row]:
    """The rows of the certificates that `ez.certify` makes by itself."""
    found: list[Row] = []
    for of, kind in forecast.kinds():
        title = f"default: {kind.title}" if of is None else f'default, of="{of}": {kind.title}'
        usual = of is None
        if not pilot:
            found.append(Row(title, None, "to be expected from a pilot: pass some samples", False, None, of, usual))
            continue
        said = forecast.given(kind, many) if many is not None else forecast.needed(kind, goal or 0.0)
        note = said.because or f"{EXPECTED} with {called(None, of)}, by a pilot of {forecast.size}"
        if goal is not None and (said.answer or 0.0) > MANY:
            note += "; nobody collects so many: give a narrower support, or a larger target"
        found.append(Row(title, said.answer, note, False, None, of, usual))
    return found


def _case(problem: Problem, samples: Any) -> Case:
    """The problem at its starting point."""
    given: Any = samples
    if isinstance(samples, Set):
        point = samples.point() if samples.point_shape is not None else None
        if point is None:
            refuse("samples", "the support fits samples of any length", "Give it dim=")
        given = Samples.from_arrays(jax.tree.map(lambda leaf: np.asarray(leaf)[None], point), support=samples)
    if given is None:
        refuse(
            "samples",
            "are needed to know what a sample looks like",
            "Pass a pilot data set, or a set that holds every sample",
        )
    data = checked_samples(problem, given)
    x, _ = starting_point(problem, data, None)
    check_shapes(problem, data, x)
    return Case(problem, x, jax.tree.map(np.zeros_like, x), data, anywhere=True)
