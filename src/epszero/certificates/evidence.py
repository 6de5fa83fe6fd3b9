"""From samples to the residuals that are possible: what `MeanDeviation`, `HoldOut`, `Anytime` and `Dependent` share.

If U holds the mean of the features with probability 1 − δ, then e ∈ z + G(x) + C(x)U. Without features the values
O(x, ξ_j) at a frozen x take their place. Several independent data sets share δ in equal parts.
Source: docs/theory.md, section 3, structure and hold-out.
"""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import jax
import numpy as np

from epszero._double import to_numpy
from epszero._points import length
from epszero._types import FloatArray, PyTree, Support
from epszero.certificates._base import INDEPENDENT, Finding, Leaning, Obstacle, cannot, check_independent
from epszero.certificates._inputs import GivenSupport
from epszero.certificates.case import Case
from epszero.certificates.mean import Betting, EmpiricalBernstein, MeanBound, MeanSet, Region
from epszero.certificates.residuals import Residuals
from epszero.facts import Gram, Provenance, brief_support
from epszero.oracles import Collapsed, Oracle
from epszero.samples import Samples, inside_support

MOST_VALUES = 3000  # entries of x up to which each has a bound of its own without features; norms have no such limit
SMALLEST = 1e-100  # the smallest size of noise that is computed with
FEW = 1  # features up to which betting is shorter than empirical Bernstein


@dataclass(frozen=True, eq=False)
class Evidence:
    """Independent samples of random vectors whose means determine the residual."""

    case: Case
    samples: list[Samples]
    support: GivenSupport  # as the user gave it to the kind: a set, "estimated", or None
    seen: list[Samples] | None = None  # other samples, which may tune weights
    independent: bool = True  # whether the samples are claimed to be so

    @cached_property
    def collapsed(self) -> Collapsed | None:
        """The features; None where there are none."""
        return self.case.collapsed(self.samples)

    @cached_property
    def rows(self) -> list[FloatArray]:
        """One matrix per data set: features, or values of O(x, ·)."""
        if self.collapsed is not None:
            return self.collapsed.features
        if len(self.samples) != 1:
            cannot("agents have data of their own, and their costs are not known to be affine in features of them")
        return [values_at(self.case, self.samples[0])]

    @property
    def what(self) -> str:
        """What the rows are, for messages."""
        if self.collapsed is None:
            return "O(x, ξ)"
        return "ξ" if self.collapsed.own else "φ(ξ)"

    def regions(self, bound: MeanBound) -> tuple[list[Region | None], list[Leaning]]:
        """Where the rows can lie, and on whose word."""
        if bound not in self._regions:
            self._regions[bound] = self._find_regions(bound)
        return self._regions[bound]

    @cached_property
    def _regions(self) -> dict[MeanBound, tuple[list[Region | None], list[Leaning]]]:
        return {}

    def _find_regions(self, bound: MeanBound) -> tuple[list[Region | None], list[Leaning]]:
        if not bound.needs_region:
            return [None] * len(self.rows), [_leaning(*said) for said in bound.assumptions()]
        found = [self._region(place, rows) for place, rows in enumerate(self.rows)]
        if self.seen:
            earlier = Evidence(self.case, self.seen, self.support)
            before = earlier.rows
            for place, rows in enumerate(before):
                earlier._region(place, rows)  # they must lie where the fresh ones do
            found = [(one.after(rows), leaning) for (one, leaning), rows in zip(found, before, strict=True)]
        leanings = list(dict.fromkeys(leaning for _, leaning in found))
        return [region for region, _ in found], leanings + [_leaning(*said) for said in bound.assumptions()]

    def _region(self, place: int, rows: FloatArray) -> tuple[Region, Leaning]:
        name, dim = self.what, rows.shape[1]
        if isinstance(self.support, str):
            lower, upper = rows.min(axis=0), rows.max(axis=0)
            region = Region.box(lower, upper)
            _check_size(region, name)
            return region, Leaning(
                f"support of {name}: the range of the {len(rows)} samples", Provenance.ESTIMATED, "read off the data"
            )
        if self.support is None and self.collapsed is not None:
            return self._known_region(self.collapsed, place)
        support = self.support
        if support is None:
            return self._declared_range(dim, rows)
        region = Region.of(support, dim)
        if region is None:
            cannot(f"the support of {name} has no known size: it is unbounded, or no set of dim={dim}")
        _check_size(region, name)
        leaning = Leaning(
            f"support of {name}: {brief_support(support)}", Provenance.DECLARED, "every sample lies inside"
        )
        self._check_inside(leaning, support, rows.reshape(-1, *(support.point_shape or rows.shape[1:])), name)
        return region, leaning

    def _known_region(self, collapsed: Collapsed, place: int) -> tuple[Region, Leaning]:
        """From the support of ξ, that of the samples or the declared one."""
        own = self.samples[collapsed.sets[place]]
        declared = self.case.problem.declared.support
        support = declared if own.support is None else own.support
        rows = collapsed.features[place]
        if support is None:
            return self._declared_range(rows.shape[1], rows)
        region = self.case.feature_region(collapsed, place, self.samples)
        if region is None:
            if collapsed.phi[place] is not None:
                cannot("the features φ(ξ) have no bound over the support of ξ")
            cannot(f"the support of ξ has no known size: it is unbounded, or no set of dim={rows.shape[1]}")
        _check_size(region, self.what)
        return region, self.support_of_samples(collapsed.sets[place])

    def support_of_samples(self, place: int = 0) -> Leaning:
        """On the support of ξ, that of a data set or the declared one, inside which every sample must lie."""
        own, declared = self.samples[place], self.case.problem.declared.support
        support = declared if own.support is None else own.support
        assert support is not None
        leaning = Leaning(f"support of ξ: {brief_support(support)}", Provenance.DECLARED, "every sample lies inside")
        if own.support is None:
            self._check_inside(leaning, support, own.values, "ξ")
        return leaning

    def _check_inside(self, leaning: Leaning, support: Support, values: PyTree, name: str) -> None:
        inside = inside_support(support, values).astype(bool)
        outside = np.flatnonzero(~inside)
        if len(outside):
            cannot(
                f"sample {outside[0]} has {name} outside the support ({len(outside)} of {len(inside)} do)",
                Leaning(leaning.what, Provenance.VIOLATED, f"sample {outside[0]}"),
            )

    def _declared_range(self, dim: int, rows: FloatArray) -> tuple[Region, Leaning]:
        """From ez.declare(R=…) or M, for values of O."""
        declared = self.case.problem.declared
        bounds = [value for value in (declared.R, None if declared.M is None else 2 * declared.M) if value is not None]
        if self.collapsed is None and bounds:
            R = min(bounds)
            seen = largest_apart(rows)
            if seen > R * (1 + 1e-9):
                cannot(
                    f"‖O(x, ξ) − O(x, ξ′)‖ ≤ {R:.4g} is declared, but two samples are {seen:.4g} apart",
                    Leaning(f"‖O(x, ξ) − O(x, ξ′)‖ ≤ {R:.4g}", Provenance.VIOLATED, "two samples"),
                )
            region = Region.within(R, dim)
            _check_size(region, "O(x, ξ)")
            return region, Leaning(f"‖O(x, ξ) − O(x, ξ′)‖ ≤ {R:.4g}", Provenance.DECLARED, "ez.declare")
        where = "Samples(values, support=…)" if self.what == "ξ" else "support=… of the certificate"
        also = " or ez.declare(R=…)" if self.collapsed is None else ""
        cannot(
            f"nothing is known of the size of the noise: give the support of {self.what} by {where}{also}; or a bound "
            "with declared tails (SubGaussian, MedianOfMeans); or support='estimated', which is heuristic",
            obstacle=Obstacle.NO_SUPPORT,
        )

    def suited(self) -> MeanBound:
        """A bound for this many features, chosen before their values are looked at."""
        boxed = self.collapsed is not None and all(rows.shape[1] <= FEW for rows in self.rows)
        return Betting() if boxed else EmpiricalBernstein()


def examined(evidence: Evidence, bound: MeanBound, delta: float, title: str, *leanings: Leaning) -> Finding:
    """The possible residuals, by one confidence set for the mean of each data set."""
    case, rows = evidence.case, evidence.rows
    if evidence.independent:
        independent = check_independent(evidence.samples)
        leanings = leanings if leanings and independent is INDEPENDENT else (*leanings, independent)
    regions, known = evidence.regions(bound)
    share = delta / max(1, len(rows))
    for matrix in rows:
        if len(matrix) < bound.least(share):
            cannot(f"too few samples: {len(matrix)}, where {bound.title} needs {bound.least(share)}")
    _check_boxes(bound, regions)
    ready = case.sets.get((bound, delta))
    each = zip(rows, regions, strict=True)
    sets = [bound.around(matrix, region, share) for matrix, region in each] if ready is None else [ready]
    residuals = _residuals(evidence, sets)
    empirical = length(case.empirical)
    terms = {"empirical": empirical, "deviation": residuals.epsilon - empirical, "samples": float(_count(rows))}
    leans_on = (*known, *leanings, *_structure(evidence)) if rows else ()
    return Finding(residuals, f"{title}, {bound.title}, {_said(rows)}", terms, leans_on)


def _residuals(evidence: Evidence, sets: list[MeanSet]) -> Residuals:
    case, collapsed = evidence.case, evidence.collapsed
    if collapsed is None:
        (only,) = sets
        if not only.is_box:
            return Residuals.ball(case.z + only.centre, float(only.radius))
        if len(case.z) > MOST_VALUES:
            cannot(
                f"x has {len(case.z)} entries, too many for a bound on each (at most {MOST_VALUES}): take a bound on "
                "the norm (EmpiricalBernstein), or say that the oracle is affine in features (ez.oracles.Affine)"
            )
        identity = np.eye(len(case.z))
        return Residuals(case.z + only.centre, only.radius, np.arange(len(case.z)), identity, Gram(identity))
    B, additive = collapsed.at([one.centre for one in sets]), case.additive(collapsed)
    if not sets:
        return Residuals.ball(case.residual(B), 0.0)
    C, gram = case.noise_map(collapsed)
    if C is not None and evidence.samples == case.samples:  # ê is known already, and B is affine in the mean
        means = case.means(evidence.samples)
        centre = case.empirical + C @ np.concatenate([one.centre - mean for one, mean in zip(sets, means, strict=True)])
    else:
        centre = case.residual(B)
    if len(sets) == 1 and not sets[0].is_box:
        return Residuals(centre, np.atleast_1d(sets[0].radius), None, C, gram, B, additive)
    radii = np.concatenate([np.atleast_1d(one.radius) for one in sets])
    repeats = [1 if one.is_box else len(one.centre) for one in sets for _ in np.atleast_1d(one.radius)]
    return Residuals(centre, radii, np.repeat(np.arange(len(radii)), repeats), C, gram, B, additive)


def _structure(evidence: Evidence) -> list[Leaning]:
    if evidence.collapsed is None or evidence.case.problem.oracle.structure == "known":
        return []
    phi = evidence.what
    form = f"G(x) + C{phi}, additive noise" if evidence.case.additive(evidence.collapsed) else f"G(x) + C(x){phi}"
    if evidence.case.affine(evidence.collapsed):
        return [Leaning(f"O(x, ξ) = {form}", Provenance.EXACT, "by following its operations")]
    return [Leaning(f"O(x, ξ) = {form}", Provenance.DECLARED, "checked at two samples")]


def largest_apart(rows: FloatArray) -> float:
    """At most the largest distance between two rows: the largest from the first."""
    return float(np.max(length(rows - rows[0], axis=1), initial=0.0))


def _check_size(region: Region, name: str) -> None:
    """Squares of lengths in the region must neither overflow nor vanish."""
    if not (region.is_point or SMALLEST < region.diameter < 1 / SMALLEST):
        cannot(f"the support of {name} has the diameter {region.diameter:.3g}: scale the data so that it is near 1")


def _check_boxes(bound: MeanBound, regions: list[Region | None]) -> None:
    if isinstance(bound, Betting) and any(region is None or region.lower is None for region in regions):
        cannot("box betting needs a support with known corners: give support=ez.sets.Box(…), or use EmpiricalBernstein")


def _leaning(what: str, whose: str) -> Leaning:
    return Leaning(what, Provenance(whose))


def _count(rows: list[FloatArray]) -> int:
    return sum(len(matrix) for matrix in rows)


def _said(rows: list[FloatArray]) -> str:
    if len(rows) == 1:
        return f"{len(rows[0])} samples"
    return f"{_count(rows)} samples in {len(rows)} data sets" if rows else "no samples needed"


@eqx.filter_jit
def _every_value(oracle: Oracle, data: PyTree, point: PyTree) -> PyTree:
    return jax.lax.map(lambda xi: oracle(point, xi), data, batch_size=256)


def values_at(case: Case, samples: Samples) -> FloatArray:
    """O(x, ξ_j), flat, for all samples."""
    values = to_numpy(_every_value(case.oracle, samples.values, case.point))
    return np.concatenate([np.reshape(leaf, (len(leaf), -1)) for leaf in jax.tree.leaves(values)], axis=1)
