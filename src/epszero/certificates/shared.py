"""How large the true multipliers of shared constraints can be, which the distance to the truth depends on.

With a Slater point x̃, h(x̃) ≤ −η < 0: testing the true equilibrium with x̃, by monotonicity,
    η Σλ* ≤ −λ*ᵀh(x̃) ≤ ⟨F(x*), x̃ − x*⟩ ≤ ⟨F(x̃), x̃ − x*⟩ ≤ max_y ⟨F(x̃), x̃ − y⟩,
the maximum over the strategies y and over every F that the data leave possible. x̃ is found by Clarabel, then
checked: any point that passes will do. Affine constraints, bounded strategies, additive noise only. (docs/theory.md)
"""

from typing import Any

import numpy as np

from epszero._double import to_numpy
from epszero._lazy import sp
from epszero._points import flat_of, length, shaped_like
from epszero._types import PyTree
from epszero.certificates.agents import reach
from epszero.certificates.case import Case, evaluated
from epszero.certificates.residuals import Residuals
from epszero.facts import Gram, Unknown
from epszero.oracles import CoupledMean, PrimalDual
from epszero.problems.feasible import product_form
from epszero.problems.shared import AffineConstraint
from epszero.sets.conic import ConicForm, minimise
from epszero.solve.equilibrium import fenchel_gaps

NEEDS = "with shared constraints the distance needs a bound on the true multipliers, and "


def multiplier_slack(case: Case, residuals: Residuals) -> float | Unknown:
    """‖e_λ‖(‖λ‖ + ‖λ*‖), or why it is not known."""
    point, coupling = case.point, case.problem.coupling
    assert isinstance(point, PrimalDual)
    n = len(flat_of(case.x))
    off = length(residuals.centre[n:])
    if not isinstance(coupling, AffineConstraint):
        return Unknown(NEEDS + "that is computed for affine ones only")
    if not isinstance(residuals.B, CoupledMean) or residuals.map is None or not residuals.additive:
        return Unknown(NEEDS + "that needs a certificate for every x at once, and additive noise")
    strict = _slater(case, coupling)
    if strict is None:
        return Unknown(NEEDS + "no strategies were found that meet them strictly")
    x, eta = strict
    F = to_numpy(evaluated(residuals.B.base, x))
    most = float(np.sum(np.maximum(fenchel_gaps(case.problem, x, F), 0.0)))
    C = residuals.map[:n]
    most += float(residuals.through(Gram.of(C))) * length(reach(case, x))
    if not np.isfinite(most):
        return Unknown(NEEDS + "the strategies are unbounded")
    return off * (length(point.multipliers) + most / eta)


def _slater(case: Case, coupling: AffineConstraint) -> tuple[PyTree, float] | None:
    """Strategies x̃ with h(x̃) ≤ −η, and η > 0: the largest that a conic solver finds, checked by evaluation."""
    import clarabel  # noqa: PLC0415  (only shared constraints need it)

    G: Any = sp.csr_matrix(coupling.matrix(case.x))
    b = np.broadcast_to(coupling.b, G.shape[0])
    form = product_form(case.problem.strategies, case.x)
    n, extra = form.n, form.A.shape[1] - form.n
    A = sp.vstack(
        [
            sp.hstack([form.A[:, :n], sp.csr_matrix((form.A.shape[0], 1)), form.A[:, n:]]),
            sp.hstack([G, np.ones((G.shape[0], 1)), sp.csr_matrix((G.shape[0], extra))]),
        ],
        format="csr",
    )
    cones = (*form.cones, clarabel.NonnegativeConeT(G.shape[0]))
    whole = ConicForm(A, np.concatenate([form.b, b]), cones, n + 1)
    objective: Any = np.concatenate([np.zeros(n), [-1.0]])
    outcome = minimise(whole, objective)
    if outcome.status != "solved":
        return None
    x = case.problem.strategies.into_domain(shaped_like(case.x, outcome.x[:n]))
    eta = float(-np.max(np.asarray(coupling.value(x))))
    return (x, eta) if eta > 0 else None
