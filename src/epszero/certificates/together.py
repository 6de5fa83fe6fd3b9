"""What many certificates of one problem can share: one call for all confidence sets, one for all memberships."""

from typing import Any

import jax
import numpy as np

from epszero._types import FloatArray
from epszero.certificates._base import Kind, Refused
from epszero.certificates.case import Case, shape_of
from epszero.certificates.evidence import Evidence
from epszero.certificates.mean import MeanSet
from epszero.certificates.mean_deviation import MeanDeviation, every_sample
from epszero.functions import Function
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


def _memberships(cases: list[Case]) -> None:
    """x ∈ dom A and z ∈ A(x) for all cases, where A is made of sets and functions, which take batches."""
    inside = np.ones(len(cases), dtype=bool)
    gap = np.zeros(len(cases))
    points, elements = (
        jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
        for trees in ([case.point for case in cases], [case.solution.element for case in cases])
    )
    answers = jax.tree.leaves(cases[0].problem.A.each(_part, points, elements), is_leaf=lambda leaf: leaf is None)
    if any(answer is None for answer in answers):
        return
    for answer in answers:
        inside &= answer[0].astype(bool)
        gap += answer[1]
    for case, yes, away in zip(cases, inside, gap, strict=True):
        case.__dict__["membership"] = bool(yes), float(away)


def _part(part: Any, x: FloatArray, z: FloatArray) -> Any:
    """For every case: whether x lies in the part's domain, and the Fenchel gap; None for a bare resolvent."""
    if not isinstance(part, Set | Function):
        return None
    count = len(x)
    x, z = (leaf[:, None] if leaf.ndim == 1 else leaf for leaf in (x, z))
    if isinstance(part, Set):
        inside, fenchel = part.contains(x), part.support(z)
    else:
        value = part(x)
        inside, fenchel = value < np.inf, value + part.conjugate(z)
    inner = np.sum((x * z).reshape(count, -1), axis=1)
    total = np.sum(np.reshape(fenchel, (count, -1)), axis=1) - inner
    return np.stack([np.all(np.reshape(inside, (count, -1)), axis=1), total])
