"""`plan`: how many samples does it take, or what can so many samples promise, before there are any?

Every kind with a data-free form has a deviation Δ(s) about the mean of the data that s samples are sure to give,
whatever they are: from the support or declared constants. It is inverted for a target on the residual, the distance or
an agent's saving; ROOM of the target is left for the empirical residual, so iterate until it is smaller than that. The
promise is that of one kind, `plan.using`, which must be passed to `ez.certify`; it holds for so many samples or more.
Kinds that adapt to the data, the default among them, do better in most cases and worse in some: what they give is
expected, not promised, by the variance of a pilot sample or else the largest on the support. Samples that are kept
aside are promised nothing either: on them the residual is not 0 but about as large as the deviation.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._checks import count, known_arguments, one_of, one_positive, refuse
from epszero._double import double
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Refused, cannot
from epszero.certificates._inputs import checked_bound, checked_delta, checked_problem
from epszero.certificates.anytime import Anytime
from epszero.certificates.case import Case
from epszero.certificates.certified_piece import SHARES
from epszero.certificates.consequences import cost_gap, distance, exploitability
from epszero.certificates.evidence import Evidence
from epszero.certificates.hold_out import HoldOut
from epszero.certificates.mean import Hoeffding, McDiarmid, MeanBound, Region, Stitched
from epszero.certificates.mean._base import log_of
from epszero.certificates.mean.empirical_bernstein import best_lambda, psi
from epszero.certificates.mean_deviation import MeanDeviation
from epszero.certificates.noise import Noise
from epszero.certificates.piece import may_have_pieces
from epszero.certificates.residuals import Residuals
from epszero.certificates.vector_stability import VectorStability, width
from epszero.facts import Unknown
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve.setup import GivenSamples, check_shapes, checked_samples, starting_point

MEASURES = ("residual", "distance", "exploitability", "cost gap")
MOST = 10**15
LEARNING = 1.15  # measured on prices, with pilots of 300 days: 1.06 to 1.12
TINY = 1e-12  # relative to the range: a variance below it is none
ROOM = 1e-4  # of the target, left for the empirical residual and for rounding
FLOOR = "does not vanish: its limit is E‖O(x, ξ) − B(x)‖, however many samples"
EXPECTED = "expected, not promised:"
Answer = Callable[[int], float]  # s ↦ the promised bound; raises Refused


class Prospect(NamedTuple):
    """A kind that can be planned for."""

    kind: str
    answer: Answer
    using: Kind | None  # None for the default
    note: str = ""
    sure: bool = True


@dataclass(frozen=True)
class Row:
    """One kind: the samples that it needs, or the bound that it promises; None with the reason."""

    kind: str
    answer: float | None
    note: str = ""
    sure: bool = True  # promised, not merely expected
    using: Kind | None = None  # what to pass to ez.certify; None for its default

    @property
    def written(self) -> str | None:
        """`using` as one would write it down."""
        return None if self.using is None else brief(self.using)

    @property
    def promised(self) -> bool:
        """Whether there is an answer that holds whatever the data."""
        return self.sure and self.answer is not None


@dataclass(frozen=True)
class Plan:
    """The table, best first."""

    question: str
    rows: tuple[Row, ...]
    asked: str = ""  # what the bound is of, and how large
    counts: bool = True  # answers are numbers of samples; else bounds that so many promise

    @property
    def promised(self) -> list[Row]:
        """The rows with an answer that is no guess, best first."""
        return [row for row in self.rows if row.promised]

    @property
    def best(self) -> Row:
        """The first row with an answer that is no guess."""
        sure = self.promised
        if not sure:
            refuse(
                "plan",
                "no kind can promise that: " + "; ".join(f"{row.kind}: {row.note}" for row in self.rows),
                "Give a support (Samples(values, support=…)), declare constants, or raise the target",
            )
        return sure[0]

    @property
    def using(self) -> Kind:
        """The kind that keeps the promise: `ez.certify(solution, delta, using=plan.using)`."""
        kind = self.best.using
        assert kind is not None
        return kind

    @property
    def samples(self) -> int:
        """How many samples `using` needs: these or more meet the target, whatever they are."""
        if not self.counts:
            refuse(
                "size",
                "was given, so the plan says what so many samples promise",
                "Read plan.best.answer, or pass target=",
            )
        return int(self.best.answer or 0)

    def __str__(self) -> str:
        width = max(len(row.kind) for row in self.rows)
        shown = [(row.kind, _number(row.answer), row.note) for row in self.rows]
        return "\n".join(
            [self.question, *(f"  {kind:<{width}}  {answer:>12}  {note}".rstrip() for kind, answer, note in shown)]
        )


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

    With `plan.samples` samples or more, independent and of the support given here, and a solution whose empirical
    residual is negligible, `ez.certify(solution, delta, using=plan.using)` meets the target whatever the data are. The
    default certificate adapts to the data instead: its row is expected, not promised.

    `of`: what the target speaks of: "residual", "distance", "exploitability" (the largest of an agent) or "cost gap".
    `size` instead of `target` asks what that many samples can promise. `samples`: a pilot data set with its support, or
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
        prospects = Prospects(_case(problem, samples), share, of, tuple(bounds or ()), not isinstance(samples, Set))
        rows = [_row(prospect, goal, many) for prospect in prospects.every()]
    confidence = f"{100 * (1 - share):.6g} %"
    question = (
        f"{of} ≤ {goal:.4g} at {confidence}: samples needed"
        if goal is not None
        else f"{of} that {many} samples promise at {confidence}"
    )
    ordered = tuple(sorted(rows, key=lambda row: (row.answer is None, row.answer or 0.0)))
    asked = question if goal is None else f"{of} ≤ {goal:.4g} at {confidence}"
    return Plan(question, ordered, asked, counts=goal is not None)


def _check_bounds(bounds: Any) -> None:
    if not isinstance(bounds, list | tuple | None):
        refuse("bounds", f"must be a list of bounds, but it is {bounds!r}", "Pass [SubGaussian(sigma)], say")
    for bound in bounds or ():
        checked_bound(bound)


def _row(prospect: Prospect, goal: float | None, many: int | None) -> Row:
    kind, using, sure = prospect.kind, prospect.using, prospect.sure
    note = prospect.note if using is None or not sure else f"promised with using={brief(using)}"
    try:
        if many is not None:
            value = prospect.answer(many) / (1 - ROOM)
            known = math.isfinite(value)
            return Row(kind, value if known else None, note if known else "so few give no bound", sure, using)
        assert goal is not None
        needed = _least(prospect.answer, goal * (1 - ROOM))
        return Row(kind, needed, note if needed is not None else f"more than {MOST:.0e} samples", sure, using)
    except Refused as refused:
        return Row(kind, None, str(refused), sure, using)


def brief(kind: Kind | MeanBound) -> str:
    """A kind as one would write it down, without what is left at its default."""
    given = [
        (one.name, getattr(kind, one.name))
        for one in dataclasses.fields(kind)  # pyright: ignore[reportArgumentType]
        if getattr(kind, one.name) is not one.default
    ]
    inside = [brief(value) if isinstance(value, Kind | MeanBound) else f"{name}={value!r}" for name, value in given]
    return f"{type(kind).__name__}({', '.join(inside)})"


def _least(answer: Answer, goal: float) -> int | None:
    """The least s with answer(s) ≤ goal: bounds decrease with s."""
    high = 1
    while not answer(high) <= goal:
        high *= 4
        if high > MOST:
            return None
    low = high // 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if answer(middle) <= goal else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Prospects:
    """What there is to plan with: a case without a solution, at the starting point."""

    case: Case
    delta: float
    of: str
    bounds: tuple[MeanBound, ...]
    pilot: bool

    def every(self) -> list[Prospect]:
        """Every kind that can be planned for, and the two that cannot."""
        structured = self.evidence.collapsed is not None
        found: list[Prospect] = []
        if structured:
            kinds: list[MeanBound] = [Hoeffding(), McDiarmid(), *self.bounds]
            found += [Prospect(f"mean deviation, {one.title}", self._by_mean(one), MeanDeviation(one)) for one in kinds]
            found.append(Prospect(f"anytime, {Stitched().title}", self._by_mean(Stitched()), Anytime(Hoeffding())))
            note = f"{EXPECTED} by the variance of the pilot" if self.pilot else f"{EXPECTED} for the largest variance"
            title = f"default: mean deviation, {self.evidence.suited().title}"
            found.append(Prospect(title, self._foretold, None, note, sure=False))
        for bound in (Hoeffding(), *self.bounds):
            note = f"{EXPECTED} on samples kept aside the residual is not 0"
            title = f"hold-out of half, {bound.title}"
            found.append(Prospect(title, self._held_out(bound), HoldOut(bound), note, sure=False))
        found.append(Prospect("vector stability", self._by_stability, VectorStability()))
        found += [Prospect(f"uniform stability, {how}", _never, None) for how in ("as published", "repaired")]
        return found

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.case, self.case.samples, None)

    def _by_mean(self, bound: MeanBound) -> Answer:
        """By a radius that does not depend on the data."""
        return lambda s: self._meaning(self._residuals([radius for radius, _ in self._radii(bound, s)]))

    def _held_out(self, bound: MeanBound) -> Answer:
        """The same from half of the samples, of which the others' mean is E‖·‖ ≤ √(2 variance/m) away."""

        def answer(s: int) -> float:
            m = s // 2
            if m == 0:
                return math.inf
            found = self._radii(bound, m)
            return self._meaning(
                self._residuals(
                    [radius + (radius if region is None else _apart(region, m)) for radius, region in found]
                )
            )

        return answer

    def _radii(self, bound: MeanBound, m: int) -> list[tuple[float, Region | None]]:
        """For each data set: the radius that m samples, and also any more, are sure to give, and the support."""
        self._check_additive()
        regions, _ = self.evidence.regions(bound)
        found: list[tuple[float, Region | None]] = []
        for rows, region in zip(self.evidence.rows, regions, strict=True):
            sizes = [m, 1 << m.bit_length()] if isinstance(bound, Stitched) else [m]  # where it starts anew
            radii = [bound.radius(size, rows.shape[1], region, self.delta / len(regions)) for size in sizes]
            sure = [radius for radius in radii if radius is not None]
            if len(sure) < len(radii):
                cannot("where it lies, and how wide it is, is read off the data")
            found.append((max(sure), region))
        return found

    def _by_stability(self, s: int) -> float:
        noise, mu = self._noise, self.case.mu
        L = noise.slope.value
        if L > 0 and self.case.problem.coupling is not None:
            cannot("with shared constraints it depends on the run, where the noise is not additive")
        if L > 0 and isinstance(mu, Unknown):
            cannot("needs strong monotonicity of every O(·, ξ), ez.declare(mu=…), where the noise is not additive")
        d = 0.0 if L == 0 or isinstance(mu, Unknown) else noise.R.value / (mu.value * s)
        return self._meaning(
            Residuals.ball(self._zero, width(s, self.delta, noise.R.value, noise.variance.value, L, d))
        )

    def _foretold(self, s: int) -> float:
        """About what a bound that adapts will give: empirical Bernstein's radius with the best constant weight, at the
        level that the default keeps for the residual, and a little more, as weights have to be learnt."""
        self._check_additive()
        regions, _ = self.evidence.regions(self.evidence.suited())
        share = SHARES["residual"] if may_have_pieces(self.case) else 1.0
        log = log_of(2 * len(regions), self.delta * share)
        radii: list[float] = []
        for rows, region in zip(self.evidence.rows, regions, strict=True):
            assert region is not None
            variance = float(np.sum(np.var(rows, axis=0))) if self.pilot else region.variance
            far = max(float(region.farthest(np.mean(rows, axis=0)[None])[0]), TINY)
            lam = best_lambda(np.array([far**2 * log / (s * max(variance, TINY * far**2))]))
            radii.append(LEARNING * float((log + s * psi(lam)[0] * variance / far**2) * far / (s * lam[0])))
        return self._meaning(self._residuals(radii))

    def _check_additive(self) -> None:
        """Before x is known, the effect of the features on the residual is, only where it does not depend on x."""
        collapsed = self.evidence.collapsed
        if collapsed is not None and not self.case.additive(collapsed):
            cannot("the noise is not additive: what it does depends on x, which is not known yet")

    @cached_property
    def _noise(self) -> Noise:
        return Noise(self.case)

    @cached_property
    def _zero(self) -> FloatArray:
        return np.zeros_like(self.case.z)

    def _residuals(self, radii: list[float]) -> Residuals:
        collapsed = self.evidence.collapsed
        if collapsed is None:
            return Residuals.ball(self._zero, radii[0])
        C, gram = self.case.noise_map(collapsed)
        sizes = [rows.shape[1] for rows in collapsed.features]
        group = None if len(sizes) == 1 else np.repeat(np.arange(len(sizes)), sizes)
        return Residuals(self._zero, np.array(radii), group, C, gram)

    def _meaning(self, residuals: Residuals) -> float:
        """What the target speaks of, for these residuals."""
        if self.of == "residual":
            return residuals.epsilon
        found = {"distance": distance, "cost gap": cost_gap}.get(self.of)
        known = Finding(residuals, "")
        meaning = found(self.case, known) if found else exploitability(self.case, known)[0]
        if meaning.value is None:
            cannot(meaning.because)
        return float(np.max(meaning.value))


def _number(answer: float | None) -> str:
    if answer is None:
        return "—"
    return f"{answer:,.4g}" if answer % 1 else f"{int(answer):,}"


def _never(s: int) -> float:
    del s
    raise Refused(FLOOR)


def _apart(region: Region, m: int) -> float:
    """E‖X̄ − X̄′‖ is at most this, for two means of m samples."""
    return region.circumradius * math.sqrt(2 / m)


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
