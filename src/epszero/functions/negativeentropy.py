"""f(x) = weight·Σ x_i·log x_i on x ≥ 0 (0·log 0 = 0), ∞ elsewhere.

Prox: x + t·log x = v − t with t = step·weight, so x = t·ω(v/t − 1 − log t), where ω(c) + log ω(c) = c is the Wright
function, ω(c) = W(exp(c)) for Lambert's W, computed without the exponential that would overflow; O(n).
Conjugate: weight·Σ exp(y_i/weight − 1). Weight: a number > 0 or one per entry; leading axes are a batch.
Source: Lawrence, Corless & Jeffrey, "Algorithm 917: complex double-precision evaluation of the Wright ω function",
ACM TOMS 38 (2012), whose fourth-order iteration (Fritsch, Shafer & Crowley) is used.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator

PASSES = 3  # from a start within a factor of 2, the fourth-order iteration is at rounding after two


class NegativeEntropy(Function):
    """Boltzmann and Shannon's entropy with its sign turned, weighted."""

    formula = True
    per_entry = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight)

    def _value(self, x: Array) -> Array:
        inside = x > 0
        terms = jnp.where(inside, self.weight * x * jnp.log(jnp.where(inside, x, 1.0)), 0.0)
        return jnp.sum(terms, axis=-1) + indicator(jnp.max(-x, axis=-1), jnp.max(jnp.abs(x), axis=-1))

    def _prox(self, v: Array, step: Array) -> Array:
        precision = jnp.finfo(v.dtype)
        t = jnp.maximum(step * self.weight, precision.tiny)
        far = v / t > precision.eps**-2  # here x = v to rounding, and v/t may overflow
        return jnp.where(far, v, t * _wright_omega(jnp.where(far, 0.0, v) / t - 1.0 - jnp.log(t)))

    def _conjugate(self, y: Array) -> Array:
        return jnp.sum(self.weight * jnp.exp(y / self.weight - 1.0), axis=-1)


def _wright_omega(c: Array) -> Array:
    """ω > 0 with ω + log ω = c."""
    tail = c < -40.0  # here ω = exp(c) to rounding
    near = jnp.where(tail, 0.0, c)
    large = jnp.maximum(near, 1.0)
    w = jnp.where(near > 1.0, large - jnp.log(large), 1.0 / (1.0 + jnp.exp(-jnp.minimum(near, 1.0))))
    for _ in range(PASSES):
        r = near - w - jnp.log(w)
        s = (1.0 + w) * (1.0 + w + 2.0 / 3.0 * r)
        w = w * (1.0 + r / (1.0 + w) * (s - 0.5 * r) / (s - r))
    return jnp.where(tail, jnp.exp(c), w)
