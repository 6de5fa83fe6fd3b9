"""Before a game is run: do the costs return numbers, are they convex in the own strategy, are given gradients right?

A cost is not convex in the own strategy when its own Hessian is negative along a direction between two strategies.
Where the traced Hessian does not depend on x this is a proof for all of the domain, and the game is refused. Elsewhere
it is evidence at the points looked at. All averages are over all samples. The answer is a function of the game, the
data and the point; where own Hessians do not depend on the data, and gradients are not given, not even of these.
"""

from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import refuse
from epszero._double import to_numpy
from epszero._points import as_data, flat_of, shaped_like, shapes
from epszero._types import FloatArray, PyTree
from epszero.oracles import Average, Coupling, OwnData
from epszero.problems.backward import Backward
from epszero.problems.feasible import bent_constraint, points_around, refuse_infeasible
from epszero.problems.lines import looked_along
from epszero.problems.seen import Examination, NotConvex
from epszero.problems.shared import AffineConstraint
from epszero.problems.viewing import view_of
from epszero.problems.views import View

if TYPE_CHECKING:
    from epszero.problems.aggregative import AggregativeGame
    from epszero.problems.game import Game
    from epszero.problems.minimization import Minimization

BENT = 1e-8  # negative curvature, relative to the largest, beyond rounding
MANY = 100_000  # entries of x beyond which points far away are spared
UNDEFINED = "A cost is NaN at a point of the domain that was looked at."
WRONG = 1e-6  # relative error of a gradient written by hand


class ConvexityWarning(UserWarning):
    """A cost or a shared constraint was seen not to be convex where it should be."""


def examine(game: "Game | AggregativeGame", data: PyTree, x: PyTree, *, proved: bool) -> Examination:
    """Refuse what can be proved wrong; tell what was only seen, near x and far from it.

    `proved`: the costs are known to be convex, and their values need not be looked at along lines.
    """
    refuse_infeasible(game, x)
    view = view_of(game, data, x)
    points = points_around(game.strategies, x)
    if sum(np.size(leaf) for leaf in jax.tree.leaves(x)) < MANY:
        points += points_around(game.strategies, x, spread=100.0)[1:]
    if game.given_gradient:
        _refuse_wrong_gradient(game, view, data, points)
    cost, constraint = _bent_cost(view, points), bent_constraint(game.coupling, points)
    if constraint is None and game.coupling is not None:
        constraint = _constraint_along(game.coupling, game.strategies, x)
    undefined = False
    if cost is None and not proved:
        cost, undefined = _seen_along(view, game.strategies, x)
    indifferent = tuple(
        f"{view.cost_name(i)} does not depend on the strategy of agent {i}: was another one meant?"
        for i in view.indifferent(x)[:3]
    )
    bent = tuple(one for one in (cost, constraint) if one is not None)
    notes = (*indifferent, *([UNDEFINED] if undefined else []))
    return Examination(view.unit_steps(x), bent, notes, undefined, _all_finite(view, x))


def _seen_along(view: View, strategies: Backward, x: PyTree) -> tuple[NotConvex | None, bool]:
    """What the values of the costs tell along lines: that one is not convex, or not defined everywhere."""
    seen = looked_along(lambda y: view.values(x, y), strategies, x)
    if seen.above is None:
        return None, seen.undefined
    agent, by, value = seen.above
    evidence = f"between two strategies its value is {value:.4g}, which is {by:.3g} above the chord"
    return _seen(view.cost_name(agent), agent, evidence), seen.undefined


def _constraint_along(coupling: Coupling, strategies: Backward, x: PyTree) -> NotConvex | None:
    """What the values of shared constraints tell along lines."""
    if isinstance(coupling, AffineConstraint) and coupling.linear is None:
        return None

    def values(y: PyTree) -> FloatArray:
        found: Any = to_numpy(_constraint_at(coupling.traced(x), y))[0]
        return np.concatenate([found, -found]) if coupling.affine else found  # linear: on both sides

    above = looked_along(values, strategies, x).above
    if above is None:
        return None
    said = f"between two points its value is {abs(above.value):.4g}, which is {above.by:.3g} off the chord"
    row, kind = above.place % coupling.rows(x), "linear" if coupling.affine else "convex"
    return NotConvex("shared", None, f"constraint {row} is not {kind}: {said}.")


def examine_loss(problem: "Minimization", data: PyTree, x: PyTree) -> Examination:
    """The same for a minimisation, by the values of the average loss."""
    average = problem.loss.average(data, x)
    finite = loss_is_defined(problem, data, x)
    seen = looked_along(lambda y: np.atleast_1d(to_numpy(_value_at(average, y))), problem.strategies, x)
    notes = (UNDEFINED,) if seen.undefined else ()
    if seen.above is None:
        return Examination(notes=notes, undefined=seen.undefined, finite=finite)
    bent = NotConvex(
        "loss",
        None,
        f"is not convex: between two points of the domain its average is {seen.above.value:.4g}, which is "
        f"{seen.above.by:.3g} above the chord. What is found is stationary, and need not be a minimum.",
    )
    return Examination(bent=(bent,), notes=notes, undefined=seen.undefined, finite=finite)


def loss_is_defined(problem: "Minimization", data: PyTree, x: PyTree) -> bool:
    """Whether the average loss has a value at x."""
    return bool(np.isfinite(to_numpy(_value_at(problem.loss.average(data, x), x))))


def refuse_undefined_loss(problem: "Minimization", data: PyTree, x: PyTree) -> None:
    """Refuse a start at which the average loss is NaN or infinite."""
    if not loss_is_defined(problem, data, x):
        refuse(
            "loss",
            "is NaN or infinite at the start",
            "Pass x0 where it is defined, and keep the domain away from where it is not",
        )


@eqx.filter_jit
def _value_at(average: Average, x: PyTree) -> Any:
    return average(x)


def judges(game: "Game | AggregativeGame", row: PyTree, x: PyTree) -> bool:
    """Whether `examine` depends on the data: given gradients are compared at samples, own Hessians may know them."""
    return game.given_gradient or view_of(game, as_data(row), x).own_hessian_knows_data(x)


def defined(game: "Game | AggregativeGame", data: PyTree, x: PyTree) -> bool:
    """Whether every cost has a value at x, and a derivative."""
    return _all_finite(view_of(game, data, x), x)


def _all_finite(view: View, x: PyTree) -> bool:
    return all(np.isfinite(part).all() for _, model in view.some_models(x) for part in (model.value, model.gradient))


def refuse_undefined(game: "Game | AggregativeGame", data: PyTree, x: PyTree) -> None:
    """Refuse a start at which a cost, its derivatives or a shared constraint is NaN or infinite."""
    view = view_of(game, data, x)
    remedy = "Pass x0 where it is defined, and keep the strategies away from where it is not"
    for agent, model in view.some_models(x):
        if not all(np.isfinite(part).all() for part in (model.value, model.gradient)):
            refuse(
                view.cost_name(agent), f"is NaN or infinite, or its derivative is, at the start (agent {agent})", remedy
            )
    if game.coupling is not None:
        value, slope = to_numpy(_constraint_at(game.coupling.traced(x), x))
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
            refuse(
                name,
                f"must return one number, but it returns an array of shape {shape}",
                "Sum over what it should add up, or index the entry that is meant",
            )
        if not jnp.issubdtype(kind, jnp.floating):
            refuse(name, f"must return one real number, but it returns {kind}", "Compute it from x in floating point")


def _bent_cost(view: View, points: list[PyTree]) -> NotConvex | None:
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
            return _seen(name, agent, evidence)
    for point, other in zip(points, [*points[1:], points[0]], strict=True):
        slopes, sizes = view.along(point, other)
        bent = np.flatnonzero(slopes < -BENT * sizes)
        if len(bent):
            agent = int(bent[0])
            fallen = f"its slope falls between two strategies by {-slopes[agent]:.3g} times their distance"
            return _seen(view.cost_name(agent), agent, fallen)
    return None


def _seen(name: str, agent: int, evidence: str) -> NotConvex:
    return NotConvex(
        name,
        agent,
        f"is not convex in the own strategy of agent {agent} at a point that was looked at: {evidence}. What is found "
        "may not be an equilibrium; solution.check_equilibrium() searches from several points.",
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
            refuse(
                "pseudogradient",
                f"must return one derivative per strategy, shaped {shapes(right)}, but it returns {shapes(given)}",
                "Return a list like x, or give one function per agent",
            )
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
