"""What sets and functions share: points on the last axis (or two), everything before it a batch."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import refuse
from epszero._double import is_traced
from epszero._pytree import Node
from epszero._types import Array


class Shaped(Node):
    """An object that acts on points of a fixed or free shape, batch by batch."""

    @property
    def rank(self) -> int:
        """How many trailing axes make one point."""
        return 1

    @property
    def point_shape(self) -> tuple[int, ...] | None:
        """Shape of one point, or None when the parameters do not fix it (a box given by two numbers)."""
        return None

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the batch that the parameters describe; () for a single set or function."""
        return ()

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

    def _checked(self, argument: str, v: Any) -> Any:
        """`v` with its shape checked against the parameters, as float64 unless it is traced."""
        if not is_traced(v):
            v = np.asarray(v, dtype=np.float64)
        self.check_shape(argument, tuple(v.shape))
        return v


def norm(v: Array, rank: int = 1) -> Array:
    """Euclidean norm over the last `rank` axes, without overflow in the squares."""
    axes = tuple(range(-rank, 0))
    scale = jnp.max(jnp.abs(v), axis=axes, keepdims=True, initial=0.0)
    safe = jnp.where((scale > 0) & jnp.isfinite(scale), scale, 1.0)
    return jnp.sqrt(jnp.sum((v / safe) ** 2, axis=axes)) * jnp.squeeze(safe, axis=axes)


def dot(u: Array, v: Array, rank: int = 1) -> Array:
    """Inner product over the last `rank` axes, with 0 · ∞ = 0 (the convention of support functions)."""
    return jnp.sum(times(u, v), axis=tuple(range(-rank, 0)))


def times(u: Array, v: Array) -> Array:
    """Entrywise product with 0 · ∞ = 0."""
    zero = (u == 0) | (v == 0)
    return jnp.where(zero, 0.0, jnp.where(zero, 0.0, u) * jnp.where(zero, 0.0, v))
