"""Laws whose mean, variance and support are known exactly, from kind to vicious."""

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from epszero.certificates.mean import Region
from epszero.sets import Ball, Box, Simplex

PRICES = Path(__file__).parents[2] / "examples" / "prices_nl_2024.csv"
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


@dataclass(frozen=True, eq=False)
class Law:
    """The law of a random vector. `support` is None where it is not bounded."""

    name: str
    draw: Draw  # (rng, (trials, m)) → (trials, m, dim)
    mean: np.ndarray
    variance: float  # E‖X − EX‖²
    support: Any = None  # a set
    sigma: float | None = None  # sub-Gaussian in every direction

    @property
    def dim(self) -> int:
        return len(self.mean)

    @cached_property
    def region(self) -> Region | None:
        return None if self.support is None else Region.of(self.support, self.dim)

    @cached_property
    def size(self) -> float:
        """The largest number about: what rounding is measured against."""
        region = self.region
        if region is None or region.lower is None or region.upper is None:
            return float(np.abs(self.mean).max() + math.sqrt(self.variance))
        return float(max(np.abs(region.lower).max(), np.abs(region.upper).max()))


def atoms(name: str, points: Any, weights: Any = None, support: Any = None, sigma: float | None = None) -> Law:
    """Finitely many points; weights are uniform unless given. The support is their bounding box unless given."""
    points = np.asarray(points, dtype=float)
    weights = np.full(len(points), 1 / len(points)) if weights is None else np.asarray(weights, dtype=float)
    mean = weights @ points
    variance = float(weights @ np.sum((points - mean) ** 2, axis=1))
    support = Box(points.min(axis=0), points.max(axis=0)) if support is None else support
    return Law(name, lambda rng, n: points[rng.choice(len(points), size=n, p=weights)], mean, variance, support, sigma)


def uniform(name: str, lower: Any, upper: Any, support: Any = None) -> Law:
    """Independent uniform coordinates, which are sub-Gaussian with their own variance."""
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    variances = (upper - lower) ** 2 / 12
    return Law(
        name,
        lambda rng, n: rng.uniform(lower, upper, size=(*n, len(lower))),
        (lower + upper) / 2,
        float(variances.sum()),
        Box(lower, upper) if support is None else support,
        math.sqrt(variances.max()),
    )


def rare(p: float) -> Law:
    """0 but for a chance p of 1; its sub-Gaussian constant is that of Kearns and Saul."""
    sigma = math.sqrt((1 - 2 * p) / (2 * math.log((1 - p) / p)))
    law = atoms(f"rare, p = {p:g}", [[0.0], [1.0]], [1 - p, p], sigma=sigma)
    return Law(law.name, lambda rng, n: (rng.random((*n, 1)) < p) * 1.0, law.mean, law.variance, law.support, sigma)


def signs(dim: int, together: bool) -> Law:
    """Corners of the cube: each coordinate ±1 by itself, or all of them the same."""

    def draw(rng: np.random.Generator, n: tuple[int, int]) -> np.ndarray:
        drawn = rng.integers(0, 2, size=(*n, 1 if together else dim)) * 2.0 - 1.0
        return np.repeat(drawn, dim, axis=-1) if together else drawn

    name = f"{'two opposite' if together and dim > 1 else 'random'} corners, d = {dim}"
    sigma = math.sqrt(dim) if together else 1.0
    return Law(name, draw, np.zeros(dim), float(dim), Box(-np.ones(dim), np.ones(dim)), sigma)


def skewed_beta() -> Law:
    """Two independent coordinates, mostly near 0 and at times near 1."""
    a, b = np.array([0.1, 0.5]), np.array([1.5, 5.0])
    variance = float(np.sum(a * b / ((a + b) ** 2 * (a + b + 1))))
    box = Box(np.zeros(2), np.ones(2))
    return Law("skewed beta, d = 2", lambda rng, n: rng.beta(a, b, size=(*n, 2)), a / (a + b), variance, box, 0.5)


def factor(dim: int) -> Law:
    """A skewed factor that all coordinates share with signs, plus noise of their own."""
    loads = np.where(np.arange(dim) % 3 == 0, -0.7, 0.7)

    def draw(rng: np.random.Generator, n: tuple[int, int]) -> np.ndarray:
        common = np.where(rng.random((*n, 1)) < 0.1, 1.0, -1 / 9)  # mean 0, variance 1/9
        return common * loads + 0.3 * rng.uniform(-1, 1, size=(*n, dim))

    variance = float(np.sum(loads**2)) / 9 + dim * 0.09 / 3
    return Law(f"one factor, d = {dim}", draw, np.zeros(dim), variance, Box(-np.ones(dim), np.ones(dim)))


def sphere(dim: int) -> Law:
    """The surface of the unit ball, whose support is declared as a ball, off the origin."""
    middle = np.linspace(-1, 1, dim)

    def draw(rng: np.random.Generator, n: tuple[int, int]) -> np.ndarray:
        normal = rng.standard_normal((*n, dim))
        return middle + normal / np.linalg.norm(normal, axis=-1, keepdims=True)

    return Law(f"sphere, d = {dim}", draw, middle, 1.0, Ball(1.0, center=middle), 1 / math.sqrt(dim))


def prices() -> Law:
    """The days of a year of Dutch electricity prices, in EUR/kWh, each as likely as any other."""
    with PRICES.open(encoding="utf-8") as file:
        rows = [[float(cell) / 1000 for cell in row[1:]] for row in list(csv.reader(file))[1:]]
    return atoms(f"prices, d = {len(rows[0])}", rows)


def gaussian(dim: int) -> Law:
    scale, middle = np.linspace(0.5, 2.0, dim), np.full(dim, 3.0)
    variance = float(np.sum(scale**2))
    return Law(
        f"Gaussian, d = {dim}",
        lambda rng, n: middle + scale * rng.standard_normal((*n, dim)),
        middle,
        variance,
        sigma=float(scale.max()),
    )


def student(dim: int) -> Law:
    """Heavy tails: 3 degrees of freedom, scaled to variance 1 in each coordinate; no fourth moment."""
    return Law(
        f"Student t₃, d = {dim}",
        lambda rng, n: rng.standard_t(3, size=(*n, dim)) / math.sqrt(3),
        np.zeros(dim),
        float(dim),
    )


LAWS = {
    law.name: law
    for law in [
        uniform("uniform, d = 1", [0.0], [1.0]),
        uniform("uniform, d = 14", np.zeros(14), np.linspace(0.1, 2.0, 14)),
        rare(0.05),  # 1/(2m) for m = 10
        rare(0.01),
        rare(0.005),  # 1/(2m) for m = 100
        skewed_beta(),
        atoms("four atoms, d = 2", [[0, 0], [1, 0.1], [0.2, 3], [-2, 1]], [0.6, 0.3, 0.08, 0.02]),
        atoms("a point, d = 3", [[0.3, -0.1, 0.7]], sigma=0.0),
        uniform("flat in one coordinate, d = 2", [0.0, 0.3], [1.0, 0.3]),
        atoms("vertices of a simplex, d = 3", np.eye(3), support=Simplex(1.0, dim=3)),
        factor(50),
        signs(1, together=False),
        signs(200, together=False),
        signs(14, together=True),
        sphere(14),
        uniform("corner of a huge box, d = 2", [999.0, -1000.0], [1000.0, -999.0], support=Box(-1000.0, 1000.0, dim=2)),
        prices(),
        gaussian(1),
        gaussian(14),
        student(1),
        student(2),
    ]
}
