"""A linear image Lx of x: its distance to Lx*, and bounds on every entry, also where Lx* is unique and x* is not.

Claim: ‖L(x̂ − x*)‖ ≤ `distance` and lower ≤ Lx* ≤ upper, for every solution x*, together with all other lines, with
probability ≥ 1 − δ. Of several ways the least is taken, as all of them hold on the events that are paid for:
- the distance: ‖L(x̂ − x*)‖ ≤ ‖LZ‖‖x̂ − x*‖, Z a basis of the directions of dom A;
- the residual. Where ⟨B(x̂) − B(y), x̂ − y⟩ ≥ (x̂ − y)ᵀS(x̂ − y) for all y (facts/secants.py; S may be singular, as AᵀDA
  of B(x) = AᵀG(Ax)), u = x̂ − x* has uᵀSu ≤ ⟨e, u⟩. With P the projection on the range of S and D ≥ ‖u‖ by the domain,
  c = D sup ‖(I − P)e‖ more than makes up for what e has outside that range: nothing, where the noise is Aᵀ(…). Then
  v = S^½u lies in a ball, ‖v − w/2‖² ≤ ‖w‖²/4 + c, w = S^{+½}e, and with K = LS^{+½}, which needs LP = L,
      ‖Lu‖² ≤ νc + (ν²/4) wᵀ(νI − KᵀK)⁻¹w for every ν > ‖K‖²   (S-lemma),
      |ℓᵀu| ≤ ½|ℓᵀS⁺e| + ‖S^{+½}ℓ‖√(¼eᵀS⁺e + c) for every row ℓ;
- the certified piece: an event for the vectors LTφ(ξ_i), and one for their entries, at half of the share each. L is
  then to be chosen before the data are looked at.
An image that S does not determine is refused; so is an unbounded domain, where what float64 takes for 0 may matter.
Assumes what the certificate assumes. Source: docs/theory.md, section 4, images. Cost: one eigenproblem.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates._base import Finding, Leaning
from epszero.certificates.agents import constraints_leaning, derivative_leaning, reach
from epszero.certificates.bands import Image, within_domain
from epszero.certificates.case import Case, over_support
from epszero.certificates.certified_piece import IMAGE, Sharpened
from epszero.certificates.consequences import Consequence
from epszero.certificates.mean.empirical_bernstein import Swift
from epszero.certificates.residuals import Residuals
from epszero.certificates.shared import multiplier_slack
from epszero.certificates.sharp import EPS, Sharp
from epszero.facts import Constant, Gram, Provenance, Unknown
from epszero.facts.secants import Bend, bend_at
from epszero.oracles import strategies

FLAT = 1e-9  # of the largest: eigenvalues of S below count as 0, and entries of L outside the range of S
TRIED = (1 + np.exp(np.linspace(-8.0, 8.0, 81)))[:, None]  # times ‖K‖²: ν
ROUND = 1 + 1e-9
SECANTS = "secants of sums of convex functions of affine maps"
LOOSE = "B does not determine this image: x* may move without B noticing, and the image with it"
UNBOUNDED = "x* is not unique and its domain is unbounded, so rounding alone may move the image: give x a bounded set"


class Way(NamedTuple):
    """One way to bound an image."""

    norm: float
    below: FloatArray  # by how much the truth may be below L x, entry by entry
    above: FloatArray
    because: str
    leans_on: tuple[Leaning, ...]


def image_of(case: Case, found: Finding, away: Consequence, rows: FloatArray) -> Image:
    """Of a finding with its distance; worked out in units of L, whose squares would else be lost."""
    unit = 2.0 ** (math.frexp(float(np.abs(rows).max()))[1] - 1)
    image = _in_units(case, found, away, rows / unit)
    ends = [None if one is None else one * unit for one in (image.distance, image.lower, image.upper)]
    return replace(image, rows=rows, value=image.value * unit, distance=ends[0], lower=ends[1], upper=ends[2])


def _in_units(case: Case, found: Finding, away: Consequence, L: FloatArray) -> Image:
    value, facts = L @ flat_of(strategies(case.found[0])), case.facts
    doubtful = [one for one in (facts.derivative, facts.constraints) if isinstance(one, Unknown)]
    if doubtful:
        return Image(L, value, None, None, None, doubtful[0].reason)
    tried = [_by_distance(case, away, L), _by_residuals(case, found, L), _on_piece(case, found.sharp, L)]
    ways = [way for way in tried if not isinstance(way, Unknown) and math.isfinite(way.norm)]
    if not ways:
        return Image(L, value, None, None, None, next(way.reason for way in tried[1::-1] if isinstance(way, Unknown)))
    moved, size = length(L, axis=1) * case.moved, EPS * (np.abs(L) @ np.abs(flat_of(case.x)))
    below, above = (
        np.min(ends, axis=0) + moved + size for ends in zip(*((w.below, w.above) for w in ways), strict=True)
    )
    best = min(ways, key=lambda way: way.norm)
    norm = best.norm + length(moved) + length(size)
    below, above = np.minimum(below, norm), np.minimum(above, norm)
    lower, upper = within_domain(case.problem, case.x, L, value - below, value + above)
    lower, upper = np.minimum(lower, value), np.maximum(upper, value)
    norm = min(norm, length(np.maximum(value - lower, upper - value)))
    leans_on = tuple(dict.fromkeys(one for way in ways for one in way.leans_on))
    return Image(L, value, norm, lower, upper, best.because, leans_on)


def _by_distance(case: Case, away: Consequence, L: FloatArray) -> Way | Unknown:
    if away.value is None:
        return Unknown(away.because)
    Z = case.facts.directions
    LZ = L if Z is None else L @ Z
    rows = length(LZ, axis=1) * away.value * ROUND
    norm = float(np.linalg.norm(LZ, 2)) * away.value * ROUND
    return Way(norm, rows, rows, f"‖L‖ times the distance; {away.because}", away.leans_on)


def _on_piece(case: Case, sharp: Sharpened | None, L: FloatArray) -> Way | Unknown:
    share = 0.0 if sharp is None else sharp.shares.get(IMAGE, 0.0)
    if sharp is None or share == 0:
        return Unknown("no event was kept for it")
    known = sharp.intervals
    if isinstance(known, Unknown):
        return known
    lower, upper = known.intervals(L, share / 2)
    at = L @ flat_of(case.x)
    below, above = np.maximum(at - lower, 0.0), np.maximum(upper - at, 0.0)
    norm, said = length(np.maximum(below, above)), "the part of the piece that is certified"
    if isinstance(known, Sharp):
        norm, said = _norm_on(known, L, share / 2), "the piece that the truth is certified to lie on"
    return Way(norm, below, above, said, _leanings(case))


def _norm_on(known: Sharp, L: FloatArray, delta: float) -> float:
    """‖L(x̂ − x*)‖, on an event of level δ: LT belongs to the piece."""
    fixed = length(L @ known.piece.start)
    R = np.asarray(np.linalg.qr(L @ known.piece.T, mode="r"), dtype=np.float64)
    if not R.any():
        return fixed
    ball = Swift().around(known.features @ R.T, known.region.through(R), delta)
    return float(ball.radius) + length(ball.centre - R @ known.mean) + fixed


def _leanings(case: Case) -> tuple[Leaning, ...]:
    derivative, shared = case.facts.derivative, case.facts.constraints
    assert not isinstance(derivative, Unknown)
    assert not isinstance(shared, Unknown)
    return *derivative_leaning(derivative), *constraints_leaning(case, shared)


# -- by the residual ---------------------------------------------------------------------------------------------------


class _Ellipsoid(NamedTuple):
    """S on its range, and beyond."""

    V: FloatArray  # (n, k): its range
    values: FloatArray  # (k,): its eigenvalues there, rounded down
    N: FloatArray  # (n, m): all other directions of the domain
    less: float  # how far below 0 eigenvalues there may be


def _by_residuals(case: Case, found: Finding, L: FloatArray) -> Way | Unknown:
    bend = bend_at(case.facts, case.x)
    if isinstance(bend, Unknown):
        return bend
    shape = _ellipsoid(bend, case.facts.directions, L)
    if isinstance(shape, Unknown):
        return shape
    far = float(np.linalg.norm(reach(case, case.x))) if shape.N.shape[1] else 0.0
    if not math.isfinite(far):
        return Unknown(UNBOUNDED)
    ways = [_within(case, one, shape, far, L) for one in found.every]
    known = [way for way in ways if not isinstance(way, Unknown)]
    if not known:
        return next((way for way in ways if isinstance(way, Unknown)), Unknown("there are no residuals"))
    how = (Provenance.EXACT, "a constant Jacobian") if case.jacobian is not None else (Provenance.VERIFIED, SECANTS)
    said = Constant(float(shape.values.min()), *how)
    said = over_support(said) if case.facts.structure.degree.mixed else said
    best = min(known, key=lambda way: way.norm)
    return best._replace(leans_on=(Leaning.on("strong monotonicity in the image, μ", said), *_leanings(case)))


def _ellipsoid(bend: Bend, directions: FloatArray | None, L: FloatArray) -> _Ellipsoid | Unknown:
    Z = np.eye(len(bend.S)) if directions is None else directions
    values, vectors = np.linalg.eigh(Z.T @ bend.S @ Z)
    top = float(values.max(initial=0.0))
    kept = values > max(FLAT * top, 2 * bend.room)
    if not kept.any():
        return Unknown("nothing that does not depend on ξ makes B strongly monotone in any direction")
    if values[0] < -FLAT * top - 2 * bend.room:
        return Unknown("B is not known to be monotone")
    V, N = Z @ vectors[:, kept], Z @ vectors[:, ~kept]
    if np.linalg.norm(L @ N) > FLAT * np.linalg.norm(L @ Z):
        return Unknown(LOOSE)
    return _Ellipsoid(V, values[kept] - bend.room, N, max(0.0, bend.room - float(values[~kept].min(initial=0.0))))


def _within(case: Case, residuals: Residuals, shape: _Ellipsoid, far: float, L: FloatArray) -> Way | Unknown:
    n = len(shape.V)
    C = None if residuals.map is None else residuals.map[:n]
    if C is None and not residuals.round:
        return Unknown("the effect of the noise on x is too large to be written down")
    slack = 0.0 if case.problem.coupling is None else multiplier_slack(case, residuals)
    if isinstance(slack, Unknown):
        return slack
    e, root = residuals.centre[:n], np.sqrt(shape.values)

    def reached(rows: FloatArray) -> float:
        """sup ‖rows · e‖ over all residuals."""
        more = np.linalg.norm(rows, 2) * residuals.radii[0] if C is None else residuals.through(Gram.of(rows @ C))
        return (length(rows @ e) + float(more)) * ROUND

    outside = reached(shape.N.T) if shape.N.shape[1] else 0.0
    c = slack + case.inexactness + far * outside + shape.less * far**2
    W, K = shape.V.T / root[:, None], L @ shape.V / root
    _, s, Q = np.linalg.svd(K, full_matrices=True)
    squares = np.zeros(len(root))
    squares[: len(s)] = s**2
    nu = TRIED * squares.max() * ROUND
    weight = 1 / (nu - squares)  # (ν, k): of (νI − KᵀK)⁻¹
    turned = Q @ W
    fixed = np.sqrt(weight @ (turned @ e) ** 2)
    if C is None:
        spread = residuals.radii[0] * np.sqrt(weight.max(axis=1) / shape.values.min())
    else:
        spread = np.asarray(residuals.through(Gram(np.einsum("kd,vk,ke->vde", turned @ C, weight, turned @ C))))
    norm = float(np.min(np.sqrt((nu[:, 0] / 2 * (fixed + spread)) ** 2 + nu[:, 0] * c)))
    rows = K @ W
    pulled = np.abs(rows @ e) + (
        length(rows, axis=1) * residuals.radii[0] if C is None else residuals.against(rows @ C)
    )
    half = (pulled / 2 + length(K, axis=1) * math.sqrt(reached(W) ** 2 / 4 + c)) * ROUND + length(
        L @ shape.N, axis=1
    ) * far
    lost = float(np.linalg.norm(L @ shape.N)) * far
    return Way((norm + lost) * ROUND, half, half, "S-lemma on the image", ())
