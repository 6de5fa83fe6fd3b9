"""The noise at the truth: for random Jacobians and nonlinear oracles; all samples, no hold-out, no μ of the law.

Claim: with probability ≥ 1 − δ, all of these hold at once: ‖x̂ − x*‖, ‖z + B(x̂)‖ and, in a minimisation, the cost gap
are at most what certificates/truth.py says, from bounds on (B̂ − B)(x*) in several metrics, each at its share of δ; and,
where the oracle is affine in features, what `MeanDeviation` says at its share. The shares are fixed before the data are
looked at; a pilot, the first samples, fixes metrics and weights.
Assumes independent samples of one law, a bounded support of ξ (or a declared R), O continuous in x; no shared
constraints. Strong monotonicity is that of the samples' average, which is computed.
Source: docs/theory.md, section 9.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from epszero._checks import one_of
from epszero._points import flat_of, length
from epszero.certificates._base import Finding, Kind, Leaning, Obstacle, Refused, cannot, check_independent
from epszero.certificates._near import Near
from epszero.certificates.by_terms import looked_by_terms
from epszero.certificates.case import Case
from epszero.certificates.certified_piece import LINES
from epszero.certificates.evidence import Evidence, examined
from epszero.certificates.local import ROUND, spectral
from epszero.certificates.mean import Betting, MeanBound
from epszero.certificates.mean._base import log_of
from epszero.certificates.mean_deviation import every_sample
from epszero.certificates.pilot import Settled, differs, ground_of, inverse, law_mu, local_of, mu_of, settle, start_of
from epszero.certificates.residuals import Residuals
from epszero.certificates.stages import stages_of
from epszero.certificates.truth import Ground, Search, bends, mean_radius, tilts
from epszero.facts import Constant, Facts, Provenance, TooLarge, Unknown
from epszero.facts.enclosed import LARGEST
from epszero.problems import Minimization
from epszero.samples import Samples

PILOT = {True: 10, False: 3}  # one in ten samples where O is affine in x or a gradient, else one in three
NO_SUPPORT = "the support of ξ is not known, or unbounded: Samples(values, support=…)"
FEWEST = 40  # samples, below which there is no pilot
SHARES = {
    "plain": 0.05,
    "bend": 0.05,
    "tilt": 0.05,
    "residual": 0.35,
    "energy": 0.15,
    "here": 0.1,
    "distance": 0.05,
    "features": 0.05,
    "entries": 0.15,
}
AFFINE = ("bend", "tilt", "here")  # events for oracles that are affine in x
LINE_OF = {"residual": "residual", "distance": "distance", "cost gap": "energy", "exploitability": "residual"}


@dataclass(frozen=True, eq=False)
class AtTheTruth(Kind):
    """Any oracle with a bounded support, all samples. `of`: one line to spend most of δ on, such as "distance"."""

    of: str | None = None

    def __post_init__(self) -> None:
        if self.of is not None:
            one_of("of", self.of, LINES[:-1], "Pass one of these, or leave it out for all lines")

    @property
    def title(self) -> str:
        return "the noise at the truth"

    def shares(self, features: bool, affine: bool) -> dict[str, float]:
        """Of δ, for each event."""
        shares = dict(SHARES)
        if not features:
            shares |= {"features": 0.0, "entries": 0.0}
        if not affine:
            shares |= dict.fromkeys(AFFINE, 0.0)
        if self.of is not None:
            for name in ("residual", "energy", "distance"):
                shares[name] = 0.55 if name == LINE_OF[self.of] else 0.1
        total = sum(shares.values())
        return {name: share / total for name, share in shares.items()}

    def examine(self, case: Case, delta: float) -> Finding:
        why = obstacle_to(case)
        if why:
            cannot(why, obstacle=Obstacle.NO_SUPPORT if why == NO_SUPPORT else Obstacle.OTHER)
        evidence = Evidence(case, every_sample(case), None)
        (samples,) = evidence.samples
        leans_on = check_independent(evidence.samples), *_leanings(evidence)
        shares = self.shares(evidence.collapsed is not None, case.facts.structure.affine)
        levels = {name: delta * share for name, share in shares.items()}
        try:
            residuals, near = _looked(case, samples, levels)
        except TooLarge as error:
            cannot(str(error))
        many, empirical = float(len(samples)), length(case.empirical)
        terms = {"empirical": empirical, "deviation": residuals.epsilon - empirical, "samples": many}
        by = f"{self.title}, vector empirical Bernstein, {len(samples)} samples"
        found = Finding(residuals, by, terms, leans_on, near=near)
        for bound, name in ((evidence.suited(), "features"), (Betting(), "entries")):
            if levels[name]:
                found = _with_features(found, evidence, bound, levels[name])
        return found


def _with_features(found: Finding, evidence: Evidence, bound: MeanBound, delta: float) -> Finding:
    """Also what a confidence set for the mean of the features says, which holds for every x at once."""
    try:
        other = examined(evidence, bound, delta, "")
    except Refused:
        return found
    leans_on = tuple(dict.fromkeys([*found.leans_on, *other.leans_on]))
    best, more = (other, found) if other.epsilon < found.epsilon else (found, other)
    return replace(
        found,
        residuals=best.residuals,
        terms=best.terms,
        leans_on=leans_on,
        alternatives=(*best.alternatives, *more.every),
    )


def obstacle_to(case: Case) -> str:
    """Why the kind does not apply, from structure alone; empty where it does."""
    facts = case.facts
    many = min((len(one) for one in case.samples), default=0)
    plain = {
        f"{many} samples are too few for a pilot (at least {FEWEST})": many < FEWEST,
        "the noise at the truth is bounded for one data set that all agents see": len(case.samples) != 1,
        "shared constraints are not part of the noise at the truth": case.problem.coupling is not None,
        f"x has more than {LARGEST} entries, too many for a Jacobian of every sample": len(flat_of(case.x)) > LARGEST,
    }
    found = next((why for why, there in plain.items() if there), "")
    if found or facts.structure.affine:
        return found or ("" if facts.support.bounded else NO_SUPPORT)
    return NO_SUPPORT if not facts.support.bounded else _not_affine(facts)


def _not_affine(facts: Facts) -> str:
    if facts.jumps_in_x:
        return f"O is not known to be continuous in x: {facts.jumps_in_x}"
    unknown = [one.reason for one in (facts.mu, facts.kappa) if isinstance(one, Unknown)]
    return f"O is not affine in x, and no μ and κ of every O(·, ξ) are known: {unknown[0]}" if unknown else ""


def _looked(case: Case, samples: Samples, levels: dict[str, float]) -> tuple[Residuals, Near]:
    """Residuals that are possible at x̂, and where x* is."""
    tenth = case.facts.structure.affine or isinstance(case.problem, Minimization)
    p = max(-(-len(samples) // PILOT[tenth]), FEWEST // 2)
    first, rest = samples[:p], samples[p:]
    if tenth and not case.facts.structure.affine:
        read = looked_by_terms(case, first, rest, levels)
        if read is not None:
            return read
    settled = settle(case, first, len(rest), levels)
    ground = ground_of(case, case.x, first, rest, settled.metric)
    affine, mu = ground.local.affine, mu_of(case)
    bend, tilt = math.inf, math.inf
    if affine:
        bend = mean_radius(*bends(ground), log_of(2, levels["bend"]), settled.weights["bend"])
        tilted = tilts(ground, inverse(settled.tilt))
        tilt = mean_radius(*tilted, log_of(2, levels["tilt"]), settled.weights["tilt"])
    L = None if affine else differs(case)
    d = flat_of(case.x) - flat_of(settled.x)
    push, away = math.inf, math.inf
    if L is None:  # the event of the residual is of one mean: that of the stages, or that at the pilot's point
        residuals, push = _in_stages(case, samples, ground, settled, (bend, tilt))
    else:
        residuals, away = _at_pilot(case, settled, first, rest, L * length(d))
    e = length(settled.metric.Z.T @ residuals.centre) + residuals.radii[0]
    start, strong = start_of(case, ground, case.z, mu, bend, case.inexactness), max(mu, law_mu(ground, bend))
    if strong > 0:  # straight to the truth, or by way of the pilot's point
        straight = e + math.sqrt(e**2 + 4 * strong * case.inexactness)
        around = 2 * away if case.inexactness == 0 else math.inf  # of the pilot's own pair nothing else is known
        start = min(start, straight / (2 * strong), length(d) + around / (2 * strong))
    offset = case.z + np.mean(ground.local.values, axis=0)
    found = Search(len(rest), settled.metric, settled.aims, offset, case.inexactness, mu).run(ground, start)
    curved = bend * found.stretch**2 if L is None else L * found.distance**2
    ways = (found.energy**2 + curved) / 2, e * found.distance, (found.ratio * (found.pull + push)) ** 2 / 8
    gap = min(ways) + case.inexactness
    sizes = (("κ", case.kappa), ("R", case.observed.R), ("M", case.observed.M))
    used = (("μ", case.mu if mu > 0 else None), *(() if affine else sizes))
    leans_on = tuple(Leaning.on(f"{name} of every O(·, ξ)", one) for name, one in used if isinstance(one, Constant))
    return residuals, Near(_finite(found.distance), _finite(gap), "the noise at the truth", leans_on)


def _at_pilot(case: Case, settled: Settled, first: Samples, rest: Samples, moved: float) -> tuple[Residuals, float]:
    """z + B(x̂), the noise at x̂ being off by `moved` from that at x̃; and ‖z̃ + B(x̃)‖, between points of the domain."""
    there, here = ground_of(case, settled.x, first, rest, settled.metric), local_of(case, case.x, rest)
    c, V = there.inside(0.0).moments(settled.aims["residual"].W, 0.0)
    radius = settled.aims["residual"].radius(len(rest), c, V)
    mean = np.mean(there.local.values, axis=0)
    centre = case.z + np.mean(here.values, axis=0)
    near = Residuals.ball(centre, _finite(radius + moved))
    return near, length(settled.metric.Z.T @ (settled.z + mean)) + radius


def _in_stages(
    case: Case, samples: Samples, ground: Ground, settled: Settled, steep: tuple[float, float]
) -> tuple[Residuals, float]:
    """z + B(x̂), and its length in the metric of the energy, by points that come nearer (stages.py)."""
    stages = stages_of(case, samples, ground, settled.x, [settled.aims[name] for name in ("residual", "here")])
    (bend, tilt), metric = steep, settled.metric
    d = flat_of(case.x) - stages.x
    centre = case.z + stages.mean + np.mean(ground.local.slopes, axis=0) @ d
    moved = tilt * length(settled.tilt @ (metric.Z.T @ d))
    turned = math.inf
    if isinstance(case.problem, Minimization):  # whose Jacobians are symmetric
        turned = bend * length(metric.root @ (metric.Z.T @ d))
    radii = {name: stages.radius(settled.aims[name]) for name in ("residual", "here")}
    push = length(settled.aims["here"].W @ centre) + radii["here"] + min(turned, spectral(metric.back) * moved)
    return Residuals.ball(centre, _finite(radii["residual"] + moved)), _finite(push)


def _finite(value: float) -> float:
    return math.inf if math.isnan(value) else value * ROUND


def _leanings(evidence: Evidence) -> list[Leaning]:
    found = [evidence.support_of_samples()]
    if evidence.case.facts.structure.affine:
        found.append(Leaning("O(x, ξ) = H(ξ)x + h(ξ)", Provenance.EXACT, "by following its operations"))
    return found
