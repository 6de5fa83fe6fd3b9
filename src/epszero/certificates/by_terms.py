"""`AtTheTruth` for losses that are sums of functions of affine maps (terms.py): what the pilot fixes, and what follows.

The events are those of truth.py, at the truth in three metrics and at the pilot's point; the centre of the noise is
affine, b + μ(x − x̃), with the pilot's average at its own solution x̃. The first ball is the domain, or
‖x̂ − x̃‖ + ‖z̃ + B(x̃)‖/μ. What the noise at x̂ may differ from that at x̃ is at most L‖x̂ − x̃‖, L = κ − μ, or 2κ
on a flat domain (pilot.py).
Source: docs/theory.md, section 9.
"""

import math
import warnings
from typing import NamedTuple

import numpy as np

from epszero._points import flat_of, length
from epszero._types import FloatArray, PyTree
from epszero.certificates._base import Leaning
from epszero.certificates._near import Near
from epszero.certificates.agents import reach
from epszero.certificates.case import Case, over_support
from epszero.certificates.local import ROUND, spectral
from epszero.certificates.mean._base import log_of
from epszero.certificates.pilot import differs, local_of, number
from epszero.certificates.residuals import Residuals
from epszero.certificates.terms import TermsGround, terms_of
from epszero.certificates.truth import Aim, Metric, Search, weight
from epszero.facts import Constant
from epszero.problems import ConvexityWarning
from epszero.samples import Samples
from epszero.solve import solve

MORE = 2.0  # the variance at the truth, over that at the pilot's point, that weights suit
ROOM = 0.9  # of the largest weight that serves


class Fixed(NamedTuple):
    """What the pilot fixes."""

    x: PyTree  # x̃, its solution
    z: FloatArray  # of A there
    b: FloatArray  # the average there
    metric: Metric
    aims: dict[str, Aim]


def looked_by_terms(
    case: Case, first: Samples, rest: Samples, levels: dict[str, float]
) -> tuple[Residuals, Near] | None:
    """Residuals that are possible at x̂, and where x* is; None where the loss is not read, or its size not known."""
    size, mu = number(case.observed.M), number(case.mu)
    here = local_of(case, case.x, rest)
    terms = terms_of(here) if size > 0 and mu > 0 else None
    if terms is None:
        return None
    fixed = _fixed(case, first, len(rest), levels, size)
    d = flat_of(case.x) - flat_of(fixed.x)
    ground = TermsGround(here, terms, fixed.metric, size * ROUND, fixed.b, mu * np.eye(len(d)), d)
    there = local_of(case, fixed.x, rest).values
    c, V = size * ROUND + length(fixed.b), float(np.sum((there - fixed.b) ** 2)) * ROUND
    radius = fixed.aims["residual"].radius(len(rest), c, V)
    offset, L = case.z + np.mean(here.values, axis=0), differs(case)
    residuals = Residuals.ball(offset, _finite(radius + L * length(d)))
    e = length(fixed.metric.Z.T @ offset) + residuals.radii[0]
    away = length(fixed.metric.Z.T @ (fixed.z + np.mean(there, axis=0))) + radius
    straight = e + math.sqrt(e**2 + 4 * mu * case.inexactness)
    around = 2 * away if case.inexactness == 0 else math.inf  # of the pilot's own pair nothing else is known
    far = float(np.linalg.norm(reach(case, case.x)))
    start = min(far, straight / (2 * mu), length(d) + around / (2 * mu)) * ROUND
    search = Search(len(rest), fixed.metric, fixed.aims, offset, case.inexactness, 0.0)
    found = ground.search(search, start)
    gap = min((found.energy**2 + L * found.distance**2) / 2, e * found.distance) + case.inexactness
    used = (("μ", case.mu), ("κ", case.kappa), ("M", case.observed.M))
    leans_on = tuple(
        Leaning.on(f"{name} of every O(·, ξ)", over_support(one)) for name, one in used if isinstance(one, Constant)
    )
    return residuals, Near(_finite(found.distance), _finite(gap), "the noise at the truth", leans_on)


def _fixed(case: Case, first: Samples, many: int, levels: dict[str, float], size: float) -> Fixed:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexityWarning)
        found = solve(case.problem, first, x0=case.facts.x, throw=False)
    local, flat = local_of(case, found.x, first), case.facts.directions
    Z = np.eye(local.entries) if flat is None else flat
    metric, b = Metric.of(Z, local.slopes), np.mean(local.values, axis=0)
    maps = {
        "residual": np.eye(len(Z)),
        "plain": np.eye(len(Z)),
        "energy": metric.back @ Z.T,
        "distance": metric.back @ metric.back @ Z.T,
    }
    aims: dict[str, Aim] = {}
    for name, W in maps.items():
        log, c = log_of(2, levels[name]), spectral(W) * size + length(W @ b)
        variance = float(np.mean(np.sum(((local.values - b) @ W.T) ** 2, axis=1)))
        more = 1.0 if name == "residual" else MORE
        aims[name] = Aim(W, min(weight(log, many, 1.05 * c, more * variance), ROOM / (1.5 * c)), log)
    return Fixed(found.x, flat_of(found.z), b, metric, aims)


def _finite(value: float) -> float:
    return math.inf if math.isnan(value) else value * ROUND
