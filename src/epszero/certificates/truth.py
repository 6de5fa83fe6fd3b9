"""Bounds on the noise at the truth, and what follows of x̂: any oracle, all samples but a pilot, no stability.

x* does not depend on the data, so O(x*, ξ_i) are independent. The first p samples are a pilot: they fix, before the
other r are seen, a centre B̂_P (their average, as a function of x), maps W and weights w. For each W, with
probability ≥ 1 − δ_W (vector empirical Bernstein, certificates/mean/empirical_bernstein.py, with constant weights)
    ‖W(B̂_r − B)(x*)‖ ≤ (ln(2/δ_W) + ψ(cw)V/c²)/(rw),
V = Σ‖W(O(x*, ξ_i) − B̂_P(x*))‖² over the r samples, c ≥ sup_ξ ‖W(O(x*, ξ) − B̂_P(x*))‖. Both are bounded over a ball
about x̂ that holds x* (certificates/local.py): √V ≤ √V(x̂) + Λρ. The right side increases with c: an upper bound will do.
With z* = −B(x*) ∈ A(x*), u = x̂ − x* and q = z + B̂_r(x̂) − (B̂_r − B)(x*), monotonicity of A gives
    ⟨B̂_r(x̂) − B̂_r(x*), u⟩ ≤ ⟨q, u⟩,  so uᵀSu ≤ qᵀu,  S ⪯ the symmetric part of the Jacobians of B̂_r on the ball.
Hence ‖S^½u‖ ≤ N = ‖S^{−½}q‖, and ‖u‖ ≤ the least of ‖q‖/λ, N/√λ, ½‖S⁻¹q‖ + ½N/√λ, λ = λ_min(S): a smaller ball, in
which all is bounded anew, on the same events. W = I, S_P^{−½} and S_P⁻¹ serve ‖q‖, N and ‖S⁻¹q‖; S_P is the pilot's.
All directions are those between points of the domain.
Where O is affine in x, bounds on the mean of its random Jacobian H(ξ), in units of S_P, say how far Ĥ_r is from the
law's H: S_P^{−½}(Ĥ_r − H)S_P^{−½} has norm ≤ η, and (Ĥ_r − H)S_P^{−½} has norm ≤ τ. The cost gap of a minimisation is
≤ qᵀu − ½uᵀSu + ½uᵀ(H − Ĥ_r)u ≤ ½N² + ½η‖S_P^½u‖², and ≤ ½⟨e + q, u⟩ − ½uᵀSu ≤ ⅛‖S^{−½}S_P^½‖²(‖S_P^{−½}e‖ +
‖S_P^{−½}q‖)². Else L ≥ ‖∇B − ∇B̂‖ serves: κ − μ for gradients, 2κ for others.
The residual at x̂: with x̃ the pilot's solution, as fixed as x*, e = z + B̂_r(x̂) + (B − B̂_r)(x̃) + (H − Ĥ_r)(x̂ − x̃): one
more bound on a mean, that of O(x̃, ξ_i), and ‖(H − Ĥ_r)(x̂ − x̃)‖ ≤ τ‖S_P^½(x̂ − x̃)‖, or L‖x̂ − x̃‖; where O is affine
with points that come nearer (stages.py). Over a domain with few corners c and V are largest at one of these.
Source: docs/theory.md, section 9. Cost: one Jacobian for each sample; one solve for the pilot.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from epszero._points import length
from epszero._trace.intervals import Interval
from epszero._types import FloatArray
from epszero.certificates.local import ROUND, Local, farthest, spectral
from epszero.certificates.mean.empirical_bernstein import LARGEST, best_lambda

ROUNDS = 40  # of shrinking the ball
SETTLED = 0.995  # the ball shrinks no more
ENOUGH = 0.7  # a ball this much smaller is worth enclosing Jacobians anew
DIM = 1e-12  # of the largest eigenvalue: what LAPACK's may be off by


class Aim(NamedTuple):
    """One event: what of the noise is bounded, how samples are weighted, and ln(2/δ_W). Fixed by the pilot."""

    W: FloatArray
    w: float
    log: float

    def radius(self, many: int, c: float, V: float) -> float:
        """The bound, for `many` samples."""
        return self.over(many, [(c, V)])

    def over(self, many: int, parts: list[tuple[float, float]]) -> float:
        """The same for samples in parts with their own c and V."""
        if all(c == 0 for c, _ in parts):  # O(x, ·) is shown to be one vector for all ξ
            return 0.0
        found = self.log
        for c, V in parts:
            step = c * self.w
            if not step < LARGEST or not math.isfinite(V):
                return math.inf
            bend = 0.5 + step / 3 if step < 1e-5 else (-math.log1p(-step) - step) / step**2  # ψ(λ)/λ², increasing
            found += bend * (1 + 1e-9) * self.w**2 * V
        return found / (many * self.w) * ROUND


def weight(log: float, many: int, c: float, variance: float) -> float:
    """The best weight for this range and this variance."""
    c = min(max(c, 1e-150), 1e150)
    variance = max(variance, 1e-8 * c**2, 1e-300)
    return float(best_lambda(np.array([c**2 * log / (many * variance)]))[0]) / c


@dataclass(frozen=True, eq=False)
class Metric:
    """Directions of the domain and the pilot's curvature on them."""

    Z: FloatArray  # (n, k), orthonormal
    root: FloatArray  # S_P^½
    back: FloatArray  # S_P^{−½}

    @staticmethod
    def of(Z: FloatArray, slopes: FloatArray) -> "Metric":
        """From the pilot's Jacobians; a little is added, so that few samples have a curvature in all directions."""
        H = Z.T @ np.mean(slopes, axis=0) @ Z
        values, vectors = np.linalg.eigh((H + H.T) / 2)
        values = np.maximum(values, 0.0)
        most = max(float(np.mean(values)), 1e-300) if len(values) else 1.0
        values = values + max(min(1.0, 0.2 * len(values) / len(slopes)), 1e-9) * most
        return Metric(Z, (vectors * np.sqrt(values)) @ vectors.T, (vectors / np.sqrt(values)) @ vectors.T)


class Corner(NamedTuple):
    """A corner of the domain."""

    x: FloatArray
    around: Interval  # O(x, ξ) over the support


class Moments(NamedTuple):
    """Of W(O(x, ξ_i) − B̂_P(x)) in a ball about x̂."""

    c: float  # the largest, over the support
    V: float  # Σ of squares, over the samples


@dataclass(frozen=True, eq=False)
class Ground:
    """The samples that are counted, about one point: what each event needs to know in a ball."""

    local: Local  # of these samples
    pilot: Local  # about the same point, of the pilot
    metric: Metric
    R: float  # ‖O(x, ξ) − O(x, ξ′)‖ at most, over the domain; ∞ where it is not known
    M: float  # ‖O(x, ξ)‖ at most
    corners: tuple[Corner, ...] = ()  # whose hull is the domain, where O is affine in x and there are few

    @cached_property
    def centred(self) -> FloatArray:
        """O(x̂, ξ_i) − B̂_P(x̂)."""
        return self.local.values - self.centre

    @cached_property
    def centre(self) -> FloatArray:
        return np.mean(self.pilot.values, axis=0)

    @cached_property
    def slope(self) -> FloatArray:
        """Of B̂_P."""
        return np.mean(self.pilot.slopes, axis=0)

    @cached_property
    def turned(self) -> FloatArray:
        """(J_i − J_P)Z, (r, n, k)."""
        return (self.local.slopes - self.slope) @ self.metric.Z

    def moves(self, radius: float) -> tuple[FloatArray, float]:
        """How far the Jacobians of the samples, and that of B̂_P, may be from those at x̂."""
        if self.local.affine:
            return np.zeros(len(self.local.rows)), 0.0
        return self.local.moves(radius), float(np.mean(self.pilot.moves(radius)))

    def inside(self, radius: float) -> "Inside":
        """All of it in one ball."""
        moves, own = self.moves(radius)
        return Inside(self, radius, moves, own, self._slopes(radius, own))

    def _slopes(self, radius: float, own: float) -> Callable[[FloatArray], float]:
        """sup ‖W(K − K_P)Z‖ over the support, K the slope between x̂ and a point of the ball."""
        found = self.local.slopes_over_support(radius)
        if found is None:
            return lambda _: math.inf
        Z = self.metric.Z
        middle, half = (found.lower + found.upper) / 2 - self.slope, (found.upper - found.lower) / 2
        width = half @ np.abs(Z)

        def reach(W: FloatArray) -> float:
            after = length(np.abs(W @ (middle @ Z)) + np.abs(W) @ width)
            return (min(after, spectral(W) * length(np.abs(middle @ Z) + width)) + spectral(W) * own) * ROUND

        return reach

    @cached_property
    def _squares(self) -> dict[bytes, tuple[float, float]]:
        return {}

    @cached_property
    def _most(self) -> dict[bytes, Moments]:
        return {}

    def over_domain(self, W: FloatArray) -> Moments:
        """Over the whole domain: both are convex in x, so corners have the largest; worked out once."""
        key = W.tobytes()
        if key not in self._most:
            self._most[key] = self._at_corners(W)
        return self._most[key]

    def _at_corners(self, W: FloatArray) -> Moments:
        if not self.corners:
            return Moments(math.inf, math.inf)
        found: list[tuple[float, float]] = []
        for corner in self.corners:
            away = corner.x - self.local.flat
            centre = self.centre + self.slope @ away
            V = float(np.sum(((self.centred + (self.local.slopes - self.slope) @ away) @ W.T) ** 2)) * ROUND
            found.append((farthest(corner.around, centre, W), V))
        return Moments(*(max(each) for each in zip(*found, strict=True)))

    def squares(self, W: FloatArray) -> tuple[float, float]:
        """√V at x̂, and the part of Λ that Jacobians at x̂ have; worked out once."""
        key = W.tobytes()
        if key not in self._squares:
            self._squares[key] = self._summed(W)
        return self._squares[key]

    def _summed(self, W: FloatArray) -> tuple[float, float]:
        turned = (W @ self.turned).reshape(-1, self.turned.shape[-1])
        bent = turned.T @ turned
        top = float(np.linalg.eigvalsh(bent)[-1]) if len(bent) else 0.0
        return length(self.centred @ W.T) * ROUND, math.sqrt(max(top, 0.0)) * ROUND


@dataclass(frozen=True, eq=False)
class Inside:
    """A ball about x̂ that holds x*."""

    ground: Ground
    radius: float
    moved: FloatArray  # by how much a sample's Jacobian may differ from that at x̂
    own: float  # the same for the pilot's average
    slopes: Callable[[FloatArray], float]

    def moments(self, W: FloatArray, within: float) -> Moments:
        """In the ball of radius `within`, which is not larger."""
        ground, size = self.ground, spectral(W)
        away = length(ground.centre) + within * (spectral(ground.slope) + self.own)
        ranges = [size * one * ROUND for one in (ground.R, ground.M + away) if math.isfinite(one)]
        around = ground.local.over_support
        if around is not None:
            ranges.append(farthest(around, ground.centre, W) + (within * self.slopes(W) if within else 0.0))
        most = ground.over_domain(W) if within else Moments(math.inf, math.inf)
        c = min([*ranges, most.c])
        here, steep = ground.squares(W)
        steep += size * float(np.linalg.norm(self.moved + self.own)) * ROUND
        many = len(ground.local.rows)
        reach = here + steep * within if within else here
        return Moments(c, min(reach * reach, most.V, many * c * c))

    @cached_property
    def curvature(self) -> FloatArray:
        """S."""
        Z = self.ground.metric.Z
        H = Z.T @ np.mean(self.ground.local.slopes, axis=0) @ Z
        less = float(np.mean(self.moved)) * ROUND + DIM * float(np.abs(H).max(initial=0.0)) * len(H)
        return (H + H.T) / 2 - less * np.eye(len(H)) if math.isfinite(less) else np.full(H.shape, -np.inf)


class Known(NamedTuple):
    """What holds of x̂ on all events together."""

    distance: float
    energy: float  # N: ‖S^½u‖ at most, and ‖S^{−½}q‖
    stretch: float  # ‖S_P^½u‖ at most
    ratio: float = math.inf  # ‖S^{−½}S_P^½‖
    pull: float = math.inf  # ‖S_P^{−½}q‖ at most


@dataclass(frozen=True, eq=False)
class Search:
    """Shrinks the ball."""

    many: int  # samples that count
    metric: Metric
    aims: dict[str, Aim]
    offset: FloatArray  # z + B̂_r(x̂)
    slack: float  # of z in A(x̂)
    mu: float  # of every O(·, ξ), 0 where none is known

    def run(self, ground: Ground, start: float) -> Known:
        """From a ball that holds x*."""
        ball, inside, known = start, ground.inside(start), None
        for _ in range(ROUNDS):
            if not ground.local.affine and ball < ENOUGH * inside.radius:
                inside = ground.inside(ball)
            known = self.bounds(inside.moments, inside.curvature, ball)
            smaller = min(ball, known.distance)
            if not math.isfinite(smaller) or smaller > SETTLED * ball:
                break
            ball = smaller
        assert known is not None
        return known._replace(distance=min(ball, known.distance))

    def bounds(self, moments: Callable[[FloatArray, float], Moments], S: FloatArray, ball: float) -> Known:
        """What the noise and the curvature in one place that holds x* say."""
        many, metric = self.many, self.metric
        rad = {name: aim.radius(many, *moments(aim.W, ball)) for name, aim in self.aims.items()}
        plain = rad["plain"]
        tangent = length(metric.Z.T @ self.offset) + plain
        values, vectors = self._spectrum(S)
        least = float(values[0]) if len(values) else math.inf
        if not least > 0:
            return Known(math.inf, math.inf, math.inf)
        root = (vectors / np.sqrt(values)) @ vectors.T  # S^{−½}
        pull, ratio = length(self.aims["energy"].W @ self.offset) + rad["energy"], spectral(root @ metric.root)
        energies = [ratio * pull, spectral(root) * tangent]
        N = min(energies)
        t = (N + math.sqrt(N**2 + 4 * self.slack)) / 2
        distances = [(tangent + math.sqrt(tangent**2 + 4 * least * self.slack)) / (2 * least), t / math.sqrt(least)]
        if self.slack == 0:
            inverse = spectral(root @ root @ metric.root @ metric.root)
            D = inverse * (length(self.aims["distance"].W @ self.offset) + rad["distance"])
            distances.append((D + N / math.sqrt(least)) / 2)
        return Known(min(distances) * ROUND, t * ROUND, spectral(metric.root @ root) * t * ROUND, ratio, pull * ROUND)

    def _spectrum(self, S: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Of S, or of μ times the identity where that says more."""
        k = len(S)
        if not np.isfinite(S).all():
            return np.full(k, self.mu), np.eye(k)
        values, vectors = np.linalg.eigh(S)
        if k and self.mu > values[0]:
            return np.full(k, self.mu), np.eye(k)
        return values, vectors


def bends(ground: Ground) -> tuple[FloatArray, float]:
    """S_P^{−½}Zᵀ(sym J_i − sym J_P)ZS_P^{−½}, a row for each sample, and the longest over the support."""
    right = ground.metric.Z @ ground.metric.back
    inner = np.swapaxes(ground.turned @ ground.metric.back, 1, 2) @ right
    rows = ((inner + np.swapaxes(inner, 1, 2)) / 2).reshape(len(inner), -1)
    middle, half = _slopes_about(ground)
    turned = right.T @ middle @ right
    wide = length(np.abs(turned + turned.T) / 2 + np.abs(right).T @ half @ np.abs(right)) * ROUND
    return rows, min(wide, spectral(right) * tilts(ground, ground.metric.back)[1])


def tilts(ground: Ground, back: FloatArray) -> tuple[FloatArray, float]:
    """(J_i − J_P)Z·back, a row for each sample, and how far from 0 one may be, over the support."""
    middle, half = _slopes_about(ground)
    right = ground.metric.Z @ back
    tall = length(np.abs(middle @ right) + half @ np.abs(right)) * ROUND
    return (ground.turned @ back).reshape(len(ground.turned), -1), tall


def _slopes_about(ground: Ground) -> tuple[FloatArray, FloatArray]:
    """The middle of the Jacobians over the support, less the pilot's, and half of their width; ∞ where unknown."""
    found = ground.local.slopes_over_support(0.0)
    if found is None:
        return np.zeros_like(ground.slope), np.full_like(ground.slope, np.inf)
    return (found.lower + found.upper) / 2 - ground.slope, (found.upper - found.lower) / 2


def mean_radius(rows: FloatArray, c: float, log: float, w: float) -> float:
    """The bound for rows whose place does not depend on x."""
    return Aim(np.zeros((0, 0)), w, log).radius(len(rows), c, float(np.sum(rows**2)) * ROUND)
