"""What the pilot of `AtTheTruth` fixes before the samples that count are seen: metrics, weights, a point.

Everything here is a function of the pilot and of what is known beforehand; any other choice would be as valid, these
are short. The weight of an event suits the ball and the variance that the pilot foresees, and serves a larger ball too.
"""

import math
import warnings
from typing import NamedTuple

import jax
import numpy as np

from epszero._points import flat_of, length, shaped
from epszero._types import FloatArray, PyTree
from epszero.certificates.agents import reach
from epszero.certificates.case import Case
from epszero.certificates.local import ROUND, Local, farthest
from epszero.certificates.mean._base import log_of
from epszero.certificates.truth import Aim, Corner, Ground, Inside, Metric, bends, tilts, weight
from epszero.facts import Constant, Provenance, Unknown
from epszero.oracles.features import sample_rows
from epszero.problems import ConvexityWarning, Minimization
from epszero.problems.backward import is_part
from epszero.samples import Samples
from epszero.sets import Set
from epszero.solve import solve

CORNERS = 300  # of a domain that are looked at
ROOM = 3.0  # weights suit a ball, and serve one so many times as large


class Settled(NamedTuple):
    """What the pilot fixes."""

    x: PyTree  # x̃, its solution
    z: FloatArray  # of A there
    metric: Metric
    aims: dict[str, Aim]
    weights: dict[str, float]  # of the events of Jacobians
    tilt: FloatArray  # units of the second of these: S_P^½, or 1


def settle(case: Case, first: Samples, many: int, levels: dict[str, float]) -> Settled:
    """Metrics and weights, by the pilot alone: about its own solution, for `many` samples to come."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvexityWarning)
        found = solve(case.problem, first, x0=case.facts.x, throw=False)
    x, flat = found.x, case.facts.directions
    Z = np.eye(len(flat_of(x))) if flat is None else flat
    log = {name: log_of(2, level) for name, level in levels.items() if level > 0}
    metric = Metric.of(Z, local_of(case, x, first).slopes)
    ground = ground_of(case, x, first, first, metric)
    far = min(start_of(case, ground, flat_of(found.z), mu_of(case), 0.5, 0.0), 1e9 * (1 + length(flat_of(x)))) / ROOM
    energy = metric.back @ Z.T
    maps = {"residual": np.eye(len(Z)), "plain": np.eye(len(Z)), "energy": energy, "distance": metric.back @ energy}
    if ground.local.affine:
        maps["here"] = energy
    ball = min(_foreseen(ground, energy, log["energy"], many), far)
    balls = dict.fromkeys(maps, ball) | {"plain": far, "residual": 0.0, "here": 0.0}
    aims = {name: Aim(W, _weight(ground, W, log[name], many, balls[name]), log[name]) for name, W in maps.items()}
    if not ground.local.affine:
        return Settled(x, flat_of(found.z), metric, aims, {}, np.eye(Z.shape[1]))
    units = min((metric.root, np.eye(Z.shape[1])), key=lambda one: _tilted(ground, one, log["tilt"], many))
    found_rows = {"bend": bends(ground), "tilt": tilts(ground, inverse(units))}
    weights = {name: weight(log[name], many, 1.05 * c, _variance(rows)) for name, (rows, c) in found_rows.items()}
    return Settled(x, flat_of(found.z), metric, aims, weights, units)


def _weight(ground: Ground, W: FloatArray, log: float, many: int, ball: float) -> float:
    """The best for a ball of this size, as long as it serves one three times as large."""
    inside = ground.inside(ROOM * ball)
    c, V = inside.moments(W, ball)
    widest = inside.moments(W, ROOM * ball).c  # 0 where the noise vanishes at the pilot's point: any weight serves
    return min(weight(log, many, 1.05 * c, V / len(ground.local.rows)), 0.9 / widest if widest > 0 else math.inf)


def _tilted(ground: Ground, units: FloatArray, log: float, many: int) -> float:
    """What (H − Ĥ_r)(x̂ − x̃) will come to in these units, by the pilot."""
    rows, c = tilts(ground, inverse(units))
    w = weight(log, many, c, _variance(rows))
    bound = Aim(units, w, log).radius(many, c, _variance(rows) * many)
    back = units @ ground.metric.back @ ground.metric.back @ ground.metric.Z.T
    return bound * math.sqrt(_variance(ground.centred @ back.T))


def inverse(units: FloatArray) -> FloatArray:
    """Of units that are regular."""
    return np.asarray(np.linalg.inv(units), dtype=np.float64)


def _variance(rows: FloatArray) -> float:
    return float(np.mean(np.sum(np.square(rows), axis=1)))


def _foreseen(ground: Ground, W: FloatArray, log: float, many: int) -> float:
    """How large the ball will be, by the pilot: to tune weights, nothing more."""
    values = np.linalg.eigvalsh(ground.metric.root)
    least = float(values[0]) if len(values) else 1.0
    ball = 0.0
    for _ in range(3):
        c, V = ground.inside(ball).moments(W, ball)
        w = weight(log, many, c, V / len(ground.local.rows))
        ball = Aim(W, w, log).radius(many, c, V * many / len(ground.local.rows)) / least
    return ball if math.isfinite(ball) else 1e3 * (1 + length(ground.local.flat))


def start_of(case: Case, ground: Ground, z: FloatArray, mu: float, bend: float, slack: float) -> float:
    """A ball that holds x*, about a point with z in A there but for `slack`: by the domain, or strong monotonicity."""
    far = float(np.linalg.norm(reach(case, ground.local.x)))
    around = ground.local.over_support
    if around is None:
        return far
    most = max(mu, law_mu(ground, bend))
    if not most > 0:
        return far
    largest = farthest(around, -z, ground.metric.Z.T)
    return min(far, (largest + math.sqrt(largest**2 + 4 * most * slack)) / (2 * most))


def law_mu(ground: Ground, bend: float) -> float:
    """Strong monotonicity of the law, where O is affine in x and its Jacobian known well enough; else 0."""
    if not ground.local.affine or not math.isfinite(bend):
        return 0.0
    S = Inside(ground, 0.0, np.zeros(1), 0.0, lambda _: 0.0).curvature
    values = np.linalg.eigvalsh(S - bend * ground.metric.root @ ground.metric.root)
    return max(float(values[0]), 0.0) if len(values) else math.inf


def ground_of(case: Case, x: PyTree, first: Samples, rest: Samples, metric: Metric) -> Ground:
    """Samples that count, and the pilot, about x."""
    sizes = [math.inf, math.inf]
    if not case.facts.structure.affine:  # else enclosures over the support are as good
        known = case.observed.R, case.observed.M
        sizes = [number(one) * ROUND or math.inf for one in known]
    return Ground(local_of(case, x, rest), local_of(case, x, first), metric, *sizes, corners=_corners(case, x))


def _corners(case: Case, x: PyTree) -> tuple[Corner, ...]:
    """Of a domain that is one set with few of them, where O is affine in x and enclosed there."""
    parts, leaves = jax.tree.leaves(case.problem.strategies.parts, is_leaf=is_part), jax.tree.leaves(x)
    if not case.facts.structure.affine or len(parts) != 1 or len(leaves) != 1 or np.ndim(leaves[0]) != 1:
        return ()
    part, n = parts[0], len(leaves[0])
    places = part.corners(n) if isinstance(part, Set) and part.exact else None
    if places is None or len(places) > CORNERS:
        return ()
    found = [(place, local_of(case, shaped(x, place), case.samples[0][:1]).over_support) for place in places]
    known = tuple(Corner(place, around) for place, around in found if around is not None)
    return known if len(known) == len(places) else ()


def local_of(case: Case, x: PyTree, samples: Samples) -> Local:
    """O about x at these samples."""
    return Local(case.facts, case.oracle, x, samples.values, sample_rows(samples.values))


def mu_of(case: Case) -> float:
    """Of every O(·, ξ): for affine ones as corners of the support say, or what is declared; no search is made."""
    if not case.facts.structure.affine:
        return number(case.mu)
    return number(case.mu) if has_mu(case) else 0.0


def has_mu(case: Case) -> bool:
    """Whether μ is known without a search."""
    return case.problem.declared.mu is not None or case.facts.over_corners is not None


def differs(case: Case) -> float:
    """How steep B − B̂ can be: κ − μ for gradients on the whole space, else 2κ."""
    kappa, mu = number(case.kappa), number(case.mu)
    whole = isinstance(case.problem, Minimization) and case.facts.directions is None
    return kappa - mu if whole else 2 * kappa


def number(constant: Constant | Unknown) -> float:
    """A constant that may be leant on, 0 where there is none."""
    return constant.value if isinstance(constant, Constant) and constant.provenance is not Provenance.VIOLATED else 0.0
