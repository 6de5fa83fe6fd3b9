"""One view of both kinds of games, agent by agent: what an agent's average cost looks like with the others held still.

`models(x, y)` gives, for each agent i, the value, gradient and Hessian at y_i of its cost as a function of its own
strategy while the others stay at x: all it takes to judge convexity and to find best responses. Strategies are flat.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._points import inner, norm, subtract
from epszero._shaped import Shaped
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Agents, Average, Coupled, Oracle, OwnData
from epszero.problems.backward import Backward, is_part

if TYPE_CHECKING:
    from epszero.problems.aggregative import AggregativeGame
    from epszero.problems.game import Game

HESSIAN_NUMBERS = 2_000_000  # entries of Hessians that are worked on at once


class Model(NamedTuple):
    """A cost at one strategy of one agent."""

    value: Any
    gradient: Any  # (n_i,)
    hessian: Any  # (n_i, n_i)


class View(ABC):
    """A game, its data, and the shape of its points."""

    def __init__(self, game: Any, data: PyTree) -> None:
        self.game = game
        self.data = data

    @abstractmethod
    def cost_name(self, agent: int) -> str:
        """The argument that holds the agent's cost."""

    @abstractmethod
    def cost_values(self, row: PyTree, x: PyTree) -> list[tuple[str, Any]]:
        """(argument, what it returns, as shape and kind of number) of every cost, for one sample like `row`."""

    def own(self, x: PyTree, agent: int) -> FloatArray:
        """The agent's strategy, flat."""
        return np.asarray(ravel_pytree(self.own_tree(x, agent))[0])

    @abstractmethod
    def with_own(self, x: PyTree, agent: int, own: FloatArray) -> PyTree:
        """x with the agent's strategy replaced by a flat one."""

    def with_owns(self, x: PyTree, owns: dict[int, FloatArray]) -> PyTree:
        """x with the strategies of several agents replaced."""
        for agent, own in owns.items():
            x = self.with_own(x, agent, own)
        return x

    @abstractmethod
    def own_tree(self, x: PyTree, agent: int) -> PyTree:
        """The agent's strategy as it is nested."""

    @abstractmethod
    def own_side(self, agent: int) -> Backward:
        """The agent's strategy set or local function alone."""

    @abstractmethod
    def models(self, x: PyTree, y: PyTree, agents: Sequence[int]) -> list[Model]:
        """Each agent's average cost at y_i, the others at x."""

    def along(self, x: PyTree, y: PyTree) -> tuple[FloatArray, FloatArray]:
        """For each agent, by how much its own gradient grows from x_i to y_i along the way there, per unit of length;
        and the size of these gradients per unit of length. The first is negative only where the cost is not convex."""
        everyone = range(self.game.agents)
        here, there = self.models(x, x, everyone), self.models(x, y, everyone)
        found = [
            _growth(self.own(x, i), self.own(y, i), a.gradient, b.gradient)
            for i, a, b in zip(everyone, here, there, strict=True)
        ]
        return np.array([float(slope) for slope, _ in found]), np.array([float(size) for _, size in found])

    @abstractmethod
    def own_hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        """Whether the traced own Hessian depends on no strategy: a proof, never a guess."""

    @abstractmethod
    def own_hessian_knows_data(self, x: PyTree) -> bool:
        """Whether some own Hessian may depend on the samples."""

    @abstractmethod
    def true_gradient(self, x: PyTree, row: PyTree) -> PyTree:
        """The pseudogradient at one sample by automatic differentiation."""

    def given_gradient(self, x: PyTree, row: PyTree) -> PyTree:
        """The pseudogradient at one sample as the problem has it."""
        return to_numpy(self.base(x, row))

    @property
    def base(self) -> Oracle:
        """The oracle of the pseudogradient alone."""
        oracle = self.game.oracle
        return oracle.base if isinstance(oracle, Coupled) else oracle

    def bent_hessians(self, x: PyTree, bent: float) -> Iterator[tuple[int, FloatArray]]:
        """(agent, own Hessian) where it has an eigenvalue below −bent times its largest, among as many agents, spread
        over all of them, as fit into memory at once."""
        many = HESSIAN_NUMBERS // len(self.own(x, 0)) ** 2
        if not many:
            return
        chosen = [int(agent) for agent in np.unique(np.linspace(0, self.game.agents - 1, many).astype(int))]
        hessians = [(model.hessian + model.hessian.T) / 2 for model in self.models(x, x, chosen)]
        alike = len({hessian.shape for hessian in hessians}) == 1
        values = np.linalg.eigvalsh(np.stack(hessians)) if alike else [np.linalg.eigvalsh(one) for one in hessians]
        for agent, hessian, spectrum in zip(chosen, hessians, values, strict=True):
            if spectrum[0] < -bent * max(np.abs(spectrum).max(), 1e-300):
                yield agent, hessian


def view_of(game: Any, data: PyTree, x: PyTree) -> View:
    """The view that suits the kind of game."""
    return Listed(game, data, x) if hasattr(game, "costs") else Stacked(game, data)


# -- a list of costs ---------------------------------------------------------------------------------------------------


class Listed(View):
    """`Game`."""

    game: "Game"

    def __init__(self, game: "Game", data: PyTree, x: PyTree) -> None:
        super().__init__(game, data)
        self.costs = None if data is None and game.oracle.uncertain else game.own_costs(data, x)

    def cost_name(self, agent: int) -> str:
        return f"costs[{agent}]"

    def cost_values(self, row: PyTree, x: PyTree) -> list[tuple[str, Any]]:
        rows = row if isinstance(row, OwnData) else [row] * self.game.agents
        values = [jax.eval_shape(cost, x, own) for cost, own in zip(self.game.costs, rows, strict=True)]
        return [(self.cost_name(i), value) for i, value in enumerate(values)]

    def own_tree(self, x: PyTree, agent: int) -> PyTree:
        return x[agent]

    def own_side(self, agent: int) -> Backward:
        return Backward("strategies", self.game.strategies.parts[agent])

    def with_own(self, x: PyTree, agent: int, own: FloatArray) -> PyTree:
        replaced = list(x)
        replaced[agent] = to_numpy(ravel_pytree(x[agent])[1](jnp.asarray(own)))
        return replaced

    def models(self, x: PyTree, y: PyTree, agents: Sequence[int]) -> list[Model]:
        assert self.costs is not None
        return to_numpy(_listed_models([self.costs[i] for i in agents], tuple(agents), x, y))

    def own_hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        row, cost = self._row_of(agent), self.game.costs[agent]
        return not depends(lambda x: _own_model(lambda x: cost(x, row), agent, x, x[agent]).hessian, x)

    def own_hessian_knows_data(self, x: PyTree) -> bool:
        def hessian(agent: int, row: PyTree) -> Any:
            return _own_model(lambda x: self.game.costs[agent](x, row), agent, x, x[agent]).hessian

        uncertain = [i for i, cost in enumerate(self.game.costs) if cost.uncertain]
        return any(depends(lambda row, i=i: hessian(i, row), self._row_of(i)) for i in uncertain)

    def _row_of(self, agent: int) -> PyTree:
        own = self.data[agent] if isinstance(self.data, OwnData) else self.data
        return jax.tree.map(lambda leaf: leaf[0], own)

    def true_gradient(self, x: PyTree, row: PyTree) -> PyTree:
        rows = row if isinstance(row, OwnData) else [row] * self.game.agents
        return to_numpy([part(x, own) for part, own in zip(self.game.gradients, rows, strict=True)])


def _own_model(cost: Callable[[PyTree], Array], agent: int, x: Any, own: PyTree) -> Model:
    flat, unravel = _flat(own)
    return _model(lambda v: cost([*x[:agent], unravel(v), *x[agent + 1 :]]), flat)


def _flat(tree: PyTree) -> tuple[Array, Callable[[Any], PyTree]]:
    return ravel_pytree(tree)


def _model(f: Callable[[Array], Array], flat: Array) -> Model:
    value, gradient = jax.value_and_grad(f)(flat)
    return Model(value, gradient, jax.jacfwd(jax.grad(f))(flat))


@eqx.filter_jit
def _listed_models(costs: list[Average], agents: tuple[int, ...], x: PyTree, y: PyTree) -> list[Model]:
    return [_own_model(cost, agent, x, y[agent]) for cost, agent in zip(costs, agents, strict=True)]


def _growth(u: PyTree, v: PyTree, at_u: PyTree, at_v: PyTree) -> tuple[Array, Array]:
    d = subtract(v, u)
    length = jnp.maximum(norm(d), 1e-300)
    return inner(subtract(at_v, at_u), d) / length**2, (norm(at_u) + norm(at_v)) / length


# -- one cost, stacked agents ------------------------------------------------------------------------------------------


class Stacked(View):
    """`AggregativeGame`."""

    game: "AggregativeGame"

    def cost_name(self, agent: int) -> str:
        return "cost"

    def cost_values(self, row: PyTree, x: PyTree) -> list[tuple[str, Any]]:
        own, parameters = _row(x, 0), _row(self.game.parameters, 0)
        seen = row[0] if isinstance(row, OwnData) else _inner(row) if self._agents.private else row
        if self._agents.features is not None:
            seen = jax.eval_shape(lambda xi: self._agents.features((), xi), seen)  # pyright: ignore[reportOptionalCall]
        return [("cost", jax.eval_shape(self.game.cost, own, own, seen, parameters))]

    def own_tree(self, x: PyTree, agent: int) -> PyTree:
        return _row(x, agent)

    def own_side(self, agent: int) -> Backward:
        def alone(part: Any) -> Any:
            return part.member(agent) if isinstance(part, Shaped) and part.batch_shape else part

        return Backward("strategies", jax.tree.map(alone, self.game.strategies.parts, is_leaf=is_part))

    def with_own(self, x: PyTree, agent: int, own: FloatArray) -> PyTree:
        new = ravel_pytree(_row(x, agent))[1](jnp.asarray(own))

        def replace(leaf: Any, row: Any) -> Any:
            leaf = np.array(leaf)
            leaf[agent] = row
            return leaf

        return jax.tree.map(replace, x, new)

    def models(self, x: PyTree, y: PyTree, agents: Sequence[int]) -> list[Model]:
        chosen = np.asarray(agents)
        average = jax.tree.map(lambda leaf: np.broadcast_to(np.mean(leaf, axis=0), (len(chosen), *leaf.shape[1:])), x)
        own, target, parameters = (_row(tree, chosen) for tree in (x, y, self.game.parameters))
        together = self._average(
            _stacked_model(self.game.cost, self.game.agents), (parameters, target, average), own, chosen
        )
        values, gradients, hessians = to_numpy(together)
        return [Model(*each) for each in zip(values, gradients, hessians, strict=True)]

    def along(self, x: PyTree, y: PyTree) -> tuple[FloatArray, FloatArray]:
        everyone = np.arange(self.game.agents)
        function = _stacked_along(self.game.gradient, self.game.agents)
        return to_numpy(self._average(function, (self.game.parameters, y), x, everyone))

    def own_hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        own = _row(x, agent)
        seen = self._seen(self._row_of(agent))
        both = (own, jax.tree.map(jnp.zeros_like, own))
        return not depends(lambda both: self._hessian(agent, both[0], both[1], seen), both)

    def own_hessian_knows_data(self, x: PyTree) -> bool:
        own = _row(x, 0)
        return self._agents.uncertain and depends(
            lambda row: self._hessian(0, own, own, self._seen(row)), self._row_of(0)
        )

    def _hessian(self, agent: int, own: PyTree, average: PyTree, seen: PyTree) -> Array:
        model = _stacked_model(self.game.cost, self.game.agents)
        return model(own, None, seen, (_row(self.game.parameters, agent), own, average))[2]

    def _row_of(self, agent: int) -> PyTree:
        data = self.data[agent] if isinstance(self.data, OwnData) else self.data
        alone = self._agents.private and not isinstance(self.data, OwnData)
        return jax.tree.map(lambda leaf: leaf[0, agent] if alone else leaf[0], data)

    def _seen(self, row: PyTree) -> PyTree:
        return row if self._agents.features is None else self._agents.features((), row)

    def true_gradient(self, x: PyTree, row: PyTree) -> PyTree:
        return to_numpy(self._like(self.game.gradient, self.game.parameters, self.game.agents)(x, row))

    @property
    def _agents(self) -> Agents:
        return self.game.oracle_of_agents

    def _like(self, function: Callable[..., Any], parameters: PyTree, count: int) -> Agents:
        known = self._agents
        return Agents(function, parameters, count,
                      uncertain=known.uncertain, features=known.features, private=known.private)  # fmt: skip

    def _average(self, function: Callable[..., Any], parameters: PyTree, x: PyTree, chosen: Any) -> PyTree:
        data = self.data
        if isinstance(data, OwnData):
            data = OwnData(data[i] for i in chosen)
        elif self._agents.private:
            data = jax.tree.map(lambda leaf: leaf[:, chosen], data)
        return _evaluated(self._like(function, parameters, len(chosen)).average(data, x), x)


@eqx.filter_jit
def _evaluated(average: Average, x: PyTree) -> PyTree:
    return average(x)


@functools.lru_cache(maxsize=256)
def _stacked_model(cost: Callable[..., Any], agents: int) -> Callable[..., Any]:
    """(own, ·, ξ, (p, y, x̄)) ↦ the agent's model at y: its own move shifts the average by a share of 1/N."""

    def model(own: PyTree, _: PyTree, xi: PyTree, given: PyTree) -> tuple[Any, Any, Any]:
        parameters, target, average = given
        flat, unravel = _flat(target)

        def alone(v: Array) -> Array:
            new = unravel(v)
            moved = jax.tree.map(lambda mean, old, now: mean + (now - old) / agents, average, own, new)
            return cost(new, moved, xi, parameters)

        return tuple(_model(alone, flat))

    return model


@functools.lru_cache(maxsize=256)
def _stacked_along(gradient: Callable[..., Any], agents: int) -> Callable[..., Any]:
    def along(own: PyTree, average: PyTree, xi: PyTree, given: PyTree) -> tuple[Array, Array]:
        parameters, other = given
        moved = jax.tree.map(lambda mean, old, now: mean + (now - old) / agents, average, own, other)
        here, there = gradient(own, average, xi, parameters), gradient(other, moved, xi, parameters)
        return _growth(own, other, here, there)

    return along


def _inner(row: PyTree) -> PyTree:
    """The shape of one agent's row of a sample."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), row)


def _row(tree: PyTree, index: Any) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[index], tree)


# -- what a traced function depends on ---------------------------------------------------------------------------------


def depends(function: Callable[[PyTree], Any], x: PyTree) -> bool:
    """Whether what `function` returns may depend on x, by following its traced operations: False is a proof."""
    closed = jax.make_jaxpr(function)(x)
    return any(_reached(closed.jaxpr, [True] * len(closed.jaxpr.invars)))


def _reached(jaxpr: Any, inputs: list[bool]) -> list[bool]:
    touched = {variable for variable, yes in zip(jaxpr.invars, inputs, strict=True) if yes}

    def is_touched(atom: Any) -> bool:
        return not hasattr(atom, "val") and atom in touched

    for equation in jaxpr.eqns:
        given = [is_touched(atom) for atom in equation.invars]
        inside = equation.params.get("jaxpr")
        if equation.primitive.name in ("jit", "pjit", "closed_call") and inside is not None:
            out = _reached(inside.jaxpr, given)
        else:
            out = [any(given)] * len(equation.outvars)
        touched.update(variable for variable, yes in zip(equation.outvars, out, strict=True) if yes)
    return [is_touched(atom) for atom in jaxpr.outvars]
