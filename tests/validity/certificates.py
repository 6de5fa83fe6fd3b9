"""The study of whole certificates: every kind, on problems whose truth is known (worlds.py).

All that a certificate says it says on one event: a trial misses when any of ‖e‖ ≤ ε, ‖x − x*‖ ≤ distance, an agent's
true saving, that of all agents together, or the cost gap is wrong.

What is shared: one solve per data set serves all kinds and both δ; so does what a kind starts from (`Case`), with what
it has looked up: membership of the graph, features, ê. A stream is read at its end only, by a certificate that knows of
its earlier looks: it is the one that updates lead to, and never weaker than those before, so a trial that misses at any
look misses there (both in tests/certificates/test_stream.py). Where the oracle has features the stream is what the run
has seen, the harder case. Left out: the default bound of MeanDeviation where it is empirical Bernstein, which is there.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import epszero as ez
from epszero._double import double
from epszero.certificates import (
    Anytime,
    Bernstein,
    Betting,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    Kind,
    McDiarmid,
    MeanDeviation,
    MedianOfMeans,
    RepairedStability,
    Stitched,
    SubGaussian,
    Tightest,
    UniformStability,
    VectorStability,
)
from epszero.certificates.case import Case
from epszero.certificates.certify import certificate_of
from epszero.certificates.choose import chosen
from epszero.certificates.together import prepare

from .coverage import Row, quantile
from .worlds import GAME_LAWS, World, flat, world

DELTAS = (0.3, 0.05)
SIZE = 60
LOOKS = (15, 30)  # before the last, at SIZE
AT_ONCE = 500  # trials that are solved together
ROUNDING = 1e-9  # of the solver that found x*, of the projections that give savings


class Solved:
    """Solutions on data sets of their own, with fresh samples beside each where a kind wants them."""

    def __init__(self, solutions: list[ez.Solution], fresh: Sequence[Any] = ()) -> None:
        self.solutions, self.fresh = solutions, fresh
        with double():
            self.cases = [Case.of(one) for one in solutions]

    def certified(self, delta: float, kind: Kind | None, of: str | None = None) -> list[ez.Certificate]:
        """As `ez.certify_many` does it, but for the cases, which serve the next kind, too.

        Confidence sets do not: those of the samples that the run has seen are not those of fresh ones, or of a stream.
        """
        with double():
            prepare(self.cases, kind or chosen(self.cases[0], of)[0], delta)
        found = [self._one(place, delta, kind, of) for place in range(len(self.cases))]
        for case in self.cases:
            case.sets.clear()
        return found

    def each(self, delta: float, kind: Callable[[Any], Kind]) -> list[ez.Certificate]:
        """By a kind of its own for each, made of its fresh samples."""
        return [self._one(place, delta, kind(fresh), None) for place, fresh in enumerate(self.fresh)]

    def _one(self, place: int, delta: float, kind: Kind | None, of: str | None) -> ez.Certificate:
        return replace(certificate_of(self.cases[place], delta, kind, of), solution=self.solutions[place])


Certify = Callable[[Solved, float], list[ez.Certificate]]


@dataclass(frozen=True, eq=False)
class Entrant:
    """A way to certify, and the data that solutions are made of."""

    name: str
    certify: Certify
    data: Callable[[World, np.random.Generator], Any] = lambda world, rng: world.draw(rng, SIZE)


def plain(name: str, kind: Kind) -> Entrant:
    """One kind for all trials."""
    return Entrant(name, lambda solved, delta: solved.certified(delta, kind))


def apart(kind: Callable[[Any], Kind]) -> Certify:
    """A kind made of fresh samples, for each trial its own."""
    return lambda solved, delta: solved.each(delta, kind)


def _held_out(bound: Any = None) -> Certify:
    return apart(lambda fresh: HoldOut(bound, samples=fresh))


def moving(world: World, rng: np.random.Generator) -> ez.Samples:
    """Means of two successive draws: samples two apart are independent, so β(2) = 0 and Σφ ≤ φ(1) ≤ 1."""
    drawn = world.draw(rng, 2 * SIZE + 1)
    return ez.Samples((drawn.values[1:] + drawn.values[:-1]) / 2, support=drawn.support)


STRUCTURED = [
    *(plain(f"mean deviation, {type(bound).__name__}", MeanDeviation(bound)) for bound in (
        EmpiricalBernstein(), Betting(), Bernstein(), Hoeffding(), McDiarmid(), Stitched())),
    plain("tightest of three", Tightest([MeanDeviation(EmpiricalBernstein()), MeanDeviation(Betting()),
                                         VectorStability()], weights=[2, 1, 1])),
    plain("anytime, EmpiricalBernstein", Anytime(EmpiricalBernstein(), looks=LOOKS)),
    plain("anytime, Betting", Anytime(Betting(), looks=LOOKS)),
    plain("anytime, Hoeffding", Anytime(Hoeffding(), looks=LOOKS)),
]  # fmt: skip
STABLE = [
    plain("as published, replacement", UniformStability()),
    plain("as published, removal", UniformStability("removal")),
    plain("repaired", RepairedStability()),
    plain("vector stability", VectorStability()),
]
HELD = [
    Entrant("hold-out", _held_out()),
    Entrant("hold-out, Hoeffding", _held_out(Hoeffding())),
]
MIXED = [
    Entrant("dependent, β", plain("", Dependent(beta=[1.0, 0.0])).certify, moving),
    Entrant("dependent, φ", plain("", Dependent(phi=[1.0])).certify, moving),
]
# Tails that are declared: the variance of the first law, or the sub-Gaussian constant of a uniform coordinate.
TAILS = [
    plain("mean deviation, SubGaussian", MeanDeviation(SubGaussian(np.sqrt(1 / 12)))),
    plain("mean deviation, MedianOfMeans", MeanDeviation(MedianOfMeans(0.5))),
]
FROZEN = [Entrant("anytime, frozen x", apart(lambda fresh: Anytime(samples=fresh, looks=LOOKS)))]
OWN = [plain("mean deviation, EmpiricalBernstein", MeanDeviation(EmpiricalBernstein()))]

# Those that are anywhere near the truth, and so are worth more trials where time is short.
TIGHT = {"mean deviation, EmpiricalBernstein", "mean deviation, Betting", "mean deviation, SubGaussian",
         "mean deviation, MedianOfMeans", "hold-out", "dependent, β"}  # fmt: skip
ENTRANTS: dict[str, list[Entrant]] = {
    **{f"charging, {law}": [*STRUCTURED, *STABLE, *HELD, *MIXED] for law in GAME_LAWS},
    "affine in features": [*STRUCTURED, *STABLE, *HELD, *MIXED],
    "nonlinear": [*STABLE, *HELD, *FROZEN],
    "memory": [*HELD, *FROZEN],
    "own data": OWN,
    "minimisation": [*STRUCTURED[:2], *STABLE, *HELD],
}
ENTRANTS["charging, uniform"] = [*ENTRANTS["charging, uniform"], *TAILS]


@dataclass
class Outcome:
    """What became of one entrant's trials at one δ."""

    misses: int = 0
    claims: Counter[str] = field(default_factory=Counter[str])  # how often each claim was wrong
    epsilons: list[float] = field(default_factory=list[float])
    refused: int = 0

    def add(self, false: set[str], epsilon: float) -> None:
        """One trial more."""
        self.misses += bool(false)
        self.claims.update(false)
        self.epsilons.append(epsilon)
        self.refused += not np.isfinite(epsilon)


def wrong(world: World, solution: ez.Solution, certificate: ez.Certificate) -> set[str]:
    """Which of a certificate's claims are false."""
    found = set[str]()
    if np.linalg.norm(world.residual(solution)) > certificate.epsilon + ROUNDING:
        found.add("residual")
    known = certificate.distance is not None and world.unique
    if known and np.linalg.norm(flat(solution.x) - world.answer) > certificate.distance + ROUNDING:
        found.add("distance")
    if certificate.exploitability is not None and world.savings is not None:
        savings = world.savings(solution.x)
        if np.any(savings > certificate.exploitability + ROUNDING):
            found.add("exploitability")
        if savings.sum() > certificate.total_exploitability + ROUNDING:
            found.add("total exploitability")
    gap = None if certificate.cost_gap is None or world.gap is None else world.gap(solution.x)
    if gap is not None and gap > certificate.cost_gap + ROUNDING:
        found.add("cost gap")
    return found


def trials_of(
    world: World, entrants: Sequence[Entrant], deltas: Sequence[float], trials: int, seed: int
) -> tuple[dict[tuple[str, float], Outcome], np.ndarray]:
    """Every entrant at every δ on the same draws, and ‖e‖ of the trials."""
    outcomes = {(entrant.name, delta): Outcome() for entrant in entrants for delta in deltas}
    norms: list[float] = []
    for number, draw in enumerate(dict.fromkeys(entrant.data for entrant in entrants)):
        rng = np.random.default_rng([seed, number])
        solutions = world.solved([draw(world, rng) for _ in range(trials)])
        norms += [float(np.linalg.norm(world.residual(one))) for one in solutions] if not norms else []
        fresh = [None if world.name == "own data" else world.draw(rng, SIZE) for _ in range(trials)]
        solved = Solved(solutions, fresh)
        for entrant in (one for one in entrants if one.data is draw):
            for delta in deltas:
                found = entrant.certify(solved, delta)
                for solution, certificate in zip(solutions, found, strict=True):
                    outcomes[entrant.name, delta].add(wrong(world, solution, certificate), certificate.epsilon)
    return outcomes, np.array(norms)


class Certificates:
    """Whole certificates."""

    name = "of whole certificates"

    def tasks(self) -> list[str]:
        return list(ENTRANTS)

    def run(self, task: str, trials: int) -> list[Row]:
        total = {(one.name, delta): Outcome() for one in ENTRANTS[task] for delta in DELTAS}
        norms = np.empty(0)
        for start in range(0, trials, AT_ONCE):
            many = min(AT_ONCE, trials - start)
            outcomes, more = trials_of(world(task), ENTRANTS[task], DELTAS, many, seed=2024 + start)
            norms = np.append(norms, more)
            for key, outcome in outcomes.items():
                total[key].misses += outcome.misses
                total[key].epsilons += outcome.epsilons
        ratios = {key: float(np.mean(one.epsilons)) / quantile(norms, key[1]) for key, one in total.items()}
        return [
            Row(self.name, name, task, str(SIZE), delta, one.misses, trials, ratios[name, delta])
            for (name, delta), one in total.items()
        ]
