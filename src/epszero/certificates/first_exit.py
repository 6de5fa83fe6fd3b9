"""Where the piece of x̂ cannot be certified whole: the part that can be, and how far the rest may slip.

Units are rows of sets {Gx ≤ h}, one by one, and of shared constraints; of other parts entries, where a set or function
treats them one by one, else whole points (certificates/units.py).

First exit. Let (y, z) be a pair of the graph of A with the residual r: y solves the problem exactly with p − r in place
of p. Let D be some units, N_D the normals that y leans on there, Z a basis of V = {u : N_D u = 0}, Q the curvature on D
and S the symmetric part of Zᵀ(H + Q)Z. Where D is replaced by its piece, without regard to signs, the problem with p
has a solution y + u with u ∈ V and, what is left of A being monotone, uᵀ(H + Q)u ≤ −uᵀr: an ellipsoid, in which for
every row ℓ
    |ℓᵀu + ½ℓᵀZS⁻¹Zᵀr| ≤ ½‖S^{−½}Zᵀℓ‖‖S^{−½}Zᵀr‖.
That bounds slacks (ℓ = a) and multipliers (value − dᵀ((H + Q)u + r), ℓ = (H + Q)ᵀd) of D from below. If they are
positive, y + u solves the problem itself, and so is x*. D = all is tried first, what is not kept is dropped, until
nothing changes. Then ‖u‖ is bounded by the S-lemma on V.

Two such y: x̂ itself, r = C(m − m̂) + ê; and the point that the piece of x̂ has for m, x̂ + start − T(m − m̂), mended
where slacks or multipliers are negative: with violations σ_j of slacks and η_k of multipliers it is moved by Σ σ_j q_j,
a_jᵀq_j = −1, and its z by Σ η_k c_k, d_kᵀc_k = 1, so that the pair is of the graph again and r = (H + Q)Σ σ_j q_j +
Σ η_k c_k: as small as the violations are over all means that are possible.
Means that are possible are those of two events that are paid for already, that of the residual and that of the piece.
So no further δ is spent; and no matrix of the piece, which depends on the data here, gets an event of its own.
Assumes B strongly monotone, so that the solution is unique; shared constraints affine.
Source: docs/theory.md, section 6, first exit. Cost: one eigenvalue decomposition on V for each round.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from epszero._points import flat_of, length
from epszero._types import FloatArray
from epszero.certificates.case import Case
from epszero.certificates.piece import AffinePiece, shared_face
from epszero.certificates.residuals import Residuals
from epszero.certificates.responses import Responses, responses_of
from epszero.certificates.sharp import EPS, ROUNDING, Undecided
from epszero.certificates.units import Units
from epszero.facts import ConstantJacobian
from epszero.sets.faces import TOUCHED

ROUNDS = 20  # of dropping units
LOPSIDED = 1e10  # a set of means whose axes differ by more is not looked at


class Means(NamedTuple):
    """{m̂ + centre + Gv : ‖v‖ ≤ 1}: means that are possible, all on one event."""

    centre: FloatArray  # (d,)
    G: FloatArray  # (d, d)


@dataclass(frozen=True, eq=False)
class Partial:
    """Of the units of A, some are certified to have the status at x* that they have at x̂."""

    piece: AffinePiece
    x: FloatArray  # x̂
    ways: "list[_Way]"
    means: tuple[Means, ...]
    responses: Responses | None
    units: Units

    @property
    def kept(self) -> Any:
        """Of each unit, whether it is certified."""
        return np.any([way.on.kept for way in self.ways], axis=0)

    @property
    def said(self) -> str:
        """For people."""
        lost = ~self.kept[self.units.of_condition]
        return f"all but {int(np.sum(lost))} of {len(lost)} slacks and multipliers of the piece are certified"

    def distance(self) -> float:
        """‖x̂ − x*‖."""
        return min(way.distance() for way in self.ways) + EPS * length(self.x)

    def intervals(self, L: FloatArray, delta: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on ℓᵀx* for the rows ℓ of L, all at once; no share of δ is needed."""
        del delta
        ends = [way.between(L) for way in self.ways]
        low, high = np.max([one[0] for one in ends], axis=0), np.min([one[1] for one in ends], axis=0)
        return L @ self.x + low, L @ self.x + high

    def prices(self, delta: float) -> tuple[FloatArray, FloatArray]:
        """Bounds on the multipliers of shared constraints, all at once; ∞ where nothing tells one from the others."""
        del delta
        ends = [way.prices() for way in self.ways]
        return np.max([np.zeros_like(ends[0][0]), *(one[0] for one in ends)], axis=0), np.min(
            [one[1] for one in ends], axis=0
        )

    def savings(self) -> FloatArray | None:
        """What each agent could save alone, ∞ where its response may leave its face; None where nothing is known."""
        if self.responses is None:
            return None
        return np.min([_saved(self.responses, one) for one in self.means], axis=0)


def first_exit(case: Case, found: Undecided, residuals: Residuals, C: FloatArray) -> Partial | None:
    """What is certified of the piece; None where that is nothing, or the structure is another."""
    J, piece = case.jacobian, found.piece
    if J is None or not J.mu > 0 or len(residuals.radii) != 1:
        return None
    n, coupling = len(J.jacobian), case.problem.coupling
    noise = C[:n]
    units = Units(piece.blocks, n, None if coupling is None else shared_face(case, n))
    means = _means(case, found, residuals, noise)
    both = _staying(case, J, units, means, noise), _slipping(J, piece, units, means)
    ways = [way for way in both if way is not None]
    ways = [way for way in ways if way.on.holds or coupling is not None]
    if not ways:
        return None
    responses = responses_of(case, piece, noise)
    return Partial(piece, flat_of(case.x), ways, means, responses, units)


def _staying(case: Case, J: ConstantJacobian, units: Units, means: "tuple[Means, ...]", C: FloatArray) -> "_Way | None":
    """From x̂, moved onto its face to the last digit; None where that would leave the domain."""
    shift, x = units.shift, flat_of(case.x)
    slacks = units.slacks - units.rows @ shift
    if not (slacks >= -TOUCHED * (np.abs(units.rows) @ np.abs(x) + np.abs(units.slacks))).all():
        return None
    e = case.empirical[: len(x)] + units.mended + J.jacobian @ shift + units.Q * shift
    pushes = [Push(e + C @ one.centre, C @ one.G) for one in means]
    on = _stable(J, units, np.concatenate([slacks, units.values]), pushes, np.ones(units.count, dtype=bool))
    at = np.zeros(0) if units.shared is None else units.shared.pulls
    return None if on is None else _Way(on, pushes, [Start(shift)], [(at, at)])


def _means(case: Case, found: Undecided, residuals: Residuals, C: FloatArray) -> tuple[Means, ...]:
    """Of the event of the residual, and of that of the piece."""
    d = C.shape[1]
    centre: Any = np.linalg.lstsq(C, (residuals.centre - case.empirical)[: len(C)])[0]
    by_residual = Means(centre, float(residuals.radii[0]) * np.eye(d))
    U = found.aimed
    if U is None or U.R.shape != (d, d) or not np.linalg.cond(U.R) < LOPSIDED:
        return (by_residual,)
    back: Any = np.linalg.inv(U.R)
    return by_residual, Means(back @ U.centre - found.mean, U.radius * (1 + ROUNDING) * back)


def _slipping(J: ConstantJacobian, piece: AffinePiece, units: Units, means: tuple[Means, ...]) -> "_Way | None":
    """From the point that the piece has for m, mended; None where it cannot be."""
    every = [piece.margins + piece.sensitivities @ c - length(piece.sensitivities @ G, axis=1) for c, G in means]
    least = np.max(every, axis=0)
    bad = ~(least > ROUNDING * np.abs(piece.margins))
    for _ in range(ROUNDS):
        slips = _slips(units, least, bad)
        if slips is None:
            return None
        moved, lifted, broken = slips
        if not broken.any():
            break
        bad = bad | broken  # mended along with the others, it does not move
    else:
        return None
    push = Push(np.zeros(len(units.Q)), np.hstack([J.jacobian @ moved + units.Q[:, None] * moved, lifted]), box=True)
    kept = np.ones(units.count, dtype=bool)
    kept[units.of_condition[bad]] = False
    on = _stable(J, units, least, [push], kept)
    starts = [Start(piece.start - piece.T @ c, piece.T @ G, moved) for c, G in means]
    return None if on is None else _Way(on, [push], starts, [_prices(piece, units, one, least) for one in means])


def _prices(piece: AffinePiece, units: Units, means: Means, least: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Multipliers of shared constraints at the point that is mended: as the piece has them, up to what mends them."""
    at, slopes = piece.prices + piece.price_slopes @ means.centre, piece.price_slopes @ means.G
    reach, lifted = length(slopes, axis=1) * (1 + ROUNDING), np.zeros(len(at))
    lifted[units.leant] = np.maximum(-least[len(least) - int(units.leant.sum()) :], 0.0) * (1 + ROUNDING)
    return at - reach, at + reach + lifted


def _slips(units: Units, least: FloatArray, bad: Any) -> tuple[FloatArray, FloatArray, Any] | None:
    """Columns σ_j q_j and η_k c_k that mend what may be violated, and what else they would break; None without them."""
    r = len(units.rows)
    size = np.maximum(-least, 0.0) * (1 + ROUNDING) + ROUNDING * np.abs(least)
    moved, lifted = np.zeros((len(units.Q), 0)), np.zeros((len(units.Q), 0))
    slack, value = np.flatnonzero(bad[:r]), np.flatnonzero(bad[r:])
    if len(slack):
        inward = units.inward(slack)
        if inward is None:
            return None
        moved = inward * size[slack]
    if len(value):
        if units.lifts is None:
            return None
        lifted = (units.lifts[value] * size[r + value, None]).T
    duals, told = units.conditions(np.ones(units.count, dtype=bool))
    if not told.all():
        return None
    change = np.concatenate([-units.rows @ moved, np.zeros((len(duals), moved.shape[1]))])
    change = np.hstack([change, np.concatenate([np.zeros((r, lifted.shape[1])), duals @ lifted])])
    own = np.zeros(change.shape, dtype=bool)
    own[np.flatnonzero(bad), np.arange(change.shape[1])] = True
    loss = np.where(own, 0.0, np.minimum(change, 0.0)).sum(axis=1)
    if not (loss[bad] >= -EPS * size.sum()).all():
        return None
    return moved, lifted, ~bad & ~(least + loss > 0)


def _stable(
    J: ConstantJacobian, units: Units, margins: FloatArray, pushes: "list[Push]", kept: Any
) -> "_Subspace | None":
    """The largest D that is found to keep its status."""
    for _ in range(ROUNDS):
        on = _Subspace(J, units, kept)
        stay = kept & on.firm(margins, pushes)
        if (stay == kept).all():
            return on
        kept = stay
    return None


@dataclass(frozen=True, eq=False)
class Push:
    """Residuals {middle + columns v : ‖v‖ ≤ 1, or |v_k| ≤ 1 for every k}."""

    middle: FloatArray
    columns: FloatArray
    box: bool = False

    def along(self, g: FloatArray) -> FloatArray:
        """sup |gᵀ columns v| for each row g."""
        sides = g @ self.columns
        return np.abs(sides).sum(axis=1) if self.box else length(sides, axis=1)

    def through(self, F: FloatArray) -> float:
        """sup ‖F(middle + columns v)‖."""
        sides = F @ self.columns
        return length(F @ self.middle) + (_of_box(sides) if self.box else _norm(sides))


class Start(NamedTuple):
    """Where y − x̂ can be: {at + spread v + slips w : ‖v‖ ≤ 1, 0 ≤ w ≤ 1}."""

    at: FloatArray
    spread: FloatArray | None = None
    slips: FloatArray | None = None

    def length(self) -> float:
        """sup ‖y − x̂‖."""
        spread = 0.0 if self.spread is None else _norm(self.spread)
        slips = 0.0 if self.slips is None else _of_box(self.slips)
        return length(self.at) + spread + slips

    def between(self, L: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The least and the largest ℓᵀ(y − x̂), for each row ℓ."""
        low, high = L @ self.at, L @ self.at
        if self.spread is not None:
            reach = length(L @ self.spread, axis=1) * (1 + ROUNDING)
            low, high = low - reach, high + reach
        if self.slips is not None:
            sides = L @ self.slips
            low, high = low + np.minimum(sides, 0.0).sum(axis=1), high + np.maximum(sides, 0.0).sum(axis=1)
        return low, high


@dataclass(frozen=True, eq=False)
class _Way:
    """From x̂ to a y, of which every start says where it is, and from y to x*, by every push."""

    on: "_Subspace"
    pushes: list[Push]
    starts: list[Start]
    priced: list[tuple[FloatArray, FloatArray]]  # the same, of multipliers of shared constraints

    def distance(self) -> float:
        return min(start.length() for start in self.starts) + min(self.on.distance(push) for push in self.pushes)

    def between(self, L: FloatArray) -> tuple[FloatArray, FloatArray]:
        return _sum([one.between(L) for one in self.starts], [self.on.between(L, one) for one in self.pushes])

    def prices(self) -> tuple[FloatArray, FloatArray]:
        """Of the shared constraints at x*."""
        low, high = _sum(self.priced, [self.on.prices(one) for one in self.pushes])
        told, none = self.on.units.prices(self.on.kept)[1], ~self.on.may
        return np.where(none, 0.0, np.where(told, low, 0.0)), np.where(none, 0.0, np.where(told, high, np.inf))


def _sum(first: list[Any], then: list[Any]) -> tuple[FloatArray, FloatArray]:
    """Ends of a sum, of which each part lies between all the ends that are given for it."""
    low = [np.max([one[0] for one in ends], axis=0) for ends in (first, then)]
    high = [np.min([one[1] for one in ends], axis=0) for ends in (first, then)]
    return low[0] + low[1], high[0] + high[1]


class _Subspace:
    """V of the units that are kept, and the ellipsoids there."""

    def __init__(self, J: ConstantJacobian, units: Units, kept: Any) -> None:
        self.units, self.kept = units, kept
        self.Z = units.basis(kept)
        self.H = J.jacobian + np.diag(units.bent(kept))
        self.S = ConstantJacobian(self.Z.T @ self.H @ self.Z, J.noise)
        self.flat = bool(self.Z.shape[1]) and not self.S.mu > 0
        self.duals, self.told = units.conditions(kept)

    @property
    def may(self) -> Any:
        """Of each shared constraint: whether it may have a multiplier."""
        return self.units.leant | ~self.kept[self.units.own :]

    @property
    def holds(self) -> bool:
        """Whether V is less than all of the space."""
        return self.Z.shape[1] < len(self.Z)

    @cached_property
    def F(self) -> FloatArray:
        """S^{−½}Zᵀ, up to a rotation."""
        values, vectors = self.S.spectrum
        return (vectors.T @ self.Z.T) / np.sqrt(values)[:, None]

    def firm(self, margins: FloatArray, pushes: list[Push]) -> Any:
        """Of each unit: whether all its slacks and multipliers stay positive, by one push or another."""
        units = self.units
        if self.flat:
            return np.zeros(units.count, dtype=bool)
        bent = np.vstack([units.rows, self.duals @ self.H]) @ self.F.T
        g = bent @ self.F / 2
        g[len(units.rows) :] -= self.duals
        positive = np.zeros(len(margins), dtype=bool)
        for push in pushes:
            least = margins + g @ push.middle - push.along(g) - length(bent, axis=1) * push.through(self.F) / 2
            positive |= least > ROUNDING * np.abs(margins)
        positive[len(units.rows) :] &= self.told
        lost = np.zeros(units.count, dtype=bool)
        lost[units.of_condition[~positive]] = True
        return ~lost

    def distance(self, push: Push) -> float:
        """sup ‖u‖, by the S-lemma on V: the least over ν of √((ν²/4) rᵀZ(νS − I)⁻¹Zᵀr)."""
        if not self.Z.shape[1]:
            return 0.0
        nu, weight = self.S.multipliers
        fixed = np.sqrt(weight @ (self.S.spectrum[1].T @ (self.Z.T @ push.middle)) ** 2)
        if not push.columns.shape[1]:
            return float(np.min(nu / 2 * fixed))
        bent = self.S.weighted(self.Z.T @ push.columns)
        if push.box:
            spread = np.sqrt(np.abs(bent).sum(axis=(1, 2)))
        else:
            spread = np.sqrt(np.maximum(np.linalg.eigvalsh(bent)[:, -1], 0.0))
        return float(np.min(nu / 2 * (fixed + spread * (1 + ROUNDING))))

    def between(self, L: FloatArray, push: Push) -> tuple[FloatArray, FloatArray]:
        """The least and the largest ℓᵀu, for each row ℓ."""
        bent = L @ self.F.T
        return self._ends(bent, -bent @ self.F / 2, push)

    def prices(self, push: Push) -> tuple[FloatArray, FloatArray]:
        """The least and the largest change −dᵀ((H + Q)u + r) of each multiplier of a shared constraint."""
        d = self.units.prices(self.kept)[0]
        bent = d @ self.H @ self.F.T
        return self._ends(bent, bent @ self.F / 2 - d, push)

    def _ends(self, bent: FloatArray, g: FloatArray, push: Push) -> tuple[FloatArray, FloatArray]:
        """Of gᵀr, and of the ellipsoid."""
        reach = (push.along(g) + length(bent, axis=1) * push.through(self.F) / 2) * (1 + ROUNDING)
        return g @ push.middle - reach, g @ push.middle + reach


def _norm(matrix: FloatArray) -> float:
    """The largest singular value, rounded up."""
    return float(np.linalg.norm(matrix, 2)) * (1 + ROUNDING) if matrix.size else 0.0


def _of_box(matrix: FloatArray) -> float:
    """At least sup ‖matrix v‖ over |v_k| ≤ 1: vᵀKv ≤ Σ|K_kl|."""
    return float(np.sqrt(np.abs(matrix.T @ matrix).sum())) * (1 + ROUNDING)


def _saved(responses: Responses, means: Means) -> FloatArray:
    """½ sup vᵀS_iv of every agent whose best response stays on its face for all these means."""
    slopes = responses.sensitivities
    least = responses.margins + slopes @ means.centre - length(slopes @ means.G, axis=1)
    positive = least > ROUNDING * np.abs(responses.margins)
    firm = np.array([bool(positive[place].all()) for place in responses.places])
    moved = np.einsum("ade,d,e->a", responses.grams, means.centre, means.centre, optimize=True)
    bent = means.G.T @ responses.grams @ means.G
    tops = np.linalg.eigvalsh((bent + np.swapaxes(bent, 1, 2)) / 2)[:, -1]
    whole = responses.fixed + np.sqrt(np.maximum(moved, 0.0)) + np.sqrt(np.maximum(tops, 0.0)) * (1 + ROUNDING)
    return np.where(firm, whole**2 / 2, np.inf)
