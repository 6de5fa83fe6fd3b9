"""What the house costs on top of the mathematics: calls of `solve` and `certify` beyond their loops, and imports.

The iterations of a run are timed as the compiled loop that the run used, called alone on the same data; imports as
whole processes, ours against one that imports JAX and nothing else. All in one run, side by side.
"""

import subprocess
import sys
from collections.abc import Iterator

import jax
import numpy as np

import epszero as ez
from benchmarks._measure import Row, best_of
from epszero.solve.attempt import trial_of
from epszero.solve.loop import STOPS, set_off_one
from epszero.solve.request import Request
from epszero.solve.setup import setting_of

RUNS = 200


def rows() -> Iterator[Row]:
    """The README's game, 20 vehicles and 14 hours, 3000 draws of real prices."""
    game = ez.models.ev_charging(vehicles=20, seed=0)
    pool = ez.datasets.day_ahead_prices(hours=range(14))
    data = pool.take(3000, seed=1)
    solution = ez.solve(game, data)
    solve, loop = best_of(RUNS, lambda: ez.solve(game, data)), _loop(game, data)
    over = solve - loop
    yield Row("solve beyond its iterations, 20 × 14", solve, loop, over / 1e-3, "≤ 1 ms more", over <= 1e-3)
    certify = best_of(RUNS, lambda: ez.certify(solution))
    yield Row("certify against solve", certify, solve, certify / solve, "≤ 1 ms more", certify <= solve + 1e-3)
    trials = ez.solve_many(game, [pool.take(3000, seed=trial) for trial in range(1000)])
    many = best_of(3, lambda: ez.certify_many(trials))
    yield Row("1000 certificates in one call", many, 1.5, many / 1.5, "≤ 1.5 s", many <= 1.5)
    plain = _process("import jax")
    ours = _process("import jax, epszero")
    yield Row("import epszero, after JAX", ours, plain, ours / plain, "≤ 0.3 s more", ours <= plain + 0.3)
    whole = _process("import jax, epszero as ez; ez.solve, ez.certify, ez.audit, ez.plan, ez.verify, ez.models")
    yield Row("and every room of the core", whole, plain, whole / plain, "≤ 0.3 s more", whole <= plain + 0.3)


def _loop(game: ez.AggregativeGame, data: ez.Samples) -> float:
    """Seconds of the compiled loop alone."""
    with jax.enable_x64(True):
        trial = trial_of(Request(game, None, None, None, None), setting_of(game, data, None, None))
        method = trial.choice.method.prepared(game, trial.setting.x, trial.known).bare()
        given = jax.device_put((method, game.placed, trial.B, trial.setting.x))
        stops = np.asarray([*range(1, STOPS), 1000])
        return best_of(RUNS, lambda: jax.block_until_ready(set_off_one(*given, None, stops)))


def _process(code: str) -> float:
    return best_of(3, lambda: subprocess.run([sys.executable, "-c", code], check=True))
