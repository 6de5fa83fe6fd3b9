"""Best responses of many agents, found side by side so that all costs are evaluated in one compiled call.

An agent's solver is a generator: it yields the strategy that it wants to know about and is sent the value, gradient and
Hessian of its cost there. Nothing else of the game reaches it, but for its own set and, where constraints are shared,
what they leave it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import clarabel
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax.flatten_util import ravel_pytree
from scipy.optimize import minimize

from epszero._double import to_numpy
from epszero._types import FloatArray, PyTree
from epszero.functions import Function
from epszero.oracles import Coupling
from epszero.problems._views import Model, View
from epszero.problems.backward import Backward
from epszero.problems.feasible import is_conic, product_form
from epszero.sets._conic import ConicForm, minimise

ROUNDS = 60  # quadratic programmes per agent; a quadratic cost needs one
ENOUGH = 1e-13  # predicted decrease, relative to the size of the cost, at which an agent is done
HALVINGS = 30
KEPT = 1e-10  # violation of shared constraints that counts as none


class Response(NamedTuple):
    """The best that was found for one agent."""

    saving: float
    strategy: FloatArray  # flat


class Tangents(NamedTuple):
    """Shared constraints as one agent meets them: h and its slope at a strategy of its own."""

    value: FloatArray
    slope: FloatArray  # (m, n_i)


Solver = Generator[FloatArray, Model, Response]


def best_responses(problem: Any, view: View, x: PyTree, multipliers: Any, agents: Sequence[int]) -> list[Response]:
    """One for each of these agents, the others held at x."""
    solvers: dict[int, Solver] = {}
    for agent in agents:
        side, tree, own = view.own_side(agent), view.own_tree(x, agent), view.own(x, agent)
        shared = None if problem.coupling is None else _shared(problem.coupling, view, x, agent)
        if _is_conic(side, tree):
            solvers[agent] = _newton(_Conic(product_form(side, tree), shared), own)
        else:
            solvers[agent] = _newton(_Nonsmooth(side, tree, shared, multipliers), own)
    return _driven(view, x, solvers)


def _driven(view: View, x: PyTree, solvers: dict[int, Solver]) -> list[Response]:
    """Answer all agents' questions at once, until none has any more."""
    agents = list(solvers)
    asked = {agent: next(solver) for agent, solver in solvers.items()}
    found: dict[int, Response] = {}
    while len(found) < len(agents):
        y = view.with_owns(x, asked)
        for agent, model in zip(agents, view.models(x, y, agents), strict=True):
            if agent not in found:
                try:
                    asked[agent] = solvers[agent].send(model)
                except StopIteration as over:
                    found[agent] = over.value
    return [found[agent] for agent in agents]


def _is_conic(side: Backward, own: PyTree) -> bool:
    return all(jax.tree.leaves(side.each(lambda part, leaf: is_conic(part, max(np.size(leaf), 1)), own)))


def _newton(limits: "_Conic | _Nonsmooth", start: FloatArray) -> Solver:
    """min f(y) under `limits`, by Newton steps: each minimises a quadratic model of f, then f decides how far to go."""
    y = start
    here = limits.priced((yield y), y)
    first = float(here.value) + limits.extra(y)
    for _ in range(ROUNDS):
        step = limits.step(here, y)
        now = float(here.value) + limits.extra(y)
        predicted = (
            -float(here.gradient @ step + 0.5 * step @ here.hessian @ step) + limits.extra(y) - limits.extra(y + step)
        )
        if abs(predicted) <= ENOUGH * (1 + abs(now)):
            break
        for halving in range(HALVINGS):
            new = y + 0.5**halving * step
            there = limits.priced((yield new), new)
            if float(there.value) + limits.extra(new) <= now + 1e-15 * (1 + abs(now)):
                y, here = new, there
                break
        else:
            break
    return Response(first - float(here.value) - limits.extra(y), y)


def _convex(hessian: FloatArray) -> FloatArray:
    """The symmetric part, lifted where rounding or a cost that is not convex makes it negative."""
    symmetric = (hessian + hessian.T) / 2
    least = float(np.linalg.eigvalsh(symmetric)[0])
    return symmetric if least >= 0 else symmetric + (1e-12 - least) * np.eye(len(symmetric))


# -- sets: quadratic programmes by Clarabel ----------------------------------------------------------------------------


class _Conic:
    """A strategy set in conic form, and what shared constraints leave of it.

    A convex constraint is met by its tangents, each below the function that it touches, gathered on the way; what a
    tangent misses is charged to the cost at a price above the multiplier.
    """

    def __init__(self, form: ConicForm, shared: Callable[[FloatArray], Tangents] | None) -> None:
        self.form, self.shared = form, shared
        self.rows: list[FloatArray] = []
        self.bounds: list[FloatArray] = []
        self.price = 0.0

    def priced(self, model: Model, y: FloatArray) -> Model:
        return model

    def extra(self, y: FloatArray) -> float:
        """What violating the shared constraints is charged with."""
        violated = 0.0 if self.shared is None else float(np.sum(np.maximum(self.shared(y).value - KEPT, 0.0)))
        return self.price * violated

    def step(self, model: Model, y: FloatArray) -> FloatArray:
        hessian, limits = _convex(model.hessian), self._limits(y)
        result = minimise(limits, model.gradient - hessian @ y, hessian)
        if result.status == "unbounded":  # a linear cost on an unbounded set: go far, and see
            hessian = hessian + 1e-6 * np.eye(len(y))
            result = minimise(limits, model.gradient - hessian @ y, hessian)
        if result.status != "solved":
            return np.zeros_like(y)
        self.price = max(self.price, 2 * float(np.max(np.abs(result.dual[len(self.form.b) :]), initial=0.0)))
        return result.x - y

    def _limits(self, y: FloatArray) -> ConicForm:
        form = self.form
        if self.shared is None:
            return form
        value, slope = self.shared(y)
        self.rows.append(slope)
        self.bounds.append(slope @ y - value)
        bound = np.concatenate(self.bounds)
        wide = sp.csr_matrix((len(bound), form.A.shape[1] - form.n))
        A = sp.vstack([form.A, sp.hstack([sp.csr_matrix(np.concatenate(self.rows)), wide])], format="csr")
        cones = (*form.cones, clarabel.NonnegativeConeT(len(bound)))
        return ConicForm(A, np.concatenate([form.b, bound]), cones, form.n)


# -- local functions: L-BFGS by SciPy on the forward-backward envelope -------------------------------------------------


class _Nonsmooth:
    """A local function g, known by its value and prox; shared constraints are priced by their multipliers.

    The quadratic model q plus g is minimised through the envelope E(v) = q(v) − γ/2‖∇q(v)‖² + g^γ(v − γ∇q(v)), which is
    smooth for γ < 1/‖H‖ and has the same minimisers (Stella, Themelis & Patrinos 2017).
    """

    def __init__(
        self, side: Backward, own: PyTree, shared: Callable[[FloatArray], Tangents] | None, multipliers: Any
    ) -> None:
        self.side, self.shared, self.multipliers = side, shared, multipliers
        self.unravel = ravel_pytree(own)[1]

    def priced(self, model: Model, y: FloatArray) -> Model:
        if self.shared is None:
            return model
        value, slope = self.shared(y)
        charge = float(self.multipliers @ value)
        return Model(model.value + charge, model.gradient + slope.T @ self.multipliers, model.hessian)

    def extra(self, y: FloatArray) -> float:
        """g(y)."""
        return float(sum(np.sum(leaf) for leaf in jax.tree.leaves(self.side.each(_local_value, self._tree(y)))))

    def step(self, model: Model, y: FloatArray) -> FloatArray:
        H, gradient = _convex(model.hessian), model.gradient
        top = float(np.linalg.norm(H, 2))
        gamma = 0.9 / top if top > 0 else 1.0

        def envelope(v: FloatArray) -> tuple[float, FloatArray]:
            slope = gradient + H @ (v - y)
            p = self._prox(v - gamma * slope, gamma)
            away = v - p
            value = 0.5 * (v - y) @ H @ (v - y) + gradient @ (v - y) - slope @ away + away @ away / (2 * gamma)
            return value + self.extra(p), (away - gamma * H @ away) / gamma

        found = minimize(envelope, y, jac=True, method="L-BFGS-B",
                         options={"maxiter": 2000, "ftol": 0.0, "gtol": 1e-12})  # fmt: skip
        v = np.asarray(found.x)
        return self._prox(v - gamma * (gradient + H @ (v - y)), gamma) - y

    def _prox(self, v: FloatArray, gamma: float) -> FloatArray:
        return np.asarray(ravel_pytree(self.side.resolvent(self._tree(v), jnp.asarray(gamma)))[0])

    def _tree(self, flat: FloatArray) -> PyTree:
        return to_numpy(self.unravel(jnp.asarray(flat)))


def _local_value(part: Any, leaf: Any) -> Any:
    return part(np.atleast_1d(leaf)) if isinstance(part, Function) else 0.0


# -- shared constraints ------------------------------------------------------------------------------------------------


def _shared(coupling: Coupling, view: View, x: PyTree, agent: int) -> Callable[[FloatArray], Tangents]:
    """h and its slope as functions of the agent's own strategy."""
    size = sum(np.size(leaf) for leaf in jax.tree.leaves(x))
    unravel: Any = ravel_pytree(x)[1]
    columns = view.own(unravel(np.arange(size, dtype=np.float64)), agent).astype(int)

    def tangents(own: FloatArray) -> Tangents:
        value, slope = to_numpy(_linearised(coupling, view.with_own(x, agent, own)))
        return Tangents(value, slope[:, columns])

    return tangents


@eqx.filter_jit
def _linearised(coupling: Coupling, x: PyTree) -> Any:
    flat, unravel = ravel_pytree(x)
    return coupling.value(x), jax.jacrev(lambda v: coupling.value(unravel(v)))(flat)
