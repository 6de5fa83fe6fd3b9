"""g(x) = f(x) + ⟨slope, x⟩.

Prox: that of f at v − step·slope. Conjugate: f*(y − slope). `slope`: a number or a point; leading axes are a batch.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function
from epszero.functions._calculus import inner_function
from epszero.sets.faces import Face


class Tilted(Function):
    """A function plus a linear one."""

    formula = True
    made_of = "function"
    per_entry = ("slope",)
    function: Function
    slope: FloatArray

    @known_arguments
    def __init__(self, function: Function, slope: Real) -> None:
        self.function = inner_function(function, "Tilted")
        self.slope = real_array("slope", slope)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return self.function._value(x) + jnp.sum(self.slope * x, axis=tuple(range(-self.rank, 0)))

    def _prox(self, v: Array, step: Array) -> Array:
        return self.function._prox(v - step * self.slope, step)

    def _conjugate(self, y: Array) -> Array:
        return self.function._conjugate(y - self.slope)

    @property
    def polyhedral(self) -> bool:
        return self.function.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        return self.function.face(x, z - self.slope)
