"""Nash games: agent i chooses x_i to minimise E f_i(x, ξ) + g_i(x_i), where x holds everybody's strategies.

An equilibrium is a zero of (∂g_1 × … × ∂g_N) + F with the pseudogradient F_i = ∇_{x_i} E f_i, by automatic
differentiation of f_i alone. Each f_i must be convex in x_i. With shared constraints h(x) ≤ 0 the variational
equilibrium is sought, the one with the same multipliers for all agents.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import jax

from epszero._checks import known_arguments, refuse
from epszero._memory import remembered, shape_of
from epszero._types import PyTree
from epszero.functions import SeparableSum
from epszero.oracles import Blocks, Exact, General, Opaque, Oracle, OwnData, as_oracle
from epszero.oracles.alike import OwnGradient, Together, together
from epszero.problems._base import Problem
from epszero.problems.backward import Backward, is_part
from epszero.problems.declared import Declared
from epszero.problems.examination import defined, examine, judges, refuse_undefined, refuse_vectors
from epszero.problems.feasible import refuse_infeasible
from epszero.problems.given import Parts, Shared
from epszero.problems.seen import Examination
from epszero.problems.shared import as_coupling
from epszero.sets import Product


class Game(Problem):
    """N agents with costs and strategy sets of their own.

    `costs`: a list of N functions `f(x, xi)`, or `f(x)`, of the list x of all strategies, each returning a number.
    `strategies`: a list of N sets, or functions g_i for nonsmooth local terms. `shared`: constraints on all strategies
    together, (G, b) for Gx ≤ b, a function h for h(x) ≤ 0, or a list of these. `pseudogradient`: your own gradients,
    one function `F(x, xi)` that returns a list like x or a list of N functions; they are checked against automatic
    differentiation before a run. Pass one `Samples` for all agents, or a list with one per agent.
    """

    examined: ClassVar[bool] = True

    @property
    def uncertain_side(self) -> str:
        """The argument that holds the oracle, for messages."""
        return "pseudogradient" if self.given_gradient else "costs"

    @known_arguments
    def __init__(
        self,
        costs: Sequence[Callable[..., Any]],
        strategies: Sequence[Parts] | Product | SeparableSum,
        shared: Shared | None = None,
        *,
        pseudogradient: Callable[..., Any] | Sequence[Callable[..., Any]] | None = None,
        declared: Declared | None = None,
        picture: Callable[..., Any] | None = None,
    ) -> None:
        if not isinstance(costs, list | tuple) or not costs:
            what = "empty" if isinstance(costs, list | tuple) else f"a {type(costs).__name__}"
            refuse(
                "costs",
                f"must be a list of functions, one per agent, but it is {what}",
                "Write costs=[f_1, ..., f_N], or use ez.AggregativeGame for agents alike",
            )
        sets = _listed(strategies)
        for i, one in enumerate(sets):
            if not jax.tree.leaves(one, is_leaf=is_part):
                refuse(
                    f"strategies[{i}]", "holds no set or function", "Give each agent one; ez.sets.WholeSpace() is free"
                )
        if len(sets) != len(costs):
            refuse(
                "costs, strategies", f"{len(costs)} costs for {len(sets)} strategy sets", "Give one of each per agent"
            )
        self.costs = [as_oracle(f"costs[{i}]", cost) for i, cost in enumerate(costs)]
        for i, cost in enumerate(self.costs):
            if isinstance(cost, Blocks):
                refuse(f"costs[{i}]", "must be one function", "Add its parts up in one function")
        self.gradients = [cost.transformed(own_gradient(i)) for i, cost in enumerate(self.costs)]
        oracle: Oracle = Blocks(list(self.gradients))
        if pseudogradient is not None:
            oracle = as_oracle("pseudogradient", _listed_if_tuple(pseudogradient))
            if oracle.uncertain != any(cost.uncertain for cost in self.costs):
                refuse("pseudogradient", "must take a sample where the costs do, and only there", "Add or drop xi")
        self.given_gradient = pseudogradient is not None
        super().__init__(Backward("strategies", sets), oracle, declared, as_coupling(shared), picture)
        refuse_infeasible(self)

    @property
    def agents(self) -> int:
        """N."""
        return len(self.costs)

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

    def own_costs(self, data: PyTree, x: PyTree) -> list[Any]:
        """Every agent's average cost, a function of all strategies."""
        return [cost.average(own, x) for cost, own in zip(self.costs, self._own(data), strict=True)]

    def together(self, x: PyTree, row: PyTree) -> Together | None:
        """All costs, for points like x and a sample like `row`; None where they do not see one and the same."""
        plain = [cost.function for cost in self.costs if isinstance(cost, General if self.costs_uncertain else Exact)]
        if isinstance(row, OwnData) or len(plain) < self.agents:
            return None
        seen = (row,) if self.costs_uncertain else ()
        return remembered(self, ("together", shape_of((x, seen))), lambda: together(plain, x, *seen))

    @property
    def costs_uncertain(self) -> bool:
        """Whether a cost takes a sample."""
        return any(cost.uncertain for cost in self.costs)

    def _own(self, data: PyTree) -> list[PyTree]:
        return data if isinstance(data, OwnData) else [data] * self.agents


def with_own(x: Sequence[PyTree], i: int, own: PyTree) -> list[PyTree]:
    """x with agent i's strategy replaced."""
    return [*x[:i], own, *x[i + 1 :]]


def own_gradient(i: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """f ↦ ∇_{x_i} f."""
    return lambda f: OwnGradient(Opaque(f), i)


def _listed(strategies: Sequence[Parts] | Product | SeparableSum) -> list[Parts]:
    if isinstance(strategies, Product):
        strategies = strategies.sets
    if isinstance(strategies, SeparableSum):
        strategies = strategies.functions
    if not isinstance(strategies, list | tuple):
        refuse(
            "strategies",
            f"must be a list of sets or functions, one per agent, but it is a {type(strategies).__name__}",
            "Write strategies=[set_1, ..., set_N]",
        )
    return list(strategies)


def _listed_if_tuple(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given
