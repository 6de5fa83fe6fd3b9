"""What a step of each method costs beyond the B̂ and resolvents that it calls: a loop of steps, and one of calls alone.

Both are compiled loops of the same length on the same data, from the same point, timed in turn. The calls are chained,
each B̂ at what the resolvent before it gave, so that none is left out by the compiler.
"""

from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

import epszero as ez
from benchmarks._measure import Row, timed
from epszero._points import subtract
from epszero.methods.steps import times
from epszero.solve.attempt import trial_of
from epszero.solve.request import Request
from epszero.solve.setup import setting_of

STEPS, RUNS, ENTRIES = 100, 10, 1500
CALLS = {  # B̂ and resolvents a step
    "ForwardBackward": (1, 1), "ForwardBackwardForward": (2, 1), "Extragradient": (2, 2), "AdaptiveGoldenRatio": (1, 1),
    "PastExtragradient": (1, 2), "ForwardReflectedBackward": (1, 1), "GoldenRatio": (1, 1),
    "ProjectedReflectedGradient": (2, 1), "ExtraAnchoredGradient": (2, 2), "AcceleratedReflectedGradient": (2, 1),
    "FastOptimisticGradient": (2, 1), "FastForwardBackward": (2, 1), "Relaxed": (2, 1), "Anderson": (2, 1),
}  # fmt: skip
MADE = {
    "Relaxed": lambda: ez.Relaxed(ez.ForwardBackward(0.1), 0.8),
    "Anderson": lambda: ez.Anderson(ez.ForwardBackward(0.1)),
    "AdaptiveGoldenRatio": ez.AdaptiveGoldenRatio,
}


def rows() -> Iterator[Row]:
    """A quadratic with a dense Hessian over a simplex, 1500 entries."""
    root = np.random.default_rng(0).normal(size=(ENTRIES, ENTRIES)) / np.sqrt(ENTRIES)
    Q, c = root @ root.T + 0.1 * np.eye(ENTRIES), np.random.default_rng(1).normal(size=ENTRIES)
    problem = ez.Minimization(lambda x: 0.5 * x @ Q @ x + c @ x, ez.sets.Simplex(dim=ENTRIES))
    for name, (oracles, resolvents) in CALLS.items():
        method = MADE[name]() if name in MADE else getattr(ez, name)(0.01)
        steps, calls = _seconds(problem, method, oracles, resolvents)
        what = f"{name}, {oracles} B̂ and {resolvents} projection{'s' * (resolvents > 1)} a step"
        yield Row(what, steps / STEPS, calls / STEPS, steps / calls, "≤ 1.2", steps <= 1.2 * calls)


def _seconds(problem: Any, method: ez.methods.Method, oracles: int, resolvents: int) -> tuple[float, float]:
    """Of STEPS steps, and of their calls alone."""
    with jax.enable_x64(True):
        trial = trial_of(Request(problem, method, None, None, None), setting_of(problem, None, None, None))
        settled = method.prepared(problem, trial.setting.x, trial.known).bare()
        A, B, x = jax.device_put((problem.placed, trial.B, trial.setting.x))
        gamma = jax.numpy.asarray(0.01)

        @jax.jit
        def steps(A: Any, B: Any, x: Any) -> Any:
            state = settled.init(A, B, x)
            return jax.lax.fori_loop(0, STEPS, lambda _, state: settled.step(A, B, state), state)

        def called(x: Any) -> Any:
            for place in range(max(oracles, resolvents)):
                v = subtract(x, times(gamma, B(x))) if place < oracles else x
                x = A.resolvent(v, gamma) if place < resolvents else v
            return x

        calls = jax.jit(lambda x: jax.lax.fori_loop(0, STEPS, lambda _, x: called(x), x))
        jax.block_until_ready((steps(A, B, x), calls(x)))
        turns = [
            (timed(lambda: jax.block_until_ready(steps(A, B, x))), timed(lambda: jax.block_until_ready(calls(x))))
            for _ in range(RUNS)
        ]
        return min(one for one, _ in turns), min(other for _, other in turns)
