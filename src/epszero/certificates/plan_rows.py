"""Rows of a plan: what each kind with a data-free form needs, or promises, whatever the data are.

Every such kind has a deviation Δ(s) about the mean of the data that s samples are sure to give: from the support or
declared constants. It is inverted for a target on the residual, the distance or an agent's saving; ROOM of the target
is left for the empirical residual. Samples that are kept aside are promised nothing: on them the residual is not 0 but
about as large as the deviation.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from epszero._types import FloatArray
from epszero.certificates._base import Finding, Kind, Refused, cannot
from epszero.certificates.anytime import Anytime
from epszero.certificates.case import Case
from epszero.certificates.consequences import cost_gap, distance, exploitability
from epszero.certificates.evidence import Evidence
from epszero.certificates.hold_out import HoldOut
from epszero.certificates.mean import Hoeffding, McDiarmid, MeanBound, Region, Stitched
from epszero.certificates.mean_deviation import MeanDeviation
from epszero.certificates.noise import Noise
from epszero.certificates.residuals import Residuals
from epszero.certificates.vector_stability import VectorStability, width
from epszero.facts import Unknown

MOST = 10**15
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
    """One kind: the samples that it needs, or the bound that it gives; None with the reason."""

    kind: str
    answer: float | None
    note: str = ""
    sure: bool = True  # promised, not merely expected
    using: Kind | None = None  # what to pass to ez.certify; None for its default
    of: str | None = None  # the same for of=
    usual: bool = False  # it is what ez.certify(solution) gives

    @property
    def written(self) -> str | None:
        """`using` as one would write it down."""
        return None if self.using is None else brief(self.using)

    @property
    def promised(self) -> bool:
        """Whether there is an answer that holds whatever the data."""
        return self.sure and self.answer is not None

    @property
    def call(self) -> str:
        """What to call, once there are samples."""
        return called(self.written, self.of)


def called(using: str | None, of: str | None) -> str:
    """The call of ez.certify."""
    further = [f"using={using}"] if using is not None else [f'of="{of}"'] if of is not None else []
    return f"ez.certify({', '.join(['solution', *further])})"


def row_of(prospect: Prospect, goal: float | None, many: int | None) -> Row:
    """A kind's answer: samples for a goal, or what so many promise."""
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

    def every(self) -> list[Prospect]:
        """Every kind that can be planned for, and the two that cannot."""
        structured = self.evidence.collapsed is not None
        found: list[Prospect] = []
        if structured:
            kinds: list[MeanBound] = [Hoeffding(), McDiarmid(), *self.bounds]
            found += [Prospect(f"mean deviation, {one.title}", self._by_mean(one), MeanDeviation(one)) for one in kinds]
            found.append(Prospect(f"anytime, {Stitched().title}", self._by_mean(Stitched()), Anytime(Hoeffding())))
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


def _never(s: int) -> float:
    del s
    raise Refused(FLOOR)


def _apart(region: Region, m: int) -> float:
    """E‖X̄ − X̄′‖ is at most this, for two means of m samples."""
    return region.circumradius * math.sqrt(2 / m)
