"""One view of both kinds of games, agent by agent: what an agent's average cost looks like with the others held still.

`models(x, y)` gives, for each agent i, the value, gradient and Hessian at y_i of its cost as a function of its own
strategy while the others stay at x: all it takes to judge convexity and to find best responses. Strategies are flat.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._checks import InputError
from epszero._double import to_numpy
from epszero._points import flat_of, inner, norm, one_row, shaped_like, shapes, subtract
from epszero._trace.dependence import depends
from epszero._trace.programs import forwards
from epszero._types import Array, FloatArray, PyTree
from epszero.oracles import Average, Coupled, Exact, General, Oracle, OwnData
from epszero.oracles.alike import Of, Together
from epszero.oracles.exact import KnownMean
from epszero.oracles.general import mean_of
from epszero.oracles.traced import returned
from epszero.problems.backward import Backward

if TYPE_CHECKING:
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

    @abstractmethod
    def values(self, x: PyTree, y: PyTree) -> FloatArray:
        """Each agent's average cost at y_i, the others at x."""

    def along(self, x: PyTree, y: PyTree) -> tuple[FloatArray, FloatArray]:
        """For each agent, by how much its own gradient grows from x_i to y_i along the way there, per unit of length;
        and the size of these gradients per unit of length. The first is negative only where the cost is not convex."""
        everyone = range(self.game.agents)
        here, there = self.models(x, x, everyone), self.models(x, y, everyone)
        found = [
            growth(self.own(x, i), self.own(y, i), a.gradient, b.gradient)
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


def evaluated(name: str, cost: Callable[..., Any], *arguments: Any) -> Any:
    """The shape and kind of what a cost returns; refused by name, with a remedy that fits, where it fails."""
    try:
        return cost(*arguments)
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
        self.x = x
        self.constant: dict[int, bool] = {}

    @cached_property
    def together(self) -> Together | None:
        """All costs in batches, where they see one data set."""
        if isinstance(self.data, OwnData) or (self.data is None and self.game.costs_uncertain):
            return None
        return self.game.together(self.x, one_row(self.data))

    @cached_property
    def costs(self) -> list[Average]:
        """Each agent's average cost."""
        return self.game.own_costs(self.data, self.x)

    def cost_name(self, agent: int) -> str:
        return f"costs[{agent}]"

    def cost_values(self, row: PyTree, x: PyTree) -> list[tuple[str, Any]]:
        rows = row if isinstance(row, OwnData) else [row] * self.game.agents
        return [
            (self.cost_name(i), evaluated(self.cost_name(i), _returned(cost), x, own))
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
        if self.together is not None:
            every = {
                agent: Model(*(part[row] for part in several))
                for part, several in zip(self.together.parts(), self._mean("models", (x, y)), strict=True)
                for row, agent in enumerate(part.members)
            }
            return [every[agent] for agent in agents]
        return to_numpy(_listed_models([self.costs[i] for i in agents], tuple(agents), x, y))

    def values(self, x: PyTree, y: PyTree) -> FloatArray:
        if self.together is not None:
            return self._mean("values", (x, y))
        return np.array(to_numpy(_listed_values(self.costs, x, y)))

    def _mean(self, what: str, point: PyTree) -> Any:
        """One of the functions of all costs together, averaged over the data."""
        assert self.together is not None
        function = Of(self.together, what)
        known = not self.game.costs_uncertain
        average = KnownMean(function) if known else mean_of(self.together, function, what, self.data, point)
        return to_numpy(_evaluated(average, point))

    def own_hessian_is_constant(self, agent: int, x: PyTree) -> bool:
        if self.together is not None:
            if not self.constant:
                self.constant = self._constant(x)
            return self.constant[agent]
        row, cost = self._row_of(agent), self.game.costs[agent]
        return not depends(lambda x: _own_model(lambda x: cost(x, row), agent, x, x[agent]).hessian, x)

    def _constant(self, x: PyTree) -> dict[int, bool]:
        """Of every agent, one answer for all whose costs are alike."""
        assert self.together is not None
        seen, found = self._one_sample(), dict[int, bool]()
        for part in self.together.parts():
            free = depends(lambda x, part=part: [model.hessian for model in part.models(x, x, *seen)], x)
            found.update(dict.fromkeys(part.members, not free))
        return found

    def _one_sample(self) -> tuple[PyTree, ...]:
        return (self._row_of(0),) if self.game.costs_uncertain else ()

    def own_hessian_knows_data(self, x: PyTree) -> bool:
        every = self.together
        if every is not None:
            seen = self._one_sample()
            return bool(seen) and depends(lambda row: [model.hessian for model in every.models(x, x, *row)], seen)

        def hessian(agent: int, row: PyTree) -> Any:
            return _own_model(lambda x: self.game.costs[agent](x, row), agent, x, x[agent]).hessian

        uncertain = [i for i, cost in enumerate(self.game.costs) if cost.uncertain]
        return any(depends(lambda row, i=i: hessian(i, row), self._row_of(i)) for i in uncertain)

    def indifferent(self, x: PyTree) -> list[int]:
        if self.together is not None and not self.together.alone:
            return sorted(agent for batch in self.together.batches for agent in batch.indifferent())

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
    flat, unravel = flat_with(own)
    return model_of(lambda v: cost([*x[:agent], unravel(v), *x[agent + 1 :]]), flat)


def flat_with(tree: PyTree) -> tuple[Array, Callable[[Any], PyTree]]:
    """All entries in a row, and the way back, for traced points."""
    return ravel_pytree(tree)


def model_of(f: Callable[[Array], Array], flat: Array) -> Model:
    """Value, gradient and Hessian of f."""
    value, gradient = jax.value_and_grad(f)(flat)
    return Model(value, gradient, jax.jacfwd(forwards(jax.grad(f)))(flat))


def _returned(cost: Oracle) -> Callable[[PyTree, PyTree], Any]:
    """The shapes of what a cost returns."""
    if isinstance(cost, Exact):
        return lambda x, _: returned(cost.function, x)
    if isinstance(cost, General):
        return lambda x, xi: returned(cost.function, x, xi)
    return lambda x, xi: jax.eval_shape(cost, x, xi)


@jax.jit
def _evaluated(average: Average, point: PyTree) -> Any:
    return average(point)


@eqx.filter_jit
def _listed_models(costs: list[Average], agents: tuple[int, ...], x: PyTree, y: PyTree) -> list[Model]:
    return [_own_model(cost, agent, x, y[agent]) for cost, agent in zip(costs, agents, strict=True)]


@eqx.filter_jit
def _listed_values(costs: list[Average], x: PyTree, y: PyTree) -> list[Array]:
    return [cost([*x[:agent], y[agent], *x[agent + 1 :]]) for agent, cost in enumerate(costs)]


def growth(u: PyTree, v: PyTree, at_u: PyTree, at_v: PyTree) -> tuple[Array, Array]:
    """⟨Δ, d⟩/‖d‖² for gradients at u and v with d = v − u, and their size per unit of length."""
    d = subtract(v, u)
    length = jnp.maximum(norm(d), 1e-300)
    return inner(subtract(at_v, at_u), d) / length**2, (norm(at_u) + norm(at_v)) / length
