"""One memory for what has been worked out, and one key for what it depends on.

An answer is a function of its arguments, so it may be looked up instead of worked out again: `remembered(owner, key,
compute)`, where the key names everything that the value depends on besides its owner, an immutable object. Owners are
held weakly and nothing is written on them; a value must not hold its owner, or neither would ever be forgotten.
"""

import hashlib
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar, overload
from weakref import WeakKeyDictionary

import jax
import numpy as np

from epszero._types import PyTree

MOST = 512  # answers that are kept for one owner; the oldest go first
LONG = 1024  # bytes of an array beyond which its digest stands for it

T = TypeVar("T")

_memory: "WeakKeyDictionary[Any, dict[Hashable, Any]]" = WeakKeyDictionary()


def remembered(owner: Any, key: Hashable, compute: Callable[[], T]) -> T:
    """What `compute` returns, worked out once for this owner and key. An exception is raised anew each time."""
    known = _memory.get(owner)
    if known is None:
        known = _memory.setdefault(owner, {})
    elif key in known:
        return known[key]
    value = compute()
    while len(known) >= MOST:
        known.pop(next(iter(known)))
    known[key] = value
    return value


def shape_of(tree: PyTree) -> Hashable:
    """A key for trees that are nested alike, with leaves of the same shapes."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(np.shape(leaf) for leaf in leaves)


def key_of(tree: PyTree) -> Hashable:
    """A key that is equal for equal trees: nesting, shapes and every value, bit for bit."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, tuple(_mark(leaf) for leaf in leaves)


def _mark(leaf: Any) -> Hashable:
    array = np.asarray(leaf)
    raw = array.tobytes()
    return array.shape, array.dtype.str, raw if len(raw) <= LONG else hashlib.sha256(raw).digest()


class Remembered(Generic[T]):
    """A field of a view on an owner: worked out once for all views whose `key` (a field of theirs) is the same."""

    def __init__(self, compute: Callable[[Any], T], key: str) -> None:
        self.compute, self.key, self.__doc__ = compute, key, compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = f"{owner.__name__}.{name}"

    @overload
    def __get__(self, view: None, owner: type) -> "Remembered[T]": ...
    @overload
    def __get__(self, view: object, owner: type) -> T: ...
    def __get__(self, view: Any, owner: type) -> "T | Remembered[T]":
        if view is None:
            return self
        key = self.name, getattr(view, self.key)
        known = _memory.get(view.problem)
        if known is not None and (found := known.get(key, _memory)) is not _memory:  # which is no answer
            return found
        with jax.enable_x64(True):  # whoever asks
            return remembered(view.problem, key, lambda: self.compute(view))


def by(key: str) -> Callable[[Callable[[Any], T]], Remembered[T]]:
    """Decorates a method of a view with a field `problem`: it is a field now, remembered by the field `key`."""
    return lambda compute: Remembered(compute, key)
