"""The study of whole certificates: every kind, on problems whose truth is known (worlds.py).

All that a certificate says it says on one event: a trial misses when any of ‖e‖ ≤ ε, ‖x − x*‖ ≤ distance, an agent's
true saving, that of all agents together, or the cost gap is wrong.
"""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import epszero as ez
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

from .coverage import Row, quantile
from .worlds import GAME_LAWS, World, flat, world

DELTAS = (0.3, 0.05)
SIZE = 60
LOOKS = (15, 30, 60)
AT_ONCE = 500  # trials that are solved together
ROUNDING = 1e-9  # of the solver that found x*, of the projections that give savings
Certify = Callable[[list[ez.Solution], list[Any], float], Iterable[Iterable[ez.Certificate]]]


@dataclass(frozen=True, eq=False)
class Entrant:
    """A way to certify: from solutions and fresh samples to the certificates of each that were read, in turn."""

    name: str
    certify: Certify
    data: Callable[[World, np.random.Generator], Any] = lambda world, rng: world.draw(rng, SIZE)


def plain(name: str, kind: Kind) -> Entrant:
    """One kind for all trials."""
    return Entrant(name, lambda solutions, fresh, delta: [[one] for one in ez.certify_many(solutions, delta, kind)])


def single(certify: Callable[[ez.Solution, Any, float], Iterable[ez.Certificate]]) -> Certify:
    """One solution after another."""
    return lambda solutions, fresh, delta: [
        certify(one, aside, delta) for one, aside in zip(solutions, fresh, strict=True)
    ]


def _held_out(bound: Any = None) -> Certify:
    return single(lambda solution, fresh, delta: [ez.certify(solution, delta, HoldOut(bound, samples=fresh))])


def _streamed(bound: Any = None) -> Certify:
    """The data come in pieces, and the certificate is read after each."""

    def certify(solution: ez.Solution, fresh: Any, delta: float) -> Iterable[ez.Certificate]:
        certificate = ez.certify(solution, delta, Anytime(bound, samples=fresh[: LOOKS[0]]))
        yield certificate
        for start, end in itertools.pairwise(LOOKS):
            yield (certificate := certificate.update(fresh[start:end]))

    return single(certify)


def moving(world: World, rng: np.random.Generator) -> ez.Samples:
    """Means of two successive draws: samples two apart are independent, so β(2) = 0 and Σφ ≤ φ(1) ≤ 1."""
    drawn = world.draw(rng, 2 * SIZE + 1)
    return ez.Samples((drawn.values[1:] + drawn.values[:-1]) / 2, support=drawn.support)


STRUCTURED = [
    plain("mean deviation, default", MeanDeviation()),
    *(plain(f"mean deviation, {type(bound).__name__}", MeanDeviation(bound)) for bound in (
        EmpiricalBernstein(), Betting(), Bernstein(), Hoeffding(), McDiarmid(), Stitched())),
    plain("tightest of three", Tightest([MeanDeviation(EmpiricalBernstein()), MeanDeviation(Betting()),
                                         VectorStability()], weights=[2, 1, 1])),
    Entrant("anytime, EmpiricalBernstein", _streamed(EmpiricalBernstein())),
    Entrant("anytime, Betting", _streamed(Betting())),
    Entrant("anytime, Hoeffding", _streamed(Hoeffding())),
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
FROZEN = [Entrant("anytime, frozen x", _streamed())]
OWN = [plain("mean deviation, default", MeanDeviation()),
       plain("mean deviation, EmpiricalBernstein", MeanDeviation(EmpiricalBernstein()))]  # fmt: skip

# Those that are anywhere near the truth, and so are worth more trials where time is short.
TIGHT = {"mean deviation, EmpiricalBernstein", "mean deviation, Betting", "mean deviation, SubGaussian",
         "mean deviation, MedianOfMeans", "hold-out", "dependent, β"}  # fmt: skip
ENTRANTS: dict[str, list[Entrant]] = {
    **{f"charging, {law}": [*STRUCTURED, *STABLE, *HELD, *MIXED] for law in GAME_LAWS},
    "affine in features": [*STRUCTURED, *STABLE, *HELD, *MIXED],
    "nonlinear": [*STABLE, *HELD, *FROZEN],
    "memory": [*HELD, *FROZEN],
    "own data": OWN,
    "minimisation": [*STRUCTURED[:3], *STABLE, *HELD],
}
ENTRANTS["charging, uniform"] = [*ENTRANTS["charging, uniform"], *TAILS]


@dataclass
class Outcome:
    """What became of one entrant's trials at one δ."""

    misses: int = 0
    claims: Counter[str] = field(default_factory=Counter[str])  # how often each claim was wrong
    epsilons: list[float] = field(default_factory=list[float])  # of the last certificate read
    refused: int = 0


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
        for entrant in (one for one in entrants if one.data is draw):
            for delta in deltas:
                outcome = outcomes[entrant.name, delta]
                for solution, read in zip(solutions, entrant.certify(solutions, fresh, delta), strict=True):
                    _judge(world, solution, list(read), outcome)
    return outcomes, np.array(norms)


def _judge(world: World, solution: ez.Solution, read: list[ez.Certificate], outcome: Outcome) -> None:
    false = set[str]().union(*(wrong(world, solution, certificate) for certificate in read))
    outcome.misses += bool(false)
    outcome.claims.update(false)
    outcome.epsilons.append(read[-1].epsilon)
    outcome.refused += not np.isfinite(read[-1].epsilon)


class Certificates:
    """Whole certificates."""

    name = "of whole certificates"

    def tasks(self) -> list[tuple[str, str]]:
        return [(where, entrant.name) for where, entrants in ENTRANTS.items() for entrant in entrants]

    def run(self, task: tuple[str, str], trials: int) -> list[Row]:
        where, name = task
        (entrant,) = [one for one in ENTRANTS[where] if one.name == name]
        total, norms = {delta: Outcome() for delta in DELTAS}, np.empty(0)
        for start in range(0, trials, AT_ONCE):
            many = min(AT_ONCE, trials - start)
            outcomes, more = trials_of(world(where), [entrant], DELTAS, many, seed=2024 + start)
            norms = np.append(norms, more)
            for delta, one in total.items():
                one.misses += outcomes[name, delta].misses
                one.epsilons += outcomes[name, delta].epsilons
        return [Row(self.name, name, where, str(SIZE), delta, one.misses, trials,
                    float(np.mean(one.epsilons)) / quantile(norms, delta)) for delta, one in total.items()]  # fmt: skip
