"""Regressions on synthetic data: a sample is a row with its answer, the loss an average over samples, F its gradient.

scikit-learn's objectives: Lasso and ElasticNet minimise ‖Xw − y‖²/(2s) + α(ρ‖w‖₁ + (1 − ρ)‖w‖²/2), Ridge
‖Xw − y‖² + α‖w‖², LogisticRegression C Σ log(1 + exp(−y xᵀw)) + penalty; all without intercept here.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks.collection._case import (
    FREE,
    Affine,
    Array,
    Case,
    Operator,
    Posed,
    Region,
    Regression,
    length,
    natural,
    soft,
)


def data(s: int, n: int, seed: int, correlation: float = 0.0) -> tuple[Array, Array, Array]:
    """Rows, a sparse truth, and the noise."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(s, 1))
    rows = np.sqrt(1 - correlation) * rng.normal(size=(s, n)) + np.sqrt(correlation) * common
    truth = np.where(np.arange(n) % 4 == 0, rng.normal(size=n) + 1.0, 0.0)
    return rows, truth, rng.normal(size=s)


def squared(x: Any, xi: Any) -> Any:
    return 0.5 * (xi[:-1] @ x - xi[-1]) ** 2


def logistic(x: Any, xi: Any) -> Any:
    return jax.nn.softplus(-xi[-1] * (xi[:-1] @ x))


def huber(x: Any, xi: Any) -> Any:
    r = xi[:-1] @ x - xi[-1]
    return jnp.where(jnp.abs(r) <= 1.0, 0.5 * r**2, jnp.abs(r) - 0.5)


def _posed(loss: Any, rows: Array, y: Array, by: Any, back: Operator, forms: Any = ()) -> Posed:
    """`by`: the set or function, `back` its projection or prox in NumPy."""
    s, n = rows.shape

    def F(x: Array) -> Array:
        r = rows @ x - y
        if loss is logistic:
            r = -y / (1 + np.exp(y * (rows @ x)))
        elif loss is huber:
            r = np.clip(r, -1.0, 1.0)
        return rows.T @ r / s

    samples = ez.Samples(np.column_stack([rows, y]))
    return Posed(ez.Minimization(loss, by), natural(F, back), samples, None, forms, length(np.ones(n)), F, entries=n)


def _lasso(s: int, n: int, alpha: float, correlation: float = 0.0) -> Posed:
    rows, truth, noise = data(s, n, 0, correlation)
    y = rows @ truth + 0.5 * noise
    forms = (Regression(rows, y, "Lasso", {"alpha": alpha}),)
    return _posed(squared, rows, y, ez.functions.L1(np.full(n, alpha)), soft(alpha), forms)


def _elastic(s: int, n: int, alpha: float, share: float) -> Posed:
    rows, truth, noise = data(s, n, 1, 0.5)
    y = rows @ truth + 0.5 * noise
    l1, l2 = alpha * share, alpha * (1 - share)
    forms = (Regression(rows, y, "ElasticNet", {"alpha": alpha, "l1_ratio": share}),)
    by = ez.functions.ElasticNet(np.full(n, l1), np.full(n, l2))
    return _posed(squared, rows, y, by, soft(l1, 1 + l2), forms)


def _ridge(s: int, n: int, alpha: float) -> Posed:
    rows, truth, noise = data(s, n, 2, 0.9)
    y = rows @ truth + 0.5 * noise
    M, q = rows.T @ rows / s + alpha * np.eye(n), -rows.T @ y / s
    forms = (Regression(rows, y, "Ridge", {"alpha": s * alpha}), Affine(M, q, Region.box(-FREE, FREE, n)))
    return _posed(squared, rows, y, ez.functions.SquaredL2(alpha), lambda v: v / (1 + alpha), forms)


def _nonnegative(s: int, n: int) -> Posed:
    rows, truth, noise = data(s, n, 3, 0.3)
    y = rows @ truth + noise
    region = Region.box(0.0, FREE, n)
    forms = (Affine(rows.T @ rows / s, -rows.T @ y / s, region),)
    return _posed(squared, rows, y, ez.sets.NonNegative(dim=n), region.project, forms)


def _logistic(s: int, n: int, l1: float, l2: float) -> Posed:
    rows, truth, noise = data(s, n, 4)
    y = np.where(rows @ truth + noise > 0, 1.0, -1.0)
    if l1:
        forms = (Regression(rows, y, "LogisticRegression", {"C": 1 / (s * l1), "penalty": "l1", "solver": "saga"}),)
        return _posed(logistic, rows, y, ez.functions.L1(np.full(n, l1)), soft(l1), forms)
    forms = (Regression(rows, y, "LogisticRegression", {"C": 1 / (s * l2)}),)
    return _posed(logistic, rows, y, ez.functions.SquaredL2(l2), lambda v: v / (1 + l2), forms)


def _huber(s: int, n: int) -> Posed:
    rows, truth, noise = data(s, n, 5)
    y = rows @ truth + noise**3
    return _posed(huber, rows, y, ez.functions.SquaredL2(0.01), lambda v: v / 1.01)


CASES = (
    Case("lasso, 200 rows, n = 20", "regression", lambda: _lasso(200, 20, 0.1)),
    Case("lasso, 100 rows, n = 200", "regression", lambda: _lasso(100, 200, 0.2)),
    Case("lasso, correlation 0.95, n = 50", "regression", lambda: _lasso(300, 50, 0.05, 0.95)),
    Case("elastic net, n = 60", "regression", lambda: _elastic(150, 60, 0.2, 0.5)),
    Case("ridge, n = 50", "regression", lambda: _ridge(300, 50, 1e-3)),
    Case("nonnegative least squares, n = 40", "regression", lambda: _nonnegative(200, 40)),
    Case("logistic with ridge, n = 20", "regression", lambda: _logistic(500, 20, 0.0, 0.01)),
    Case("logistic with lasso, n = 30", "regression", lambda: _logistic(400, 30, 0.02, 0.0)),
    Case("Huber's loss, n = 15", "regression", lambda: _huber(400, 15)),
)
