"""f(x) = Σ weight_i/2·(x_i − center_i)².

Prox: the average of v and center, center counting step·weight, O(n). Conjugate: Σ center_i·y_i + y_i²/(2·weight_i),
which asks y_i = 0 where the weight is 0. Weight and center: numbers or one per entry; leading axes are a batch.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, square_over


class SquaredL2(Function):
    """Half the squared distance from `center`, weighted."""

    formula = True
    per_entry = ("weight", "center")
    weight: FloatArray
    center: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0, center: Real = 0.0) -> None:
        self.weight = positive("weight", weight, strict=False)
        self.center = real_array("center", center)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return jnp.sum(0.5 * self.weight * (x - self.center) ** 2, axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        share = 1.0 / (1.0 + step * self.weight)
        return share * v + (1.0 - share) * self.center

    def _conjugate(self, y: Array) -> Array:
        return jnp.sum(self.center * y + square_over(y, self.weight), axis=-1)
