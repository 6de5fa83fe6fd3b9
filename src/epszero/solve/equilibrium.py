"""Is it an equilibrium? Each agent's best response to the others, by solvers that have nothing to do with splitting.

Where the strategy sets have a conic form: sequential quadratic programming, each programme by Clarabel (one is enough
for a quadratic cost), shared constraints included, a convex one by its tangents. For the rest (nonsmooth local terms):
L-BFGS by SciPy on the forward-backward envelope, a smooth function with the same minimisers, shared constraints by an
augmented Lagrangian.

Beside the saving found there is a bound that holds for convex costs and constraints whatever a solver does: for every y
with h(y, x_{−i}) ≤ [h(x)]₊, that is, all that best responses may be,
    f_i(x) + g_i(x_i) − f_i(y, x_{−i}) − g_i(y) ≤ g_i(x_i) + g_i*(−v_i) + ⟨v_i, x_i⟩ + λᵀ[−h(x)]₊,  v = F̂(x) + ∇h(x)ᵀλ
(the gradient inequality for f_i and for λᵀh gives ⟨v_i, x_i − y⟩ + λᵀ(h(y, x_{−i}) − h(x)), and λ ≥ 0; g_i* is the
support function of a set).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import equinox as eqx
import jax
import numpy as np

from epszero._checks import count, refuse
from epszero._double import double, to_numpy
from epszero._types import FloatArray, PyTree
from epszero.oracles import Average, PrimalDual
from epszero.problems import AggregativeGame, Game, Problem
from epszero.problems.viewing import view_of
from epszero.sets import Set
from epszero.solve.best_response import best_responses

MANY = 1000  # agents beyond which only the most suspicious are looked at
SUSPICIOUS = 100


@dataclass(frozen=True)
class EquilibriumCheck:
    """What deviating alone could bring, and how well shared constraints are met."""

    agents: tuple[int, ...]  # whose best responses were computed
    saving: FloatArray  # of each of them: cost now minus cost of the best response found; NaN where a solver failed
    responses: tuple[FloatArray, ...] = field(repr=False)  # these best responses, each a flat array
    at_most: FloatArray = field(repr=False)  # of all agents: a bound, for convex costs; ∞ where there is none
    violation: float | None = None  # the largest entry of h(x), 0 where all hold; None without shared constraints
    complementarity: float | None = None  # the largest |λ_j h_j(x)|
    multipliers: FloatArray | None = None

    @property
    def largest(self) -> float:
        """The largest saving found; NaN where none was."""
        return float(np.nanmax(self.saving)) if not np.isnan(self.saving).all() else float("nan")

    @property
    def beyond_convex(self) -> bool:
        """Whether an agent saves more than it could if its cost were convex, beyond what solvers are off by."""
        saving, bound = np.nan_to_num(self.saving, nan=0.0), self.at_most[list(self.agents)]
        return bool(np.any(saving > bound + 1e-6 * (np.abs(saving) + np.abs(bound)) + 1e-9))

    def __str__(self) -> str:
        many = f"{len(self.agents)} agent{'s' if len(self.agents) > 1 else ''}, each deviating alone"
        failed = int(np.isnan(self.saving).sum())
        text = f"the largest saving of {many}, is {self.largest:.3g}" + (f" ({failed} not found)" if failed else "")
        bounded = self.at_most[np.isfinite(self.at_most)]
        if self.beyond_convex:
            text += "; that is more than convex costs allow: a cost is not convex, or jumps"
        elif len(bounded):
            text += f"; for convex costs none of {len(bounded)} saves more than {max(bounded.max(), 0.0):.3g}"
        if len(bounded) < len(self.at_most):
            text += f"; no bound for {len(self.at_most) - len(bounded)} with unbounded strategies"
        if self.multipliers is not None:
            text += (
                f"; shared constraints violated by at most {self.violation:.3g}, complementary up to "
                f"{self.complementarity:.3g}, multipliers from {self.multipliers.min():.3g} to "
                f"{self.multipliers.max():.3g}"
            )
        return text


def equilibrium_check(problem: Any, data: PyTree, point: PyTree, agents: Any) -> EquilibriumCheck:
    """See `Solution.check_equilibrium`."""
    if not isinstance(problem, Game | AggregativeGame):
        refuse("check_equilibrium", f"is for games, and this is a {type(problem).__name__}", "Use check()")
    x = point.x if isinstance(point, PrimalDual) else point
    multipliers = point.multipliers if isinstance(point, PrimalDual) else None
    with double():
        coupling = problem.coupling
        h = None if coupling is None else np.asarray(coupling.value(x))
        at_most = np.maximum(_bounds(problem, data, x, multipliers, h), 0.0)
        chosen = _chosen(problem.agents, agents, at_most)
        found = best_responses(problem, view_of(problem, data, x), x, chosen)
    saving = np.array([one.saving for one in found])
    responses = tuple(one.strategy for one in found)
    if h is None or multipliers is None:
        return EquilibriumCheck(chosen, saving, responses, at_most)
    return EquilibriumCheck(
        chosen,
        saving,
        responses,
        at_most,
        float(np.max(np.maximum(h, 0.0))),
        float(np.max(np.abs(multipliers * h))),
        multipliers,
    )


def _chosen(many: int, given: Any, at_most: FloatArray) -> tuple[int, ...]:
    if given is not None:
        listed = list(given) if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) else [given]
        chosen = tuple(count("agents", agent) for agent in listed)
        if not chosen or max(chosen) >= many:
            refuse("agents", f"must be numbers from 0 to {many - 1}", "Leave it out for all of them")
        return chosen
    if many <= MANY:
        return tuple(range(many))
    return tuple(int(agent) for agent in np.sort(np.argsort(at_most)[-SUSPICIOUS:]))


def _bounds(
    problem: Game | AggregativeGame, data: PyTree, x: PyTree, multipliers: Any, h: FloatArray | None
) -> FloatArray:
    """The bound of the header, one per agent."""
    point = x if multipliers is None else PrimalDual(x, multipliers)
    v = to_numpy(_evaluated(problem.oracle.average(data, point), point))
    per_agent = fenchel_gaps(problem, x, v.x if isinstance(v, PrimalDual) else v)
    return per_agent if h is None or multipliers is None else per_agent + float(multipliers @ np.maximum(-h, 0.0))


def fenchel_gaps(problem: Problem, x: PyTree, v: PyTree) -> FloatArray:
    """g_i(x_i) + g_i*(−v_i) + ⟨v_i, x_i⟩ = max_y ⟨v_i, x_i − y⟩ + g_i(x_i) − g_i(y) for each agent or all."""
    gaps = problem.strategies.each(_gap, x, v)
    if isinstance(problem, AggregativeGame):
        leaves = [np.reshape(gap, (problem.agents, -1)).sum(axis=1) for gap in jax.tree.leaves(gaps)]
        return np.sum(leaves, axis=0)
    blocks = gaps if isinstance(problem, Game) else [gaps]
    return np.array([sum(np.sum(gap) for gap in jax.tree.leaves(own)) for own in blocks])


@eqx.filter_jit
def _evaluated(average: Average, point: PyTree) -> PyTree:
    return average(point)


def _gap(part: Any, x: Any, v: Any) -> Any:
    """g(x) + g*(−v) + ⟨v, x⟩ for every row of the batch."""
    rows, slope = np.atleast_1d(x), np.atleast_1d(v)
    if isinstance(part, Set):
        fenchel = part.support(-slope)
    elif callable(getattr(part, "conjugate", None)):
        fenchel = part(rows) + part.conjugate(-slope)
    else:
        return np.full(np.shape(rows)[:1], np.inf)  # a bare resolvent has no value
    inner = np.sum((rows * slope).reshape(*np.shape(fenchel), -1), axis=-1)
    return np.asarray(fenchel + inner)
