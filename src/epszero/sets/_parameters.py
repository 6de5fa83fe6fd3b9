"""What the constructors of sets share: a dimension, arrays that must broadcast, vectors that must not be zero."""

from typing import Any

import numpy as np

from epszero._checks import count, first_index, label, real_array, refuse
from epszero._lazy import Sparse, sp
from epszero._types import FloatArray, Real
from epszero.sets._base import Set

Matrix = Real | Sparse
"""What users may pass for a matrix: numbers, or one of SciPy's sparse matrices."""


def dimension(dim: int | None, *, least: int = 1) -> int | None:
    """`dim` as a whole number ≥ least, or None for vectors of any length."""
    return None if dim is None else count("dim", dim, least=least)


def spread(argument: str, array: FloatArray, dim: int | None) -> FloatArray:
    """A number becomes a vector of length `dim`; an array must already have that length."""
    if dim is None:
        return array
    if array.ndim and array.shape[-1] not in (1, dim):
        refuse("dim", f"is {dim}, but {argument} has {array.shape[-1]} entries", "Leave dim out, or make them agree")
    return np.broadcast_to(array, (*array.shape[:-1], dim))


def broadcast(**shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common batch shape of the named parameters."""
    try:
        return np.broadcast_shapes(*shapes.values())
    except ValueError:
        listed = " and ".join(f"{name} has {shape}" for name, shape in shapes.items())
        refuse(
            ", ".join(shapes),
            f"must agree in their leading axes (one entry per member of the batch), but {listed}",
            "Make these shapes broadcast",
        )


def direction(argument: str, value: Real) -> FloatArray:
    """A nonzero vector on the last axis."""
    array = real_array(argument, value)
    if array.ndim == 0:
        refuse(argument, f"must be a vector, but it is the number {array:g}", "Pass one entry per coordinate")
    zero = ~np.any(array != 0, axis=-1)
    if zero.any():
        refuse(
            f"{argument}{label(first_index(zero))}",
            "must not be the zero vector, which bounds nothing",
            "Drop that constraint, or give it a nonzero entry",
        )
    return array


def matrix(argument: str, value: Any) -> FloatArray:
    """A dense matrix on the last two axes; SciPy's sparse ones are unpacked."""
    array = real_array(argument, value.toarray() if sp.issparse(value) else value)
    if array.ndim < 2:
        refuse(argument, f"must be a matrix, but its shape is {array.shape}", "Pass one row per equation")
    return array


def positive_definite(argument: str, value: Any) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues (ascending) and eigenvectors (columns) of a symmetric positive definite matrix."""
    P = matrix(argument, value)
    if P.shape[-1] != P.shape[-2]:
        refuse(argument, f"must be square, but its shape is {P.shape}", "Pass an n × n matrix")
    skew = np.abs(P - np.swapaxes(P, -1, -2))
    crooked = skew > 1e-10 * np.abs(P).max(axis=(-1, -2), keepdims=True)
    if crooked.any():
        where = first_index(crooked)
        refuse(
            f"{argument}{label(where)}",
            f"must be symmetric, but this entry and its mirror differ by {skew[where]:g}",
            "Pass (P + P.T)/2",
        )
    eigenvalues, axes = np.linalg.eigh((P + np.swapaxes(P, -1, -2)) / 2)
    flat = eigenvalues[..., 0] <= 1e-14 * np.abs(eigenvalues[..., -1])
    if flat.any():
        where = first_index(flat)
        refuse(
            f"{argument}{label(where)}",
            f"must be positive definite, but its eigenvalues run from {eigenvalues[where][0]:g} "
            f"to {eigenvalues[where][-1]:g}",
            "Add a multiple of the identity, or bound the other directions by another set",
        )
    return eigenvalues, axes


def one_set(argument: str, value: Any) -> Set:
    """A set whose points are single arrays."""
    if not isinstance(value, Set):
        refuse(argument, f"must be a set, but it is {type(value).__name__}", "Build it from epszero.sets")
    if value.rank == 0:
        refuse(argument, "must not be a Product, whose points are nests of arrays", "Apply it to the members instead")
    return value
