"""Whether a problem is a kinked minimisation that can be solved as a programme, and what it is in numbers.

The loss is read once for its shapes (_trace/kinks.py), which is remembered; its numbers are those of the samples at
hand (solve/tables.py). A function on the known side is read the same way, from its own formula; a set needs a conic
form.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._memory import remembered, shape_of
from epszero._points import flat_of, one_row, shaped_like
from epszero._trace.kinks import SMOOTHLY, Kinks, Unread, read_kinks
from epszero._trace.programs import UNTRACED
from epszero._types import PyTree
from epszero.functions import Function, Indicator
from epszero.problems import Minimization, Problem
from epszero.problems.backward import Backward, is_part
from epszero.problems.feasible import is_conic, product_form
from epszero.sets import Set
from epszero.solve.balance import nearest_shares
from epszero.solve.epigraph import Epigraph, epigraph
from epszero.solve.pieces import Pieces
from epszero.solve.tables import NotConvex, Tables


@dataclass(frozen=True)
class Case:
    """A kinked minimisation in numbers."""

    problem: Problem
    x: PyTree  # shows how points are nested
    loss: Pieces
    local: Pieces  # of the functions on the known side
    rows: Epigraph
    kinks: Kinks
    bends: bool  # a smooth part is more than quadratic


def case_of(problem: Problem, data: PyTree, x: PyTree) -> Case | Unread | None:
    """None where the loss has no kinks; what is in the way where they are not of the form that is solved here."""
    if not isinstance(problem, Minimization):
        return None
    row = None if data is None else one_row(data)
    read = remembered(problem, ("kinks", shape_of(x), shape_of(row)), lambda: _read(problem, x, row))
    if read is None or isinstance(read, Unread):
        return read
    kinks, n = read.loss.kinks, len(flat_of(x))
    try:
        loss, known = read.loss.pieces(data, n), read.local.pieces(None, n)
    except NotConvex as reason:
        return Unread(str(kinks.pieces[0]), str(reason))
    rows = epigraph([loss, known], product_form(read.side, x))
    return Case(problem, x, loss, known, rows, kinks, SMOOTHLY in (kinks.degree, read.local.kinks.degree))


class _Read(NamedTuple):
    """What the shapes alone say."""

    loss: Tables
    local: Tables
    side: Backward


def _read(problem: Minimization, x: PyTree, row: PyTree) -> _Read | Unread | None:
    loss = problem.loss
    try:
        kinks = read_kinks(loss, x, row)
    except UNTRACED:
        return None
    if kinks is None or isinstance(kinks, Unread):
        return kinks
    parts = jax.tree.map(_as_set, problem.strategies.parts, is_leaf=is_part)
    side = problem.strategies.replaced(parts=parts)
    for part in jax.tree.leaves(parts, is_leaf=is_part):
        if not isinstance(part, Set | Function):
            return Unread(str(kinks.pieces[0]), "the regularizer is neither a set nor a function")
    for name in jax.tree.leaves(side.each(_without_form, x)):
        if name:
            return Unread(str(kinks.pieces[0]), f"the set {name} has no conic form")
    local = read_kinks(lambda x, _: _value(side, x), x, None, smooth=True)
    if not isinstance(local, Kinks):
        why = f"it cannot be joined with the regularizer {side} here, as with L1, ElasticNet or a set"
        return Unread(str(kinks.pieces[0]), why)
    return _Read(Tables(kinks, x), Tables(local, x), side)


def _as_set(part: Any) -> Any:
    return part.set if isinstance(part, Indicator) else part


def _without_form(part: Any, leaf: Any) -> str:
    if not isinstance(part, Set):
        return ""
    shape = np.shape(leaf) or (1,)
    one = part.member((0,) * len(part.batch_shape)) if part.batch_shape else part
    return "" if is_conic(one, int(np.prod(shape[len(shape) - part.rank :]))) else type(part).__name__


def _value(side: Backward, x: PyTree) -> Any:
    def of(part: Any, leaf: Any) -> Any:
        return jnp.sum(part(jnp.atleast_1d(leaf))) if isinstance(part, Function) else jnp.zeros(())

    return sum(jax.tree.leaves(side.each(of, x)), start=jnp.zeros(()))


def subgradient_near(problem: Problem, data: PyTree, x: PyTree, near: PyTree) -> PyTree:
    """The element of ∂f̂(x) nearest `near` in the largest entry, recomputed from the problem and the data alone."""
    case = case_of(problem, data, x)
    if not isinstance(case, Case):
        return near
    point = flat_of(x)
    shares = nearest_shares(case.loss, point, flat_of(near))
    return shaped_like(x, case.loss.subgradient(point, shares).g)
