"""One million cars, 24 hours: one iteration against copying the strategies ten times."""

from typing import Any

import jax.numpy as jnp
import numpy as np

import epszero as ez
from benchmarks._measure import Row, best_of

CARS, HOURS, STEP = 1_000_000, 24, 0.02


def rows() -> list[Row]:
    rng = np.random.default_rng(0)
    wear, fee = rng.uniform(0.002, 0.008, (CARS, 1)), rng.uniform(0.02, 0.075, (CARS, 1))
    prices = ez.Samples(rng.uniform(0.0, 0.2, (100, HOURS)))

    def without_price(x: Any) -> Any:
        return 2 * wear * x + fee + 2 / CARS * (jnp.mean(x, axis=0, keepdims=True) - 1)

    strategies = ez.sets.BoxBudget(0.0, 2.5, at_least=rng.uniform(12, 18, CARS), dim=HOURS)
    game = ez.VariationalInequality(ez.oracles.Additive(without_price), over=strategies)
    start = strategies.project(np.full((CARS, HOURS), 0.6))

    def steps(count: int) -> Any:
        return ez.solve(game, prices, ez.ForwardBackward(step=STEP), x0=start, iterations=count - 1)

    few, many = best_of(2, lambda: steps(1)), best_of(2, lambda: steps(9))
    ours = (many - few) / 8
    copy = best_of(3, lambda: [start.copy() for _ in range(10)])
    return [
        Row("a million cars × 24 h: one iteration against ten copies", ours, copy, ours / copy, "≤ 4", ours / copy <= 4)
    ]
