"""What a conic solver finds, turned into what is proved: points inside, upper bounds on supports, normals.

The set is {x : A[x; aux] + s = b, s ∈ K}. For every y ∈ K* and every [x; aux] of the set (weak duality)
    ⟨Aᵀy, [x; aux]⟩ = ⟨y, b − s⟩ ≤ ⟨b, y⟩,
so z′ = (Aᵀy)_x has ⟨z′, x̂ − x⟩ ≤ ⟨y, s⟩ + ⟨w, aux − aux^⟩ for all x̂ of the set, w = (Aᵀy)_aux: no sum of large numbers
of which little is left, and exact whatever the solver did. A solver's dual y is moved into K* first.
- Bounded: let ±e_j have duals that leave remainders δ_j, and bounds β_j. A direction d in which the set recedes, with
  ‖d‖ = 1, would have |d_j| ≤ δ_j; so ‖δ‖ < 1 proves that there is none, and then M = sup ‖[x; aux]‖ ≤ ‖β‖/(1 − ‖δ‖).
- Support: σ(d) ≤ ⟨b, y⟩ + ‖d − Aᵀy‖·M.
- Inside: y + t(y₀ − y) with y₀ strictly inside (s₀ − m·e ∈ K, by another solve, then checked) and the least t for which
  every row holds. Where m is below 1e-6 of the size, nothing is shown: rounding might be far from the set.
"""

from functools import cached_property
from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets import _cones
from epszero.sets._normals import Normal
from epszero.sets.conic import ConicForm, cone, minimise

EPS = float(np.finfo(np.float64).eps)
MARGIN = 1e-6  # of the size: how far inside a point must be to pull others in
COLUMNS = 200  # up to which the extent is worked out
STEPS = 60
NO_ROOM = "the set has hardly an interior, so that rounding may be far from it"
NO_AUX = "no values of its auxiliary variables are found that prove x to be in the set"


class Proofs:
    """Of one conic form, with cones that are known."""

    def __init__(self, form: ConicForm) -> None:
        self.form = form
        self.A = form.A.tocsr()
        self.sizes = abs(self.A)
        zero = np.zeros(len(form.b), bool)
        for kind, _, rows in _cones.blocks(form.cones):
            zero[rows] = kind == "Zero"
        self.equal = zero

    # -- points inside ------------------------------------------------------------------------------------------------

    def slack(self, y: FloatArray) -> FloatArray:
        """s = b − Ay."""
        return self.form.b - self.A @ y

    def holds(self, y: FloatArray, units: float = 8.0) -> bool:
        """Whether y meets every row, up to so many units in the last place of its terms."""
        room = units * EPS * (np.abs(self.form.b) + self.sizes @ np.abs(y))
        return _cones.holds(self.form.cones, self.slack(y), np.where(self.equal, np.maximum(room, 64 * EPS), room))

    @cached_property
    def middle(self) -> FloatArray | None:
        """A point y₀ strictly inside, in the equations; None where none is found."""
        e = _cones.inner_point(self.form.cones)
        lengths = np.sqrt(np.asarray(self.A.multiply(self.A).sum(axis=1))).ravel()
        for kind, _, rows in _cones.blocks(self.form.cones):
            own = lengths[rows]
            e[rows] *= own if kind == "Nonnegative" else own.max(initial=0.0)  # a row without x may be as it is
        first = minimise(self.form, np.zeros(self.form.n))
        if first.status != "solved":
            return None
        size, columns = 1 + float(np.abs(first.whole).max(initial=0.0)), self.A.shape[1]
        rows = sp.vstack(
            [sp.hstack([self.A, e[:, None]]), sp.csr_matrix(np.eye(1, columns + 1, columns))], format="csr"
        )
        lifted = ConicForm(rows, np.append(self.form.b, size), (*self.form.cones, cone("Nonnegative", 1)), columns + 1)
        best = minimise(lifted, -np.eye(1, columns + 1, columns)[0])
        if best.status != "solved":
            return None
        y, margin = self.on_equations(best.x[:-1]), 0.5 * float(best.x[-1])
        inside = _cones.holds(self.form.cones, self.slack(y) - margin * e, self._even(y))
        return y if margin > MARGIN * size and inside else None

    def _even(self, y: FloatArray) -> FloatArray:
        """Rounding, in the equations alone."""
        return np.where(self.equal, 64 * EPS * (1 + np.abs(self.form.b) + self.sizes @ np.abs(y)), 0.0)

    @cached_property
    def _equations(self) -> tuple[FloatArray, FloatArray]:
        rows = self.A[self.equal].toarray()
        return rows, np.linalg.pinv(rows) if len(rows) else rows.T

    def on_equations(self, y: FloatArray) -> FloatArray:
        """The point nearest to y that meets the equations, to rounding."""
        rows, inverse = self._equations
        for _ in range(2 if len(rows) else 0):
            y = y + inverse @ (self.form.b[self.equal] - rows @ y)
        return y

    def pulled(self, y: FloatArray) -> FloatArray:
        """y, or the first point on the way to y₀ that meets every row; y where there is no such y₀."""
        y = self.on_equations(y)
        if self.holds(y, 1.0) or self.middle is None:
            return y
        for k in range(STEPS):
            nearer = y + min(EPS * 2.0**k, 1.0) * (self.middle - y)
            if self.holds(nearer, 1.0):
                return nearer
        return y

    # -- duals --------------------------------------------------------------------------------------------------------

    def dual(self, direction: FloatArray) -> FloatArray | None:
        """A multiplier y ∈ K* with Aᵀy near the direction (of all columns), ⟨b, y⟩ small; None where none is found."""
        size = float(np.abs(direction).max(initial=0.0))
        if size == 0:
            return np.zeros(len(self.form.b))
        whole = ConicForm(self.A, self.form.b, self.form.cones, self.A.shape[1])
        result = minimise(whole, -direction / size)
        return _cones.into_dual(self.form.cones, result.dual) * size if result.status == "solved" else None

    @cached_property
    def extent(self) -> float:
        """M, ∞ where the set is not proved to be bounded."""
        columns = self.A.shape[1]
        if columns > COLUMNS:
            return np.inf
        beta, delta = np.zeros(columns), np.zeros(columns)
        for j in range(columns):
            for sign in (1.0, -1.0):
                unit = sign * np.eye(1, columns, j)[0]
                y = self.dual(unit)
                if y is None:
                    return np.inf
                beta[j] = max(beta[j], float(self.form.b @ y))
                delta[j] = max(delta[j], float(np.linalg.norm(unit - self.A.T @ y)))
        left = 1 - float(np.linalg.norm(delta))
        return float(np.linalg.norm(beta)) / left if left > 0 else np.inf

    def above(self, direction: FloatArray, value: float, dual: FloatArray) -> float:
        """An upper bound on σ(direction), from what a solver found; where the set is not proved bounded, near to it."""
        whole = np.concatenate([direction, np.zeros(self.A.shape[1] - self.form.n)])
        y = _cones.into_dual(self.form.cones, dual)
        bound, astray = float(self.form.b @ y), float(np.linalg.norm(whole - self.A.T @ y))
        rounding = 8 * EPS * float(np.abs(self.form.b) @ np.abs(y))
        if np.isfinite(self.extent):
            return max(bound + astray * self.extent + rounding, value)
        return max(bound + rounding, value)

    def normal(self, x: FloatArray, z: FloatArray) -> Normal:
        """See `Normal`."""
        point = self._lifted(x)
        doubt = NO_AUX if point is None else "" if self.middle is not None else NO_ROOM
        point = np.concatenate([x, np.zeros(self.A.shape[1] - len(x))]) if point is None else point
        doubt = doubt or ("" if self.holds(point) else "x is not shown to be in the set")
        y = self.dual(np.concatenate([z, np.zeros(len(point) - len(z))]))
        if y is None:
            return Normal(z, np.inf, "a conic solver failed")
        g = self.A.T @ y
        w, aux = g[len(x) :], point[len(x) :]
        eta = max(float(y @ self.slack(point)), 0.0)
        if w.any():
            eta += float(w @ aux) + float(np.linalg.norm(w)) * self.extent
        return Normal(g[: len(x)], eta, doubt)

    def _lifted(self, x: FloatArray) -> FloatArray | None:
        """[x; aux] that meets every row, as far inside as aux can bring it; None where none is found."""
        n, columns = self.form.n, self.A.shape[1]
        if columns == n:
            return x
        e = _cones.inner_point(self.form.cones)
        rows: Any = sp.hstack([self.A[:, n:], e[:, None]], format="csr")
        rest = ConicForm(rows, self.form.b - self.A[:, :n] @ x, self.form.cones, columns - n + 1)
        capped = ConicForm.inequalities(np.eye(1, columns - n + 1, columns - n), np.ones(1))
        result = minimise(ConicForm.both([rest, capped]), -np.eye(1, columns - n + 1, columns - n)[0])
        point = np.concatenate([x, result.x[:-1]])
        return point if result.status == "solved" and self.holds(point) else None
