"""Davis–Yin, for 0 ∈ A(x) + Hx + C(x): p = J_{γH}(ζ), x = J_{γA}(2p − ζ − γC(p)), ζ⁺ = ζ + x − p.

H is the stiff part of B̂, a matrix that is known and monotone, taken in its resolvent; what is left of B̂, C = B̂ −
H, data included, is taken forward. Converges for C θ-cocoercive and γ < 2θ: the step need not be short for the slopes
of H. C = 0: Douglas–Rachford; H = 0: forward-backward. Residual: z = (2p − ζ − γC(p) − x)/γ ∈ A(x), since x is a
resolvent; ê = z + B̂(x). Cost: two B̂, one resolvent, one solve with a factorisation of I + γH that is kept. ζ⁰ = x⁰.
Source: Davis & Yin, Set-Valued Var. Anal. 25 (2017), Algorithm 1, with λ_k = 1.

Two sets or functions, both in resolvents, are not offered: their two points agree at the end only, so that before it
there is no element of A₁ + A₂ at either of them; `ez.sets.Intersection` projects on both at once.

Stability (docs/theory.md#davis-yin), one Jacobian J for all samples, P = (I + γH)⁻¹, E = γ(J − H)P: q = ½‖I − E‖ +
½‖2P − I − E‖, at the last step ‖2P − I − E‖, and c = γR, as H knows no data.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._checks import known_arguments, one_positive, real_array, refuse
from epszero._points import add, entries, norm, subtract
from epszero._types import FloatArray, PyTree, Real
from epszero.facts import AverageFacts
from epszero.methods._base import Method, State, first_state
from epszero.methods.inner import check_size
from epszero.methods.stability import WITHOUT_STABILITY, MeasuredSteps, Premises, Stability, Unstable
from epszero.methods.steps import Steps
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward


class DavisYin(Method):
    """p = J_{γH}(ζ), x = J_{γA}(2p − ζ − γ(B̂ − H)(p)), ζ⁺ = ζ + x − p; the output is x.

    `implicit`: H, a matrix on the entries of x, one leaf after another; its symmetric part must have no negative
    eigenvalue. `step`: γ, below twice the cocoercivity of B̂ − H.
    """

    static = Method.texts
    steps: Steps
    implicit: FloatArray
    description: str

    @known_arguments
    def __init__(self, step: float, implicit: Real) -> None:
        self.steps = Steps.of(one_positive("step", step))
        H = real_array("implicit", implicit)
        if H.ndim != 2 or H.shape[0] != H.shape[1] or not H.size:
            refuse("implicit", f"must be a square matrix, but its shape is {H.shape}", "Pass one row per entry of x")
        if (least := float(np.linalg.eigvalsh((H + H.T) / 2)[0])) < -1e-12 * float(np.abs(H).max()):
            refuse(
                "implicit",
                f"must be monotone, but its symmetric part has the eigenvalue {least:.4g}",
                "Take a part of B that is monotone",
            )
        self.implicit = H
        self.description = "Davis–Yin"

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.steps.given, "implicit": self.implicit}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "DavisYin":
        check_size(x)
        if (n := entries(x)) != len(self.implicit):
            refuse("implicit", f"has {len(self.implicit)} rows, but x has {n} entries", "Pass one row per entry")
        steps = self.steps.settled(x, None)
        return self._settled(steps=steps, description=f"Davis–Yin, {steps.how}, {n} entries implicit")

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        n = len(self.implicit)
        factors = jax.scipy.linalg.lu_factor(jnp.eye(n) + self.steps.sizes * jnp.asarray(self.implicit))
        return first_state(x, B(x), x, factors)

    def step(self, A: Backward, B: Average, state: State) -> State:
        gamma, zeta = self.steps.sizes, state.x
        vector, nested = ravel_pytree(zeta)
        flat_p = jax.scipy.linalg.lu_solve(state.own, vector)
        p = nested(flat_p)
        C = subtract(B(p), nested(jnp.asarray(self.implicit) @ flat_p))
        w = jax.tree.map(lambda p, zeta, C: 2 * p - zeta - gamma * C, p, zeta, C)
        x = A.resolvent(w, gamma)
        z = jax.tree.map(lambda w, x: (w - x) / gamma, w, x)
        Bx = B(x)
        zeta_next = add(zeta, subtract(x, p))
        return state._replace(k=state.k + 1, x=zeta_next, Bx=Bx, point=x, z=z, residual=norm(add(z, Bx)))

    def last_step(self, state: State) -> PyTree:
        return self.steps.sizes

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """x = J_{γA}(w) and J_{γA} = ½(Id + N), N nonexpansive, so ζ⁺ = (ζ − p + ½w) + ½Nw, all but N affine in ζ."""
        J, H = facts.jacobian, np.asarray(self.implicit)
        if J is None:
            raise Unstable(f"A bound is known where B is affine with one Jacobian for all samples. {WITHOUT_STABILITY}")
        steps = MeasuredSteps(self.steps, facts, iterations)
        gamma, eye = float(steps.longest[0]), np.eye(len(H))
        P = np.linalg.inv(eye + gamma * H)
        E = gamma * (J - H) @ P
        w = float(np.linalg.norm(2 * P - eye - E, 2))
        q = np.array([0.5 * float(np.linalg.norm(eye - E, 2)) + 0.5 * w + 1e-12])
        c = np.array([gamma * facts.R])
        return steps.recursion(q, c, f"q ≤ {q[0]:.6g} from J and H", last=(np.array([w + 1e-12]), c))
