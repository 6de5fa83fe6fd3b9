"""What float64 can show of a residual, asked where a run stopped shrinking it.

    floor = 8 · (max_j min_k ‖B̂(x_jk) − B̂(x′_jk)‖ + min(2 eps (‖Γ⁻¹x‖ + ‖B̂(x)‖), 1e-6 u)),
    x_jk = x with all entries moved by 8, 24 or 72 ulp,    x′_jk = x_jk moved further by up to 2 ulp, after a pattern j.
The second term is the rounding of what the residual adds up (solve/loop.py). The first is that of what B̂ itself adds
up, such as Hx and h, or many large samples that nearly cancel: where x_jk cannot be told from x′_jk, B̂ is not known
better. A jump of B̂, at x or at another place, lies between two such points for one k at most, and is not taken for
rounding. Both are sizes of single roundings; 8 allows for several at a time. A run that ends below the floor is at its
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
from epszero.solve.loop import HIDDEN

TIMES = 8
NEIGHBOURS = 4
AWAY = (8, 24, 72)  # ulp
EPS = float(np.finfo(np.float64).eps)


def rounding_floor(method: Method, B: Average, state: State, unit: float) -> float:
    """The floor, at the output of a run; `unit`: u, the size of what is added up at the start (solve/loop.py)."""
    end = state.x if state.point is None else state.point
    with jax.enable_x64(True):
        within, sums = (float(number) for number in _roundings(B, end, method.last_step(state)))
    return TIMES * (within + min(2 * EPS * sums, HIDDEN * unit))


def too_fine(floor: float) -> str:
    """What to say where a smaller tol was asked for."""
    return (
        f"The residual is at what float64 can show here, about {floor:.1e}: ask for tol={floor:.0e} or more, leave tol "
        "out, or scale the problem so that what B adds up is smaller."
    )


@eqx.filter_jit
def _roundings(B: Average, x: PyTree, step: PyTree) -> tuple[Array, Array]:
    """The first term, and the sizes in the second."""
    pairs = [point for j in range(NEIGHBOURS) for away in AWAY for point in beside(x, j, away)]
    points = jax.tree.map(lambda *leaves: jnp.stack(leaves), x, *pairs)
    values = jax.lax.map(B, points)
    here, near = (jax.tree.map(lambda leaf, part=part: leaf[part], values) for part in (0, slice(1, None)))
    one, other = (jax.tree.map(lambda leaf, k=k: leaf[k::2], near) for k in (0, 1))
    moved = jnp.reshape(jax.vmap(lambda u, v: norm(subtract(u, v)))(one, other), (NEIGHBOURS, len(AWAY)))
    return jnp.max(jnp.min(moved, axis=1)), norm(over(strategies(x), step)) + norm(here)


def beside(x: PyTree, j: int, away: int) -> tuple[PyTree, PyTree]:
    """x with every entry moved by `away` ulp, and then by −2 to 2 ulp more, by another pattern for each j."""

    def moved(leaf: Any) -> Any:
        ulps = np.round(2 * np.cos(1.7 * j + np.arange(np.size(leaf)))).reshape(np.shape(leaf))
        return leaf * (1 + EPS * (away + ulps))

    return jax.tree.map(lambda leaf: leaf * (1 + EPS * away), x), jax.tree.map(moved, x)
