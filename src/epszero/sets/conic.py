"""Conic forms of sets, and the one place that calls Clarabel.

A set in conic form is {x : exists aux with A [x; aux] + s = b, s ∈ K}. Clarabel (an interior-point solver) then
minimises ½‖x‖²·curvature + qᵀx over it: projections of general polyhedra, support functions of intersections, proofs of
emptiness. Accuracy about 1e-9 relative in the objective, of which a minimiser that touches a bound without leaning on
it gets the root; cost: one sparse factorisation per iteration, some 10–20 iterations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray
from epszero.sets._cones import blocks


def cone(kind: str, size: int) -> Any:
    """Clarabel's object for a cone of this kind: "Zero", "Nonnegative", "SecondOrder" or "PSDTriangle"."""
    import clarabel  # noqa: PLC0415  (only conic forms need it)

    return getattr(clarabel, f"{kind}ConeT")(size)


@dataclass(frozen=True)
class ConicForm:
    """Rows A·[x; aux] + s = b with s in the product of `cones` (Clarabel's cone objects, in row order)."""

    A: Any  # scipy sparse, rows × (n + aux)
    b: FloatArray
    cones: tuple[Any, ...]
    n: int  # how many columns are x; the rest are auxiliary

    @staticmethod
    def inequalities(G: Any, h: FloatArray, n: int | None = None) -> "ConicForm":
        """G [x; aux] ≤ h with n columns for x (all of them by default), rows with infinite h left out."""
        keep = np.isfinite(h)
        rows = sp.csr_matrix(G)[keep]
        cones = (cone("Nonnegative", int(keep.sum())),)
        return ConicForm(rows, np.asarray(h)[keep], cones, rows.shape[1] if n is None else n)

    @staticmethod
    def equalities(A: Any, b: FloatArray) -> "ConicForm":
        """A x = b."""
        rows: Any = sp.csr_matrix(A)
        return ConicForm(rows, np.asarray(b), (cone("Zero", rows.shape[0]),), rows.shape[1])

    @staticmethod
    def second_order(A: Any, b: FloatArray) -> "ConicForm":
        """b − A x ∈ {(t, u) : ‖u‖ ≤ t}, t first."""
        rows: Any = sp.csr_matrix(A)
        return ConicForm(rows, np.asarray(b), (cone("SecondOrder", rows.shape[0]),), rows.shape[1])

    @property
    def linear(self) -> "tuple[FloatArray, FloatArray, Any] | None":
        """(G, h, which rows are equations) of {x : Gx ≤ h}; None with other cones or auxiliary columns."""
        kinds = [type(one).__name__ for one in self.cones]
        if not set(kinds) <= {"ZeroConeT", "NonnegativeConeT"} or self.A.shape[1] != self.n:
            return None
        equal = [np.full(one.dim, kind == "ZeroConeT") for one, kind in zip(self.cones, kinds, strict=True)]
        return self.A.toarray(), self.b, np.concatenate([np.zeros(0, bool), *equal])

    def kinds(self) -> list[tuple[str, Any, slice]]:
        """The name ("Zero", "Nonnegative" ...), the object and the rows of each cone."""
        return list(blocks(self.cones))

    @staticmethod
    def both(forms: "Sequence[ConicForm]") -> "ConicForm":
        """The intersection: the same x, each form with its own auxiliary columns."""
        n, extra = forms[0].n, [form.A.shape[1] - form.n for form in forms]
        blocks, start = [], 0
        for form, width in zip(forms, extra, strict=True):
            x, aux = form.A[:, :n], form.A[:, n:]
            left = sp.csr_matrix((form.A.shape[0], start))
            right = sp.csr_matrix((form.A.shape[0], sum(extra) - start - width))
            blocks.append(sp.hstack([x, left, aux, right], format="csr"))
            start += width
        cones = tuple(each for form in forms for each in form.cones)
        return ConicForm(sp.vstack(blocks, format="csr"), np.concatenate([form.b for form in forms]), cones, n)


@dataclass(frozen=True)
class ConicResult:
    """What Clarabel found: `x` is meaningful when `status` is "solved"."""

    x: FloatArray
    value: float
    status: str  # "solved", "infeasible", "unbounded" or "failed"
    slack: FloatArray  # s
    dual: FloatArray  # z; a proof of emptiness when `status` is "infeasible"
    whole: FloatArray  # x and the auxiliary columns


def minimise(form: ConicForm, linear: FloatArray, curvature: Any = 0.0) -> ConicResult:
    """min ½xᵀPx + linearᵀx over the set, with `curvature` the matrix P, positive semidefinite, or a multiple of I.

    As accurately as Clarabel can: it stalls if asked for too much.
    """
    for wanted, accepted in ((1e-12, 1e-8), (1e-10, 1e-7)):
        result = _attempt(form, linear, curvature, wanted, accepted)
        if result.status != "failed":
            return result
    return _attempt(form, linear, curvature, wanted=1e-8, accepted=1e-6)


def _attempt(form: ConicForm, linear: FloatArray, curvature: Any, wanted: float, accepted: float) -> ConicResult:
    import clarabel  # noqa: PLC0415  (only conic programs need it)

    columns = form.A.shape[1]
    P = sp.coo_matrix(curvature) if np.ndim(curvature) else curvature * sp.identity(form.n, format="coo")
    upper = P.row <= P.col
    square = sp.csc_matrix((P.data[upper], (P.row[upper], P.col[upper])), shape=(columns, columns))
    q = np.concatenate([np.asarray(linear, dtype=np.float64), np.zeros(columns - form.n)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = wanted
    settings.reduced_tol_gap_abs = settings.reduced_tol_gap_rel = settings.reduced_tol_feas = accepted
    solver = clarabel.DefaultSolver(square, q, sp.csc_matrix(form.A), form.b, list(form.cones), settings)
    answer = solver.solve()
    name = str(answer.status)
    status = (
        "solved"
        if name in ("Solved", "AlmostSolved")
        else "infeasible"
        if "PrimalInfeasible" in name
        else "unbounded"
        if "DualInfeasible" in name
        else "failed"
    )
    whole = np.asarray(answer.x)
    slack, dual = np.asarray(answer.s), np.asarray(answer.z)
    return ConicResult(whole[: form.n], float(answer.obj_val), status, slack, dual, whole)
