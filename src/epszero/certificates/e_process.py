"""The e-process of a monitor: evidence that ‖E[g | past]‖ ≤ ε fails, valid whenever one stops.

Let g_j be random vectors, d_j unit directions and λ_j ≥ 0 bets that look at the past only, λ_j(ε − ⟨d_j, g_j⟩) < 1 for
every possible g_j. If ‖E[g_j | past]‖ ≤ ε then E[1 + λ_j(⟨d_j, g_j⟩ − ε) | past] ≤ 1. With π_k = 1/(k(k+1)), which sum
to 1, let
    S_n = (S_{n−1} + π_n)(1 + λ_n(⟨d_n, g_n⟩ − ε)),   E_n = S_n + Σ_{k>n} π_k = S_n + 1/(n+1),   S_0 = 0.
S_n is the sum over starting times k ≤ n of π_k times the product of the factors from k on, so that what came before a
drift costs nothing but π_k. E[E_n | past] ≤ S_{n−1} + π_n + 1/(n+1) = S_{n−1} + 1/n = E_{n−1}, E_n ≥ 0 and E_0 = 1: by
Ville, P(E_n ≥ 1/δ for any n) ≤ δ. The same for an average over several ways to choose d and λ, each with its S.
Ways differ in how fast they forget: d points to the mean of g so far, λ is what Kelly would bet on the mean and the
square of the gains so far, at most half of what ruin allows.
Axes: (trials, ways, entries of g). Cost: O(ways · n · d) for a sample. Source: Ville (1939); docs/theory.md, 11.
"""

from typing import NamedTuple

import numpy as np

from epszero._types import FloatArray

KEEPS = np.array([0.8, 0.95, 0.99, 0.998])  # of what was, after each sample: four ways
AT_MOST = 0.5  # of what ruin allows
PRIOR = 2.0  # samples that the first guess is worth
LEAST = 1e-3  # of the range of a gain: a loss that is taken to be possible where none is


class Frame(NamedTuple):
    """g = base + K(row − origin), and how far a row can be from the origin."""

    base: FloatArray  # (n,)
    K: FloatArray | None  # (n, k); None: the identity
    origin: FloatArray  # (k,)
    half: FloatArray | float  # of the box about the origin that holds every row; or a distance in all directions

    def residuals(self, rows: FloatArray) -> FloatArray:
        """g of rows (…, k)."""
        apart = rows - self.origin
        return self.base + (apart if self.K is None else apart @ self.K.T)

    def reach(self, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        """⟨d, g⟩ lies between the first minus the second and the first plus the second."""
        u = d if self.K is None else d @ self.K
        spread = self.half * np.linalg.norm(u, axis=-1) if isinstance(self.half, float) else np.abs(u) @ self.half
        return d @ self.base, spread


class State(NamedTuple):
    """What the past left, for every trial and way."""

    n: int
    S: FloatArray  # (t, w)
    mean: FloatArray  # (t, w, n): Σ keep^age g
    gains: FloatArray  # (t, w): the same of the gains
    squares: FloatArray  # (t, w): of their squares
    weight: FloatArray  # (w,): of 1

    @staticmethod
    def start(trials: int, n: int) -> "State":
        """Before the first sample."""
        ways = len(KEEPS)
        flat = np.zeros((trials, ways))
        return State(0, flat, np.zeros((trials, ways, n)), flat, flat, np.zeros(ways))

    @property
    def e(self) -> FloatArray:
        """E_n of each trial."""
        return np.mean(self.S, axis=-1) + 1 / (self.n + 1)


def advanced(state: State, frame: Frame, g: FloatArray, epsilon: float) -> State:
    """After one more sample, g of every trial (t, n)."""
    d, bets = wagers(state, frame, epsilon)
    gain = np.einsum("twn,tn->tw", d, g) - epsilon
    n = state.n + 1
    with np.errstate(over="ignore"):  # evidence beyond 1e308 is evidence enough
        S = np.minimum((state.S + 1 / (n * (n + 1))) * (1 + bets * gain), np.finfo(np.float64).max)
    gain = np.where(np.any(d, axis=-1), gain, 0.0)
    return State(
        n,
        S,
        KEEPS[:, None] * state.mean + g[:, None],
        KEEPS * state.gains + gain,
        KEEPS * state.squares + gain**2,
        KEEPS * state.weight + 1,
    )


def wagers(state: State, frame: Frame, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Directions (t, w, n) and bets (t, w), from the past alone; no bet where there is no direction yet."""
    size = np.linalg.norm(state.mean, axis=-1)
    moved = (size > 0) & np.isfinite(size)
    d = np.where(moved[..., None], state.mean / np.where(moved, size, 1.0)[..., None], 0.0)
    middle, spread = frame.reach(d)
    ruin = np.maximum(epsilon - (middle - spread), LEAST * spread)
    count = state.weight + PRIOR
    mean = state.gains / count
    square = (state.squares + PRIOR * (spread / 2) ** 2) / count
    kelly = mean / np.where(square > 0, square, np.inf)
    most = np.where(moved & (ruin > 0), AT_MOST / np.where(ruin > 0, ruin, 1.0), 0.0)
    return d, np.clip(kelly, 0.0, most)
