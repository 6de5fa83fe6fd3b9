"""f̂ in numbers, where its kinks were read (_trace/kinks.py): f̂(x) = ĝ(x) + Σ_ik ω_ik τ_ik, τ_ik = max_b (B x + C τ + d)_ikb.

i counts samples, k the kinks of one sample, b the branches of a kink, which are the rows of B (n columns), C (≥ 0, only
where kinks are nested) and d. A minimum is a maximum with both signs changed, so ω ≥ 0 and C ≥ 0 say that f̂ is convex:
they are numbers here, asked for the samples at hand and nothing else. With shares p ≥ 0, Σ_b p_ikb = 1, on the branches
that attain the maximum, W_ik = ω_ik + Σ W p C counts how much kink ik weighs in all, and
    g = ∇ĝ(x) + Σ_ikb W_ik p_ikb B_ikb ∈ ∂f̂(x)
(the chain rule for maxima and non-negative sums, which is exact for finite convex functions). Branches within TIE of
the largest, relative to the numbers they are made of, count as attaining it; what that costs is
    η = Σ W_ik (τ_ik − Σ_b p_ikb a_ikb) ≥ 0,  f̂(v) ≥ f̂(x) + ⟨g, v − x⟩ − η for all v.
Cost: one evaluation of the branches and their slopes per sample; s·R·n numbers are kept.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._points import flat, shaped
from epszero._trace.kinks import AFFINE, QUADRATIC, Kinks
from epszero._types import FloatArray, PyTree

TIE = 1e-12  # of the numbers that a branch is made of
SAME = 64 * float(np.finfo(np.float64).eps)  # of the numbers added up: two affine functions are the same
MOST = 30_000_000  # numbers in the slopes of all branches
CHUNK = 4_000_000  # numbers in the Hessians that are summed at a time


class NotConvex(Exception):
    """The kinks cannot be those of a convex function at these samples, or the numbers are not to be had."""


class At(NamedTuple):
    """All branches at one x."""

    tau: FloatArray  # s × m
    rows: FloatArray  # a_ikb, s × R
    tied: Any  # s × R, whether a branch attains its maximum


class Subgradient(NamedTuple):
    """g with f̂(v) ≥ f̂(x) + ⟨g, v − x⟩ − η."""

    g: FloatArray
    eta: float


class Smooth(NamedTuple):
    """ĝ: slope and Hessian at x = 0 where it is at most quadratic, or functions of x."""

    slope: FloatArray
    hessian: FloatArray | None  # None: affine
    model: Callable[[FloatArray], tuple[float, FloatArray, FloatArray]] | None  # value, slope, Hessian at x

    def gradient(self, x: FloatArray) -> FloatArray:
        """∇ĝ(x)."""
        if self.model is not None:
            return self.model(x)[1]
        return self.slope if self.hessian is None else self.slope + self.hessian @ x


class Pieces(NamedTuple):
    """f̂. Rows of one kink follow one another."""

    smooth: Smooth
    omega: FloatArray  # s × m, ≥ 0
    B: FloatArray  # s × R × n
    C: FloatArray | None  # s × R × m, ≥ 0
    d: FloatArray  # s × R
    starts: Any  # of length m, the first row of each kink
    owner: Any  # of length R, the kink that a row belongs to
    layers: tuple[tuple[int, int], ...]  # kinks that do not depend on one another, by number: from, to

    def at(self, x: FloatArray) -> At:
        """All branches, and which are the largest."""
        rows, size = self.B @ x + self.d, np.abs(self.B) @ np.abs(x) + np.abs(self.d)
        tau = np.zeros(self.omega.shape)
        if self.C is None:
            tau = np.maximum.reduceat(rows, self.starts, axis=1)
        else:
            ends = [*self.starts[1:], len(self.owner)]
            for first, last in self.layers:
                here = slice(self.starts[first], ends[last - 1])
                rows[:, here] += np.einsum("srm,sm->sr", self.C[:, here], tau)
                size[:, here] += np.einsum("srm,sm->sr", self.C[:, here], np.abs(tau))
                tau[:, first:last] = np.maximum.reduceat(
                    rows[:, here], self.starts[first:last] - self.starts[first], axis=1
                )
        largest = np.maximum.reduceat(size, self.starts, axis=1)
        return At(tau, rows, rows >= (tau - TIE * largest)[:, self.owner])

    def subgradient(self, x: FloatArray, shares: FloatArray) -> Subgradient:
        """By shares ≥ 0 of all branches (s × R), which are put right: none where the maximum is not attained."""
        at = self.at(x)
        first = np.zeros(at.rows.shape)  # the largest branch, where the shares say nothing
        best = at.rows >= at.tau[:, self.owner]
        kept = np.where(at.tied, np.maximum(shares, 0.0), first)
        total = np.add.reduceat(kept, self.starts, axis=1)
        unsaid = (total <= 0)[:, self.owner]
        kept = np.where(unsaid, best, kept)
        p = kept / np.add.reduceat(kept, self.starts, axis=1)[:, self.owner]
        W = self.weights(p)
        spread = (W[:, self.owner] * p).reshape(-1)
        g = self.smooth.gradient(x) + spread @ self.B.reshape(len(spread), -1)
        missed = at.tau - np.add.reduceat(p * at.rows, self.starts, axis=1)
        return Subgradient(g, float(np.sum(W * np.maximum(missed, 0.0))))

    def weights(self, p: FloatArray) -> FloatArray:
        """W: how much every kink weighs, those inside of it included."""
        W = self.omega.copy()
        if self.C is not None:
            ends = [*self.starts[1:], len(self.owner)]
            for first, last in reversed(self.layers):
                here = slice(self.starts[first], ends[last - 1])
                W += np.einsum("sr,srm->sm", W[:, self.owner[here]] * p[:, here], self.C[:, here])
        return W

    def size(self, x: FloatArray) -> float:
        """The size of what is added up in g."""
        p = np.ones(self.d.shape) / np.bincount(self.owner)[self.owner]
        spread = (self.weights(p)[:, self.owner] * p).reshape(-1)
        return float(np.linalg.norm(np.abs(self.smooth.gradient(x)) + spread @ np.abs(self.B).reshape(len(spread), -1)))


# -- from the traced function to numbers -------------------------------------------------------------------------------


def tabled(kinks: Kinks, x: PyTree) -> Callable[[PyTree], Any]:
    """A compiled function of one ξ, or of a data set: all that `pieces_of` needs to know of them."""
    n = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    sizes = [int(np.prod(piece.shape)) for piece in kinks.pieces]
    m = sum(sizes)

    def parts(v: Any, t: Any, xi: PyTree) -> Any:
        each = jnp.split(t, np.cumsum(sizes)[:-1]) if sizes else []
        given = [one.reshape(piece.shape) for one, piece in zip(each, kinks.pieces, strict=True)]
        return kinks.parts(shaped(x, v), given, xi)

    def rows(v: Any, t: Any, xi: PyTree) -> Any:
        found = parts(v, t, xi)
        branches = [one.reshape(len(one), -1).T.reshape(-1) for one in found.branches]
        return flat([jnp.zeros(0), *branches]), flat([jnp.zeros(0), *(one for one in found.margins if one is not None)])

    def one(xi: PyTree) -> Any:
        v, t = jnp.zeros(n), jnp.zeros(m)
        count = sum(piece.branches * size for piece, size in zip(kinks.pieces, sizes, strict=True))
        slope = jax.jacfwd if n <= count else jax.jacrev
        between = jax.jacfwd(rows, 1)(v, t, xi) if kinks.nested else None
        return rows(v, t, xi), slope(rows)(v, t, xi), between, jax.grad(lambda t: parts(v, t, xi).value)(t)

    def smooth(v: Any, data: PyTree, weights: Any) -> Any:
        if weights is None:
            return parts(v, jnp.zeros(m), data).value
        return jax.vmap(lambda xi: parts(v, jnp.zeros(m), xi).value)(data) @ weights

    return _Compiled(
        jax.jit(lambda data: jax.vmap(one)(data)),
        jax.jit(lambda data: jax.tree.map(lambda leaf: leaf[None], one(data))),
        jax.jit(jax.value_and_grad(smooth)),
        jax.jit(jax.hessian(smooth)),
    )


class _Compiled(NamedTuple):
    many: Callable[[PyTree], Any]
    one: Callable[[PyTree], Any]
    slope: Callable[..., Any]
    hessian: Callable[..., Any]

    def __call__(self, data: PyTree) -> Any:
        return self.one(data) if data is None else self.many(data)


def pieces_of(kinks: Kinks, compiled: Any, data: PyTree, n: int) -> Pieces:
    """f̂ over a data set; `NotConvex` where it is not seen to be convex, with the reason."""
    sizes = [int(np.prod(piece.shape)) for piece in kinks.pieces]
    m, branches = sum(sizes), np.repeat(np.array([piece.branches for piece in kinks.pieces], int), sizes)
    s = 1 if data is None else len(jax.tree.leaves(data)[0])
    if s * int(branches.sum()) * (n + m * kinks.nested) > MOST:
        raise NotConvex(f"the slopes of its branches are more than {MOST:.0e} numbers")
    (d, margin), (B, margin_B), between, w = jax.tree.map(np.array, compiled(data))
    C, margin_C = between if between is not None else (None, None)
    everything = [part for part in (d, margin, B, margin_B, C, margin_C, w) if part is not None]
    if not all(np.isfinite(part).all() for part in everything):
        raise NotConvex("a weight, or what it chooses from, is not finite")
    owner = np.repeat(np.arange(m), branches)
    starts = np.cumsum(branches) - branches
    sense = np.ones((s, m))
    at, asked = 0, 0
    layers: list[tuple[int, int]] = []
    for piece, size in zip(kinks.pieces, sizes, strict=True):
        if piece.sense == 0:
            here = slice(asked, asked + size)
            above, below = starts[at : at + size], starts[at : at + size] + 1
            rule = [margin_B[:, here], None if C is None else margin_C[:, here], margin[:, here]]
            true, false = ([B[:, row], None if C is None else C[:, row], d[:, row]] for row in (above, below))
            sense[:, at : at + size] = _sense(piece, _joined(true), _joined(false), _joined(rule))
            asked += size
        else:
            sense[:, at : at + size] = piece.sense
        layers.append((at, at + size))
        at += size
    B, d, w = B * sense[:, owner, None], d * sense[:, owner], w * sense
    if C is not None:
        C = C * sense[:, owner, None] * sense[:, None, :]
        C = C if C.any() else None
    _refuse_signs(kinks, layers, w, C, owner)
    return Pieces(_smooth(kinks, compiled, data, n), w / s, B, C, d, starts, owner, tuple(layers))


def _joined(parts: list[Any]) -> FloatArray:
    """Slopes and value as one vector for each entry."""
    slope, between, value = parts
    return np.concatenate([slope, value[..., None], *([] if between is None else [between])], axis=-1)


def _sense(piece: Any, true: FloatArray, false: FloatArray, margin: FloatArray) -> FloatArray:
    """1 where `where(margin > 0, true, false)` is their maximum, −1 where it is their minimum: true − false = c·margin."""
    apart = true - false
    place = np.argmax(np.abs(margin), axis=-1)[..., None]
    by = np.take_along_axis(margin, place, axis=-1)
    c = np.where(by != 0, np.take_along_axis(apart, place, axis=-1) / np.where(by != 0, by, 1.0), 0.0)
    if np.any(np.abs(apart - c * margin) > SAME * (np.abs(true) + np.abs(false) + np.abs(c * margin))):
        raise NotConvex(f"the two cases of {piece} do not meet where the condition changes")
    return np.where(c[..., 0] < 0, -1.0, 1.0)


def _refuse_signs(kinks: Kinks, layers: list[tuple[int, int]], w: FloatArray, C: Any, owner: Any) -> None:
    for piece, (first, last) in zip(kinks.pieces, layers, strict=True):
        low = w[:, first:last].min(initial=0.0)
        inside = 0.0 if C is None else C[:, :, first:last].min(initial=0.0)
        if low < 0 or inside < 0:
            raise NotConvex(f"{piece} enters with the sign that makes it concave")


def _smooth(kinks: Kinks, compiled: Any, data: PyTree, n: int) -> Smooth:
    s = 1 if data is None else len(jax.tree.leaves(data)[0])
    weights = None if data is None else np.full(s, 1.0 / s)
    zero = np.zeros(n)
    if kinks.degree <= QUADRATIC:
        slope = np.asarray(compiled.slope(zero, data, weights)[1])
        hessian = None if kinks.degree == AFFINE else _hessian(kinks, compiled, data, zero)
        if hessian is not None:
            refuse_bent(hessian)
        return Smooth(slope, hessian, None)

    def model(x: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        value, slope = compiled.slope(x, data, weights)
        return float(value), np.asarray(slope), _hessian(kinks, compiled, data, x)

    return Smooth(zero, None, model)


def _hessian(kinks: Kinks, compiled: Any, data: PyTree, x: FloatArray) -> FloatArray:
    """The mean over samples, in chunks of bounded memory; of one sample where it does not depend on it."""
    if data is None:
        return np.asarray(compiled.hessian(x, data, None))
    s, n = len(jax.tree.leaves(data)[0]), len(x)
    if kinks.one_bend:
        return np.asarray(compiled.hessian(x, jax.tree.map(lambda leaf: leaf[:1], data), np.ones(1)))
    step = min(s, max(1, CHUNK // (n * n)))
    total = np.zeros((n, n))
    for start in range(0, s, step):
        rows = [min(start + place, s - 1) for place in range(step)]  # the last again, with weight 0: one program
        weights = np.array([1.0 / s if start + place < s else 0.0 for place in range(step)])
        total += np.asarray(compiled.hessian(x, jax.tree.map(lambda leaf, rows=rows: leaf[np.array(rows)], data), weights))
    return total


def refuse_bent(hessian: FloatArray) -> None:
    """`NotConvex` where it has a negative eigenvalue, beyond rounding."""
    if not np.isfinite(hessian).all():
        raise NotConvex("the Hessian of its smooth part is not finite")
    values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    if values[0] < -SAME * len(values) * max(abs(values[-1]), abs(values[0])):
        raise NotConvex(f"its smooth part is not convex (eigenvalue {values[0]:.3g} of the Hessian)")
