"""Zero-sum matrix games: player 0 pays xᵀAy, both mix. F(x, y) = (Ay, −Aᵀx), skew, over two simplices.

Uniform and normal entries, cyclic games like rock-paper-scissors (whose equilibrium is the uniform mixture when all
weights are equal), games with a saddle point in pure strategies, and ones with many equilibria.
"""

from collections.abc import Callable

import numpy as np

import epszero as ez
from benchmarks.collection._case import FREE, Affine, Array, Case, Payoffs, Posed, Region, natural


def game(A: Array, planted: Array | None = None) -> Posed:
    m, n = A.shape
    M = np.block([[np.zeros((m, m)), A], [-A.T, np.zeros((n, n))]])

    def F(x: Array) -> Array:
        return np.concatenate([A @ x[m:], -A.T @ x[:m]])

    def back(v: Array) -> Array:
        return np.concatenate([on_simplex(v[:m]), on_simplex(v[m:])])

    sides = [Region.box(0.0, FREE, k).cut(np.ones(k), 1.0, 1.0) for k in (m, n)]
    forms = (Payoffs(A), Affine(M, np.zeros(m + n), Region.product(sides)))
    return Posed(ez.models.zero_sum(A), natural(F, back), None, planted, forms, 1.0, F)


def on_simplex(v: Array, total: float = 1.0) -> Array:
    """The projection on {x ≥ 0, Σx = total}, by sorting: Held, Wolfe & Crowder, Math. Prog. 6 (1974)."""
    falling = np.sort(v)[::-1]
    levels = (np.cumsum(falling) - total) / np.arange(1, len(v) + 1)
    return np.maximum(v - levels[np.flatnonzero(falling >= levels)[-1]], 0.0)


def _cyclic(n: int, weights: Array | None = None) -> Array:
    """Each of n actions beats the (n − 1)/2 that follow it."""
    behind = (np.arange(n)[None] - np.arange(n)[:, None]) % n
    sign = np.where(behind == 0, 0.0, np.where(behind <= n // 2, 1.0, -1.0))
    return sign if weights is None else sign * np.sqrt(np.outer(weights, weights))


def _pure(n: int, rng: np.random.Generator) -> Array:
    """With a saddle point: the largest entry of its row and the least of its column."""
    A = rng.normal(size=(n, n))
    i, j = n // 3, n // 2
    A[i, j] = 0.0
    A[i, np.arange(n) != j] = -rng.uniform(0.1, 2.0, n - 1)
    A[np.arange(n) != i, j] = rng.uniform(0.1, 2.0, n - 1)
    return A


def _repeated(n: int, rng: np.random.Generator) -> Array:
    """Each row and column twice: equilibria are not unique."""
    return rng.uniform(size=(n // 2, n // 2)).repeat(2, axis=0).repeat(2, axis=1)


def _case(name: str, make: Callable[[np.random.Generator], Array], planted: Array | None = None) -> Case:
    return Case(name, "matrix game", lambda: game(make(np.random.default_rng(0)), planted))


CASES = (
    *(_case(f"uniform {n} × {n}", lambda rng, n=n: rng.uniform(size=(n, n))) for n in (5, 20, 50, 100, 300)),
    _case("normal 10 × 15", lambda rng: rng.normal(size=(10, 15))),
    _case("normal 50 × 50", lambda rng: rng.normal(size=(50, 50))),
    _case("normal 100 × 80", lambda rng: rng.normal(size=(100, 80))),
    _case("rock, paper, scissors", lambda rng: _cyclic(3), np.full(6, 1 / 3)),
    _case("cyclic, 21 actions", lambda rng: _cyclic(21), np.full(42, 1 / 21)),
    _case("cyclic, 15 actions of weights 1 to 5", lambda rng: _cyclic(15, np.linspace(1.0, 5.0, 15))),
    _case("a saddle point, 10 × 10", lambda rng: _pure(10, rng)),
    _case("a saddle point, 50 × 50", lambda rng: _pure(50, rng)),
    _case("repeated rows and columns, 20 × 20", lambda rng: _repeated(20, rng)),
    _case("rank 4, 40 × 40", lambda rng: rng.normal(size=(40, 4)) @ rng.normal(size=(4, 40)) / 4),
)  # fmt: skip
