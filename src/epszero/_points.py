"""Points are pytrees of arrays: their arithmetic, and the way from trees to vectors and back."""

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import is_traced
from epszero._types import Array, FloatArray, PyTree

SMALLEST = 1e-300  # below it numbers are not computed with: compiled programs may take them for zero
LEAST_SQUARE = 1e-280  # a sum of squares above it, and below its inverse, has lost nothing that counts
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
    """‖u‖ over all leaves, in any units: where squares would overflow or vanish, entries are scaled first."""
    if not is_traced(u):  # outside of a program every branch would be compiled anew
        return jnp.asarray(length(flat_of(u)))
    u = jax.tree.map(jnp.asarray, u)
    square = inner(u, u)
    plain = (square > LEAST_SQUARE) & (square < 1 / LEAST_SQUARE)
    return jax.lax.cond(plain, lambda _: jnp.sqrt(square), _scaled_norm, u)


def _scaled_norm(u: PyTree) -> Array:
    by = power_of_two(u)
    scaled = jax.tree.map(lambda leaf: leaf / by, u)
    return jnp.sqrt(inner(scaled, scaled)) * by


def power_of_two(u: PyTree) -> Array:
    """The power of two at or below the largest entry: u divided by it lies in [−2, 2], and nothing is rounded."""
    sizes = [jnp.max(jnp.abs(leaf), initial=0.0) for leaf in jax.tree.leaves(u)]
    largest = functools.reduce(jnp.maximum, sizes, jnp.asarray(0.0))
    usable = (largest > SMALLEST) & jnp.isfinite(largest)
    exponent = jnp.frexp(jnp.where(usable, largest, 1.0))[1] - 1
    half = exponent // 2  # the whole power in two factors, each of which is far from the ends of float64
    return jnp.ldexp(jnp.asarray(1.0), half) * jnp.ldexp(jnp.asarray(1.0), exponent - half)


def length(v: Any, axis: int | None = None) -> Any:
    """‖v‖ as NumPy, of all entries or along an axis, in any units; a number where no axis is left."""
    v = np.asarray(v, dtype=np.float64)
    v = v.ravel() if axis is None else v
    along = 0 if axis is None else axis
    with np.errstate(all="ignore"):
        squares = np.sum(np.square(v), axis=along)
    if np.min(squares, initial=1.0) > LEAST_SQUARE and np.max(squares, initial=1.0) < 1 / LEAST_SQUARE:
        return math.sqrt(squares) if np.ndim(squares) == 0 else np.sqrt(squares)
    largest = np.max(np.abs(v), axis=along, keepdims=True, initial=0.0)
    usable = (largest > SMALLEST) & np.isfinite(largest)
    exponent = np.frexp(np.where(usable, largest, 1.0))[1] - 1
    scaled = np.ldexp(v, -exponent)  # exactly, but for what is nothing beside the largest
    with np.errstate(over="ignore"):
        found = np.ldexp(np.sqrt(np.sum(np.square(scaled), axis=along)), np.squeeze(exponent, axis=along))
    return float(found) if np.ndim(found) == 0 else found


def nested_like(value: PyTree, v: PyTree) -> PyTree:
    """`value` nested like v: as it is, or the same for every leaf."""
    return value if jax.tree.structure(value) == jax.tree.structure(v) else jax.tree.map(lambda _: value, v)


def stack(trees: list[PyTree]) -> PyTree:
    """Pytrees of equal structure as one, with a new leading axis."""
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def stacked(trees: Sequence[PyTree]) -> PyTree:
    """`stack`, as NumPy, which compiles nothing for each number of them."""
    return jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *trees)


def shared_apart(trees: Sequence[PyTree]) -> tuple[list[PyTree], PyTree]:
    """Pytrees of equal structure without the leaves that are one object in all of them, and these leaves alone, with
    None in the place of the others; `eqx.combine` joins the two."""
    flat = [jax.tree.flatten(tree) for tree in trees]
    structure = flat[0][1]
    columns = list(zip(*(leaves for leaves, _ in flat), strict=True))
    same = [len(trees) > 1 and all(leaf is column[0] for leaf in column) for column in columns]
    kept = structure.unflatten([column[0] if one else None for column, one in zip(columns, same, strict=True)])
    rest = [[None if one else leaf for leaf, one in zip(leaves, same, strict=True)] for leaves, _ in flat]
    return [structure.unflatten(leaves) for leaves in rest], kept


def pick(tree: PyTree, index: int) -> PyTree:
    """Entry `index` of the leading axis of every leaf."""
    return jax.tree.map(lambda leaf: leaf[index], tree)


def shapes(tree: PyTree) -> Any:
    """The pytree of shapes, for messages."""
    return jax.tree.map(lambda leaf: tuple(jnp.shape(leaf)), tree)


def one_row(tree: PyTree) -> PyTree:
    """The shapes of one entry of the leading axis."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), tree)


def entries(tree: PyTree) -> int:
    """How many numbers there are in all leaves together."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(tree))


def flat(tree: PyTree) -> Array:
    """All entries, one after another, inside a computation."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def flat_of(tree: PyTree) -> FloatArray:
    """All entries, one after another, as NumPy."""
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)])


def flat_rows(tree: PyTree) -> FloatArray:
    """One row for each entry of the leading axis, as NumPy; a matrix as it is."""
    rows = [np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(tree)]
    return rows[0] if len(rows) == 1 else np.concatenate(rows, axis=1)


def shaped(tree: PyTree, vector: Array) -> PyTree:
    """The entries of `vector`, nested and shaped like `tree`; NumPy stays NumPy, and what is traced stays traced."""
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    pieces = (np if isinstance(vector, np.ndarray) else jnp).split(vector, ends[:-1])
    return structure.unflatten([piece.reshape(np.shape(leaf)) for piece, leaf in zip(pieces, leaves, strict=True)])


def shaped_like(tree: PyTree, vector: FloatArray) -> PyTree:
    """`shaped`, as NumPy."""
    return shaped(tree, np.asarray(vector))


def as_data(row: PyTree) -> PyTree:
    """A data set of this one sample; None where nothing is uncertain."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], row)
