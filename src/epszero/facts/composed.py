"""O as a sum of functions of affine maps (_trace/rules): its Jacobian J(x, ξ) = Σ_e Lₑ Dₑ(x, ξ) Rₑ, enclosed in parts.

Of costs f_i = Σ_e w_ie g_e(R_e x + b_e), agent i's rows of J are Σ_e w_ie R_eᵀ(∇²g_e)R_e; of an operator that is given,
J = Σ_e l_e(∇g_e)ᵀR_e. R, w and l are constant or enclosed over the support, derivatives of g over domain and support.
Costs are followed where automatic differentiation gives the derivative of their values (costs.py); else O itself is.
Equal terms of several agents' costs are one term: then the rows of all agents together are those of a gradient.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.intervals import Interval, NoEnclosure
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.programs import UNTRACED
from epszero._trace.rules import Form, decomposed
from epszero._trace.rules.expressions import said_of
from epszero._trace.rules.forms import Affine, Given, Local, nothing
from epszero._trace.rules.ranges import Ranges
from epszero._types import PyTree
from epszero.facts.convex import places_of
from epszero.facts.domains import by_solver, domain_support, only_boxes
from epszero.oracles import OwnData
from epszero.problems import AggregativeGame, Game, Minimization

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

LARGEST = 1500  # entries of x
FAILS = (NoEnclosure, *UNTRACED)


class Block(NamedTuple):
    """Rows e of one kind: a function of m affine maps each."""

    local: Local
    matrix: Interval  # (outputs, rows): w_ie, or l_e, apart from
    weight: Given  # a factor for each row
    random: bool  # the matrix depends on ξ
    value: Interval  # g
    first: dict[int, Interval]  # ∂_p g
    second: dict[tuple[int, int], Interval]  # ∂_pq g, p ≤ q
    cap: Any = None  # of functions of several numbers together: 0 ⪯ ∇²g ⪯ cap·I

    @property
    def moves(self) -> bool:
        """Whether its affine maps depend on ξ, or its weights."""
        return self.random or self.weight.random or any(one.moves for one in self.local.variables)

    @property
    def uncertain(self) -> bool:
        """Whether anything in it depends on ξ."""
        shifted = any(one.shifts for one in self.local.variables) or any(one.random for one in self.local.params)
        return self.moves or shifted


@dataclass(frozen=True, eq=False)
class Composed:
    """All that is read of O."""

    costs: bool  # of costs, whose gradients make O; else O itself
    owner: Any  # of each entry of x, the output that it belongs to
    linear: Interval  # (outputs, n): the affine part of what is returned
    offset: Interval  # (outputs,)
    moves: bool  # the affine part depends on ξ: its slopes
    shifts: bool  # its offsets
    blocks: tuple[Block, ...]
    ranges: Ranges
    kinks: frozenset[str]  # where a derivative may jump

    @property
    def said(self) -> str:
        """What bounds it, in a few words."""
        names = sorted(set().union(*(said_of(block.local.expression) for block in self.blocks)))
        return ", ".join(names[:3]) + ("…" if len(names) > 3 else "")


def composed(facts: "Facts") -> Composed | str:
    """Of O over domain and support; why not, where it is not of this form."""
    if facts.structure.entries > LARGEST:
        return f"x has {facts.structure.entries} entries; rules are tried up to {LARGEST}"
    ranges = Ranges(*facts.domain, reach=_reach(facts))
    why = ""
    for read in (_of_costs, _of_operator):
        try:
            found = read(facts, ranges)
        except FAILS as error:
            why = why or (str(error).splitlines()[0] if str(error) else type(error).__name__)
        else:
            if found is not None:
                return found
    return why or "no rule applies"


def _reach(facts: "Facts") -> Callable[[Interval], Interval] | None:
    """Where A x lies, by the support function of the domain and by its circumscribed ball."""
    strategies, x = facts.problem.strategies, facts.x
    if only_boxes(strategies):
        return None
    dear = by_solver(strategies)
    lower, upper = facts.domain

    def reach(A: Interval) -> Interval:
        middle = (A.lower + A.upper) / 2
        count = len(middle)
        if dear or not (np.isfinite(middle).all() and np.isfinite(A.upper - A.lower).all()):
            return Interval(np.full(count, -np.inf), np.full(count, np.inf))
        far = np.maximum(np.abs(lower), np.abs(upper))
        slack = np.where(A.upper - A.lower > 0, (A.upper - A.lower) * far, 0.0).sum(axis=1)
        slack += 1e-12 * (np.abs(middle) * np.where(np.isfinite(far), far, 0.0)).sum(axis=1)
        high, low = domain_support(strategies, x, middle), -domain_support(strategies, x, -middle)
        return Interval(low - slack, high + slack)

    return reach


# -- what is traced ----------------------------------------------------------------------------------------------------


def _of_costs(facts: "Facts", ranges: Ranges) -> Composed | None:
    costs = facts.costs
    if costs is None or costs.by_hand or costs.wrong:
        return None
    function, owner = _costs(facts)
    if function is None:
        return None
    row, support = _samples(facts)
    return read_costs(function, facts.x, ranges, row, support, owner)


def read_costs(
    function: Callable[..., Any], x: PyTree, ranges: Ranges, row: PyTree, support: PyTree, owner: Any
) -> Composed:
    """Of costs as a function of x and ξ, for x in the ranges and ξ in `support`, intervals nested like `row`."""
    found = decomposed(function, x, ranges, row, support)
    return _assembled(_scalars(found.outputs, len(owner)), owner, ranges, costs=True)


def read_operator(function: Callable[..., Any], x: Any, ranges: Ranges, row: Any, support: Interval) -> Composed:
    """The same of an operator, a function of flat points and flat samples."""
    found = decomposed(function, x, ranges, row, support)
    return _assembled(_scalars(found.outputs, len(x)), np.arange(len(x)), ranges, costs=False)


def _scalars(outputs: Sequence[Any], n: int) -> list[Form]:
    """Every number that is returned, as a form of one row; what does not depend on x is left out."""
    forms: list[Form] = []
    for one in outputs:
        if isinstance(one, Form):
            forms.append(one)
        else:
            shape = np.shape(one) if isinstance(one, np.ndarray) else one.value.lower.shape
            forms.append(_empty(shape, n))
    return forms


def _empty(shape: tuple[int, ...], n: int) -> Form:
    return Form(shape, nothing(int(np.prod(shape, dtype=np.int64)), n))


def _samples(facts: "Facts") -> tuple[PyTree, PyTree]:
    """A sample and the box around the support, nested alike."""
    if facts.row is None:
        return (), ()
    row = jax.tree.map(np.asarray, facts.row)
    _, nested = ravel_pytree(row)
    ends = [jax.tree.map(np.asarray, nested(jnp.asarray(end))) for end in facts.support]
    return row, jax.tree.map(Interval, *ends)


def _costs(facts: "Facts") -> tuple[Callable[..., Any] | None, Any]:
    """A function that returns all costs, and whose strategies each entry of x is."""
    problem, x = facts.problem, facts.x
    owner = np.zeros(facts.structure.entries, dtype=int)
    if isinstance(problem, Minimization):
        return lambda x, xi: problem.loss(x, xi if jax.tree.leaves(xi) else None), owner
    if not isinstance(problem, Game | AggregativeGame) or problem.given_gradient:
        return None, owner
    for agent, places in enumerate(places_of(problem, x)):
        owner[places] = agent
    if isinstance(problem, Game):
        own = isinstance(facts.row, OwnData)

        def every(x: PyTree, xi: PyTree) -> Any:
            seen = [xi[i] if own else xi if jax.tree.leaves(xi) else None for i in range(problem.agents)]
            return [cost(x, mine) for cost, mine in zip(problem.costs, seen, strict=True)]

        return every, owner
    if problem.oracle_of_agents.private or isinstance(facts.row, OwnData):
        return None, owner
    return _aggregative(problem), owner


def _aggregative(game: AggregativeGame) -> Callable[..., Any]:
    features, parameters = game.oracle_of_agents.features, game.parameters

    def every(x: PyTree, xi: PyTree) -> Any:
        average = jax.tree.map(lambda leaf: jnp.mean(leaf, axis=0), x)
        told = None if not jax.tree.leaves(xi) else xi if features is None else features((), xi)
        return jax.vmap(lambda own, mine: game.cost(own, average, told, mine))(x, parameters)

    return every


def _of_operator(facts: "Facts", ranges: Ranges) -> Composed:
    operator = facts.operator
    x, row = operator.examples
    return read_operator(operator, x, ranges, row, Interval(*operator.support))


# -- putting together --------------------------------------------------------------------------------------------------


def _assembled(forms: list[Form], owner: Any, ranges: Ranges, costs: bool) -> Composed:
    rows = [form.affine.rows for form in forms]
    moves, shifts = any(form.affine.moves for form in forms), any(form.affine.shifts for form in forms)
    linear, offset = (Interval(*(np.concatenate([row[k][end] for row in rows]) for end in (0, 1))) for k in (0, 1))
    if not shifts and not np.isfinite(offset.lower).all():
        raise NoEnclosure("a number that is not finite")
    kinks: set[str] = set()
    blocks = [_block(group, len(offset.lower), ranges, kinks) for group in _grouped(forms)]
    return Composed(costs, owner, linear, offset, moves, shifts, tuple(blocks), ranges, frozenset(kinks))


class _Part(NamedTuple):
    local: Local
    matrix: Interval  # (rows of its form, rows of the local function)
    weight: Given
    random: bool
    start: int  # the first row of its form among the outputs


def _grouped(forms: list[Form]) -> list[list[_Part]]:
    """Terms that are made alike, of rows of the same affine maps."""
    groups: dict[Any, list[_Part]] = {}
    start = 0
    for form in forms:
        for term in form.terms:
            local = term.local
            marks = tuple(one.key for one in (*local.variables, *local.params, term.weight))
            part = _Part(local, term.dense(), term.weight, term.random, start)
            groups.setdefault((local.expression, marks, term.random), []).append(part)
        start += form.size
    return list(groups.values())


def _block(parts: list[_Part], outputs: int, ranges: Ranges, kinks: set[str]) -> Block:
    first = parts[0].local
    columns = [one.src for part in parts for one in (*part.local.variables, *part.local.params, part.weight)]
    width = len(first.variables) + len(first.params) + 1
    places = np.concatenate(
        [np.stack(columns[k * width : (k + 1) * width], axis=1) for k in range(len(parts))]
    )  # the rows of variables, parameters and weights that each entry reads
    unique, inverse = np.unique(places, axis=0, return_inverse=True)
    inverse = inverse.reshape(-1)
    lower, upper, count = (np.zeros((outputs, len(unique))) for _ in range(3))
    done = 0
    for part in parts:
        here = inverse[done : done + part.local.rows]
        rows = np.arange(part.start, part.start + len(part.matrix.lower))[:, None]
        np.add.at(lower, (rows, here[None]), part.matrix.lower)
        np.add.at(upper, (rows, here[None]), part.matrix.upper)
        np.add.at(count, (rows, here[None]), (part.matrix.lower != 0) | (part.matrix.upper != 0))
        done += part.local.rows
    several = (count > 1) & ((lower != np.round(lower)) | (upper != np.round(upper)))  # whole numbers are exact
    if several.any():
        wide = arithmetic.widened(lower, upper, 1e-14)
        lower, upper = np.where(several, wide.lower, lower), np.where(several, wide.upper, upper)
    local, weight = _rows_of(first, unique), _placed(parts[0].weight, unique[:, -1])
    found = ranges.jet(local, kinks)
    matrix = Interval(lower, upper)
    return Block(local, matrix, weight, parts[0].random, found.value, found.first, found.second, found.cap)


def _rows_of(first: Local, places: Any) -> Local:
    variables = tuple(_placed(one, places[:, k]) for k, one in enumerate(first.variables))
    params = tuple(_placed(one, places[:, k + len(variables)]) for k, one in enumerate(first.params))
    return Local(first.expression, variables, params, len(places))


def _placed(one: Any, src: Any) -> Any:
    if isinstance(one, Affine):
        return Affine(one.A, one.b, src, one.key, one.moves, one.shifts, one.flat)
    return Given(one.base, src, one.key, one.random)
