"""Aggregative games: agents alike but for parameters, each with cost f(x_i, x̄, ξ, p_i), x̄ the average strategy.

F_i(x) = ∂f/∂own + (1/N) ∂f/∂average, by automatic differentiation, mapped over the agents: O(N) time and memory.
x is one array (or a pytree of them) with a leading axis over agents, and so are the parameters.
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import count, known_arguments, real_array, refuse
from epszero._points import add
from epszero._shaped import Shaped
from epszero._types import PyTree
from epszero.oracles import AffineInFeatures, Agents
from epszero.oracles.recognise import required_arguments
from epszero.problems._base import Problem
from epszero.problems.backward import Backward, is_part
from epszero.problems.declared import Declared
from epszero.problems.examination import defined, examine, judges, refuse_undefined, refuse_vectors
from epszero.problems.feasible import refuse_infeasible
from epszero.problems.given import Parts, Shared
from epszero.problems.seen import Examination
from epszero.problems.shared import as_coupling


class AggregativeGame(Problem):
    """N agents with one cost function and parameters of their own.

    `cost(own, average, xi, own_parameters)` returns a number; without `xi` nothing is uncertain. `parameters`: a pytree
    whose arrays have a leading axis over the agents, or None, and then the cost does without them. `strategies`: a set
    or function with a leading axis over agents, or one for all alike; a dictionary of such where a strategy has parts.
    `private=True`: a sample has one row per agent, and agent i sees row i; a list of N `Samples` gives each its own.
    `ez.oracles.Affine(cost)` says that the cost is affine in xi; an iteration then costs the same for any number of
    samples. `pseudogradient(own, average, xi, own_parameters)`: the derivative in `own`, the average's share included;
    it is checked against automatic differentiation.
    """

    examined: ClassVar[bool] = True

    @property
    def uncertain_side(self) -> str:
        return "pseudogradient" if self.given_gradient else "cost"

    @known_arguments
    def __init__(  # noqa: PLR0913  (three make the game, the rest are rare)
        self,
        cost: Callable[..., Any],
        parameters: PyTree,
        strategies: Parts,
        shared: Shared | None = None,
        *,
        pseudogradient: Callable[..., Any] | None = None,
        private: bool = False,
        agents: int | None = None,
        declared: Declared | None = None,
        picture: Callable[..., Any] | None = None,
    ) -> None:
        _check_private(private)
        self.parameters = _stacked_arrays(parameters)
        A = Backward("strategies", strategies)
        self.agents = _agents(self.parameters, A, agents)
        if isinstance(strategies, list | tuple) and len(strategies) == self.agents > 1:
            refuse(
                "strategies",
                f"is a list of {self.agents}, which would mean {self.agents} parts of every strategy",
                "Give one set as a batch over the agents, or use ez.Game",
            )
        features = cost.features if isinstance(cost, AffineInFeatures) else None
        self.cost, uncertain = _four_arguments(
            "cost", cost.joint.function if isinstance(cost, AffineInFeatures) else cost, parameters is not None
        )
        self.gradient = _Gradient(self.cost, self.agents)
        gradient = self.gradient
        if pseudogradient is not None:
            gradient, same = _four_arguments("pseudogradient", pseudogradient, parameters is not None)
            if same != uncertain:
                refuse("pseudogradient", "must take the arguments of the cost, xi included or not", "Add or drop xi")
        self.given_gradient = pseudogradient is not None
        oracle = Agents(gradient, self.parameters, self.agents, uncertain=uncertain, features=features, private=private)
        self.oracle_of_agents = oracle
        super().__init__(A, oracle, declared, as_coupling(shared), picture)
        refuse_infeasible(self)

    @property
    def leading(self) -> tuple[int, ...] | None:
        return None if super().leading is None else (self.agents,)

    def _start(self) -> PyTree:
        def for_all(part: Any, point: Any) -> Any:
            if point is None or (isinstance(part, Shaped) and part.batch_shape):
                return point
            return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (self.agents, *np.shape(leaf))), point)

        return jax.tree.map(for_all, self.strategies.parts, self.strategies.start(), is_leaf=is_part)

    def check_point(self, argument: str, x: PyTree) -> None:
        super().check_point(argument, x)

        def check(part: Any, leaf: Any) -> None:
            least = 1 + (part.rank if isinstance(part, Shaped) else 0)
            if np.ndim(leaf) < least or np.shape(leaf)[0] != self.agents:
                refuse(
                    argument,
                    f"must have one row per agent, {self.agents} of them, each a strategy, but its shape "
                    f"is {np.shape(leaf)}",
                    "Stack the strategies; a number is a vector of length 1",
                )

        self.strategies.each(check, x)

    def check_costs(self, row: PyTree, x: PyTree) -> None:
        refuse_vectors(self, row, x)

    def examine(self, data: PyTree, x: PyTree, *, proved: bool = False) -> Examination:
        return examine(self, data, x, proved=proved)

    def judges(self, row: PyTree, x: PyTree) -> bool:
        return judges(self, row, x)

    def defined(self, data: PyTree, x: PyTree) -> bool:
        return defined(self, data, x)

    def refuse_undefined(self, data: PyTree, x: PyTree) -> None:
        refuse_undefined(self, data, x)


def _check_private(private: Any) -> None:
    if not isinstance(private, bool):
        refuse("private", f"must be True or False, but it is {private!r}", "Leave it out where all see one sample")


def _stacked_arrays(parameters: PyTree) -> PyTree:
    """Every leaf as an array; a plain list of numbers is one array, with an entry per agent."""
    numbers = isinstance(parameters, list | tuple) and all(isinstance(one, int | float) for one in parameters)
    if numbers and not hasattr(parameters, "_fields"):
        return _own_copy(parameters)
    if any(_lists_none(node) for node in jax.tree.leaves(parameters, is_leaf=_lists_none)):
        refuse("parameters", "holds None in a list", "Leave it out, or give a number per agent")
    return jax.tree.map(_own_copy, parameters)


def _lists_none(node: Any) -> bool:
    """None as a named part says that there is none of it; in a plain list it is a mistake."""
    plain = isinstance(node, list | tuple) and not hasattr(node, "_fields")
    return plain and any(one is None for one in node)


def _own_copy(leaf: Any) -> Any:
    """Read-only, and no longer the user's."""
    copy = np.array(real_array("parameters", leaf))
    copy.flags.writeable = False
    return copy


def _agents(parameters: PyTree, A: Backward, given: int | None) -> int:
    """N, from whatever has a leading axis over agents; refused where they differ."""
    counts: dict[str, int] = {} if given is None else {"agents": count("agents", given, least=1)}
    for path, leaf in jax.tree_util.tree_flatten_with_path(parameters)[0]:
        name = f"parameters{jax.tree_util.keystr(path)}"
        if np.ndim(leaf) == 0:
            refuse(
                name,
                "is one number, but parameters have a leading axis over the agents",
                "Give one entry per agent, or close over what all agents share",
            )
        counts[name] = len(leaf)
    for path, part in jax.tree_util.tree_flatten_with_path(A.parts, is_leaf=is_part)[0]:
        if isinstance(part, Shaped) and part.batch_shape:
            counts[f"strategies{jax.tree_util.keystr(path)}"] = part.batch_shape[0]
    if not counts:
        refuse("agents", "how many there are is said nowhere", "Pass agents=N, or parameters with one row per agent")
    first = next(iter(counts))
    for name, many in counts.items():
        if many != counts[first]:
            refuse(
                f"{first}, {name}",
                f"the leading axes count agents, but they are {counts[first]} and {many}",
                "Give each one row per agent",
            )
    return counts[first]


class _Wrapped:
    """A function of some of four arguments as one of all; a class, so that it can be pickled."""

    def __init__(self, function: Callable[..., Any], places: tuple[int, ...]) -> None:
        self.function, self.places = function, places

    def __call__(self, *four: Any) -> Any:
        return self.function(*[four[place] for place in self.places])


def _four_arguments(argument: str, function: Callable[..., Any], parametrised: bool) -> tuple[Callable[..., Any], bool]:
    """The function with all four arguments (own, average, ξ, parameters), and whether it takes ξ."""
    if not callable(function):
        refuse(
            argument,
            f"must be a function, but it is a {type(function).__name__}",
            "Pass cost(own, average, xi, own_parameters)",
        )
    many = required_arguments(function, unknown=4 if parametrised else 3)
    forms = {4: (0, 1, 2, 3), 3: (0, 1, 3)} if parametrised else {3: (0, 1, 2), 2: (0, 1)}
    if many not in forms:
        wanted = (
            "(own, average, xi, own_parameters), or these without xi"
            if parametrised
            else "(own, average, xi), or (own, average), as parameters is None"
        )
        refuse(argument, f"must take {wanted}, but it takes {many} arguments", "Write it with these arguments")
    return _Wrapped(function, forms[many]), 2 in forms[many]


class _Gradient:
    """(own, average, ξ, p) ↦ ∂f/∂own + (1/N) ∂f/∂average."""

    def __init__(self, cost: Callable[..., Any], agents: int) -> None:
        self.cost, self.agents = cost, agents

    def __call__(self, own: PyTree, average: PyTree, xi: PyTree, parameters: PyTree) -> PyTree:
        direct, through = jax.grad(self.cost, argnums=(0, 1))(own, average, xi, parameters)
        return add(direct, jax.tree.map(lambda leaf: jnp.asarray(leaf) / self.agents, through))
