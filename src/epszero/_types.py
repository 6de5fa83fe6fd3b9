"""Names for the kinds of values that travel through the library."""

from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
"""What users receive: NumPy, float64."""

Array = jax.Array | NDArray[Any]
"""What travels inside a computation: a traced array, or a parameter that is still NumPy."""

Real = ArrayLike
"""What users may pass for a number or an array of numbers."""

PyTree = Any
"""Arrays nested in lists, tuples and dictionaries, in any way."""


@runtime_checkable
class Support(Protocol):
    """What `Samples` needs from a set that holds every possible sample."""

    def contains(self, v: PyTree, tol: float = ..., /) -> Any: ...
