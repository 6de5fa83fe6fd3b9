"""`Backward`: A on pytrees. Its parts are sets, functions or resolvents, nested like x or like a prefix of x.

A set C stands for its normal cone, whose resolvent is the projection on C; a function g for its subdifferential, whose
resolvent is prox_{γg}; any other object with `resolvent(v, step)` for the maximally monotone operator it belongs to.
A part above an array with leading axes acts on each row: it is the same A for every agent, or a batch of them.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import real_array, refuse
from epszero._points import add, nested_like, norm, stack, subtract
from epszero._pytree import Node
from epszero._shaped import Shaped
from epszero._types import PyTree
from epszero.functions import (
    L1,
    ElasticNet,
    Function,
    Hinge,
    Huber,
    Indicator,
    Linear,
    LogBarrier,
    NegativeEntropy,
    SeparableSum,
    SquaredL2,
    Tilted,
    Translated,
    Zero,
)
from epszero.oracles import Opaque
from epszero.problems.given import HasResolvent
from epszero.sets import Box, NonNegative, Product, Set, WholeSpace

ENTRYWISE = (
    *(Box, NonNegative, WholeSpace),
    *(ElasticNet, Hinge, Huber, L1, Linear, LogBarrier, NegativeEntropy, SquaredL2, Zero),
)
"""Sets and functions that are sums over entries, with formulas in which a step may differ from entry to entry."""


class Backward(Node):
    """A, ready for `resolvent`, for membership of its domain and for membership z ∈ A(x)."""

    parts: PyTree

    def __init__(self, argument: str, given: PyTree) -> None:
        self.parts = _unpacked_tree(argument, given)
        if not jax.tree.leaves(self.parts, is_leaf=is_part):
            refuse(argument, "has no set or function in it", "Pass a set, a function, or a list of them, one per block")

    def __repr__(self) -> str:
        return repr(self.parts)

    def block(self, name: str) -> "Backward":
        """A on one named block of the points alone."""
        return self.replaced(parts=getattr(self.parts, name))

    def resolvent(self, v: PyTree, step: PyTree) -> PyTree:
        """(Id + Γ A)⁻¹ v, with one step for all leaves or steps nested like v."""
        tasks: list[tuple[Any, PyTree, PyTree]] = []
        order = self.each(lambda *task: tasks.append(task) or len(tasks) - 1, v, nested_like(step, v))
        answers = _resolved(tasks)
        return jax.tree.map(lambda place: answers[place], order)

    def into_domain(self, x: PyTree) -> PyTree:
        """x where it lies in the domain, block by block; else its projection on a set, or a prox of a function."""
        return self.each(_into, x)

    def in_domain(self, x: PyTree) -> bool:
        """Whether every block of x lies in the domain of its part (always true for a bare resolvent)."""
        return all(jax.tree.leaves(self.each(_inside, x)))

    def gap(self, x: PyTree, z: PyTree) -> float:
        """How far z is from A(x): Σ σ_C(z) − ⟨z, x⟩ or g(x) + g*(z) − ⟨z, x⟩. For x in the domain, 0 iff z ∈ A(x)."""
        return sum(jax.tree.leaves(self.each(_membership_gap, x, z)))

    @property
    def unvouched(self) -> list[Any]:
        """The parts that the library does not vouch for: resolvents, and what holds a set or function of the user's."""
        parts = jax.tree.leaves(self.parts, is_leaf=is_part)
        return [part for part in parts if not isinstance(part, Set | Function) or part.foreign]

    @property
    def entrywise(self) -> bool:
        """Whether every part acts on each entry alone, so that each may have a step of its own."""
        return all(_entrywise(part) for part in jax.tree.leaves(self.parts, is_leaf=is_part))

    def start(self) -> PyTree:
        """A point of the domain, where the parts fix the shapes; None for a part that does not."""
        return jax.tree.map(_start, self.parts, is_leaf=is_part)

    def check_shapes(self, argument: str, x: PyTree) -> None:
        """Refuse, in a sentence, an x that the parts do not fit."""
        self.each(lambda part, leaf: _check_leaf(argument, part, leaf), x)

    def as_point(self, argument: str, x: PyTree) -> PyTree:
        """x with every leaf a float64 array, nested as the parts ask: a list of numbers under one part is a vector."""
        structure = jax.tree.structure(self.parts, is_leaf=is_part)
        if isinstance(self.parts, list) and type(x) is tuple:
            x = list(x)
        try:
            below = structure.flatten_up_to(x)
        except ValueError as error:
            said = str(error).split(";")[0]
            refuse(argument, f"must be nested like the sets or functions, but {said}", "Give one array per block")
        return jax.tree.unflatten(structure, [_as_arrays(argument, tree) for tree in below])

    def each(self, function: Callable[..., Any], *trees: PyTree) -> PyTree:
        """`function(part, leaf, …)` for every leaf below a set or function, and for all that is below a resolvent."""

        def below(part: Any, *leaves: PyTree) -> PyTree:
            if not isinstance(part, Set | Function):
                return function(part, *leaves)
            return jax.tree.map(lambda *leaf: function(part, *leaf), *leaves)

        return jax.tree.map(below, self.parts, *trees, is_leaf=is_part)


class Resolvent(Node):
    """Any object with `resolvent(v, step)`, compared by identity."""

    static = ("of",)
    of: Opaque

    def __init__(self, operator: HasResolvent) -> None:
        self.of = Opaque(operator.resolvent)

    def resolvent(self, v: PyTree, step: Any) -> PyTree:
        """(Id + step·A)⁻¹ v."""
        return self.of(v, step)


def is_part(node: Any) -> bool:
    """Whether a node of the tree is a set, a function or a resolvent."""
    return isinstance(node, Set | Function) or callable(getattr(node, "resolvent", None))


def _unpacked(argument: str, part: Any) -> PyTree:
    """A part as it is; a product of sets or a separable sum of functions as the tree of its members."""
    if isinstance(part, Product):
        return _unpacked_tree(argument, part.sets)
    if isinstance(part, SeparableSum):
        return _unpacked_tree(argument, part.functions)
    if not is_part(part):
        refuse(
            argument,
            f"must be a set, a function or an object with resolvent(v, step), but it is a {type(part).__name__}",
            "Pass something from ez.sets or ez.functions, or a list of such, one per block",
        )
    return part if isinstance(part, Set | Function | Resolvent) else Resolvent(part)


def _unpacked_tree(argument: str, tree: PyTree) -> PyTree:
    for path, part in jax.tree_util.tree_leaves_with_path(tree, is_leaf=lambda node: is_part(node) or not _holds(node)):
        if not _holds(part):
            name, what = f"{argument}{jax.tree_util.keystr(path)}", "None" if part is None else "empty"
            refuse(name, f"has no set or function in it, but is {what}", "Pass one; ez.sets.WholeSpace() is free")
    return jax.tree.map(lambda part: _unpacked(argument, part), tree, is_leaf=is_part)


def _holds(node: Any) -> bool:
    """Whether there is something in it."""
    return bool(node) if isinstance(node, list | tuple | dict) else node is not None


def _resolved(tasks: list[tuple[Any, PyTree, PyTree]]) -> dict[int, PyTree]:
    """`resolved` for each task; sets or functions of one kind and shape go together, so that they compile once."""
    alike: dict[Any, list[int]] = {}
    for place, task in enumerate(tasks):
        leaves, structure = jax.tree.flatten(task)
        shapes = tuple(np.shape(leaf) for leaf in leaves)
        alike.setdefault((structure, shapes) if isinstance(task[0], Set | Function) else place, []).append(place)
    answers: dict[int, PyTree] = {}
    for places in alike.values():
        if len(places) == 1:
            answers[places[0]] = resolved(*tasks[places[0]])
            continue
        together = jax.vmap(resolved)(*stack([tasks[place] for place in places]))
        answers.update({place: together[row] for row, place in enumerate(places)})
    return answers


def resolved(part: Any, v: PyTree, step: Any) -> Any:
    """The resolvent of one part."""
    if isinstance(part, Set | Function):
        rows = jnp.reshape(v, (1,)) if jnp.ndim(v) == 0 else v
        if jnp.ndim(step) == jnp.ndim(v) > 0:  # one for each entry, of a part that acts on each alone (`entrywise`)
            return part.project(rows) if isinstance(part, Set) else part.prox_by_entry(rows, step)
        answer = part.project(rows) if isinstance(part, Set) else part.prox(rows, step)
        return jnp.reshape(answer, jnp.shape(v))
    return part.resolvent(v, step)


def _entrywise(part: Any) -> bool:
    if type(part) in (Indicator, Translated, Tilted):
        return _entrywise(part.set if isinstance(part, Indicator) else part.function)
    return type(part) in ENTRYWISE


def _into(part: Any, x: PyTree) -> PyTree:
    if not isinstance(part, Set | Function):
        return x
    rows = np.atleast_1d(x)
    if isinstance(part, Set):
        nearest = np.asarray(part.project(rows))
        moved = np.linalg.norm(nearest - rows) > 1e-9 * max(1.0, float(np.linalg.norm(rows)))
    else:
        moved = not _inside(part, x)
        nearest = np.asarray(part.prox(rows)) if moved else rows
    return nearest.reshape(np.shape(x)) if moved else x


def _inside(part: Any, x: PyTree) -> bool:
    if isinstance(part, Set):
        return bool(np.all(part.contains(np.atleast_1d(x))))
    return bool(np.all(part(np.atleast_1d(x)) < np.inf)) if isinstance(part, Function) else True


def _membership_gap(part: Any, x: PyTree, z: PyTree) -> float:
    if not isinstance(part, Set | Function):  # z ∈ A(x) exactly when J_A(x + z) = x
        return float(norm(subtract(part.resolvent(add(x, z), jnp.asarray(1.0)), x)))
    x, z = np.atleast_1d(x), np.atleast_1d(z)
    fenchel = part.support(z) if isinstance(part, Set) else part(x) + part.conjugate(z)
    return float(np.sum(fenchel) - np.sum(x * z))


def _start(part: Any) -> Any:
    if not isinstance(part, Set | Function) or part.point_shape is None:
        return None
    return part.point() if isinstance(part, Set) else part.prox(np.zeros(part.batch_shape + part.point_shape))


def _check_leaf(argument: str, part: Any, leaf: Any) -> None:
    if isinstance(part, Shaped):
        part.check_shape(argument, np.shape(leaf) or (1,))


def _as_arrays(argument: str, tree: PyTree) -> PyTree:
    """A pytree of arrays; nested lists of plain numbers are one array."""
    numbers = isinstance(tree, list | tuple) and all(isinstance(leaf, int | float) for leaf in jax.tree.leaves(tree))
    leaves = real_array(argument, tree) if numbers else tree
    return jax.tree.map(lambda leaf: real_array(argument, leaf), leaves)
