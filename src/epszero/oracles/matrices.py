"""Affine games as matrices: B̂(x) = Hx + h + Cφ̄, for points of up to `DENSE` entries.

That F is affine in x and in the features, apart from each other, is proved by following its operations
(_trace/degrees.py); H and C are its derivatives, h its value where both are 0. An iteration is then one product, and
the costs of hundreds of agents enter no compiled loop. Cost: n + f forward derivatives, once per game.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._points import entries, flat, flat_of, shaped_like
from epszero._trace.degrees import degrees
from epszero._trace.programs import forwards
from epszero._types import FloatArray, PyTree
from epszero.oracles._base import Average
from epszero.oracles.alike import Of, jacobian
from epszero.oracles.packed import Packing

DENSE = 1500  # entries of a point


class Matrices(NamedTuple):
    """F(x, f) = Hx + h + Cf, all flat."""

    H: FloatArray
    h: FloatArray
    C: FloatArray | None  # None where there are no features

    def reordered(self, order: Any) -> "Matrices":
        """The same for points whose entries come in another order."""
        H, C = self.H[np.ix_(order, order)], None if self.C is None else self.C[order]
        return Matrices(H, self.h[order], C)


class AffineMean(Average):
    """Hx + h + Cφ̄."""

    H: Any
    h: Any
    C: Any
    mean: PyTree  # φ̄

    @classmethod
    def of(cls, matrices: Matrices, mean: PyTree = None) -> "AffineMean":
        """Without copies: averages over several data sets hold the same matrices."""
        return cls.holding(H=matrices.H, h=matrices.h, C=matrices.C, mean=mean)

    @property
    def matrices(self) -> Matrices:
        """All but φ̄."""
        return Matrices(self.H, self.h, self.C)

    def __call__(self, x: PyTree) -> PyTree:
        v, unravel = ravel_pytree(x)
        value = jnp.asarray(self.H) @ v + self.h
        return unravel(value if self.C is None else value + jnp.asarray(self.C) @ flat(self.mean))


def matrices_of(function: Any, x: PyTree, features: PyTree) -> Matrices | None:
    """Of F(x, f), or of F(x) where `features` is None; None where it is not proved to be so, or too large."""
    if entries(x) > DENSE or entries(features) > DENSE:
        return None
    given = () if features is None else (features,)
    degree = degrees(lambda x, given: function(x, *given), x, given)
    if degree.u > 1 or degree.v > 1 or degree.mixed:
        return None
    slopes = jacobian(function, x, *given) if isinstance(function, Of) else None
    slopes = np.asarray(_slopes(function, x, given)) if slopes is None else slopes
    packing = Packing.of(x)
    packed = packing.pack(jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), x)) if isinstance(function, Of) else x
    rest = [None if part is None else np.asarray(part) for part in _rest(function, packed, given)]
    if packed is not x:  # back to the order of the entries of x
        order = np.argsort(flat_of(packing.pack(shaped_like(x, np.arange(len(slopes), dtype=float)))).astype(int))
        rest = [None if part is None else part[order] for part in rest]
    h, C = rest
    if h is None or not all(np.isfinite(part).all() for part in (slopes, h, C) if part is not None):
        return None
    return Matrices(slopes, h, C)


@jax.jit
def _slopes(function: Any, x: PyTree, given: tuple[PyTree, ...]) -> Any:
    start, unravel = ravel_pytree(x)
    return jax.jacfwd(forwards(lambda v: ravel_pytree(function(unravel(v), *given))[0]))(start)


@jax.jit
def _rest(function: Any, x: PyTree, given: tuple[PyTree, ...]) -> tuple[Any, Any]:
    """h and C."""
    zero = jax.tree.map(jnp.zeros_like, x)
    origin, nested = ravel_pytree(jax.tree.map(jnp.zeros_like, given))

    def at(f: Any) -> Any:
        return ravel_pytree(function(zero, *nested(f)))[0]

    return at(origin), jax.jacfwd(forwards(at))(origin) if len(origin) else None
