"""Many agents: mixed nonlinear costs, charging vehicles, Cournot firms, and constraints that all share.

The mixed games: agent i chooses x_i ∈ [−2, 2]^m and pays own_i(x_i) + ⟨x_i, (Kx)_i⟩ + (a/N)⟨x_i, Σ_j x_j⟩, where own_i
is a quartic, an exponential, a softplus, a hyperbolic cosine, a quadratic or a logarithm, and K is skew: the
pseudogradient own′ + Kx + (a/N)(Σ x_j + x_i) is monotone.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks._peers import draw
from benchmarks._peers import residual as charging_residual
from benchmarks.collection._case import FREE, Affine, Array, Case, Posed, Region, length, natural
from benchmarks.collection._games import game
from benchmarks.games import ours

Own = tuple[Callable[[Any, float], Any], Callable[[Array, float], Array]]  # the cost in jax.numpy, its slope in NumPy
KINDS: tuple[Own, ...] = (
    (lambda x, t: jnp.sum((x - t) ** 4) / 4, lambda x, t: (x - t) ** 3),
    (lambda x, t: jnp.sum(jnp.exp(x) - (1 + t) * x), lambda x, t: np.exp(x) - (1 + t)),
    (lambda x, t: jnp.sum(jax.nn.softplus(3 * x) - 2 * t * x), lambda x, t: 3 / (1 + np.exp(-3 * x)) - 2 * t),
    (lambda x, t: jnp.sum(jnp.cosh(x - t)), lambda x, t: np.sinh(x - t)),
    (lambda x, t: jnp.sum((x - t) ** 2) / 2, lambda x, t: x - t),
    (lambda x, t: -jnp.sum(jnp.log(3 - x) + t * x), lambda x, t: 1 / (3 - x) - t),
)


def _mixed(agents: int, m: int, seed: int) -> Posed:
    rng = np.random.default_rng(seed)
    K = rng.normal(size=(agents, agents)) / np.sqrt(agents)
    K, t, a = K - K.T, rng.uniform(0.1, 1.0, agents), 2.0

    def cost(i: int) -> Callable[[list[Any]], Any]:
        own, others = KINDS[i % len(KINDS)][0], [j for j in range(agents) if j != i]

        def paid(x: list[Any]) -> Any:
            rest = jnp.stack([x[j] for j in others])
            return own(x[i], t[i]) + x[i] @ (K[i, others] @ rest + a / agents * (jnp.sum(rest, axis=0) + x[i]))

        return paid

    def F(x: Array) -> Array:
        at = x.reshape(agents, m)
        slopes = np.stack([KINDS[i % len(KINDS)][1](at[i], t[i]) for i in range(agents)])
        return (slopes + K @ at + a / agents * (at.sum(axis=0) + at)).ravel()

    sides = [(np.full(m, -2.0), np.full(m, 2.0))] * agents
    return game([cost(i) for i in range(agents)], sides, F, scale=length(np.ones(agents * m)))


def _alike(agents: int) -> Posed:
    """One cost function for all, with curvatures from 0.1 to 10: an aggregative game with quartic terms."""
    rng = np.random.default_rng(2)
    wear, t = np.geomspace(0.1, 10.0, agents), rng.uniform(0.0, 2.0, (agents, 3))

    def cost(own: Any, average: Any, p: Any) -> Any:
        return p["wear"] * jnp.sum((own - p["t"]) ** 4) / 4 + own @ average + 0.05 * own @ own

    def F(x: Array) -> Array:
        at = x.reshape(agents, 3)
        return (wear[:, None] * (at - t) ** 3 + at.mean(axis=0) + at / agents + 0.1 * at).ravel()

    problem = ez.AggregativeGame(cost, {"wear": wear, "t": t}, ez.sets.Box(0.0, 2.0, dim=3))
    back = Region.box(0.0, 2.0, 3 * agents).project
    return Posed(problem, natural(F, back), scale=length(np.ones(3 * agents)), F=F, entries=3 * agents)


def _charging(cars: int) -> Posed:
    """The game of `benchmarks.games`, with 3000 samples of prices; NashOpt's own form of it is measured there."""
    data = draw(cars)
    problem, prices = ours(data)
    shape = (data.cars, data.hours)
    size = cars * data.hours

    def judge(x: Array) -> float:
        return charging_residual(data, x.reshape(shape))

    return Posed(problem, judge, prices, scale=length(np.ones(size)), entries=size)


def _capacity() -> Posed:
    """Ten cars and eight hours under one capacity, the price known."""
    rng = np.random.default_rng(4)
    N, T = 10, 8
    wear, need, price = rng.uniform(0.02, 0.08, N), rng.uniform(4.0, 8.0, N), rng.uniform(0.0, 0.5, T)
    M = 2 * np.kron(np.diag(wear), np.eye(T)) + 2 / N**2 * np.kron(np.ones((N, N)), np.eye(T))
    q = np.tile(price - 2 / N, N)
    total = np.kron(np.ones(N), np.eye(T))
    limit = 1.1 * need.sum() / T

    def cost(own: Any, average: Any, p: Any) -> Any:
        return p * own @ own + price @ own + jnp.sum((average - 1.0) ** 2)

    strategies = ez.sets.BoxBudget(0.0, 2.0, at_least=need, dim=T)
    shared = ez.AffineConstraint(lambda x: x.sum(axis=0), np.full(T, limit))
    problem = ez.AggregativeGame(cost, wear, strategies, shared=shared)
    region = Region.box(0.0, 2.0, N * T).cut(np.kron(np.eye(N), np.ones(T)), need, FREE).cut(total, -FREE, limit)

    def F(x: Array) -> Array:
        return M @ x + q

    return Posed(problem, natural(F, region.project), None, None, (Affine(M, q, region),), length(np.ones(N * T)), F)


def _cournot(firms: int, markets: int, top: float | None, cap: float | None) -> Posed:
    problem = ez.models.cournot(firms, markets, 1, intercept=20.0, quadratic=(0.2, 2.0), capacity=top, shared_cap=cap)
    firm = problem.parameters
    M = np.kron(np.diag(firm.quadratic), np.eye(markets)) + np.kron(np.eye(firms) + 1.0, np.eye(markets))
    q = np.repeat(firm.marginal, markets) - 20.0
    region = Region.box(0.0, FREE if top is None else top, firms * markets)
    if cap is not None:
        region = region.cut(np.kron(np.ones(firms), np.eye(markets)), -FREE, cap)

    def F(x: Array) -> Array:
        return M @ x + q

    forms = (Affine(M, q, region),)
    return Posed(problem, natural(F, region.project), None, None, forms, length(np.ones(firms * markets)), F)


def _shared_affine(agents: int, m: int, rows: int, strength: float) -> Posed:
    """Quadratic costs with a skew coupling; rows Gx ≤ b, all met at the planted point, half of them with price 0."""
    rng = np.random.default_rng(agents)
    n = agents * m
    K = rng.normal(size=(n, n)) / np.sqrt(n)
    same = np.kron(np.eye(agents), np.ones((m, m))) > 0
    M = strength * np.eye(n) + np.where(same, 0.0, K - K.T)
    planted = rng.uniform(-0.9, 0.9, n)
    G = rng.normal(size=(rows, n)) / np.sqrt(n)
    q = -M @ planted - G.T @ np.where(np.arange(rows) % 2 == 0, rng.uniform(0.1, 1.0, rows), 0.0)

    def cost(i: int) -> Callable[[list[Any]], Any]:
        own = slice(i * m, (i + 1) * m)

        def paid(x: list[Any]) -> Any:
            rest = jnp.concatenate([jnp.zeros(m) if j == i else x[j] for j in range(agents)])
            return 0.5 * strength * x[i] @ x[i] + x[i] @ (M[own] @ rest + q[own])

        return paid

    def F(x: Array) -> Array:
        return M @ x + q

    sides = [(np.full(m, -1.0), np.full(m, 1.0))] * agents
    return game([cost(i) for i in range(agents)], sides, F, shared=(G, G @ planted), planted=planted,
                scale=length(planted), affine=(M, q))  # fmt: skip


def _shared_ball() -> Posed:
    """‖x − t‖² in three parts on the unit ball: x = t/‖t‖. The ball lies within the boxes, so it is all that counts."""
    t = np.random.default_rng(6).normal(size=6)
    costs = [lambda x, i=i: jnp.sum((x[i] - t[2 * i : 2 * i + 2]) ** 2) for i in range(3)]
    problem = ez.Game(costs, [ez.sets.Box(-2.0, 2.0, dim=2)] * 3, shared=lambda x: sum(one @ one for one in x) - 1.0)

    def F(x: Array) -> Array:
        return 2 * (x - t)

    def project(v: Array) -> Array:
        return v / max(1.0, float(np.linalg.norm(v)))

    return Posed(problem, natural(F, project), None, t / np.linalg.norm(t), F=F)


CASES = (
    Case("20 agents of mixed costs", "agents", lambda: _mixed(20, 1, 0)),
    Case("20 agents of mixed costs, 3 numbers each", "agents", lambda: _mixed(20, 3, 1)),
    Case("50 agents of mixed costs", "agents", lambda: _mixed(50, 1, 2)),
    Case("200 agents alike, quartic", "agents", lambda: _alike(200)),
    Case("charging, 20 cars", "agents", lambda: _charging(20)),
    Case("charging, 200 cars", "agents", lambda: _charging(200)),
    Case("Cournot, 5 firms", "agents", lambda: _cournot(5, 1, None, None)),
    Case("Cournot, 30 firms, 4 markets, capacities", "agents", lambda: _cournot(30, 4, 0.7, None)),
    Case("Cournot under a shared cap, 10 firms, 3 markets", "shared", lambda: _cournot(10, 3, None, 12.0)),
    Case("charging under a capacity, 10 cars", "shared", _capacity),
    Case("shared rows, 10 agents, strongly monotone", "shared", lambda: _shared_affine(10, 3, 4, 1.0)),
    Case("shared rows, 20 agents, merely monotone", "shared", lambda: _shared_affine(20, 2, 6, 0.0)),
    Case("a shared ball, 3 agents", "shared", _shared_ball),
)
