"""Chambolle–Pock, for two blocks that only turn: x⁺ = J_{τA₁}(x − τ(Lᵀy + a)), y⁺ = J_{σA₂}(y + σ(L(2x⁺ − x) − b)).

Condat–Vũ (condat_vu.py, with its restarts, residual and stability) for B̂(x, y) = (L̂ᵀy + â, b̂ − L̂x), which allows
longer steps: converges for τσ‖L̂‖² < 1. With restarts linearly on matrix games over polyhedra, where the plain method
has rate 1/k. Cost: two B̂ and one resolvent. Source: Chambolle & Pock, J. Math. Imaging Vis. 40 (2011), Algorithm 1
with θ = 1.
"""

from epszero.methods.condat_vu import CondatVu


class ChambollePock(CondatVu):
    """x⁺ = J_{τA₁}(x − τB̂₁(y)), y⁺ = J_{σA₂}(y − σB̂₂(2x⁺ − x)), for zero-sum games with bilinear payoffs.

    `step`: τ; `dual_step`: σ; both are 0.99/κ where κ of B̂ is known. `restarts`: whether to go on from means where
    it helps.
    """

    title = "Chambolle–Pock"
    part = 0.99  # of 1/κ = 1/‖L̂‖
