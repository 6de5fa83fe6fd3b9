"""`Node`: an immutable object that JAX may look into.

A JAX transformation needs to see the arrays inside a set or a function as inputs, not as constants, so that one
compiled program serves every set of the same kind. Equinox modules do this too, but `jax.jit(module.method)` fails on
them when a leaf is an array; a user must be able to write `jax.jit(box.project)`, hence this small base.
"""

from typing import Any, ClassVar, cast

import jax
import numpy as np


class Node:
    """Attributes are set once, in `__init__`; those named in `static` are metadata, all others are children."""

    static: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_pytree_with_keys(cls, _flatten, lambda aux, leaves: _unflatten(cls, aux, leaves))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is immutable: build a new one instead of setting {name!r}.")
        if isinstance(value, np.ndarray):
            value = _frozen(cast("np.ndarray[Any, Any]", value))
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={_brief(value)}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"


def _flatten(node: Node) -> tuple[list[tuple[Any, Any]], tuple[tuple[str, ...], tuple[Any, ...]]]:
    names = tuple(name for name in vars(node) if name not in node.static)
    children = [(jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in names]
    return children, (names, tuple((name, getattr(node, name, None)) for name in node.static))


def _unflatten(cls: type[Node], aux: tuple[tuple[str, ...], tuple[Any, ...]], leaves: Any) -> Node:
    node = object.__new__(cls)
    names, metadata = aux
    node.__dict__.update(zip(names, leaves, strict=True))
    node.__dict__.update(metadata)
    return node


def _frozen(array: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array{value.shape}"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    return repr(value)
