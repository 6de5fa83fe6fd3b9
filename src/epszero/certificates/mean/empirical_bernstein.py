"""Empirical Bernstein for vectors, in any dimension: the radius follows the variance in the data, not the support.

Claim: for predictable centres μ̂_{i−1}, c_i ≥ ‖X_i − μ̂_{i−1}‖ and weights w_i with c_i w_i < 1, with probability
≥ 1 − δ
    ‖Σ w_i(X_i − μ)‖ ≤ ln(2/δ) + Σ ψ(c_i w_i)‖X_i − μ̂_{i−1}‖²/c_i²,   ψ(λ) = −ln(1 − λ) − λ,
for all sample sizes at once. Divided by Σw_i it is a ball about the weighted mean. Assumes independent samples in a
bounded region. Its radius tends to √(2 ln(2/δ)/m) times the standard deviation.
Source: in dimension one Howard et al. (2021), Waudby-Smith & Ramdas (2024). In Hilbert space the usual way has
ψ(2c w)/4c² in place of ψ(c w)/c²; the scalar constant holds as well, which is ours (docs/theory.md, section 3). Proof:
a = w(X − μ̂), A = ‖a‖ ≤ r = cw < 1, b = E a, S′ = S − b with s = ‖S′‖, u = S′/s, q = tanh s ⟨u, a⟩ ∈ [−A, A]. As in
hoeffding.py,
    cosh‖S′ + a‖ ≤ cosh s (cosh A + q sinh A/A) ≤ cosh s (1 + q) e^{ψ(A)},
since (cosh A + q sinh A/A)/(1 + q) decreases in q and is e^{−A}/(1 − A) = e^{ψ(A)} at q = −A. ψ(A)/A² increases, so
E cosh‖S + a − b‖ e^{−ψ(r)A²/r²} ≤ cosh s + sinh s ⟨u, b⟩ ≤ cosh‖S′ + b‖ = cosh‖S‖ by convexity. Then Ville, cosh y ≥
e^y/2.

The weights minimise the radius that the variance v̂ seen so far promises: λ = cw solves λψ′(λ) − ψ(λ) = c² ln(2/δ)/(m
v̂); `anytime` puts i ln(1 + i) for m, which serves all sample sizes alike. Any weights are valid, these are short.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from epszero._types import FloatArray
from epszero.certificates.mean._base import MeanBound, MeanSet, bounded, in_units, log_of
from epszero.facts.region import Prior, Region

LARGEST = 0.999  # λ stays below 1
BLOCK = 16  # samples
AT_ONCE = 1 << 18  # entries that are worked on at once: they fit a processor's cache


@dataclass(frozen=True)
class EmpiricalBernstein(MeanBound):
    """A ball that adapts to the variance. `anytime=True`: valid at every sample size at once."""

    title: ClassVar[str] = "vector empirical Bernstein"
    worth: ClassVar[float] = 1.0  # samples that a first guess counts for which knows the region alone
    often: ClassVar[int | None] = None  # samples after which centres move in blocks; None: with every sample
    anytime: bool = False

    def around(self, X: FloatArray, region: Region | None, delta: float) -> MeanSet:
        return self.prepared(X, region)(delta)

    def prepared(self, X: FloatArray, region: Region | None) -> Callable[[float], MeanSet]:
        small, region, unit = in_units(X, bounded(region))
        *trials, m, d = X.shape
        flat = small.reshape(-1, m, d)
        step = max(1, AT_ONCE // (m * d))
        parts = [_Series(flat[i : i + step], region, self) for i in range(0, len(flat), step)]

        def at(delta: float) -> MeanSet:
            log = log_of(2, delta)
            centre, radius = (np.concatenate(pieces) for pieces in zip(*(p.ball(log) for p in parts), strict=True))
            return MeanSet(unit * centre.reshape(*trials, d), unit * radius.reshape(trials))

        return at

    def least(self, delta: float) -> int:
        return 2

    def streaming(self) -> MeanBound:
        return EmpiricalBernstein(anytime=True)


class Swift(EmpiricalBernstein):
    """The same bound with other weights: quicker, and shorter where the region is far wider than the law."""

    worth: ClassVar[float] = 0.1
    often: ClassVar[int | None] = 64


class _Series:
    """Samples with their centres, before δ is known."""

    def __init__(self, X: FloatArray, region: Region, bound: EmpiricalBernstein) -> None:
        self.X, self.region, m = X, region, X.shape[1]
        guess = region.first_guess
        if guess is not None and region.prior is None:
            guess = replace(guess, count=bound.worth)
        centres, repeats = lagging_centres(X, guess, bound.often)
        farthest, rare = np.maximum(region.farthest(centres), 1e-100), centres.shape[-2] < m
        apart = X - (np.repeat(centres, repeats, axis=-2) if rare else centres)
        squares = np.einsum("tmd,tmd->tm", apart, apart)
        self.c = np.repeat(farthest, repeats, axis=-1) if rare else farthest
        horizon = np.arange(1, m + 1) * np.log1p(np.arange(1, m + 1)) if bound.anytime else float(m)
        far = self.c**2
        self.target = far / (horizon * _variance(squares, region, guess))
        self.squares = squares / far

    def ball(self, log: float) -> tuple[FloatArray, FloatArray]:
        """Centre and radius of each trial; log = ln(2/δ)."""
        X, region = self.X, self.region
        if region.first_guess is None and X.shape[1] == 1:  # the only sample is the centre: nothing says how far it is
            return X[:, 0], np.full(len(X), region.diameter)
        lam = best_lambda(self.target * log)
        if region.first_guess is None:
            lam[:, 0] = 0.0  # the first sample is the first centre
        w = lam / self.c
        total = np.maximum(w.sum(axis=1), 1e-300)
        radius = (log + np.einsum("tm,tm->t", psi(lam), self.squares)) / total
        centre = (w[:, None] @ X)[:, 0] / total[:, None]
        return centre, np.minimum(radius, region.diameter) if region.diameter > 0 else np.zeros(len(X))


def predictable_centres(X: FloatArray, guess: Prior | None) -> FloatArray:
    """μ̂_{i−1}: the mean of a first guess and the samples before the i-th; without a guess the first sample is it."""
    centres, count = np.empty(X.shape), np.arange(1.0, X.shape[-2])[:, None]
    after = centres[..., 1:, :]
    np.cumsum(X[..., :-1, :], axis=-2, out=after)
    if guess is None:
        centres[..., :1, :] = X[..., :1, :]
        after /= count
    else:
        centres[..., :1, :] = guess.centre
        after += guess.count * guess.centre
        after /= count + guess.count
    return centres


def lagging_centres(X: FloatArray, guess: Prior | None, often: int | None) -> tuple[FloatArray, Any]:
    """Centres that move after each of the first samples and after every BLOCK of the others; how long each stays.

    The squares grow by less than BLOCK/often² of the variance.
    """
    m = X.shape[-2]
    if often is None or m <= often + BLOCK:
        return predictable_centres(X, guess), np.ones(m, dtype=int)
    ends = np.concatenate([np.arange(often), np.arange(often, m, BLOCK)])  # what each centre has seen
    sums = np.cumsum(np.add.reduceat(X, ends, axis=-2)[..., :-1, :], axis=-2)
    seen = ends[1:, None]
    if guess is None:
        first, after = X[..., :1, :], sums / seen
    else:
        first = np.broadcast_to(guess.centre, (*X.shape[:-2], 1, X.shape[-1]))
        after = (sums + guess.count * guess.centre) / (seen + guess.count)
    return np.concatenate([first, after], axis=-2), np.diff(ends, append=m)


def _variance(squares: FloatArray, region: Region, guess: Prior | None) -> FloatArray:
    variance, count = ((region.diameter / 4) ** 2, 1.0) if guess is None else (guess.variance, guess.count)
    return predictable_variance(squares, max(variance, 1e-8 * region.diameter**2, 1e-300), count)


def predictable_variance(squares: FloatArray, guess: Any, count: float) -> FloatArray:
    """The mean of the squares before the i-th and of a first guess."""
    first = np.broadcast_to(np.expand_dims(count * np.asarray(guess), -1), (*squares.shape[:-1], 1))
    before = np.cumsum(np.concatenate([first, squares[..., :-1]], axis=-1), axis=-1)
    return before / (np.arange(squares.shape[-1]) + count)


def psi(lam: FloatArray) -> FloatArray:
    """ψ(λ) = −ln(1 − λ) − λ."""
    return -np.log1p(-lam) - lam


def best_lambda(target: FloatArray) -> FloatArray:
    """λ with λψ′(λ) − ψ(λ) ≈ target, by two Newton steps from a good guess."""
    lam = np.clip(1 - 1 / (1 + np.sqrt(2 * target) + target), 1e-9, LARGEST)
    for _ in range(2):
        excess = lam**2 / (1 - lam) - psi(lam) - target
        lam = np.clip(lam - excess * (1 - lam) ** 2 / lam, lam / 4, LARGEST)
    return np.minimum(lam, LARGEST)
