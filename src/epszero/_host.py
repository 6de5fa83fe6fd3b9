"""Calling NumPy code from inside a compiled computation, without losing digits.

JAX runs a callback on a thread of its own, where the user's global precision is in force: under the default
configuration a float64 array would be cut to float32 on its way in and refused on its way out. So float64 travels as
pairs of 32-bit words, which no configuration touches.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._types import Array


def on_host(function: Callable[[Any], Any], shape: tuple[int, ...], v: Array) -> Array:
    """`function` applied to the rows of v (…, n), NumPy to NumPy; `shape` is the answer's, batch axes included."""
    batch = v.ndim - 1
    double = v.dtype == jnp.float64

    def rows(given: Any) -> Any:
        words = np.ascontiguousarray(given)
        point = words.view(np.float64)[..., 0] if double else words
        answer = np.asarray(function(point.reshape(-1, point.shape[-1]).astype(np.float64)), dtype=np.float64)
        answer = answer.reshape(point.shape[:-1] + shape[batch:])
        return np.ascontiguousarray(answer[..., None]).view(np.uint32) if double else answer.astype(given.dtype)

    sent = jax.lax.bitcast_convert_type(v, jnp.uint32) if double else v
    returned = jax.ShapeDtypeStruct((*shape, 2), jnp.uint32) if double else jax.ShapeDtypeStruct(shape, v.dtype)
    answer = jax.pure_callback(rows, returned, sent, vmap_method="broadcast_all")
    return jax.lax.bitcast_convert_type(answer, jnp.float64) if double else answer
