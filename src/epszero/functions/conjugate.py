"""g(y) = f*(y) = sup_x ⟨x, y⟩ − f(x), the Fenchel conjugate.

Prox: by Moreau, v − step·(prox of f at v/step with the step 1/step). Conjugate: f itself, which is closed and convex.
"""

from epszero._checks import known_arguments
from epszero._types import Array
from epszero.functions._base import Function
from epszero.functions._calculus import inner_function


class Conjugate(Function):
    """The conjugate of a function, as a function."""

    formula = True
    made_of = "function"
    function: Function

    @known_arguments
    def __init__(self, function: Function) -> None:
        self.function = inner_function(function, "Conjugate")

    def _value(self, x: Array) -> Array:
        return self.function._conjugate(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return v - step * self.function._prox(v / step, 1.0 / step)

    def _conjugate(self, y: Array) -> Array:
        return self.function._value(y)
