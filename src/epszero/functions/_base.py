"""`Function`: a proper closed convex function, and the other way to give A (its subdifferential).

A point is a vector on the last axis (a matrix on the last two where `rank` is 2); everything before is a batch, with
one value per entry. `step` is a number, or an array that broadcasts against the batch (one step per agent).

A new function names its parameters in `per_entry` or `per_point`, from which its shapes follow, and writes three
formulas, each in jax.numpy, without Python branches on values: `_value`, `_prox` and `_conjugate`. The third makes
Fenchel–Young, f(x) + f*(z) = ⟨x, z⟩, an exact test of z ∈ ∂f(x), which is how the contract suite checks every prox and
how a solution's z is checked.
"""

from abc import abstractmethod
from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import positive, refuse
from epszero._double import in_double, is_traced
from epszero._shaped import Shaped
from epszero._types import Array, FloatArray, PyTree
from epszero.sets.faces import Face

DOMAIN_TOLERANCE = 1e-9
"""A point this close to the domain, relative to its size, counts as inside: rounding must not turn values into ∞."""


class Function(Shaped):
    """A proper closed convex function R^n → (−∞, ∞]."""

    # -- what users call ----------------------------------------------------------------------------------------------

    def __call__(self, x: PyTree) -> Any:
        """f(x), +∞ outside the domain; one value per batch entry."""
        return in_double(self, "_value", self._checked("x", x))

    def prox(self, v: PyTree, step: PyTree = 1.0) -> Any:
        """argmin_x f(x) + ‖x − v‖²/(2·step)."""
        return in_double(self, "_prox", *self.prox_arguments(v, step))

    def prox_by_entry(self, v: Array, step: Array) -> Array:
        """`prox` with a step for each entry, inside a computation, of a function that is a sum over entries."""
        return self._prox(v, step)

    def conjugate(self, y: PyTree) -> Any:
        """f*(y) = sup_x ⟨x, y⟩ − f(x)."""
        return in_double(self, "_conjugate", self._checked("y", y))

    def face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """Of a single function: the piece of ∂f that x and z lie on (sets/faces.py); None where it has none."""
        return self._face(np.asarray(x, dtype=np.float64), np.asarray(z, dtype=np.float64))

    @property
    def polyhedral(self) -> bool:
        """Whether `face` has something to say: known before any point is looked at."""
        return type(self)._face is not Function._face

    # -- shapes -------------------------------------------------------------------------------------------------------

    def prox_arguments(self, v: PyTree, step: PyTree, at: str = "") -> tuple[Any, Any]:
        """v and step as `_prox` wants them, refused in a sentence that says `at` which part of a pytree they stand."""
        v = self._checked(f"v{at}", v)
        step = step if is_traced(step) else positive(f"step{at}", step)
        rows, point = v.shape[: -self.rank], v.shape[-self.rank :]
        try:
            batch = np.broadcast_shapes(rows, self.batch_shape, step.shape)
        except ValueError:
            refuse(
                f"step{at}",
                f"has shape {step.shape}, but the batch has shape {np.broadcast_shapes(rows, self.batch_shape)}",
                "Pass a number, or one step per member of the batch",
            )
        v = (jnp if is_traced(v) else np).broadcast_to(v, batch + point)
        return v, spread(step, self.rank)

    def _refuse_clash(self) -> None:
        """For constructors with several parameters: refuse those whose shapes do not fit together."""
        fits = all(not 0 < getattr(self, name).ndim < self.rank for name in self.per_entry)
        try:
            point, _ = self.point_shape, self.batch_shape
            fits = fits and all(part.point_shape in (None, point) for part in self._inner)
        except ValueError:
            fits = False
        if fits:
            return
        names = self.per_entry + self.per_point
        shapes = " and ".join(f"{name} has shape {getattr(self, name).shape}" for name in names)
        for part in self._inner:
            point, batch = part.point_shape, part.batch_shape
            known = f"points of shape {point}" if point else ("vectors" if self.rank == 1 else "matrices")
            shapes += f", {type(part).__name__} takes {known}" + (f" in a batch of shape {batch}" * bool(batch))
        refuse(
            ", ".join(names),
            f"the shapes do not fit together: {shapes}",
            "Pass numbers, or arrays whose last axes make a point and whose leading axes make a batch",
        )

    # -- what a function writes ---------------------------------------------------------------------------------------

    @abstractmethod
    def _value(self, x: Array) -> Array: ...

    @abstractmethod
    def _prox(self, v: Array, step: Array) -> Array:
        """`step` comes with `rank` trailing axes of length 1, and v as large as the whole batch."""

    @abstractmethod
    def _conjugate(self, y: Array) -> Array: ...

    def _face(self, x: FloatArray, z: FloatArray) -> Face | None:
        del x, z
        return None


def spread(number: Array, rank: int = 1) -> Array:
    """One number per point, ready to multiply points: with `rank` trailing axes of length 1."""
    return number[(..., *(None,) * rank)]


def indicator(excess: Array, size: Array | float = 0.0) -> Array:
    """0 where excess ≤ 0 up to rounding at this size, ∞ elsewhere; NaN stays NaN."""
    inside = (excess <= DOMAIN_TOLERANCE * jnp.maximum(1.0, size)) & (excess < jnp.inf)
    return jnp.where(jnp.isnan(excess), jnp.nan, jnp.where(inside, 0.0, jnp.inf))


def nan_in(x: Array, rank: int = 1) -> Array:
    """0 for each point without NaN, else NaN: for functions that do not look at every entry."""
    return jnp.where(jnp.any(jnp.isnan(x), axis=tuple(range(-rank, 0))), jnp.nan, 0.0)


def soft(v: Array, threshold: Array) -> Array:
    """v moved towards 0 by `threshold` and no further, entry by entry."""
    return jnp.sign(v) * jnp.maximum(jnp.abs(v) - threshold, 0.0)


def shrinkage(length: Array, threshold: Array) -> Array:
    """The factor in [0, 1] that takes a vector of this length to one shorter by `threshold`, or to 0."""
    return jnp.where(length <= threshold, 0.0, 1.0 - threshold / jnp.where(length == 0, 1.0, length))


def square_over(y: Array, weight: Array) -> Array:
    """y²/(2·weight), the conjugate of weight/2·x²; where the weight is 0, the indicator of y = 0."""
    return jnp.where(weight > 0, 0.5 * y * (y / jnp.where(weight > 0, weight, 1.0)), indicator(jnp.abs(y)))
