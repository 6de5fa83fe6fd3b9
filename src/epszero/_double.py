"""float64 for our own computing, whatever the user's global JAX configuration says.

`in_double` is the one door between the two worlds. Outside a trace it enters `jax.enable_x64`, computes, and hands out
NumPy arrays. Inside a trace (the user's own `jit`, `vmap`, `grad`) it steps aside and computes in the user's precision.
"""

from typing import Any

import equinox as eqx
import jax
import jax.core
import numpy as np


def is_traced(*trees: Any) -> bool:
    """Whether some leaf is a tracer, that is, whether we are called from inside a JAX transformation."""
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(trees))


def to_numpy(tree: Any) -> Any:
    """Every array leaf as a NumPy array; a scalar stays a NumPy scalar."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[()], tree)


def on_device(tree: Any) -> Any:
    """Every NumPy leaf as a JAX array, moved once instead of at each compiled call. To be used inside `enable_x64`."""
    leaves, structure = jax.tree.flatten(tree)
    here = [place for place, leaf in enumerate(leaves) if isinstance(leaf, np.ndarray)]
    for place, array in zip(here, jax.device_put([leaves[place] for place in here]), strict=True):
        leaves[place] = array
    return jax.tree.unflatten(structure, leaves)


@eqx.filter_jit
def _compiled(name: str, node: Any, *args: Any) -> Any:
    return getattr(node, name)(*args)


def in_double(node: Any, name: str, *args: Any) -> Any:
    """Call `node.name(*args)`: compiled, in float64, out comes NumPy. Inside a trace: called as it is."""
    if is_traced(node, args):
        return getattr(node, name)(*args)
    with jax.enable_x64(True), jax.ensure_compile_time_eval():  # concrete, even in the midst of a user's own trace
        return to_numpy(_compiled(name, node, *args))
