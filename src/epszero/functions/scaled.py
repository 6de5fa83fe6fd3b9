"""g(x) = factor·f(x) with factor > 0.

Prox: that of f with the step factor·step. Conjugate: factor·f*(y/factor).
One factor per point: its shape is the shape of the batch.
"""

from epszero._checks import known_arguments, positive
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, spread
from epszero.functions._calculus import inner_function, rescaled
from epszero.sets.faces import Face


class Scaled(Function):
    """A positive multiple of a function."""

    formula = True
    made_of = "function"
    per_point = ("factor",)
    function: Function
    factor: FloatArray

    @known_arguments
    def __init__(self, function: Function, factor: Real) -> None:
        self.function = inner_function(function, "Scaled")
        self.factor = positive("factor", factor)
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return self.factor * self.function._value(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return self.function._prox(v, spread(self.factor, self.rank) * step)

    def _conjugate(self, y: Array) -> Array:
        return self.factor * self.function._conjugate(y / spread(self.factor, self.rank))

    @property
    def polyhedral(self) -> bool:
        return self.function.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        return rescaled(self.function.face(x, z / self.factor), 1.0, float(self.factor))
