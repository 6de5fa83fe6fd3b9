"""A user's function, traced for points and samples of given shapes: its numbers are inputs of compiled programs.

Functions with one skeleton (_trace/recorded.py) are one kind of pytree, with their numbers as leaves. So a problem that
is built anew with other numbers runs the programs that were compiled before, and is itself forgotten as soon as nobody
holds it. A function whose operations cannot be compared stays what it is, compared by identity.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

import jax
import jax.numpy as jnp
import numpy as np

from epszero._memory import remembered
from epszero._points import shapes
from epszero._pytree import Node
from epszero._trace.recorded import Recorded, recorded, run
from epszero._types import PyTree
from epszero.oracles._base import Opaque


class Code:
    """A program without its numbers: one object for each, so that it is compared by identity."""

    def __init__(self, program: Recorded) -> None:
        nothing = np.zeros(0)
        self.program = program._replace(skeleton=None, scalars=nothing, arrays=())

    def __repr__(self) -> str:
        return f"<{len(self.program.steps)} operations>"


_codes: "WeakValueDictionary[Any, Code]" = WeakValueDictionary()


def code_of(program: Recorded, *fixed: Any) -> Code:
    """The one object for this skeleton and whatever else is fixed."""
    key = program.skeleton, fixed
    code = _codes.get(key)
    if code is None:
        code = _codes[key] = Code(program)
    return code


class Traced(Node):
    """What a function computes, for arguments of the shapes that it was traced with."""

    static = ("code",)
    code: Code
    scalars: Any
    arrays: tuple[Any, ...]

    def __call__(self, *arguments: PyTree) -> PyTree:
        program, leaves = self.code.program, jax.tree.leaves(arguments)
        if tuple(map(np.shape, leaves)) != program.shapes:
            raise TypeError(f"a function of arguments shaped {program.shapes} is called with others: {shapes(leaves)}")
        with jax.enable_x64(True):  # in which it was recorded
            ends = run(program, _Given(self, leaves))
            return jax.tree.unflatten(jax.tree.structure(program.returned), [jnp.asarray(end) for end in ends])

    def __repr__(self) -> str:
        return repr(self.code)


class _Given:
    """The reader of a program with all its arguments."""

    def __init__(self, function: Traced, leaves: list[Any]) -> None:
        self.function, self.leaves, self.program = function, leaves, function.code.program

    def input(self, place: int) -> Any:
        return self.leaves[self.program.slots[place]]

    def inputs(self, places: Sequence[int]) -> Any:
        return jnp.stack([self.input(place) for place in places])

    def scalar(self, place: int) -> Any:
        return self.function.scalars[place]

    def scalars(self, places: Sequence[int]) -> Any:
        return self.function.scalars[np.array(places)]

    def array(self, place: int) -> Any:
        return self.function.arrays[place]

    def start(self, place: int) -> Any:
        return self.program.starts[place]


def unpacked(vector: Any) -> list[Any]:
    """The entries of a vector."""
    return list(vector) if isinstance(vector, np.ndarray) else list(jnp.unstack(vector)) if len(vector) else []


def recording(function: Opaque, *examples: PyTree) -> Recorded | None:
    """What is written down of a function, once for arguments of these shapes."""
    with jax.enable_x64(True):
        leaves, structure = jax.tree.flatten(examples)
        like = [
            jax.ShapeDtypeStruct(np.shape(leaf), leaf.dtype if hasattr(leaf, "dtype") else jnp.result_type(leaf))
            for leaf in leaves
        ]
        key = "recorded", structure, tuple((one.shape, one.dtype) for one in like)
        return remembered(function, key, lambda: recorded(function.function, *jax.tree.unflatten(structure, like)))


def returned(function: Any, *examples: PyTree) -> PyTree:
    """The shapes of what a function returns."""
    program = recording(function, *examples) if isinstance(function, Opaque) else None
    return jax.eval_shape(function, *examples) if program is None else program.returned


def traced(function: Any, *examples: PyTree) -> Any:
    """A function as a pytree of its numbers; as it is where that cannot be, or where it is one already."""
    if not isinstance(function, Opaque):
        return function
    program = recording(function, *examples)
    if program is None:
        return function
    code = code_of(program, program.starts, program.slots)
    return Traced.holding(code=code, scalars=program.scalars, arrays=program.arrays)
