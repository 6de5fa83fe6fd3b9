"""Losses with kinks: newsvendors, quantiles, least absolute deviations, conditional value at risk, hinges.

Each is written for `ez.Minimization` as a user would, an average over samples of what one sample costs, and once more
as `Pieces`, from which it is judged and which linear and quadratic programmes take.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks.collection._case import FREE, Array, Case, Pieces, Posed, Region, length
from benchmarks.collection.regressions import data


def _posed(loss: Any, over: Any, samples: Array | None, pieces: Pieces) -> Posed:
    problem = ez.Minimization(loss, over)
    rows = None if samples is None else ez.Samples(samples)
    size = length(np.ones(len(pieces.q)))
    return Posed(problem, lambda x: pieces.residual(x, 1e-8 * size), rows, None, (pieces,), size)


def _newsvendor(s: int, products: int) -> Posed:
    """Cost c x, price p for what is sold, min(x, ξ): c x − p min(x, ξ) = (c − p) x + p (x − ξ)₊.

    (p − c)/p is no multiple of 1/s, so that the optimum is at a kink and nowhere else.
    """
    rng = np.random.default_rng(0)
    demand = rng.gamma(4.0, 2.0, (s, products))
    c, p = np.linspace(1.0, 2.0, products), np.linspace(3.1, 8.2, products)
    R = np.tile(np.eye(products), (s, 1))
    zero, up = np.zeros((products, products)), np.tile(p, s) / s
    pieces = Pieces(zero, c - p, R, demand.ravel(), up, np.zeros_like(up), Region.box(0.0, 100.0, products))

    def loss(x: Any, xi: Any) -> Any:
        return jnp.sum(c * x - p * jnp.minimum(x, xi))

    return _posed(loss, ez.sets.Box(0.0, 100.0, dim=products), demand, pieces)


def _quantile(s: int, n: int, tau: float, over: str = "whole") -> Posed:
    rows, truth, noise = data(s, n, 6)
    y = rows @ truth + noise
    side = FREE if over == "whole" else 0.5
    pieces = Pieces(np.zeros((n, n)), np.zeros(n), rows, y, np.full(s, (1 - tau) / s), np.full(s, tau / s),
                    Region.box(-side, side, n))  # fmt: skip

    def loss(x: Any, xi: Any) -> Any:
        r = xi[-1] - xi[:-1] @ x
        return jnp.maximum(tau * r, (tau - 1) * r)

    place = ez.sets.WholeSpace(dim=n) if over == "whole" else ez.sets.Box(-side, side, dim=n)
    return _posed(loss, place, np.column_stack([rows, y]), pieces)


def _absolute(s: int, n: int) -> Posed:
    rows, truth, noise = data(s, n, 7)
    y = rows @ truth + noise
    pieces = Pieces(0.1 * np.eye(n), np.zeros(n), rows, y, np.full(s, 1 / s), np.full(s, 1 / s),
                    Region.box(-FREE, FREE, n))  # fmt: skip

    def loss(x: Any, xi: Any) -> Any:
        return jnp.abs(xi[:-1] @ x - xi[-1])

    return _posed(loss, ez.functions.SquaredL2(0.1), np.column_stack([rows, y]), pieces)


def _value_at_risk(s: int, assets: int) -> Posed:
    """min over weights w and t of t + mean (−ξᵀw − t)₊/(1 − β), β = 0.9: Rockafellar & Uryasev, J. Risk 2 (2000)."""
    rng = np.random.default_rng(assets)
    returns = rng.normal(0.05, 0.2, (s, 1)) + rng.normal(np.linspace(0.0, 0.1, assets), 0.2, (s, assets))
    n = assets + 1
    R, up = np.column_stack([-returns, -np.ones(s)]), np.full(s, 10.0 / s)
    region = Region.box(np.append(np.zeros(assets), -5.0), np.append(np.full(assets, FREE), 5.0), n)
    last = np.zeros(n)
    last[-1] = 1.0
    pieces = Pieces(np.zeros((n, n)), last, R, np.zeros(s), up, np.zeros(s), region.cut(1.0 - last, 1.0, 1.0))

    def loss(x: Any, xi: Any) -> Any:
        return x["t"][0] + 10.0 * jnp.maximum(-xi @ x["a"] - x["t"][0], 0.0)

    over = {"a": ez.sets.Simplex(dim=assets), "t": ez.sets.Box(-5.0, 5.0, dim=1)}
    return _posed(loss, over, returns, pieces)


def _hinge(s: int, n: int, penalty: float) -> Posed:
    rows, truth, noise = data(s, n, 8)
    y = np.where(rows @ truth + noise > 0, 1.0, -1.0)
    pieces = Pieces(penalty * np.eye(n), np.zeros(n), -y[:, None] * rows, -np.ones(s), np.full(s, 1 / s), np.zeros(s),
                    Region.box(-FREE, FREE, n))  # fmt: skip

    def loss(x: Any, xi: Any) -> Any:
        return jnp.maximum(0.0, 1.0 - xi[-1] * (xi[:-1] @ x))

    return _posed(loss, ez.functions.SquaredL2(penalty), np.column_stack([rows, y]), pieces)


CASES = tuple(
    Case(name, "kinked", build, kinked=True)
    for name, build in (
        ("newsvendor, 2001 days", lambda: _newsvendor(2001, 1)),
        ("newsvendor of 10 products, 201 days", lambda: _newsvendor(201, 10)),
        ("median regression, 201 rows, n = 5", lambda: _quantile(201, 5, 0.5)),
        ("regression at 0.9, 501 rows, n = 10", lambda: _quantile(501, 10, 0.9)),
        ("median regression on a box, n = 8", lambda: _quantile(301, 8, 0.5, "box")),
        ("absolute deviations with ridge, n = 10", lambda: _absolute(300, 10)),
        ("value at risk, 10 assets, 200 days", lambda: _value_at_risk(200, 10)),
        ("value at risk, 30 assets, 1000 days", lambda: _value_at_risk(1000, 30)),
        ("support vectors, 200 rows, n = 5", lambda: _hinge(200, 5, 0.1)),
        ("support vectors, 1000 rows, n = 20", lambda: _hinge(1000, 20, 0.01)),
    )
)
