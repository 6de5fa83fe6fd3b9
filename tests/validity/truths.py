"""Worlds for the noise at the truth: oracles whose Jacobian is random, or that are not affine, on pools of samples.

The law is uniform on a pool of rows, so B is an average that can be computed and x* is solved for on the whole pool. A
trial misses when any line of the certificate is wrong: residual, distance, an agent's saving or the cost gap.
"""

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

import epszero as ez
from epszero.certificates import AtTheTruth

from .worlds import flat

ROUNDING = 1e-7  # of the solver that found x* and x̂


@dataclass(frozen=True, eq=False)
class Pool:
    """A problem, all rows that can occur, each as likely as the others, and where they lie."""

    problem: Any
    rows: np.ndarray
    support: Any
    s: int
    cost: Callable[[np.ndarray], float] | None = None  # of a minimisation, under the law

    @functools.cached_property
    def answer(self) -> np.ndarray:
        """x*."""
        return flat(ez.solve(self.problem, self.law).x)

    @functools.cached_property
    def law(self) -> ez.Samples:
        """All rows, once."""
        return ez.Samples(self.rows)

    def solved(self, trials: int, seed: int = 0) -> list[ez.Solution]:
        """On data sets of their own."""
        pool = ez.Samples(self.rows, support=self.support)
        return list(ez.solve_many(self.problem, [pool.take(self.s, seed=seed + trial + 1) for trial in range(trials)]))


def judged(
    world: Pool, solutions: list[ez.Solution], delta: float, of: str | None = None, said: list[float] | None = None
) -> Counter[str]:
    """How many certificates are wrong, in which lines, in any, and how many say something of the distance: `said`."""
    tally = Counter[str]()
    for solution, found in zip(solutions, ez.certify_many(solutions, delta, AtTheTruth(of)), strict=True):
        false = wrong(world, solution, found)
        tally.update(false)
        tally["any"] += bool(false)
        tally["distances"] += found.distance is not None
        if said is not None and found.distance is not None:
            said.append(found.distance)
        tally["refused"] += found.verdict is ez.certificates.Verdict.REFUSED
    return tally


def wrong(world: Pool, solution: ez.Solution, found: ez.Certificate) -> set[str]:
    """Which claims are false."""
    false, size = set[str](), ROUNDING * (1 + float(np.abs(world.answer).max()))
    x = flat(solution.x)
    if np.linalg.norm(x - world.answer) > (np.inf if found.distance is None else found.distance) + size:
        false.add("distance")
    if replace(solution, samples=world.law).check().residual > found.epsilon + size:
        false.add("residual")
    gap = np.inf if found.cost_gap is None else found.cost_gap
    if world.cost is not None and world.cost(x) - world.cost(world.answer) > gap + size:
        false.add("cost gap")
    return false


# -- how worlds are made ---------------------------------------------------------------------------------------------


def _data(n: int, seed: int, many: int = 400) -> np.ndarray:
    """(b, a) with b near a straight function of a, all in [−1, 1]."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, size=(many, n))
    b = np.clip(a @ np.linspace(0.4, -0.3, n) + 0.2 * rng.normal(size=many), -1, 1)
    return np.column_stack([b, a])


def _squares(x: Any, row: Any) -> Any:
    return 0.5 * (row[1:] @ x - row[0]) ** 2


def regression(A: Any, rows: np.ndarray, s: int, ridge: float = 0.0) -> Pool:
    """Least squares, plain: the gradient is a(aᵀx − b)."""
    a, b = rows[:, 1:], rows[:, 0]

    def cost(x: np.ndarray) -> float:
        own = 0.0 if isinstance(A, ez.sets.Set) else float(A(x))
        return float(np.mean((a @ x - b) ** 2) / 2 + ridge * x @ x / 2) + own

    problem = ez.Minimization(lambda x, row: _squares(x, row) + 0.5 * ridge * x @ x, A)
    return Pool(problem, rows, ez.sets.Box(-1.0, 1.0, dim=rows.shape[1]), s, cost)


def portfolio(n: int, seed: int, s: int, rare: bool = False) -> Pool:
    """Markowitz: the curvature is rrᵀ."""
    rng = np.random.default_rng(seed)
    r = np.clip(0.3 * rng.normal(size=(300, n)) + 0.1 * rng.normal(size=n), -1, 1)
    if rare:
        r[:2] = -1.0  # one sample in 150 is a crash
    H, h = 2 * r.T @ r / len(r), r.mean(axis=0)
    problem = ez.Minimization(lambda w, r: w @ jnp.outer(r, r) @ w - r @ w, ez.sets.Simplex(dim=n))
    return Pool(problem, r, ez.sets.Box(-1.0, 1.0, dim=n), s, lambda w: float(w @ H @ w / 2 - h @ w))


def turning(seed: int, s: int, target: float) -> Pool:
    """A variational inequality that is not symmetric, with a random slope, over a box."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 1, size=(300, 3))
    K = np.array([[0.0, 1.0], [-1.0, 0.0]])

    def F(x: Any, xi: Any) -> Any:
        return (0.5 + xi[0]) * x + xi[1] * (K @ x) - target * xi[2] * jnp.ones(2)

    return Pool(ez.VariationalInequality(F, ez.sets.Box(-1.0, 1.0, dim=2)), rows, ez.sets.Box(0.0, 1.0, dim=3), s)


def game(seed: int, s: int) -> Pool:
    """Two agents with random curvature."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(0, 1, size=(300, 3))

    def cost(i: int) -> Any:
        return lambda x, xi: (0.5 + xi[i]) * x[i] @ x[i] + 0.3 * x[0] @ x[1] - xi[2] * x[i].sum()

    boxes = [ez.sets.Box(-0.4, 0.4, dim=1), ez.sets.Box(-2.0, 2.0, dim=1)]
    return Pool(ez.Game([cost(0), cost(1)], boxes), rows, ez.sets.Box(0.0, 1.0, dim=3), s)


def logistic(n: int, seed: int, s: int) -> Pool:
    """Not affine in x."""
    rows = _data(n, seed)
    rows[:, 0] = np.where(rows[:, 0] > 0, 1.0, -1.0)
    y, a = rows[:, 0], rows[:, 1:]

    def loss(x: Any, row: Any) -> Any:
        return jnp.log1p(jnp.exp(-row[0] * (row[1:] @ x))) + 0.25 * x @ x

    def cost(x: np.ndarray) -> float:
        return float(np.mean(np.log1p(np.exp(-y * (a @ x)))) + 0.25 * x @ x)

    problem = ez.Minimization(loss, ez.sets.Ball(2.0, dim=n))
    return Pool(problem, rows, ez.sets.Box(-1.0, 1.0, dim=n + 1), s, cost)


def _two_points() -> Pool:
    """Least squares in one entry, with two samples that can occur, one of them rarely."""
    rows = np.array([[0.2, 0.5]] * 199 + [[1.0, 1.0]])
    return regression(ez.sets.Box(-3.0, 3.0, dim=1), rows, 100)


WORLDS: dict[str, Callable[[], Pool]] = {
    "ridge": lambda: regression(ez.sets.Box(-2.0, 2.0, dim=3), _data(3, 1), 400, ridge=0.1),
    "least squares in the whole space": lambda: regression(ez.sets.WholeSpace(dim=2), _data(2, 2), 2000),
    "least squares on a ball": lambda: regression(ez.sets.Ball(0.3, dim=3), _data(3, 3), 400),
    "lasso": lambda: regression(ez.functions.L1(0.02), _data(4, 4), 1500),
    "portfolio": lambda: portfolio(4, 5, 400),
    "portfolio with crashes": lambda: portfolio(3, 6, 200, rare=True),
    "turning": lambda: turning(7, 400, 0.5),
    "turning, on a corner": lambda: turning(8, 400, 5.0),
    "turning, on a kink": lambda: turning(9, 400, 2.0),
    "two agents": lambda: game(10, 400),
    "two points": _two_points,
    "logistic": lambda: logistic(2, 11, 400),
}


@functools.cache
def pool(name: str) -> Pool:
    """By name, built once."""
    return WORLDS[name]()
