"""Which steps of forward-backward converge, and which is best, from the constants at hand.

x ↦ J_{γA}(x − γB(x)) is averaged for γ < 2θ when B is θ-cocoercive (Bauschke & Combettes, Prop. 26.1). What is known of
B gives θ: declared; 1/κ for the gradient of a convex function (Baillon–Haddad); μ/κ² for a μ-strongly monotone,
κ-Lipschitz operator. The best step minimises the contraction factor q of docs/theory.md, section 2:
  gradient, μ and κ         γ = 2/(μ + κ)   q = (κ − μ)/(κ + μ)
  μ and θ                   γ = θ           q = √(1 − μθ)
  μ and κ                   γ = μ/κ²        q = √(1 − μ²/κ²)
  θ alone                   γ = 4θ/3        no q < 1; least bound on the residual, 2θ‖x⁰ − x*‖²/((2θ − γ)γ²K)

Forward-backward-forward and extragradient need κ only: they converge for γ < 1/κ. With μ the best step minimises
ρ² = 1 − [1/(2γμ) + 1/(1 − γ²κ²)]⁻¹; without it, γ = 1/(√2 κ) gives the largest decrease γ²(1 − γ²κ²) of the distance.
Where affine constraints Gx ≤ b are shared, B(x, λ) = (F(x) + Gᵀλ, b − Gx) has Lipschitz constant at most κ + ‖G‖.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from epszero._lazy import sp
from epszero._types import FloatArray, PyTree
from epszero.facts.average import AverageFacts
from epszero.oracles import Coupling
from epszero.problems import AffineConstraint

HALVINGS = 60  # of an interval, to the last digit
MANY_ROWS = 2000  # constraints beyond which ‖G‖ is bounded instead of computed


@dataclass(frozen=True)
class StepRange:
    """Steps γ in (0, limit) converge; `best` is the one to take; `because` says what it leans on."""

    best: float
    limit: float
    rate: float  # the factor by which the best step comes nearer to the solution; 1 where none is known
    because: str
    vouched: bool  # by the user: what is beyond the limit is refused


def step_range(known: AverageFacts) -> StepRange | None:
    """The valid steps of forward-backward, None where too little is known."""
    mu, kappa, theta, gradient = known.mu, known.kappa, known.theta, known.gradient
    rates: dict[float, float] = {}  # contraction factor at its best step
    thetas = [theta] if theta is not None else []
    if mu is not None and theta is not None:
        rates[math.sqrt(max(0.0, 1 - mu * theta))] = theta
    if gradient and kappa:
        thetas.append(1 / kappa)
        if mu is not None:
            rates[(kappa - mu) / (kappa + mu)] = 2 / (mu + kappa)
    elif mu is not None and kappa is not None:
        thetas.append(mu / kappa / kappa)
        rates[math.sqrt(max(0.0, 1 - (mu / kappa) ** 2))] = mu / kappa / kappa
    if known.contraction is not None:
        rates[known.contraction[1]] = known.contraction[0]
    if not thetas:
        return None
    best = rates[min(rates)] if rates else 4 * max(thetas) / 3
    return StepRange(best, 2 * max(thetas), min(rates) if rates else 1.0, known.because, known.vouched)


def lipschitz_range(known: AverageFacts, coupling: Coupling | None, x: PyTree) -> StepRange | None:
    """The valid steps of forward-backward-forward and extragradient, None where κ is not known."""
    mu, kappa, rate = known.mu, known.kappa, 1.0
    if kappa is None or kappa == 0:
        return None
    if coupling is not None:
        if not isinstance(coupling, AffineConstraint):
            return None
        mu, kappa = None, kappa + math.sqrt(spectrum(coupling.gram(x)))
    best = 1 / (math.sqrt(2) * kappa)
    if mu is not None:
        best, rate = _best_of_two(mu, kappa)
    return StepRange(best, 1 / kappa, rate, known.because, known.vouched)


@functools.lru_cache(maxsize=1024)
def _best_of_two(mu: float, kappa: float) -> tuple[float, float]:
    """The step with the least ρ, and ρ; sought in units of 1/κ."""
    low, high = 1e-6, 1 - 1e-6  # where 1/(2tm) + 1/(1 − t²), m = μ/κ, is convex, and its derivative changes its sign
    for _ in range(HALVINGS):
        step = (low + high) / 2
        low, high = (low, step) if 4 * (mu / kappa) * step**3 > (1 - step**2) ** 2 else (step, high)
    least = 1 / (2 * high * (mu / kappa)) + 1 / (1 - high**2)
    return high / kappa, math.sqrt(1 - 1 / least)


def spectrum(gram: FloatArray) -> float:
    """The largest eigenvalue of a positive semidefinite matrix, rounded up."""
    return float(np.linalg.eigvalsh(gram)[-1]) * (1 + 1e-12) if len(gram) else 0.0


def scaled_rows(coupling: AffineConstraint, x: PyTree) -> tuple[FloatArray, float]:
    """Lengths of the rows of G (1 for a row of zeros), and ‖DG‖² or a bound on it, D dividing rows by their lengths."""
    if coupling.rows(x) > MANY_ROWS and coupling.linear is None:
        G = coupling.matrix(x)
        largest = _or_one(np.asarray(abs(G).max(axis=1).todense()).ravel())
        rows = sp.diags(1 / largest) @ G  # first so, as squares may overflow or vanish
        lengths = _or_one(np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())) * largest
        size = abs(sp.diags(1 / lengths) @ G)
        return lengths, float(size.sum(axis=0).max() * size.sum(axis=1).max())  # ‖·‖₂² ≤ ‖·‖₁ ‖·‖_∞
    gram = coupling.gram(x)
    lengths = _or_one(np.sqrt(np.diag(gram)))
    return lengths, max(spectrum(gram / np.outer(lengths, lengths)), 1e-300)


def _or_one(lengths: FloatArray) -> FloatArray:
    return np.where(lengths > 0, lengths, 1.0)
