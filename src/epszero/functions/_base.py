"""`Function`: a proper closed convex function, and the other way to give A (its subdifferential).

A point is a vector on the last axis (a matrix on the last two where `rank` is 2); everything before is a batch, with
one value per entry. `step` is a number, or an array that broadcasts against the batch (one step per agent).

A new function writes three formulas, each in jax.numpy, without Python branches on values: `_value`, `_prox` and
`_conjugate`. The third makes Fenchel–Young, f(x) + f*(z) = ⟨x, z⟩, an exact test of z ∈ ∂f(x), which is how the
contract suite checks every prox and how a solution's z is checked.
"""

from abc import abstractmethod
from typing import Any

from epszero._checks import positive
from epszero._double import in_double, is_traced
from epszero._shaped import Shaped
from epszero._types import Array

DOMAIN_TOLERANCE = 1e-9
"""A point this close to the domain, relative to its size, counts as inside: rounding must not turn values into ∞."""


class Function(Shaped):
    """A proper closed convex function R^n → (−∞, ∞]."""

    # -- what users call ----------------------------------------------------------------------------------------------

    def __call__(self, x: Any) -> Any:
        """f(x), +∞ outside the domain; one value per batch entry."""
        return in_double(self, "_value", self._checked("x", x))

    def prox(self, v: Any, step: Any = 1.0) -> Any:
        """argmin_x f(x) + ‖x − v‖²/(2·step)."""
        v = self._checked("v", v)
        step = step if is_traced(step) else positive("step", step)
        return in_double(self, "_prox", v, step[(..., *(None,) * self.rank)])

    def conjugate(self, y: Any) -> Any:
        """f*(y) = sup_x ⟨x, y⟩ − f(x)."""
        return in_double(self, "_conjugate", self._checked("y", y))

    # -- what a function writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def _value(self, x: Array) -> Array: ...

    @abstractmethod
    def _prox(self, v: Array, step: Array) -> Array:
        """`step` comes with `rank` trailing axes of length 1, ready to multiply a point."""

    @abstractmethod
    def _conjugate(self, y: Array) -> Array: ...
