"""Affine variational inequalities with planted solutions: strongly and merely monotone, skew, on sets of each kind.

A solution x* is drawn on the set, with about half of what can be active active, and an n in the normal cone there;
q = −Mx* − n makes it one. Sources of the two that have none planted by us: Murty, Linear Complementarity, Linear and
Nonlinear Programming (1988), ch. 6; Fathi, Math. Prog. 17 (1979).
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import epszero as ez
from benchmarks.collection._case import FREE, Affine, Array, Case, Posed, Region, length, natural


class Place(NamedTuple):
    """A set with a point on it and an element of the normal cone there."""

    over: ez.sets.Set
    region: Region
    x: Array
    normal: Array


def affine(M: Array, q: Array, over: ez.sets.Set, region: Region, planted: Array | None = None) -> Posed:
    """VI(Mx + q, set)."""

    def F(x: Array) -> Array:
        return M @ x + q

    problem = ez.VariationalInequality(lambda x: M @ x + q, over=over)
    size = length(np.zeros(1) if planted is None else planted)
    return Posed(problem, natural(F, region.project), None, planted, (Affine(M, q, region),), size, F)


def at(M: Array, place: Place) -> Posed:
    """The affine problem that `place` solves."""
    return affine(M, -M @ place.x - place.normal, place.over, place.region, place.x)


def whole(n: int, rng: np.random.Generator) -> Place:
    return Place(ez.sets.WholeSpace(dim=n), Region.box(-FREE, FREE, n), rng.normal(size=n), np.zeros(n))


def box(n: int, rng: np.random.Generator) -> Place:
    side = rng.integers(-1, 3, n)  # at the lower end, at the upper end, or between
    x = np.select([side == -1, side == 1], [-1.0, 1.0], rng.uniform(-0.9, 0.9, n))
    normal = np.where(np.abs(x) == 1.0, x * rng.uniform(0.1, 2.0, n), 0.0)
    return Place(ez.sets.Box(-1.0, 1.0, dim=n), Region.box(-1.0, 1.0, n), x, normal)


def orthant(n: int, rng: np.random.Generator) -> Place:
    zero = rng.random(n) < 0.5
    x = np.where(zero, 0.0, rng.uniform(0.1, 2.0, n))
    return Place(ez.sets.NonNegative(dim=n), Region.box(0.0, FREE, n), x, np.where(zero, -rng.uniform(0.1, 2, n), 0.0))


def simplex(n: int, rng: np.random.Generator) -> Place:
    zero = rng.permutation(n) >= max(2, n // 3)
    x = np.where(zero, 0.0, rng.uniform(0.1, 1.0, n))
    x /= x.sum()
    region = Region.box(0.0, FREE, n).cut(np.ones(n), 1.0, 1.0)
    return Place(ez.sets.Simplex(dim=n), region, x, 0.7 - np.where(zero, rng.uniform(0.1, 2.0, n), 0.0))


def budget(n: int, rng: np.random.Generator) -> Place:
    kind = rng.integers(0, 3, n)
    x = np.select([kind == 0, kind == 1], [0.0, 1.0], rng.uniform(0.1, 0.9, n))
    normal = np.select([kind == 0, kind == 1], [-rng.uniform(0.1, 2, n), rng.uniform(0.1, 2, n)], 0.0) - 0.5
    region = Region.box(0.0, 1.0, n).cut(np.ones(n), x.sum(), FREE)
    return Place(ez.sets.BoxBudget(0.0, 1.0, at_least=x.sum(), dim=n), region, x, normal)


def polyhedron(n: int, rng: np.random.Generator, rows: int | None = None) -> Place:
    rows = 2 * n if rows is None else rows
    G, x = rng.normal(size=(rows, n)), rng.normal(size=n)
    met = np.arange(rows) < n // 2
    h = G @ x + np.where(met, 0.0, rng.uniform(0.5, 2.0, rows))
    normal = G.T @ np.where(met, rng.uniform(0.1, 1.0, rows), 0.0)
    return Place(ez.sets.Polyhedron(G, h), Region.box(-FREE, FREE, n).cut(G, -FREE, h), x, normal)


def skew(n: int, rng: np.random.Generator) -> Array:
    """K − Kᵀ, of norm about 2."""
    K = rng.normal(size=(n, n)) / np.sqrt(n)
    return (K - K.T) / 1.4


def semidefinite(n: int, rank: int, rng: np.random.Generator) -> Array:
    """Symmetric, of this rank and of norm about 1."""
    root = rng.normal(size=(n, rank)) / np.sqrt(n)
    return root @ root.T / (1 + np.sqrt(rank / n)) ** 2


def strong(n: int, rng: np.random.Generator) -> Array:
    return 0.5 * np.eye(n) + semidefinite(n, n, rng) + skew(n, rng)


def merely(n: int, rng: np.random.Generator) -> Array:
    return semidefinite(n, max(1, n // 2), rng) + skew(n, rng)


def symmetric(n: int, rng: np.random.Generator) -> Array:
    return 0.1 * np.eye(n) + semidefinite(n, n, rng)


Maker = Callable[[int, np.random.Generator], Array]
Setting = Callable[[int, np.random.Generator], Place]


def case(name: str, matrix: Maker, place: Setting, n: int, seed: int = 0, family: str = "affine") -> Case:
    def build() -> Posed:
        rng = np.random.default_rng(seed)
        return at(matrix(n, rng), place(n, rng))

    return Case(f"{name}, n = {n}", family, build)


def _ball() -> Posed:
    """Over the unit ball, at a point of its sphere."""
    rng = np.random.default_rng(3)
    n = 30
    M, x = strong(n, rng), rng.normal(size=n)
    x /= np.linalg.norm(x)
    q = -M @ x - 0.7 * x

    def F(x: Array) -> Array:
        return M @ x + q

    def project(v: Array) -> Array:
        return v / max(1.0, float(np.linalg.norm(v)))

    problem = ez.VariationalInequality(lambda x: M @ x + q, over=ez.sets.Ball(radius=1.0, dim=n))
    return Posed(problem, natural(F, project), None, x, (), 1.0, F)


def _pulled(n: int, rng: np.random.Generator) -> Array:
    """Plane rotations with a pull of a hundredth."""
    del rng
    return 0.01 * np.eye(n) + np.kron(np.eye(n // 2), np.array([[0.0, 1.0], [-1.0, 0.0]]))


def _murty() -> Posed:
    """M_ij = 2 above the diagonal, 1 on it; q = −1; the symmetric part is 11ᵀ; solved by the last unit vector."""
    n = 100
    last = np.zeros(n)
    last[-1] = 1.0
    M = np.eye(n) + 2 * np.triu(np.ones((n, n)), 1)
    return affine(M, -np.ones(n), ez.sets.NonNegative(dim=n), Region.box(0.0, FREE, n), last)


def _fathi() -> Posed:
    """M = LLᵀ with L Murty's lower triangular matrix, q = −1: symmetric, positive definite, of condition 1e5."""
    n = 30
    L = np.eye(n) + 2 * np.tril(np.ones((n, n)), -1)
    first = np.zeros(n)
    first[0] = 1.0
    return affine(L @ L.T, -np.ones(n), ez.sets.NonNegative(dim=n), Region.box(0.0, FREE, n), first)


CASES = (
    case("strongly monotone on a box", strong, box, 20),
    case("strongly monotone on a box", strong, box, 200),
    case("strongly monotone on the orthant", strong, orthant, 100),
    case("strongly monotone on a simplex", strong, simplex, 50),
    case("strongly monotone on a box with budget", strong, budget, 50),
    case("strongly monotone on a polyhedron", strong, polyhedron, 10),
    case("strongly monotone on the whole space", strong, whole, 100),
    Case("strongly monotone on a ball, n = 30", "affine", _ball),
    case("symmetric on a box with budget", symmetric, budget, 100),
    case("symmetric on a simplex", symmetric, simplex, 200),
    case("merely monotone on a box", merely, box, 50),
    case("merely monotone on a simplex", merely, simplex, 40),
    case("merely monotone on the orthant", merely, orthant, 60),
    case("merely monotone on a polyhedron", merely, polyhedron, 10),
    case("skew on a box", skew, box, 40),
    case("skew on a simplex", skew, simplex, 30),
    case("skew on a box with budget", skew, budget, 60),
    case("skew on the whole space", skew, whole, 100),
    case("rotations with a pull of 0.01 on a box", _pulled, box, 100),
    Case("Murty's complementarity problem, n = 100", "affine", _murty),
    Case("Fathi's complementarity problem, n = 30", "affine", _fathi),
)
