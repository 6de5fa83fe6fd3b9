"""How features move B: C(x) in O(x, ξ) = G(x) + C(x)φ(ξ), at one x, and CᵀC where C is too large to be written down."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, inner, shared_apart, stacked
from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.facts.gram import Gram
from epszero.oracles import Collapsed

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
    given = *_tangents(collapsed, sizes), point
    if not small:
        return None, Gram(np.asarray(_gram(*given)))
    columns = to_numpy(_columns(*given) if affine else _differences(*given))
    C = np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(columns)], axis=1).T
    with np.errstate(over="ignore", invalid="ignore"):
        return C, Gram.of(C)


def _tangents(collapsed: Collapsed, sizes: tuple[int, ...]) -> tuple[PyTree, PyTree, PyTree]:
    """B at zero features; for each feature the direction in which it moves B, stacked; and what of B stays the same."""
    zero = [np.zeros(size) for size in sizes]
    ends = np.cumsum(sizes)[:-1]
    units = [collapsed.at(np.split(row, ends)) for row in np.eye(sum(sizes))]
    (base, *moved), same = shared_apart([collapsed.at(zero), *units])
    return base, stacked([jax.tree.map(np.subtract, unit, base) for unit in moved]), same


@eqx.filter_jit
def _columns(base: PyTree, tangents: PyTree, same: PyTree, point: PyTree) -> PyTree:
    at = forwards(lambda B: eqx.combine(B, same)(point))
    return jax.vmap(lambda tangent: jax.jvp(at, (base,), (tangent,))[1])(tangents)


@eqx.filter_jit
def _differences(base: PyTree, tangents: PyTree, same: PyTree, point: PyTree) -> PyTree:
    """The same by evaluation, which no derivative of the user's making can deceive."""

    def at(B: PyTree) -> PyTree:
        return eqx.combine(B, same)(point)

    here = at(base)
    return jax.vmap(lambda tangent: jax.tree.map(jnp.subtract, at(add(base, tangent)), here))(tangents)


@eqx.filter_jit
def _gram(base: PyTree, tangents: PyTree, same: PyTree, point: PyTree) -> Any:
    def at(B: PyTree) -> PyTree:
        return eqx.combine(B, same)(point)

    _, pull = jax.vjp(at, base)

    def row(tangent: PyTree) -> Any:
        image = pull(jax.jvp(forwards(at), (base,), (tangent,))[1])[0]
        return jax.vmap(lambda other: inner(other, image))(tangents)

    return jax.lax.map(row, tangents)
