"""The curvature of agents' own costs, where it is constant: what convexity and savings can be read off exactly.

The own Hessian of agent i is ∂F_i/∂x_i, the others held still. It is proved to be constant where degrees (_trace) say
that the own gradient is affine in the own strategy, with a slope that neither other strategies nor samples enter. A
minimisation is a game of one agent.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from epszero._points import as_data, entries, flat_of, shaped_like
from epszero._trace.degrees import degrees
from epszero._types import FloatArray, PyTree
from epszero.facts.affine import ConstantJacobian
from epszero.facts.gram import power_near
from epszero.facts.provenance import Known, Provenance, Unknown, worst
from epszero.oracles import OwnData
from epszero.problems import AggregativeGame, Game, Problem
from epszero.problems.game import with_own
from epszero.problems.viewing import view_of

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

HESSIANS = 4_000_000  # entries of all own Hessians together that are written down
EPS = 32 * float(np.finfo(np.float64).eps)
ROUNDING = 1e-9  # relative to the largest entry: an eigenvalue this little below 0 is rounding


@dataclass(frozen=True, eq=False)
class OwnHessians:
    """Symmetric, one for each agent, in the order of the agents."""

    matrices: list[FloatArray]

    @cached_property
    def least(self) -> float:
        """The least eigenvalue of all."""
        return min(float(np.linalg.eigvalsh(M)[0]) for M in self.matrices)

    @cached_property
    def convex(self) -> bool:
        """Whether no own cost bends down, beyond rounding."""
        return self.least >= -ROUNDING * max(float(np.abs(M).max()) for M in self.matrices)

    @cached_property
    def inverses(self) -> list[FloatArray] | None:
        """M_i⁻¹, at least, where all own costs are strongly convex beyond rounding; None where one is not."""
        lowered = [M - _room(M) * np.eye(len(M)) for M in self.matrices]
        if not all(float(np.linalg.eigvalsh(M)[0]) > 0 for M in lowered):
            return None
        return [np.asarray(np.linalg.inv(M), dtype=np.float64) for M in lowered]


def _room(M: FloatArray) -> float:
    """What an eigenvalue may be off by, of M itself and of what LAPACK makes of it."""
    unit = power_near(M)
    return EPS * max(len(M), 4) * float(np.linalg.norm(M / unit)) * unit


def places_of(problem: Problem, x: PyTree) -> list[Any]:
    """Which entries of a flat point belong to each agent."""
    numbers = np.arange(len(flat_of(x)), dtype=float)
    if not isinstance(problem, Game | AggregativeGame):
        return [numbers.astype(int)]
    tree = shaped_like(x, numbers)
    if isinstance(problem, Game):
        return [flat_of(own).astype(int) for own in tree]
    rows = [np.reshape(leaf, (problem.agents, -1)) for leaf in jax.tree.leaves(tree)]
    return list(np.concatenate(rows, axis=1).astype(int))


def own_hessians(problem: Problem, row: PyTree, x: PyTree, jacobian: ConstantJacobian | None) -> OwnHessians | Unknown:
    """Where they are proved to depend on neither strategies nor samples."""
    if not isinstance(problem, Game | AggregativeGame):
        if jacobian is None:
            return Unknown("the Jacobian is not known to be constant")
        return OwnHessians([(jacobian.jacobian + jacobian.jacobian.T) / 2])
    sizes = [entries(own) for own in x] if isinstance(problem, Game) else [entries(x) // problem.agents]
    if sum(size**2 for size in sizes) * (problem.agents // len(sizes)) > HESSIANS:
        return Unknown(f"the own Hessians of {problem.agents} agents are too many to be written down")
    if not _own_gradients_are_affine(problem, row, x):
        return Unknown("the own Hessians are not known to be constant")
    view = view_of(problem, None if row is None else as_data(row), x)
    matrices = [(model.hessian + model.hessian.T) / 2 for model in view.models(x, x, range(problem.agents))]
    if not all(np.isfinite(M).all() for M in matrices):
        return Unknown("an own Hessian is not finite")
    return OwnHessians(matrices)


def convex_costs(facts: "Facts") -> Known | Unknown:
    """On whose word every cost is convex in the own strategy, as games and minimisations take for granted."""
    derivative, hessians = facts.derivative, facts.own_hessians
    if isinstance(derivative, Unknown):
        return derivative
    if isinstance(hessians, OwnHessians):
        if not hessians.convex:
            return Unknown(f"own costs are not convex: an own Hessian has the eigenvalue {hessians.least:.3g}")
        return Known(worst([Provenance.EXACT, derivative.provenance]), "constant own Hessians")
    if facts.ruled.convex:
        return Known(worst([Provenance.VERIFIED, derivative.provenance]), facts.ruled.convex)
    word = "ez.declare(convex=True)" if facts.problem.declared.convex else "what the problem takes for granted"
    return Known(Provenance.DECLARED, word)


def _own_gradients_are_affine(game: Game | AggregativeGame, row: PyTree, x: PyTree) -> bool:
    """Whether each own gradient is proved to be affine in the own strategy, with a slope that nothing else enters."""
    rows = list(row) if isinstance(row, OwnData) else [row] * game.agents
    together = game.together(x, row) if isinstance(game, Game) else None
    if together is not None:
        seen = () if row is None else (row,)
        found = [degrees(lambda own, rest: together.slopes(rest[0], own, *rest[1]), x, (x, seen))]
    elif isinstance(game, Game):
        parts = game.gradients
        found = [
            degrees(lambda own, rest, i=i: parts[i](with_own(rest[0], i, own), rest[1]), x[i], (x, seen))
            for i, seen in enumerate(rows)
        ]
    else:
        agents = game.oracle_of_agents
        own, parameters = (jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree) for tree in (x, game.parameters))
        alone = agents.private and not isinstance(row, OwnData)
        seen = jax.tree.map(lambda leaf: leaf[0], rows[0]) if alone else rows[0]

        def gradient(own: PyTree, rest: PyTree) -> PyTree:
            average = jax.tree.map(lambda mean, mine: mean + mine / game.agents, rest[0], own)
            xi = rest[1] if agents.features is None or rest[1] is None else agents.features((), rest[1])
            return game.gradient(own, average, xi, parameters)

        found = [degrees(gradient, own, (own, seen))]
    return all(degree.u <= 1 and not degree.mixed for degree in found)
