"""Games and complementarity problems from the literature, with the published numbers.

Murphy, Sherali & Soyster, Math. Prog. 24 (1982): five firms. Harker, Math. Prog. 41 (1988), as `nash` in Dirkse &
Ferris, MCPLIB (1995): ten firms. Facchinei & Kanzow, "Penalty methods for the solution of generalized Nash equilibrium
problems (with complete test problems)" (2009): A.1 and A.14, internet switching. Krawczyk & Uryasev, Environ. Model.
Assess. 5 (2000): a duopoly and river basin pollution. Facchinei, Fischer & Piccialli, Oper. Res. Lett. 35 (2007): two
players and a line. Taji, Fukushima & Ibaraki, Math. Prog. 58 (1993): an affine map and arctangents. Kojima & Shindo,
J. Oper. Res. Soc. Japan 29 (1986): not monotone.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks.collection._case import FREE, Array, Case, Posed, Region, length, natural
from benchmarks.collection._games import game, numbers
from benchmarks.collection.affine import skew


def _oligopoly(c: Array, slope: Array, beta: Array, elasticity: float, top: float, planted: Array | None) -> Posed:
    """Costs c q + β/(1+β) slope^(1/β) q^((1+β)/β), price (5000/Q)^(1/elasticity); q ≥ 1, as there is no price at 0."""
    n = len(c)

    def F(x: Array) -> Array:
        total = x.sum()
        price = (5000 / total) ** (1 / elasticity)
        return c + (slope * x) ** (1 / beta) - price * (1 - x / (elasticity * total))

    def cost(i: int) -> Any:
        def lost(x: list[Any]) -> Any:
            q, total = x[i][0], jnp.sum(jnp.concatenate(x))
            made = c[i] * q + beta[i] / (1 + beta[i]) * slope[i] ** (1 / beta[i]) * q ** ((1 + beta[i]) / beta[i])
            return made - q * (5000 / total) ** (1 / elasticity)

        return lost

    size = length(np.full(n, 10.0))
    return game([cost(i) for i in range(n)], numbers(np.full(n, 1.0), np.full(n, top)), F, planted=planted, scale=size)


def _murphy() -> Posed:
    c, beta = np.array([10.0, 8, 6, 4, 2]), np.array([1.2, 1.1, 1.0, 0.9, 0.8])
    return _oligopoly(c, np.full(5, 1 / 5), beta, 1.1, 100.0, None)


def _harker() -> Posed:
    c = np.array([5.0, 3, 8, 5, 1, 3, 7, 4, 6, 3])
    beta = np.array([1.2, 1, 0.9, 0.6, 1.5, 1, 0.7, 1.1, 0.95, 0.75])
    return _oligopoly(c, np.full(10, 10.0), beta, 1.2, 100.0, None)


def _switching(lower: Array, upper: Array, planted: Array | None) -> Posed:
    """−x_i/S (1 − S) with S = Σx ≤ 1: monotone, as S³J's symmetric part is S(I + (1 − p)(1 − p)ᵀ − ppᵀ), p = x/S."""

    def F(x: Array) -> Array:
        total = x.sum()
        return 1.0 - (total - x) / total**2

    def cost(i: int) -> Any:
        def lost(x: list[Any]) -> Any:
            total = jnp.sum(jnp.concatenate(x))
            return -x[i][0] / total * (1 - total)

        return lost

    n = len(lower)
    shared = np.ones((1, n)), np.ones(1)
    return game([cost(i) for i in range(n)], numbers(lower, upper), F, shared=shared, planted=planted)


def _a1() -> Posed:
    return _switching(np.array([0.3] + [0.01] * 9), np.array([0.5] + [1.0] * 9), None)


def _a14() -> Posed:
    return _switching(np.full(10, 0.01), np.ones(10), np.full(10, 0.09))


def _quadratic(d: float, steep: float, c: Array, bend: Array, shared: Any, planted: Array) -> Posed:
    """(c + bend x_i) x_i − (d − steep Σx) x_i, x ≥ 0."""
    n = len(c)

    def F(x: Array) -> Array:
        return c + 2 * bend * x - d + steep * (x.sum() + x)

    def cost(i: int) -> Any:
        return lambda x: (c[i] + bend[i] * x[i][0] - d + steep * jnp.sum(jnp.concatenate(x))) * x[i][0]

    lower, upper = np.zeros(n), np.full(n, FREE)
    M = np.diag(2 * bend + steep) + steep
    return game([cost(i) for i in range(n)], numbers(lower, upper), F, shared=shared, planted=planted, scale=10.0,
                affine=(M, c - d))  # fmt: skip


def _duopoly() -> Posed:
    return _quadratic(20.0, 1.0, np.full(2, 4.0), np.zeros(2), None, np.full(2, 16 / 3))


def _river() -> Posed:
    """The planted point follows from the rows that are met: the first constraint alone, with one multiplier."""
    c, bend = np.array([0.1, 0.12, 0.15]), np.array([0.01, 0.05, 0.01])
    reach = np.array([[6.5, 5.0, 5.5], [4.583, 6.25, 3.75]]) * np.array([0.5, 0.25, 0.75])
    M = np.diag(2 * bend + 0.01) + 0.01
    system = np.block([[M, reach[:1].T], [reach[:1], np.zeros((1, 1))]])
    planted = np.linalg.solve(system, np.append(3.0 - c, 100.0))[:3]
    return _quadratic(3.0, 0.01, c, bend, (reach, np.full(2, 100.0)), planted)


def _line() -> Posed:
    """(x₁ − 1)² and (x₂ − ½)², x₁ + x₂ ≤ 1: the variational equilibrium is (3/4, 1/4)."""
    target = np.array([1.0, 0.5])
    costs = [lambda x: (x[0][0] - 1.0) ** 2, lambda x: (x[1][0] - 0.5) ** 2]
    sides = numbers(np.full(2, -FREE), np.full(2, FREE))
    return game(costs, sides, lambda x: 2 * (x - target), shared=(np.ones((1, 2)), np.ones(1)),
                planted=np.array([0.75, 0.25]), affine=(2 * np.eye(2), -2 * target))  # fmt: skip


def _arctangents(n: int, steep: float) -> Posed:
    """F(x) = Mx + q + d arctan(x), M = skew + small positive, x ≥ 0."""
    rng = np.random.default_rng(9)
    M, d = skew(n, rng) + 0.05 * np.eye(n), rng.uniform(0.0, steep, n)
    zero = rng.random(n) < 0.5
    planted = np.where(zero, 0.0, rng.uniform(0.1, 2.0, n))
    q = np.where(zero, rng.uniform(0.1, 1.0, n), 0.0) - M @ planted - d * np.arctan(planted)
    problem = ez.VariationalInequality(lambda x: M @ x + q + d * jnp.arctan(x), over=ez.sets.NonNegative(dim=n))

    def F(x: Array) -> Array:
        return M @ x + q + d * np.arctan(x)

    return Posed(problem, natural(F, Region.box(0.0, FREE, n).project), None, planted, (), length(planted), F)


def _kojima(x: Any, xp: Any) -> Any:
    a, b, c, d = x
    return xp.stack([3 * a**2 + 2 * a * b + 2 * b**2 + c + 3 * d - 6, 2 * a**2 + a + b**2 + 10 * c + 2 * d - 2,
                     3 * a**2 + a * b + 2 * b**2 + 2 * c + 9 * d - 9, a**2 + 3 * b**2 + 2 * c + 3 * d - 3])  # fmt: skip


def _kojima_shindo() -> Posed:
    problem = ez.VariationalInequality(lambda x: _kojima(x, jnp), over=ez.sets.Box(0.0, 10.0, dim=4))
    back = Region.box(0.0, 10.0, 4).project
    return Posed(problem, natural(lambda x: _kojima(x, np), back), None, np.array([np.sqrt(1.5), 0.0, 0.0, 0.5]))


CASES = (
    Case("oligopoly of Murphy, Sherali & Soyster", "literature", _murphy),
    Case("oligopoly of Harker, ten firms", "literature", _harker),
    Case("internet switching A.1, ten users", "literature", _a1),
    Case("internet switching A.14, ten users", "literature", _a14),
    Case("a duopoly", "literature", _duopoly),
    Case("river basin pollution", "literature", _river),
    Case("two players and a line", "literature", _line),
    Case("arctangents, n = 50", "literature", lambda: _arctangents(50, 1.0)),
    Case("arctangents, n = 200", "literature", lambda: _arctangents(200, 100.0)),
    Case("Kojima & Shindo", "literature", _kojima_shindo, monotone=False),
)
