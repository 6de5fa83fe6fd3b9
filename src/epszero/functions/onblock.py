"""g(x) = f(x[block]): a function of some entries of a vector, 0 on the rest.

Prox: that of f on the block, the identity on the rest. Conjugate: f*(y[block]) where y is 0 on the rest.
`block` is a slice, or a list of distinct indices in the order in which f takes them.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._types import Array
from epszero.functions._base import Function, indicator, nan_in
from epszero.functions._calculus import inner_function
from epszero.functions._indices import check_reach, distinct_indices


class OnBlock(Function):
    """A function of vectors, applied to a part of a longer vector."""

    formula = True
    static = ("bounds", "reach")
    function: Function
    bounds: tuple[Any, Any, Any] | None  # start, stop, step when the block is a slice
    indices: "np.ndarray[Any, np.dtype[np.int32]] | None"  # when it is a list
    reach: int  # the largest index in the list, plus 1

    @known_arguments
    def __init__(self, function: Function, block: slice | Sequence[int]) -> None:
        self.function = inner_function(function, "OnBlock")
        if self.function.rank != 1:
            refuse("function", "must be a function of vectors, but it is one of matrices", "Use a SeparableSum")
        if isinstance(block, slice):
            self.bounds, self.indices, self.reach = _checked_slice(block), None, 0
            return
        indices = distinct_indices("block", block)
        self.bounds, self.indices, self.reach = None, np.array(indices, dtype=np.int32), max(indices) + 1

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self.function.batch_shape

    def check_shape(self, argument: str, shape: tuple[int, ...]) -> None:
        super().check_shape(argument, shape)
        check_reach(argument, "block", self.reach, shape[-1])
        length = self.indices.size if self.indices is not None else len(range(*self._block().indices(shape[-1])))
        if length == 0:
            refuse(argument, f"has {shape[-1]} entries, none of which lies in the block", "Pass a longer vector")
        self.function.check_shape(f"{argument}[block]", (*shape[:-1], length))

    def _value(self, x: Array) -> Array:
        return self.function._value(x[..., self._block()]) + nan_in(x)

    def _prox(self, v: Array, step: Array) -> Array:
        block = self._block()
        return jnp.asarray(v).at[..., block].set(self.function._prox(v[..., block], step))

    def _conjugate(self, y: Array) -> Array:
        block = self._block()
        rest = jnp.asarray(indicator(jnp.abs(y))).at[..., block].set(0.0)
        return self.function._conjugate(y[..., block]) + jnp.sum(rest, axis=-1)

    def _block(self) -> Any:
        return slice(*self.bounds) if self.bounds is not None else self.indices


def _checked_slice(block: slice) -> tuple[Any, Any, Any]:
    try:
        block.indices(1)
    except (TypeError, ValueError) as error:
        refuse("block", f"is not a slice of entries ({error})", "Write it as slice(2, 5)")
    return block.start, block.stop, block.step
