"""From kinks that were read (_trace/kinks.py) and a data set to numbers (solve/pieces.py), if f̂ is convex.

Branches are affine: their values and slopes at x = 0, for each sample, are all there is to know of them. Weights
and slopes between kinks must have the signs of a convex function at these samples; the two cases p, q of `where(u > 0,
p, q)` must differ by c·u: c ≥ 0 makes it a maximum, c ≤ 0 a minimum, and anything else is a jump. The smooth part ĝ is
given by its slope and Hessian at 0 where it is at most quadratic (no negative eigenvalue, to rounding), else by
functions of x.
Cost: one compiled evaluation of all branches and their slopes, s·R·n numbers.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat, shaped
from epszero._trace.kinks import AFFINE, QUADRATIC, Kinks, Piece
from epszero._types import FloatArray, PyTree
from epszero.solve.pieces import Pieces, Smooth

SAME = 64 * float(np.finfo(np.float64).eps)  # of the numbers added up: two affine functions are the same
MOST = 20_000_000  # numbers in the slopes of all branches
CHUNK = 4_000_000  # numbers in the Hessians that are summed at a time


class NotConvex(Exception):
    """f̂ is not seen to be convex, or its numbers are not to be had: the message says which."""


class _Affine(NamedTuple):
    """Affine functions of x and the kinks, for each sample along the first axis."""

    value: Any  # s × rows
    on_x: Any  # s × rows × n
    on_kinks: Any  # s × rows × m; None where kinks are not nested

    def rows(self, which: Any) -> FloatArray:
        """Some of them, each with its slopes and value as one vector."""
        parts = [self.on_x[:, which], self.value[:, which][..., None]]
        return np.concatenate(parts if self.on_kinks is None else [*parts, self.on_kinks[:, which]], axis=-1)

    def finite(self) -> bool:
        return all(np.isfinite(part).all() for part in self if part is not None)


class Tables:
    """Compiled once for points like x: what is to be known of a data set."""

    def __init__(self, kinks: Kinks, x: PyTree) -> None:
        self.kinks = kinks
        self.sizes = [int(np.prod(piece.shape)) for piece in kinks.pieces]
        n, m = sum(np.size(leaf) for leaf in jax.tree.leaves(x)), sum(self.sizes)
        ends = np.cumsum(self.sizes)

        def parts(v: Any, t: Any, xi: PyTree) -> Any:
            each = jnp.split(t, ends[:-1]) if len(ends) else []
            given = [one.reshape(piece.shape) for one, piece in zip(each, kinks.pieces, strict=True)]
            return kinks.parts(shaped(x, v), given, xi)

        def rows(v: Any, t: Any, xi: PyTree) -> Any:
            found = parts(v, t, xi)
            branches = [one.reshape(len(one), -1).T.reshape(-1) for one in found.branches]
            margins = [one for one in found.margins if one is not None]
            return flat([jnp.zeros(0), *branches]), flat([jnp.zeros(0), *margins])

        def table(xi: PyTree) -> Any:
            v, t = jnp.zeros(n), jnp.zeros(m)
            slope = jax.jacfwd if n <= len(self.owner) else jax.jacrev
            between = jax.jacfwd(rows, 1)(v, t, xi) if kinks.nested else (None, None)
            weights = jax.grad(lambda t: parts(v, t, xi).value)(t)
            return rows(v, t, xi), slope(rows)(v, t, xi), between, weights

        def smooth(v: Any, data: PyTree, weights: Any) -> Any:
            return jax.vmap(lambda xi: parts(v, jnp.zeros(m), xi).value, axis_size=len(weights))(data) @ weights

        self._table = jax.jit(lambda data, s: jax.vmap(table, axis_size=s)(data), static_argnums=1)
        self._slope = jax.jit(jax.value_and_grad(smooth))
        self._hessian = jax.jit(jax.hessian(smooth))

    @property
    def branches(self) -> Any:
        """How many branches each kink has."""
        return np.repeat(np.array([piece.branches for piece in self.kinks.pieces], int), self.sizes)

    @property
    def owner(self) -> Any:
        """The kink that each row belongs to."""
        return np.repeat(np.arange(sum(self.sizes)), self.branches)

    def pieces(self, data: PyTree, n: int) -> Pieces:
        """f̂ over a data set; raises `NotConvex`."""
        m, owner, s = sum(self.sizes), self.owner, _samples(data)
        if s * len(owner) * (n + m * self.kinks.nested) > MOST:
            raise NotConvex(f"the slopes of all branches are more than {MOST} numbers")
        (value, margin), (slope, margin_slope), (between, margin_between), weights = jax.tree.map(
            np.array, self._table(data, s)
        )
        rows, margins = _Affine(value, slope, between), _Affine(margin, margin_slope, margin_between)
        if not (rows.finite() and margins.finite() and np.isfinite(weights).all()):
            raise NotConvex("a weight, or what it chooses from, is not finite")
        starts, last = np.cumsum(self.branches) - self.branches, np.cumsum(self.sizes)
        layers = tuple(zip((last - self.sizes).tolist(), last.tolist(), strict=True))
        sense = self._senses(rows, margins, starts, layers)
        signs = sense[:, owner]
        inside = None if between is None or not between.any() else between * signs[..., None] * sense[:, None, :]
        for piece, (first, end) in zip(self.kinks.pieces, layers, strict=True):
            least = (weights * sense)[:, first:end].min(initial=0.0)
            if least < 0 or (inside is not None and inside[:, :, first:end].min(initial=0.0) < 0):
                raise NotConvex(f"{piece} enters with the sign that makes it concave")
        omega = weights * sense / s
        return Pieces(
            self._smooth(data, n), omega, slope * signs[..., None], inside, value * signs, starts, owner, layers
        )

    def _senses(self, rows: _Affine, margins: _Affine, starts: Any, layers: Any) -> FloatArray:
        """1 for a maximum, −1 for a minimum: of every sample and kink."""
        sense, asked = np.ones((len(rows.value), len(starts))), 0
        for piece, (first, end) in zip(self.kinks.pieces, layers, strict=True):
            if piece.sense:
                sense[:, first:end] = piece.sense
                continue
            true, margin = starts[first:end], margins.rows(slice(asked, asked + end - first))
            sense[:, first:end] = _agreement(piece, rows.rows(true), rows.rows(true + 1), margin)
            asked += end - first
        return sense

    def _smooth(self, data: PyTree, n: int) -> Smooth:
        """ĝ."""
        zero, s, degree = np.zeros(n), _samples(data), self.kinks.degree
        weights = np.full(s, 1.0 / s)
        if degree <= QUADRATIC:
            slope = np.asarray(self._slope(zero, data, weights)[1])
            if not np.isfinite(slope).all():
                raise NotConvex("the slope of the smooth part is not finite")
            hessian = None if degree == AFFINE else self._bend(data, zero)
            if hessian is not None:
                refuse_bent(hessian)
            return Smooth(slope, hessian, None)

        def model(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            value, slope = self._slope(x, data, weights)
            return float(value), np.asarray(slope), self._bend(data, x)

        return Smooth(zero, None, model)

    def _bend(self, data: PyTree, x: FloatArray) -> FloatArray:
        """The mean Hessian, in chunks of bounded memory; that of one sample where it does not depend on it."""
        s = 1 if self.kinks.one_bend else _samples(data)
        step = min(s, max(1, CHUNK // len(x) ** 2))
        total = np.zeros((len(x), len(x)))
        for start in range(0, s, step):
            rows = np.minimum(np.arange(start, start + step), s - 1)  # the last again, with weight 0: one program
            weights = np.where(np.arange(start, start + step) < s, 1.0 / s, 0.0)
            total += np.asarray(self._hessian(x, jax.tree.map(lambda leaf, rows=rows: leaf[rows], data), weights))
        return total


def _samples(data: PyTree) -> int:
    return 1 if data is None else len(jax.tree.leaves(data)[0])


def _agreement(piece: Piece, true: FloatArray, false: FloatArray, margin: FloatArray) -> FloatArray:
    """1 where `where(margin > 0, true, false)` is their maximum, −1 where their minimum: true − false = c·margin."""
    apart = true - false
    place = np.argmax(np.abs(margin), axis=-1)[..., None]
    by = np.take_along_axis(margin, place, axis=-1)
    c = np.where(by != 0, np.take_along_axis(apart, place, axis=-1) / np.where(by != 0, by, 1.0), 0.0)
    if np.any(np.abs(apart - c * margin) > SAME * (np.abs(true) + np.abs(false) + np.abs(c * margin))):
        raise NotConvex(f"the two cases of {piece} do not meet where the condition changes")
    return np.where(c[..., 0] < 0, -1.0, 1.0)


def refuse_bent(hessian: FloatArray) -> None:
    """`NotConvex` where it has a negative eigenvalue, beyond rounding."""
    if not np.isfinite(hessian).all():
        raise NotConvex("the Hessian of the smooth part is not finite")
    values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    if values[0] < -SAME * len(values) * np.abs(values).max():
        raise NotConvex(f"the smooth part is not convex (eigenvalue {values[0]:.3g} of the Hessian)")
