"""Preconditioned forward-backward for shared affine constraints Gx ≤ b, with multipliers λ:

    x⁺ = prox_{αg}(x − α(F̂(x) + Gᵀλ)),   λ⁺ = [λ + β(G(2x⁺ − x) − b)]₊.

It is forward-backward on (F̂, 0) in the metric Φ = [[α⁻¹, −Gᵀ], [−G, β⁻¹]], with Schur complement S = α⁻¹I − GᵀβG ≻ 0.
Assumes F̂ θ-cocoercive; converges for θλ_min(S) > ½, that is, as forward-backward does with γ = 1/λ_min(S) < 2θ. The
dual steps are β_j = ω/‖G_j‖² by default, with ω such that ‖β^½G‖² = 1/γ, so α = γ/2 and no constraint's scale matters.
Backtracking tests γ on F̂ alone: ‖(ΔF, 0)‖ in Φ⁻¹ is ‖ΔF‖ in S⁻¹, at most γ‖ΔF‖².
Residual: z_x = α⁻¹(x − x⁺) − F̂(x) − Gᵀλ ∈ ∂g(x⁺), z_λ = β⁻¹(λ − λ⁺) + G(2x⁺ − x) − b ∈ N_{≥0}(λ⁺), so that
z + B̂(x⁺, λ⁺) = Φ(ω − ω⁺) + (F̂(x⁺) − F̂(x), 0). Cost: one F̂, one resolvent, one product each with G and Gᵀ.
Source: Yi & Pavel, Automatica 102 (2019); Belgioioso & Grammatico (2018); Condat (2013).
"""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, positive, refuse
from epszero._points import add, norm, subtract
from epszero._types import FloatArray, PyTree, Real
from epszero.facts import MANY_ROWS, AverageFacts, declared_only, scaled_rows, spectrum, step_range
from epszero.methods._base import Method, State, first_state, new_or_old, starting_pace
from epszero.methods.backtracking import cocoercive, judged
from epszero.methods.stability import SEARCHED, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps, checked_step, forward_backward
from epszero.oracles import CoupledMean, PrimalDual
from epszero.problems import AffineConstraint, Problem
from epszero.problems.backward import Backward

CONVEX = "ez.ForwardBackwardForward()"  # the method for convex shared constraints


class PreconditionedForwardBackward(Method):
    """x⁺ = prox_{αg}(x − α(F̂(x) + Gᵀλ)), λ⁺ = [λ + β(G(2x⁺ − x) − b)]₊, for shared constraints Gx ≤ b.

    `step`: α, a number, or one per agent (nested like x, or per row). `dual_step`: β, a number, or one per constraint.
    What is left out is chosen from the declared constants, or by backtracking where there are none.
    """

    static = Method.texts
    primal: PyTree  # α; None where it is searched for
    dual: FloatArray | None  # β; None where it is found together with α
    unit: FloatArray | None  # β up to a factor: ‖unit^½ G‖ = 1
    strength: FloatArray | None  # an upper bound on ‖β^½G‖² where β is fixed
    description: str

    @known_arguments
    def __init__(self, step: PyTree = None, dual_step: Real | None = None) -> None:
        if callable(step):
            refuse("step", "cannot change with k here, as the metric would", "Pass a number, or one per agent")
        Steps.of(step)
        self.primal = step
        self.dual = None if dual_step is None else positive("dual_step", dual_step)
        self.unit = self.strength = None
        self.description = "preconditioned forward-backward"

    @property
    def open(self) -> bool:
        return self.primal is None

    @property
    def fixed_point(self) -> bool:
        return self.primal is not None

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.primal, "dual_step": self.dual}

    def prepared(
        self, problem: Problem, x: PyTree, known: AverageFacts | None = None
    ) -> "PreconditionedForwardBackward":
        known = known or declared_only(problem)
        if not isinstance(problem.coupling, AffineConstraint):
            has, other = ("none", "ez.ForwardBackward()") if problem.coupling is None else ("convex ones", CONVEX)
            refuse("method", f"is for shared affine constraints, and this problem has {has}", f"Use {other}")
        steps = step_range(known)
        lengths, top = scaled_rows(problem.coupling, x.x)
        unit = 1 / (lengths**2 * top)
        dual, strength = self._fixed_dual(problem.coupling, x.x, unit)
        if self.primal is not None:
            primal, how = checked_step(self.primal, x.x), "given steps"
        elif steps is not None:
            primal = jnp.asarray(1 / (1 / steps.best + (strength if strength is not None else 1 / steps.best)))
            how = f"step {float(primal):.6g} from {steps.because}"
        else:
            return self._with(None, dual, unit, strength, "steps by backtracking")
        longest = float(Steps(primal).rows(0).max())
        slowest = 0.0 if steps is None else 1 / steps.limit  # 1/(2θ) ≤ λ_min(S) must hold
        if dual is None:
            strength = 0.5 * (1 / longest - slowest)
            dual = unit * max(strength, 0.0)
        if (left := 1 / longest - (strength or 0.0)) <= slowest:
            why = "" if steps is None else f" ({steps.because})"
            refuse(
                "step, dual_step",
                f"1/step − ‖dual_step^½ G‖² must exceed {slowest:.6g}, but it is {left:.6g}{why}",
                "Shorten one of them, or leave both out",
            )
        return self._with(primal, dual, unit, strength, how)

    def init(self, A: Backward, B: CoupledMean, x: PrimalDual) -> State:  # pyright: ignore[reportIncompatibleMethodOverride]
        Fx = B.base(x.x)
        pace = starting_pace(B.base, x.x, Fx) if self.primal is None else None
        return first_state(x, B(x), None, (pace, Fx))

    def step(self, A: Backward, B: CoupledMean, state: State) -> State:  # pyright: ignore[reportIncompatibleMethodOverride]
        (x, lam), (pace, Fx) = state.x, state.own
        slope, slack = state.Bx  # F̂(x) + Gᵀλ and b − Gx
        alpha, beta = self._metric(None if pace is None else pace.step)
        x_next, z_x = forward_backward(A.block("x"), x, slope, alpha)
        Fx_next, slack_next = B.base(x_next), -B.coupling.value(x_next)
        y = lam + beta * (slack - 2 * slack_next)  # λ + β(G(2x⁺ − x) − b)
        lam_next = jnp.maximum(y, 0.0)
        z = PrimalDual(z_x, (y - lam_next) / beta)
        Bx_next = PrimalDual(add(Fx_next, B.coupling.pull(x_next, lam_next)), slack_next)
        residual, own = norm(add(z, Bx_next)), (pace, Fx_next)
        new = State(state.k + 1, PrimalDual(x_next, lam_next), Bx_next, None, z, residual, state.stuck, own)
        if pace is None:
            return new
        judgement = judged(pace, cocoercive(subtract(x_next, x), subtract(Fx_next, Fx), Fx_next))
        pace = judgement.pace
        return new_or_old(judgement, new._replace(own=(pace, Fx_next)), state._replace(own=(pace, Fx)))

    def last_step(self, state: State) -> PyTree:
        return self._metric(None if self.primal is not None else state.own[0].used)[0]

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """In the norm of Φ: q of forward-backward with γ = 1/λ_min(S) and B = (F, 0), c = √γ R; the facts are F's."""
        if self.primal is None or self.dual is None or self.strength is None:
            raise Unstable(SEARCHED)
        a, beta = 1 / float(Steps(self.primal).rows(0).max()), float(np.asarray(self.dual).max())
        g = float(self.strength)  # ≥ ‖β^½G‖², so λ_min(S) ≥ a − g
        mu = None if facts.mu is None else min(facts.mu, 0.0)  # (F, 0) is monotone at best
        steps = MeasuredSteps(Steps(1 / (a - g)), replace(facts, mu=mu, jacobian=None), iterations)
        (q, because), c = steps.forward(), np.sqrt(steps.longest) * facts.R
        # ‖(x, λ)‖²_Φ ≥ a‖x‖² − 2√(g/β)‖x‖‖λ‖ + ‖λ‖²/β ≥ least · ‖(x, λ)‖²
        least = 2 * (a - g) / (1 + a * beta + np.sqrt((1 - a * beta) ** 2 + 4 * g * beta))
        return replace(steps.recursion(q, c, because, last=(q, c)), scale=float(1 / np.sqrt(least)))

    def _metric(self, gamma: Any) -> tuple[PyTree, Any]:
        """α and β; where they are searched for, those with λ_min(S) = 1/γ."""
        if gamma is None:
            return self.primal, jnp.asarray(self.dual)
        if self.dual is None:
            return gamma / 2, self.unit / gamma
        return 1 / (1 / gamma + self.strength), jnp.asarray(self.dual)

    def _fixed_dual(self, coupling: AffineConstraint, x: PyTree, unit: FloatArray) -> tuple[Any, float | None]:
        """β as given, one per constraint, and ‖β^½G‖² (an upper bound where there are many constraints)."""
        if self.dual is None:
            return None, None
        if self.dual.ndim and self.dual.shape != unit.shape:
            refuse(
                "dual_step",
                f"must be a number or one per constraint, {len(unit)} of them, but its shape is {self.dual.shape}",
                "Leave it out, or pass one per constraint",
            )
        dual = np.broadcast_to(self.dual, unit.shape)
        if len(dual) > MANY_ROWS:
            return dual, float(np.max(dual / unit))
        root = np.sqrt(dual)
        return dual, spectrum(root[:, None] * coupling.gram(x) * root)

    def _with(
        self, primal: PyTree, dual: FloatArray | None, unit: FloatArray, strength: float | None, how: str
    ) -> "PreconditionedForwardBackward":
        description = f"preconditioned forward-backward, {how}"
        return self._settled(primal=primal, dual=dual, unit=unit, strength=strength, description=description)
