"""p = J_{γB̂}(ζ): the zero of Φ(p) = p + γB̂(p) − ζ, for B̂ monotone, with a measured error.

Φ is strongly monotone with modulus 1 + γμ ≥ 1, so ‖p − J_{γB̂}(ζ)‖ ≤ ‖Φ(p)‖/(1 + γμ) for any p whatever: what is
measured is what is claimed. An LU factorisation of I + γ∇B̂ is kept from one call to the next. Two steps with it, the
second of which mends the rounding of the first, are exact where B̂ is affine; where they do not reach the accuracy
asked for, Newton steps with a new factorisation follow, shortened until ‖Φ‖ shrinks. (−Φ′⁻¹Φ is a direction of
descent of ‖Φ‖, as Φ′ ⪰ I is regular.) Cost: two B̂ and two pairs of triangular solves, O(n²); a Newton step O(n³).
Source: Ortega & Rheinboldt (1970), chord and damped Newton methods, 7.1 and 8.2.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from epszero._checks import refuse
from epszero._points import entries, norm
from epszero._trace.programs import forwards
from epszero._types import Array, PyTree
from epszero.oracles import Average

MOST = 2000  # entries of x whose Jacobian is written out
ROUNDS = 50  # Newton steps
HALVINGS = 30  # of one Newton step


class Factors(NamedTuple):
    """LU of I + γ∇B̂ at some point."""

    lu: Any
    pivots: Any


class Inner(NamedTuple):
    """p, with ‖Φ(p)‖ and the factorisation that led there."""

    p: PyTree
    off: Array
    factors: Factors


def check_size(x: PyTree) -> None:
    """Refuse a point whose Jacobian is too large to be factorised."""
    if (n := entries(x)) > MOST:
        refuse(
            "method",
            f"solves with the Jacobian of B at every step, which is for up to {MOST} entries, but x has {n}",
            "Use ez.ForwardBackward()",
        )


def factorised(B: Average, gamma: Any, x: PyTree) -> Factors:
    """I + γ∇B̂(x), factorised."""
    vector, nested = ravel_pytree(x)
    H = jax.jacfwd(forwards(lambda v: ravel_pytree(B(nested(v)))[0]))(vector)
    return Factors(*jax.scipy.linalg.lu_factor(jnp.eye(vector.size) + gamma * H))


def resolvent_of(B: Average, gamma: Any, zeta: PyTree, start: Inner, accuracy: Any) -> Inner:
    """J_{γB̂}(ζ) from a point near it, to ‖Φ‖ ≤ accuracy where that can be reached."""
    target, nested = _flat(zeta)

    def off(p: Array) -> Any:
        return p + gamma * ravel_pytree(B(nested(p)))[0] - target

    def chord(p: Any, rest: Any) -> tuple[Any, Any]:
        moved = p - jax.scipy.linalg.lu_solve(start.factors, rest)
        left = off(moved)
        better = norm(left) < norm(rest)  # nothing is worse than NaN
        return jnp.where(better, moved, p), jnp.where(better, left, rest)

    def short_of(state: tuple[Any, Any, Factors, Any]) -> Array:
        return (norm(state[1]) > accuracy) & (state[3] < ROUNDS)

    def newton(state: tuple[Any, Any, Factors, Any]) -> tuple[Any, Any, Factors, Any]:
        p, rest, _, rounds = state
        factors = factorised(B, gamma, nested(p))
        d = jax.scipy.linalg.lu_solve(factors, rest)

        def too_far(t: Array) -> Array:
            return ~(norm(off(p - t * d)) <= (1 - 0.25 * t) * norm(rest)) & (t > 0.5**HALVINGS)

        t = jax.lax.while_loop(too_far, lambda t: 0.5 * t, jnp.asarray(1.0))
        moved = p - t * d
        left = off(moved)
        better = norm(left) < norm(rest)
        rounds = jnp.where(better, rounds + 1, ROUNDS)  # what does not help now will not help later
        return jnp.where(better, moved, p), jnp.where(better, left, rest), factors, rounds

    p = _flat(start.p)[0]
    p, rest = chord(*chord(p, off(p)))
    p, rest, factors, _ = jax.lax.while_loop(short_of, newton, (p, rest, start.factors, jnp.asarray(0)))
    return Inner(nested(p), norm(rest), factors)


def _flat(tree: PyTree) -> tuple[Any, Any]:
    return ravel_pytree(tree)
