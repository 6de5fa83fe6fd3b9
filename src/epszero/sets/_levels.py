"""Between two levels of a linear function: {x : lower ≤ aᵀx ≤ upper}. Half-spaces, slabs and hyperplanes are this.

With u = a/‖a‖, the projection moves v along u until uᵀx is between the levels, O(n); a second pass removes the rounding
that a far v leaves. The support is finite only along ±u (to rounding: √eps of the direction's length).
"""

import jax.numpy as jnp

from epszero._shaped import clipped, norm, times
from epszero._types import Array
from epszero.sets._base import rounding


def _unit(normal: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
    length = norm(normal)
    return normal / length[..., None], lower / length, upper / length


def project(v: Array, normal: Array, lower: Array, upper: Array) -> Array:
    """The nearest x with lower ≤ normalᵀx ≤ upper."""
    u, low, high = _unit(normal, lower, upper)
    for _ in range(2):
        level = jnp.sum(u * v, axis=-1)
        v = v + (clipped(level, low, high) - level)[..., None] * u
    return v


def support(direction: Array, normal: Array, lower: Array, upper: Array) -> Array:
    """sup ⟨direction, x⟩: +∞ unless the direction is a multiple of the normal."""
    u, low, high = _unit(normal, lower, upper)
    along = jnp.sum(u * direction, axis=-1)
    astray = norm(direction - along[..., None] * u) > rounding(direction) * norm(direction)
    value = times(jnp.maximum(along, 0.0), high) - times(jnp.maximum(-along, 0.0), low)
    return jnp.where(astray, jnp.inf, value)


def diameter(normal: Array, lower: Array, upper: Array) -> Array:
    """The width on a line, ∞ in higher dimension. Exact."""
    _, low, high = _unit(normal, lower, upper)
    return high - low if normal.shape[-1] == 1 else jnp.full_like(high - low, jnp.inf)
