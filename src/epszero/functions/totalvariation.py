"""f(x) = weight·Σ_i |x_{i+1} − x_i|, total variation along the entries.

Prox: exact, by Johnson's dynamic program (functions/_fused.py), O(n) per vector.
Conjugate: the indicator of |y₁ + … + y_k| ≤ weight for all k < n, and = 0 for k = n.
One weight per point: its shape is the shape of the batch.
Source: Johnson, "A dynamic programming algorithm for the fused lasso and L0-segmentation", JCGS 22 (2013).
"""

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, nan_in
from epszero.functions._fused import fused
from epszero.sets.faces import Face


class TotalVariation1D(Function):
    """Total variation of a sequence, weighted."""

    formula = True
    per_point = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    def _value(self, x: Array) -> Array:
        return self.weight * jnp.sum(jnp.abs(jnp.diff(x, axis=-1)), axis=-1) + nan_in(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return jnp.vectorize(fused, signature="(n),()->(n)")(v, step[..., 0] * self.weight)

    def _conjugate(self, y: Array) -> Array:
        sums = jnp.cumsum(y, axis=-1)
        inner = jnp.max(jnp.abs(sums[..., :-1]), axis=-1, initial=0.0) - self.weight
        return indicator(jnp.maximum(inner, jnp.abs(sums[..., -1])), self.weight)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        """Neighbours that are equal stay so while |z₁ + … + z_i| < weight; others keep the sign of their difference."""
        n, weight = len(x), float(self.weight)
        steps, sums = np.diff(np.eye(n), axis=0), np.tril(np.ones((n, n)))[:-1]
        change = np.diff(x)
        flat = (change == 0) & (weight > 0)
        off = (change != 0) & (weight > 0)
        duals = np.vstack([-sums[flat], sums[flat]])
        values = weight + duals @ z
        rows, slacks = -np.sign(change)[off, None] * steps[off], np.abs(change[off])
        active = np.concatenate([flat, change > 0]).tobytes()
        return Face(steps[flat], np.zeros(int(flat.sum())), rows, slacks, duals, values, active=active)
