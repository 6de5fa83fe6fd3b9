"""μ and κ where O is affine in x and its Jacobian is affine in ξ: at the corners of the support.

λ_min of the symmetric part is concave in the Jacobian and its norm is convex, so that over a box of ξ both have their
extremes at corners. Cost: one eigenvalue problem a corner, 2^k of them for k entries of ξ that move the Jacobian.
"""

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._trace.programs import forwards
from epszero._types import PyTree
from epszero.facts.affine import ConstantJacobian, jacobians
from epszero.facts.provenance import Constant, Provenance
from epszero.facts.structure import AFFINE
from epszero.oracles import Oracle

if TYPE_CHECKING:
    from epszero.facts.facts import Facts

CORNERS = 12  # entries of ξ that move the Jacobian, up to which every corner of their box is tried
WRITTEN = 4_000_000  # entries of the Jacobian's derivatives in ξ
WORK = 2e9  # multiplications for the eigenvalues at all corners


def over_corners(facts: "Facts") -> tuple[Constant, Constant] | None:
    """μ and κ over the support; None where they are not found so."""
    structure, support = facts.structure, facts.support
    if not structure.affine or structure.constant_jacobian or structure.in_xi != AFFINE or structure.declared:
        return None
    if structure.entries**2 * len(support.lower) > WRITTEN:
        return None
    moves = np.flatnonzero(_moves(facts))
    lower, upper = support.lower[moves], support.upper[moves]
    bounded = np.isfinite(lower).all() and np.isfinite(upper).all()
    if not bounded or len(moves) > CORNERS or 2 ** len(moves) * structure.entries**3 > WORK:
        return None
    bits = np.arange(2 ** len(moves))[:, None] >> np.arange(len(moves)) & 1
    corners = np.repeat(np.asarray(ravel_pytree(facts.row)[0])[None], len(bits), axis=0)
    corners[:, moves] = np.where(bits, upper, lower)
    samples = jax.vmap(ravel_pytree(facts.row)[1])(jnp.asarray(corners))
    each = [ConstantJacobian(J) for J in np.asarray(jacobians(facts.oracle, facts.x, samples))]
    if not all(np.isfinite(one.jacobian).all() for one in each):
        return None
    exact = Provenance.EXACT if facts.support_is_box else Provenance.VERIFIED
    around = "" if facts.support_is_box else "a box around "
    said = f"eigenvalues at the {len(corners)} corners of {around}the support"
    least, largest = min(one.mu for one in each), max(one.kappa for one in each)
    return Constant(least, exact, said), Constant(largest, exact, said)


def _moves(facts: "Facts") -> Any:
    """Which entries of ξ move the Jacobian, which is affine in them."""
    flat, start = np.asarray(ravel_pytree(facts.row)[0]), np.zeros(facts.structure.entries)
    slopes = _second(facts.oracle, facts.x, facts.row, start, flat)
    return np.abs(np.asarray(slopes)).max(axis=(0, 1)) > 0


@jax.jit
def _second(oracle: Oracle, x: PyTree, row: PyTree, start: Any, flat: Any) -> Any:
    """∂²O/∂ξ∂x."""
    point, sample = ravel_pytree(x)[1], ravel_pytree(row)[1]

    def of(v: Any, xi: Any) -> Any:
        return ravel_pytree(oracle(point(v), sample(xi)))[0]

    return jax.jacfwd(lambda xi: jax.jacfwd(forwards(of))(start, xi))(flat)
