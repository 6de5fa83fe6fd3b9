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

from epszero._pytree import Node
from epszero._trace.programs import forwards
from epszero._trace.recorded import INPUT, VALUE, Recorded, run
from epszero._types import PyTree
from epszero.oracles._base import Opaque
from epszero.oracles.traced import Code, code_of, recording, unpacked

OWN, FIXED, OTHER, SOME = "own", "fixed", "other", "some"


class Place(NamedTuple):
    """What is read at one place of a program."""

    kind: str  # OWN: a leaf of the own strategy; FIXED: one leaf for all; OTHER: one each; SOME: sometimes the own one
    leaf: int  # OWN and SOME: which leaf of the own strategy; FIXED: of all leaves
    pool: int  # SOME and OTHER: which pool of leaves of one shape
    column: int  # SOME and OTHER: where the agents' places in the pool are written


class OwnModel(NamedTuple):
    """A cost as a function of the own strategy, flat."""

    value: Any
    gradient: Any  # (n_i,)
    hessian: Any  # (n_i, n_i)


class Alike(Node):
    """A batch of agents."""

    static = ("code", "agents", "places", "pools", "starts", "in_common")
    code: Code
    agents: tuple[int, ...]
    places: tuple[Place, ...]
    pools: tuple[tuple[int, ...], ...]  # leaves of one shape that are gathered from
    starts: tuple[int | None, ...]  # None: another for each agent
    in_common: tuple[bool, ...]  # scalars
    same: Any  # scalars in common
    scalars: Any  # (G, …), the others
    arrays: tuple[Any, ...]  # in common: as they are; else None
    own_arrays: tuple[Any, ...]  # (G, …); None where in common
    own_starts: Any  # (G, …)
    rows: Any  # (G, …): places in pools
    mine: Any  # (G, leaves of a strategy): places of the own strategy in the pools; −1 where it is in none

    def mapped(self, function: Callable[..., Any], leaves: Sequence[Any], own: Sequence[Any]) -> Any:
        """`function(cost, own leaves)` for every agent of the batch, where cost is a function of the own leaves."""
        pooled = [jnp.stack([leaves[place] for place in pool]) for pool in self.pools]

        def one(numbers: Any, own: Any) -> Any:
            return function(lambda mine: self._cost(numbers, leaves, pooled, mine), own)

        numbers = self.scalars, self.own_arrays, self.own_starts, self.rows, self.mine
        return jax.vmap(one)(numbers, list(own))

    def _cost(self, numbers: Any, leaves: Sequence[Any], pooled: Sequence[Any], own: Sequence[Any]) -> Any:
        scalars, arrays, starts, rows, mine = numbers
        inputs: list[Any] = []
        gathered = {pool: values[rows[self._columns(pool)]] for pool, values in enumerate(pooled)}
        read = {place.column: value for pool in gathered for place, value in self._read(pool, gathered[pool])}
        for place in self.places:
            if place.kind == OWN:
                inputs.append(own[place.leaf])
            elif place.kind == FIXED:
                inputs.append(leaves[place.leaf])
            elif place.kind == OTHER:
                inputs.append(read[place.column])
            else:
                here = rows[place.column] == mine[place.leaf]
                inputs.append(jnp.where(here, own[place.leaf], read[place.column]))
        alike, others = iter(unpacked(self.same)), iter(unpacked(scalars))
        values = [next(alike) if same else next(others) for same in self.in_common]
        held = [ours if mine is None else mine for ours, mine in zip(self.arrays, arrays, strict=True)]
        moved = iter(unpacked(starts))
        begin = [next(moved) if start is None else start for start in self.starts]
        return run(self.code.program, values, held, begin, inputs)[0]

    def indifferent(self) -> list[int]:
        """Agents whose cost does not depend on their own strategy, by following the operations."""
        wanted, program = set(self.code.program.ends), self.code.program
        place = sum(step.outputs for step in program.steps)
        for step in reversed(program.steps):
            place -= step.outputs
            if any((VALUE, place + k) in wanted for k in range(step.outputs)):
                wanted.update(step.operands)
        read = [one for k, one in enumerate(self.places) if (INPUT, k) in wanted]
        if any(one.kind == OWN for one in read):
            return []
        some = [
            np.asarray(self.rows)[:, one.column] == np.asarray(self.mine)[:, one.leaf]
            for one in read
            if one.kind == SOME
        ]
        own = np.any(some, axis=0) if some else np.zeros(len(self.agents), dtype=bool)
        return [agent for agent, reads in zip(self.agents, own, strict=True) if not reads]

    def _columns(self, pool: int) -> Any:
        return np.array([place.column for place in self._gathered(pool)], dtype=int)

    def _gathered(self, pool: int) -> list[Place]:
        return [place for place in self.places if place.kind in (OTHER, SOME) and place.pool == pool]

    def _read(self, pool: int, values: Any) -> list[tuple[Place, Any]]:
        return list(zip(self._gathered(pool), jnp.unstack(values) if len(values) else (), strict=True))


class Together(Node):
    """All agents' costs: batches, and what is left alone."""

    batches: tuple[Alike, ...]
    alone: dict[int, Any]  # agent: its cost, an `Opaque`

    def parts(self) -> list["Together"]:
        """Every batch, and every agent that is alone, by itself."""
        batches = [self.replaced(batches=(batch,), alone={}) for batch in self.batches]
        return [*batches, *(self.replaced(batches=(), alone={agent: cost}) for agent, cost in self.alone.items())]

    @property
    def members(self) -> list[int]:
        """The agents, in the order of what is returned for them."""
        return sorted([*(agent for batch in self.batches for agent in batch.agents), *self.alone])

    def gradients(self, x: Sequence[PyTree], *xi: PyTree) -> list[PyTree]:
        """∇_{x_i} f_i, for every agent."""
        return self.slopes(x, x, *xi)

    def slopes(self, x: Sequence[PyTree], y: Sequence[PyTree], *xi: PyTree) -> list[PyTree]:
        """∇_{x_i} f_i with y_i in place of x_i."""
        return self._each(lambda cost, own: jax.grad(cost)(own), x, y, xi)

    def values(self, x: Sequence[PyTree], y: Sequence[PyTree], *xi: PyTree) -> list[Any]:
        """f_i with y_i in place of x_i."""
        return self._each(lambda cost, own: cost(own), x, y, xi)

    def models(self, x: Sequence[PyTree], y: Sequence[PyTree], *xi: PyTree) -> list[OwnModel]:
        """Value, gradient and Hessian of f_i at y_i, as a function of the own strategy alone."""

        def model(cost: Callable[..., Any], own: PyTree) -> OwnModel:
            flat, unravel = jax.flatten_util.ravel_pytree(own)

            def f(v: Any) -> Any:
                return cost(unravel(v))

            value, gradient = jax.value_and_grad(f)(flat)
            return OwnModel(value, gradient, jax.jacfwd(forwards(jax.grad(f)))(flat))

        return self._each(model, x, y, xi)

    def _each(self, function: Callable[..., Any], x: Sequence[PyTree], y: Sequence[PyTree], xi: Any) -> list[Any]:
        leaves, found = jax.tree.leaves((list(x), *xi)), dict[int, Any]()
        for batch in self.batches:
            owns = [jax.tree.leaves(y[agent]) for agent in batch.agents]
            structure = jax.tree.structure(y[batch.agents[0]])
            stacked = [jnp.stack(column) for column in zip(*owns, strict=True)]
            made = batch.mapped(lambda cost, own, f=function: _nested(f, cost, own, structure), leaves, stacked)
            for row, agent in enumerate(batch.agents):
                found[agent] = jax.tree.map(lambda leaf, row=row: leaf[row], made)
        for agent, cost in self.alone.items():

            def alone(mine: PyTree, cost: Any = cost, agent: int = agent) -> Any:
                return cost([*x[:agent], mine, *x[agent + 1 :]], *xi)

            found[agent] = function(alone, y[agent])
        return [found[agent] for agent in self.members]


def _nested(function: Callable[..., Any], cost: Callable[..., Any], own: list[Any], structure: Any) -> Any:
    """`function` for a cost of the own strategy as it is nested."""
    return function(lambda mine: cost(jax.tree.leaves(mine)), jax.tree.unflatten(structure, own))


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


def together(costs: Sequence[Opaque], x: Sequence[PyTree], *row: PyTree) -> Together:
    """The costs of all agents, for strategies like x and a sample like `row`."""
    kinds: dict[Any, list[int]] = {}
    programs: dict[int, Recorded] = {}
    alone: dict[int, Any] = {}
    own = [jax.tree.structure(one) for one in x]
    first = np.cumsum([0, *(structure.num_leaves for structure in own)])
    shapes = [
        (np.shape(leaf), str(jnp.result_type(leaf)), sample)
        for sample, tree in enumerate((list(x), row))
        for leaf in jax.tree.leaves(tree)
    ]
    for agent, cost in enumerate(costs):
        program = recording(cost, list(x), *row)
        if program is None:
            alone[agent] = cost
            continue
        programs[agent] = program
        begin, end = first[agent : agent + 2]
        mine = own[agent], tuple(shapes[begin:end])
        sampled = tuple(shapes[slot][2] for slot in program.slots)
        which = () if end - begin == 1 else tuple(slot - begin if begin <= slot < end else -1 for slot in program.slots)
        kinds.setdefault((program.skeleton, sampled, mine, which), []).append(agent)
    batches = tuple(_batch(agents, [programs[agent] for agent in agents], shapes, first) for agents in kinds.values())
    return Together.holding(batches=batches, alone=alone)


def _batch(agents: list[int], programs: list[Recorded], shapes: list[Any], first: Any) -> Alike:
    slots = np.array([program.slots for program in programs], dtype=int).reshape(len(agents), -1)
    begin = first[agents]
    leaves = int(first[agents[0] + 1] - begin[0])
    mine = np.arange(leaves) + begin[:, None]
    places, pools, rows = _places(slots, mine, shapes)
    held = {leaf: place for pool in pools for place, leaf in enumerate(pool)}
    at = np.array([[held.get(int(leaf), -1) for leaf in row] for row in mine], dtype=np.int32).reshape(len(agents), -1)
    scalars = np.stack([program.scalars for program in programs])
    in_common = tuple(bool(one) for one in (scalars.view(np.int64) == scalars.view(np.int64)[0]).all(axis=0))
    chosen = np.array(in_common, dtype=bool)
    columns = list(zip(*(program.arrays for program in programs), strict=True))
    common = [all(array.tobytes() == column[0].tobytes() for array in column[1:]) for column in columns]
    starts = np.array([program.starts for program in programs], dtype=np.int32).reshape(len(agents), -1)
    fixed = (starts == starts[0]).all(axis=0)
    told = tuple(int(start) if one else None for start, one in zip(starts[0], fixed, strict=True))
    return Alike.holding(
        code=code_of(programs[0]),
        agents=tuple(agents),
        places=places,
        pools=pools,
        starts=told,
        in_common=in_common,
        same=scalars[0, chosen],
        scalars=scalars[:, ~chosen],
        arrays=tuple(column[0] if one else None for column, one in zip(columns, common, strict=True)),
        own_arrays=tuple(None if one else np.stack(column) for column, one in zip(columns, common, strict=True)),
        own_starts=starts[:, ~fixed],
        rows=rows,
        mine=at,
    )


def _places(slots: Any, mine: Any, shapes: list[Any]) -> tuple[tuple[Place, ...], tuple[tuple[int, ...], ...], Any]:
    """What is read at each place, the pools that are gathered from, and the agents' rows in these."""
    found, pools = list[Place](), dict[Any, set[int]]()
    for place, column in enumerate(slots.T):
        own = column[:, None] == mine
        if own.all(axis=0).any():
            found.append(Place(OWN, int(np.argmax(own.all(axis=0))), -1, -1))
        elif not own.any() and (column == column[0]).all():
            found.append(Place(FIXED, int(column[0]), -1, -1))
        else:
            kind, leaf = (SOME, int(np.argmax(own.any(axis=0)))) if own.any() else (OTHER, -1)
            found.append(Place(kind, leaf, -1, place))
            pools.setdefault(shapes[column[0]], set()).update(map(int, column))
    for shape, pool in pools.items():
        pool.update(int(leaf) for leaf in mine.ravel() if shapes[leaf] == shape)
    names, ordered = list(pools), [sorted(pool) for pool in pools.values()]
    position = {leaf: place for pool in ordered for place, leaf in enumerate(pool)}
    rows, places = list[Any](), list[Place]()
    for place in found:
        if place.kind in (OTHER, SOME):
            column = slots[:, place.column]
            rows.append([position[int(leaf)] for leaf in column])
            place = place._replace(pool=names.index(shapes[column[0]]), column=len(rows) - 1)  # noqa: PLW2901
        places.append(place)
    matrix = np.array(rows, dtype=np.int32).T if rows else np.zeros((len(slots), 0), dtype=np.int32)
    return tuple(places), tuple(map(tuple, ordered)), matrix
