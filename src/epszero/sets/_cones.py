"""What has to be known of the cones of a conic form: whether a slack is inside, and the nearest dual multiplier or so.

Zero, nonnegative, second-order and semidefinite (triangle, columns, √2 off the diagonal) cones, the exponential cone
{(x, y, z) : y·exp(x/y) ≤ z, y > 0} and the power cone {(x, y, z) : x^α y^(1−α) ≥ |z|}; Clarabel's objects say which.
All but the last two are self-dual (the dual of zero is everything); of those the duals are
{(u, v, w) : −u·exp(v/u − 1) ≤ w, u < 0} and {(u, v, w) : (u/α)^α (v/(1−α))^(1−α) ≥ |w|}.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from epszero._types import FloatArray


def blocks(cones: Sequence[Any]) -> Iterator[tuple[str, Any, slice]]:
    """Kind, object and rows of each cone."""
    start = 0
    for cone in cones:
        kind = type(cone).__name__.removesuffix("ConeT")
        size = getattr(cone, "dim", 3)
        rows = size * (size + 1) // 2 if kind == "PSDTriangle" else size
        yield kind, cone, slice(start, start + rows)
        start += rows


def known(cones: Sequence[Any]) -> bool:
    """Whether all of these cones are among those of the header."""
    kinds = {"Zero", "Nonnegative", "SecondOrder", "PSDTriangle", "Exponential", "Power"}
    return all(type(cone).__name__.removesuffix("ConeT") in kinds for cone in cones)


def holds(cones: Sequence[Any], s: FloatArray, room: FloatArray) -> bool:
    """Whether s lies in the product of the cones, each row up to its `room`."""
    return all(_in_cone(kind, cone, s[rows], room[rows]) for kind, cone, rows in blocks(cones))


def into_dual(cones: Sequence[Any], y: FloatArray) -> FloatArray:
    """A point of the dual of the product near y: the nearest, or for the cones that are not self-dual one above."""
    return np.concatenate([np.zeros(0), *(_into_dual(kind, cone, y[rows]) for kind, cone, rows in blocks(cones))])


def inner_point(cones: Sequence[Any]) -> FloatArray:
    """A vector of length about 1 well inside the product, 0 in zero cones."""
    return np.concatenate([np.zeros(0), *(_inner(kind, cone, rows) for kind, cone, rows in blocks(cones))])


def _in_cone(kind: str, cone: Any, s: FloatArray, room: FloatArray) -> bool:
    slack = float(room.max(initial=0.0))
    if kind == "Zero":
        return bool((np.abs(s) <= room).all())
    if kind == "Nonnegative":
        return bool((s >= -room).all())
    if kind == "SecondOrder":
        return bool(np.linalg.norm(s[1:]) <= s[0] + slack)
    if kind == "PSDTriangle":
        return bool(np.linalg.eigvalsh(_matrix(cone.dim, s))[0] >= -slack * cone.dim)
    x, y, z = s
    if kind == "Exponential":
        with np.errstate(over="ignore"):
            return bool(y > 0 and z > 0 and y * np.exp(x / y) <= z + slack * (1 + abs(x / y) * z / y))
    alpha = _alpha(cone)
    return bool(x >= 0 and y >= 0 and x**alpha * y ** (1 - alpha) >= abs(z) - slack)


def _into_dual(kind: str, cone: Any, y: FloatArray) -> FloatArray:
    if kind in ("Zero", "Nonnegative"):
        return y if kind == "Zero" else np.maximum(y, 0.0)
    if kind == "Exponential":
        return _into_dual_exponential(y)
    if kind == "Power":
        return _into_dual_power(_alpha(cone), y)
    if kind == "SecondOrder":
        head, size = y[0], float(np.linalg.norm(y[1:]))
        if size <= head:
            return y
        middle = max((head + size) / 2, 0.0)
        return np.concatenate([[middle * (1 + 4e-16)], y[1:] * (middle / size)])
    values, axes = np.linalg.eigh(_matrix(cone.dim, y))
    return _triangle((axes * np.maximum(values, 0.0)) @ axes.T)


def _into_dual_exponential(y: FloatArray) -> FloatArray:
    u, v, w = y
    if u >= 0:
        return np.array([0.0, max(v, 0.0), max(w, 0.0)])
    with np.errstate(over="ignore"):
        return np.array([u, v, max(w, -u * np.exp(v / u - 1) * (1 + 1e-15))])


def _into_dual_power(alpha: float, y: FloatArray) -> FloatArray:
    u, v, w = max(y[0], 0.0), max(y[1], 0.0), y[2]
    most = (u / alpha) ** alpha * (v / (1 - alpha)) ** (1 - alpha) * (1 - 1e-15)
    return np.array([u, v, float(np.clip(w, -most, most))])


def _inner(kind: str, cone: Any, rows: slice) -> FloatArray:
    size = rows.stop - rows.start
    if kind == "Zero":
        return np.zeros(size)
    if kind == "Nonnegative":
        return np.ones(size)
    if kind == "SecondOrder":
        return np.eye(1, size)[0]
    if kind == "PSDTriangle":
        return _triangle(np.eye(cone.dim))
    return np.array([-1.0, 1.0, 1.0]) if kind == "Exponential" else np.array([1.0, 1.0, 0.0])


def _alpha(cone: Any) -> float:
    return float(cone.α)


def _matrix(n: int, triangle: FloatArray) -> FloatArray:
    rows, columns = np.tril_indices(n)  # the upper triangle, column by column
    matrix = np.zeros((n, n))
    matrix[columns, rows] = np.where(rows == columns, 1.0, np.sqrt(0.5)) * triangle
    return matrix + np.triu(matrix, 1).T


def _triangle(matrix: FloatArray) -> FloatArray:
    rows, columns = np.tril_indices(len(matrix))
    return np.where(rows == columns, 1.0, np.sqrt(2.0)) * matrix[columns, rows]
