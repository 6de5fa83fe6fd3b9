"""f(x) = weight·max_i x_i.

Prox: by Moreau, v minus its projection on a simplex of size step·weight, that is min(v, τ) with Σ max(v_i − τ, 0) =
step·weight, so τ = max_k (v₍₁₎ + … + v₍ₖ₎ − step·weight)/k over v sorted downwards; O(n log n).
Its derivative takes the mean over the entries above τ, where entries are equal, too.
Conjugate: the indicator of y ≥ 0, Σ y_i = weight. One weight per point: its shape is the shape of the batch.
Source: Held, Wolfe & Crowder, "Validation of subgradient optimization", Math. Prog. 6 (1974).
"""

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, spread
from epszero.sets.faces import Face


class MaxEntry(Function):
    """The largest entry, weighted."""

    formula = True
    per_point = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    def _value(self, x: Array) -> Array:
        return self.weight * jnp.max(x, axis=-1)

    def _prox(self, v: Array, step: Array) -> Array:
        return _capped(v, step * spread(self.weight))

    def _conjugate(self, y: Array) -> Array:
        excess = jnp.maximum(jnp.max(-y, axis=-1), jnp.abs(jnp.sum(y, axis=-1) - self.weight))
        return indicator(excess, self.weight)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        """The entries that are the largest stay together while their z is positive, and the others stay below."""
        eye, top = np.eye(len(x)), x == x.max()
        first = eye[int(np.argmax(x))]
        together, below = np.flatnonzero(top)[1:], np.flatnonzero(~top)
        duals = eye[top] if len(together) else np.zeros((0, len(x)))
        values = z[top] if len(together) else np.zeros(0)
        normals, missed = eye[together] - first, np.zeros(len(together))
        return Face(normals, missed, eye[below] - first, x.max() - x[below], duals, values, active=top.tobytes())


@jax.custom_jvp
def _capped(v: Array, size: Array) -> Array:
    """min(v, τ) with Σ max(v − τ, 0) = size."""
    top = jnp.max(v, axis=-1, keepdims=True)
    below = -jnp.sort(top - v, axis=-1)  # downwards from 0: no digits lost where |v| is huge
    k = jnp.arange(1, v.shape[-1] + 1)
    drop = jnp.max((jnp.cumsum(below, axis=-1) - size) / k, axis=-1, keepdims=True)
    return jnp.minimum(v, top + drop)


@_capped.defjvp
def _along(at: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    x, (moved, grown) = _capped(*at), tangents
    above = at[0] > x
    many = jnp.maximum(jnp.sum(above, axis=-1, keepdims=True), 1)
    level = (jnp.sum(jnp.where(above, moved, 0.0), axis=-1, keepdims=True) - grown) / many
    return x, jnp.where(above, level, moved)
