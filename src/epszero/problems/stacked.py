"""The view of an aggregative game: one cost, agents stacked along a leading axis."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._memory import remembered
from epszero._points import shaped_like
from epszero._shaped import Shaped
from epszero._trace.dependence import depends
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Agents, Average, Opaque, OwnData
from epszero.problems.backward import Backward, is_part
from epszero.problems.views import Model, View, evaluated, flat_with, growth, model_of

if TYPE_CHECKING:
    from epszero.problems.aggregative import AggregativeGame


class Stacked(View):
    """`AggregativeGame`."""

    game: "AggregativeGame"

    def __init__(self, game: "AggregativeGame", data: PyTree) -> None:
        super().__init__(game, data)
        self.constant: bool | None = None

    def cost_name(self, agent: int) -> str:
        return "cost"

    def cost_values(self, row: PyTree, x: PyTree) -> list[tuple[str, Any]]:
        own, parameters = _row(x, 0), _row(self.game.parameters, 0)
        seen = row[0] if isinstance(row, OwnData) else _inner(row) if self._agents.private else row
        if self._agents.features is not None:
            seen = jax.eval_shape(lambda xi: self._agents.features((), xi), seen)  # pyright: ignore[reportOptionalCall]
        return [("cost", evaluated("cost", _shapes_of(self.game.cost), own, own, seen, parameters))]

    def own_tree(self, x: PyTree, agent: int) -> PyTree:
        return _row(x, agent)

    def own_side(self, agent: int) -> Backward:
        def alone(part: Any) -> Any:
            return part.member(agent) if isinstance(part, Shaped) and part.batch_shape else part

        return Backward("strategies", jax.tree.map(alone, self.game.strategies.parts, is_leaf=is_part))

    def with_own(self, x: PyTree, agent: int, own: FloatArray) -> PyTree:
        return self.with_owns(x, {agent: own})

    def with_owns(self, x: PyTree, owns: dict[int, FloatArray]) -> PyTree:
        x = jax.tree.map(np.array, x)
        for agent, own in owns.items():
            new = shaped_like(_row(x, agent), own)
            jax.tree.map(lambda leaf, row, agent=agent: leaf.__setitem__(agent, row), x, new)
        return x

    def models(self, x: PyTree, y: PyTree, agents: Sequence[int]) -> list[Model]:
        chosen = np.asarray(agents)
        average = jax.tree.map(lambda leaf: np.broadcast_to(np.mean(leaf, axis=0), (len(chosen), *leaf.shape[1:])), x)
        own, target, parameters = (_row(tree, chosen) for tree in (x, y, self.game.parameters))
        together = self._average("model", _stacked_model, (parameters, target, average), own, chosen)
        values, gradients, hessians = to_numpy(together)
        return [Model(*each) for each in zip(values, gradients, hessians, strict=True)]

    def values(self, x: PyTree, y: PyTree) -> FloatArray:
        everyone = np.arange(self.game.agents)
        return to_numpy(self._average("value", _stacked_value, (self.game.parameters, y), x, everyone))

    def along(self, x: PyTree, y: PyTree) -> tuple[FloatArray, FloatArray]:
        everyone = np.arange(self.game.agents)
        return to_numpy(self._average("along", _stacked_along, (self.game.parameters, y), x, everyone))

    def own_hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        if self.constant is None:  # one cost for all agents
            self.constant = self._hessian_is_constant(agent, x)
        return self.constant

    def _hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        own = _row(x, agent)
        seen = self._seen(self._row_of(agent))
        both = (own, jax.tree.map(jnp.zeros_like, own))
        return not depends(lambda both: self._hessian(agent, both[0], both[1], seen), both)

    def own_hessian_knows_data(self, x: PyTree) -> bool:
        own = _row(x, 0)
        return self._agents.uncertain and depends(
            lambda row: self._hessian(0, own, own, self._seen(row)), self._row_of(0)
        )

    def indifferent(self, x: PyTree) -> list[int]:
        parameters, seen = _row(self.game.parameters, 0), self._seen(self._row_of(0))
        own = _row(x, 0)
        return [] if depends(lambda own: self.game.cost(own, own, seen, parameters), own) else [0]

    def _hessian(self, agent: int, own: PyTree, average: PyTree, seen: PyTree) -> Array:
        model = _stacked_model(self.game.cost, self.game.agents)
        return model(own, None, seen, (_row(self.game.parameters, agent), own, average))[2]

    def _row_of(self, agent: int) -> PyTree:
        data = self.data[agent] if isinstance(self.data, OwnData) else self.data
        alone = self._agents.private and not isinstance(self.data, OwnData)
        return jax.tree.map(lambda leaf: leaf[0, agent] if alone else leaf[0], data)

    def _seen(self, row: PyTree) -> PyTree:
        return row if self._agents.features is None or row is None else self._agents.features((), row)

    def nested_steps(self, steps: FloatArray, x: PyTree) -> PyTree:
        return jax.tree.map(lambda _: steps, x)

    def true_gradient(self, x: PyTree, row: PyTree) -> PyTree:
        return to_numpy(self._like(self.game.gradient, self.game.parameters, self.game.agents)(x, row))

    @property
    def _agents(self) -> Agents:
        return self.game.oracle_of_agents

    def _like(self, function: Callable[..., Any], parameters: PyTree, count: int) -> Agents:
        known = self._agents
        return Agents(
            function, parameters, count, uncertain=known.uncertain, features=known.features, private=known.private
        )

    def _average(self, name: str, make: Callable[..., Any], parameters: PyTree, x: PyTree, chosen: Any) -> PyTree:
        data, game = self.data, self.game
        given = game.gradient if name == "along" else game.cost
        function = remembered(game, ("function", name), lambda: Opaque(make(given, game.agents)))
        if isinstance(data, OwnData):
            data = OwnData(data[i] for i in chosen)
        elif self._agents.private:
            data = jax.tree.map(lambda leaf: leaf[:, chosen], data)
        return _evaluated(self._like(function, parameters, len(chosen)).average(data, x), x)


@eqx.filter_jit
def _evaluated(average: Average, x: PyTree) -> PyTree:
    return average(x)


def _stacked_model(cost: Callable[..., Any], agents: int) -> Callable[..., Any]:
    """(own, ·, ξ, (p, y, x̄)) ↦ the agent's model at y: its own move shifts the average by a share of 1/N."""

    def model(own: PyTree, _: PyTree, xi: PyTree, given: PyTree) -> tuple[Any, Any, Any]:
        parameters, target, average = given
        flat, unravel = flat_with(target)

        def alone(v: Array) -> Array:
            new = unravel(v)
            moved = jax.tree.map(lambda mean, old, now: mean + (now - old) / agents, average, own, new)
            return cost(new, moved, xi, parameters)

        return tuple(model_of(alone, flat))

    return model


def _stacked_value(cost: Callable[..., Any], agents: int) -> Callable[..., Any]:
    def value(own: PyTree, average: PyTree, xi: PyTree, given: PyTree) -> Array:
        parameters, other = given
        moved = jax.tree.map(lambda mean, old, now: mean + (now - old) / agents, average, own, other)
        return cost(other, moved, xi, parameters)

    return value


def _stacked_along(gradient: Callable[..., Any], agents: int) -> Callable[..., Any]:
    def along(own: PyTree, average: PyTree, xi: PyTree, given: PyTree) -> tuple[Array, Array]:
        parameters, other = given
        moved = jax.tree.map(lambda mean, old, now: mean + (now - old) / agents, average, own, other)
        here, there = gradient(own, average, xi, parameters), gradient(other, moved, xi, parameters)
        return growth(own, other, here, there)

    return along


def _shapes_of(cost: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: jax.eval_shape(cost, *arguments)


def _inner(row: PyTree) -> PyTree:
    """The shape of one agent's row of a sample."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), row)


def _row(tree: PyTree, index: Any) -> PyTree:
    return jax.tree.map(lambda leaf: leaf[index], tree)
