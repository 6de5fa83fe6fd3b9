"""The loop, compiled: steps until the next stop, or until the run is over."""

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import norm
from epszero._types import Array, PyTree
from epszero.methods import Method, State
from epszero.methods.steps import over
from epszero.oracles import Average, PrimalDual
from epszero.problems.backward import Backward

RUNNING, CONVERGED, DIVERGED, STALLED, NOT_FINITE, STUCK = range(6)

STOPS = 16  # how many iterations at which to look one compiled call takes
FIRST_BLOCK = 1_000_000  # numbers that the first call may touch, before its speed is known
BLINK = 0.2  # seconds that one call may last, so that the keyboard and the progress bar are heard
RELATIVE = 1e-9  # where the user gives no tol: of max(1, ‖B̂(x)‖), or of max(1, ‖x‖)/γ where B̂ is small throughout
GROWTH = 1e8  # a residual this many times the first one has diverged
PATIENCE = 1000  # steps, and a quarter of all taken, without a new least residual: it has stalled


class Run(NamedTuple):
    """A state on its way."""

    state: State
    code: Array  # RUNNING, or how it ended
    scale: Array  # the size of the residual at the start
    least: Array  # the least residual so far
    when: Array  # the step that reached it
    tol: Array | None  # stop when the residual is this small; negative: never; None: RELATIVE


def begin(method: Method, A: Backward, B: Average, x: PyTree, tol: Array | None) -> Run:
    """The run before its first step."""
    state = method.init(A, B, x)
    start = Run(state, jnp.asarray(RUNNING), norm(state.Bx), jnp.asarray(jnp.inf), jnp.asarray(0), tol)
    return _typed(start)


def advance(method: Method, A: Backward, B: Average, run: Run, stops: Array) -> tuple[Run, Array]:
    """Run to each stop in turn (a number of steps taken; the first is 1), and report the residual there.

    The inner loop asks only whether to go on, which costs next to nothing; how a run ended, and whether it has stalled,
    is made out at the stops.
    """

    def enough(run: Run) -> Array:
        return run.state.residual <= (_relative(method, run.state) if run.tol is None else run.tol)

    def grown(run: Run) -> Array:
        return (run.state.k > 1) & (run.state.residual > GROWTH * run.scale)

    def goes_on(run: Run) -> Array:
        over = enough(run) | grown(run) | run.state.stuck | ~jnp.isfinite(run.state.residual)
        return (run.code == RUNNING) & ((run.state.k == 0) | ~over)

    def to(run: Run, stop: Array) -> tuple[Run, Array]:
        run = jax.lax.while_loop(
            lambda run: (run.state.k < stop) & goes_on(run),
            lambda run: run._replace(state=method.step(A, B, run.state)),
            run,
        )
        run = _judged(run, enough(run), grown(run))
        return run, run.state.residual

    return jax.lax.scan(to, run, stops)


def _judged(run: Run, enough: Array, grown: Array) -> Run:
    """What has become of the run."""
    k, residual = run.state.k, run.state.residual
    better = residual < run.least
    least, when = jnp.where(better, residual, run.least), jnp.where(better, k, run.when)
    searching = True if run.tol is None else run.tol >= 0
    code = jnp.where(searching & (k - when > PATIENCE + k // 4), STALLED, RUNNING)
    code = jnp.where(grown, DIVERGED, code)
    code = jnp.where(run.state.stuck, STUCK, code)
    code = jnp.where(enough, CONVERGED, code)
    code = jnp.where(jnp.isfinite(residual), code, NOT_FINITE)
    code = jnp.where((run.code == RUNNING) & (k > 0), code, run.code)
    scale = jnp.where(k == 1, jnp.maximum(run.scale, residual), run.scale)
    return _typed(run._replace(code=code, scale=scale, least=least, when=when))


def _relative(method: Method, state: State) -> Array:
    """What counts as zero where the user gives no tol, in the units of B̂ near the iterate."""
    step = method.last_step(state)
    longest = jnp.max(jnp.stack([jnp.max(leaf) for leaf in jax.tree.leaves(step)]))
    x, Bx = state.x, state.Bx
    moved = norm(over(x.x if isinstance(x, PrimalDual) else x, step))
    return RELATIVE * jnp.minimum(jnp.maximum(1.0, norm(Bx)), jnp.maximum(1.0 / longest, moved))


def _typed(run: Run) -> Run:
    """Without JAX's weak types, so that what comes out of `begin` and of `advance` fits one compiled program."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), run)


begin_one = jax.jit(begin)
advance_one = jax.jit(advance)
begin_many = eqx.filter_jit(eqx.filter_vmap(begin, in_axes=(None, None, 0, None, None)))
advance_many = eqx.filter_jit(eqx.filter_vmap(advance, in_axes=(None, None, 0, 0, None)))


class Drive:
    """Calls `advance` block by block: each as long as a blink, each ending where the trace wants to look."""

    def __init__(self, total: int, looks: Sequence[int], touched: PyTree) -> None:
        self.total = total  # steps to take at most
        numbers = sum(np.size(leaf) for leaf in jax.tree.leaves(touched))  # that an iteration reads
        self.first = int(np.clip(FIRST_BLOCK // max(numbers, 1), 1, 1024))
        self.looks = sorted({look for look in looks if 0 < look <= total} | {1, total})
        self.seen: list[int] = []  # steps at which the residual was reported
        self.residuals: list[Any] = []

    def run(self, advance: Callable[[Run, Any], tuple[Run, Array]], run: Run, report: Callable[[Run], None]) -> Run:
        """Until every run is over or all steps are taken. What was reached is kept in `self.latest` throughout."""
        done = 0
        self.latest = run
        block = self.first
        while done < self.total:
            started = perf_counter()
            stops = self._stops(done, min(done + block, self.total))
            run, residuals = advance(run, np.asarray(stops + stops[-1:] * (STOPS - len(stops))))
            over = not bool(np.any(np.asarray(run.code) == RUNNING))
            self.latest, done = run, stops[-1]
            self.seen += stops
            self.residuals += list(np.asarray(residuals)[..., : len(stops)].T)
            report(run)
            if over:
                break
            elapsed = perf_counter() - started
            block = int(np.clip(block * BLINK / elapsed, 1, 8 * block))
        return run

    def _stops(self, done: int, until: int) -> list[int]:
        between = [look for look in self.looks if done < look < until][: STOPS - 1]
        return [*between, until] if len(between) < STOPS - 1 else between
