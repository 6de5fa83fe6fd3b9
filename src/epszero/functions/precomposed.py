"""g(x) = f(factor·x) with factor ≠ 0.

Prox: that of f at factor·v with the step factor²·step, divided by factor. Conjugate: f*(y/factor).
One factor per point: its shape is the shape of the batch.
"""

from epszero._checks import first_index, known_arguments, label, real_array, refuse
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, spread
from epszero.functions._calculus import inner_function, rescaled
from epszero.sets.faces import Face


class Precomposed(Function):
    """A function of a multiple of its argument; factor = −1 mirrors it."""

    formula = True
    made_of = "function"
    per_point = ("factor",)
    function: Function
    factor: FloatArray

    @known_arguments
    def __init__(self, function: Function, factor: Real) -> None:
        self.function = inner_function(function, "Precomposed")
        self.factor = real_array("factor", factor)
        if (self.factor == 0).any():
            where = label(first_index(self.factor == 0))
            refuse(f"factor{where}", "must not be 0, for then the function is constant", "Use Zero() for a constant")
        self._refuse_clash()

    def _value(self, x: Array) -> Array:
        return self.function._value(spread(self.factor, self.rank) * x)

    def _prox(self, v: Array, step: Array) -> Array:
        a = spread(self.factor, self.rank)
        return self.function._prox(a * v, a**2 * step) / a

    def _conjugate(self, y: Array) -> Array:
        return self.function._conjugate(y / spread(self.factor, self.rank))

    @property
    def polyhedral(self) -> bool:
        return self.function.polyhedral

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        factor = float(self.factor)
        return rescaled(self.function.face(factor * x, z / factor), factor, factor)
