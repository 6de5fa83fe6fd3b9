"""On whose word shared constraints h(x) ≤ 0 are convex: what savings of agents, and the distance, lean on.

Linear by a matrix, or by following the operations of a function (degrees). Convex where the Hessian of every row is
constant and has no negative eigenvalue, or where its least eigenvalue is enclosed from below over the domain, and the
values are what it is the derivative of (costs.py says why that is a question). Else it is the user's word, given by
passing the function as a convex one; and where its values may jump, only `ez.declare(convex=True)` is.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.degrees import degrees
from epszero._trace.derivatives import written_by_hand
from epszero._types import PyTree
from epszero.facts.costs import FAILS, jumps_within
from epszero.facts.domains import Bounds
from epszero.facts.enclosed import LARGEST, Operator
from epszero.facts.provenance import Known, Provenance, Unknown, worst
from epszero.oracles import Coupling
from epszero.problems.shared import AffineConstraint, Several

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

ROWS = 20  # of a constraint, up to which each is enclosed
ROUNDING = 1e-9  # relative to the largest eigenvalue: one this little below 0 is rounding
ENCLOSED = 64 * float(np.finfo(float).eps)  # the same for an enclosure, times n
FOLLOWED = "by following the operations"
NOTHING = Bounds(np.zeros(0), np.zeros(0))


def convex_constraints(facts: "Facts") -> Known | Unknown:
    """Of all shared constraints together."""
    coupling = facts.problem.coupling
    if coupling is None:
        return Known(Provenance.EXACT, "there are none")
    members = coupling.members if isinstance(coupling, Several) else (coupling,)
    found = [_member(facts, one) for one in members]
    unknown = next((one for one in found if isinstance(one, Unknown)), None)
    if unknown is not None:
        return unknown
    known = [one for one in found if isinstance(one, Known)]
    least = worst(one.provenance for one in known)
    return next(one for one in known if one.provenance is least)


def _member(facts: "Facts", coupling: Coupling) -> Known | Unknown:
    if isinstance(coupling, AffineConstraint) and coupling.linear is None:
        return Known(Provenance.EXACT, "linear, a matrix")
    if _degree(coupling.value, facts.x) <= 1:
        return Known(Provenance.EXACT, f"linear, {FOLLOWED}")
    if coupling.affine:
        return Known(Provenance.DECLARED, "given as linear, and compared at some points")
    return _curved(facts, coupling)


def _curved(facts: "Facts", coupling: Coupling) -> Known | Unknown:
    """Of a constraint that is not linear."""
    jumps, by_hand = _values(facts, coupling)
    if not (jumps or by_hand):
        proved = _by_hessians(facts, coupling)
        if proved is not None:
            return proved
    if facts.problem.declared.convex:
        return Known(Provenance.DECLARED, "ez.declare(convex=True)")
    if jumps:
        return Unknown(
            f"that the shared constraints are smooth could not be proved ({jumps}). Where they are convex all the "
            "same, ez.declare(convex=True)"
        )
    return Known(Provenance.DECLARED, by_hand or "what the problem takes for granted")


def _degree(function: Callable[[PyTree], Any], x: PyTree) -> int:
    return degrees(lambda x, _: function(x), x, ()).u


def _values(facts: "Facts", coupling: Coupling) -> tuple[str, str]:
    """Why they are not known to be continuous, with their derivative, and what that leans on besides the values."""

    def value(x: PyTree, _: PyTree) -> Any:
        return coupling.value(x)

    def slope(x: PyTree, _: PyTree) -> Any:
        return jax.jacrev(coupling.value)(x)

    jumps = next(filter(None, (jumps_within(one, facts.x, lambda: facts.domain) for one in (value, slope))), "")
    found = written_by_hand(value, facts.x, ())
    return jumps and f"shared: {jumps}", found and f"shared: {found}"


def _by_hessians(facts: "Facts", coupling: Coupling) -> Known | Unknown | None:
    """Where Hessians are constant, or enclosed; None where neither says anything."""
    flat, point = ravel_pytree(jax.tree.map(jnp.asarray, facts.x))

    def slopes(v: Any) -> Any:
        return jax.jacrev(lambda u: coupling.value(point(u)))(v)

    rows, n = coupling.rows(facts.x), len(flat)
    if rows * n * n > LARGEST**2 * ROWS:
        return None
    if _degree(slopes, np.asarray(flat)) <= 1:
        hessians = np.asarray(_hessians(coupling.traced(facts.x), facts.x))
        spectra = np.linalg.eigvalsh((hessians + hessians.swapaxes(1, 2)) / 2)
        if (spectra[:, 0] >= -ROUNDING * np.abs(spectra).max(axis=1)).all():
            return Known(Provenance.EXACT, "constant Hessians")
        return Unknown(f"a shared constraint is not convex: its Hessian has the eigenvalue {spectra.min():.3g}")
    if rows > ROWS or n > LARGEST:
        return None
    return Known(Provenance.VERIFIED, "Hessians enclosed") if _enclosed(facts, slopes, rows) else None


@jax.jit
def _hessians(coupling: Coupling, x: PyTree) -> Any:
    flat, point = ravel_pytree(x)
    return jax.jacfwd(jax.jacrev(lambda u: coupling.value(point(u))))(flat)


def _enclosed(facts: "Facts", slopes: Callable[[Any], Any], rows: int) -> bool:
    for row in range(rows):

        def slope(x: PyTree, _: PyTree, row: int = row) -> Any:
            return slopes(ravel_pytree(x)[0])[row]

        operator = Operator(slope, facts.problem.strategies, facts.x, np.zeros(0), facts.domain, NOTHING)
        try:
            below, size = operator.least_slope(facts.effort / 2, enough=0.0), operator.largest_slope(facts.effort / 4)
        except FAILS:
            return False
        if not below.at_most <= ENCLOSED * len(facts.domain.lower) * size.at_most < np.inf:
            return False
    return True
