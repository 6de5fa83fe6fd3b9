"""Condat–Vũ, for two blocks that turn around each other, B̂(x, y) = (F̂(x) + L̂ᵀy, Ĝ(y) − L̂x), with adaptive restarts:

    x⁺ = J_{τA₁}(x − τB̂₁(x, y)),   y⁺ = J_{σA₂}(y − σB̂₂(2x⁺ − x, y)).

It is forward-backward on C = (F̂, Ĝ) in the metric Φ = [[τ⁻¹, −L̂ᵀ], [−L̂, σ⁻¹]]: converges for C cocoercive in it,
which 1/τ − σ‖L̂‖² ≥ κ_F/2 (and the same for σ) ensures. The blocks are two players, or strategies and the multipliers
of shared constraints. C = 0: Chambolle–Pock. Residual: z₁ = (x − x⁺)/τ − B̂₁(x, y) ∈ A₁(x⁺), z₂ = (y − y⁺)/σ −
B̂₂(2x⁺ − x, y) ∈ A₂(y⁺). Restarts: every `LOOK` steps a step is made from the mean of the points since the last
restart. Where the better of it and the run has a fifth of the residual at the last restart, or half of all steps have
passed since, the run goes on from the better one and takes its mean anew. Cost: two B̂ and one resolvent. Source:
Condat, J. Optim. Theory Appl. 158 (2013); Vũ, Adv. Comput. Math. 38 (2013); Chambolle & Pock (2011), Algorithm 1;
restarts: Applegate, Hinder, Lu & Lubin, Math. Program. 201 (2023).

Stability (docs/theory.md#condat-vu), without restarts, which follow the data, and with one Jacobian for all samples:
q = ‖I − Φ^{-½}CΦ^{-½}‖ in the norm of Φ, c = R/√λ_min(Φ).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from epszero._checks import known_arguments, one_positive, refuse
from epszero._points import add, entries, norm
from epszero._types import Array, FloatArray, PyTree
from epszero.facts import AverageFacts, declared_only, lipschitz_range
from epszero.methods._base import Method, State, first_state
from epszero.methods.stability import WITHOUT_STABILITY, Premises, Stability, Unstable
from epszero.methods.steps import forward_backward
from epszero.oracles import Average, strategies
from epszero.problems import Problem
from epszero.problems.backward import Backward

LOOK = 32  # steps between two looks at the mean
ENOUGH = 0.2  # of the residual at the last restart
LONG = 0.5  # of all steps


class Epoch(NamedTuple):
    """What happened since the last restart."""

    total: PyTree  # of the points
    steps: Array
    residual: Array  # at its start


class CondatVu(Method):
    """x⁺ = J_{τA₁}(x − τB̂₁(x, y)), y⁺ = J_{σA₂}(y − σB̂₂(2x⁺ − x, y)), for points (x, y) of two blocks.

    `step`: τ; `dual_step`: σ; both are chosen where κ of B̂ is known. `restarts`: whether to go on from means where
    it helps.
    """

    static = ("restarts", "first", *Method.texts)
    stackable = False
    title = "Condat–Vũ"
    part = 0.75  # of 1/κ: 1/τ − τκ² ≥ κ/2, whatever F̂ and L̂ are
    tau: FloatArray | None
    sigma: FloatArray | None
    restarts: bool
    first: int  # entries of x, once settled
    description: str

    @known_arguments
    def __init__(self, step: float | None = None, dual_step: float | None = None, restarts: Any = True) -> None:
        if not isinstance(restarts, bool):
            refuse("restarts", f"must be True or False, but it is {restarts!r}", "Pass one of them")
        self.tau = None if step is None else np.asarray(one_positive("step", step))
        self.sigma = None if dual_step is None else np.asarray(one_positive("dual_step", dual_step))
        self.restarts, self.first = restarts, 0
        self.description = self.title

    @property
    def open(self) -> bool:
        return self.tau is None or self.sigma is None

    @property
    def settings(self) -> dict[str, Any]:
        return {"step": self.tau, "dual_step": self.sigma, "restarts": self.restarts}

    def prepared(self, problem: Problem, x: PyTree, known: AverageFacts | None = None) -> "CondatVu":
        if not (isinstance(x, list | tuple) and len(x) == 2 and isinstance(problem.placed.parts, list | tuple)):
            refuse("method", f"{self.title} is for points of two blocks", "Use ez.ForwardBackwardForward()")
        found = lipschitz_range(known or declared_only(problem), problem.coupling, strategies(x))
        if self.open and found is None:
            refuse("step, dual_step", "are left out, and no Lipschitz constant of B is known", "Pass both")
        tau, sigma = (np.asarray(self.part * found.limit) if s is None else s for s in (self.tau, self.sigma))  # pyright: ignore[reportOptionalMemberAccess]
        said = f"{self.title}, steps {float(tau):.6g} and {float(sigma):.6g}{', restarted' if self.restarts else ''}"
        return self._settled(tau=tau, sigma=sigma, first=entries(x[0]), description=said)

    def init(self, A: Backward, B: Average, x: PyTree) -> State:
        none = jax.tree.map(jnp.zeros_like, x)
        return first_state(x, B(x), None, Epoch(none, jnp.asarray(0), jnp.asarray(jnp.inf)))

    def step(self, A: Backward, B: Average, state: State) -> State:
        new = self._plain(A, B, state.x, state.Bx, state)
        return self._restarted(A, B, new) if self.restarts else new

    def _plain(self, A: Backward, B: Average, point: PyTree, value: PyTree, state: State) -> State:
        (x, y), (Bx, _) = point, value
        x_next, z_x = forward_backward(_side(A, 0), x, Bx, self.tau)
        ahead = jax.tree.map(lambda new, old: 2 * new - old, x_next, x)
        y_next, z_y = forward_backward(_side(A, 1), y, B(_like(point, ahead, y))[1], self.sigma)
        after, z = _like(point, x_next, y_next), _like(point, z_x, z_y)
        B_next = B(after)
        return state._replace(k=state.k + 1, x=after, Bx=B_next, z=z, residual=norm(add(z, B_next)))

    def _restarted(self, A: Backward, B: Average, state: State) -> State:
        epoch = state.own
        start = jnp.where(jnp.isinf(epoch.residual), state.residual, epoch.residual)
        epoch = Epoch(add(epoch.total, state.x), epoch.steps + 1, start)
        state = state._replace(own=epoch)

        def looked(state: State) -> State:
            mean = jax.tree.map(lambda total: total / epoch.steps, epoch.total)
            other = self._plain(A, B, mean, B(mean), state)._replace(k=state.k)
            better = other.residual < state.residual
            best = jax.tree.map(lambda a, b: jnp.where(better, a, b), other, state)
            due = (best.residual <= ENOUGH * start) | (epoch.steps >= LONG * state.k)
            fresh = Epoch(jax.tree.map(jnp.zeros_like, epoch.total), jnp.asarray(0), best.residual)
            return jax.tree.map(lambda a, b: jnp.where(due, a, b), best._replace(own=fresh), state)

        return jax.lax.cond(epoch.steps % LOOK == 0, looked, lambda state: state, state)

    def last_step(self, state: State) -> PyTree:
        return jnp.asarray(self.tau)

    def stability(self, facts: Premises, iterations: int) -> Stability:
        """In the norm of Φ; λ_min(Φ)^{-½} times that is the Euclidean one."""
        J, n, K = facts.jacobian, self.first, iterations
        if self.restarts:
            raise Unstable(f"When it restarts follows the data. Pass restarts=False. {WITHOUT_STABILITY}")
        if J is None or not np.allclose(J[n:, :n], -J[:n, n:].T, rtol=0, atol=1e-12 * np.abs(J).max()):
            raise Unstable(f"A bound is known where all samples have one Jacobian, with Lᵀ and −L. {WITHOUT_STABILITY}")
        Phi = np.diag(np.append(np.full(n, 1 / float(self.tau)), np.full(len(J) - n, 1 / float(self.sigma))))  # pyright: ignore[reportArgumentType]
        Phi[n:, :n], Phi[:n, n:] = J[n:, :n], J[n:, :n].T
        values, vectors = np.linalg.eigh(Phi)
        if values[0] <= 0:
            raise Unstable("The steps are too long: τσ‖L‖² must be below 1. Shorten one of them.")
        C, half = np.array(J), vectors / np.sqrt(values) @ vectors.T
        C[n:, :n] = C[:n, n:] = 0.0
        q, scale = float(np.linalg.norm(np.eye(len(J)) - half @ C @ half, 2)), 1 / float(np.sqrt(values[0]))
        return Stability(np.full(K + 1, q), np.full(K + 1, scale * facts.R), scale, because=f"q ≤ {q:.6g} in Φ's norm")


def _side(A: Backward, place: int) -> Backward:
    return A.replaced(parts=A.parts[place])


def _like(point: PyTree, x: PyTree, y: PyTree) -> PyTree:
    """(x, y), nested like a point."""
    return type(point)(x, y) if hasattr(point, "_fields") else type(point)((x, y))
