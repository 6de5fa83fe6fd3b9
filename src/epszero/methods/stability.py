"""How much a method's output can change with one sample: one recursion for all methods (THEORY section 2).

If step k is q_k-Lipschitz for every data set, on an invariant set, and the steps of two data sets that differ in one
sample differ by at most c_k/s at any point, then the outputs after the last step differ by at most
    d ≤ (1/s) Σ_k c_k Π_{j>k} q_j,
all in one norm; `scale` turns it into the Euclidean one. (T_D(x) − T_{D′}(x̃) = [T_D(x) − T_D(x̃)] + [T_D − T_{D′}](x̃).)
Methods without a q ≤ 1 that come nearer to the zero x̂_D of their data by a factor ρ a step, from x⁰, have
    d ≤ R/(μs) + 2ρ^K sup_D ‖x⁰ − x̂_D‖.
A method describes itself by `stability(facts, iterations)`.
"""

from dataclasses import dataclass

import numpy as np

from epszero._types import FloatArray


class Unstable(Exception):  # noqa: N818  (an answer, not a mistake of the user)
    """No bound is known: the message says why, and what would help."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of every O(·, ξ) on the domain, None where nothing is."""

    R: float  # sup ‖O(x, ξ) − O(x, ξ′)‖
    mu: float | None = None  # strong monotonicity
    kappa: float | None = None  # Lipschitz
    theta: float | None = None  # cocoercivity
    jacobian: FloatArray | None = None  # of B, where O is affine in x with one Jacobian for all ξ
    additive: bool = False  # O(x, ξ) = G(x) + noise
    diameter: float = np.inf  # of the domain


@dataclass(frozen=True, eq=False)
class Stability:
    """q_k and c_k for the steps k = 0, …, K, and what they lean on."""

    q: FloatArray
    c: FloatArray
    scale: float = 1.0  # Euclidean norm ≤ scale · the norm of q and c, for differences of outputs
    extra: float = 0.0  # a difference that more samples do not make smaller: 2ρ^K sup ‖x⁰ − x̂_D‖
    because: str = ""  # which line of the table, with its numbers

    def difference(self, s: int) -> float:
        """d: how far apart the outputs of two data sets can be that differ in one of s samples."""
        after = np.concatenate([np.cumprod(self.q[::-1])[-2::-1], [1.0]]) if len(self.q) else self.q
        return float(self.scale * (after @ self.c)) / s + self.extra
