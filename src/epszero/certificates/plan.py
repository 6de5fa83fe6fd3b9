"""`plan`: how many samples does it take, or what can so many samples promise, before there are any?

Every kind with a data-free form has a deviation Δ(s) that s samples are sure to give, whatever they are: from the
support or declared constants. It is inverted for a target on the residual, the distance or an agent's saving, with the
empirical residual taken as 0 (iterate until it is). Kinds that adapt to the data do better in most cases, never
promised: with a pilot sample their width is foretold from its variance, which is called heuristic.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np

from epszero._checks import count, known_arguments, positive, refuse
from epszero._types import FloatArray
from epszero.certificates._base import Refused, cannot
from epszero.certificates._inputs import checked_delta
from epszero.certificates.case import Case
from epszero.certificates.convert import cost_gap, distance, exploitability
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import EmpiricalBernstein, Hoeffding, McDiarmid, MeanBound, Region, Stitched
from epszero.certificates.noise import Noise
from epszero.certificates.residuals import Residuals
from epszero.certificates.vector_stability import width
from epszero.methods import ForwardBackward
from epszero.problems import Problem
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve.setup import starting_point
from epszero.solve.solution import Solution, Trace
from epszero.solve.status import Status

MEASURES = ("residual", "distance", "exploitability", "cost gap")
MOST = 10**15
FLOOR = "does not vanish: its limit is E‖O(x, ξ) − B(x)‖, however many samples"
Answer = Callable[[int], float]  # s ↦ the promised bound; raises Refused


@dataclass(frozen=True)
class Row:
    """One kind: the samples that it needs, or the bound that it promises; None with the reason."""

    kind: str
    answer: float | None
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """The table, best first."""

    question: str
    rows: tuple[Row, ...]

    @property
    def best(self) -> Row:
        """The first row with an answer that is no guess."""
        sure = [row for row in self.rows if row.answer is not None and "heuristic" not in row.note]
        if not sure:
            refuse("plan", "no kind can promise that: " + "; ".join(f"{row.kind}: {row.note}" for row in self.rows),
                   "Give a support (Samples(values, support=…)), declare constants, or raise the target")  # fmt: skip
        return sure[0]

    @property
    def samples(self) -> int:
        """How many samples the best kind needs."""
        return int(self.best.answer or 0)

    def __str__(self) -> str:
        width = max(len(row.kind) for row in self.rows)
        shown = [(row.kind, _number(row.answer), row.note) for row in self.rows]
        return "\n".join(
            [self.question, *(f"  {kind:<{width}}  {answer:>12}  {note}".rstrip() for kind, answer, note in shown)]
        )


@known_arguments
def plan(
    problem: Any, target: float | None = None, delta: float = 0.05, *,
    of: str = "residual", samples: Any = None, size: int | None = None, bounds: list[MeanBound] | None = None,
) -> Plan:  # fmt: skip
    """How many samples are needed so that a certificate at level δ is at most `target`? A table, one row per kind.

    `of`: what the target speaks of: "residual", "distance", "exploitability" (the largest of an agent) or "cost gap".
    `size` instead of `target` asks what that many samples can promise. `samples`: a pilot data set with its support, or
    a set that holds every possible sample; where it has no support, declared constants (R, M, kappa, mu) must do.
    `bounds`: further confidence sets for a mean, such as SubGaussian(sigma).
    """
    share = checked_delta(delta)
    if not isinstance(problem, Problem):
        refuse("problem", f"must be a problem such as ez.Game, but it is a {type(problem).__name__}", "Pass one")
    if of not in MEASURES:
        refuse("of", f"must be one of {', '.join(MEASURES)}, but it is {of!r}", 'Pass of="distance", say')
    if (target is None) == (size is None):
        refuse("target, size", "exactly one of them must be given", "Pass target=0.1, or size=3000")
    goal = None if target is None else float(positive("target", target))
    many = None if size is None else count("size", size, least=1)
    if not problem.oracle.uncertain:
        refuse("problem", "does not depend on samples", "Solve it: its residual is known exactly")
    with jax.enable_x64(True):
        facts = Known(_case(problem, samples), share, of, tuple(bounds or ()), isinstance(samples, Samples))
        rows = [_row(kind, answer, goal, many, sure) for kind, answer, sure in facts.answers()]
    confidence = f"{100 * (1 - share):.6g} %"
    question = (
        f"{of} ≤ {goal:.4g} at {confidence}: samples needed"
        if goal is not None
        else f"{of} that {many} samples promise at {confidence}"
    )
    return Plan(question, tuple(sorted(rows, key=lambda row: (row.answer is None, row.answer or 0.0))))


def _row(kind: str, answer: Answer, goal: float | None, many: int | None, note: str) -> Row:
    try:
        if goal is None:
            assert many is not None
            value = answer(many)
            return Row(kind, value if math.isfinite(value) else None, note)
        needed = _least(answer, goal)
        return Row(kind, needed, note if needed is not None else f"more than {MOST:.0e} samples")
    except Refused as refused:
        return Row(kind, None, str(refused))


def _least(answer: Answer, goal: float) -> int | None:
    """The least s with answer(s) ≤ goal: bounds decrease with s."""
    high = 1
    while answer(high) > goal:
        high *= 4
        if high > MOST:
            return None
    low = high // 4
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if answer(middle) <= goal else (middle, high)
    return high


@dataclass(frozen=True, eq=False)
class Known:
    """What there is to plan with: a case without a solution, at the starting point."""

    case: Case
    delta: float
    of: str
    bounds: tuple[MeanBound, ...]
    pilot: bool

    def answers(self) -> list[tuple[str, Answer, str]]:
        """Every kind that can be planned for, and the two that cannot."""
        structured = self.evidence.collapsed is not None
        found: list[tuple[str, Answer, str]] = []
        if structured:
            kinds: list[MeanBound] = [Hoeffding(), McDiarmid(), *self.bounds]
            found += [(f"mean deviation, {bound.title}", self._by_mean(bound, 1), "") for bound in kinds]
            found.append((f"anytime, {Stitched().title}", self._by_mean(Stitched(), 1), ""))
        for bound in (Hoeffding(), *self.bounds):
            found.append((f"hold-out of half, {bound.title}", self._by_mean(bound, 2), ""))
        found.append(("vector stability", self._by_stability, ""))
        if self.pilot and structured:
            found.append(
                (f"mean deviation, {EmpiricalBernstein().title}", self._foretold, "heuristic: by the pilot's variance")
            )
        found += [(f"uniform stability, {how}", _never, "") for how in ("as published", "repaired")]
        return found

    @cached_property
    def evidence(self) -> Evidence:
        return Evidence(self.case, self.case.samples, None)

    def _by_mean(self, bound: MeanBound, part: int) -> Answer:
        """By a radius that does not depend on the data, from s/part samples."""

        def answer(s: int) -> float:
            if s < part:
                return math.inf
            self._check_additive()
            regions, _ = self.evidence.regions(bound)
            many = len(regions)
            radii = [
                bound.radius(s // part, rows.shape[1], region, self.delta / many)
                for rows, region in zip(self.evidence.rows, regions, strict=True)
            ]
            if any(radius is None for radius in radii):
                cannot("its width is read off the data")
            return self._meaning(self._residuals([float(radius or 0.0) for radius in radii]))

        return answer

    def _by_stability(self, s: int) -> float:
        noise, mu = self._noise, self.case.mu
        L = noise.slope.value
        if L > 0 and self.case.problem.coupling is not None:
            cannot("with shared constraints it depends on the run, where the noise is not additive")
        if L > 0 and mu is None:
            cannot("needs strong monotonicity of every O(·, ξ), ez.declare(mu=…), where the noise is not additive")
        d = 0.0 if L == 0 or mu is None else noise.R.value / (mu.value * s)
        return self._meaning(
            Residuals.ball(self._zero, width(s, self.delta, noise.R.value, noise.variance.value, L, d))
        )

    def _foretold(self, s: int) -> float:
        """About what empirical Bernstein will give, if the pilot's variance is the true one."""
        self._check_additive()
        regions, _ = self.evidence.regions(EmpiricalBernstein())
        log = math.log(2 * len(regions) / self.delta)
        radii = [math.sqrt(2 * log * float(np.sum(np.var(rows, axis=0))) / s) + _reach(region) * log / (3 * s)
                 for rows, region in zip(self.evidence.rows, regions, strict=True)]  # fmt: skip
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
        meaning = found(self.case, (residuals,)) if found else exploitability(self.case, (residuals,))[0]
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


def _reach(region: Region | None) -> float:
    return 0.0 if region is None else region.diameter


def _case(problem: Problem, samples: Any) -> Case:
    """The problem at its starting point, as if it were solved."""
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
    data = given if isinstance(given, list | Samples) else Samples(given)
    x, _ = starting_point(problem, data, None)
    zero = jax.tree.map(np.zeros_like, x)
    solution = Solution(
        point=x, element=zero, residual=0.0, iterations=0, status=Status.CONVERGED, notes=(),
        trace=Trace(np.array([], dtype=np.int64), np.array([])), step=None, problem=problem, samples=data,
        method=ForwardBackward(),
    )  # fmt: skip
    case = Case(solution)
    case.anywhere = True
    return case
