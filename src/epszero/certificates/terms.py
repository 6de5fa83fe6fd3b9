"""Samples' losses as sums of functions of affine maps: their gradients about x̂, sharper than by enclosing Jacobians.

Rules of convexity (_trace/rules) read f(x, ξ_i) = affine + Σ_e M_ie g_e(t_e), t_e = R_e x + b_e, of all samples. So
    O(x̂, ξ_i) − O(x̂ − u, ξ_i) = K_i u,   K_i = Σ_e M_ie σ_e R_eᵀR_e,   σ_e the mean of g_e″ between t_e − R_e u and t_e.
If |R_e u| ≤ h_e, σ_e lies between the least and the largest mean of g_e″ from t_e to a point at most h_e away: of
pieces of equal length, the mean over the first k is enclosed by the mean of their enclosures, and that up to a point
inside a piece lies between two of these. x* is in a ball and in ellipsoids, so h_e = min(D‖R_e‖, N‖S^{−½}R_eᵀ‖); all
that follows is as in truth.py: S = Σ_e mean_i(M_ie)σ_e R_eᵀR_e at least, and ‖W(K_i − J)u‖, in squares: one slope
for all u by one eigenvalue, what is left of g_e′ row by row.
The centre of the noise is affine, b + J(x − x̃), fixed by the pilot: c ≤ ‖W‖M + ‖W(b + J(x̂ − x̃))‖ + sup ‖WJu‖.
Assumes a minimisation whose loss is read whole, each g_e of one variable or with constant second derivatives, and no
kinks. Source: docs/theory.md, section 9. Cost: one eigenproblem a round, and an (n, n) matrix for each row.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._lazy import sp
from epszero._points import length
from epszero._trace.intervals import Interval
from epszero._trace.rules.expressions import GROUPS, jet
from epszero._trace.rules.ranges import Ranges
from epszero._types import FloatArray
from epszero.certificates.local import ROUND, Local, spectral
from epszero.certificates.truth import DIM, Known, Metric, Moments, Search
from epszero.facts.composed import FAILS, read_costs
from epszero.problems import Minimization

PIECES = 24  # of the way from t to either end
NUMBERS = 20_000_000  # entries of all R_eᵀR_e that are written down
ROUNDS = 15
TRIES, WIDER = 30, 1.15  # widths of ellipsoids that are tried, and the ratio of two of them
SETTLED = 0.99  # neither ball nor ellipsoid shrinks any more
ROUNDING = 1e-12


class _Rows(NamedTuple):
    """Functions of one kind; constant second derivatives have no expression."""

    R: FloatArray
    b: FloatArray
    M: FloatArray  # (samples, rows)
    expression: Any
    params: list[Interval]
    second: float


@dataclass(frozen=True, eq=False)
class Terms:
    """All terms of all samples."""

    parts: list[_Rows]

    @cached_property
    def R(self) -> FloatArray:
        """(rows, n)."""
        return np.concatenate([part.R for part in self.parts])

    @cached_property
    def b(self) -> FloatArray:
        """(rows,)."""
        return np.concatenate([part.b for part in self.parts])

    @cached_property
    def M(self) -> Any:
        """(samples, rows), sparse."""
        return sp.csr_matrix(np.concatenate([part.M for part in self.parts], axis=1))

    @cached_property
    def squares(self) -> FloatArray:
        """R_eᵀR_e, flat."""
        return (self.R[:, :, None] * self.R[:, None, :]).reshape(len(self.R), -1)

    def means(self, t: FloatArray, h: FloatArray) -> "Means | None":
        """σ_e, for |R_e u| ≤ h_e; None on kinks, or where nothing encloses it."""
        found, start = [], 0
        for part in self.parts:
            here = slice(start, start + len(part.b))
            start += len(part.b)
            if part.expression is None:
                same = np.full(len(part.b), part.second)
                found.append(Means(same, same, same, np.zeros(len(part.b))))
            else:
                one = _means(part, t[here], h[here])
                if one is None:
                    return None
                found.append(one)
        every = Means(*(np.concatenate(rows) for rows in zip(*found, strict=True)))
        return every if all(np.isfinite(one).all() for one in every) else None


class Means(NamedTuple):
    """Of g″ on the way from t_e to t_e − R_e u, for all u that are possible."""

    lower: FloatArray
    upper: FloatArray
    middle: FloatArray  # one slope for all
    rest: FloatArray  # |g′(t_e) − g′(t_e − R_e u) − middle · R_e u| at most


def _means(part: _Rows, t: FloatArray, h: FloatArray) -> Means | None:
    """Pieces of equal length on either side; what g′ has gained by the end of each is enclosed by sums."""
    kinks: set[str] = set()
    params = [Interval(*(end.reshape(-1, 1) if end.ndim else end for end in one)) for one in part.params]
    step, count = h[:, None] / PIECES * ROUND, np.arange(1, PIECES + 1)
    gained: list[tuple[FloatArray, FloatArray]] = []
    for sign in (1.0, -1.0):
        ends = t[:, None] + sign * step * np.arange(PIECES + 1)
        room = ROUNDING * (np.abs(ends[:, :-1]) + np.abs(ends[:, 1:]))
        low, high = np.minimum(ends[:, :-1], ends[:, 1:]) - room, np.maximum(ends[:, :-1], ends[:, 1:]) + room
        with np.errstate(all="ignore"):
            found = jet(part.expression, [Interval(low, high)], params, kinks).second.get((0, 0))
        if kinks:
            return None
        ends = (np.zeros(1), np.zeros(1)) if found is None else found
        lower, upper = (np.cumsum(np.broadcast_to(end, low.shape), axis=1) for end in ends)
        slack = ROUNDING * np.maximum(np.abs(lower), np.abs(upper)).max(axis=1, keepdims=True)
        gained.append((lower - slack, upper + slack))
    lower = np.min([(low / count).min(axis=1) for low, _ in gained], axis=0)
    upper = np.max([(high / count).max(axis=1) for _, high in gained], axis=0)
    middle = np.clip(sum(low[:, -1] + high[:, -1] for low, high in gained) / (4 * PIECES), lower, upper)
    half = [_apart(low * step, high * step, middle[:, None] * step * count) for low, high in gained]
    return Means(lower, upper, middle, np.minimum(np.maximum(*half), np.maximum(upper - middle, middle - lower) * h))


def _apart(low: FloatArray, high: FloatArray, line: FloatArray) -> FloatArray:
    """How far a function with these bounds at the ends of pieces, straight in between, is from a line."""
    none = np.zeros((len(low), 1))
    before = [np.concatenate([none, one[:, :-1]], axis=1) for one in (low, high, line)]
    top = np.maximum(high, before[1]) - np.minimum(line, before[2])
    bottom = np.maximum(line, before[2]) - np.minimum(low, before[0])
    return np.maximum(np.maximum(top, bottom), 0.0).max(axis=1) * ROUND


def terms_of(local: Local) -> Terms | None:
    """Of these samples; None where rules do not read the loss whole."""
    problem, costs, n = local.facts.problem, local.facts.costs, local.entries
    if not isinstance(problem, Minimization) or costs is None or costs.by_hand or costs.wrong:
        return None

    def every(x: Any, _: Any) -> Any:
        return jax.vmap(lambda xi: problem.loss(x, xi))(local.data)

    try:
        found = read_costs(every, local.x, Ranges(*local.facts.domain), (), (), np.zeros(n, dtype=int))
    except FAILS:
        return None
    parts: list[_Rows] = []
    for block in found.blocks:
        maps = [one.rows for one in block.local.variables]
        exact = [*(end for one in maps for end in one), block.matrix, block.weight.values]
        single = len(maps) == 1 and block.local.expression[0] not in GROUPS
        bent = {key: part for key, part in block.second.items() if np.any(part.lower) or np.any(part.upper)}
        fixed = all(np.all(part.lower == part.lower.flat[0]) and _same(part) for part in bent.values())
        if not all(map(_same, exact)) or not (single or fixed):
            return None
        M = block.matrix.lower * block.weight.values.lower
        if not fixed:
            parts.append(_Rows(maps[0][0].lower, maps[0][1].lower, M, block.local.expression,
                               [one.values for one in block.local.params], 0.0))  # fmt: skip
            continue
        for (p, q), part in bent.items():
            A, B, value = maps[p][0].lower, maps[q][0].lower, float(part.lower.flat[0])
            pairs = [(A, value)] if p == q else [(A + B, value / 2), (A - B, -value / 2)]
            parts += [_Rows(R, np.zeros(len(R)), M, None, [], second) for R, second in pairs]
    if found.kinks or not parts or sum(len(part.b) for part in parts) * n * n > NUMBERS:
        return None
    return Terms(parts)


def _same(values: Interval) -> bool:
    return values.lower is values.upper or bool(np.all(values.lower == values.upper))


@dataclass(frozen=True, eq=False)
class TermsGround:
    """The samples that are counted, about x̂."""

    local: Local
    terms: Terms
    metric: Metric
    M: float  # ‖O(x, ξ)‖ at most
    b: FloatArray  # of the pilot: its average at x̃
    J: FloatArray  # and its Jacobian
    d: FloatArray  # x̂ − x̃

    @cached_property
    def t(self) -> FloatArray:
        """t_e at x̂."""
        return self.terms.R @ self.local.flat + self.terms.b

    @cached_property
    def room(self) -> FloatArray:
        """What rounding leaves of t_e."""
        return ROUNDING * (np.abs(self.terms.R) @ np.abs(self.local.flat) + np.abs(self.terms.b))

    @cached_property
    def centre(self) -> FloatArray:
        """b + J(x̂ − x̃)."""
        return self.b + self.J @ self.d

    def search(self, search: Search, start: float) -> Known:
        """Smaller and smaller places, from a ball that holds x*."""
        Z, back = self.metric.Z, self.metric.back
        R = self.terms.R @ Z
        lengths, stretched = np.linalg.norm(R, axis=1), np.linalg.norm(R @ back, axis=1)
        ball, wide, known = start, math.inf, Known(start, math.inf, math.inf)
        sizes = {"ball": (np.eye(Z.shape[1]), start)}
        h = lengths * start * ROUND + self.room
        for _ in range(ROUNDS):
            inside = self._within(h, sizes)
            if inside is None:
                break
            aim = search.aims["energy"]
            N = length(aim.W @ search.offset) + aim.radius(search.many, *inside.moments(aim.W, ball))
            before = ball, wide
            wide = min(wide, self._exit(N, search.slack, h, stretched * ROUND))
            h = np.minimum(h, stretched * wide * ROUND + self.room)
            sizes["pilot"] = back, wide
            inside = self._within(h, sizes)
            if inside is None or inside.root is None:
                break
            found = search.bounds(inside.moments, inside.curvature, ball)
            known = Known(*(min(one, other) for one, other in zip(found, known, strict=True)))
            ball = known.distance
            sizes |= {"ball": (np.eye(Z.shape[1]), ball), "own": (inside.root, found.energy)}
            near = np.minimum(lengths * ball, np.linalg.norm(R @ inside.root, axis=1) * found.energy)
            h = np.minimum(h, near * ROUND + self.room)
            if ball > SETTLED * before[0] and wide > SETTLED * before[1]:
                break
        return known

    def _within(self, h: FloatArray, sizes: "Sizes") -> "Within | None":
        means = self.terms.means(self.t, h) if np.isfinite(h).all() else None
        return None if means is None else Within(self, means, h, dict(sizes))

    def _exit(self, N: float, slack: float, h: FloatArray, stretched: FloatArray) -> float:
        """ρ with ‖S_P^½u‖ ≤ ρ; ∞ where none of those that are tried will do.

        v = θu with ‖S_P^½v‖ = ρ, if u were longer: ⟨B̂(x̂) − B̂(x̂ − θu), u⟩ grows with θ, so vᵀSv ≤ qᵀv ≤ Nρ with the S
        that is valid as far as v. If S ⪰ lS_P there and lρ² > Nρ, that is a contradiction.
        """
        width = N * ROUND
        for _ in range(TRIES if math.isfinite(N) and N > 0 else 0):
            width *= WIDER
            inside = self._within(np.minimum(h, stretched * width + self.room), {})
            if inside is None:
                return math.inf
            back = self.metric.back
            least = float(np.linalg.eigvalsh(back @ inside.curvature @ back)[0]) / ROUND
            if least * width**2 > N * width * ROUND + slack:
                return width
        return math.inf


Sizes = dict[str, tuple[FloatArray, float]]  # ‖back⁻¹v‖ ≤ size, u = Zv


@dataclass(frozen=True, eq=False)
class Within:
    """What is known of u = x̂ − x*."""

    ground: TermsGround
    means: Means
    h: FloatArray
    sizes: Sizes

    @cached_property
    def turned(self) -> FloatArray:
        """(K_i − J)Z for the middle slopes, (r, n, k)."""
        ground, n = self.ground, self.ground.local.entries
        K = np.asarray(ground.terms.M @ (self.means.middle[:, None] * ground.terms.squares)).reshape(-1, n, n)
        return (K - ground.J) @ ground.metric.Z

    def _reach(self, gram: FloatArray) -> float:
        """sup √(vᵀ gram v)."""
        tops = (
            size * math.sqrt(max(float(np.linalg.eigvalsh(back @ gram @ back)[-1]), 0.0))
            for back, size in self.sizes.values()
            if math.isfinite(size)
        )
        return min(tops, default=math.inf) * ROUND

    def moments(self, W: FloatArray, _: float) -> Moments:
        """Of W(O(x*, ξ) − b − J(x* − x̃)), over the support and over the samples."""
        ground = self.ground
        steady = W @ ground.J @ ground.metric.Z
        c = (spectral(W) * ground.M + length(W @ ground.centre) + self._reach(steady.T @ steady)) * ROUND
        rows = (W @ self.turned).reshape(-1, self.turned.shape[-1])
        apart = np.linalg.norm(ground.terms.R @ W.T, axis=1) * self.means.rest
        rest = length(np.asarray(abs(ground.terms.M) @ apart))
        reach = (length((ground.local.values - ground.centre) @ W.T) + self._reach(rows.T @ rows) + rest) * ROUND
        return Moments(c, min(reach * reach, len(ground.local.rows) * c * c))

    @cached_property
    def curvature(self) -> FloatArray:
        """S."""
        ground = self.ground
        share = np.asarray(ground.terms.M.mean(axis=0)).reshape(-1)
        least = np.where(share >= 0, self.means.lower, self.means.upper) * share
        R = ground.terms.R @ ground.metric.Z
        S = (R * least[:, None]).T @ R
        return S - DIM * float(np.abs(S).max(initial=0.0)) * len(S) * np.eye(len(S))

    @cached_property
    def root(self) -> FloatArray | None:
        """S^{−½}; None where S is not positive."""
        values, vectors = np.linalg.eigh(self.curvature)
        return (vectors / np.sqrt(values)) @ vectors.T if len(values) and values[0] > 0 else None
