"""A reference equilibrium as the paper computes it (section V): a simplified variance-reduced forward-backward scheme.

    x^k = J_{γA}(x^{k−1} − γ (1/10k) Σ_j O(x^{k−1}, ξ_{k,j})),   k = 1, …, K,
where the 10k samples of iteration k are drawn afresh, uniformly between the least and the greatest value that each
coordinate takes in the pool. So it looks for the equilibrium under that uniform law, which is not the law of the pool:
the difference does not vanish with K. For the equilibrium under the pool's own law, `ez.solve(problem, pool)`.
Source: Franci & Grammatico's Algorithm 1 as simplified by Fabiani & Franci. Cost: 5K² + 5K evaluations of O.
"""

from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import count, known_arguments, refuse
from epszero._double import double, on_device, to_numpy
from epszero._points import add, norm, subtract
from epszero._types import Array, PyTree
from epszero.facts import declared_only, step_range
from epszero.methods.steps import checked_step, times
from epszero.oracles import Oracle
from epszero.problems import Problem
from epszero.problems.backward import Backward
from epszero.samples import Samples
from epszero.solve.setup import setting_of


@dataclass(frozen=True, eq=False)
class Reference:
    """Where the scheme ended."""

    x: PyTree
    iterations: int  # K
    drawn: int  # samples in all
    last_move: float  # ‖x^K − x^{K−1}‖


@known_arguments
def reference_equilibrium(
    problem: Any,
    pool: Any,
    *,
    step: Any = None,
    iterations: int = 1000,
    batch: int = 10,
    seed: int = 0,
    x0: PyTree = None,
) -> Reference:
    """The paper's reference: `batch`·k fresh samples at iteration k, uniform between the pool's extremes.

    `step`: as in `ez.ForwardBackward` without schedules; None takes the best one for the declared constants.
    """
    if not isinstance(problem, Problem) or not problem.oracle.uncertain:
        refuse("problem", "must be one whose functions take a sample", "Use ez.solve where nothing is uncertain")
    if problem.coupling is not None:
        refuse("problem", "has shared constraints, for which the scheme is not made", "Use ez.solve")
    if not isinstance(pool, Samples):
        refuse("pool", f"must be one ez.Samples, but it is a {type(pool).__name__}", "Wrap the data in ez.Samples")
    K, many = count("iterations", iterations, least=1), count("batch", batch, least=1)
    key = jax.random.key(count("seed", seed))
    known = step_range(declared_only(problem))
    if step is None and known is None:
        refuse("step", "is needed, as no constants are declared that would give one", "Pass step=0.02, say")
    with double():
        x = setting_of(problem, pool, None, x0).x
        size = checked_step(known.best if step is None and known is not None else step, x)
        low, high = (jax.tree.map(lambda leaf, f=f: f(leaf, axis=0), pool.values) for f in (np.min, np.max))
        oracle, extremes, x, size, last = on_device(
            (problem.oracle.traced(x, low), (low, high), x, size, np.asarray(K))
        )
        x, move = to_numpy(_run(problem.placed, oracle, extremes, x, size, last, (key, many)))
    return Reference(x, K, many * K * (K + 1) // 2, float(move))


@eqx.filter_jit
def _run(
    A: Backward, oracle: Oracle, extremes: tuple[PyTree, PyTree], x: PyTree, step: PyTree, K: Array, draws: Any
) -> tuple[PyTree, Array]:
    key, batch = draws

    def fresh(x: PyTree, key: Array) -> PyTree:
        """The mean of O(x, ·) over `batch` fresh samples."""
        rows = jax.vmap(lambda key: _uniform(key, *extremes))(jax.random.split(key, batch))
        values = jax.vmap(oracle, in_axes=(None, 0))(x, rows)
        return jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), values)

    def iterate(k: Array, carry: tuple[PyTree, Array]) -> tuple[PyTree, Array]:
        x = carry[0]
        own = jax.random.fold_in(key, k)
        total = jax.lax.fori_loop(
            0, k, lambda j, so_far: add(so_far, fresh(x, jax.random.fold_in(own, j))), jax.tree.map(jnp.zeros_like, x)
        )
        mean = jax.tree.map(lambda leaf: leaf / k, total)
        new = A.resolvent(subtract(x, times(step, mean)), step)
        return new, norm(subtract(new, x))

    return jax.lax.fori_loop(1, K + 1, iterate, (x, jnp.asarray(0.0)))


def _uniform(key: Array, low: PyTree, high: PyTree) -> PyTree:
    """One sample, each coordinate uniform between its bounds."""
    leaves, structure = jax.tree.flatten(low)
    keys = jax.random.split(key, len(leaves))
    draws = [
        a + (b - a) * jax.random.uniform(one, jnp.shape(a))
        for one, a, b in zip(keys, leaves, jax.tree.leaves(high), strict=True)
    ]
    return jax.tree.unflatten(structure, draws)
