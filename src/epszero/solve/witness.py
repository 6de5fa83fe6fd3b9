"""A witness that B is not monotone: two points on the way from the start of a run to its end with ⟨ΔB, d⟩ < 0.

The way is cut into PIECES, d = v − u and ΔB = B̂(v) − B̂(u) for the ends u, v of each. What is negative by rounding only
is no witness: the least that counts is TELLING·‖ΔB‖‖d‖ and, TIMES over, what moving the points by some ulp makes of
⟨ΔB, d⟩ (solve/rounding.py); a way so short that this says little is not looked at. Cost: 3(PIECES + 1) times B̂.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat_of, inner, norm, subtract
from epszero._types import PyTree
from epszero.oracles import Average
from epszero.solve.rounding import AWAY, TIMES, beside

PIECES = 8
TELLING = 1e-9
SHORT = 1e-6  # of ‖x‖: a piece below it tells more of rounding than of B


def not_monotone(B: Average, x: PyTree, end: PyTree) -> list[str]:
    """A note where B is seen not to be monotone on the way from x to the end."""
    start, stop = flat_of(x), flat_of(end)
    if not np.linalg.norm(stop - start) > PIECES * SHORT * np.linalg.norm(stop):
        return []
    along, size, rounded = (np.asarray(number) for number in _changes(B, x, end))
    seen = np.isfinite(along) & (along < -TELLING * size - TIMES * rounded)
    if not seen.any():
        return []
    worst = int(np.argmin(np.where(seen, along / np.where(size > 0, size, 1.0), 0.0)))
    first, last = worst / PIECES, (worst + 1) / PIECES
    where = f"x0 + t(x − x0), t = {first:g} and t = {last:g}"
    return [f"B is not monotone: ⟨B(u) − B(v), u − v⟩ = {float(along[worst]):.3g} for u, v = {where}."]


@eqx.filter_jit
def _changes(B: Average, x: PyTree, end: PyTree) -> tuple[PyTree, PyTree, PyTree]:
    """⟨ΔB, d⟩, ‖ΔB‖‖d‖ and what rounding may make of the first, on each piece of the way."""
    d = jax.tree.map(lambda a, b: (b - a) / PIECES, x, end)
    way = [jax.tree.map(lambda a, b, t=t: a + t * (b - a), x, end) for t in np.linspace(0.0, 1.0, PIECES + 1)]
    pairs = [beside(u, j, AWAY[0]) for j, u in enumerate(way)]
    points = [*way, *(pair[0] for pair in pairs), *(pair[1] for pair in pairs)]
    values = jax.lax.map(B, jax.tree.map(lambda *leaves: jnp.stack(leaves), *points))
    here, one, other = (
        jax.tree.map(lambda leaf, k=k: leaf[k * len(way) : (k + 1) * len(way)], values) for k in range(3)
    )
    change = jax.tree.map(lambda leaf: leaf[1:] - leaf[:-1], here)
    unsure = jnp.max(jax.vmap(lambda u, v: norm(subtract(u, v)))(one, other))
    return jax.vmap(lambda one: inner(one, d))(change), jax.vmap(norm)(change) * norm(d), 2 * unsure * norm(d)
