"""Costs f_i(x, ξ) of many agents, evaluated together where their programs are alike.

Costs with one skeleton (_trace/recorded.py) are one batch (batches.py), so what is compiled grows with the number of
kinds of costs, not with the number of agents. Costs that cannot be compared are evaluated one by one.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._points import flat_of, shaped_like
from epszero._pytree import Node
from epszero._trace.programs import forwards
from epszero._trace.recorded import Recorded
from epszero._types import FloatArray, PyTree
from epszero.oracles._base import Opaque
from epszero.oracles.batches import Alike, batch_of, first_leaves
from epszero.oracles.packed import Packed, Packing
from epszero.oracles.traced import recording


class OwnModel(NamedTuple):
    """A cost as a function of the own strategy, flat; stacked over agents."""

    value: Any
    gradient: Any  # (n_i,)
    hessian: Any  # (n_i, n_i)


class Together(Node):
    """All agents' costs: batches, and what is left alone."""

    static = ("packing",)
    packing: Packing
    batches: tuple[Alike, ...]
    alone: dict[int, Any]  # agent: its cost, an `Opaque`

    def parts(self) -> list["Together"]:
        """Every batch, and every agent that is alone, by itself."""
        batches = [self.replaced(batches=(batch,), alone={}) for batch in self.batches]
        return [*batches, *(self.replaced(batches=(), alone={agent: cost}) for agent, cost in self.alone.items())]

    @property
    def members(self) -> list[int]:
        """The agents, batch after batch, in the order of what is returned for them."""
        return [*(agent for batch in self.batches for agent in batch.agents), *self.alone]

    def gradients(self, x: PyTree, *xi: PyTree) -> PyTree:
        """∇_{x_i} f_i, for every agent; stacked where x is."""
        slopes = self.slopes(x, x, *xi)
        return slopes if isinstance(x, Packed) else self.packing.unpack(slopes)

    def slopes(self, x: PyTree, y: PyTree, *xi: PyTree) -> Packed:
        """∇_{x_i} f_i with y_i in place of x_i, stacked."""
        found = self._each(lambda cost, own: jax.tree.leaves(jax.grad(cost)(own)), x, y, xi)
        pieces: dict[int, list[Any]] = {pool: [] for pool in range(len(self.packing.pools))}
        rows: dict[int, list[int]] = {pool: [] for pool in pieces}
        for homes, leaves in zip(self._homes(), found, strict=True):
            for (pool, places), leaf in zip(homes, leaves, strict=True):
                pieces[pool].append(leaf)
                rows[pool] += places
        return Packed(_ordered(jnp.concatenate(pieces[pool]), rows[pool]) for pool in pieces)

    def values(self, x: PyTree, y: PyTree, *xi: PyTree) -> Any:
        """f_i with y_i in place of x_i, one entry for each of the members in increasing order."""
        found = self._each(lambda cost, own: cost(own), x, y, xi)
        order = np.argsort(self.members)
        values = jnp.concatenate(found)
        return values if (order == np.arange(len(order))).all() else values[order]

    def models(self, x: PyTree, y: PyTree, *xi: PyTree) -> list[OwnModel]:
        """Value, gradient and Hessian of f_i at y_i as a function of the own strategy; one for each batch, stacked."""

        def model(cost: Callable[..., Any], own: PyTree) -> OwnModel:
            flat, unravel = ravel_pytree(own)

            def f(v: Any) -> Any:
                return cost(unravel(v))

            value, gradient = jax.value_and_grad(f)(flat)
            return OwnModel(value, gradient, jax.jacfwd(forwards(jax.grad(f)))(flat))

        return self._each(model, x, y, xi)

    def blocks(self, x: PyTree, *xi: PyTree) -> list[tuple[Any, Any]]:
        """∂(∇_{x_i} f_i)/∂x_i and ∂(∇_{x_i} f_i)/∂x at x, the own strategy held still there: for each batch, stacked.

        Backwards for each agent alone: as many numbers as the result has, and no more.
        """
        point = self.packing.pack(x)

        def both(cost: Callable[..., Any], own: PyTree) -> tuple[Any, Any]:
            flat, unravel = ravel_pytree(own)

            def slope(v: Any, others: Packed) -> Any:
                return ravel_pytree(jax.grad(lambda mine: cost(unravel(mine), others))(v))[0]

            return jax.jacrev(slope, argnums=(0, 1))(flat, Packed(map(jnp.asarray, point)))

        return self._each(both, point, point, xi)

    def _each(self, function: Callable[..., Any], x: PyTree, y: PyTree, xi: Any) -> list[Any]:
        """What `function(f_i, y_i)` gives, stacked: for each batch, then for each agent that is alone."""
        with jax.enable_x64(True):  # in which the costs were recorded
            return self._every(function, self.packing.pack(x), self.packing.pack(y), xi)

    def _every(self, function: Callable[..., Any], x: Packed, y: Packed, xi: Any) -> list[Any]:
        sample = jax.tree.leaves(xi)
        found = [batch.mapped(function, x, y, sample) for batch in self.batches]
        strategies, moved = (self.packing.unpack(point) if self.alone else [] for point in (x, y))
        for agent, cost in self.alone.items():

            def alone(own: PyTree, cost: Any = cost, agent: int = agent) -> Any:
                return cost([*strategies[:agent], own, *strategies[agent + 1 :]], *xi)

            found.append(jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], function(alone, moved[agent])))
        return found

    def _homes(self) -> list[Any]:
        """Pool and rows of every leaf that `_each` gives for strategies."""
        places, first = self.packing.homes, first_leaves(self.packing.structure)
        alone = [
            [(places[leaf][0], (places[leaf][1],)) for leaf in range(first[agent], first[agent + 1])]
            for agent in self.alone
        ]
        return [*(batch.homes for batch in self.batches), *alone]


def _ordered(values: Any, rows: list[int]) -> Any:
    """The entries in the order of their rows."""
    order = np.argsort(rows)
    return values if (order == np.arange(len(order))).all() else values[order]


class OwnGradient:
    """(x, …) ↦ ∇_{x_i} f, equal where cost and agent are."""

    by_value = True

    def __init__(self, cost: Opaque, agent: int) -> None:
        self.cost, self.agent = cost, agent

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnGradient) and (self.cost, self.agent) == (other.cost, other.agent)

    def __hash__(self) -> int:
        return hash((self.cost, self.agent))

    def __call__(self, x: Sequence[PyTree], *xi: PyTree) -> PyTree:
        i = self.agent
        return jax.grad(lambda own: self.cost([*x[:i], own, *x[i + 1 :]], *xi))(x[i])


class Of(Node):
    """One of the functions of `Together`, of a point (x, or x and y) and a sample."""

    static = ("name",)
    costs: Together
    name: str

    def __init__(self, costs: Together, name: str) -> None:
        self.costs, self.name = costs, name

    def __call__(self, point: PyTree, *xi: PyTree) -> Any:
        points = (point,) if self.name == "gradients" else point
        return getattr(self.costs, self.name)(*points, *xi)


def jacobian(function: Of, x: PyTree, *xi: PyTree) -> FloatArray | None:
    """∂F/∂x of all own gradients at x, in the order of the entries of x; None where a cost is on its own."""
    if function.costs.alone:
        return None
    packing = function.costs.packing
    n = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    numbers = packing.pack(shaped_like(x, np.arange(n, dtype=float)))
    order = flat_of(numbers).astype(int)
    whole = np.zeros((n, n))
    for batch, (own, others) in zip(function.costs.batches, to_numpy(_blocks(function.costs, x, xi)), strict=True):
        columns = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in others], axis=2)
        places = np.concatenate(
            [numbers[pool][list(rows)].reshape(len(rows), -1) for pool, rows in batch.homes], axis=1
        )
        for agent, mine in enumerate(places.astype(int)):
            whole[np.ix_(mine, order)] = columns[agent]
            whole[np.ix_(mine, mine)] += own[agent]
    return whole


@jax.jit
def _blocks(costs: Together, x: PyTree, xi: tuple[PyTree, ...]) -> list[tuple[Any, Any]]:
    return costs.blocks(x, *xi)


def together(costs: Sequence[Opaque], x: Sequence[PyTree], *row: PyTree) -> Together:
    """The costs of all agents, for strategies like x and a sample like `row`."""
    packing, points = Packing.of(list(x)), list(x)
    first, homes = first_leaves(packing.structure), packing.homes
    kinds: dict[Any, list[int]] = {}
    programs: dict[int, Recorded] = {}
    alone: dict[int, Any] = {}
    for agent, cost in enumerate(costs):
        program = recording(cost, points, *row)
        if program is None or len(program.ends) != 1:
            alone[agent] = cost
            continue
        programs[agent] = program
        begin, end = (int(leaf) for leaf in first[agent : agent + 2])
        mine = packing.structure.children()[agent], tuple(homes[leaf][0] for leaf in range(begin, end))
        sampled = tuple(max(slot - len(homes), -1) for slot in program.slots)
        which = () if end - begin == 1 else tuple(slot - begin if begin <= slot < end else -1 for slot in program.slots)
        kinds.setdefault((program.skeleton, sampled, mine, which), []).append(agent)
    batches = tuple(batch_of(agents, [programs[agent] for agent in agents], packing) for agents in kinds.values())
    return Together.holding(packing=packing, batches=batches, alone=alone)
