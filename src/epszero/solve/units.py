"""Steps for each entry of x, where units differ within a point: Γ = 1/diag H, H the derivative of B̂ at x⁰.

Where the columns of a data matrix are spread over 10³, one step for all is 10⁶ times too short for some of them. With
Γ^½HΓ^½, whose diagonal is 1, the units do not matter any more. Methods take Γ as they take agents' own units
(methods/backtracking.py): all that is proved holds in the norm of Γ⁻¹. Assumes a resolvent entry by entry, which has a
formula for any steps (`Backward.entrywise`).
Two derivatives along random signs tell whether units differ at all; only then the diagonal is worked out, by one
derivative for each entry, of WORK numbers in all at most. None where a curvature at x⁰ is not positive.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import entries, shaped_like
from epszero._trace.programs import forwards
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Average
from epszero.problems import Problem

UNLIKE = 100.0  # curvatures that differ by more ask for steps of their own
WORK = 4e9  # entries of x times numbers that B̂ reads
AT_ONCE = 30_000_000  # numbers that derivatives may read at once
NOTHING = 1e-14  # of the largest curvature


def entry_steps(problem: Problem, B: Average, x: PyTree, J: FloatArray | None) -> PyTree:
    """Of each entry relative to the others, nested like x; None where they are much alike, or not known.

    `J`: the derivative, where it is known to be constant.
    """
    n = entries(x)
    if n < 2 or problem.coupling is not None or not problem.A.entrywise:
        return None
    if J is not None:
        return _relative(np.diagonal(J), x)
    size = entries(B) + n
    if n * size > WORK or not _differ(B, x):
        return None
    return _relative(np.asarray(_diagonal(B, x, at_once=int(np.clip(AT_ONCE // size, 1, 64)))), x)


def _relative(curvatures: FloatArray, x: PyTree) -> PyTree:
    largest = float(curvatures.max())
    if not np.isfinite(curvatures).all() or curvatures.min() <= NOTHING * largest:
        return None
    if largest < UNLIKE * curvatures.min():
        return None
    return shaped_like(x, np.exp(np.mean(np.log(curvatures))) / curvatures)


def _differ(B: Average, x: PyTree) -> bool:
    """Whether entries of Hv for random v do by as much as units would make them."""
    sizes = np.asarray(_sizes(B, x))
    return bool(np.isfinite(sizes).all() and sizes.max() >= np.sqrt(UNLIKE) * sizes.min())


@jax.jit
def _sizes(B: Average, x: PyTree) -> Array:
    flat, unravel = ravel_pytree(x)
    signs = np.sign(np.random.default_rng(0).normal(size=(4, len(flat))))
    along = jax.linearize(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]), flat)[1]
    return jnp.sqrt(jnp.mean(jax.vmap(along)(jnp.asarray(signs)) ** 2, axis=0))


@functools.partial(jax.jit, static_argnames="at_once")
def _diagonal(B: Average, x: PyTree, at_once: int) -> Array:
    flat, unravel = ravel_pytree(x)
    along = jax.linearize(forwards(lambda v: ravel_pytree(B(unravel(v)))[0]), flat)[1]
    places = jnp.arange(len(flat))
    return jax.lax.map(lambda j: along((places == j).astype(flat.dtype))[j], places, batch_size=at_once)
