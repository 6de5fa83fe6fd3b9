"""f(x) = −weight·Σ log x_i on x > 0, ∞ elsewhere.

Prox: the positive root of x² − v·x = step·weight, in the form that does not cancel; O(n).
Conjugate: −weight·Σ (1 + log(−y_i/weight)) on y < 0. Weight: a number > 0 or one per entry; leading axes are a batch.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function


class LogBarrier(Function):
    """The barrier of interior-point methods, weighted."""

    formula = True
    per_entry = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight)

    def _value(self, x: Array) -> Array:
        return -jnp.sum(self.weight * _log(x), axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        root = jnp.sqrt(step) * jnp.sqrt(self.weight)
        far = jnp.hypot(v, 2.0 * root)  # √(v² + 4·step·weight)
        return jnp.where(v < 0, root * (2.0 * root / (far - jnp.minimum(v, 0.0))), 0.5 * v + 0.5 * far)

    def _conjugate(self, y: Array) -> Array:
        return -jnp.sum(self.weight * (1.0 + _log(-y / self.weight)), axis=-1)


def _log(x: Array) -> Array:
    """log, −∞ for x ≤ 0; NaN stays NaN."""
    return jnp.where(x <= 0, -jnp.inf, jnp.log(jnp.where(x <= 0, 1.0, x)))
