"""f(x) = Σ f_k(x_k) over the leaves of a pytree: lists, tuples and dictionaries of functions, in any way.

The point is a pytree of the same form. Value and conjugate are one number, the sum over the leaves and over their
batches; prox goes leaf by leaf, with one step for all leaves or a pytree of steps. Costs add up.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, refuse
from epszero._types import Array, PyTree
from epszero.functions._base import Function


class SeparableSum(Function):
    """One function per block of variables."""

    formula = True
    functions: PyTree

    @known_arguments
    def __init__(self, functions: PyTree) -> None:
        parts = jax.tree_util.tree_leaves_with_path(functions, is_leaf=lambda node: node is None or _is_function(node))
        if not parts or not parts[0][0]:
            rule = "must be a list, tuple or dictionary with at least one function"
            refuse("functions", f"{rule}, but it is {functions!r}", "Write SeparableSum([f, g])")
        for path, part in parts:
            if not _is_function(part):
                name, rule = f"functions{jax.tree_util.keystr(path)}", "must be a function, but it is a"
                remedy = "Pass one from epszero.functions; wrap a set as Indicator(set)"
                refuse(name, f"{rule} {type(part).__name__}", remedy)
        form = jax.tree.structure(functions, is_leaf=_is_function)
        self.functions = form.unflatten([part for _, part in parts])  # a copy that nobody else can change

    @property
    def rank(self) -> int:
        return 0  # a point is not one array

    def prox_arguments(self, v: PyTree, step: PyTree, at: str = "") -> tuple[Any, Any]:
        form, pairs = self._form(), list[tuple[Any, Any]]()
        steps = form.unflatten([step] * form.num_leaves) if _is_number(step) else step
        for path, f, leaf, one in self._matched({f"v{at}": v, f"step{at}": steps}):
            pairs.append(f.prox_arguments(leaf, one, at + path))
            _refuse_growth(f"v{at}{path}", f, leaf, one)
        return form.unflatten([pair[0] for pair in pairs]), form.unflatten([pair[1] for pair in pairs])

    def _checked(self, argument: str, v: Any) -> Any:
        leaves: list[Any] = []
        for path, f, leaf in self._matched({argument: v}):
            leaves.append(f._checked(argument + path, leaf))
            _refuse_growth(argument + path, f, leaf)
        return self._form().unflatten(leaves)

    def _value(self, x: PyTree) -> Array:
        return _total(f._value(leaf) for _, f, leaf in self._matched({"x": x}))

    def _prox(self, v: PyTree, step: PyTree) -> PyTree:
        return self._form().unflatten([f._prox(*leaves) for _, f, *leaves in self._matched({"v": v, "step": step})])

    def _conjugate(self, y: PyTree) -> Array:
        return _total(f._conjugate(leaf) for _, f, leaf in self._matched({"y": y}))

    def _form(self) -> Any:
        return jax.tree.structure(self.functions, is_leaf=_is_function)

    def _matched(self, trees: dict[str, PyTree]) -> list[Any]:
        """For each function: its place in the pytree, itself, and its part of each of the named trees."""
        parts, matched = jax.tree_util.tree_leaves_with_path(self.functions, is_leaf=_is_function), list[list[Any]]()
        for name, tree in trees.items():
            try:
                matched.append(self._form().flatten_up_to(tree))
            except (ValueError, TypeError, KeyError) as error:
                rule = f"must have the form of the functions, {self._form()}, but does not ({str(error).rstrip('.')})"
                refuse(name, rule, "Nest lists, tuples and dictionaries just as they are, with an array for each")
        return [(jax.tree_util.keystr(path), f, *leaves) for (path, f), *leaves in zip(parts, *matched, strict=True)]


def _is_function(node: Any) -> bool:
    return isinstance(node, Function)


def _refuse_growth(argument: str, function: Function, leaf: Any, step: Any = 0.0) -> None:
    """Refuse a leaf that a batch of functions or steps would make larger: it would count several times in the sum."""
    if function.rank == 0:
        return
    rows = np.shape(leaf)[: -function.rank]
    batch = np.broadcast_shapes(rows, function.batch_shape, np.shape(step))
    if batch != rows:
        rule = f"has leading axes {rows}, but its function and step make a batch of shape {batch}"
        refuse(argument, rule, "Give it one row per member of the batch")


def _is_number(step: Any) -> bool:
    return jax.tree_util.all_leaves([step]) and np.ndim(step) == 0


def _total(values: Any) -> Array:
    return jnp.sum(jnp.stack([jnp.sum(value) for value in values]))
