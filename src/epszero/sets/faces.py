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


class Rows:
    """{x : Gx ≤ h, = h where `equal`}, and the faces of it that were looked at."""

    def __init__(self, G: FloatArray, h: FloatArray, equal: Any) -> None:
        self.G, self.h, self.equal = G, h, equal
        self.sizes = np.abs(G)
        self._known: dict[bytes, tuple[FloatArray, FloatArray, Any, Any] | None] = {}

    def face(self, x: FloatArray, z: FloatArray) -> Face | None:
        """At x with the normal z; None where z is not normal there, or its multipliers are not unique."""
        slack = self.h - self.G @ x
        size = np.maximum(np.abs(self.h), self.sizes @ np.abs(x))
        touched = np.flatnonzero(~self.equal & (slack <= TOUCHED * np.maximum(size, 1e-300)))
        kept, pulls = self._leant_on(touched, z)
        if kept is None:
            return None
        normals, back, fixed, rest = kept
        apart = z - pulls @ normals
        if float(np.abs(apart).max(initial=0.0)) > 1e-9 * max(float(np.abs(z).max(initial=0.0)), 1e-300):
            return None
        own = len(normals) - len(fixed)
        held = touched[: len(touched)] if own == len(touched) else np.setdiff1d(np.flatnonzero(~self.equal), rest)
        missed = np.concatenate([slack[held], slack[fixed]])
        return Face(
            normals,
            missed,
            self.G[rest],
            slack[rest],
            back[:own],
            pulls[:own],
            active=held.tobytes(),
            mended=-apart,
        )

    def _leant_on(self, touched: Any, z: FloatArray) -> tuple[Any, FloatArray]:
        """The face of the rows that pull, and how much each does: all that are touched, or those of least squares."""
        known = self._face(touched)
        if known is not None:
            pulls = known[1] @ z
            own = pulls[: len(touched)]
            if (own > PULLED * max(float(np.abs(pulls).max(initial=0.0)), 1e-300)).all():
                return known, pulls
        from scipy.optimize import nnls  # noqa: PLC0415  (slow to load)

        fixed = self.G[self.equal]
        generators = np.vstack([self.G[touched], fixed, -fixed])
        found = nnls(generators.T, z)[0][: len(touched)] if len(generators) else np.zeros(0)
        leant = touched[found > PULLED * max(float(found.max(initial=0.0)), 1e-300)]
        known = self._face(leant)
        return known, np.zeros(0) if known is None else known[1] @ z

    def _face(self, kept: Any) -> tuple[FloatArray, FloatArray, Any, Any] | None:
        """Normals, what turns z into multipliers, the equations among them, and the other rows; by the rows kept."""
        key = kept.tobytes()
        if key not in self._known:
            self._known[key] = self._found(kept)
        return self._known[key]

    def _found(self, kept: Any) -> tuple[FloatArray, FloatArray, Any, Any] | None:
        fixed = np.flatnonzero(self.equal)
        fixed = fixed[independent_rows(self.G[fixed])]
        normals = np.vstack([self.G[kept], self.G[fixed]])
        if len(normals) and np.linalg.matrix_rank(normals, tol=ALIKE * float(np.abs(normals).max())) < len(normals):
            return None  # multipliers are not unique: this piece has no one way to say how firm it is
        back: Any = np.linalg.pinv(normals.T) if len(normals) else np.zeros((0, self.G.shape[1]))
        return normals, back, fixed, np.setdiff1d(np.flatnonzero(~self.equal), kept)


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
    return Face(eye[zero], missed, rows, slacks, duals, values, spread, active)
