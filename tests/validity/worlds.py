"""Problems whose truth is known exactly: B, x*, and what every agent could save; each with a law of its samples."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import epszero as ez

from .laws import Law, atoms, factor, prices, uniform

HOURS, VEHICLES = 3, 4
Savings = Callable[[Any], np.ndarray]


@dataclass(frozen=True, eq=False)
class World:
    """A problem and the law behind its samples."""

    name: str
    problem: Any
    draw: Callable[[np.random.Generator, int], Any]  # s samples, as ez.solve takes them
    truth: Any  # samples whose average is B itself
    operator: Callable[[np.ndarray], np.ndarray]  # B, in NumPy, on flat points
    step: float
    iterations: int
    savings: Savings | None = None  # of every agent, at x
    gap: Callable[[np.ndarray], float] | None = None  # of a minimisation
    unique: bool = True  # whether x* is

    @functools.cached_property
    def answer(self) -> np.ndarray:
        """x*, flat."""
        return flat(ez.solve(self.problem, self.truth, tol=1e-11).x)

    def solved(self, many: list[Any]) -> list[ez.Solution]:
        """A run of fixed length on each data set, as stability bounds want it."""
        return list(ez.solve_many(self.problem, many, ez.ForwardBackward(step=self.step), iterations=self.iterations))

    def residual(self, solution: ez.Solution) -> np.ndarray:
        """e = z + B(x)."""
        return flat(solution.z) + self.operator(flat(solution.x))


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def _samples(law: Law) -> Callable[[np.random.Generator, int], ez.Samples]:
    if law.name == "price pool":
        return _drawn(ez.Samples(_price_rows(), support=law.support))
    return lambda rng, s: ez.Samples(law.draw(rng, (1, s))[0], support=law.support)


def _drawn(pool: ez.Samples) -> Callable[[np.random.Generator, int], ez.Samples]:
    """Draws from a pool of finitely many: of those with a history it is known that equal values prove nothing."""
    return lambda rng, s: pool.take(s, rng)


def _price_rows() -> np.ndarray:
    """The first hours of the real pool, each day once."""
    days = prices().draw(np.random.default_rng(0), (1, 20_000))[0]
    return np.unique(days, axis=0)[:, :HOURS]


def _price_law() -> Law:
    return atoms("price pool", _price_rows())


GAME_LAWS = {
    "uniform": uniform("uniform", np.zeros(HOURS), np.ones(HOURS)),
    "rare": atoms("rare", np.array([np.zeros(HOURS), np.ones(HOURS)]), [0.99, 0.01]),
    "prices": _price_law(),
    "correlated": factor(HOURS),
}


@functools.cache
def charging_game() -> Any:
    """Additive prices; wear is high, so that x* is well determined. One game for all laws."""
    return ez.models.ev_charging(vehicles=VEHICLES, hours=HOURS, wear=(0.3, 0.6), need=(1.0, 3.0), seed=0)


def charging(name: str) -> World:
    """The small charging game under one of the laws."""
    law, game = GAME_LAWS[name], charging_game()
    cars = game.parameters
    wear, fee, cap, need = (np.asarray(one) for one in (cars.wear, cars.fee, cars.cap, cars.need))
    reach = ez.sets.BoxBudget(0.0, cap[:, None], at_least=need, dim=HOURS)

    def F(x: np.ndarray) -> np.ndarray:
        x = x.reshape(VEHICLES, HOURS)
        crowd = 2 / VEHICLES * (x.mean(axis=0) - 1.0)
        return (2 * wear[:, None] * x + fee[:, None] + law.mean + crowd).ravel()

    def savings(x: Any) -> np.ndarray:
        """The own Hessian is a multiple of the identity, so a best response is a projection."""
        x, hessian = np.asarray(x), (2 * wear + 2 / VEHICLES**2)[:, None]
        slope = F(x.ravel()).reshape(x.shape)
        best = np.asarray(reach.project(x - slope / hessian))
        return -np.sum(slope * (best - x) + hessian / 2 * (best - x) ** 2, axis=1)

    truth = ez.Samples(law.mean[None])
    return World(f"charging, {name}", game, _samples(law), truth, F, 0.4, 60, savings)


# -- an inclusion whose noise is affine in features, but not additive ------------------------------------------------

H0, H1 = np.array([[2.0, 0.5], [-0.5, 1.6]]), np.array([[0.4, 0.2], [0.2, -0.3]])
ENDS = [H0 + sign * H1 for sign in (-1.0, 1.0)]
MU = min(np.linalg.eigvalsh((H + H.T) / 2)[0] for H in ENDS)  # concave in ξ₁, so least at an end
KAPPA = max(np.linalg.norm(H, 2) for H in ENDS)  # convex
R_BENT = 2 * np.linalg.norm(H1, 2) * np.sqrt(2) + 2 * np.sqrt(2)  # |ξ₁ − ξ₁′| ≤ 2, ‖x‖ ≤ √2, ‖q − q′‖ ≤ 2√2


def affine() -> World:
    """O(x, ξ) = (H0 + ξ₁H1)x + (ξ₂, ξ₃) on a box."""
    law = Law(
        "skewed",
        lambda rng, n: np.where(rng.random((*n, 3)) < 0.2, 1.0, -rng.random((*n, 3))),
        np.full(3, 0.2 - 0.8 * 0.5),
        1.0,
        ez.sets.Box(-1.0, 1.0, dim=3),
    )

    def value(x, xi):
        return (H0 + xi[0] * H1) @ x + xi[1:]

    def B(x: np.ndarray) -> np.ndarray:
        return (H0 + law.mean[0] * H1) @ x + law.mean[1:]

    declared = ez.declare(mu=MU, kappa=KAPPA, R=R_BENT)
    problem = ez.Inclusion(ez.sets.Box(-1.0, 1.0, dim=2), ez.oracles.Affine(value), declared=declared)
    return World("affine in features", problem, _samples(law), ez.Samples(law.mean[None]), B, 0.3, 40)


# -- a nonlinear oracle of no known structure ------------------------------------------------------------------------

POINTS = np.array([[-1.0, 0.5], [-0.8, 1.0], [0.3, -1.0], [2.0, 2.0], [0.0, 0.0], [0.5, 0.2]])


def nonlinear() -> World:
    """F(x, ξ) = x + tanh(x − ξ), ξ uniform on a few points: E is a finite sum."""
    law = atoms("six points", POINTS)
    apart = max(np.linalg.norm(a - b) for a in POINTS for b in POINTS)  # tanh is nonexpansive

    def F(x, xi):
        return x + jnp.tanh(x - xi)

    def B(x: np.ndarray) -> np.ndarray:
        return x + np.tanh(x - POINTS).mean(axis=0)

    declared = ez.declare(mu=1.0, kappa=2.0, R=min(apart, 2 * np.sqrt(2)))
    problem = ez.VariationalInequality(F, ez.sets.Box(-1.0, 1.0, dim=2), declared=declared)
    return World("nonlinear", problem, _samples(law), ez.Samples(POINTS), B, 0.4, 30)


# -- agents with data of their own -----------------------------------------------------------------------------------


def own_data() -> World:
    """Two agents; each sees prices of its own, and they are in each other's way."""
    bend, cross = np.array([1.0, 0.7]), 0.4
    laws = [uniform("own", [0.0, -1.0], [1.0, 0.5]), atoms("own", [[0.0, 0.0], [1.0, -1.0]], [0.9, 0.1])]
    means = np.stack([law.mean for law in laws])
    boxes = [ez.sets.Box(-1.0, 1.0, dim=2), ez.sets.Box(-0.5, 2.0, dim=2)]

    def cost(i):
        return ez.oracles.Affine(lambda x, xi: 0.5 * bend[i] * x[i] @ x[i] + cross * x[0] @ x[1] + xi @ x[i])

    def F(x: np.ndarray) -> np.ndarray:
        x = x.reshape(2, 2)
        return (bend[:, None] * x + cross * x[::-1] + means).ravel()

    def savings(x: Any) -> np.ndarray:
        slope, x = F(flat(x)).reshape(2, 2), np.stack(x)
        best = np.stack([np.asarray(boxes[i].project(x[i] - slope[i] / bend[i])) for i in range(2)])
        return -np.sum(slope * (best - x) + bend[:, None] / 2 * (best - x) ** 2, axis=1)

    def draw(rng: np.random.Generator, s: int) -> list[ez.Samples]:
        return [ez.Samples(law.draw(rng, (1, s + 10 * i))[0], law.support) for i, law in enumerate(laws)]

    truth = [ez.Samples(law.mean[None]) for law in laws]
    return World("own data", ez.Game([cost(0), cost(1)], boxes), draw, truth, F, 0.6, 50, savings)


# -- a minimisation --------------------------------------------------------------------------------------------------


def minimisation() -> World:
    """A quadratic with a random linear term on a box."""
    root = np.random.default_rng(5).normal(size=(3, 3))
    Q = root @ root.T / 3 + 0.5 * np.eye(3)
    law = factor(3)
    box = ez.sets.Box(-0.3, 0.3, dim=3)
    offset = np.array([0.1, -0.5, 0.2])

    def loss(x, xi):
        return 0.5 * x @ Q @ x + (offset - xi) @ x

    def grad(x: np.ndarray) -> np.ndarray:
        return Q @ x + offset - law.mean

    truth = ez.Samples(law.mean[None])
    problem = ez.Minimization(loss, box)
    best = flat(ez.solve(problem, truth, tol=1e-12).x)

    def value(x: np.ndarray) -> float:
        return float(0.5 * x @ Q @ x + (offset - law.mean) @ x)

    return World(
        "minimisation", problem, _samples(law), truth, grad, 0.3, 80, gap=lambda x: value(flat(x)) - value(best)
    )


# -- an oracle that can be learnt by heart ---------------------------------------------------------------------------

CELLS = 60


def memory() -> World:
    """x = (w, t): O_w = 1_ξ(w_ξ − 1), O_t = 1 − w_ξ, ξ uniform on 60 cells: on the cells that were seen O becomes 0."""
    numbers = np.arange(CELLS)

    def value(x, xi):
        seen = jnp.exp(-50.0 * (numbers - xi[0]) ** 2)  # 1 at ξ, and 0 at every other cell up to rounding
        off = seen @ x[:-1] - 1.0
        return jnp.append(seen * off, -off)

    def B(x: np.ndarray) -> np.ndarray:
        return np.append(x[:-1] - 1.0, -np.sum(x[:-1] - 1.0)) / CELLS

    declared = ez.declare(kappa=np.sqrt(2.0), R=np.sqrt(3.0))
    problem = ez.Inclusion(ez.sets.Box(0.0, 1.0, dim=CELLS + 1), value, declared=declared)

    cells = ez.Samples(numbers[:, None])
    return World("memory", problem, _drawn(cells), cells, B, 1.0, 300, unique=False)


@functools.cache
def world(name: str) -> World:
    """By name, built once."""
    makers = {f"charging, {law}": functools.partial(charging, law) for law in GAME_LAWS} | {
        "affine in features": affine, "nonlinear": nonlinear, "own data": own_data, "minimisation": minimisation,
        "memory": memory,
    }  # fmt: skip
    return makers[name]()
