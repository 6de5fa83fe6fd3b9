"""What float64 can show of a residual, asked where a run stopped shrinking it.

    floor = 8 · (max_j ‖B̂(x_j) − B̂(x)‖ + 2 eps (‖Γ⁻¹x‖ + ‖B̂(x)‖)),    x_j = x with each entry moved by up to 2 ulp.
The second term is the rounding of what the residual adds up (solve/loop.py). The first is that of what B̂ itself adds
up, such as Hx and h, or many large samples that nearly cancel: where x cannot be told from x_j, B̂(x) is not known
better. Both are sizes of single roundings; 8 allows for several at a time. A run that ends below the floor is at its
fixed point as far as float64 goes: by default it has converged; a smaller tol cannot be reached, and the note says so.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import norm, subtract
from epszero._types import Array, PyTree
from epszero.methods import Method, State
from epszero.methods.steps import over
from epszero.oracles import Average, strategies

TIMES = 8
NEIGHBOURS = 4
EPS = float(np.finfo(np.float64).eps)


def rounding_floor(method: Method, B: Average, state: State) -> float:
    """The floor, at the output of a run."""
    with jax.enable_x64(True):
        return TIMES * float(_roundings(B, state.x if state.point is None else state.point, method.last_step(state)))


def too_fine(floor: float) -> str:
    """What to say where a smaller tol was asked for."""
    return (
        f"The residual is at what float64 can show here, about {floor:.1e}: ask for tol={floor:.0e} or more, leave tol "
        "out, or scale the problem so that what B adds up is smaller."
    )


@eqx.filter_jit
def _roundings(B: Average, x: PyTree, step: PyTree) -> Array:
    points = jax.tree.map(lambda *leaves: jnp.stack(leaves), x, *(_beside(x, j) for j in range(NEIGHBOURS)))
    values = jax.lax.map(B, points)
    here, beside = (jax.tree.map(lambda leaf, part=part: leaf[part], values) for part in (0, slice(1, None)))
    moved = jax.vmap(lambda value: norm(subtract(value, here)))(beside)
    terms = norm(over(strategies(x), step)) + norm(here)
    return jnp.max(moved) + 2 * EPS * terms


def _beside(x: PyTree, j: int) -> PyTree:
    """Every entry moved by −2 to 2 ulp, by another pattern for each j."""

    def moved(leaf: Any) -> Any:
        ulps = np.round(2 * np.cos(1.7 * j + np.arange(np.size(leaf)))).reshape(np.shape(leaf))
        return leaf * (1 + EPS * ulps)

    return jax.tree.map(moved, x)
