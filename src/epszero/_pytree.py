"""`Node`: an immutable object that JAX may look into.

A JAX transformation needs to see the arrays inside a set or a function as inputs, not as constants, so that one
compiled program serves every set of the same kind. Equinox modules do this too, but `jax.jit(module.method)` fails on
them when a leaf is an array; a user must be able to write `jax.jit(box.project)`, hence this small base.
"""

from typing import Any, ClassVar, Self, cast

import jax
import numpy as np


class Node:
    """Attributes are set once; those named in `static` are metadata, all others are children. Those with a leading
    underscore are not printed."""

    static: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        jax.tree_util.register_pytree_with_keys(cls, _flatten, lambda aux, leaves: _unflatten(cls, aux, leaves))

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self.__dict__:
            raise AttributeError(f"{type(self).__name__} is immutable: build a new one instead of setting {name!r}.")
        object.__setattr__(self, name, _held(value))

    @classmethod
    def holding(cls, /, **attributes: Any) -> Self:
        """A node with these attributes as they are: for what was checked before, so that nothing is checked again."""
        node = cls.__new__(cls)
        node.__dict__.update(attributes)
        return node

    def replaced(self, /, **changes: Any) -> Self:
        """A copy with some attributes changed."""
        return self.holding(**(vars(self) | {name: _held(value) for name, value in changes.items()}))

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: arrays of JAX as NumPy's, marked, since JAX would bring them back in its own precision."""
        return {name: _off_device(value) for name, value in vars(self).items()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({name: _back(value) for name, value in state.items()})

    def __repr__(self) -> str:
        shown = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        fields = ", ".join(f"{name}={_brief(value)}" for name, value in shown.items())
        return f"{type(self).__name__}({fields})"


def _flatten(node: Node) -> tuple[list[tuple[Any, Any]], tuple[tuple[str, ...], tuple[Any, ...]]]:
    names = tuple(name for name in vars(node) if name not in node.static)
    children = [(jax.tree_util.GetAttrKey(name), getattr(node, name)) for name in names]
    return children, (names, tuple((name, getattr(node, name, None)) for name in node.static))


def _unflatten(cls: type[Node], aux: tuple[tuple[str, ...], tuple[Any, ...]], leaves: Any) -> Node:
    names, metadata = aux
    return cls.holding(**dict(zip(names, leaves, strict=True)), **dict(metadata))


class _OfJax:
    """An array that was JAX's, on its way."""

    def __init__(self, array: Any) -> None:
        self.array = np.asarray(array)


def _off_device(value: Any) -> Any:
    """The value with every array of JAX marked; nodes inside it are left to themselves."""
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value, is_leaf=_is_node)):
        return value
    return jax.tree.map(lambda leaf: _OfJax(leaf) if isinstance(leaf, jax.Array) else leaf, value, is_leaf=_is_node)


def _back(value: Any) -> Any:
    """What `_off_device` was given, bit for bit; arrays of NumPy are read-only again."""
    leaves = jax.tree.leaves(value, is_leaf=_is_node)
    for leaf in leaves:
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    if not any(isinstance(leaf, _OfJax) for leaf in leaves):
        return value
    with jax.enable_x64(True):
        return jax.tree.map(
            lambda leaf: jax.device_put(leaf.array) if isinstance(leaf, _OfJax) else leaf, value, is_leaf=_is_node
        )


def _is_node(value: Any) -> bool:
    return isinstance(value, Node)


def _held(value: Any) -> Any:
    """A value as a node keeps it: a NumPy array as a read-only copy."""
    if not isinstance(value, np.ndarray):
        return value
    copy = np.array(cast("np.ndarray[Any, Any]", value))
    copy.flags.writeable = False
    return copy


def _brief(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 6:
        return f"array{value.shape}"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    return repr(value)
