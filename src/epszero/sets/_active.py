"""The point of a polyhedron nearest to v, exact to rounding, by a dual active-set method.

Keep a set W (`active`) of independent rows with x = the projection of v on {aᵢᵀx = bᵢ, i ∈ W} and multipliers λ ≥ 0
(`pulls`); take the most violated row p and raise its multiplier, moving x along −(a_p less its part in the span of W):
in full until p holds, or until some λ reaches 0, whose row then leaves. The distance to v grows with every row that
enters, so it ends; x is taken afresh from W each time, so rounding does not add up. A good first W (from an
interior-point method) leaves little to do. Cost: one least-squares problem with |W| rows per change.
Source: Goldfarb & Idnani, "A numerically stable dual method for solving strictly convex quadratic programs", Math.
Prog. 27 (1983).
"""

from typing import Any, cast

import numpy as np

from epszero._lazy import linalg as la
from epszero._types import FloatArray
from epszero.sets._normals import Normal

ROUNDING = 1e-12
TIGHT = 4e-15  # what a row may be missed by
NEAR = 1e-9  # rows that are touched, and normals that are the same


class LinearRows:
    """Rows aᵀx ≤ b, or = b where `equal`, scaled to length 1. A is sparse."""

    def __init__(self, A: Any, b: FloatArray, equal: "np.ndarray[Any, np.dtype[np.bool_]]") -> None:
        length = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel())
        length = np.where(length > 0, length, 1.0)
        self.A = A.multiply(1 / length[:, None]).tocsr()
        self.b = b / length
        self.equal = equal
        _, s, basis = np.linalg.svd(self.A[equal].toarray(), full_matrices=False)
        self.basis = basis[s > ROUNDING * s.max(initial=0.0)]  # of the span of the equations
        some = np.linalg.lstsq(self.A[equal].toarray(), self.b[equal])[0]
        self.level = self.basis @ some

    def hold(self, v: FloatArray) -> bool:
        """Whether v meets every row."""
        excess = self.A @ v - self.b
        return not (excess[~self.equal] > 0).any() and not excess[self.equal].any()

    def nearest(self, v: FloatArray, guess: Any) -> FloatArray | None:
        """The projection of v, `guess` marking the rows that may be active; None when rounding wins."""
        active = self._independent(np.flatnonzero(guess & ~self.equal))
        x, pulls = self._on(v, active)
        while (pulls < 0).any():  # a subset with λ ≥ 0 to start from
            active = active[pulls > 0]
            x, pulls = self._on(v, active)
        seen = {frozenset(active.tolist())}
        for _ in range(10 * sum(self.A.shape)):
            excess = np.where(self.equal, -np.inf, self.A @ x - self.b)
            excess[active] = -np.inf
            p = int(excess.argmax()) if len(excess) else 0
            size = max(1.0, float(np.abs(x).max()))
            if not len(excess) or excess[p] <= TIGHT * size:
                return x
            entered = self._enter(p, float(excess[p]), active, pulls)
            if entered is None or frozenset(entered.tolist()) in seen:  # no better than rounding allows
                return x if excess[p] <= ROUNDING * size else None
            active = entered
            seen.add(frozenset(active.tolist()))
            x, pulls = self._on(v, active)
            pulls = np.maximum(pulls, 0.0)
        return None

    def face(self, v: FloatArray, x: FloatArray) -> FloatArray:
        """The derivative at v of the projection, which is x: on the directions that the rows leant on leave free.

        v − x = Σ λᵢaᵢ over independent rows that x touches, λ > 0, and equations: any such rows give an element of the
        generalized Jacobian, however many more x touches (Han & Sun, J. Optim. Theory Appl. 94, 1997).
        """
        from scipy.optimize import nnls  # noqa: PLC0415  (slow to load)

        n = len(v)
        if not (np.isfinite(v).all() and np.isfinite(x).all()):
            return np.full((n, n), np.nan)
        size = max(1.0, float(np.abs(x).max(initial=0.0)), float(np.abs(self.b).max(initial=0.0)))
        touched = np.flatnonzero(~self.equal & (self.b - self.A @ x <= NEAR * size))
        free, rows = np.eye(n) - self.basis.T @ self.basis, self.A[touched].toarray()
        away = free @ (v - x)
        pulls = nnls((rows @ free).T, away)[0] if len(touched) else np.zeros(0)
        leant = touched[pulls > ROUNDING * (size + float(np.linalg.norm(away)))]
        across: Any = np.linalg.svd(self._normals(leant), full_matrices=False)[2] if len(leant) else self.basis
        return np.eye(n) - across.T @ across

    def normal(self, x: FloatArray, z: FloatArray) -> Normal | None:
        """Σ yᵢaᵢ near z over the rows that x touches, y ≥ 0, with the gap Σ yᵢ(bᵢ − aᵢᵀx); None where none is near."""
        from scipy.optimize import nnls  # noqa: PLC0415  (slow to load)

        size = max(1.0, float(np.abs(x).max(initial=0.0)), float(np.abs(self.b).max(initial=0.0)))
        slack = self.b - self.A @ x
        touched = np.flatnonzero(~self.equal & (slack <= NEAR * size))
        free = self.basis
        N = np.vstack([free, -free, self.A[touched].toarray()])
        y = nnls(N.T, z)[0] if len(N) else np.zeros(0)
        found = y @ N
        if np.linalg.norm(found - z) > NEAR * (1 + np.linalg.norm(z)):
            return None
        outside = max(
            float(-slack[~self.equal].min(initial=0.0)), float(np.abs(free @ x - self.level).max(initial=0.0))
        )
        doubt = "" if outside <= 8 * TIGHT * size else f"x is outside by {outside:.1g}"
        return Normal(found, float(y[2 * len(free) :] @ np.maximum(slack[touched], 0.0)), doubt)

    def _enter(self, p: int, excess: float, active: Any, pulls: FloatArray) -> Any:
        a, k = self.A[[p]].toarray()[0], len(self.basis)
        while True:
            N = self._normals(active)
            r = np.linalg.lstsq(N.T, a)[0]
            free = float(np.sum((a - N.T @ r) ** 2))  # how fast x can still move towards row p
            ratios = np.where(r[k:] > ROUNDING, pulls / np.where(r[k:] > ROUNDING, r[k:], 1.0), np.inf)
            blocking = int(ratios.argmin()) if len(ratios) else -1
            partial = ratios[blocking] if len(ratios) else np.inf
            full = excess / free if free > ROUNDING else np.inf
            if np.isinf(partial) and np.isinf(full):
                return None  # the rows contradict each other
            if full <= partial:
                return np.append(active, p)
            pulls = np.delete(pulls - partial * r[k:], blocking)
            active = np.delete(active, blocking)
            excess -= partial * free if free > ROUNDING else 0.0

    def _on(self, v: FloatArray, active: Any) -> tuple[FloatArray, FloatArray]:
        """The projection of v on the rows active and the equations, and the multipliers of active."""
        N, target = self._normals(active), np.concatenate([self.level, self.b[active]])
        x = v
        for _ in range(2):  # the second time for the rounding of a far v
            x = x + np.linalg.lstsq(N, target - N @ x)[0]
        pulls: Any = np.linalg.lstsq(N.T, v - x)[0]
        return x, pulls[len(self.basis) :]

    def _normals(self, active: Any) -> FloatArray:
        return np.vstack([self.basis, self.A[active].toarray()])

    def _independent(self, active: Any) -> Any:
        rows = self.A[active].toarray()
        rows = rows - rows @ self.basis.T @ self.basis
        if not len(active):
            return active
        R, order = cast("tuple[Any, Any]", la.qr(rows.T, mode="r", pivoting=True))
        return active[order[: int(np.sum(np.abs(np.diag(R)) > 1e-9))]]
