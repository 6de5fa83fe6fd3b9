"""What is likely, by the normal approximation on the piece of x̂: always heuristic, never a guarantee.

On the piece of x̂ (certificates/piece.py) x̂ − x* = T(φ̄ − m), up to the run's own residual, and √s(φ̄ − m) tends to
N(0, Σ) as s → ∞. So ‖x̂ − x*‖ is about the norm of N(0, TΣ̂Tᵀ/s), and ‖e‖ that of N(0, CΣ̂Cᵀ/s): their (1 − δ)-quantiles,
by draws with one seed. For any other oracle the values O(x̂, ξ_i) take the place of φ(ξ_i), C = I, and
    x̂ − x* ≈ −M(B̂ − B)(x*),  M = Z(Zᵀ(Ĵ + Q)Z)⁻¹Zᵀ, Ĵ the Jacobian of B̂ at x̂, Z a basis of the face of x̂ (the sandwich);
where a set that is no polyhedron does not press, z = 0, the face is the whole space.
Wrong, and mostly too small, for rare outcomes, near a kink of x(·), for heavy tails.
Assumes O continuous in x, faces, independent samples, and that s is large enough for all that. No support is needed.
The samples are those that x̂ was found with: others, kept aside, say nothing of how it varies.
Source: the delta method; Lu & Budhiraja (2013) for stochastic variational inequalities; Huber (1967) for the sandwich.
Cost: one eigenvalue decomposition of d × d, and DRAWS sums; the sandwich n derivatives of B̂ along a line besides.
"""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import double, to_numpy
from epszero._points import flat_of, length
from epszero._trace.programs import forwards
from epszero._types import PyTree
from epszero.certificates._base import Finding, Kind, Leaning, Refused, cannot, check_independent
from epszero.certificates._near import Near
from epszero.certificates.case import Case
from epszero.certificates.evidence import values_at
from epszero.certificates.likely import Normal
from epszero.certificates.piece import linearised, may_have_pieces, piece_of
from epszero.certificates.residuals import Residuals
from epszero.facts import Provenance, Unknown
from epszero.oracles import Average
from epszero.solve import Solution

INSTEAD = "ez.certificates.Bootstrap() needs none of it"
MOST = 1000  # entries of x, up to which the Jacobian is written down
IN_THE_LIMIT = Leaning(
    "so many samples that the mean is normal", Provenance.ESTIMATED, "right as s grows, no guarantee"
)
ON_THE_PIECE = Leaning("x* on the piece of x", Provenance.ESTIMATED, "not certified here")


@dataclass(frozen=True, eq=False)
class Asymptotic(Kind):
    """How far, probably: the normal approximation on the piece of x."""

    guess: ClassVar[bool] = True

    @property
    def title(self) -> str:
        return "normal approximation on the piece of x"

    def examine(self, case: Case, delta: float) -> Finding:
        if len(case.samples) != 1 or case.own_data:
            cannot("the normal approximation needs one data set that all agents see")
        independent = check_independent(case.samples)
        if len(case.samples[0]) < 2:
            cannot("one sample says nothing of how samples vary")
        found = approximation(case)
        residual = found.residual(delta)
        near = Near(found.distance(delta), math.inf, "the normal approximation on the piece of x", ())
        terms = {"empirical": length(case.empirical), "deviation": residual, "samples": float(len(found.features))}
        by = f"{self.title}, {len(found.features)} samples"
        leans_on = (IN_THE_LIMIT, ON_THE_PIECE, independent)
        return Finding(Residuals.ball(case.empirical, residual), by, terms, leans_on, near=near, guessed=found)


def beside(solution: Solution) -> Normal | None:
    """What is likely of a solution that something sure is said of; None where nothing is."""
    with double():
        case = Case.of(solution)
        try:
            check_independent(case.samples)
            return approximation(case)
        except Refused:
            return None


def approximation(case: Case) -> Normal:
    """Through features where the piece is affine in them, else the sandwich."""
    collapsed = case.collapsed(case.samples)
    if collapsed is None or not may_have_pieces(case):
        return _sandwich(case)
    C, _ = case.noise_map(collapsed)
    piece = Unknown("C is too large to be written down") if C is None else piece_of(case, C)
    if isinstance(piece, Unknown):
        cannot(f"x lies on no piece: {piece.reason}; {INSTEAD}")
    return Normal(flat_of(case.x), piece.start, collapsed.features[0], piece.T, C)


def _sandwich(case: Case) -> Normal:
    n = len(flat_of(case.x))
    if n > MOST:
        cannot(f"x has {n} entries, too many for the Jacobian (at most {MOST}); {INSTEAD}")
    if case.facts.jumps_in_x:
        cannot(f"the oracle is not known to be continuous in x: {case.facts.jumps_in_x}; {INSTEAD}")
    J = np.asarray(to_numpy(_jacobian(case.average, case.point)), dtype=np.float64)
    local = linearised(case, J[:n, :n]) if np.isfinite(J).all() else Unknown("the Jacobian at x is not finite")
    if isinstance(local, Unknown):
        cannot(f"the normal approximation needs x on a face: {local.reason}; {INSTEAD}")
    return Normal(flat_of(case.x), local.start, values_at(case, case.samples[0])[:, :n], local.M, None)


@jax.jit
def _jacobian(B: Average, point: PyTree) -> Any:
    """Of B̂ at x̂, column by column."""
    flat, unravel = ravel_pytree(point)

    def at(v: Any) -> Any:
        return ravel_pytree(B(unravel(v)))[0]

    along = forwards(lambda direction: jax.jvp(forwards(at), (flat,), (direction,))[1])
    return jax.lax.map(along, np.eye(len(flat)), batch_size=16).T
