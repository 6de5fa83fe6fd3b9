"""A batch of agents whose costs have one skeleton: their numbers stacked, one program mapped over them.

Agents differ in numbers and in whose strategies they read at which place of the program. A place where each reads its
own strategy is told from one where it never does, so that derivatives in the own strategy stay as sparse as they are;
where only some do, it is selected agent by agent. What all agents of a batch have in common is not stacked.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._pytree import Node
from epszero._trace.recorded import Recorded, run
from epszero._trace.steps import INPUT, VALUE
from epszero._types import PyTree
from epszero.oracles.packed import Packed, Packing
from epszero.oracles.traced import Code, code_of, unpacked

OWN, FIXED, OTHER, SOME, SAMPLE = "own", "fixed", "other", "some", "sample"


class Place(NamedTuple):
    """What is read at one place of a program."""

    kind: str  # the own strategy, one leaf for all, another for each agent, sometimes the own one, or the sample
    pool: int  # of leaves of one shape
    leaf: int  # OWN and SOME: which leaf of the own strategy; FIXED: its row in the pool; SAMPLE: which leaf


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
        self.own_scalars, self.moved = scalars, _filled(batch.starts, starts)
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


def _filled(fixed: Sequence[Any], moving: Any) -> list[Any]:
    """`fixed` with the entries of `moving` in the place of None."""
    rest = iter(unpacked(moving))
    return [next(rest) if one is None else one for one in fixed]


def first_leaves(structure: Any) -> Any:
    """The first leaf of each agent's strategy, and the end."""
    return np.cumsum([0, *(child.num_leaves for child in structure.children())])


def batch_of(agents: list[int], programs: list[Recorded], packing: Packing) -> Alike:
    """Agents whose costs have one skeleton, with what each of them reads, from their recorded costs."""
    first, homes, many = first_leaves(packing.structure), packing.homes, len(agents)
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
