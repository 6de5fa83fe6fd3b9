"""Whether B is the derivative of the costs: of their values, at every point of the domain and for every sample.

What a cost does is told by its values. Automatic differentiation gives their derivative where they have one; of a jump
(floor, sign, where, an index that depends on x) it knows nothing, and custom_jvp, custom_vjp and stop_gradient make it
something else. So three things are proved, each by following the traced operations:
- the values do not jump as the own strategy moves through the domain, and are defined there (intervals);
- no derivative on the way was written by hand (_trace/derivatives.py), and B was not given either;
- the derivative does not jump: then the values are its integral along every segment, so it is the gradient everywhere.
Without the last there are kinks, at which a derivative by automatic differentiation need not be a subgradient: of
relu(x) − relu(−x), which is x, it gives 0 at 0. A derivative written by hand is the user's word, compared with that of
the values at some points; all else needs `ez.declare(convex=True)`, which says that what is used are subgradients.
Cost: one evaluation of each cost on intervals; first with nothing known of x and ξ, which is enough for most.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._points import flat_of
from epszero._trace.derivatives import written_by_hand
from epszero._trace.intervals import Enclosed, Interval, NoEnclosure, without_custom_rules
from epszero._trace.programs import UNTRACED
from epszero._types import PyTree
from epszero.facts.domains import Bounds
from epszero.facts.provenance import Known, Provenance, Unknown
from epszero.oracles import Oracle, OwnData
from epszero.oracles.alike import Together
from epszero.problems import AggregativeGame, Game, Minimization, Problem
from epszero.problems.feasible import points_around
from epszero.problems.game import with_own

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

WRONG = 1e-6  # relative error of a derivative written by hand
FAILS = (NoEnclosure, *UNTRACED)


@dataclass(frozen=True)
class Costs:
    """What was found; empty where nothing is wrong."""

    jumps: str  # why the values are not known to be defined and continuous
    by_hand: str  # what made a derivative, if not automatic differentiation of the values
    wrong: str  # where such a derivative is seen to differ from that of the values


@dataclass(frozen=True, eq=False)
class _Cost:
    """One cost as a function of the own strategy and of all else that it knows, with boxes around these."""

    name: str
    function: Callable[..., Any]  # (own, rest)
    own: PyTree
    rest: PyTree
    boxes: Callable[[], tuple[PyTree, PyTree]]  # around both, from domain and support
    at: Callable[[PyTree], tuple[PyTree, PyTree]]  # both, where all strategies are given

    @property
    def jumps(self) -> str:
        """Why it is not known to be continuous in the own strategy."""
        said = _jumps(self.function, (self.own, self.rest), self.boxes)
        return f"{self.name}: {said}" if said else ""

    @property
    def by_hand(self) -> str:
        """What its derivative in the own strategy leans on besides its values."""
        found = written_by_hand(self.function, self.own, self.rest)
        return f"{self.name}: {found}" if found else ""

    def wrong(self, points: Sequence[PyTree]) -> str:
        """Where its derivative is not that of the values, of the points looked at; empty where nothing is seen."""
        for point in points:
            own, rest = self.at(point)
            try:
                used, right = (
                    flat_of(to_numpy(jax.grad(function)(own, rest)))
                    for function in (self.function, without_custom_rules(self.function))
                )
            except FAILS:  # nothing to compare with
                return ""
            gap = float(np.linalg.norm(used - right))
            if gap > WRONG * float(np.linalg.norm(used) + np.linalg.norm(right)):
                return (
                    f"{self.name}: the derivative that is used differs from that of its values by {gap:.3g} at a point"
                )
        return ""


def _jumps(
    function: Callable[..., Any], examples: tuple[PyTree, PyTree], boxes: Callable[[], tuple[PyTree, PyTree]]
) -> str:
    """Why a function is not known to be defined and continuous in its first argument; empty where it is."""
    try:
        enclosed = Enclosed(function, *examples)
    except FAILS as error:
        return _said(error)
    said = ""
    for around in (lambda: tuple(map(_anywhere, examples)), boxes):
        try:
            enclosed(*around(), continuous=True, moving=(0,))
        except FAILS as error:
            said = _said(error)
        else:
            return ""
    return said


def jumps_within(function: Callable[[PyTree, PyTree], Any], x: PyTree, domain: Callable[[], Bounds]) -> str:
    """The same for a function of all strategies, whose second argument is ()."""
    return _jumps(function, (x, ()), lambda: (_within(domain(), x), ()))


def _said(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def has_costs(problem: Problem) -> bool:
    """Whether B is meant to be made of derivatives of costs, which a user will ask about."""
    return isinstance(problem, Minimization | Game | AggregativeGame)


def costs_of(problem: Problem, row: PyTree, x: PyTree, domain: Callable[[], Bounds], support: Bounds) -> Costs:
    """Of a problem that has costs; `row` is a sample, x a point, for their shapes."""
    jumps = by_hand = wrong = ""
    if isinstance(problem, Game | AggregativeGame) and problem.given_gradient:
        by_hand = "pseudogradient: given, and compared with automatic differentiation at some points"
    with np.errstate(all="ignore"):
        for cost in _each(problem, row, x, domain, support):
            found = cost.by_hand
            jumps, by_hand = jumps or cost.jumps, by_hand or found
            wrong = wrong or (cost.wrong(points_around(problem.strategies, x)) if found else "")
            if jumps and by_hand:
                break
    return Costs(jumps, by_hand, wrong)


def _each(problem: Problem, row: PyTree, x: PyTree, domain: Callable[[], Bounds], support: Bounds) -> Iterator[_Cost]:
    seen = () if row is None else row
    if isinstance(problem, Minimization):
        boxes = lambda: (_within(domain(), x), _within(support, seen))  # noqa: E731
        yield _Cost("loss", _called(problem.loss), x, seen, boxes, lambda point: (point, seen))
    elif isinstance(problem, Game):
        yield from _listed(problem, row, x, domain, support)
    elif isinstance(problem, AggregativeGame):
        yield _of_all(problem, row, x, domain, support)


def _called(cost: Oracle) -> Callable[[PyTree, PyTree], Any]:
    return lambda x, xi: cost(x, xi if jax.tree.leaves(xi) else None)


def _listed(game: Game, row: PyTree, x: PyTree, domain: Callable[[], Bounds], support: Bounds) -> Iterator[_Cost]:
    every = _within(support, row) if row is not None else ()
    for i in _suspects(game, row, x, domain, every):
        cost = game.costs[i]
        mine, box = (row[i], every[i]) if isinstance(row, OwnData) else (() if row is None else row, every)

        def alone(own: PyTree, rest: PyTree, i: int = i, cost: Oracle = cost) -> Any:
            return _called(cost)(with_own(rest[0], i, own), rest[1])

        def boxes(i: int = i, box: PyTree = box) -> tuple[PyTree, PyTree]:
            around = _within(domain(), x)
            return around[i], (around, box)

        def at(point: PyTree, i: int = i, mine: PyTree = mine) -> tuple[PyTree, PyTree]:
            return point[i], (point, mine)

        yield _Cost(f"costs[{i}]", alone, x[i], (x, mine), boxes, at)


def _suspects(game: Game, row: PyTree, x: PyTree, domain: Callable[[], Bounds], every: PyTree) -> list[int]:
    """Agents to look at one by one: those of whose batch of costs alike not everything is proved at once."""
    together = game.together(x, row)
    if together is None:
        return list(range(game.agents))
    seen, found = () if row is None else (row,), list[int]()
    for part in together.parts():
        agents = sorted(part.members)

        def costs(owns: PyTree, rest: PyTree, part: Together = part, agents: list[int] = agents) -> Any:
            y = list(rest[0])
            for agent, own in zip(agents, owns, strict=True):
                y[agent] = own
            return part.values(rest[0], y, *rest[1])

        def boxes(agents: list[int] = agents) -> tuple[PyTree, PyTree]:
            around = _within(domain(), x)
            return [around[agent] for agent in agents], (around, (every,) if seen else ())

        one = _Cost("", costs, [x[agent] for agent in agents], (x, seen), boxes, lambda point: (point, seen))
        if len(agents) == 1 or one.by_hand or one.jumps:
            found += agents
    return sorted(found)


def _of_all(game: AggregativeGame, row: PyTree, x: PyTree, domain: Callable[[], Bounds], support: Bounds) -> _Cost:
    """One cost serves all agents, with strategies, samples and parameters between the least and the largest of them."""
    agents, share = game.oracle_of_agents, (game.agents - 1) / game.agents
    own, parameters = (jax.tree.map(lambda leaf: np.asarray(leaf)[0], tree) for tree in (x, game.parameters))
    each = list(row) if isinstance(row, OwnData) else None  # a sample for each agent, or one with a row for each
    seen = () if row is None else row if each is None else each[0]
    if agents.private and each is None:
        seen = jax.tree.map(lambda leaf: leaf[0], seen)

    def alone(own: PyTree, rest: PyTree) -> Any:
        others, xi, mine = rest
        average = jax.tree.map(lambda mean, now: mean + now / game.agents, others, own)
        told = None if not jax.tree.leaves(xi) else xi if agents.features is None else agents.features((), xi)
        return game.cost(own, average, told, mine)

    def boxes() -> tuple[PyTree, PyTree]:
        around = _hull(_within(domain(), x))
        others = _mapped(
            lambda box: Interval(*(_outward(share * end, way) for end, way in zip(box, (-1, 1), strict=True))), around
        )
        samples = () if row is None else _within(support, row)
        if each is not None:
            samples = jax.tree.map(lambda *leaves: _joined(leaves), *samples, is_leaf=_is_box)
        elif agents.private:
            samples = _hull(samples)
        mine = jax.tree.map(lambda leaf: Interval(np.min(leaf, axis=0), np.max(leaf, axis=0)), game.parameters)
        return around, (others, samples, mine)

    def at(point: PyTree) -> tuple[PyTree, PyTree]:
        first = jax.tree.map(lambda leaf: leaf[0], point)
        others = jax.tree.map(lambda leaf, own: np.mean(leaf, axis=0) - own / game.agents, point, first)
        return first, (others, seen, parameters)

    return _Cost("cost", alone, own, (own, seen, parameters), boxes, at)


def derivative_of(facts: "Facts") -> Known | Unknown:
    """On whose word B is the derivative of the costs."""
    costs = facts.costs
    if costs is None:
        return Known(Provenance.EXACT, "there are no costs")
    if costs.wrong:
        return Unknown(costs.wrong)
    followed = not facts.structure.affine and facts.ruled.by_costs  # rules leave no room for a jump or a kink
    kinks = "" if facts.structure.affine else facts.jumps_in_x
    if followed or not (costs.jumps or costs.by_hand or kinks):
        return Known(Provenance.EXACT, "by following the operations")
    if facts.problem.declared.convex:
        return Known(Provenance.DECLARED, "ez.declare(convex=True)")
    if costs.jumps or kinks:
        what = f"continuous could not be proved ({costs.jumps})"
        if not costs.jumps:
            what = f"smooth could not be proved, and at a kink a derivative may be a wrong one ({kinks})"
        return Unknown(f"that the costs are {what}. Where they are convex all the same, ez.declare(convex=True)")
    return Known(Provenance.DECLARED, costs.by_hand)


# -- boxes around trees ------------------------------------------------------------------------------------------------


def _is_box(node: Any) -> bool:
    return isinstance(node, Interval)


def _mapped(function: Callable[[Interval], Interval], boxes: PyTree) -> PyTree:
    return jax.tree.map(function, boxes, is_leaf=_is_box)


def _within(bounds: Bounds, tree: PyTree) -> PyTree:
    """The box of flat bounds, nested like the tree."""
    _, nested = ravel_pytree(jax.tree.map(np.asarray, tree))
    lower, upper = (jax.tree.map(np.asarray, nested(jnp.asarray(end))) for end in bounds)
    return jax.tree.map(Interval, lower, upper)


def _anywhere(tree: PyTree) -> PyTree:
    return jax.tree.map(lambda leaf: Interval(np.full(np.shape(leaf), -np.inf), np.full(np.shape(leaf), np.inf)), tree)


def _hull(boxes: PyTree) -> PyTree:
    """Around the rows of a leading axis."""
    return _mapped(lambda box: Interval(np.min(box.lower, axis=0), np.max(box.upper, axis=0)), boxes)


def _joined(boxes: tuple[Interval, ...]) -> Interval:
    return Interval(np.min([box.lower for box in boxes], axis=0), np.max([box.upper for box in boxes], axis=0))


def _outward(end: Any, way: int) -> Any:
    return end + way * 1e-14 * np.abs(np.where(np.isfinite(end), end, 0.0))
