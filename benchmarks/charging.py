"""The charging iteration (N = 20 cars, T = 14 hours, additive prices, box with budget) against Numba and CVXPY.

The peers do what a good engineer would write by hand for this one problem: a compiled loop with a Newton projection,
and a parametrised quadratic programme compiled once. All three make the same iterates, which is checked.
"""

from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import cvxpy as cp
import jax.numpy as jnp
import numba
import numpy as np

import epszero as ez
from benchmarks._measure import Row, best_of

CARS, HOURS, STEP, ITERATIONS, TRIALS = 20, 14, 0.02, 5000, 250
RNG = np.random.default_rng(0)
WEAR = RNG.uniform(0.002, 0.008, (CARS, 1))
FEE = RNG.uniform(0.02, 0.075, (CARS, 1))
NEED = RNG.uniform(12, 18, CARS)
PRICES = ez.Samples(RNG.uniform(0.0, 0.2, (3000, HOURS)))
START = np.ones((CARS, HOURS))


def without_price(x: Any) -> Any:
    """The pseudogradient of the charging game, but for the price."""
    return 2 * WEAR * x + FEE + 2 / CARS * (jnp.mean(x, axis=0, keepdims=True) - 1)


GAME = ez.VariationalInequality(
    ez.oracles.Additive(without_price), over=ez.sets.BoxBudget(0.0, 2.5, at_least=NEED, dim=HOURS)
)
METHOD = ez.ForwardBackward(step=STEP)


@numba.njit
def by_hand(x: Any, price: Any, steps: int, wear: Any, fee: Any, need: Any) -> Any:  # noqa: PLR0912
    cars, hours = x.shape
    y, total = np.empty(hours), np.empty(hours)
    for _ in range(steps):
        total[:] = 0
        for i in range(cars):
            for t in range(hours):
                total[t] += x[i, t]
        for t in range(hours):
            total[t] = 2 / cars * (total[t] / cars - 1) + price[t]
        for i in range(cars):
            reached = 0.0
            for t in range(hours):
                y[t] = x[i, t] - STEP * (2 * wear[i, 0] * x[i, t] + fee[i, 0] + total[t])
                reached += min(max(y[t], 0.0), 2.5)
            shift = 0.0
            if reached < need[i]:
                for _ in range(50):
                    reached, slope = 0.0, 0.0
                    for t in range(hours):
                        moved = y[t] + shift
                        if moved >= 2.5:
                            reached += 2.5
                        elif moved > 0:
                            reached += moved
                            slope += 1
                    gap = need[i] - reached
                    if abs(gap) <= 1e-15 * need[i] or slope == 0:
                        break
                    shift += gap / slope
            for t in range(hours):
                x[i, t] = min(max(y[t] + shift, 0.0), 2.5)
    return x


def with_cvxpy(steps: int) -> Any:
    """The same iteration with the projection as a quadratic programme."""
    target, point = cp.Parameter((CARS, HOURS)), cp.Variable((CARS, HOURS))
    constraints = [point >= 0, point <= 2.5, cp.sum(point, axis=1) >= NEED]
    projection = cp.Problem(cp.Minimize(cp.sum_squares(point - target)), constraints)
    price, x = PRICES.values.mean(axis=0), START
    for _ in range(steps):
        target.value = x - STEP * (2 * WEAR * x + FEE + 2 / CARS * (x.mean(axis=0) - 1) + price)
        projection.solve(solver=cp.CLARABEL)
        x = point.value
    return x


def rows() -> list[Row]:
    price = PRICES.values.mean(axis=0)
    start = GAME.A.parts.project(START)

    def ours(steps: int = ITERATIONS, progress: Any = None) -> Any:
        return ez.solve(GAME, PRICES, METHOD, x0=start, iterations=steps - 1, progress=progress).x

    def numba_loop() -> Any:
        return by_hand(start.copy(), price, ITERATIONS, WEAR, FEE, NEED)

    np.testing.assert_allclose(ours(), numba_loop(), atol=1e-10)
    np.testing.assert_allclose(
        ez.solve(GAME, PRICES, METHOD, x0=start, iterations=4).x, with_cvxpy(5), atol=1e-3
    )  # fmt: skip
    one, peer = best_of(7, ours) / ITERATIONS, best_of(7, numba_loop) / ITERATIONS
    trials = [PRICES.take(3000, seed=seed) for seed in range(TRIALS)]
    batch_steps = 1000
    batch = best_of(3, lambda: ez.solve_many(GAME, trials, METHOD, x0=start, iterations=batch_steps - 1))
    batch /= TRIALS * batch_steps
    slow = best_of(1, lambda: with_cvxpy(20)) / 20
    long = 40 * ITERATIONS
    quiet = best_of(3, lambda: ours(long))
    with redirect_stdout(StringIO()):
        shown = best_of(3, lambda: ours(long, progress=True))
    return [
        Row("one iteration, a single run, against Numba", one, peer, one / peer, "≤ 8", one / peer <= 8),
        Row("the same for one of 250 trials in a batch", batch, peer, batch / peer, "≤ 4", batch / peer <= 4),
        Row("the same with CVXPY projections, against ours", one, slow, slow / one, "≥ 200", slow / one >= 200),
        Row(
            "a run with a progress bar, against one without",
            shown,
            quiet,
            shown / quiet,
            "≤ 1.05",
            shown / quiet <= 1.05,
        ),
    ]
