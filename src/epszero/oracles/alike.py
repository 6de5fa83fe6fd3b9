"""Costs f_i(x, ξ) of many agents, evaluated together where their programs are alike.

Costs with one skeleton (_trace/recorded.py) differ in numbers and in whose strategies they read at which place. Such
agents are one batch: their numbers are stacked, strategies are gathered, and one program is mapped over the batch. So
what is compiled grows with the number of kinds of costs, not with the number of agents. A place where each agent reads
its own strategy is told from one where it never does, so that derivatives in the own strategy stay as sparse as they
are; where only some do, it is selected agent by agent. What all agents of a batch have in common is not stacked.
Costs that cannot be compared are evaluated one by one.
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
from epszero._trace.recorded import Recorded, run
from epszero._trace.steps import INPUT, VALUE
from epszero._types import FloatArray, PyTree
from epszero.oracles._base import Opaque
from epszero.oracles.packed import Packed, Packing
from epszero.oracles.traced import Code, code_of, recording, unpacked

OWN, FIXED, OTHER, SOME, SAMPLE = "own", "fixed", "other", "some", "sample"


class Place(NamedTuple):
    """What is read at one place of a program."""

    kind: str  # the own strategy, one leaf for all, another for each agent, sometimes the own one, or the sample
    pool: int  # of leaves of one shape
    leaf: int  # OWN and SOME: which leaf of the own strategy; FIXED: its row in the pool; SAMPLE: which leaf


class OwnModel(NamedTuple):
    """A cost as a function of the own strategy, flat; stacked over agents."""

    value: Any
    gradient: Any  # (n_i,)
    hessian: Any  # (n_i, n_i)


class Alike(Node):
    """A batch of agents."""

    static = ("code", "agents", "places", "homes", "starts", "in_common", "own")
    code: Code
    agents: tuple[int, ...]
    places: tuple[Place, ...]
    homes: tuple[tuple[int, tuple[int, ...]], ...]  # of each leaf of a strategy: its pool, and the agents' rows there
    starts: tuple[int | None, ...]  # None: another for each agent
    in_common: tuple[bool, ...]  # scalars
    own: Any  # structure of a strategy
    same: Any  # scalars in common
    scalars: Any  # (G, …), the others
    arrays: tuple[Any, ...]  # in common: as they are; else None
    own_arrays: tuple[Any, ...]  # (G, …); None where in common
    own_starts: Any  # (G, …)
    rows: Any  # (G, places): rows in pools

    def mapped(self, function: Callable[..., Any], x: Packed, y: Packed, sample: Sequence[Any]) -> Any:
        """`function(f_i, y_i)` for every agent of the batch, f_i a function of the own strategy, nested as it is."""
        shapes = self.code.program.shapes[sum(map(len, x)) :]
        if tuple(map(np.shape, sample)) != shapes:
            raise TypeError(f"costs of samples shaped {shapes} are called with others: {tuple(map(np.shape, sample))}")
        own = [jnp.asarray(y[pool])[np.array(rows)] for pool, rows in self.homes]
        mine = np.array([rows for _, rows in self.homes], dtype=np.int32).T

        def one(numbers: Any, own: Any, mine: Any) -> Any:
            def cost(strategy: PyTree, others: Packed = x) -> Any:
                own = jax.tree.leaves(strategy)
                return run(self.code.program, _Agent(self, numbers, others, sample, own, mine))[0]

            return function(cost, jax.tree.unflatten(self.own, own))

        return jax.vmap(one)((self.scalars, self.own_arrays, self.own_starts, self.rows), own, mine)

    def indifferent(self) -> list[int]:
        """Agents whose cost does not depend on their own strategy, by following the operations."""
        program = self.code.program
        wanted = set(program.ends)
        for step in reversed(program.steps):
            if any((VALUE, step.first + k) in wanted for k in range(step.outputs)):
                wanted.update(step.operands)
        rows, reads = np.asarray(self.rows), np.zeros(len(self.agents), dtype=bool)
        for number, place in enumerate(self.places):
            if (INPUT, number) in wanted and place.kind in (OWN, SOME):
                reads |= rows[:, number] == np.array(self.homes[place.leaf][1])
        return [agent for agent, yes in zip(self.agents, reads, strict=True) if not yes]


class _Agent:
    """One agent of a batch, as a reader of its program."""

    def __init__(self, batch: Alike, numbers: Any, x: Packed, sample: Sequence[Any], own: list[Any], mine: Any) -> None:
        scalars, self.own_arrays, starts, self.rows = numbers
        self.batch, self.x, self.sample, self.own, self.mine = batch, x, sample, own, mine
        self.own_scalars, self.moved = scalars, iter_places(batch.starts, starts)
        self.at = np.cumsum([not one for one in batch.in_common]) - 1  # place among the own scalars
        self.at_same = np.cumsum(batch.in_common) - 1

    def input(self, place: int) -> Any:
        kind, pool, leaf = self.batch.places[place]
        if kind == SAMPLE:
            return self.sample[leaf]
        if kind == OWN:
            return self.own[leaf]
        if kind == FIXED:
            return self.x[pool][leaf]
        other = jnp.asarray(self.x[pool])[self.rows[place]]
        return other if kind == OTHER else jnp.where(self.rows[place] == self.mine[leaf], self.own[leaf], other)

    def inputs(self, places: Sequence[int]) -> Any:
        read = [self.batch.places[place] for place in places]
        kinds, pools = {one.kind for one in read}, {one.pool for one in read}
        leaves = {one.leaf for one in read if one.kind in (OWN, SOME)}
        if kinds == {OWN} and len(leaves) == 1:
            own = self.own[leaves.pop()]
            return jnp.broadcast_to(own, (len(places), *jnp.shape(own)))
        if SAMPLE in kinds or len(pools) > 1 or len(leaves) > 1:
            return jnp.stack([self.input(place) for place in places])
        pool = jnp.asarray(self.x[pools.pop()])
        if kinds == {FIXED}:
            return pool[np.array([one.leaf for one in read])]
        rows = self.rows[np.array(places)]
        if not leaves:
            return pool[rows]
        leaf = leaves.pop()
        here = jnp.reshape(rows == self.mine[leaf], (-1, *[1] * jnp.ndim(self.own[leaf])))
        return jnp.where(here, self.own[leaf], pool[rows])

    def scalar(self, place: int) -> Any:
        return self.batch.same[self.at_same[place]] if self.batch.in_common[place] else self._own(self.at[place])

    def _own(self, at: Any) -> Any:
        return self.own_scalars[at]

    def scalars(self, places: Sequence[int]) -> Any:
        common = {self.batch.in_common[place] for place in places}
        if len(common) > 1:
            return jnp.stack([jnp.asarray(self.scalar(place)) for place in places])
        return self.batch.same[self.at_same[list(places)]] if True in common else self._own(self.at[list(places)])

    def array(self, place: int) -> Any:
        held = self.batch.arrays[place]
        return self.own_arrays[place] if held is None else held

    def start(self, place: int) -> Any:
        return self.moved[place]


def iter_places(fixed: Sequence[Any], moving: Any) -> list[Any]:
    """`fixed` with the entries of `moving` in the place of None."""
    rest = iter(unpacked(moving))
    return [next(rest) if one is None else one for one in fixed]


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
        places, first = self.packing.homes, _first_leaves(self.packing.structure)
        alone = [
            [(places[leaf][0], (places[leaf][1],)) for leaf in range(first[agent], first[agent + 1])]
            for agent in self.alone
        ]
        return [*(batch.homes for batch in self.batches), *alone]


def _ordered(values: Any, rows: list[int]) -> Any:
    """The entries in the order of their rows."""
    order = np.argsort(rows)
    return values if (order == np.arange(len(order))).all() else values[order]


def _first_leaves(structure: Any) -> Any:
    """The first leaf of each agent's strategy, and the end."""
    return np.cumsum([0, *(child.num_leaves for child in structure.children())])


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
    first, homes = _first_leaves(packing.structure), packing.homes
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
    batches = tuple(_batch(agents, [programs[agent] for agent in agents], packing) for agents in kinds.values())
    return Together.holding(packing=packing, batches=batches, alone=alone)


def _batch(agents: list[int], programs: list[Recorded], packing: Packing) -> Alike:
    first, homes, many = _first_leaves(packing.structure), packing.homes, len(agents)
    own = packing.structure.children()[agents[0]]
    leaves = [[homes[int(first[agent]) + leaf] for agent in agents] for leaf in range(own.num_leaves)]
    slots = np.array([program.slots for program in programs], dtype=int).reshape(many, -1)
    at = np.array([homes.get(leaf, (-1, -1)) for leaf in range(int(slots.max(initial=0)) + 1)]).reshape(-1, 2)
    pools, rows = at[slots[0], 0], at[slots, 1]
    mine = np.array([[row for _, row in column] for column in leaves])
    mine_pools = [column[0][0] for column in leaves]
    places = tuple(
        _place(int(pool), column, slot, mine, mine_pools, len(homes))
        for pool, column, slot in zip(pools, rows.T, slots[0], strict=True)
    )
    scalars = np.stack([program.scalars for program in programs])
    chosen = (scalars.view(np.int64) == scalars.view(np.int64)[:1]).all(axis=0)
    columns = list(zip(*(program.arrays for program in programs), strict=True))
    common = [all(array.tobytes() == column[0].tobytes() for array in column[1:]) for column in columns]
    starts = np.array([program.starts for program in programs], dtype=np.int32).reshape(many, -1)
    fixed = (starts == starts[:1]).all(axis=0)
    return Alike.holding(
        code=code_of(programs[0]),
        agents=tuple(agents),
        places=places,
        homes=tuple((column[0][0], tuple(row for _, row in column)) for column in leaves),
        starts=tuple(int(start) if one else None for start, one in zip(starts[0], fixed, strict=True)),
        in_common=tuple(bool(one) for one in chosen),
        own=own,
        same=scalars[0, chosen],
        scalars=scalars[:, ~chosen],
        arrays=tuple(column[0] if one else None for column, one in zip(columns, common, strict=True)),
        own_arrays=tuple(None if one else np.stack(column) for column, one in zip(columns, common, strict=True)),
        own_starts=starts[:, ~fixed],
        rows=rows.astype(np.int32),
    )


def _place(pool: int, rows: Any, slot: int, mine: Any, mine_pools: list[int], points: int) -> Place:
    if slot >= points:
        return Place(SAMPLE, -1, int(slot) - points)
    own = np.array([(rows == row) if there == pool else rows < 0 for row, there in zip(mine, mine_pools, strict=True)])
    if own.all(axis=1).any():
        return Place(OWN, pool, int(np.argmax(own.all(axis=1))))
    if own.any():
        return Place(SOME, pool, int(np.argmax(own.any(axis=1))))
    return Place(FIXED, pool, int(rows[0])) if (rows == rows[0]).all() else Place(OTHER, pool, -1)
