"""g(x) = f(x − by).

Prox: by + prox of f at v − by. Conjugate: f*(y) + ⟨by, y⟩. `by`: a number or a point; leading axes are a batch.
"""

import jax.numpy as jnp

from epszero._checks import known_arguments, real_array
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function
from epszero.functions._calculus import inner_function
from epszero.sets.faces import Face


class Translated(Function):
    """A function moved by a vector."""

    formula = True
    made_of = "function"
    per_entry = ("by",)
    function: Function
    by: FloatArray

    @known_arguments
    def __init__(self, function: Function, by: Real) -> None:
        self.function = inner_function(function, "Translated")
        self.by = real_array("by", by)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return self.function._value(x - self.by)

    def _prox(self, v: Array, step: Array) -> Array:
        return self.by + self.function._prox(v - self.by, step)

    def _conjugate(self, y: Array) -> Array:
        return self.function._conjugate(y) + jnp.sum(self.by * y, axis=tuple(range(-self.rank, 0)))

    @property
    def polyhedral(self) -> bool:
        return self.function.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        return self.function.face(x - self.by, z)
