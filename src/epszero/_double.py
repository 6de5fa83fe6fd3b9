"""float64 for our own computing, whatever the user's global JAX configuration says.

`in_double` is the one door between the two worlds. Outside a trace it enters `jax.enable_x64`, computes, and hands out
NumPy arrays. Inside a trace (the user's own `jit`, `vmap`, `grad`) it steps aside and computes in the user's precision.

The two worlds must not hear of each other. JAX keeps the precision in the keys of its memories, but for one (seen in
0.10): the constant that a NumPy array of the user becomes in a traced program is remembered by the array alone, as long
as some program holds it. So a `float64` array that a 32-bit program has used would come to us rounded, and one that we
have used would come to a 32-bit program as `float64`. Where JAX is so, `apart` gives that memory two drawers.
"""

import contextlib
import functools
from collections.abc import Callable, Generator
from enum import Enum
from typing import Any

import jax
import jax.core
import numpy as np
from jaxlib.version import __version__ as jaxlib_version


class Leaf(Enum):
    """What stands for an array among what is fixed."""

    ARRAY = 0


ARRAY = Leaf.ARRAY
WRONG = ("0.10.2",)  # versions of jaxlib; tests/test_precision.py has the program that they compute wrongly


@contextlib.contextmanager
def double() -> Generator[None]:
    """float64 for JAX; what is beyond it becomes inf or NaN without a word, and is asked for where numbers leave."""
    with jax.enable_x64(True), np.errstate(all="ignore"):
        yield


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


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _compiled(name: str, structure: Any, fixed: tuple[Any, ...], arrays: list[Any]) -> Any:
    """`node.name(*args)` for a node and arguments in pieces: their arrays, and what is fixed (`ARRAY` for an array)."""
    given = iter(arrays)
    node, args = structure.unflatten([next(given) if leaf is ARRAY else leaf for leaf in fixed])
    return getattr(node, name)(*args)


def in_double(node: Any, name: str, *args: Any) -> Any:
    """Call `node.name(*args)`: compiled, in float64, out comes NumPy. Inside a trace: called as it is."""
    if is_traced(node, args):
        return getattr(node, name)(*args)
    with jax.enable_x64(True), jax.ensure_compile_time_eval():  # concrete, even in the midst of a user's own trace
        leaves, structure = jax.tree.flatten((node, args))
        arrays = [leaf for leaf in leaves if isinstance(leaf, np.ndarray | np.generic | jax.Array)]
        fixed = tuple(ARRAY if isinstance(leaf, np.ndarray | np.generic | jax.Array) else leaf for leaf in leaves)
        return to_numpy(_compiled(name, structure, fixed, arrays))


def mixes() -> bool:
    """Whether a NumPy array that a 32-bit program holds comes rounded to a program in float64. Nothing is compiled."""
    array = np.zeros(1)
    with jax.enable_x64(False):
        narrow = jax.make_jaxpr(lambda: jax.lax.neg(array))()
    with jax.enable_x64(True):
        wide = jax.make_jaxpr(lambda: jax.lax.neg(array))()
    return narrow.out_avals[0].dtype == wide.out_avals[0].dtype


def apart() -> None:
    """Let JAX remember the constant that a NumPy array becomes by its precision too, as it does everything else."""
    try:
        from jax._src import dtypes, literals  # noqa: PLC0415  (of no use where JAX has mended it)
        from jax._src.lib import weakref_lru_cache  # noqa: PLC0415  # pyright: ignore[reportPrivateImportUsage]

        constant, precision = literals.TypedNdArray, dtypes.canonicalize_dtype
        handlers, memory = dtypes.canonicalize_value_handlers, weakref_lru_cache.weak_key_weak_value_cache
    except (ImportError, AttributeError) as missing:
        raise ImportError(
            f"JAX {jax.__version__} mixes up the precisions of NumPy arrays, in a way that epszero cannot mend: "
            "install jax 0.10.1"
        ) from missing
    whole: Callable[[Any], Any] = memory(lambda array: constant(np.asarray(array)))
    rounded: Callable[[Any], Any] = memory(lambda array: constant(np.asarray(array, precision(array.dtype))))
    handlers[np.ndarray] = lambda array: (whole if precision(array.dtype) == array.dtype else rounded)(array)


if jaxlib_version in WRONG:
    raise ImportError(
        f"jaxlib {jaxlib_version} computes wrong numbers on CPUs, silently: sums of products over samples come out "
        'wrong where it fuses them. Install another version: pip install "jax==0.10.1" "jaxlib==0.10.1".'
    )
if mixes():
    apart()
