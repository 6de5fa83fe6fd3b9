"""How ε would change with more data and with another δ: a table over sample sizes and confidence levels.

The column of the data in hand is certified anew at each δ, and each of these numbers is valid where its δ was fixed
beforehand. The others are forecasts: data sets of other sizes are drawn from the data with a fixed seed, solved and
certified by the same kind, at a few δ; between these the ratio to the data's own column is interpolated. What would
take too long is read between its neighbours on log axes, and beyond them scaled like 1/√s. Which sizes are affordable
follows from counts of operations, not from the clock, so that the same inputs give the same page; the clock is a brake
for slow functions only.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import jax
import numpy as np

from epszero._checks import InputError
from epszero._double import double
from epszero._types import FloatArray
from epszero.certificates import (
    Anytime,
    Certificate,
    Dependent,
    HoldOut,
    Kind,
    Known,
    MeanDeviation,
    RepairedStability,
    Tightest,
    UniformStability,
    VectorStability,
    Verdict,
    certify,
)
from epszero.certificates.case import Case
from epszero.methods import Method
from epszero.samples import Samples
from epszero.solve import Solution, SolveError, solve

DELTAS = (25, 13, 7, 4)  # how many levels are tried, the most that are affordable
LEAST, MOST = 0.001, 0.3  # the levels lie between
FACTORS = tuple(2.0**k for k in range(-3, 5))  # sample sizes relative to that of the data
FEW = (0.25, 4.0)  # those drawn where every size has to be compiled
LEVELS = 2  # how many δ are certified on data that are drawn
SEED = 2024  # of the draws
SOLVING = 1e8  # numbers that all runs together may touch
CERTIFYING = 4e7  # numbers that the certificates of the data may touch
LARGEST = 2e5  # numbers in a data set that is drawn
CLOCK = 15.0  # seconds: the brake
VANISHING = (MeanDeviation, HoldOut, VectorStability, Anytime, Dependent)
BY_RUN = (VectorStability, UniformStability, RepairedStability, Tightest)  # they may depend on how x was found

DATA, RESAMPLED, SCALED = "data", "resampled", "scaled"


@dataclass(frozen=True)
class Cell:
    """What a certificate says at one size and level; None where it says nothing."""

    epsilon: float | None
    distance: float | None
    saving: float | None
    gap: float | None

    @staticmethod
    def of(certificate: Certificate) -> "Cell":
        """The numbers of a certificate."""
        if certificate.verdict is Verdict.REFUSED:
            return Cell(None, None, None, None)
        savings = certificate.exploitability
        away = certificate.distance
        return Cell(
            certificate.epsilon,
            None if away is None else float(away),
            None if savings is None else float(np.max(savings)),
            certificate.cost_gap,
        )

    def scaled(self, factor: float) -> "Cell":
        """All numbers times `factor`."""
        return Cell(*(None if value is None else value * factor for value in self.values))

    def between(self, other: "Cell", share: float) -> "Cell":
        """From this one to the other, on a log axis."""
        pairs = zip(self.values, other.values, strict=True)
        return Cell(*(_between(a, b, share) for a, b in pairs))

    def over(self, other: "Cell") -> "Cell":
        """Number by number; none where there is nothing to divide by."""
        pairs = zip(self.values, other.values, strict=True)
        return Cell(*(None if a is None or not b else a / b for a, b in pairs))

    def times(self, other: "Cell") -> "Cell":
        """Number by number."""
        pairs = zip(self.values, other.values, strict=True)
        return Cell(*(None if a is None or b is None else a * b for a, b in pairs))

    @property
    def values(self) -> tuple[float | None, ...]:
        """The four numbers."""
        return self.epsilon, self.distance, self.saving, self.gap


@dataclass(frozen=True)
class Column:
    """One sample size."""

    samples: int
    how: str  # DATA, RESAMPLED or SCALED
    cells: tuple[Cell, ...]  # one per δ


@dataclass(frozen=True)
class Forecast:
    """The table."""

    deltas: tuple[float, ...]
    columns: tuple[Column, ...]
    here: int  # the column of the data
    own: int  # the δ of the certificate
    stopped: str  # why some columns are not computed; empty where all are


def forecast(certificate: Certificate, solution: Solution | None) -> Forecast | None:
    """The table for a certificate with a finite ε, from samples; None where there is nothing to forecast."""
    if certificate.verdict is Verdict.REFUSED or solution is None or solution.samples is None:
        return None
    if isinstance(certificate.using, Known) or certificate.using.other_truth:
        return None  # nothing is uncertain; or nothing is said of samples to come
    world = World(certificate, solution)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return world.table()


class World:
    """A certificate's problem, data and kind, to be drawn again."""

    def __init__(self, certificate: Certificate, solution: Solution) -> None:
        self.certificate, self.solution, self.kind = certificate, solution, certificate.using
        with double():
            case = Case.of(solution)
            self.structured = case.collapsed(case.samples) is not None
        self.entries = sum(np.size(leaf) for leaf in jax.tree.leaves(solution.point))
        stream = self.kind.samples if isinstance(self.kind, Anytime) else None
        seen = solution.samples
        self.seen: list[Samples] = list(seen) if isinstance(seen, list) else [] if seen is None else [seen]
        if stream is not None and self.structured:
            self.seen = [stream]
        kept = [] if solution.holdout is None else [solution.holdout]
        self.size = sum(map(len, [*self.seen, *kept, *_brought(self.kind, stream is not None and self.structured)]))
        self.dim = max(one.dim for one in self.seen)
        self.until = perf_counter() + CLOCK

    def table(self) -> Forecast | None:
        """Column by column, the data first, then outward; what cannot be afforded is extrapolated."""
        deltas = self._deltas()
        own = deltas.index(self.certificate.delta)
        here = tuple(
            Cell.of(self.certificate if i == own else certify(self.solution, delta, self.kind))
            for i, delta in enumerate(deltas)
        )
        found: dict[float, tuple[Cell, ...]] = {1.0: here}
        sizes = {factor: round(factor * self.size) for factor in FACTORS}
        factors = [factor for factor in FACTORS if sizes[factor] >= 2 * len(self.seen) or factor == 1.0]
        levels = sorted({*np.linspace(0, len(deltas) - 1, LEVELS).round().astype(int).tolist(), own})
        touched = 0.0
        stopped = "" if self.structured else "every size has to be compiled anew"
        wanted = [one for one in factors if one != 1.0 and (self.structured or one in FEW)]
        for place, factor in enumerate(wanted):
            touched += self._solving(sizes[factor])
            if touched > SOLVING or self._certifying(sizes[factor]) > LARGEST:
                stopped = "the runs or certificates for them would take too long"
                break
            cells = self._column(factor, place, [deltas[level] for level in levels])
            if cells is None:
                stopped = f"the time for forecasts, {CLOCK:g} s, was used up"
                break
            if any(cell.epsilon is not None for cell in cells):
                found[factor] = _filled(np.log(deltas), levels, cells, here)
        columns = [column for factor in factors if (column := self._shown(factor, sizes[factor], found)) is not None]
        return Forecast(deltas, tuple(columns), [one.how for one in columns].index(DATA), own, stopped)

    def _deltas(self) -> tuple[float, ...]:
        """From 0.1 % to 30 %, in equal ratios, with the certificate's own among them."""
        each = self._certifying(self.size)
        many = next((many for many in DELTAS if many * each <= CERTIFYING), 1)
        own = self.certificate.delta
        grid = np.geomspace(LEAST, MOST, many) if many > 1 else np.array([own])
        return tuple(sorted({*(float(f"{delta:.2g}") for delta in grid), own}))

    def _solving(self, size: int) -> float:
        return float(self.entries) * (self.solution.iterations + 1) * (1 if self.structured else size)

    def _certifying(self, size: int) -> float:
        return float(size) * (self.dim if self.structured else max(self.dim, self.entries)) + 4.0 * self.entries

    def _column(self, factor: float, place: int, deltas: Sequence[float]) -> tuple[Cell, ...] | None:
        """All levels on a data set that is drawn from the data; None where time is up."""
        rng = np.random.default_rng([SEED, place])
        nothing = Cell(None, None, None, None)
        try:
            drawn = self._drawn(factor, rng)
            kind = _resampled(self.kind, factor, rng, self.structured)
            cells: list[Cell] = []
            for delta in deltas:
                if perf_counter() > self.until:
                    return None
                cells.append(Cell.of(certify(drawn, delta, kind)))
        except (InputError, SolveError):
            return tuple(nothing for _ in deltas)
        return tuple(cells)

    def _drawn(self, factor: float, rng: np.random.Generator) -> Solution:
        """Solved again, on data drawn from these."""
        old = self.solution
        sets = [_take(one, factor, rng) for one in self.seen]
        data = sets if isinstance(old.samples, list) else sets[0]
        given: dict[str, Any] = {"iterations": old.iterations} if old.fixed_iterations else {"x0": old.point}
        new = solve(old.problem, data, self._method(), throw=False, **given)
        kept = None if old.holdout is None else _take(old.holdout, factor, rng)
        return replace(new, holdout=kept)

    def _method(self) -> Method | None:
        """What was asked for again; where the kind leans on the run, the method with its steps as they were."""
        return self.solution.method if isinstance(self.kind, BY_RUN) else self.solution.asked

    def _shown(self, factor: float, size: int, found: dict[float, tuple[Cell, ...]]) -> Column | None:
        if factor in found:
            return Column(size, DATA if factor == 1.0 else RESAMPLED, found[factor])
        if not isinstance(self.kind, VANISHING):
            return None
        below = max((one for one in found if one < factor), default=None)
        above = min((one for one in found if one > factor), default=None)
        if below is not None and above is not None:
            share = math.log(factor / below) / math.log(above / below)
            pairs = zip(found[below], found[above], strict=True)
            return Column(size, SCALED, tuple(a.between(b, share) for a, b in pairs))
        near = above if below is None else below
        assert near is not None
        return Column(size, SCALED, tuple(cell.scaled(math.sqrt(near / factor)) for cell in found[near]))


def _between(a: float | None, b: float | None, share: float) -> float | None:
    if a is None or b is None:
        return None
    return a ** (1 - share) * b**share if a > 0 and b > 0 else a + share * (b - a)


def _filled(logs: FloatArray, levels: list[int], cells: Sequence[Cell], here: Sequence[Cell]) -> tuple[Cell, ...]:
    """One cell per δ, from those at a few levels; `logs`: ln δ, `here`: the data's own column."""
    ratios = [cell.over(here[level]) for cell, level in zip(cells, levels, strict=True)]
    found: list[Cell] = []
    for place, at in enumerate(logs):
        right = next(i for i, level in enumerate(levels) if level >= place)
        if levels[right] == place:
            found.append(cells[right])
        else:
            low, high = logs[levels[right - 1]], logs[levels[right]]
            share = float((at - low) / (high - low))
            found.append(ratios[right - 1].between(ratios[right], share).times(here[place]))
    return tuple(found)


def _take(samples: Samples, factor: float, rng: np.random.Generator) -> Samples:
    return samples.take(max(1, round(factor * len(samples))), rng)


def _brought(kind: Kind, counted: bool) -> list[Samples]:
    """Samples that a kind brings along and that are not counted yet; of several kinds those of the first."""
    if isinstance(kind, Tightest):
        return next((own for one in kind.kinds if (own := _brought(one, False))), [])
    own = getattr(kind, "samples", None)
    return [own] if isinstance(own, Samples) and not counted else []


def _resampled(kind: Kind, factor: float, rng: np.random.Generator, structured: bool) -> Kind:
    """The kind with samples of its own drawn again."""
    if isinstance(kind, Tightest):
        return replace(kind, kinds=[_resampled(one, factor, rng, structured) for one in kind.kinds])
    if isinstance(kind, Anytime):
        fresh = None if structured or kind.samples is None else _take(kind.samples, factor, rng)
        return replace(kind, samples=fresh, looks=())
    if isinstance(kind, HoldOut) and kind.samples is not None:
        return replace(kind, samples=_take(kind.samples, factor, rng))
    return kind
