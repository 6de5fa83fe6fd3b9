"""An affine monotone inclusion over sets in conic form, as one convex program with the optimal value 0.

For C = {x : G[x; a] + s = b, s ∈ K} and F(x) = Hx + q with H + Hᵀ ⪰ 0, x solves the variational inequality exactly when
    min  ⟨Hx + q, x⟩ + bᵀy   s.t.   G[x; a] + s = b, s ∈ K,   Hx + q + G_xᵀy = 0,   G_aᵀy = 0,   y ∈ K*
attains 0 there: ⟨F(x), x⟩ + σ_C(−F(x)) ≥ 0 on C, with equality at solutions alone, and bᵀy ≥ σ_C(−F(x)) by conic
duality. It is a linear program where H is skew and K polyhedral, as for zero-sum games (HiGHS, solve/linear_parts.py);
where K is polyhedral its optimality conditions are solved by an interior-point method (solve/interior.py); else it is a
quadratic program (Clarabel). Matrices are made once for one H and one set.
What comes out is good to the solver's accuracy; Newton's finish goes on from there (solve/newton.py).
Source: Facchinei & Pang, Finite-Dimensional Variational Inequalities (2003), Sec. 1.5.3 and 2.3.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import jax
import numpy as np

from epszero._checks import InputError
from epszero._lazy import sp
from epszero._types import FloatArray, PyTree
from epszero.problems.backward import Backward, is_part
from epszero.sets import Set
from epszero.sets.conic import ConicForm, cone, minimise
from epszero.solve.interior import Interior
from epszero.solve.linear_parts import Parts

MOST_QUADRATIC = 600  # entries of x: a dense quadratic program beyond that takes longer than it is worth
MOST_DENSE = 1500
MOST_LINEAR = 3000
SKEW = 1e-13  # of the largest slope: a symmetric part below it is rounding


class Programme:
    """The program for one H and one set: what does not depend on q is worked out once."""

    def __init__(self, form: ConicForm, H: FloatArray) -> None:
        self.form = form
        self.H = H
        self.skew = is_skew(H)
        self.polyhedral = all(kind in ("Zero", "Nonnegative") for kind, _, _ in form.kinds())
        self.linear = self.skew and self.polyhedral

    @property
    def free(self) -> bool:
        """Whether nothing bounds x."""
        return not self.form.A.shape[0]

    @property
    def small(self) -> bool:
        """Whether it is worth its time."""
        return self.form.n <= (MOST_LINEAR if self.linear else MOST_DENSE if self.polyhedral else MOST_QUADRATIC)

    def solution(self, q: FloatArray) -> FloatArray | None:
        """x, flat; None where the solver gave up."""
        if not self.small or not np.isfinite(q).all():
            return None
        if self.linear:
            return self._parts.solution(q)
        found = self._interior.solution(q) if self.polyhedral else None
        return self._quadratic(q) if found is None else found[: self.form.n]

    @cached_property
    def _parts(self) -> Parts:
        return Parts(self.form, self.H, self._equal)

    @cached_property
    def _equal(self) -> Any:
        """Which rows are equations."""
        equal = np.zeros(self.form.A.shape[0], bool)
        for kind, _, rows in self.form.kinds():
            equal[rows] = kind == "Zero"
        return equal

    @cached_property
    def _interior(self) -> Interior:
        equal, form = self._equal, self.form
        return Interior(self.H, (form.A[~equal], form.b[~equal]), (form.A[equal], form.b[equal]))

    def _quadratic(self, q: FloatArray) -> FloatArray | None:
        """By Clarabel, up to its own size."""
        if self.form.n > MOST_QUADRATIC:
            return None
        form, (rows, cones, curvature) = self.form, self._conic
        n, aux, m = form.n, form.A.shape[1] - form.n, form.A.shape[0]
        right = np.concatenate([form.b, -q, np.zeros(rows.shape[0] - m - n)])
        whole = ConicForm(rows, right, cones, n + aux + m)
        answer = minimise(whole, np.concatenate([q, np.zeros(aux), form.b]), curvature)
        return answer.x[:n] if answer.status == "solved" else None

    @cached_property
    def _conic(self) -> tuple[Any, tuple[Any, ...], Any]:
        """Rows, their cones, and the curvature."""
        form, H = self.form, self.H
        n, aux, m = form.n, form.A.shape[1] - form.n, form.A.shape[0]
        balance = sp.hstack([sp.csr_matrix(H), sp.csr_matrix((n, aux)), form.A[:, :n].T])
        free = sp.hstack([sp.csr_matrix((aux, n + aux)), form.A[:, n:].T])
        held = np.flatnonzero(
            ~self._equal
        )  # rows whose multipliers lie in a cone, its own dual; of equations y is free
        kept = [one for kind, one, _ in form.kinds() if kind != "Zero"]
        multipliers = sp.hstack([sp.csr_matrix((len(held), n + aux)), -sp.identity(m, format="csr")[held]])
        primal = sp.hstack([form.A, sp.csr_matrix((m, m))])
        rows = sp.vstack([primal, balance, free, multipliers], format="csc")
        cones = (*form.cones, cone("Zero", n), *([cone("Zero", aux)] if aux else []), *kept)
        curvature = sp.triu(sp.block_diag([H + H.T, sp.csr_matrix((aux + m, aux + m))]), format="coo")
        return rows, cones, curvature


def is_skew(H: FloatArray) -> bool:
    """Whether the symmetric part is rounding at most."""
    return float(np.abs(H + H.T).max(initial=0.0)) <= SKEW * float(np.abs(H).max(initial=0.0))


def domain_form(A: Backward, x: PyTree) -> ConicForm | None:
    """The domain for points like x: one block of rows for each member of each part; None where a part has no form."""
    forms: list[ConicForm] = []
    try:
        for part, leaf in _members(A, x):
            forms.append(part.conic(int(np.size(leaf))))
    except InputError:
        return None
    if any(kind in ("Exponential", "Power") for form in forms for kind, _, _ in form.kinds()):
        return None  # their duals are other cones
    n = sum(form.n for form in forms)
    of_x = sp.block_diag([form.A[:, : form.n] for form in forms], format="csr")
    of_aux = sp.block_diag([form.A[:, form.n :] for form in forms], format="csr")
    cones = tuple(one for form in forms for one in form.cones)
    rows = sp.hstack([of_x, of_aux], format="csr")
    return ConicForm(rows, np.concatenate([form.b for form in forms]), cones, n)


def _members(A: Backward, x: PyTree) -> Iterator[tuple[Set, Any]]:
    """Each single set with the entries that it is about, in the order of the entries of x."""
    for part, below in zip(
        jax.tree.leaves(A.parts, is_leaf=is_part),
        jax.tree.structure(A.parts, is_leaf=is_part).flatten_up_to(x),
        strict=True,
    ):
        if not isinstance(part, Set):
            raise InputError("a function has no conic form")
        for leaf in jax.tree.leaves(below):
            rows = np.atleast_1d(leaf)
            batch = rows.shape[: rows.ndim - part.rank]
            for index in np.ndindex(batch):
                own = part.batch_shape
                place = tuple(i if size > 1 else 0 for i, size in zip(index[len(batch) - len(own) :], own, strict=True))
                yield part.member(place), rows[index]
