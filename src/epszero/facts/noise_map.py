"""How features move B: C(x) in O(x, ξ) = G(x) + C(x)φ(ξ), at one x, and CᵀC where C is too large to be written down."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, inner, stack
from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.facts.gram import Gram
from epszero.oracles import Average, Collapsed

FEATURES = 2000  # of all data sets together, whose effect on x is worked out
WRITTEN = 20_000_000  # entries of C that are written down


class TooLarge(Exception):
    """There are more numbers than are worked with: the message says which."""


def noise_map(collapsed: Collapsed, point: PyTree, affine: bool) -> tuple[FloatArray | None, Gram]:
    """C at x, where it can be written down, and CᵀC. `affine`: that O is affine in the features is proved."""
    sizes = tuple(rows.shape[1] for rows in collapsed.features)
    entries = sum(np.size(leaf) for leaf in jax.tree.leaves(point))
    if sum(sizes) > FEATURES:
        raise TooLarge(
            f"the noise has {sum(sizes)} features in all, too many to bound its effect on x (at most {FEATURES})"
        )
    if not sizes:
        return np.zeros((entries, 0)), Gram(np.zeros((0, 0)))
    small = sum(sizes) * entries <= WRITTEN
    if not small and not affine:
        raise TooLarge(
            "the oracle is declared affine in features, which was not proved, and x is too large to do without"
        )
    average, tangents = _tangents(collapsed, sizes)
    if not small:
        return None, Gram(np.asarray(_gram(average, tangents, point)))
    columns = to_numpy(_columns(average, tangents, point) if affine else _differences(average, tangents, point))
    C = np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(columns)], axis=1).T
    with np.errstate(over="ignore", invalid="ignore"):
        return C, Gram.of(C)


def _tangents(collapsed: Collapsed, sizes: tuple[int, ...]) -> tuple[Average, Average]:
    """B at zero features, and for each feature the direction in which it moves B, stacked."""
    zero = [np.zeros(size) for size in sizes]
    base = collapsed.at(zero)
    ends = np.cumsum(sizes)[:-1]
    units = [collapsed.at(np.split(row, ends)) for row in np.eye(sum(sizes))]
    return base, stack([jax.tree.map(jnp.subtract, unit, base) for unit in units])


@eqx.filter_jit
def _columns(average: Average, tangents: Average, point: PyTree) -> PyTree:
    return jax.vmap(lambda tangent: jax.jvp(forwards(lambda B: B(point)), (average,), (tangent,))[1])(tangents)


@eqx.filter_jit
def _differences(average: Average, tangents: Average, point: PyTree) -> PyTree:
    """The same by evaluation, which no derivative of the user's making can deceive."""
    base = average(point)
    return jax.vmap(lambda tangent: jax.tree.map(jnp.subtract, add(average, tangent)(point), base))(tangents)


@eqx.filter_jit
def _gram(average: Average, tangents: Average, point: PyTree) -> Any:
    _, pull = jax.vjp(lambda B: B(point), average)

    def row(tangent: PyTree) -> Any:
        image = pull(jax.jvp(forwards(lambda B: B(point)), (average,), (tangent,))[1])[0]
        return jax.vmap(lambda other: inner(other, image))(tangents)

    return jax.lax.map(row, tangents)
