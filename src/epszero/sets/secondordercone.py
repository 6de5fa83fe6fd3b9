"""{(u, t) : ‖u‖ ≤ t}, with t the last entry: the second-order (ice cream) cone.

Projection: (u, t) inside, 0 when ‖u‖ ≤ −t, else ((‖u‖ + t)/2)·(u/‖u‖, 1); O(n). Support 0 on the polar cone
{‖u‖ ≤ −t} (to rounding: √eps of the direction's length), else ∞. Diameter ∞, exact.
"""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np

from epszero._checks import count, known_arguments
from epszero._shaped import norm
from epszero._types import Array
from epszero.sets._base import Set, rounding
from epszero.sets.conic import ConicForm


class SecondOrderCone(Set):
    """Vectors of length `dim` whose last entry is at least the norm of the others."""

    formula = True
    static: ClassVar[tuple[str, ...]] = ("dim",)
    dim: int

    @known_arguments
    def __init__(self, dim: int) -> None:
        self.dim = count("dim", dim, least=1)

    @property
    def point_shape(self) -> tuple[int, ...]:
        return (self.dim,)

    def _project(self, v: Array) -> Array:
        u, t = v[..., :-1], v[..., -1]
        size = norm(u)
        height = jnp.where(size <= -t, 0.0, (size + t) / 2)
        shrunk = u * (height / jnp.where(size > 0, size, 1.0))[..., None]
        outside = ~(size <= t)  # so that NaN stays NaN
        return jnp.where(outside[..., None], jnp.concatenate([shrunk, height[..., None]], axis=-1), v)

    def _support(self, direction: Array) -> Array:
        excess = norm(direction[..., :-1]) + direction[..., -1]
        return jnp.where(excess > rounding(direction) * norm(direction), jnp.inf, 0.0)

    def _diameter(self) -> Array:
        return jnp.asarray(jnp.inf)

    def _point(self) -> Array:
        return jnp.zeros(self.dim).at[-1].set(1.0)

    def _conic(self, n: int) -> ConicForm:
        return ConicForm.second_order(-np.roll(np.eye(n), 1, axis=0), np.zeros(n))
