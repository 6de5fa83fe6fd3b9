"""Random problems to plan for, their laws and pilots: what `test_forecast.py` draws from."""

import functools
import itertools
from typing import Any, NamedTuple

import numpy as np

import epszero as ez

LAWS = ("uniform", "skewed", "bell", "two points", "rare")
DELTAS = (0.01, 0.05, 0.2)
SIZES = (100, 50_000)  # between which about as many samples are needed
PILOTS = (50, 2000)
REAL = 1e-9  # targets below are rounding
POOL = 20_000  # rows, each as likely as any other


class Asked(NamedTuple):
    """A problem, a law and a question."""

    problem: Any
    of: str
    delta: float
    pilot: int
    about: int  # samples that the target takes, more or less
    pool: ez.Samples
    law: str

    def samples(self, s: int, seed: int) -> ez.Samples:
        """Of the law, which is that of a row of the pool."""
        return self.pool.take(s, seed)

    def certified(self, s: int, seed: int, using: Any = None, of: str | None = None) -> float:
        """What the certificate says of s samples."""
        found = ez.certify(ez.solve(self.problem, self.samples(s, seed)), self.delta, using, of)
        lines = {"residual": found.epsilon, "distance": found.distance, "cost gap": found.cost_gap,
                 "exploitability": found.exploitability}  # fmt: skip
        value = lines[self.of]
        return np.inf if value is None else float(np.max(value))

    def target(self) -> float:
        """What about so many samples give."""
        return self.certified(self.about, 10**6)


@functools.cache
def questions(many: int) -> list[tuple[Asked, float]]:
    """The first so many questions and their targets, without those where the truth is a vertex that no noise moves."""
    found: list[tuple[Asked, float]] = []
    for number in itertools.count():
        one = asked(number)
        target = one.target()
        if REAL < target < np.inf:
            found.append((one, target))
        if len(found) == many:
            return found
    raise AssertionError


def asked(number: int) -> Asked:
    """The question with this number."""
    rng = np.random.default_rng([15, number])
    make, measures = FAMILIES[number % len(FAMILIES)]
    problem, shift = make(rng)
    of = measures[rng.integers(len(measures))]
    pilot, about = (round(float(np.exp(rng.uniform(*np.log(ends))))) for ends in (PILOTS, SIZES))
    delta, law = DELTAS[rng.integers(len(DELTAS))], LAWS[rng.integers(len(LAWS))]
    wide = float(rng.choice([1.0, 1.0, 2.0, 6.0]))  # the support over the range of the law
    support = ez.sets.Box(shift - (wide - 1) / 2, shift + 1 + (wide - 1) / 2)
    pool = ez.Samples(shift + _rows(law, rng, len(shift)), support=support)
    return Asked(problem, of, delta, pilot, about, pool, f"{law}, {wide:g}")


def _rows(law: str, rng: np.random.Generator, d: int) -> Any:
    """In the unit cube."""
    if law == "uniform":
        return rng.uniform(size=(POOL, d))
    if law == "two points":
        return (rng.uniform(size=(POOL, d)) < 0.4).astype(float)
    if law == "rare":
        return rng.uniform(0.2, 0.4, size=(POOL, d)) + 0.6 * (rng.uniform(size=(POOL, d)) < 0.08)
    return rng.beta(*((0.6, 2.4) if law == "skewed" else (8.0, 8.0)), size=(POOL, d))


def _matrix(rng: np.random.Generator, d: int, twist: float) -> Any:
    root, skew = rng.normal(size=(d, d)) / np.sqrt(d), rng.normal(size=(d, d))
    return root @ root.T + 0.3 * np.eye(d) + twist * (skew - skew.T)


def _minimisation(rng: np.random.Generator) -> tuple[Any, Any]:
    H = _matrix(rng, 4, 0.0)
    over = ez.sets.Box(-0.5, 0.5, dim=4) if rng.uniform() < 0.5 else ez.sets.BoxBudget(0.0, 1.0, at_least=1.5, dim=4)
    return ez.Minimization(lambda x, xi: 0.5 * x @ H @ x - xi @ x, over), rng.uniform(-1.0, 0.5, size=4)


def _inequality(rng: np.random.Generator) -> tuple[Any, Any]:
    H, C = _matrix(rng, 5, 0.3), rng.normal(size=(5, 3))
    return ez.VariationalInequality(lambda x, xi: H @ x + C @ xi, ez.sets.Box(-1.0, 1.0, dim=5)), rng.uniform(-1, 1, 3)


def _one_number(rng: np.random.Generator) -> tuple[Any, Any]:
    H, c = _matrix(rng, 3, 0.0), rng.normal(size=3)
    simplex = ez.sets.Simplex(dim=3)
    return ez.Minimization(lambda x, xi: 0.5 * x @ H @ x + xi[0] * (c @ x), simplex), rng.uniform(-1.0, 1.0, size=1)


def _game(rng: np.random.Generator) -> tuple[Any, Any]:
    cars = {"wear": rng.uniform(0.2, 0.6, size=5), "need": rng.uniform(1.0, 3.0, size=5)}
    return ez.AggregativeGame(_cost, cars, _strategies(rng)), rng.uniform(0.0, 0.3, size=3)


def _strategies(rng: np.random.Generator) -> Any:
    return ez.sets.BoxBudget(0.0, 2.5, at_least=rng.uniform(1.0, 3.0, size=5), dim=3)


def _cost(x: Any, mean: Any, price: Any, car: Any) -> Any:
    return car["wear"] * x @ x + price @ x + mean @ x


FAMILIES = (
    (_minimisation, ("residual", "distance", "cost gap")),
    (_game, ("residual", "distance", "exploitability")),
    (_inequality, ("residual", "distance")),
    (_minimisation, ("distance", "cost gap")),
    (_game, ("distance", "exploitability")),
    (_one_number, ("residual", "distance", "cost gap")),
)
