"""Whether shared convex constraints h(x) ≤ 0 can be kept with room to spare, as Slater's condition asks.

Projected subgradient steps on max_j h_j over the domain, each shorter than the last by a fixed factor. A point with all
h_j < 0 settles it; that none was found is evidence that there is none, and then multipliers need not exist: those of a
run grow without end. Affine constraints need no such point. Cost: DESCENT evaluations of h and ∇h.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._types import Array, PyTree
from epszero.oracles import PrimalDual
from epszero.problems.backward import Backward
from epszero.sets import Set

DESCENT = 1000
ROOM = 1e-7  # of the size of h: less is none
NAMED = 10  # constraints


def no_room(A: Backward, coupling: Any, end: PrimalDual) -> list[str]:
    """A sentence where no point inside the shared constraints is found."""
    if coupling.affine:
        return []
    h, size = (np.asarray(number) for number in _deepest(A, coupling, end.x))
    if not h.max() > -ROOM * size:
        return []
    rows = [int(j) for j in np.flatnonzero(h > -ROOM * size)[:NAMED]]
    named = ", ".join(f"{j} (multiplier {end.multipliers[j]:.3g})" for j in rows)
    return [
        "No point of the domain was found that keeps the shared constraints with room to spare, as Slater's condition "
        f"asks; where there is none, multipliers need not exist. Constraints met at best: {named}. Ask for "
        "h(x) ≤ d with a small d > 0 instead."
    ]


@eqx.filter_jit
def _deepest(A: Backward, coupling: Any, x: PyTree) -> tuple[Array, Array]:
    """h where the largest of its entries was least, and the size of h around x."""
    flat, unravel = ravel_pytree(x)

    def worst(v: Any) -> Array:
        return jnp.max(coupling.value(unravel(v)))

    def descend(k: Any, state: tuple[Any, Any]) -> tuple[Any, Any]:
        v, best = state
        slope = jax.grad(worst)(v)
        size = jnp.linalg.norm(slope)
        step = 0.98**k * jnp.maximum(1.0, jnp.linalg.norm(flat)) / jnp.where(size > 0, size, 1.0)
        v = ravel_pytree(inside(A, unravel(v - step * slope)))[0]
        return v, jnp.where(worst(v) < worst(best), v, best)

    _, best = jax.lax.fori_loop(0, DESCENT, descend, (flat, flat))
    size = jnp.abs(worst(flat)) + jnp.linalg.norm(jax.grad(worst)(flat)) * jnp.maximum(1.0, jnp.linalg.norm(flat))
    return coupling.value(unravel(best)), size


def inside(A: Backward, x: PyTree) -> PyTree:
    """x, or the nearest point of the sets."""
    return A.each(lambda part, leaf: part.project(leaf) if isinstance(part, Set) else leaf, x)
