"""Whether f(·, ξ) is proved to be convex for every ξ of a box, where its kinks were read (_trace/kinks.py).

f = g + ⟨w(ξ), t⟩ with t_k maxima of affine functions is convex if w ≥ 0, if the slopes of maxima in other maxima are
≥ 0 (signs changed for minima), and if g is affine, or quadratic with a positive semidefinite Hessian that does not
depend on ξ. Signs are proved by interval arithmetic over the box; the Hessian is asked for its eigenvalues, which are
known to rounding. `where`, of which the samples say whether it is a maximum, is not proved here. Sufficient, not
necessary. Cost: one evaluation on intervals.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat, shaped
from epszero._trace.intervals import Enclosed, Interval, NoEnclosure
from epszero._trace.kinks import QUADRATIC, SMOOTHLY, Kinks
from epszero._types import PyTree

ROUNDING = 64 * float(np.finfo(np.float64).eps)


def proved_convex(kinks: Kinks, x: PyTree, row: PyTree, box: PyTree = None) -> bool:
    """For all ξ in `box`: intervals nested like `row`, which shows the shape of a ξ; None: nothing is uncertain."""
    if kinks.degree == SMOOTHLY or any(piece.sense == 0 for piece in kinks.pieces) or not kinks.one_bend:
        return False
    sizes = [int(np.prod(piece.shape)) for piece in kinks.pieces]
    each = np.repeat([piece.sense for piece in kinks.pieces], sizes)
    per_row = np.concatenate([np.tile(np.full(size, piece.sense), piece.branches)
                              for piece, size in zip(kinks.pieces, sizes, strict=True)])  # fmt: skip
    point = jax.tree.map(lambda leaf: np.zeros(np.shape(leaf)), x)

    def parts(v: PyTree, t: Any, xi: PyTree) -> Any:
        split = jnp.split(t, np.cumsum(sizes)[:-1])
        given = [one.reshape(piece.shape) for one, piece in zip(split, kinks.pieces, strict=True)]
        return kinks.parts(v, given, xi)

    def signs(xi: PyTree) -> Any:
        none = jnp.zeros(len(each))
        weights = jax.grad(lambda t: parts(point, t, xi).value)(none) * each
        if not kinks.nested:
            return weights
        between = jax.jacfwd(lambda t: flat(parts(point, t, xi).branches))(none)
        return weights, between * per_row[:, None] * each

    try:
        found = jax.tree.leaves(signs(None)) if row is None else _lowest(signs, row, box)
    except NoEnclosure:
        return False
    if any(np.any(~(np.asarray(low) >= 0)) for low in found):
        return False
    return kinks.degree < QUADRATIC or _curves_up(parts, point, row, len(each))


def _lowest(signs: Any, row: PyTree, box: PyTree) -> list[Any]:
    """The lower ends over the box."""
    bounds = jax.tree.leaves(Enclosed(signs, row)(box), is_leaf=lambda part: isinstance(part, Interval))
    return [one.lower for one in bounds]


def _curves_up(parts: Any, point: PyTree, row: PyTree, kinks: int) -> bool:
    """The Hessian has no negative eigenvalue, to rounding."""
    example = None if row is None else jax.tree.map(lambda leaf: np.ones(np.shape(leaf)), row)
    slope = jax.grad(lambda v: parts(shaped(point, v), jnp.zeros(kinks), example).value)
    hessian = np.asarray(jax.jacfwd(slope)(jnp.asarray(flat(point))))
    values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    return bool(values[0] >= -ROUNDING * len(values) * np.abs(values).max())
