"""What the certificate that `ez.certify` makes by itself will say of s samples, from a pilot.

The pilot leaves several laws plausible. Each is a data set drawn from the pilot with replacement, as large as it, and
solved: its mean stands for the truth, x(m) for x*, its rows for what the samples will be. The certificate goes the way
that `ez.certify` goes, with a bound on a mean that foresees (foreseen.py) where samples would be: the possible
residuals at their share of δ; the piece, whose margins at s samples are affine in the mean of these and whose pilot is
the first tenth of them; what follows on it, by events of their own levels. So range, variance, the split of δ, and the
chance that the piece cannot be certified are all in the number.
A number of samples is enough where all but one in twenty worlds meet the target with CARE to spare, for what so few of
them cannot tell: planned so, nine certificates of ten meet it (tests/certificates/test_forecast.py). Where the
default is `AtTheTruth`, certificates are made of data sets that are drawn (simulated.py). It is
expected, and not promised: an outcome that the pilot does not show is not foreseen. Cost: one run per world, then
milliseconds for each.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from epszero._checks import InputError
from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates import sharp
from epszero.certificates._base import Finding, Kind, Refused, cannot, check_independent
from epszero.certificates.at_the_truth import AtTheTruth
from epszero.certificates.case import Case
from epszero.certificates.certified_piece import CertifiedPiece, Sharpened
from epszero.certificates.choose import chosen
from epszero.certificates.consequences import cost_gap, distance, exploitability
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.foreseen import Chance, Foreseen
from epszero.certificates.mean import Region
from epszero.certificates.mean_deviation import MeanDeviation
from epszero.certificates.piece import AffinePiece, piece_of
from epszero.certificates.responses import Responses, responses_of
from epszero.certificates.sharp import EPS, FEWEST, PILOT, Roots, Sharp
from epszero.certificates.simulated import Simulated
from epszero.facts import Unknown, has_costs
from epszero.facts.region import Prior
from epszero.samples import Samples
from epszero.solve import solve

SMALLEST = 10  # samples of a pilot
WORLDS = 20
MISSES = 1  # of them may miss the target
CARE = 0.03  # of a length, to spare; savings and gaps are of the order of squares
LEAST_WORLDS = 4
ENTRIES = 200_000  # entries of x in all worlds together, beyond which there are fewer of them
SEED = 15
MOST = 10**15  # samples
SLOWLY = "the bound hardly falls with more samples like the pilot's: a narrower support, or a larger target"
CLOSE = 0.01  # relative: how closely a number of samples is found


@dataclass(frozen=True)
class Expected:
    """What is expected: a number of samples, or a value; None with the reason."""

    kind: Kind
    answer: float | None
    because: str = ""


@dataclass(frozen=True, eq=False)
class _Foretold(Sharp):
    """x* lies on this piece: what follows at a number of samples that are still to be drawn."""

    bound: Foreseen

    def _ball(self, name: str, delta: float) -> tuple[FloatArray, float]:
        found = self.bound.around(self.features @ self.roots[name].T, self.roots.region(name, self.region), delta)
        return found.centre, float(found.radius)


class World:
    """One law that is plausible, at its solution."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self.evidence = Evidence(case, case.samples, None)
        rng = np.random.default_rng([SEED, seed])
        n = max((len(rows) for rows in self.evidence.rows), default=0)
        self.chances = [Chance.of(rng, n) for _ in range(2)]
        self.normals = rng.normal(size=(2, n))
        self.because = ""  # why there was no bound, at the size that was asked for last

    def value(self, kind: Kind, delta: float, of: str, size: int) -> float:
        """What the certificate will say of so many samples; ∞ where nothing."""
        costs = has_costs(self.case.problem)
        shares = kind.shares(costs, delta, size) if isinstance(kind, CertifiedPiece) else {"residual": 1.0}
        levels = {name: share * delta for name, share in shares.items()}
        try:
            bound = Foreseen(size, self.chances[0], self.evidence.suited())
            found = examined(self.evidence, bound, levels["residual"], kind.title)
            if isinstance(kind, CertifiedPiece):
                found = replace(found, sharp=Sharpened(self._piece(size, levels["piece"]), delta, levels))
            return self._meaning(found, of)
        except Refused as refused:
            self.because = str(refused)
            return math.inf

    def _meaning(self, found: Finding, of: str) -> float:
        if of == "residual":
            return found.epsilon
        converted: Any = {"distance": distance, "cost gap": cost_gap}.get(of)
        meaning = converted(self.case, found) if converted else exploitability(self.case, found)[0]
        if meaning.value is None:
            cannot(meaning.because)
        return float(np.max(meaning.value))

    def _piece(self, size: int, delta: float) -> Sharp | Unknown:
        """The piece of x(m), where so many samples certify it."""
        known = self._known
        if isinstance(known, Unknown):
            return known
        if size < FEWEST:
            return Unknown("so few samples certify no piece")
        piece, responses, region, features = known
        mean, tenth = np.mean(features, axis=0), -(-size // PILOT)
        apart = (features - mean).T / math.sqrt(len(features))
        early = mean + apart @ self.normals[0][: len(features)] / math.sqrt(tenth)
        late = mean + apart @ self.normals[1][: len(features)] / math.sqrt(size - tenth)
        now = (tenth * early + (size - tenth) * late) / size
        margins, weights = (piece.margins + piece.sensitivities @ (one - mean) for one in (now, early))
        if not ((weights > 0).all() and (margins > 0).all()):
            return Unknown("the samples may lead to another piece than the truth")
        spread = np.var(features, axis=0)
        after = replace(region, prior=Prior(early, float(np.sum(spread)), spread, float(tenth)))
        bound, aimed = Foreseen(size - tenth, self.chances[1]), sharp._Aimed  # pyright: ignore[reportPrivateUsage]
        there = aimed.at(piece.sensitivities, weights, features, after, delta, bound)
        U = replace(there, centre=there.centre + there.R @ (late - mean))
        if not U.keeps(margins, piece.sensitivities, now).all():
            return Unknown("slacks and multipliers are too small to tell on which piece the truth lies")
        faces = None
        if responses is not None:
            firm = U.keeps(responses.margins + responses.sensitivities @ (now - mean), responses.sensitivities, now)
            faces = np.array([bool(firm[place].all()) for place in responses.places])
        roots = Roots(piece.T, None if responses is None else responses.grams)
        bound = Foreseen(size, self.chances[0])
        return _Foretold(piece, features, mean, region, flat_of(self.case.x), responses, faces, roots, bound)

    @cached_property
    def _known(self) -> "tuple[AffinePiece, Responses | None, Region, FloatArray] | Unknown":
        """What does not depend on the number of samples."""
        case, collapsed = self.case, self.evidence.collapsed
        assert collapsed is not None
        doubtful = [one for one in (case.facts.derivative, case.facts.constraints) if isinstance(one, Unknown)]
        if doubtful:
            return doubtful[0]
        (region,), _ = self.evidence.regions(self.evidence.suited())
        C, _ = case.noise_map(collapsed)
        if region is None or region.lower is None or region.upper is None or C is None:
            return Unknown("the support of the features has no known corners")
        piece = piece_of(case, C)
        if isinstance(piece, Unknown):
            return piece
        return piece, responses_of(case, piece, C), region, self.evidence.rows[0]


class Forecast:
    """The certificates that are expected, by the worlds that a pilot makes plausible."""

    def __init__(self, pilot: Case, delta: float, of: str) -> None:
        self.pilot, self.delta, self.of = pilot, delta, of

    @property
    def size(self) -> int:
        """Of the pilot, of the smallest data set."""
        return min((len(one) for one in self.pilot.samples), default=0)

    @property
    def _care(self) -> float:
        return (1 + CARE) ** (1 if self.of in ("residual", "distance") else 2)

    def kinds(self) -> list[tuple[str | None, Kind]]:
        """What `ez.certify` takes by itself, and what with `of=`, where that is another."""
        usual, alone = chosen(self.pilot)[0], chosen(self.pilot, self.of)[0]
        return [(None, usual), (self.of, alone)] if isinstance(usual, CertifiedPiece) else [(None, usual)]

    def needed(self, kind: Kind, target: float) -> Expected:
        """How many samples."""
        goal = target / self._care
        if isinstance(kind, AtTheTruth):
            made = Simulated(self.pilot, kind, self.delta, self.of)
            return self._asked(kind, lambda: made.needed(goal), lambda: made.because or SLOWLY)
        return self._asked(kind, lambda: self._enough(kind, goal), lambda: self._why_not(kind, goal))

    def given(self, kind: Kind, size: int) -> Expected:
        """What so many samples will give."""
        if isinstance(kind, AtTheTruth):
            made = Simulated(self.pilot, kind, self.delta, self.of)
            return self._asked(
                kind, lambda: made.given(size) * self._care, lambda: made.because or "so few give no bound"
            )
        return self._asked(kind, lambda: self._all_but_some(kind, size) * self._care, self._why_nothing)

    def _asked(self, kind: Kind, ask: Callable[[], float], why_not: Callable[[], str]) -> Expected:
        if not isinstance(kind, CertifiedPiece | MeanDeviation | AtTheTruth):
            return Expected(kind, None, f"the usual certificate is by {kind.title}, which has a row of its own")
        if self.size < SMALLEST:
            return Expected(kind, None, f"a pilot of {self.size} samples is too small (at least {SMALLEST})")
        try:
            answer = ask()
        except Refused as refused:
            return Expected(kind, None, str(refused))
        if math.isfinite(answer):
            return Expected(kind, answer)
        return Expected(kind, None, why_not())

    def _enough(self, kind: Kind, goal: float) -> float:
        """The number of samples that all but some worlds need at most; only those that need the most are searched."""
        most: list[float] = []  # what those worlds need that need the most
        for world in self._worlds:
            full = len(most) > self._misses
            if full and (not math.isfinite(most[0]) or self._value(world, kind, int(most[0])) <= goal):
                continue
            found = self._least(world, kind, goal, int(most[0]) if full else 1)
            most = sorted([*most, found])[-1 - self._misses :]
        return most[0]

    def _least(self, world: World, kind: Kind, goal: float, low: int) -> float:
        """The least s whose value is at most the goal, closely, above a `low` where it is not; ∞ where there is none.

        Values fall like 1/√s, or faster.
        """
        high, s = 0, max(low + 1, self.size if low == 1 else math.ceil(low * (1 + CLOSE)))
        while not high or high - low > max(1, CLOSE * low):
            found = self._value(world, kind, s)
            low, high = (low, s) if found <= goal else (s, high)
            if high:
                s = max(math.isqrt(low * high), low + 1)
            elif s >= MOST:
                return math.inf
            else:
                ahead = min(max((found / goal) ** 2, 1.1), 64.0) if math.isfinite(found) else 8.0
                s = min(MOST, math.ceil(s * ahead))
        return float(high)

    def _all_but_some(self, kind: Kind, size: int) -> float:
        """The value that all but some worlds give at most."""
        return sorted(self._value(world, kind, size) for world in self._worlds)[-1 - self._misses]

    @property
    def _misses(self) -> int:
        """How many worlds may miss the target."""
        return MISSES * len(self._worlds) // WORLDS

    def _value(self, world: World, kind: Kind, size: int) -> float:
        return world.value(kind, self.delta, self.of, size)

    def _why_nothing(self) -> str:
        """Why so many samples give no bound."""
        return next((world.because for world in self._worlds if world.because), "so few give no bound")

    def _why_not(self, kind: Kind, goal: float) -> str:
        """Why no number of samples will do, in the world that is the worst."""
        worst = max(self._worlds, key=lambda world: self._value(world, kind, MOST))
        most = self._value(worst, kind, MOST)
        if not math.isfinite(most):
            return self._why_nothing()
        size = length(flat_of(worst.case.x))
        if self.of == "distance" and goal < EPS * size:
            return f"no number of samples will do: the target is below rounding, {EPS * size:.1g} for this x"
        return f"more than {MOST:.0e} samples, at which it is about {most:.1g}"

    @cached_property
    def _worlds(self) -> list[World]:
        check_independent(self.pilot.samples)
        entries = max(1, len(flat_of(self.pilot.x)))
        many = max(LEAST_WORLDS, min(WORLDS, ENTRIES // entries))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return [World(self._drawn(seed), seed) for seed in range(many)]

    def _drawn(self, seed: int) -> Case:
        """Solved, on as many samples drawn from the pilot."""
        rng = np.random.default_rng([SEED, seed, 1])
        sets = [one.take(len(one), rng) for one in self.pilot.samples]
        given: Samples | list[Samples] = sets if self.pilot.own_data else sets[0]
        try:
            found = solve(self.pilot.problem, given, throw=False)
        except InputError as error:  # what no run is for, such as an operator that is seen not to be monotone
            cannot(str(error))
        if found.status.is_failure:
            cannot(f"a run on samples like the pilot's ended as {found.status.value}: ez.solve says more")
        case = Case.of(found)
        case.check_membership()
        return case
