"""{x : lower ≤ x ≤ upper}, entry by entry.

Projection clips, O(n). Bounds are numbers or arrays (leading axes are a batch), and may be infinite.
Diameter exact.
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import count, first_index, known_arguments, label, real_array, refuse
from epszero._shaped import clipped, dot, norm
from epszero._types import Array, FloatArray, Real
from epszero.sets._base import Set
from epszero.sets.conic import ConicForm

FEW = 8  # entries of a box up to which its corners are written down


class Box(Set):
    """Entries between `lower` and `upper`."""

    formula = True
    per_entry = ("lower", "upper")
    lower: FloatArray
    upper: FloatArray

    @known_arguments
    def __init__(self, lower: Real, upper: Real, dim: int | None = None) -> None:
        self.lower, self.upper = checked_bounds("Box", lower, upper, dim)

    def _project(self, v: Array) -> Array:
        return clipped(v, self.lower, self.upper)

    def _support(self, direction: Array) -> Array:
        return dot(direction, jnp.where(direction > 0, self.upper, self.lower))

    def _diameter(self) -> Array:
        return norm(jnp.broadcast_to(self.upper - self.lower, self.batch_shape + self.known_point_shape))

    def _corners(self, n: int) -> FloatArray | None:
        if n > FEW or not (np.isfinite(self.lower).all() and np.isfinite(self.upper).all()):
            return None
        bits = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        return np.where(bits == 1, self.upper, self.lower)

    def _conic(self, n: int) -> ConicForm:
        lower, upper = np.broadcast_to(self.lower, n), np.broadcast_to(self.upper, n)
        return ConicForm.inequalities(np.vstack([np.eye(n), -np.eye(n)]), np.concatenate([upper, -lower]))


def checked_bounds(name: str, lower: Real, upper: Real, dim: int | None) -> tuple[FloatArray, FloatArray]:
    """Two bounds that broadcast, are not NaN and do not cross; spread to length `dim` where both are numbers."""
    low = real_array("lower", lower, allow_infinite=True)
    high = real_array("upper", upper, allow_infinite=True)
    try:
        shape = np.broadcast_shapes(low.shape, high.shape)
    except ValueError:
        refuse(
            "lower, upper",
            f"must broadcast against each other, but their shapes are {low.shape} and {high.shape}",
            "Give both one entry per coordinate, or a number",
        )
    empty = (low > high) | (low == np.inf) | (high == -np.inf)
    if empty.any():
        where = first_index(empty)
        refuse(
            "lower, upper",
            f"{name} is empty: lower{label(where)} = {np.broadcast_to(low, shape)[where]:g} and "
            f"upper{label(where)} = {np.broadcast_to(high, shape)[where]:g} leave nothing between them",
            "Make lower ≤ upper in every entry",
        )
    if dim is None:
        return low, high
    dim = count("dim", dim, least=1)
    if shape and shape[-1] not in (1, dim):
        refuse("dim", f"is {dim}, but the bounds have {shape[-1]} entries", "Leave dim out, or make them agree")
    return np.broadcast_to(low, (*low.shape[:-1], dim)), np.broadcast_to(high, (*high.shape[:-1], dim))
