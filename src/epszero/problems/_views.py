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

from epszero._checks import InputError
from epszero._double import to_numpy
from epszero._points import inner, norm, shapes, subtract
from epszero._shaped import Shaped
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Agents, Average, Coupled, Oracle, OwnData
from epszero.problems.backward import Backward, is_part

if TYPE_CHECKING:
    from epszero.problems.aggregative import AggregativeGame
    from epszero.problems.game import Game

UNLIKE = 100.0  # own curvatures that differ by more ask for steps of their own
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
        return flat_of(self.own_tree(x, agent))

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
    def indifferent(self, x: PyTree) -> list[int]:
        """Agents whose traced cost does not depend on their own strategy."""

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

    def some_models(self, x: PyTree) -> list[tuple[int, Model]]:
        """(agent, model at its own strategy), for as many agents, spread over all of them, as fit into memory."""
        many = HESSIAN_NUMBERS // len(self.own(x, 0)) ** 2
        chosen = [int(agent) for agent in np.unique(np.linspace(0, self.game.agents - 1, many).astype(int))]
        return list(zip(chosen, self.models(x, x, chosen), strict=True)) if chosen else []

    def unit_steps(self, x: PyTree) -> PyTree:
        """1/‖own Hessian‖ of each agent, nested as steps are; None where some are not known, or they are much alike."""
        models = self.some_models(x)
        sizes = np.array([np.linalg.norm(model.hessian, 2) for _, model in models])
        known = len(models) == self.game.agents and np.isfinite(sizes).all() and (sizes > 0).all()
        if not known or sizes.max() < UNLIKE * sizes.min():
            return None
        return self.nested_steps(np.exp(np.mean(np.log(sizes))) / sizes, x)

    @abstractmethod
    def nested_steps(self, steps: FloatArray, x: PyTree) -> PyTree:
        """One step per agent, as methods take them."""

    def bent_hessians(self, x: PyTree, bent: float) -> Iterator[tuple[int, FloatArray]]:
        """(agent, own Hessian) where it has an eigenvalue below −bent times its largest, among some of the agents."""
        found = [(agent, (model.hessian + model.hessian.T) / 2) for agent, model in self.some_models(x)]
        found = [(agent, hessian) for agent, hessian in found if np.isfinite(hessian).all()]
        alike = len({hessian.shape for _, hessian in found}) == 1
        hessians = [hessian for _, hessian in found]
        values = np.linalg.eigvalsh(np.stack(hessians)) if alike else [np.linalg.eigvalsh(one) for one in hessians]
        for (agent, hessian), spectrum in zip(found, values, strict=True):
            if spectrum[0] < -bent * max(np.abs(spectrum).max(), 1e-300):
                yield agent, hessian


def flat_of(tree: PyTree) -> FloatArray:
    """All entries, one after another."""
    return np.concatenate([np.ravel(np.asarray(leaf, dtype=np.float64)) for leaf in jax.tree.leaves(tree)])


def shaped_like(tree: PyTree, flat: FloatArray) -> PyTree:
    """The entries of `flat`, nested and shaped like `tree`."""
    leaves, structure = jax.tree.flatten(tree)
    ends = np.cumsum([np.size(leaf) for leaf in leaves])
    pieces = np.split(np.asarray(flat), ends[:-1])
    return structure.unflatten([piece.reshape(np.shape(leaf)) for piece, leaf in zip(pieces, leaves, strict=True)])


def view_of(game: Any, data: PyTree, x: PyTree) -> View:
    """The view that suits the kind of game."""
    return Listed(game, data, x) if hasattr(game, "costs") else Stacked(game, data)


def evaluated(name: str, cost: Callable[..., Any], *arguments: Any) -> Any:
    """The shape and kind of what a cost returns; refused by name, with a remedy that fits, where it fails."""
    try:
        return jax.eval_shape(cost, *arguments)
    except InputError:
        raise
    except jax.errors.ConcretizationTypeError as error:
        raise InputError(
            f"{name}: decides in Python on a value that is not known yet (if, max, float, range ...). Use jnp.where, "
            "jnp.maximum and their like."
        ) from error
    except Exception as error:
        what = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        remedy = "Make the shapes of strategies, samples and parameters agree, and compute with jax.numpy"
        if isinstance(error, NameError | KeyError | AttributeError | IndexError):
            remedy = "Correct the name or the index"
        given = ", ".join(str(shapes(one)) for one in arguments if one is not None and one != ())
        raise InputError(f"{name}: cannot be evaluated at arguments of shape {given}: {what}. {remedy}.") from error


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
        return [
            (self.cost_name(i), evaluated(self.cost_name(i), cost, x, own))
            for i, (cost, own) in enumerate(zip(self.game.costs, rows, strict=True))
        ]

    def own_tree(self, x: PyTree, agent: int) -> PyTree:
        return x[agent]

    def own_side(self, agent: int) -> Backward:
        return Backward("strategies", self.game.strategies.parts[agent])

    def with_own(self, x: PyTree, agent: int, own: FloatArray) -> PyTree:
        replaced = list(x)
        replaced[agent] = shaped_like(x[agent], own)
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

    def indifferent(self, x: PyTree) -> list[int]:
        def alone(agent: int, own: PyTree) -> Any:
            return self.game.costs[agent]([*x[:agent], own, *x[agent + 1 :]], self._row_of(agent))

        return [i for i in range(self.game.agents) if not depends(lambda own, i=i: alone(i, own), x[i])]

    def _row_of(self, agent: int) -> PyTree:
        own = self.data[agent] if isinstance(self.data, OwnData) else self.data
        return jax.tree.map(lambda leaf: leaf[0], own)

    def nested_steps(self, steps: FloatArray, x: PyTree) -> PyTree:
        return [jax.tree.map(lambda _, step=step: np.asarray(step), own) for own, step in zip(x, steps, strict=True)]

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
        return [("cost", evaluated("cost", self.game.cost, own, own, seen, parameters))]

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
