"""f(x) = 0: nothing known, nothing asked.

Prox: the identity. Conjugate: the indicator of y = 0.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments
from epszero._types import Array, FloatArray
from epszero.functions._base import Function, indicator, nan_in
from epszero.sets.faces import Face, free_face


class Zero(Function):
    """The zero function."""

    formula = True

    @known_arguments
    def __init__(self) -> None:
        pass

    def _value(self, x: Array) -> Array:
        return nan_in(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return v

    def _conjugate(self, y: Array) -> Array:
        return jnp.sum(indicator(jnp.abs(y)), axis=-1)

    def _face(self, x: FloatArray, z: FloatArray) -> Face:
        return free_face(len(x), -z)
