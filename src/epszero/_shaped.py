"""What sets and functions share: points on the last axis (or two), everything before it a batch."""

from collections.abc import Iterator
from typing import Any, ClassVar, Self, cast

import jax.numpy as jnp
import numpy as np

from epszero._checks import real_array, refuse
from epszero._double import is_traced
from epszero._pytree import Node
from epszero._types import Array


class Shaped(Node):
    """An object that acts on points of a fixed or free shape, batch by batch.

    The class says of each parameter whose leading axes may be a batch what one member of the batch has of it. Shapes
    and `member` follow.
    """

    per_entry: ClassVar[tuple[str, ...]] = ()  # parameters shaped like points: the last axis runs over the entries
    per_point: ClassVar[tuple[str, ...]] = ()  # parameters with one number per point: their shape is the batch's
    vectors: ClassVar[tuple[str, ...]] = ()  # parameters with one vector per point, whatever its length
    matrices: ClassVar[tuple[str, ...]] = ()  # parameters with one matrix per point
    made_of: ClassVar[str] = ""  # the attribute with the function, set or tuple of sets that this one is made of
    formula: ClassVar[bool] = False  # what it computes is good to rounding; each class says so for itself, if it is

    @property
    def rank(self) -> int:
        """How many trailing axes make one point."""
        return self._inner[0].rank if self._inner else 1

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        """Shape of one point, or None when the parameters do not fix it (a box given by two numbers)."""
        inner = [part.point_shape or () for part in self._inner]
        own = [getattr(self, name).shape[-self.rank :] for name in self.per_entry]
        return np.broadcast_shapes(*inner, *own) or None

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch that the parameters describe; () for a single set or function."""
        inner = [part.batch_shape for part in self._inner]
        own = [_leading(getattr(self, name), axes) for name, axes in self._own_axes().items()]
        return np.broadcast_shapes(*inner, *own)

    def member(self, index: int | tuple[int, ...]) -> Self:
        """The single set or function at this place of the batch; `member(())` of a single one is itself."""
        name, shape = type(self).__name__, self.batch_shape
        place = index if isinstance(index, tuple) else (index,)
        if not _fits(place, shape):
            refuse(
                "index",
                f"is {index!r}, but {name} is {f'a batch of shape {shape}' if shape else 'not a batch'}",
                "Pass a whole number ≥ 0 for each axis of the batch, below its length" if shape else "Use it as it is",
            )
        return self._member(place)

    @property
    def known_point_shape(self) -> tuple[int, ...]:
        """`point_shape`, refused in a sentence when the parameters do not fix it."""
        if self.point_shape is None:
            refuse(
                "dim",
                f"{type(self).__name__} fits vectors of any length, so this depends on a dimension it does not know",
                "Give dim= at construction",
            )
        return self.point_shape

    @property
    def exact(self) -> bool:
        """Whether all that it computes is good to rounding. A class that does not say so is taken at less."""
        return all(vars(type(part)).get("formula", False) for part in parts_of(self))

    @property
    def foreign(self) -> "tuple[Shaped, ...]":
        """Itself and all that it is made of, as far as the library does not vouch for it."""
        return tuple(part for part in parts_of(self) if not type(part).__module__.startswith("epszero."))

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        """Refuse, in a sentence, a point whose shape does not fit."""
        name, rank = type(self).__name__, self.rank
        if len(shape) < rank:
            refuse(
                argument,
                f"{name} takes {'matrices' if rank > 1 else 'vectors'}, but the shape is {shape}",
                "Pass a matrix" if rank > 1 else "Wrap a scalar as a vector of length 1",
            )
        if self.point_shape is not None and shape[-rank:] != self.point_shape:
            refuse(
                argument,
                f"{name} has points of shape {self.point_shape}, but the last "
                f"{'axes are' if rank > 1 else 'axis is'} {shape[-rank:]}",
                "Make the parameters and the point agree in dimension",
            )
        try:
            np.broadcast_shapes(self.batch_shape, shape[:-rank])
        except ValueError:
            refuse(
                argument,
                f"{name} is a batch of shape {self.batch_shape}, but the point's leading axes are {shape[:-rank]}",
                "Give the point one row per member of the batch",
            )
        for part in self._inner:
            part.check_shape(argument, shape)

    def _checked(self, argument: str, v: Any) -> Any:
        """`v` with its shape checked against the parameters, as float64 unless it is traced."""
        if not is_traced(v):
            v = real_array(argument, v, allow_infinite=True, allow_nan=True)
        self.check_shape(argument, tuple(v.shape))
        return v

    @property
    def _inner(self) -> "tuple[Shaped, ...]":
        inner = getattr(self, self.made_of) if self.made_of else ()
        return inner if isinstance(inner, tuple) else (inner,)

    def _own_axes(self) -> dict[str, int]:
        """For each parameter that may be a batch, how many of its last axes are one member's."""
        kinds = ((self.per_point, 0), (self.per_entry, self.rank), (self.vectors, 1), (self.matrices, 2))
        return {name: axes for names, axes in kinds for name in names}

    def _member(self, place: tuple[int, ...]) -> Self:
        """The member at a place of a batch that this one's broadcasts to. Nothing is validated again."""
        here = _within(place, self.batch_shape)
        if not here:
            return self
        single = self.replaced(**self._attributes_at(here))
        if single.batch_shape:
            name = type(self).__name__
            refuse(name, "does not say which parameters hold its batch", "Name them in per_entry or per_point")
        return single

    def _attributes_at(self, place: tuple[int, ...]) -> dict[str, Any]:
        """What the member at this place of the batch has instead of this one's attributes."""
        axes = self._own_axes()

        def picked(name: str, value: Any) -> Any:
            if isinstance(value, Shaped):
                return value._member(place)
            if isinstance(value, tuple):
                return tuple(picked("", part) for part in cast("tuple[Any, ...]", value))
            return value[(*_within(place, _leading(value, axes[name])), ...)] if name in axes else value

        return {name: picked(name, value) for name, value in vars(self).items()}


def parts_of(value: Any) -> "Iterator[Shaped]":
    """The sets and functions in a value, itself among them, at any depth."""
    if isinstance(value, Shaped):
        yield value
        value = list(vars(value).values())
    if isinstance(value, dict):
        value = list(cast("dict[Any, Any]", value).values())
    if isinstance(value, list | tuple):
        for one in cast("list[Any]", value):
            yield from parts_of(one)


def _leading(array: Any, axes: int) -> tuple[int, ...]:
    """The shape without its last `axes` axes; () for a number that serves all."""
    return array.shape[: max(array.ndim - axes, 0)]


def _within(place: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The place in a batch of this shape that broadcasting brings to `place`."""
    return tuple(min(i, size - 1) for i, size in zip(place[len(place) - len(shape) :], shape, strict=True))


def _fits(place: tuple[Any, ...], shape: tuple[int, ...]) -> bool:
    whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in place)
    return whole and len(place) == len(shape) and all(0 <= i < size for i, size in zip(place, shape, strict=True))


def norm(v: Array, rank: int = 1) -> Array:
    """Euclidean norm over the last `rank` axes, without overflow in the squares."""
    axes = tuple(range(-rank, 0))
    scale = jnp.max(jnp.abs(v), axis=axes, keepdims=True, initial=0.0)
    most = 1e-8 * jnp.finfo(scale.dtype).max  # so that 1/safe is not 0 either
    safe = jnp.where((scale > 0) & jnp.isfinite(scale), jnp.minimum(scale, most), 1.0)
    return jnp.sqrt(jnp.sum((v / safe) ** 2, axis=axes)) * jnp.squeeze(safe, axis=axes)


def dot(u: Array, v: Array, rank: int = 1) -> Array:
    """Inner product over the last `rank` axes, with 0 · ∞ = 0 (the convention of support functions)."""
    return jnp.sum(times(u, v), axis=tuple(range(-rank, 0)))


def times(u: Array, v: Array) -> Array:
    """Entrywise product with 0 · ∞ = 0."""
    zero = (u == 0) | (v == 0)
    return jnp.where(zero, 0.0, jnp.where(zero, 0.0, u) * jnp.where(zero, 0.0, v))


def clipped(v: Array, lower: Array | float, upper: Array | float) -> Array:
    """v between two bounds. On a bound the derivative is 0, an element of the generalized Jacobian even of what several
    such are composed to; that of `jnp.clip` is a half.
    """
    return jnp.where(v <= lower, lower, jnp.where(v >= upper, upper, v))
