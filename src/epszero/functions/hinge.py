"""f(x) = Σ weight_i·max(0, margin_i − x_i).

Prox: v moved up by step·weight, but not across the margin; O(n). Conjugate: Σ margin_i·y_i where −weight_i ≤ y_i ≤ 0.
Both parameters: numbers or one per entry; leading axes are a batch.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator


class Hinge(Function):
    """The hinge loss of support vector machines."""

    formula = True
    per_entry = ("weight", "margin")
    weight: FloatArray
    margin: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0, margin: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)
        self.margin = real_array("margin", margin)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return jnp.sum(self.weight * jnp.maximum(self.margin - x, 0.0), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return jnp.maximum(v, jnp.minimum(self.margin, v + step * self.weight))

    def _conjugate(self, y: Array) -> Array:
        excess = jnp.maximum(y, -self.weight - y)
        return jnp.sum(self.margin * y + indicator(excess, self.weight), axis=-1)
