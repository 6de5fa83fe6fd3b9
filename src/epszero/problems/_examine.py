"""Before a game is run: do the costs return numbers, are they convex in the own strategy, are given gradients right?

A cost is not convex in the own strategy when its own Hessian is negative along a direction between two strategies.
Where the traced Hessian does not depend on x this is a proof for all of the domain, and the game is refused. Elsewhere
it is evidence at the points looked at, and a `ConvexityWarning` says where. All averages are over all samples.
"""

import warnings
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import refuse
from epszero._double import to_numpy
from epszero._points import shapes
from epszero._types import FloatArray, PyTree
from epszero.oracles import Coupling, OwnData
from epszero.problems._viewing import view_of
from epszero.problems._views import View, flat_of, shaped_like
from epszero.problems.feasible import bent_constraint, points_around, refuse_infeasible

if TYPE_CHECKING:
    from epszero.problems.aggregative import AggregativeGame
    from epszero.problems.game import Game

BENT = 1e-8  # negative curvature, relative to the largest, beyond rounding
MANY = 100_000  # entries of x beyond which points far away are spared
WRONG = 1e-6  # relative error of a gradient written by hand


class ConvexityWarning(UserWarning):
    """A cost or a shared constraint was seen not to be convex where it should be."""


def examine(game: "Game | AggregativeGame", data: PyTree, x: PyTree) -> tuple[list[str], bool]:
    """Refuse what can be proved wrong; warn of, and note, what was only seen. Also: would other data say the same?"""
    refuse_infeasible(game, x)
    view = view_of(game, data, x)
    points = points_around(game.strategies, x)
    if sum(np.size(leaf) for leaf in jax.tree.leaves(x)) < MANY:
        points += points_around(game.strategies, x, spread=100.0)[1:]
    if game.given_gradient:
        _refuse_wrong_gradient(game, view, data, points)
    _refuse_undefined(game, view, x)
    game.unit_steps = view.unit_steps(x)
    notes = [note for note in (_bent_cost(game, view, points), bent_constraint(game.coupling, points)) if note]
    for note in notes:
        warnings.warn(note, ConvexityWarning, stacklevel=6)
    notes += [
        f"{view.cost_name(i)} does not depend on the strategy of agent {i}: was another one meant?"
        for i in view.indifferent(x)[:3]
    ]
    return notes, not game.given_gradient and not view.own_hessian_knows_data(x)


def _refuse_undefined(game: "Game | AggregativeGame", view: View, x: PyTree) -> None:
    """Refuse a start at which a cost, its derivatives or a shared constraint is NaN or infinite."""
    remedy = "Pass x0 where it is defined, and keep the strategies away from where it is not"
    for agent, model in view.some_models(x):
        if not all(np.isfinite(part).all() for part in (model.value, model.gradient)):
            refuse(
                view.cost_name(agent), f"is NaN or infinite, or its derivative is, at the start (agent {agent})", remedy
            )
    if game.coupling is not None:
        value, slope = to_numpy(_constraint_at(game.coupling, x))
        if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((value, slope))):
            refuse("shared", "is not finite, or its derivative is not, at the start", remedy)


@eqx.filter_jit
def _constraint_at(coupling: Coupling, x: PyTree) -> Any:
    value = coupling.value(x)
    return value, coupling.pull(x, jnp.ones_like(value))


def refuse_vectors(game: "Game | AggregativeGame", row: PyTree, x: PyTree) -> None:
    """Refuse a cost that does not return one number."""
    for name, value in view_of(game, None, x).cost_values(row, x):
        shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
        if shape is None or kind is None:
            refuse(name, f"must return one number, but it returns a {type(value).__name__}", "Return the cost alone")
        if shape != ():
            refuse(name, f"must return one number, but it returns an array of shape {shape}",
                   "Sum over what it should add up, or index the entry that is meant")  # fmt: skip
        if not jnp.issubdtype(kind, jnp.floating):
            refuse(name, f"must return one real number, but it returns {kind}", "Compute it from x in floating point")


def _bent_cost(game: "Game | AggregativeGame", view: View, points: list[PyTree]) -> str | None:
    """The evidence that some agent's cost is not convex in its own strategy; refused where it is a proof."""
    for point in points:
        for agent, hessian in view.bent_hessians(point, BENT):
            direction = _downward(view, agent, hessian, point)
            if direction is None:
                continue
            curvature = float(direction @ hessian @ direction / (direction @ direction))
            name, evidence = view.cost_name(agent), f"its curvature there is {curvature:.3g} along a direction"
            if view.own_hessian_is_constant(agent, point):
                refuse(
                    name,
                    f"must be convex in the own strategy of agent {agent}, but its second derivative is constant and "
                    f"negative along a direction between two of its strategies ({curvature:.3g})",
                    "Correct the sign, or add a convex term; an agent that maximises has the cost −payoff",
                )
            return _sentence(name, agent, evidence)
    for point, other in zip(points, [*points[1:], points[0]], strict=True):
        slopes, sizes = view.along(point, other)
        bent = np.flatnonzero(slopes < -BENT * sizes)
        if len(bent):
            agent = int(bent[0])
            return _sentence(view.cost_name(agent), agent, "its slope falls between two strategies "
                             f"by {-slopes[agent]:.3g} times their distance")  # fmt: skip
    return None


def _sentence(name: str, agent: int, evidence: str) -> str:
    return (
        f"{name}: is not convex in the own strategy of agent {agent} at a point that was looked at: {evidence}. What "
        "is found may not be an equilibrium; solution.check_equilibrium() searches from several points."
    )


def _downward(view: View, agent: int, hessian: FloatArray, point: PyTree) -> FloatArray | None:
    """A direction between two strategies of the agent along which its Hessian is negative."""
    values, vectors = np.linalg.eigh(hessian)
    rng = np.random.default_rng(1)
    own, side = view.own(point, agent), view.own_side(agent)
    size = 1 + np.abs(own)

    tree = view.own_tree(point, agent)
    trials = np.stack([vectors[:, 0], *rng.normal(size=(8, len(own)))])
    ends = [shaped_like(tree, end) for end in (*(own + size * trials), *(own - size * trials))]
    inside = side.into_domain(jax.tree.map(lambda *leaves: np.stack(leaves), *ends))  # many strategies of one agent
    ends = np.stack([flat_of(jax.tree.map(lambda leaf, i=i: leaf[i], inside)) for i in range(len(ends))])
    for direction in ends[: len(trials)] - ends[len(trials) :]:
        length = np.linalg.norm(direction)
        if length > 1e-9 and direction @ hessian @ direction < -BENT * np.abs(values).max() * length**2:
            return direction
    return None


def _refuse_wrong_gradient(game: "Game | AggregativeGame", view: View, data: PyTree, points: list[PyTree]) -> None:
    """Compare the gradient written by hand with automatic differentiation at random points and samples."""
    for point, row in zip(points, _rows(data, len(points)), strict=True):
        given, right = view.given_gradient(point, row), view.true_gradient(point, row)
        if jax.tree.structure(given) != jax.tree.structure(right) or shapes(given) != shapes(right):
            refuse("pseudogradient", f"must return one derivative per strategy, shaped {shapes(right)}, but it returns "
                   f"{shapes(given)}", "Return a list like x, or give one function per agent")  # fmt: skip
        for agent in range(game.agents):
            mine, other = view.own(given, agent), view.own(right, agent)
            gap = np.linalg.norm(mine - other)
            if not gap <= WRONG * (np.linalg.norm(mine) + np.linalg.norm(other)) + 1e-12:
                refuse(
                    "pseudogradient",
                    f"differs from the derivative of the cost of agent {agent} by {gap:.3g} at a random point, where "
                    f"that derivative has norm {np.linalg.norm(other):.3g}",
                    "Correct it, or leave it out and let automatic differentiation do it",
                )


def _rows(data: PyTree, many: int) -> list[PyTree]:
    """`many` samples from the data: first, middle, last."""

    def rows(values: PyTree) -> list[PyTree]:
        if values is None:
            return [None] * many
        s = len(jax.tree.leaves(values)[0])
        return [jax.tree.map(lambda leaf, j=j: leaf[j], values) for j in np.linspace(0, s - 1, many).astype(int)]

    if isinstance(data, OwnData):
        return [OwnData(own) for own in zip(*(rows(values) for values in data), strict=True)]
    return rows(data)
