"""Gaps of cost on parts of the data: what `MultipleReplications`, `TwoReplications` and `Bagging` share.

For a data set D_k of a minimisation, G_k = f̂_k(x̂) + g(x̂) − min(f̂_k + g), f̂_k the average loss over D_k. As
E min ≤ min E, the mean of G_k is at least the true gap f(x̂) + g(x̂) − min(f + g), where x̂ does not depend on D_k:
that is so for samples kept aside; where there are none, G_k is too small, and the certificate says so.
ε is that of the normal approximation of the mean of O(x̂, ξ). Always heuristic.
Assumes a loss that nothing shows not to be convex, and a regularizer with values. Source: Mak, Morton & Wood (1999).
Cost: one solve_many.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from epszero._double import to_numpy
from epszero._points import length
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Finding, Gap, Leaning, cannot, check_independent
from epszero.certificates.asymptotic import IN_THE_LIMIT
from epszero.certificates.bootstrap import redrawn
from epszero.certificates.case import Case
from epszero.certificates.evidence import values_at
from epszero.certificates.likely import likely_norm
from epszero.certificates.residuals import Residuals
from epszero.facts import Provenance, Unknown
from epszero.functions import Function
from epszero.oracles import Oracle
from epszero.problems import Minimization
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve import Status, solve_many

SAME_SAMPLES = "x was found with the same samples, so that this is too small: ez.solve(…, holdout=0.5) keeps others"
OPTIMISTIC = Leaning("x as if found with other samples", Provenance.ESTIMATED, "it was not: the cost gap is too small")


class Gaps(NamedTuple):
    """Of one data set each."""

    differences: FloatArray  # (K, m): f(x̂, ξ_i) + g(x̂) − f(x_k, ξ_i) − g(x_k), ξ_i in D_k, x_k best there

    @property
    def each(self) -> FloatArray:
        """G_k, which are not negative but for what solvers leave."""
        return np.maximum(self.differences.mean(axis=1), 0.0)


def data_of(case: Case, least: int) -> Samples:
    """Samples for gaps: those kept aside, else those that the run has seen. What has no gap is refused."""
    if not isinstance(case.problem, Minimization):
        cannot("the cost gap is that of a minimisation: ez.certificates.Bootstrap() says what is likely elsewhere")
    if case.bent:
        cannot(f"the least cost of a part of the data cannot be found: {case.bent[0]}")
    if not case.samples:
        cannot("the loss depends on no samples")
    if not all(isinstance(part, Set | Function) for part in jax.tree.leaves(case.problem.A.parts, is_leaf=is_part)):
        cannot("the regularizer is known by its resolvent alone, so that costs cannot be compared")
    samples = case.samples[0] if case.kept_aside is None else case.kept_aside
    if len(samples) < least:
        cannot(f"{len(samples)} samples are too few: it takes {least} at least")
    return samples


def gaps(case: Case, samples: Samples, parts: Any) -> Gaps:
    """On the rows of each part, all of one size."""
    problem = case.problem
    assert isinstance(problem, Minimization)
    found = solve_many(problem, redrawn(case, samples, list(parts)), x0=case.point)
    for one in found:
        if one.status is not Status.CONVERGED:
            cannot(f"the problem of one part of the data was not solved ({one.status.value}): {one.status.remedy}")
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(one.x for one in found))
    data = jax.tree.map(lambda leaf: np.asarray(leaf)[parts], samples.values)
    rows = np.asarray(to_numpy(_differences(problem.loss, case.x, stacked, data)), dtype=np.float64)
    here, there = _value(case, case.x), np.array([_value(case, one.x) for one in found])
    return Gaps(rows + (here - there)[:, None])


def finding(case: Case, samples: Samples, title: str, delta: float, gap: Callable[[], tuple[float, float]]) -> Finding:
    """ε by the normal approximation; `gap` gives the estimate of the cost gap and what is added to it."""
    independent = check_independent([samples])
    mean, added = gap()
    rows = values_at(case, samples)
    centre, deviation = case.z + rows.mean(axis=0), likely_norm(rows, None, delta)
    terms = {"empirical": length(centre), "deviation": deviation, "samples": float(len(samples))}
    terms |= {"gap estimate": mean, "gap deviation": added}
    own = case.kept_aside is None
    because = f"{title}; {SAME_SAMPLES}" if own else f"{title}, on samples that were kept aside"
    convex = case.facts.convex
    doubt = (Leaning("the loss convex", Provenance.ESTIMATED, convex.reason),) if isinstance(convex, Unknown) else ()
    leans_on = (IN_THE_LIMIT, *((OPTIMISTIC,) if own else ()), *doubt, independent)
    found = Gap(max(mean + added, 0.0), because)
    by = f"{title}, {len(samples)} samples"
    return Finding(Residuals.ball(centre, deviation), by, terms, leans_on, gap=found)


def _value(case: Case, x: PyTree) -> float:
    """g(x), for x in its domain."""

    def own(part: Any, leaf: Any) -> float:
        return float(np.sum(part(np.atleast_1d(leaf)))) if isinstance(part, Function) else 0.0

    return sum(jax.tree.leaves(case.problem.A.each(own, x)))


@eqx.filter_jit
def _differences(loss: Oracle, x: PyTree, others: PyTree, data: PyTree) -> PyTree:
    """f(x, ξ) − f(x_k, ξ), for every row of every part."""

    def one(other: PyTree, xi: PyTree) -> Any:
        return loss(x, xi) - loss(other, xi)

    def of_part(part: tuple[PyTree, PyTree]) -> Any:
        other, rows = part
        return jax.lax.map(partial(one, other), rows, batch_size=256)

    return jax.lax.map(of_part, (others, data))
