"""f(x) = weight·‖x‖₂, not squared. On a batch, each row is one group: the sum over rows is the group lasso.

Prox: the vector shortened by step·weight, or 0, O(n). Conjugate: the indicator of ‖y‖ ≤ weight.
One weight per point: its shape is the shape of the batch.
"""

from epszero._checks import known_arguments, positive
from epszero._shaped import norm
from epszero._types import Array, FloatArray, Real
from epszero.functions._base import Function, indicator, shrinkage, spread


class L2(Function):
    """The Euclidean norm, weighted."""

    formula = True
    per_point = ("weight",)
    weight: FloatArray

    @known_arguments
    def __init__(self, weight: Real = 1.0) -> None:
        self.weight = positive("weight", weight, strict=False)

    def _value(self, x: Array) -> Array:
        return self.weight * norm(x)

    def _prox(self, v: Array, step: Array) -> Array:
        return shrinkage(spread(norm(v)), step * spread(self.weight)) * v

    def _conjugate(self, y: Array) -> Array:
        return indicator(norm(y) - self.weight, self.weight)
