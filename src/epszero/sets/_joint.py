"""Faces of {x : Gx ≤ h, = where equal, ‖x − c_k‖₁ ≤ r_k}: an intersection with ℓ1 balls among its members.

With u = x − c and the signs σ of u, a ball that is leant on holds σᵀu = r and, where u_i = 0, u_i itself; what it adds
to z is tσ + Σ w_i e_i over those entries, t > |w_i|. So N has the rows that pull, σ of each such ball and e_i of its
entries that are 0; t, t − w_i, t + w_i and the rows' multipliers are linear functionals of z where N is of full rank.
Where a row of its own holds an entry at 0, too (x ≥ 0 beside a ball about 0), both share e_i, and only one of
t ∓ w_i must stay positive. Elsewhere signs are kept. A ball that is not touched is the 2ⁿ rows of all signs, or for
many entries those of σ, with signs kept.
Rockafellar & Wets, Variational Analysis (1998), Thm 6.42. Cost: a pseudo-inverse, and one for each that does not pull.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from epszero._types import FloatArray
from epszero.sets.faces import ALIKE, NORMAL, PULLED, TOUCHED, Face, Rows, follow, independent_rows, touched

FEW = 8  # entries up to which a ball is written as rows


class Diamond(NamedTuple):
    """{x : ‖x − center‖₁ ≤ radius}."""

    center: FloatArray
    radius: float


@dataclass(frozen=True, eq=False)
class Joint:
    """Rows, and balls."""

    rows: Rows
    balls: tuple[Diamond, ...]

    @staticmethod
    def of(parts: "list[Joint]") -> "Joint":
        """The intersection."""
        G, h, equal = (np.concatenate([getattr(one.rows, name) for one in parts]) for name in ("G", "h", "equal"))
        return Joint(Rows(G, h, equal), tuple(ball for one in parts for ball in one.balls))

    def moved(self, by: FloatArray) -> "Joint":
        """{x + by}."""
        rows = Rows(self.rows.G, self.rows.h + self.rows.G @ by, self.rows.equal)
        return Joint(rows, tuple(Diamond(ball.center + by, ball.radius) for ball in self.balls))

    def times(self, factor: float) -> "Joint":
        """{factor·x}."""
        rows = Rows(self.rows.G / factor, self.rows.h, self.rows.equal)
        return Joint(rows, tuple(Diamond(factor * ball.center, abs(factor) * ball.radius) for ball in self.balls))

    def face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """At x with the normal z; None where z is not normal there, or its multipliers are not unique."""
        balls = [_Touched.of(ball, x) for ball in self.balls]
        slack = self.rows.h - self.rows.G @ x
        size = self.rows.reach * np.abs(x).max(initial=0.0)
        near = touched(slack, np.abs(self.rows.h), size) & ~self.rows.equal
        pulls, leant = np.flatnonzero(near), [ball for ball in balls if ball.touched]
        for _ in range(len(pulls) + len(leant) + 1):
            found = _Split(self.rows, pulls, leant, x).of(z)
            if isinstance(found, Face):
                return self._whole(found, pulls, leant, balls, slack, x)
            if found is None:
                return None
            pulls, leant = pulls[found[0]], [ball for ball, stays in zip(leant, found[1], strict=True) if stays]
        return None

    def _whole(
        self, face: Face, pulls: Any, leant: "list[_Touched]", balls: "list[_Touched]", slack: FloatArray, x: FloatArray
    ) -> Face | None:
        """With what must not be touched: the other rows, the other balls, and signs."""
        rest = np.setdiff1d(np.flatnonzero(~self.rows.equal), pulls)
        fixed = self.rows.G[self.rows.equal]
        implied = follow(self.rows.G[rest], self.rows.G[pulls], fixed[independent_rows(fixed)])
        free = rest[~(implied & (slack[rest] >= -TOUCHED * np.abs(slack[rest]).max(initial=0.0)))]
        rows, slacks = [self.rows.G[free]], [slack[free]]
        marks = [pulls.tobytes(), free.tobytes()]
        for ball in balls:
            on = any(ball is one for one in leant)
            beside = ball.kept() if on else ball.inside(len(x))
            if beside is None:
                return None
            rows.append(beside[0])
            slacks.append(beside[1])
            marks.append(ball.signs.tobytes() + bytes([on]))
        return face._replace(rows=np.vstack(rows), slacks=np.concatenate(slacks), active=b"|".join(marks))


@dataclass(frozen=True, eq=False)
class _Touched:
    """A ball, seen from x."""

    u: FloatArray
    signs: FloatArray  # 0 where u is
    slack: float
    touched: bool

    @staticmethod
    def of(ball: Diamond, x: FloatArray) -> "_Touched":
        u = x - ball.center
        size = max(ball.radius, float(np.abs(ball.center).max(initial=0.0)), 1e-300)
        signs = np.where(np.abs(u) <= TOUCHED * size, 0.0, np.sign(u))
        slack = ball.radius - float(signs @ u)
        return _Touched(u, signs, slack, abs(slack) <= TOUCHED * size and bool(signs.any()))

    @property
    def still(self) -> Any:
        """Entries that are 0."""
        return np.flatnonzero(self.signs == 0)

    def kept(self) -> tuple[FloatArray, FloatArray]:
        """Signs that must stay."""
        off = np.flatnonzero(self.signs)
        return -self.signs[off, None] * np.eye(len(self.u))[off], np.abs(self.u[off])

    def inside(self, n: int) -> tuple[FloatArray, FloatArray] | None:
        """That it is not left; None where entries that are 0 would be too many to say so."""
        if n <= FEW:
            every = np.array(list(product((1.0, -1.0), repeat=n)))
            return every, self.slack + self.signs @ self.u - every @ self.u
        if len(self.still):
            return None
        rows, slacks = self.kept()
        return np.vstack([self.signs[None], rows]), np.append(self.slack, slacks)


class _Split:
    """How z is made of rows and balls."""

    def __init__(self, rows: Rows, pulls: Any, leant: list[_Touched], x: FloatArray) -> None:
        n, self.balls = len(x), leant
        still = sorted({int(i) for ball in leant for i in ball.still})
        self.once = len(still) == sum(len(ball.still) for ball in leant)  # no entry is held by two balls
        G = rows.G[pulls]
        alone = (np.count_nonzero(G, axis=1) == 1) & np.isin(np.abs(G).argmax(axis=1), still)
        self.sides = {int(np.abs(row).argmax()): float(np.sign(row).sum()) for row in G[alone]}
        self.twice = len(self.sides) < int(alone.sum())  # an entry between two bounds that are one
        fixed = np.flatnonzero(rows.equal)
        fixed = fixed[independent_rows(rows.G[fixed])]
        self.own, self.alone, self.still = np.flatnonzero(~alone), alone, still
        signs = [ball.signs[None] for ball in leant]
        self.N = np.vstack([G[self.own], *signs, np.eye(n)[still], rows.G[fixed]])
        slack = rows.h - rows.G @ x
        at = [np.array([ball.slack for ball in leant]), self._away(n)]
        self.missed = np.concatenate([slack[pulls][self.own], *at, slack[fixed]])

    def _away(self, n: int) -> FloatArray:
        """Of entries that balls hold at 0: how far they are from there."""
        away = np.zeros(n)
        for ball in self.balls:
            away[ball.still] = -ball.u[ball.still]
        return away[self.still]

    def of(self, z: FloatArray) -> "Face | tuple[Any, list[bool]] | None":
        """The face; or which rows and balls pull, where not all do; None where multipliers are not unique."""
        N, k, b = self.N, len(self.own), len(self.balls)
        if not self.once or self.twice:
            return None
        if len(N) and np.linalg.matrix_rank(N, tol=ALIKE * float(np.abs(N).max())) < len(N):
            return None
        back: Any = np.linalg.pinv(N.T) if len(N) else np.zeros((0, len(z)))
        pulls = back @ z
        least = PULLED * max(float(np.abs(pulls).max(initial=0.0)), 1e-300)
        firm, level = pulls[:k] > least, pulls[k : k + b] > least
        if not (firm.all() and level.all()):
            stays = self.alone.copy()
            stays[self.own] = firm
            return stays, level.tolist()
        apart = z - pulls @ N
        if np.abs(apart).max(initial=0.0) > NORMAL * max(np.abs(z).max(initial=0.0), 1e-300):
            return None
        duals, lifts = [back[: k + b]], [N[: k + b]]
        place = {entry: k + b + number for number, entry in enumerate(self.still)}
        for number, ball in enumerate(self.balls):
            t = back[k + number]
            for entry in ball.still:
                w, side = back[place[int(entry)]], self.sides.get(int(entry), 0.0)
                for sign in (1.0, -1.0) if side == 0 else (side,):
                    duals.append((t + sign * w)[None])
                    lifts.append(sign * N[place[int(entry)]][None])
        functionals = np.vstack(duals)
        values = functionals @ z
        if not (values > 0).all():
            return None
        none = np.zeros((0, len(z)))
        return Face(N, self.missed, none, none[:, 0], functionals, values, mended=-apart, lifts=np.vstack(lifts))
