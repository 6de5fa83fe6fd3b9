"""What follows once the piece of x* is known: distance, savings and intervals, each by an event of its own.

E₁, level δ₁: m* ∈ U, and U lies inside the piece of x̂ (certificates/piece.py). Then the piece of x̂ is that of x*, which
is a fact about the law and not about the data, and so is every matrix that is made from the piece alone, such as T.
E₂ (distance): a bound on the mean of the vectors Tφ(ξ_i), all samples: ‖x̂ − x*‖ ≤ radius + ‖centre − Tm̂‖ + ‖x(m̂) − x̂‖.
E₃ (savings): with S_i = Z_i(Z_iᵀM_iZ_i)⁻¹Z_iᵀ on the face of agent i, its saving is ½vᵀS_iv, v = C_i(m − m̂) + ê_i, as
long as m stays where its best response stays on that face, which U is asked about too. One event serves all agents: a
bound on K^½φ(ξ_i) for a K that is at least C_iᵀS_iC_i for every i. Where K and TᵀT are nearly multiples of each other,
which the piece says, one event of both levels together serves E₂ and E₃.
E₄ (intervals): a scalar bound for each row of a matrix L: ℓᵀx* = ℓᵀ(x(m̂) + Tm̂) − E ℓᵀTφ(ξ).
Each holds with probability ≥ 1 − its share, and all together with 1 − δ.
U is aimed by a pilot, the first tenth of the samples: with the pilot's mean on the same piece, W has the rows of the
sensitivities divided by the pilot's margins, and the vector bound is applied to Wφ(ξ_i) of the other samples.
Floor: an outcome at a corner of the support with probability ln(1/δ)/s stays unseen with probability δ, so no bound
that holds for every law can be below (ln(1/δ)/s)·‖T(corner − m)‖, up to terms of higher order.
Source: docs/theory.md, section 6.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np

from epszero._memory import key_of, remembered
from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.certificates.mean import Betting, MeanBound, MeanSet
from epszero.certificates.mean.empirical_bernstein import Swift
from epszero.certificates.piece import AffinePiece, piece_of
from epszero.certificates.responses import Responses, responses_of
from epszero.facts import Region, Unknown
from epszero.solve import solve

PILOT = 10  # a tenth of the samples
FEWEST = 20  # samples, below which no pilot is taken
WASTE = 1.3  # how much larger, in trace, a map may be that serves distance and savings at once
EPS = 8 * float(np.finfo(np.float64).eps)
TINY = 1e-12  # of the largest eigenvalue
ROUNDING = 1e-9  # relative: sensitivities this small are none, and margins must exceed as much
CHUNK = 2000  # intervals that are worked out at once
HOPELESS = 2.0  # times how far its mean may be off: a margin below that is not aimed at
INTERVALS = 64  # rows up to which intervals are by betting, which is shorter and takes longer


class Levels(NamedTuple):
    """Of the events of each line: the probability that it fails; 0 where it is not asked for."""

    distance: float
    savings: float
    intervals: float


@dataclass(frozen=True, eq=False)
class Sharp:
    """x* lies on the piece of x̂, with probability ≥ 1 − δ₁."""

    piece: AffinePiece
    features: FloatArray  # φ(ξ_i), all of them
    mean: FloatArray  # m̂, of those that x̂ was found with
    region: Region  # where they can lie
    x: FloatArray  # x̂
    responses: Responses | None
    certified: Any  # of each agent: whether its response stays on its face for all of U
    roots: "Roots"  # of T and of what agents save: they belong to the piece

    def __getstate__(self) -> dict[str, Any]:
        """For pickles: what is worked out on the way is functions, and worked out again."""
        return {name: value for name, value in vars(self).items() if name != "_balls"}

    @cached_property
    def _balls(self) -> dict[str, Callable[[float], MeanSet]]:
        """Confidence sets for the means of maps of φ(ξ), by the name of the map, for every δ."""
        return {}

    def distance(self, levels: Levels) -> float:
        """‖x̂ − x*‖, on an event of its level."""
        rounding = EPS * length(self.x)  # on a vertex that the noise cannot move it is all there is
        return self._reach(*self._event(levels, "T", levels.distance)) + length(self.piece.start) + rounding

    def parts(self, levels: Levels, delta: float) -> dict[str, float]:
        """What the width of `distance` is made of: variance, range, the split of δ; and the floor."""
        T, s = self.roots.T, len(self.features)
        apart = (self.features - self.mean) @ T.T
        variance = math.sqrt(2 * math.log(2 / delta) * float(np.vdot(apart, apart)) / s / s)
        whole = self._reach(self._event(levels, "T", levels.distance)[0], delta)
        far = float(self.roots.region("T", self.region).farthest((T @ self.mean)[None])[0])
        return {
            "distance by variance": min(variance, whole),
            "distance by range": max(whole - variance, 0.0),
            "distance by the split of delta": max(self.distance(levels) - whole, 0.0),
            "distance, floor": math.log(1 / delta) / s * far,
        }

    def savings(self, levels: Levels) -> FloatArray | None:
        """What each agent could save alone, ∞ where its response may leave the face; None where nothing is known."""
        if self.responses is None:
            return None
        fixed = self.responses.fixed
        name, delta = self._event(levels, "grams", levels.savings)
        R = self.roots[name]
        if not len(R):
            return np.where(self.certified, fixed**2 / 2, np.inf)
        centre, radius = self._ball(name, delta)
        bent, spread = self.roots.of_agents(name)
        y = centre - R @ self.mean
        moved = np.sqrt(np.maximum(np.einsum("ai,i->a", bent @ y, y), 0.0))
        whole = moved + radius * spread * (1 + ROUNDING) + fixed
        return np.where(self.certified, whole**2 / 2, np.inf)

    def _event(self, levels: Levels, alone: str, delta: float) -> tuple[str, float]:
        """The map whose mean is bounded, and the level: one event for distance and savings where that costs little."""
        together = levels.distance > 0 and levels.savings > 0 and self.roots.joint is not None
        return ("joint", levels.distance + levels.savings) if together else (alone, delta)

    def _reach(self, name: str, delta: float) -> float:
        """sup ‖T(m − m̂)‖ over the ball of that level about the mean of Rφ(ξ), R the map of that name."""
        centre, radius = self._ball(name, delta)
        y = centre - self.roots[name] @ self.mean
        if name == "T":
            return radius + length(y)
        bent, norm = self.roots.through_joint
        return norm * (1 + ROUNDING) * radius + length(bent @ y)

    def intervals(self, L: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on ℓᵀx* for the rows ℓ of L, all at once, on an event of level δ."""
        at = L @ (self.x + self.piece.start)
        return self._between(at, L @ self.piece.T, delta)

    def prices(self, delta: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the multipliers of shared constraints, all at once."""
        return self._between(self.piece.prices, -self.piece.price_slopes, delta)

    def _between(self, at: FloatArray, rows: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
        """at + r m̂ − r m* for each row r."""
        reach = np.abs(rows) @ (self._upper - self._lower)
        moving = np.flatnonzero(reach > 0)
        low, high = at.copy(), at.copy()
        if not len(moving):
            return low, high
        some = rows[moving]
        bound = Betting() if len(some) <= INTERVALS else Swift()
        least = np.minimum(some * self._lower, some * self._upper).sum(axis=1)
        unit = Region.box(np.zeros(1), np.ones(1))
        for start in range(0, len(some), CHUNK):
            part = slice(start, start + CHUNK)
            scaled = np.clip((self.features @ some[part].T - least[part]) / reach[moving[part]], 0.0, 1.0)
            found = bound.around(scaled.T[:, :, None], unit, delta / len(some))
            radius = np.reshape(found.radius, -1)
            ends = [least[part] + reach[moving[part]] * (found.centre[:, 0] + sign * radius) for sign in (1, -1)]
            now = some[part] @ self.mean
            low[moving[part]] += now - ends[0]
            high[moving[part]] += now - ends[1]
        return low, high

    @property
    def _lower(self) -> FloatArray:
        assert self.region.lower is not None
        return self.region.lower

    @property
    def _upper(self) -> FloatArray:
        assert self.region.upper is not None
        return self.region.upper

    def _ball(self, name: str, delta: float) -> tuple[FloatArray, float]:
        """About E Rφ(ξ), all samples."""
        if name not in self._balls:
            rows = self.features @ self.roots[name].T
            at = Swift().prepared(rows, self.roots.region(name, self.region))
            self._balls[name] = cache(at)
        found = self._balls[name](delta)
        return found.centre, float(found.radius)


class Roots:
    """Of the piece alone, as the events are: R with ‖Rv‖ = ‖Tv‖, R with RᵀR above what every agent saves, or both."""

    def __init__(self, T: FloatArray, grams: FloatArray | None) -> None:
        self.T = np.asarray(np.linalg.qr(T, mode="r"), dtype=np.float64)
        self._grams = grams

    def __getitem__(self, name: str) -> FloatArray:
        return getattr(self, name)

    def region(self, name: str, region: Region) -> Region:
        """Where Rφ(ξ) can lie."""
        return remembered(self, (name, key_of((region.lower, region.upper))), lambda: region.through(self[name]))

    @cached_property
    def grams(self) -> FloatArray:
        """R with RᵀR above every agent's C_iᵀS_iC_i."""
        assert self._grams is not None
        return _factor(_above(self._grams))

    @cached_property
    def joint(self) -> FloatArray | None:
        """R with RᵀR above TᵀT and every agent's matrix, each in units of its own; None where that is wasteful."""
        if self._grams is None or not len(self.grams):
            return None
        pair = [root / max(float(np.linalg.norm(root, 2)), 1e-300) for root in (self.T, self.grams)]
        squares = [root.T @ root for root in pair]
        both = _above(np.stack(squares))
        wasteful = float(np.trace(both)) > WASTE * min(float(np.trace(square)) for square in squares)
        return None if wasteful else _factor(both)

    @cached_property
    def through_joint(self) -> tuple[FloatArray, float]:
        """TR⁻¹ and its norm, R the joint map."""
        assert self.joint is not None
        bent = self.T @ np.linalg.inv(self.joint)
        return bent, float(np.linalg.norm(bent, 2))

    def of_agents(self, name: str) -> tuple[FloatArray, FloatArray]:
        """R⁻ᵀC_iᵀS_iC_iR⁻¹ of every agent, and the square root of its norm."""
        return remembered(self, name, lambda: self._of_agents(np.linalg.inv(self[name])))

    def _of_agents(self, back: Any) -> tuple[FloatArray, FloatArray]:
        assert self._grams is not None
        bent = np.einsum("di,ade,ej->aij", back, self._grams, back, optimize=True)
        tops = np.linalg.eigvalsh((bent + np.swapaxes(bent, 1, 2)) / 2)[:, -1]
        return bent, np.sqrt(np.maximum(tops, 0.0))


@dataclass(frozen=True, eq=False, repr=False)
class Undecided(Unknown):
    """The piece of x̂ is not certified whole; what was looked at, for those who certify a part of it."""

    piece: AffinePiece
    mean: FloatArray  # m̂
    aimed: "_Aimed | None"  # U, which holds m* with probability ≥ 1 − δ₁


def certified(case: Case, features: FloatArray, region: Region, C: FloatArray, delta: float) -> Sharp | Unknown:
    """E₁: the piece of x̂ over U, or why it is not certified."""
    s = len(features)
    if region.lower is None or region.upper is None:
        return Unknown("the support of the features has no known corners")
    if s < FEWEST:
        return Unknown(f"{s} samples are too few to certify the piece that x lies on (at least {FEWEST})")
    piece = piece_of(case, C)
    if isinstance(piece, Unknown):
        return piece
    return _on(case, piece, features, region, C, delta)


def _on(
    case: Case, piece: AffinePiece, features: FloatArray, region: Region, C: FloatArray, delta: float
) -> Sharp | Unknown:
    first = -(-len(features) // PILOT)
    mean = _mean_of_run(case)
    aim = _aim(case, piece, features[:first], mean, C)
    if aim is None:
        return Undecided(f"the first {first} samples alone lie on no piece that is known", piece, mean, None)
    weights = np.maximum(aim.margins, _floor(aim.sensitivities, features[:first], len(features), delta))
    U = _Aimed.at(aim.sensitivities, weights, features[first:], region.after(features[:first]), delta)
    kept = U.keeps(piece.margins, piece.sensitivities, mean)
    if not kept.all():
        short = f"{int(np.sum(~kept))} of {len(kept)}"
        reason = f"{short} slacks and multipliers are too small to tell on which piece the truth lies"
        return Undecided(reason, piece, mean, U)
    responses = responses_of(case, piece, C)
    grams = None if responses is None else responses.grams
    roots = remembered(case.problem, ("roots", case.facts.shapes, piece.key), lambda: Roots(piece.T, grams))
    faces = None
    if responses is not None:
        firm = U.keeps(responses.margins, responses.sensitivities, mean)
        faces = np.array([bool(firm[place].all()) for place in responses.places])
    return Sharp(piece, features, mean, region, flat_of(case.x), responses, faces, roots)


def _mean_of_run(case: Case) -> FloatArray:
    """m̂: of the samples that x̂ was found with, whatever else was kept aside."""
    return case.means(case.samples)[0]


class _Aim(NamedTuple):
    """The piece of the pilot's own solution: a function of the pilot alone."""

    margins: FloatArray  # there
    sensitivities: FloatArray


def _aim(case: Case, piece: AffinePiece, pilot: FloatArray, mean: FloatArray, C: FloatArray) -> _Aim | None:
    """Where the pilot's mean is inside the piece of x̂, that is the pilot's own; else the pilot is solved for."""
    margins = piece.margins + piece.sensitivities @ (np.mean(pilot, axis=0) - mean)
    if (margins > 0).all():
        return _Aim(margins, piece.sensitivities)
    samples = case.samples[0][: len(pilot)] if len(case.samples[0]) >= len(pilot) else None
    if samples is None:
        return None
    alone = solve(case.problem, samples, x0=case.facts.x, throw=False)  # from a start that does not know the others
    own = piece_of(Case.of(alone), C)
    if isinstance(own, Unknown) or not (own.margins > 0).all():
        return None
    return _Aim(own.margins, own.sensitivities)


def _floor(sensitivities: FloatArray, pilot: FloatArray, s: int, delta: float) -> FloatArray:
    """Margins below this are not aimed at: nothing could certify them, and others would pay for it."""
    apart = pilot - np.mean(pilot, axis=0)
    spread = np.einsum("qd,qd->q", sensitivities @ (apart.T @ apart / len(pilot)), sensitivities)
    return HOPELESS * np.sqrt(2 * math.log(2 / delta) * np.maximum(spread, 0.0) / s)


@dataclass(frozen=True, eq=False)
class _Aimed:
    """U = {m : ‖Rm − centre‖ ≤ radius, lower ≤ m ≤ upper}, R from the sensitivities and margins of a pilot."""

    R: FloatArray
    centre: FloatArray
    radius: float
    lower: FloatArray  # of the support, where every mean lies
    upper: FloatArray

    @staticmethod
    def at(
        sensitivities: FloatArray,
        weights: FloatArray,
        rest: FloatArray,
        region: Region,
        delta: float,
        bound: MeanBound | None = None,
    ) -> "_Aimed":
        """From samples that the pilot did not see. Rows that only rounding moves are left out."""
        assert region.lower is not None
        assert region.upper is not None
        moving = np.abs(sensitivities) @ (region.upper - region.lower) > ROUNDING * weights
        W = sensitivities[moving] / weights[moving, None]
        R = np.asarray(np.linalg.qr(W, mode="r"), dtype=np.float64)
        if not len(R):
            return _Aimed(R, np.zeros(0), 0.0, region.lower, region.upper)
        ball = (bound or Swift()).around(rest @ R.T, region.through(R), delta)
        return _Aimed(R, ball.centre, float(ball.radius), region.lower, region.upper)

    @cached_property
    def _back(self) -> FloatArray:
        """R⁻¹, or R⁺ where there is none: what it misses is looked at."""
        R: Any = self.R
        if R.shape[0] == R.shape[1] and np.abs(np.diagonal(R)).min(initial=np.inf) > 1e-13 * np.abs(R).max(initial=0.0):
            return np.linalg.inv(R)
        return np.linalg.pinv(R, rcond=1e-13).astype(np.float64)

    def keeps(self, margins: FloatArray, sensitivities: FloatArray, mean: FloatArray) -> Any:
        """Which of margins + sensitivities·(m − m̂) are positive for every m ∈ U, by the ball or by the support."""
        size = np.abs(sensitivities).max(axis=1, initial=0.0)
        through = sensitivities @ self._back
        missed = np.abs(through @ self.R - sensitivities).max(axis=1, initial=0.0) > ROUNDING * size
        by_ball = margins + through @ (self.centre - self.R @ mean) - self.radius * length(through, axis=1)
        ends = sensitivities * (self.lower - mean), sensitivities * (self.upper - mean)
        by_support = margins + np.minimum(*ends).sum(axis=1)
        enough = ROUNDING * np.abs(margins)
        return ((by_ball > enough) & ~missed) | (by_support > enough)


def _above(grams: FloatArray) -> FloatArray:
    """A matrix K with K − G positive semidefinite for every G."""
    above = grams[0]
    for gram in grams[1:]:
        values, vectors = np.linalg.eigh((gram - above + (gram - above).T) / 2)
        above = above + (vectors * np.maximum(values, 0.0)) @ vectors.T
    return above * (1 + ROUNDING)


def _factor(K: FloatArray) -> FloatArray:
    """R with RᵀR = K and a little more, so that it has an inverse; no rows where K is 0."""
    values, vectors = np.linalg.eigh((K + K.T) / 2)
    most = float(values[-1]) if len(values) else 0.0
    if not most > 0:
        return np.zeros((0, len(K)))
    return np.sqrt(np.maximum(values, 0.0) + TINY * most)[:, None] * vectors.T
