"""Arithmetic on points: a point is a pytree of arrays, and these few words are all that methods need."""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp

from epszero._types import Array, PyTree

SMALL = 4096  # entries of a leaf up to which several inner products are summed together


def add(u: PyTree, v: PyTree) -> PyTree:
    """u + v."""
    return jax.tree.map(operator.add, u, v)


def subtract(u: PyTree, v: PyTree) -> PyTree:
    """u − v."""
    return jax.tree.map(operator.sub, u, v)


def inner(u: PyTree, v: PyTree) -> Array:
    """⟨u, v⟩ over all leaves."""
    products = jax.tree.leaves(jax.tree.map(lambda a, b: jnp.sum(a * b), u, v))
    return functools.reduce(operator.add, products, jnp.asarray(0.0))


def inners(*pairs: tuple[PyTree, PyTree]) -> list[Any]:
    """⟨u, v⟩ for several pairs of points of one structure; small leaves in one reduction for all, which is faster."""
    totals = [jnp.asarray(0.0)] * len(pairs)
    for leaves in zip(*(jax.tree.leaves(tree) for pair in pairs for tree in pair), strict=True):
        products = [u * v for u, v in zip(leaves[::2], leaves[1::2], strict=True)]
        if jnp.size(products[0]) <= SMALL:
            stacked = jnp.stack(products)
            sums = jnp.sum(stacked.reshape(len(products), -1), axis=1)
        else:
            sums = [jnp.sum(product) for product in products]
        totals = [total + sums[i] for i, total in enumerate(totals)]
    return totals


def norm(u: PyTree) -> Array:
    """‖u‖ over all leaves."""
    return jnp.sqrt(inner(u, u))


def nested_like(value: PyTree, v: PyTree) -> PyTree:
    """`value` nested like v: as it is, or the same for every leaf."""
    return value if jax.tree.structure(value) == jax.tree.structure(v) else jax.tree.map(lambda _: value, v)


def stack(trees: list[PyTree]) -> PyTree:
    """Pytrees of equal structure as one, with a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def pick(tree: PyTree, index: int) -> PyTree:
    """Entry `index` of the leading axis of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def shapes(tree: PyTree) -> Any:
    """The pytree of shapes, for messages."""
    return jax.tree.map(lambda leaf: tuple(jnp.shape(leaf)), tree)
