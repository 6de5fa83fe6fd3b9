"""Faces of polyhedral sets and functions: on which piece a point x and an element z of A(x) lie, and how firmly.

Near (x, z) the graph of A is {(x + u, z + v) : Nu = 0, v ∈ span Nᵀ + Qu} as long as every row aᵀ(x + u) ≤ b that x does
not touch keeps its slack, and every linear functional of z that must be positive (a multiplier; w − |z_i| for an ℓ1
norm at 0) stays so. A part of A that knows its faces says N, the rows with their slacks and the functionals with their
values, for one point; Q is the curvature of a function that is not polyhedral alone (an elastic net).
Rockafellar & Wets, Variational Analysis (1998), Example 12.33, and Thm 6.46 for normal cones of polyhedra.
"""

from typing import Any, NamedTuple

import numpy as np

from epszero._types import FloatArray

TOUCHED = 1e-10  # of the sizes of b and x: a slack below it is none
NORMAL = 1e-9  # of z: what is left of it beside the pulls of its rows
TOGETHER = 1_000_000  # numbers: faces of many sets alike are worked out together up to here
PULLED = 1e-12  # of the largest multiplier: one below it is none
ALIKE = 1e-10  # singular values below this are 0: rows depend on each other


class Face(NamedTuple):
    """Of one point with t entries."""

    normals: FloatArray  # N, (k, t), independent rows
    missed: FloatArray  # (k,): how far x is from where they hold it: 0 but for rounding
    rows: FloatArray  # (r, t): a, of what x does not touch, or touches without leaning on it
    slacks: FloatArray  # (r,): b − aᵀx
    duals: FloatArray  # (q, t): functionals of z
    values: FloatArray  # (q,): theirs, to stay positive
    curvature: FloatArray | float = 0.0  # Q, a diagonal
    active: bytes = b""  # which piece it is: equal for equal pieces of one set
    mended: FloatArray | float = 0.0  # what was added to z so that it is in A(x) to the last digit
    lifts: FloatArray | None = None  # (q, t): in the span of N; value k alone rises by 1 where it is added to z
    separable: bool = False  # entry by entry, not only near x: rows and functionals have one entry each
    linear: bool = False  # of {Gx ≤ h}: values are multipliers of the first normals, the other normals are equations


class Rows:
    """{x : Gx ≤ h, = h where `equal`}, and the faces of it that were looked at."""

    def __init__(self, G: FloatArray, h: FloatArray, equal: Any) -> None:
        self.G, self.h, self.equal = G, h, equal
        self.reach = np.abs(G).sum(axis=1)  # how far aᵀx is from 0 at most where no entry of x exceeds 1
        self.separable = bool((np.count_nonzero(G, axis=1) <= 1).all())
        self._known: dict[bytes, _Leant | None] = {}

    def face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """At x with the normal z; None where z is not normal there, or its multipliers are not unique."""
        slack = self.h - self.G @ x
        return self.face_of(slack, touched(slack, np.abs(self.h), self.reach * np.abs(x).max(initial=0.0)), z)

    def face_of(self, slack: FloatArray, touching: Any, z: FloatArray) -> Face | None:
        """The same, from the slacks and from which rows have none."""
        kept, pulls = self._leant_on(np.flatnonzero(touching & ~self.equal), z)
        if kept is None:
            return None
        apart = z - pulls @ kept.normals
        if np.abs(apart).max(initial=0.0) > NORMAL * max(np.abs(z).max(initial=0.0), 1e-300):
            return None
        return _face(kept, slack, pulls, apart, self.separable)

    def _leant_on(self, near: Any, z: FloatArray) -> "tuple[_Leant | None, FloatArray]":
        """The face of the rows that pull, and how much each does: all that are touched, or those of least squares."""
        known = self.leant(near)
        if known is not None:
            pulls = known.back @ z
            own = pulls[: len(near)]
            if (own > PULLED * max(np.abs(pulls).max(initial=0.0), 1e-300)).all():
                return known, pulls
        from scipy.optimize import nnls  # noqa: PLC0415  (slow to load)

        fixed = self.G[self.equal]
        generators = np.vstack([self.G[near], fixed, -fixed])
        found = nnls(generators.T, z)[0][: len(near)] if len(generators) else np.zeros(0)
        leant = near[found > PULLED * max(float(found.max(initial=0.0)), 1e-300)]
        known = self.leant(leant)
        return known, np.zeros(0) if known is None else known.back @ z

    def leant(self, kept: Any) -> "_Leant | None":
        """By the rows kept."""
        key = kept.tobytes()
        if key not in self._known:
            self._known[key] = self._found(kept)
        return self._known[key]

    def _found(self, kept: Any) -> "_Leant | None":
        fixed = np.flatnonzero(self.equal)
        fixed = fixed[independent_rows(self.G[fixed])]
        held = np.concatenate([kept, fixed]).astype(int)
        normals = self.G[held]
        if len(normals) and np.linalg.matrix_rank(normals, tol=ALIKE * float(np.abs(normals).max())) < len(normals):
            return None  # multipliers are not unique: this piece has no one way to say how firm it is
        back: Any = np.linalg.pinv(normals.T) if len(normals) else np.zeros((0, self.G.shape[1]))
        rest = np.setdiff1d(np.flatnonzero(~self.equal), kept)
        implied = follow(self.G[rest], self.G[kept], self.G[fixed])
        return _Leant(normals, back, held, len(kept), rest, self.G[rest], implied, kept.tobytes())


class _Leant(NamedTuple):
    """Rows that x leans on, and the equations."""

    normals: FloatArray
    back: FloatArray  # what turns z into multipliers
    held: Any  # numbers of the normals
    own: int  # how many of them are no equations
    rest: Any  # numbers of the other rows
    others: FloatArray  # these rows
    implied: Any  # which of them follow from one row that is leant on, and equations, where they hold at all
    active: bytes


def touched(slack: FloatArray, of_h: FloatArray, of_x: FloatArray) -> Any:
    """Which slacks are none, given the sizes of h and of what Gx could be: no entry is exacter than the largest."""
    return slack <= TOUCHED * np.maximum(np.maximum(of_h, of_x), 1e-300)


class Alike:
    """Many sets {x : Gx ≤ h} that differ in h alone: their faces, at a point of each."""

    def __init__(self, members: list[Rows]) -> None:
        self.rows = members[0]  # h is in the slacks: what else there is to know of a face is the same for all
        self.h = np.stack([one.h for one in members])
        self.of_h = np.abs(self.h)
        self._last: tuple[bytes, _Leants | None] = b"", None

    @staticmethod
    def of(members: "list[Rows | None]") -> "Alike | None":
        """None where they differ in more."""
        known = [one for one in members if one is not None]
        if len(known) < len(members) or not known:
            return None
        first = known[0]
        alike = all(np.array_equal(one.G, first.G) and np.array_equal(one.equal, first.equal) for one in known)
        return Alike(known) if alike else None

    def faces(self, X: FloatArray, Z: FloatArray) -> list[Face | None]:
        """Row by row."""
        rows = self.rows
        slacks = self.h - X @ rows.G.T
        near = touched(slacks, self.of_h, np.abs(X).max(axis=1, initial=0.0)[:, None] * rows.reach)
        known = self._leants(near)
        if known is None:
            return [rows.face_of(slack, touching, z) for slack, touching, z in zip(slacks, near, Z, strict=True)]
        pulls = (known.back @ Z[:, :, None])[:, :, 0]
        apart = Z - (pulls[:, None] @ known.normals)[:, 0]
        sizes, most = (np.maximum(np.abs(one).max(axis=1, initial=0.0), 1e-300) for one in (Z, pulls))
        pulled = ((pulls > PULLED * most[:, None]) | ~known.own).all(axis=1)
        sure = pulled & (np.abs(apart).max(axis=1, initial=0.0) <= NORMAL * sizes)
        each = zip(sure.tolist(), known.each, slacks, near, Z, pulls, apart, strict=True)
        return [
            _face(kept, slack, pull, gap, rows.separable) if fine else rows.face_of(slack, touching, z)
            for fine, kept, slack, touching, z, pull, gap in each
        ]

    def _leants(self, near: Any) -> "_Leants | None":
        """Of rows that are touched; None where they are too many to be worth it, or one of them has no face."""
        rows, key = self.rows, near.tobytes()
        if self._last[0] != key:
            few = len(near) * rows.G.shape[1] ** 2 <= TOGETHER
            each = [rows.leant(np.flatnonzero(one)) for one in near & ~rows.equal] if few else []
            kept = [one for one in each if one is not None]
            self._last = key, _Leants.of(kept) if len(kept) == len(near) else None
        return self._last[1]


class _Leants(NamedTuple):
    """Of one point of each set, padded with zeros to one shape."""

    each: list[_Leant]
    normals: FloatArray
    back: FloatArray
    own: Any  # which of them are no equations, and no zeros

    @staticmethod
    def of(each: list[_Leant]) -> "_Leants":
        most, t = max(len(one.normals) for one in each), each[0].normals.shape[1]
        normals, back = np.zeros((len(each), most, t)), np.zeros((len(each), most, t))
        for place, one in enumerate(each):
            normals[place, : len(one.normals)], back[place, : len(one.normals)] = one.normals, one.back
        return _Leants(each, normals, back, np.arange(most) < np.array([one.own for one in each])[:, None])


def _face(kept: _Leant, slack: FloatArray, pulls: FloatArray, apart: FloatArray, separable: bool) -> Face:
    """Where x leans on these rows; `apart`: what their pulls leave of z."""
    own, others, slacks, active = kept.own, kept.others, slack[kept.rest], kept.active
    if kept.implied.any():
        free = ~(kept.implied & (slacks >= -TOUCHED * np.abs(slacks).max(initial=0.0)))
        others, slacks, active = others[free], slacks[free], active + free.tobytes()
    return Face(
        kept.normals,
        slack[kept.held],
        others,
        slacks,
        kept.back[:own],
        pulls[:own],
        active=active,
        mended=-apart,
        lifts=kept.normals[:own],
        separable=separable,
        linear=True,
    )


def follow(rows: FloatArray, leant: FloatArray, fixed: FloatArray) -> Any:
    """Which rows are, up to equations, no or a positive multiple of a row that is leant on: no slack of theirs changes
    while that row holds, and what holds them is that row."""
    if not len(rows):
        return np.zeros(0, dtype=bool)
    size = np.maximum(np.linalg.norm(rows, axis=1), 1e-300)
    if len(fixed):
        basis = np.linalg.qr(fixed.T)[0]
        rows, leant = rows - rows @ basis @ basis.T, leant - leant @ basis @ basis.T
    lengths = np.linalg.norm(rows, axis=1)
    found = lengths <= ALIKE * size
    if len(leant):
        units = leant / np.maximum(np.linalg.norm(leant, axis=1), 1e-300)[:, None]
        along = rows @ units.T
        nearest = along.argmax(axis=1)
        apart = rows - np.take_along_axis(along, nearest[:, None], axis=1) * units[nearest]
        found |= (along.max(axis=1) > 0) & (np.linalg.norm(apart, axis=1) <= ALIKE * size)
    return found


def independent_rows(rows: FloatArray) -> Any:
    """Numbers of rows that span all of them."""
    chosen: list[int] = []
    basis = np.zeros((0, rows.shape[1]))
    for place, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        length = float(np.linalg.norm(rest))
        if length > ALIKE * max(float(np.linalg.norm(row)), 1e-300):
            chosen.append(place)
            basis = np.vstack([basis, rest / length])
    return np.array(chosen, dtype=int)


def signs_face(x: FloatArray, z: FloatArray, weight: FloatArray, curvature: Any = 0.0) -> Face:
    """Of Σ w_i|x_i| + ½ curvature_i x_i²: entries that are 0 stay so while |z_i| < w_i, the others keep their sign."""
    weight = np.broadcast_to(weight, x.shape)
    eye, zero = np.eye(len(x)), (x == 0) & (weight > 0)
    off = (x != 0) & (weight > 0)
    sign = np.sign(x)
    duals = np.vstack([-eye[zero], eye[zero]])
    values = np.concatenate([weight[zero] - z[zero], weight[zero] + z[zero]])
    spread = np.broadcast_to(curvature, x.shape)
    active = np.concatenate([zero, sign > 0]).tobytes()
    rows, slacks, missed = -sign[off, None] * eye[off], np.abs(x[off]), np.zeros(int(zero.sum()))
    return Face(eye[zero], missed, rows, slacks, duals, values, spread, active, lifts=duals, separable=True)


def free_face(n: int, mended: FloatArray | float = 0.0) -> Face:
    """Of the whole space: nothing is held, and nothing has to stay positive."""
    none = np.zeros((0, n))
    return Face(none, none[:, 0], none, none[:, 0], none, none[:, 0], mended=mended, lifts=none, separable=True)
