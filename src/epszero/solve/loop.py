"""The loop, compiled: steps until the next stop, or until the run is over.

Where the user gives no tol, a run has converged once the residual r = z + B̂(x) is at most the larger of
    1e-9 · min(max(‖B̂(x)‖, b), max(‖Γ⁻¹x‖, b′)),    b = max(min(1, u), 1e-4 u),  b′ = min(1/γ, u),
    min(2 eps · (‖Γ⁻¹x‖ + ‖B̂(x)‖), 1e-6 u),
with u the size of what is added up at the start, the largest of ‖B̂(x⁰)‖, ‖r¹‖ and ‖Γ⁻¹x¹‖. The first is what one wants,
in any units: u shrinks with them, and a zero of B̂ is looked for beside what B̂ was. The second is what float64 can
show: z = Γ⁻¹(x − ΓB̂(x) − x⁺), so r is made of numbers as large as Γ⁻¹x and B̂(x), each of them rounded; not more, as a
step that shrinks to nothing, at a jump of B̂, would hide any residual. The terms of B̂ itself may be larger than their
sum and are not seen from here: a run that stalls above both is looked at again (solve/rounding.py).
"""

import functools
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple, Protocol

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

STOPS = 40  # how many iterations at which to look one compiled call takes
FIRST_BLOCK = 1_000_000  # numbers that the first call may touch, before its speed is known
BLINK = 0.2  # seconds that one call may last, so that the keyboard and the progress bar are heard
RELATIVE = 1e-9  # where the user gives no tol
FIRM = 1e-4  # of u: a zero of B̂ is not asked for beyond RELATIVE times this
ROUNDED = 2 * float(np.finfo(np.float64).eps)  # of the sizes of what is added up: residuals are not known better
HIDDEN = 1e-6  # of u: the most that rounding may hide
GROWTH = 1e8  # a residual this many times the first one has diverged
PATIENCE = 1000  # steps, and a quarter of all taken, without a new least residual: it has stalled


class Run(NamedTuple):
    """A state on its way."""

    state: State
    code: Array  # RUNNING, or how it ended
    scale: Array  # the size of the residual at the start
    unit: Array  # u
    least: Array  # the least residual so far
    when: Array  # the step that reached it
    tol: Array | None  # stop when the residual is this small; negative: never; None: RELATIVE


def begin(method: Method, A: Backward, B: Average, x: PyTree, tol: Array | None) -> Run:
    """The run before its first step."""
    state = method.init(A, B, x)
    size = norm(state.Bx)
    start = Run(state, jnp.asarray(RUNNING), size, size, jnp.asarray(jnp.inf), jnp.asarray(0), tol)
    return _typed(start)


def advance(method: Method, A: Backward, B: Average, run: Run, stops: Array) -> tuple[Run, Array]:
    """Run to each stop in turn (a number of steps taken; the first is 1), and report the residual there.

    The inner loop asks only whether to go on, which costs next to nothing; how a run ended, and whether it has stalled,
    is made out at the stops.
    """

    def enough(run: Run) -> Array:
        return run.state.residual <= (_relative(method, run) if run.tol is None else run.tol)

    def grown(run: Run) -> Array:
        return (run.state.k > 1) & (run.state.residual > GROWTH * run.scale)

    def goes_on(run: Run) -> Array:
        over = enough(run) | grown(run) | run.state.stuck | ~jnp.isfinite(run.state.residual)
        return (run.code == RUNNING) & ((run.state.k == 0) | ~over)

    def to(run: Run, stop: Array) -> tuple[Run, Array]:
        before = run.state.k
        run = jax.lax.while_loop(
            lambda run: (run.state.k < stop) & goes_on(run),
            lambda run: run._replace(state=method.step(A, B, run.state)),
            run,
        )
        if type(method).measured is not Method.measured:
            look = functools.partial(method.measured, A, B)
            state = jax.lax.cond(run.state.k > before, look, lambda state: state, run.state)
            run = run._replace(state=state)
        run = _measured(method, run)
        run = _judged(run, enough(run), grown(run))
        return run, run.state.residual

    return jax.lax.scan(to, run, stops)


def _measured(method: Method, run: Run) -> Run:
    """After the first step it is known how large the residual is there, and what it is made of."""
    state = run.state
    scale = jnp.maximum(run.scale, state.residual)
    unit = jnp.maximum(scale, _lengths(method, state)[0])
    first = state.k == 1
    return run._replace(scale=jnp.where(first, scale, run.scale), unit=jnp.where(first, unit, run.unit))


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
    return _typed(run._replace(code=code, least=least, when=when))


def _resumed(method: Method, A: Backward, B: Average, run: Run, x: PyTree, z: PyTree, residual: Array) -> Run:
    state = method.init(A, B, x)
    point = None if state.point is None else x
    state = state._replace(k=run.state.k, point=point, z=z, residual=residual)
    run = run._replace(state=state)
    enough = residual <= (_relative(method, run) if run.tol is None else run.tol)
    return _judged(run, enough, jnp.asarray(False))


judged_anew = jax.jit(_resumed)
"""The run from another point x, with z ∈ A(x) and ‖z + B̂(x)‖ known, and whether it is over there."""


def _lengths(method: Method, state: State) -> tuple[Array, Array]:
    """‖Γ⁻¹x‖ and the longest step."""
    step, x = method.last_step(state), state.x
    longest = jnp.max(jnp.stack([jnp.max(leaf) for leaf in jax.tree.leaves(step)]))
    return norm(over(x.x if isinstance(x, PrimalDual) else x, step)), longest


def _relative(method: Method, run: Run) -> Array:
    """What counts as zero where the user gives no tol: see the header."""
    (moved, longest), size, unit = _lengths(method, run.state), norm(run.state.Bx), run.unit
    values = jnp.maximum(size, jnp.maximum(jnp.minimum(1.0, unit), FIRM * unit))
    slopes = jnp.maximum(moved, jnp.minimum(1.0 / longest, unit))
    return jnp.maximum(RELATIVE * jnp.minimum(values, slopes), jnp.minimum(ROUNDED * (moved + size), HIDDEN * unit))


def _typed(run: Run) -> Run:
    """Without JAX's weak types, so that what comes out of `begin` and of `advance` fits one compiled program."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), run)


def set_off(method: Method, A: Backward, B: Average, x: PyTree, tol: Array | None, stops: Array) -> tuple[Run, Array]:
    """`begin`, and `advance` to the first stops."""
    return advance(method, A, B, begin(method, A, B, x, tol), stops)


set_off_one, advance_one = jax.jit(set_off), jax.jit(advance)


def _set_off_with(method: Method, A: Backward, B: Any, x: PyTree, tol: Array | None, stops: Array, same: Any) -> Any:
    return set_off(method, A, eqx.combine(B, same), x, tol, stops)


def _advance_with(method: Method, A: Backward, B: Any, run: Run, stops: Array, same: Any) -> Any:
    return advance(method, A, eqx.combine(B, same), run, stops)


# what is one object in all averages (`same`) is not stacked with the rest of them
set_off_many = eqx.filter_jit(eqx.filter_vmap(_set_off_with, in_axes=(0, None, 0, None, None, None, None)))
advance_many = eqx.filter_jit(eqx.filter_vmap(_advance_with, in_axes=(0, None, 0, 0, None, None)))


class Finisher(Protocol):
    """Something that moves runs to better points."""

    next: int  # how many steps to take before it is called again

    def __call__(self, run: Run, done: int) -> Run: ...


def _over(run: Run) -> bool:
    return not bool(np.any(np.asarray(run.code) == RUNNING))


class Drive:
    """Calls `advance` block by block: each as long as a blink, each ending where the trace wants to look."""

    def __init__(self, total: int, recorded_at: Sequence[int], touched: PyTree) -> None:
        self.total = total  # steps to take at most
        numbers = sum(np.size(leaf) for leaf in jax.tree.leaves(touched))  # that an iteration reads
        self.first = int(np.clip(FIRST_BLOCK // max(numbers, 1), 1, 1024))
        self.recorded_at = sorted({look for look in recorded_at if 0 < look <= total} | {1, total})
        self.seen: list[int] = []  # steps at which the residual was reported
        self.residuals: list[Any] = []
        self.latest: Run | None = None  # None before the first step

    def run(
        self,
        advance: Callable[[Run | None, Any], tuple[Run, Array]],
        report: Callable[[Run], None] | None,
        finish: "Finisher | None" = None,
    ) -> Run | None:
        """Until every run is over or all steps are taken. What was reached is kept in `self.latest` throughout.

        `finish` may move the run whenever as many steps are taken as it says.
        """
        done = 0
        run = self.latest = None
        block = self.first
        while done < self.total:
            started = perf_counter()
            last = self.total if finish is None else min(self.total, finish.next)
            stops = self._stops(done, min(done + block, last))
            run, residuals = advance(run, np.asarray(stops + stops[-1:] * (STOPS - len(stops))))
            over, done, self.latest = _over(run), stops[-1], run
            elapsed = perf_counter() - started
            if finish is not None and not over and done >= finish.next:
                run = self.latest = finish(run, done)
                over, residuals = _over(run), np.array(residuals)
                residuals[..., len(stops) - 1] = np.asarray(run.state.residual)
            self.seen += stops
            self.residuals += list(np.asarray(residuals)[..., : len(stops)].T)
            if report is not None:
                report(run)
            if over:
                break
            block = int(np.clip(block * BLINK / elapsed, 1, 8 * block))
        return run

    def _stops(self, done: int, until: int) -> list[int]:
        between = [look for look in self.recorded_at if done < look < until][: STOPS - 1]
        return [*between, until] if len(between) < STOPS - 1 else between
