"""Which steps of forward-backward converge, and which is best, from the constants at hand.

x ↦ J_{γA}(x − γB(x)) is averaged for γ < 2θ when B is θ-cocoercive (Bauschke & Combettes, Prop. 26.1). What is known of
B gives θ: declared; 1/κ for the gradient of a convex function (Baillon–Haddad); μ/κ² for a μ-strongly monotone,
κ-Lipschitz operator. The best step minimises the contraction factor q of THEORY section 2:
  gradient, μ and κ         γ = 2/(μ + κ)   q = (κ − μ)/(κ + μ)
  μ and θ                   γ = θ           q = √(1 − μθ)
  μ and κ                   γ = μ/κ²        q = √(1 − μ²/κ²)
  θ alone                   γ = 4θ/3        no q < 1; least bound on the residual, 2θ‖x⁰ − x*‖²/((2θ − γ)γ²K)
"""

import math
from dataclasses import dataclass

from epszero.problems import Problem


@dataclass(frozen=True)
class StepRange:
    """Steps γ in (0, limit) converge; `best` is the one to take; `because` says what it leans on."""

    best: float
    limit: float
    because: str


def step_range(problem: Problem) -> StepRange | None:
    """The valid steps of forward-backward, None where too little is known."""
    mu, kappa, theta = problem.declared.mu, problem.declared.kappa, problem.declared.theta
    said = ", ".join(f"{name} = {value:g}" for name, value in vars(problem.declared).items() if value is not None)
    rates: dict[float, float] = {}  # contraction factor at its best step
    thetas = [theta] if theta is not None else []
    if mu is not None and theta is not None:
        rates[math.sqrt(max(0.0, 1 - mu * theta))] = theta
    if problem.is_gradient and kappa is not None:
        thetas.append(1 / kappa)
        if mu is not None:
            rates[(kappa - mu) / (kappa + mu)] = 2 / (mu + kappa)
    elif mu is not None and kappa is not None:
        thetas.append(mu / kappa**2)
        rates[math.sqrt(1 - (mu / kappa) ** 2)] = mu / kappa**2
    if not thetas:
        return None
    best = rates[min(rates)] if rates else 4 * max(thetas) / 3
    return StepRange(best, 2 * max(thetas), said)
