"""How much a method's output can change with one sample: one recursion for all methods (docs/theory.md#stability).

If step k is q_k-Lipschitz for every data set, on an invariant set, and the steps of two data sets that differ in one
sample differ by at most c_k/s at any point, then the outputs after the last step differ by at most
    d ≤ (1/s) Σ_k c_k Π_{j>k} q_j,
all in one norm; `scale` turns it into the Euclidean one. (T_D(x) − T_{D′}(x̃) = [T_D(x) − T_D(x̃)] + [T_D −
T_{D′}](x̃).) Methods without a q ≤ 1 that come nearer to the zero x̂_D of their data by a factor ρ a step, from x⁰,
have
    d ≤ R/(μs) + 2ρ^K sup_D ‖x⁰ − x̂_D‖.
A method describes itself by `stability(facts, iterations)`.

Steps Γ_k by block are measured in ‖v‖_k = ‖(γ_max Γ_k⁻¹)^½ v‖ ≥ ‖v‖, γ_max the longest of Γ_k: for one step for all
blocks the Euclidean norm. J_{ΓA} is nonexpansive there (A is separable between blocks), and ‖Γ_kΔO‖_k ≤ γ_max R. There
Γ_kB̂ is m-strongly monotone and L-Lipschitz for m = γ_min μ, L = γ_max κ, or, if B̂ has the Jacobian J, for the least
eigenvalue of the symmetric part of M = Γ^½JΓ^½ and ‖M‖; and ‖Γ_kΔB‖²_k ≤ t ⟨Γ_kΔB, Δx⟩_k for t = γ_max/θ.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epszero._types import FloatArray
from epszero.methods.steps import Steps

SEARCHED = "The step is found by backtracking, so it depends on the data. Pass step=γ, or declare constants for one."
ANY_ALGORITHM = "a certificate that holds for any algorithm: MeanDeviation, HoldOut or AtTheTruth of ez.certificates"
WITHOUT_STABILITY = (
    "The certificates that hold for any algorithm do not ask: ez.certificates.MeanDeviation(), or HoldOut()."
)
NODES = 64  # steps beyond which ‖I − γJ‖ is computed at some, and bounded by chords between: it is convex in γ


class Unstable(Exception):
    """No bound is known: the message says why, and what would help."""


@dataclass(frozen=True, eq=False)
class Premises:
    """What is known of every O(·, ξ) on the domain, None where nothing is."""

    R: float  # sup ‖O(x, ξ) − O(x, ξ′)‖
    mu: float | None = None  # strong monotonicity; 0: monotone; None: not even that is known
    kappa: float | None = None  # Lipschitz
    theta: float | None = None  # cocoercivity
    jacobian: FloatArray | None = None  # of B, where O is affine in x with one Jacobian for all ξ
    diameter: float = np.inf  # of the domain
    everywhere: bool = False  # R, μ, κ and θ hold on the whole space, not on the domain only


@dataclass(frozen=True, eq=False)
class Stability:
    """q_k and c_k for the steps k = 0, …, K, and what they lean on."""

    q: FloatArray
    c: FloatArray
    scale: float = 1.0  # Euclidean norm ≤ scale · the norm of q and c, for differences of outputs
    extra: float = 0.0  # a difference that more samples do not make smaller: 2ρ^K sup ‖x⁰ − x̂_D‖
    because: str = ""  # which line of the table, with its numbers
    turn: FloatArray | float = 1.0  # ‖v‖_k ≤ turn_k ‖v‖_{k−1}, where steps by block change with k
    ahead: float | None = None  # Lipschitz constant of Id − γO(·, ξ) at the last step; None where it is the last q
    on_average: bool = False  # true of the root mean square over the method's own chance, not of every run

    def difference(self, s: int) -> float:
        """d: how far apart the outputs of two data sets can be that differ in one of s samples."""
        return self.mean_difference(s)

    def mean_difference(self, s: int) -> float:
        """The mean of `differences`."""
        d = 0.0
        for q, c in zip((self.q * self.turn).tolist(), self.c.tolist(), strict=True):
            d = q * d + c
        return self.scale * d / s + self.extra

    def differences(self, s: int) -> FloatArray:
        """d for each of the s samples; one number where it is the same for all."""
        return np.array([self.difference(s)])


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchStability(Stability):
    """Step k looks at a batch of b samples: a sample moves it by c_k/b where it is among them, else not at all.

    The batches follow from a seed that the data do not know, so for each sample d_i ≤ Σ_{k : i ∈ S_k} (c_k/b) Π_{j>k}
    q_j is sure. Each step's c_k/b falls on b of the s samples, so the mean of the d_i is the d of c_k/s: the same as
    if all samples were looked at; and so is the expectation of each d_i over the seed.
    """

    drawn: Callable[[int], FloatArray]  # the batches of the steps 0, …, K out of s samples, in rows

    def difference(self, s: int) -> float:
        """The largest of the `differences`."""
        return float(self.differences(s).max())

    def differences(self, s: int) -> FloatArray:
        d = np.zeros(s)
        for q, c, batch in zip((self.q * self.turn).tolist(), self.c.tolist(), self.drawn(s), strict=True):
            d *= q
            d[batch] += c / len(batch)
        return self.scale * d + self.extra


class MeasuredSteps:
    """The steps Γ_0, …, Γ_K of a run against the facts; one entry for all k where the steps do not change."""

    def __init__(self, steps: Steps, facts: Premises, iterations: int) -> None:
        if steps.searched:
            raise Unstable(SEARCHED)
        self.K, self.R, self.diameter = iterations, facts.R, facts.diameter
        rows = steps.rows(iterations)
        self.longest, shortest = rows.max(axis=1), rows.min(axis=1)
        self.spread = float(np.sqrt(self.longest[0] / shortest[0]))  # ‖v‖_0 ≤ spread · ‖v‖
        # d_{k+1} is known in the norm of step k, and step k+1 wants its own: ‖d_{k+1}‖_{k+1} ≤ turn_{k+1} ‖d_{k+1}‖_k.
        relative = rows / self.longest[:, None]
        self.turn = np.concatenate([[1.0], np.sqrt(relative[:-1] / relative[1:]).max(axis=1)])
        self.mu, self.ahead = (mu := facts.mu), None  # ‖I − M_k‖
        self.m = None if mu is None else mu * np.where(mu > 0, shortest, self.longest)
        self.lip = None if facts.kappa is None else facts.kappa * self.longest
        self.t = None if facts.theta is None else self.longest / facts.theta
        if facts.jacobian is not None:
            entries, J = steps.entries(rows), facts.jacobian
            if entries.shape[1] != len(J):
                raise Unstable(f"The Jacobian has {len(J)} rows, but a point has {entries.shape[1]} entries.")
            self.ahead, m, L = _affine(J, entries)
            self.m = m if self.m is None else np.maximum(m, self.m)
            self.lip = L if self.lip is None else np.minimum(L, self.lip)
            self.mu = max(_spectral(J)[1], -np.inf if mu is None else mu)

    def forward(self) -> tuple[FloatArray, str]:
        """The least known Lipschitz constant of I − Γ_kB̂, and why it is one."""
        lines: dict[str, FloatArray] = {}
        if self.ahead is not None:
            lines["‖I − γJ‖"] = self.ahead
        if self.t is not None:
            m = 0.0 if self.m is None else np.maximum(self.m, 0.0)
            lines["γ and θ"] = np.where(self.t <= 2, np.sqrt(np.maximum(1 - m * (2 - self.t), 0.0)), self.t - 1)
        if self.lip is not None:
            squared = (1 + self.lip) ** 2 if self.m is None else 1 - 2 * self.m + self.lip**2
            lines["γ and κ"] = np.sqrt(np.maximum(squared, 0.0))
        if not lines:
            raise Unstable("No Lipschitz constant of B is known, neither κ nor θ. Declare kappa or theta.")
        q = np.min(list(lines.values()), axis=0)
        chosen = " or ".join(name for name, line in lines.items() if (line == q).any())
        return q, f"q ≤ {q.max():.6g} from {chosen}{'' if self.mu is None else f', μ = {self.mu:.6g}'}"

    def last_ahead(self) -> float:
        """The Lipschitz constant of Id − γO(·, ξ) at the last step, infinite where none is known."""
        try:
            return float(np.broadcast_to(self.forward()[0], self.K + 1)[-1])
        except Unstable:
            return math.inf

    def reflected(self, J: FloatArray | None) -> tuple[float, float, str]:
        """Lipschitz constants of 2J_{γB̂} − Id and of J_{γB̂}, for one fixed step, and why they are such.

        With u = p − p′ and v = γ(B̂(p) − B̂(p′)), ζ − ζ′ = u + v and Rζ − Rζ′ = u − v: the ratio of their squares is
        1 − 4⟨u, v⟩/(‖u‖² + ‖v‖² + 2⟨u, v⟩), the larger the smaller ⟨u, v⟩ ≥ γμ‖u‖² and the larger ‖v‖ ≤ γκ‖u‖.
        """
        gamma, mu = float(self.longest[0]), self.mu
        if mu is None or mu < -1e-12:
            raise Unstable("B is not known to be monotone. Declare mu, or monotone=True, with ez.declare.")
        m = gamma * max(mu, 0.0)
        lip = np.inf if self.lip is None else float(self.lip[0])
        q = math.sqrt(max(0.0, 1 - 4 * m / (1 + 2 * m + lip**2))) if np.isfinite(lip) else 1.0
        inverse, why = 1 / (1 + m), f"μ = {mu:.6g}"
        if J is not None:
            resolvent = np.linalg.inv(np.eye(len(J)) + gamma * J)
            exact = float(np.linalg.norm(resolvent - gamma * J @ resolvent, 2)) + 1e-12
            q, inverse = min(q, exact), min(inverse, float(np.linalg.norm(resolvent, 2)) + 1e-12)
            why = "‖(I − γJ)(I + γJ)⁻¹‖"
        return q, inverse, f"q_R ≤ {q:.6g} from {why}"

    def nearer(self) -> FloatArray:
        """ρ_k = √(1 − [1/(2m) + 1/(1 − L²)]⁻¹): how much nearer forward-backward-forward and extragradient come."""
        if self.m is None or self.lip is None:
            raise Unstable("No bound is known without μ and κ. Declare mu and kappa.")
        a, b = 1 - self.lip**2, 2 * self.m
        if (a <= 0).any() or (a + b <= 0).any():
            raise Unstable(f"B must be monotone and γκ below 1, but γκ reaches {self.lip.max():.6g}. Shorten the step.")
        return np.sqrt(np.maximum(1 - a * b / (a + b), 0.0))

    def strong(self) -> tuple[float, float]:
        """m > 0 and L of a step that is the same for all k."""
        if self.m is None or self.lip is None or not self.m[0] > 0:
            raise Unstable(f"No bound is known without μ > 0 and κ. Declare mu and kappa, or use {ANY_ALGORITHM}.")
        return float(self.m[0]), float(self.lip[0])

    def recursion(self, q: FloatArray, c: FloatArray, because: str, last: tuple[FloatArray, FloatArray]) -> Stability:
        """The steps 0, …, K from q_k and c_k in the norms of their steps, with others for the last one."""
        return Stability(self._all(q, last[0]), self._all(c, last[1]), because=because, turn=self.turn)

    def _all(self, values: FloatArray, last: FloatArray) -> FloatArray:
        return np.append(np.broadcast_to(values, self.K + 1)[:-1], last[-1])

    def by_zeros(self, rho: FloatArray, last: FloatArray) -> Stability:
        """d ≤ R/(μs) + 2ρ^K sup_D ‖x⁰ − x̂_D‖, with another factor for the last step in ρ^K, the product of all."""
        return self.by_distance(math.prod((self._all(rho, last) * self.turn).tolist()))

    def by_distance(self, factor: float) -> Stability:
        """d ≤ R/(μs) + 2 factor · sup_D ‖x⁰ − x̂_D‖, for outputs within factor · ‖x⁰ − x̂_D‖ of x̂_D, in step 0's norm."""
        if self.mu is None or self.mu <= 0:
            raise Unstable("B is not known to be strongly monotone. Declare mu > 0, or take ez.ForwardBackward().")
        if not np.isfinite(self.diameter):
            raise Unstable("The domain is unbounded, so x⁰ may lie arbitrarily far from the zeros. Bound it by a set.")
        extra = 2 * factor * self.spread * self.diameter
        why = f"R/(μs) with μ = {self.mu:.6g}, and {extra:.3g} as both runs are still on their way to their zeros"
        return Stability(np.zeros(1), np.array([self.R / self.mu]), extra=extra, because=why)


def _affine(J: FloatArray, steps: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """‖I − M‖, the least eigenvalue of M's symmetric part and ‖M‖, for every row of steps, one per entry of a point."""
    if np.ptp(steps, axis=1).max() > 0:
        return tuple(np.transpose([_spectral(np.sqrt(row)[:, None] * J * np.sqrt(row)) for row in steps]))
    nodes = np.unique(gamma := steps[:, 0])
    if len(nodes) > NODES:
        nodes = np.union1d(nodes[:: len(nodes) // NODES], np.linspace(nodes[0], nodes[-1], NODES))
    ahead = np.interp(gamma, nodes, [_spectral(node * J)[0] for node in nodes])
    _, m, L = _spectral(J)
    return ahead, gamma * m, gamma * L


def _spectral(M: FloatArray) -> tuple[float, float, float]:
    """‖I − M‖, the least eigenvalue of M's symmetric part and ‖M‖."""
    eigenvalues = np.linalg.eigvalsh((M + M.T) / 2)
    if (M == M.T).all():
        return float(np.abs(1 - eigenvalues).max()), float(eigenvalues[0]), float(np.abs(eigenvalues).max())
    return float(np.linalg.norm(np.eye(len(M)) - M, 2)), float(eigenvalues[0]), float(np.linalg.norm(M, 2))
