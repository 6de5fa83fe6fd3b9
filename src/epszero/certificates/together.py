"""What many certificates of one problem can share: one call for all confidence sets, one for all memberships."""

from typing import Any

import equinox as eqx
import jax
import numpy as np

from epszero._double import to_numpy
from epszero._memory import shape_of
from epszero._points import shared_apart, stacked
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Kind, Refused
from epszero.certificates.case import Case
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import MeanSet
from epszero.certificates.mean_deviation import MeanDeviation, every_sample
from epszero.functions import Function
from epszero.problems.graph import ROUNDING, Graph
from epszero.sets import Set

CHUNK = 64  # memberships that are looked at together, always as many: one compiled programme serves all
AT_ONCE = 1 << 22  # numbers that are stacked at once


def prepare(cases: list[Case], kind: Kind, delta: float) -> None:
    """Compute together what can be; what cannot is left to each case alone."""
    first = cases[0]
    alike = all(case.problem is first.problem and shape_of(case.point) == shape_of(first.point) for case in cases)
    if len(cases) < 2 or not alike:
        return
    for start in range(0, len(cases) // CHUNK * CHUNK, CHUNK):
        _memberships(cases[start : start + CHUNK])
        _residuals(cases[start : start + CHUNK])
    if isinstance(kind, MeanDeviation) and all(len(case.samples) == 1 for case in cases):
        _sets(cases, kind, delta)


def _sets(cases: list[Case], kind: MeanDeviation, delta: float) -> None:
    """Confidence sets for all data sets of the same size, support and features."""
    evidence = [Evidence(case, every_sample(case), kind.support) for case in cases]
    first = evidence[0]
    if isinstance(kind.support, str) or first.collapsed is None or len(first.rows) != 1:
        return
    bound = kind.bound or first.suited()
    supports = {id(case.samples[0].support) for case in cases}
    try:
        (region,), _ = first.regions(bound)
        same = len(supports) == 1 and all(one.rows[0].shape == first.rows[0].shape for one in evidence)
    except Refused:
        return
    if not same or len(first.rows[0]) < bound.least(delta):
        return
    step = max(1, AT_ONCE // first.rows[0].size)
    for start in range(0, len(cases), step):
        chunk = evidence[start : start + step]
        found = bound.around(np.stack([one.rows[0] for one in chunk]), region, delta)
        for place, one in enumerate(chunk):
            one.case.sets[bound, delta] = MeanSet(found.centre[place], found.radius[place])


def _residuals(cases: list[Case]) -> None:
    """ê of all cases, where their averages are of one shape."""
    averages = [case.average for case in cases]
    if len({shape_of(average) for average in averages}) > 1:
        return
    points = [case.point for case in cases]
    apart, same = shared_apart(averages)
    values = jax.tree.leaves(to_numpy(_every_value(stacked(apart), same, stacked(points))))
    rows = np.concatenate([np.reshape(leaf, (len(cases), -1)) for leaf in values], axis=1)
    for case, row in zip(cases, rows, strict=True):
        case.__dict__["empirical"] = case.z + row


@jax.jit
def _every_value(averages: Any, same: Any, points: PyTree) -> PyTree:
    return jax.vmap(lambda average, point: eqx.combine(average, same)(point))(averages, points)


def _memberships(cases: list[Case]) -> None:
    """Those of all cases whose x and z are of the graph of A to rounding, where A's parts are closed forms."""
    points, elements = (
        jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
        for trees in ([case.found[0] for case in cases], [case.found[1] for case in cases])
    )
    answers = jax.tree.leaves(cases[0].problem.A.each(_part, points, elements), is_leaf=lambda leaf: leaf is None)
    if any(answer is None for answer in answers):
        return
    for case, held in zip(cases, np.all(answers, axis=0), strict=True):
        if held:
            case.__dict__["graph"] = Graph(*case.found, 0.0, 0.0, "")


def _part(part: Any, x: FloatArray, z: FloatArray) -> Any:
    """For every case: whether its pair is of the graph of the part to rounding; None for what is no closed form."""
    if not isinstance(part, Set | Function) or not part.exact:
        return None
    x, z = (leaf[:, None] if leaf.ndim == 1 else leaf for leaf in (x, z))
    every = tuple(range(1, x.ndim))
    size, length = (1 + np.sqrt(np.sum(leaf**2, axis=every)) for leaf in (x, z))
    step = (size / length).reshape(-1, *(1,) * (x.ndim - 1))
    v = x + step * z
    near = part.project(v) if isinstance(part, Set) else part.prox(v, step[(..., *(0,) * part.rank)])
    return np.sqrt(np.sum((np.asarray(near) - x) ** 2, axis=every)) <= ROUNDING * size
