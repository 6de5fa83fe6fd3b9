"""f̂ with its kinks in numbers: f̂(x) = ĝ(x) + Σ_ik ω_ik τ_ik, τ_ik = max_b (B x + C τ + d)_ikb.

i counts samples, k the kinks of one sample, b the branches of a kink, which are the rows of B (n columns), C (≥ 0, only
where kinks are nested) and d. A minimum is a maximum with both signs changed, so ω ≥ 0 and C ≥ 0 say that f̂ is convex
where ĝ is. With shares p ≥ 0, Σ_b p_ikb = 1, on the branches
that attain the maximum, W_ik = ω_ik + Σ W p C counts how much kink ik weighs in all, and
    g = ∇ĝ(x) + Σ_ikb W_ik p_ikb B_ikb ∈ ∂f̂(x)
(the chain rule for maxima and non-negative sums, which is exact for finite convex functions). Branches within TIE of
the largest, relative to the numbers they are made of, count as attaining it; what that costs is
    η = Σ W_ik (τ_ik − Σ_b p_ikb a_ikb) ≥ 0,  f̂(v) ≥ f̂(x) + ⟨g, v − x⟩ − η for all v.
Cost: s·R·n numbers are kept, and read once for each x.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from epszero._types import FloatArray

TIE = 1e-12  # of the numbers that a branch is made of
LEAST = 1e-3  # of the largest entry of x, or of its unit: no entry is known better than TIE of this


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

    def bent(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """∇ĝ(x) and the Hessian there."""
        if self.model is not None:
            return self.model(x)[1:]
        return self.gradient(x), np.zeros((len(x), len(x))) if self.hessian is None else self.hessian


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

    @property
    def unit(self) -> float:
        """A typical size of x: where half of the branches that have a constant change sign, along one entry."""
        slope, value = np.abs(self.B).max(axis=2, initial=0.0), np.abs(self.d)
        sizes = (value / np.where(slope > 0, slope, 1.0))[(slope > 0) & (value > 0)]
        return float(np.median(sizes)) if len(sizes) else 1.0

    def at(self, x: FloatArray) -> At:
        """All branches, and which are the largest."""
        slopes, least = np.abs(self.B), LEAST * max(np.abs(x).max(initial=0.0), self.unit)
        rows, size = self.B @ x + self.d, slopes @ np.maximum(np.abs(x), least) + np.abs(self.d)
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
        kept = np.where(at.tied, np.maximum(shares, 0.0), 0.0)
        unsaid = np.add.reduceat(kept, self.starts, axis=1) <= 0
        kept = np.where(unsaid[:, self.owner], at.rows >= at.tau[:, self.owner], kept)  # then the largest branch
        p = kept / np.add.reduceat(kept, self.starts, axis=1)[:, self.owner]
        W = self.weights(p)
        spread = (W[:, self.owner] * p).reshape(-1)
        g = self.smooth.gradient(x) + spread @ self.B.reshape(len(spread), -1)
        missed = at.tau - np.add.reduceat(p * at.rows, self.starts, axis=1)
        return Subgradient(g, float(np.sum(W * np.maximum(missed, 0.0))))

    def weights(self, p: FloatArray) -> FloatArray:
        """W: how much every kink weighs, those inside of it included."""
        total = self.omega.copy()
        if self.C is not None:
            ends = [*self.starts[1:], len(self.owner)]
            for first, last in reversed(self.layers):
                here = slice(self.starts[first], ends[last - 1])
                total += np.einsum("sr,srm->sm", total[:, self.owner[here]] * p[:, here], self.C[:, here])
        return total

    def size(self, x: FloatArray) -> float:
        """The size of what is added up in g."""
        p = np.ones(self.d.shape) / np.bincount(self.owner)[self.owner]
        spread = (self.weights(p)[:, self.owner] * p).reshape(-1)
        return float(np.linalg.norm(np.abs(self.smooth.gradient(x)) + spread @ np.abs(self.B).reshape(len(spread), -1)))
