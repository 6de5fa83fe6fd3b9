"""Worlds whose truth is planted: x* and z* ∈ A(x*) are chosen, and B(x) = Hx + h + Cξ̄ is made so that −B(x*) = z*.

So x* is exact without solving anything, and it can be put wherever it hurts: on a kink, with a multiplier of 0, with a
slack of 0. A trial misses when any line of the certificate is wrong: distance, an agent's saving, the cost gap, or an
interval of an entry, of the aggregate, of a multiplier.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import epszero as ez
from epszero.certificates.certified_piece import CertifiedPiece
from epszero.facts import Unknown

from .certificates import Solved
from .laws import Law, atoms, uniform
from .worlds import charging, flat

ROUNDING = 1e-8  # of the solver that found x̂


@dataclass(frozen=True, eq=False)
class Planted:
    """A problem, the law behind its samples, and the truth."""

    problem: Any
    law: Law
    answer: np.ndarray  # x*
    s: int
    savings: Callable[[Any], np.ndarray] | None = None  # of every agent, at x
    gap: Callable[[np.ndarray], float] | None = None
    prices: np.ndarray | None = None  # multipliers of shared constraints
    start: Any = None  # x0: sets of any dimension do not say how many entries x has

    def solved(self, rng: np.random.Generator, trials: int) -> Solved:
        """On data sets of their own."""
        rows = self.law.draw(rng, (trials, self.s))
        given = [ez.Samples(one, support=self.law.support) for one in rows]
        return Solved(ez.solve_many(self.problem, given, x0=self.start))


@dataclass
class Tally:
    """What became of the trials at one δ."""

    misses: int = 0
    claims: Counter[str] = field(default_factory=Counter[str])
    certified: int = 0
    partly: int = 0
    trials: int = 0
    distances: list[float] = field(default_factory=list[float])  # that were claimed

    def __iadd__(self, other: "Tally") -> "Tally":
        self.misses += other.misses
        self.claims += other.claims
        self.certified += other.certified
        self.partly += other.partly
        self.trials += other.trials
        self.distances += other.distances
        return self

    def __str__(self) -> str:
        said = f"certified {self.certified}, partly {self.partly}"
        return f"{self.misses} of {self.trials}, {dict(self.claims)}, {said}"


def judged(world: Planted, solved: Solved, delta: float, of: str | None = None) -> Tally:
    """Every line of every certificate against the truth."""
    tally = Tally(trials=len(solved.solutions))
    for solution, certificate in zip(solved.solutions, solved.certified(delta, None, of), strict=True):
        false = wrong(world, solution, certificate)
        tally.claims.update(false)
        tally.misses += bool(false)
        tally.certified += certificate.sharp is not None and not isinstance(certificate.sharp.known, Unknown)
        tally.partly += certificate.sharp is not None and certificate.sharp.partial is not None
        tally.distances += [] if certificate.distance is None else [certificate.distance]
    return tally


def wrong(world: Planted, solution: ez.Solution, certificate: ez.Certificate) -> set[str]:
    """Which of a certificate's claims are false."""
    assert isinstance(certificate.using, CertifiedPiece), certificate.by
    found = set[str]()
    size = ROUNDING * (1 + float(np.abs(world.answer).max()))
    x = flat(solution.x)
    if certificate.distance is not None and np.linalg.norm(x - world.answer) > certificate.distance + size:
        found.add("distance")
    if world.savings is not None and certificate.exploitability is not None:
        savings = world.savings(solution.x)
        if np.any(savings > certificate.exploitability + size):
            found.add("exploitability")
        if savings.sum() > certificate.total_exploitability + size:
            found.add("total")
    if world.gap is not None and certificate.cost_gap is not None and world.gap(x) > certificate.cost_gap + size:
        found.add("cost gap")
    if certificate.sharp is None or isinstance(certificate.sharp.intervals, Unknown):
        return found
    if not certificate.sharp.levels.intervals > 0:
        return found
    if _outside(certificate.intervals, world.answer, size):
        found.add("intervals")
    if isinstance(world.problem, ez.AggregativeGame) and _outside(
        certificate.aggregate, world.answer.reshape(world.problem.agents, -1).sum(axis=0), size
    ):
        found.add("aggregate")
    if world.prices is not None and _outside(certificate.multipliers, world.prices, size):
        found.add("multipliers")
    return found


def _outside(band: Any, truth: np.ndarray, size: float) -> bool:
    return bool(np.any(truth < flat(band.lower) - size) or np.any(truth > flat(band.upper) + size))


# -- how worlds are made ---------------------------------------------------------------------------------------------


def _coin(d: int, p: float) -> Law:
    """0 but for a chance p of the far corner."""
    return atoms("rare", np.stack([np.zeros(d), np.ones(d)]), [1 - p, p])


def _cube(d: int) -> Law:
    return uniform("cube", -np.ones(d), np.ones(d))


def normal(d: int) -> Law:
    """Standard normal, which eight standard deviations hold."""
    eight = ez.sets.Box(-8.0, 8.0, dim=d)
    return Law("normal", lambda rng, n: np.clip(rng.normal(size=(*n, d)), -8.0, 8.0), np.zeros(d), float(d), eight)


def _skew(n: int, seed: int, mu: float = 1.0) -> np.ndarray:
    """Strongly monotone, far from symmetric."""
    root = np.random.default_rng(seed).normal(size=(n, n))
    return mu * np.eye(n) + root @ root.T / n + (root - root.T)


def _inside(A: Any, x: np.ndarray) -> np.ndarray:
    return np.asarray(A.project(np.zeros_like(x))) if isinstance(A, ez.sets.Set) else np.zeros_like(x)


def inclusion(A: Any, H: Any, C: Any, x: Any, z: Any, law: Law, s: int) -> Planted:
    """0 ∈ A(x) + Hx + h + Cξ̄."""
    H, C, x = (np.asarray(one, dtype=float) for one in (H, C, x))
    h = -np.asarray(z, dtype=float) - H @ x - C @ law.mean
    return Planted(ez.Inclusion(A, lambda v, xi: H @ v + h + C @ xi), law, x, s, start=_inside(A, x))


def minimum(A: Any, H: Any, C: Any, x: Any, z: Any, law: Law, s: int) -> Planted:
    """min A(x) + ½xᵀHx + hᵀx + xᵀCξ̄; `A` is a function, or a set."""
    H, C, x = (np.asarray(one, dtype=float) for one in (H, C, x))
    linear = -np.asarray(z, dtype=float) - H @ x
    problem = ez.Minimization(lambda v, xi: 0.5 * v @ H @ v + (linear - C @ law.mean + C @ xi) @ v, A)

    def cost(v: np.ndarray) -> float:
        own = 0.0 if isinstance(A, ez.sets.Set) else float(A(v))
        return float(0.5 * v @ H @ v + linear @ v) + own

    return Planted(problem, law, x, s, gap=lambda v: cost(v) - cost(x), start=_inside(A, x))


def duopoly(x: Any, z: Any, law: Law, s: int, shared: Any = None, prices: Any = None) -> Planted:
    """Two agents with two entries each, in each other's way; own Hessians are multiples of the identity."""
    bend, cross = np.array([1.0, 0.7]), 0.3
    boxes = [ez.sets.Box(-1.0, 1.0), ez.sets.Box(-0.5, 2.0, dim=2)]  # one of any dimension
    x, z = np.reshape(x, (2, 2)).astype(float), np.reshape(z, (2, 2)).astype(float)
    C = np.array([[[1.0, 0.2], [0.0, 1.0]], [[0.5, 0.0], [-0.3, 0.8]]])
    h = -z - bend[:, None] * x - cross * x[::-1] - C @ law.mean
    if shared is not None:
        h = h - (np.asarray(prices) @ shared[0]).reshape(2, 2)

    def cost(i):
        return lambda v, xi: 0.5 * bend[i] * v[i] @ v[i] + cross * v[0] @ v[1] + (h[i] + C[i] @ xi) @ v[i]

    def savings(v: Any) -> np.ndarray:
        v = np.stack(v)
        slope = bend[:, None] * v + cross * v[::-1] + h + C @ law.mean
        best = np.stack([np.asarray(boxes[i].project(v[i] - slope[i] / bend[i])) for i in range(2)])
        return -np.sum(slope * (best - v) + bend[:, None] / 2 * (best - v) ** 2, axis=1)

    start = {} if shared is None else {"shared": shared}
    problem = ez.Game([cost(0), cost(1)], boxes, **start)
    alone = savings if shared is None else None
    return Planted(problem, law, x.ravel(), s, alone, prices=prices, start=[np.zeros(2)] * 2)


def _charging(s: int) -> Planted:
    """Cars on a price pool: an aggregative game over boxes with budgets."""
    here = charging("prices")
    law = atoms("pool", np.unique(here.draw(np.random.default_rng(0), 20_000).values, axis=0))
    mean = ez.Samples(law.mean[None])
    answer = flat(ez.solve(here.problem, mean, tol=1e-12).x)

    def savings(x: Any) -> np.ndarray:
        best = here.savings
        assert best is not None
        return best(x)

    assert np.allclose(law.mean, np.ravel(here.truth.values))
    return Planted(here.problem, law, answer, s, savings)


def _bent(n: int, seed: int) -> np.ndarray:
    """Symmetric, with eigenvalues between 0.2 and about 3."""
    root = np.random.default_rng(seed).normal(size=(n, n))
    return 0.2 * np.eye(n) + root @ root.T / n


def _cars(s: int) -> Planted:
    """Six agents with budgets; the last one hardly leans on a bound, the others firmly."""
    rng = np.random.default_rng(4)
    rows = [(v, 0.0, 1.0, 1.0 - v) for v in rng.uniform(0.3, 0.7, 6)]
    pulls = [(0.0, -2.0, 2.0, 0.0)] * 5 + [(0.0, -2.0, 0.004, 0.0)]
    x, z = np.array(rows), np.array(pulls) - 1.0  # the budget's price is 1
    bend = np.linspace(0.8, 1.4, 6)
    C = 0.3 * np.eye(4)
    h = -z - bend[:, None] * x - 0.4 * x.mean(axis=0)
    law = _cube(4)

    def cost(own, mean, xi, p):
        return 0.5 * p["bend"] * own @ own + own @ (p["h"] + 0.4 * (mean - own / 6) + C @ xi) + 0.2 / 6 * own @ own

    game = ez.AggregativeGame(cost, {"bend": bend, "h": h}, ez.sets.BoxBudget(0.0, 1.0, at_least=2.0, dim=4))
    return Planted(game, law, x.ravel(), s)


PENTAGON = np.array([[1.0, 0.3], [0.2, 1.0], [-1.0, 0.1], [0.1, -1.0], [0.8, 0.9]])
NEAR = np.array([[1.0, 0.9], [0.9, 1.0]])  # where x₁ is held, x₂ moves; where it is not, x₂ does not
LINE, LINES = np.array([[1.0], [0.9]]), np.eye(3)[:, :2] + 0.3
WORLDS: dict[str, Callable[[], Planted]] = {
    "charging on a price pool": lambda: _charging(200),
    "box, H not symmetric": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0), _skew(4, 1), np.eye(4)[:, :3], [1.0, -0.4, 0.3, -1.0], [3.0, 0.0, 0.0, -3.0],
        _cube(3), 200),
    "simplex": lambda: inclusion(
        ez.sets.Simplex(dim=4), _skew(4, 2), 0.3 * np.eye(4), [0.5, 0.5, 0.0, 0.0], [0.5, 0.5, -1.5, -1.2],
        _cube(4), 300),
    "box with a budget": lambda: minimum(
        ez.sets.BoxBudget(0.0, 1.0, at_least=1.5, dim=4), np.diag([1.0, 2.0, 1.0, 0.5]), 0.2 * np.eye(4),
        [1.0, 0.3, 0.2, 0.0], [1.0, -1.0, -1.0, -3.0], _cube(4), 300),
    "lasso": lambda: minimum(
        ez.functions.L1(1.0), np.eye(3) + 0.2, np.eye(3), [0.8, -0.6, 0.0], [1.0, -1.0, 0.2], _cube(3), 300),
    "elastic net": lambda: minimum(
        ez.functions.ElasticNet(1.0, 0.5), np.eye(3) + 0.2, np.eye(3), [0.8, -0.6, 0.0], [1.4, -1.3, 0.2],
        _cube(3), 300),
    "total variation": lambda: minimum(
        ez.functions.TotalVariation1D(1.0), np.eye(4), 0.4 * np.eye(4), [0.7, 0.7, -0.8, -0.8],
        [0.2, 0.8, -1.2, 0.2], _cube(4), 300),
    "largest entry": lambda: minimum(
        ez.functions.MaxEntry(2.0), np.eye(3), 0.3 * np.eye(3), [0.5, 0.5, -0.9], [0.9, 1.1, 0.0], _cube(3), 300),
    "hinge": lambda: minimum(
        ez.functions.Hinge(1.0, 0.5), np.eye(3), 0.3 * np.eye(3), [0.5, 1.4, -0.6], [-0.5, 0.0, -1.0],
        _cube(3), 300),
    "l1 ball": lambda: minimum(
        ez.sets.Ball(1.0, norm=1, dim=3), np.eye(3), 0.3 * np.eye(3), [0.6, -0.4, 0.0], [1.0, -1.0, 0.1],
        _cube(3), 300),
    "polyhedron": lambda: inclusion(
        ez.sets.Polyhedron(PENTAGON, np.ones(5)), _skew(2, 5), 0.3 * np.eye(2), [1.0 - 0.3 * 0.2, 0.2],
        PENTAGON[0], _cube(2), 200),
    "two agents": lambda: duopoly(
        [1.0, 0.1, 0.4, -0.5], [1.5, 0.0, 0.0, -1.5], _cube(2), 200),
    "shared constraint": lambda: duopoly(
        [1.0, 0.1, 0.4, -0.5], [1.5, 0.0, 0.0, -1.5], _cube(2), 300,
        (np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([0.5])), np.array([1.0])),
    "a shared constraint that is hardly leant on": lambda: duopoly(
        [1.0, 0.1, 0.4, -0.5], [1.5, 0.0, 0.0, -1.5], _cube(2), 300,
        (np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]), np.array([0.5, 2.0])), np.array([0.01, 0.0])),
    "minimisation on a box": lambda: minimum(
        ez.sets.Box(-1.0, 1.0, dim=3), np.eye(3) + 0.5, LINES, [1.0, 0.2, -0.3], [2.0, 0.0, 0.0], _cube(2), 200),
    "a multiplier that is 0": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, LINE, [1.0, 0.0], [0.0, 0.0], _cube(1), 200),
    "a multiplier that is nearly 0": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, LINE, [1.0, 0.0], [0.003, 0.0], _cube(1), 200),
    "a half-space that is hardly leant on": lambda: inclusion(
        ez.sets.HalfSpace([1.0, 0.0], 1.0), NEAR, LINE, [1.0, 0.0], [0.003, 0.0], _cube(1), 200),
    "a slack that is nearly 0": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, LINE, [0.99, 0.0], [0.0, 0.0], _cube(1), 200),
    "a slack that is 0 off the face": lambda: inclusion(
        ez.sets.Polyhedron(PENTAGON, PENTAGON @ [0.3, 0.7] + np.array([0.0, 1.0, 1.0, 1.0, 0.0])), _skew(2, 5),
        0.3 * np.eye(2), [0.3, 0.7], PENTAGON[0], _cube(2), 200),
    "on a kink of the norm": lambda: minimum(
        ez.functions.L1(1.0), NEAR, LINE, [0.0, 0.5], [1.0, 1.0], _cube(1), 200),
    "a law on two points": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=3), _skew(3, 4), np.eye(3)[:, :2], [1.0, 0.2, -0.1], [0.8, 0.0, 0.0],
        _coin(2, 0.5), 200),
    "a rare corner": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, 5 * LINE, [0.98, 0.0], [0.0, 0.0], _coin(1, 0.005), 200),
    "T of rank 1": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=4), _skew(4, 3), np.outer([1.0, 0.0, 2.0, 1.0], [1.0, -1.0, 0.5]),
        [0.1, 1.0, -0.3, 0.0], [0.0, 9.0, 0.0, 0.0], _cube(3), 400),
    "one multiplier of eight is nearly 0": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=8), _bent(8, 0), np.eye(8), [1.0, 1.0, -1.0, 1.0, -1.0, 0.2, 0.1, -0.3],
        [2.0, 2.0, -2.0, 2.0, -0.003, 0.0, 0.0, 0.0], _cube(8), 400),
    "one slack of eight is nearly 0": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=8), _bent(8, 1), np.eye(8), [1.0, 1.0, -1.0, 1.0, -1.0, 0.2, 0.99, -0.3],
        [2.0, 2.0, -2.0, 2.0, -2.0, 0.0, 0.0, 0.0], _cube(8), 400),
    "a lasso of eight near a kink": lambda: minimum(
        ez.functions.L1(1.0), _bent(8, 2), 0.5 * np.eye(8), [0.8, -0.9, 0.0, 0.0, 0.0, 0.0, 0.01, 0.0],
        [1.0, -1.0, 0.1, -0.1, 0.2, 0.0, 1.0, 0.98], _cube(8), 400),
    "one car of six near a kink": lambda: _cars(400),
    "two samples": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, LINE, [1.0, 0.0], [0.3, 0.0], _cube(1), 2),
    "twenty samples": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), NEAR, LINE, [1.0, 0.0], [0.3, 0.0], _cube(1), 20),
    "hardly monotone": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=3), np.diag([1e-6, 1.0, 1.0]), np.eye(3)[:, 1:], [1.0, 0.3, -1.0],
        [0.5, 0.0, -1.0], _cube(2), 200),
    "normal": lambda: inclusion(
        ez.sets.Box(-1.0, 1.0, dim=2), np.eye(2), [[1.0], [0.5]], [0.0, 0.0], [0.0, 0.0], normal(1), 1000),
    "normal, eight entries": lambda: inclusion(
        ez.sets.Box(-9.0, 9.0, dim=8), np.eye(8), np.eye(8), np.zeros(8), np.zeros(8), normal(8), 100),
}  # fmt: skip


@functools.cache
def planted(name: str) -> Planted:
    """By name, built once."""
    return WORLDS[name]()
