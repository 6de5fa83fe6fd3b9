"""Ill-conditioned and degenerate affine problems, with planted solutions.

Eigenvalues are spread evenly in their logarithms from condition^-½ to condition^½, so that float64 can show a residual
of 1e-8 at a solution of entries near 1. Degenerate: multipliers that are zero where a bound is met, solutions that are
not unique, operators of low rank or constant (a linear programme).
"""

import numpy as np

import epszero as ez
from benchmarks.collection._case import Array, Case, Posed, Region
from benchmarks.collection.affine import Place, Setting, affine, at, box, case, merely, semidefinite, simplex, strong
from benchmarks.collection.affine import whole as free


def spread(n: int, condition: float) -> Array:
    half = np.log10(condition) / 2
    return np.logspace(-half, half, n)


def _conditioned(kind: str, place: Setting, condition: float, n: int) -> Case:
    def build() -> Posed:
        rng = np.random.default_rng(int(np.log10(condition)))
        d = spread(n, condition)
        if kind == "diagonal":
            return at(np.diag(rng.permutation(d)), place(n, rng))
        Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        M = (Q * d) @ Q.T
        if kind == "turned":  # as much skew as symmetric, in the same scales
            K = rng.normal(size=(n, n)) / np.sqrt(n)
            root = (Q * np.sqrt(d)) @ Q.T
            M = M + root @ (K - K.T) @ root
        return at((M + M.T) / 2 if kind == "dense" else M, place(n, rng))

    where = "the whole space" if place is free else "a box"
    return Case(f"{kind}, condition {condition:.0e} on {where}, n = {n}", "ill-conditioned", build)


def _diagonal_by_units(n: int = 500) -> Posed:
    """d from 1 to 1e8, q of size 1: x = −q/d, in units that differ by 1e8."""
    rng = np.random.default_rng(8)
    d, q = np.logspace(0, 8, n), rng.normal(size=n)

    def F(x: Array) -> Array:
        return d * x + q

    posed = affine(np.diag(d), q, ez.sets.WholeSpace(dim=n), Region.box(-np.inf, np.inf, n), -q / d)
    return Posed(ez.VariationalInequality(lambda x: d * x + q, over=ez.sets.WholeSpace(dim=n)),
                 lambda x: float(np.linalg.norm(F(x))), None, -q / d, posed.forms, 1.0, F)  # fmt: skip


def _without_multipliers(place: Place) -> Place:
    return place._replace(normal=np.zeros_like(place.normal))


def _idle_box(n: int, rng: np.random.Generator) -> Place:
    return _without_multipliers(box(n, rng))


def _idle_simplex(n: int, rng: np.random.Generator) -> Place:
    return _without_multipliers(simplex(n, rng))


def _low_rank(n: int, rng: np.random.Generator) -> Array:
    return 5 * semidefinite(n, 3, rng)


def _flat(n: int, rng: np.random.Generator) -> Array:
    del rng
    return np.zeros((n, n))


def _programme() -> Posed:
    """A linear programme in standard form, as complementarity of x and y: merely monotone, by a skew matrix."""
    rng = np.random.default_rng(5)
    m, n = 20, 40
    A = rng.normal(size=(m, n)) / np.sqrt(n)
    x, y = (np.where(rng.random(k) < 0.5, rng.uniform(0.5, 1.5, k), 0.0) for k in (n, m))
    c = A.T @ y + np.where(x == 0, rng.uniform(0.1, 1.0, n), 0.0)
    b = A @ x - np.where(y == 0, rng.uniform(0.1, 1.0, m), 0.0)
    M = np.block([[np.zeros((n, n)), -A.T], [A, np.zeros((m, m))]])
    solution = np.concatenate([x, y])
    return affine(M, np.concatenate([c, -b]), ez.sets.NonNegative(dim=n + m), Region.box(0.0, np.inf, n + m), solution)


CASES = (
    *(_conditioned("diagonal", free, 10.0**k, n) for k, n in ((2, 100), (4, 100), (6, 500), (8, 500))),
    *(_conditioned("diagonal", box, 10.0**k, n) for k, n in ((4, 200), (8, 500))),
    *(_conditioned("dense", free, 10.0**k, n) for k, n in ((2, 200), (4, 200), (6, 200), (8, 500))),
    *(_conditioned("dense", box, 10.0**k, n) for k, n in ((4, 200), (6, 200), (8, 500))),
    *(_conditioned("turned", box, 10.0**k, n) for k, n in ((4, 100), (6, 100))),
    Case("diagonal in units from 1 to 1e8, n = 500", "ill-conditioned", _diagonal_by_units),
    case("strong, zero multipliers on a box", strong, _idle_box, 30, 1, "degenerate"),
    case("strong, zero multipliers on a simplex", strong, _idle_simplex, 30, 2, "degenerate"),
    case("merely monotone, zero multipliers on a box", merely, _idle_box, 40, 3, "degenerate"),
    case("rank 3 of 50 on a simplex", _low_rank, simplex, 50, 4, "degenerate"),
    case("rank 3 of 40 on a box, zero multipliers", _low_rank, _idle_box, 40, 6, "degenerate"),
    case("a constant operator on a box", _flat, box, 20, 7, "degenerate"),
    Case("a linear programme and its dual, n = 60", "degenerate", _programme),
)  # fmt: skip
