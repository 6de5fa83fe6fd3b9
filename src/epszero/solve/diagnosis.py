"""Why a run failed, from the evidence at its end: one sentence for each reason found, with a remedy that works.

That B is not monotone is looked for elsewhere (solve/witness.py).
- A jump: B across a short piece of a line through x, within the domain, is halved again and again, towards the half
  where B changes more. A slope makes the change shrink with the length of the piece; a jump does not.
- Scale: ∂B_j/∂x_j differs by more than SCALES between the entries of x.
- No Slater point: see solve/slater.py.
Cost: some hundred evaluations of B̂, and only where a run failed.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import add, entries, flat_of
from epszero._trace.programs import forwards
from epszero._types import Array, PyTree
from epszero.methods import State
from epszero.oracles import Average, PrimalDual
from epszero.problems import Problem
from epszero.problems.backward import Backward
from epszero.solve.slater import inside, no_room

WATCHED = 16  # entries of x with the largest residuals, each looked at for a jump
HALVINGS = 36  # of the piece on which a jump is looked for
MOST = 400  # entries of x beyond which slopes are not compared
SCALES = 1e6


def likely_reasons(problem: Problem, B: Any, state: State) -> list[str]:
    """What else is seen at the end of a run that failed."""
    end = state.x if state.point is None else state.point
    if not np.isfinite(flat_of(end)).all():
        return []
    if not isinstance(end, PrimalDual):
        return _jumps(problem.placed, B, end, state.z) + _scales(B, end)
    strategies = problem.placed.block("x")
    pull = add(state.z.x, B.coupling.pull(end.x, end.multipliers))
    return _jumps(strategies, B.base, end.x, pull) + _scales(B.base, end.x) + no_room(strategies, B.coupling, end)


def _jumps(A: Backward, B: Average, x: PyTree, z: PyTree) -> list[str]:
    """The largest jump of B near x that the residual may come from."""
    residual = np.abs(flat_of(z) + flat_of(jax.tree.map(np.asarray, _value(B, x))))
    watched = np.argsort(-residual)[:WATCHED]
    middle, change, before, size = (np.asarray(number) for number in _narrowed(A, B, x, watched))
    jump = (change >= 0.5 * before) & (change >= 0.1 * residual[watched]) & (change > 1e-9 * size) & (change > 0)
    if not jump.any():
        return []
    found = int(np.argmax(np.where(jump, change, 0.0)))
    name = _names(x)[int(watched[found])]
    return [
        f"B jumps by {float(change[found]):.3g} where {name} passes {float(middle[found]):.6g}: a kink of a cost, or a "
        "case distinction. Smooth it, such as d·jax.nn.softplus(t/d) with a small d for max(t, 0), or, where it is a "
        "kink of an entry of x alone, write it as a function in A, such as ez.functions.L1 for |x|."
    ]


@eqx.filter_jit
def _narrowed(A: Backward, B: Average, x: PyTree, watched: Any) -> tuple[Array, Array, Array, Array]:
    """Where B changes most near entry j of x; the change there, and on a piece many times as long; the size of B."""
    flat, unravel = ravel_pytree(x)

    def narrowed(j: Array) -> tuple[Array, Array, Array, Array]:
        def at(value: Array) -> Array:
            return ravel_pytree(B(inside(A, unravel(flat.at[j].set(value)))))[0]

        def halve(piece: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], Array]:
            ends, values = piece
            middle = jnp.mean(ends)
            value = at(middle)
            below, above = jnp.linalg.norm(value - values[0]), jnp.linalg.norm(values[1] - value)
            low, high = jnp.stack([ends[0], middle]), jnp.stack([middle, ends[1]])
            kept = jnp.where(below > above, low, high)
            new = jnp.where(below > above, jnp.stack([values[0], value]), jnp.stack([value, values[1]]))
            return (kept, new), jnp.maximum(below, above)

        ends = flat[j] + 1e-2 * jnp.maximum(1.0, jnp.abs(flat[j])) * jnp.array([-1.0, 1.0])
        (ends, values), changes = jax.lax.scan(halve, (ends, jax.lax.map(at, ends)), length=HALVINGS)
        return jnp.mean(ends), changes[-1], changes[HALVINGS // 2], jnp.max(jnp.abs(values))

    return jax.lax.map(narrowed, watched)


def _scales(B: Average, x: PyTree) -> list[str]:
    if entries(x) > MOST:
        return []
    slopes = np.asarray(_diagonal(B, x))
    known = np.flatnonzero(np.isfinite(slopes) & (slopes > 0))
    if not len(known):
        return []
    names, low, high = _names(x), known[slopes[known].argmin()], known[slopes[known].argmax()]
    if not slopes[high] > SCALES * slopes[low]:
        return []
    return [
        f"Scales differ: the slope of B is {slopes[low]:.1e} in {names[low]} and {slopes[high]:.1e} in {names[high]}. "
        "Solve for y with x = s * y and s about 1/√slope, or leave method and iterations out: Newton's method, which "
        "does not mind, then finishes the run."
    ]


@eqx.filter_jit
def _value(B: Average, x: PyTree) -> PyTree:
    return B(x)


@eqx.filter_jit
def _diagonal(B: Average, x: PyTree) -> Array:
    flat, unravel = ravel_pytree(x)
    slopes = jax.jacfwd(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]))(flat)
    return jnp.diag(slopes)


def _names(x: PyTree) -> list[str]:
    """How a user writes each entry of x."""
    names = list[str]()
    for path, leaf in jax.tree_util.tree_flatten_with_path(x)[0]:
        head = f"x{jax.tree_util.keystr(path)}"
        names += [head + f"[{', '.join(map(str, index))}]" * bool(index) for index in np.ndindex(np.shape(leaf))]
    return names
