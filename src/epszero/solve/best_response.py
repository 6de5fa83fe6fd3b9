"""Best responses of many agents, found side by side so that all costs are evaluated in one compiled call.

An agent's solver is a generator: it yields the strategy that it wants to know about and is sent the value, gradient and
Hessian of its cost there. Nothing else of the game reaches it, but for its own set and, where constraints are shared,
what they leave it. A convex shared constraint is met by its tangents, each below the function that it touches, gathered
on the way; what a tangent misses is charged to the cost at a price above its multiplier. Where x itself violates a
constraint a little, no response may violate it more. A cost that is not quadratic is searched from several strategies,
as Newton's method is sure to find the best only if it is convex; and every cost from the best strategy seen along lines
through the domain, as its derivatives do not know of jumps.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from epszero._double import to_numpy
from epszero._lazy import sp
from epszero._points import flat_of
from epszero._types import FloatArray, PyTree
from epszero.functions import Function
from epszero.oracles import Coupling
from epszero.problems.backward import Backward
from epszero.problems.feasible import is_conic, points_around, product_form
from epszero.problems.lines import best_along
from epszero.problems.views import Model, View
from epszero.sets.conic import ConicForm, minimise

ROUNDS = 60  # quadratic models per agent; a quadratic cost needs one
ENOUGH = 1e-13  # predicted decrease, relative to the size of the cost, at which an agent is done
HALVINGS = 30
KEPT = 1e-12  # violation of shared constraints that counts as none
PENALTIES = 25  # rounds of the augmented Lagrangian for local functions


class Response(NamedTuple):
    """The best that was found for one agent."""

    saving: float  # NaN where the solver failed
    strategy: FloatArray  # flat


class Tangents(NamedTuple):
    """Shared constraints as one agent meets them: h and its slope at a strategy of its own."""

    value: FloatArray
    slope: FloatArray  # (m, n_i)


Solver = Generator[FloatArray, Model, Response]


def best_responses(problem: Any, view: View, x: PyTree, agents: Sequence[int]) -> list[Response]:
    """One for each of these agents, the others held at x."""
    solvers: dict[int, Solver] = {}
    here = view.values(x, x)
    seen = best_along(lambda y: view.values(x, y), problem.strategies, x)
    for agent in agents:
        side, tree, own = view.own_side(agent), view.own_tree(x, agent), view.own(x, agent)
        shared = None if problem.coupling is None else _shared(problem.coupling, view, x, agent)
        form = product_form(side, tree) if _is_conic(side, tree) else None
        starts = [own] if view.own_hessian_is_constant(agent, x) else _starts(side, tree)
        value, where = seen[agent]
        if value < here[agent]:
            starts.append(view.own(where, agent))

        def limits(side: Backward = side, tree: PyTree = tree, shared: Any = shared, form: Any = form) -> Limits:
            return Local(side, tree, shared) if form is None else Conic(form, shared)

        solvers[agent] = _best_of(limits, starts)
    return _driven(view, x, solvers)


def _starts(side: Backward, tree: PyTree) -> list[FloatArray]:
    """The strategy at hand, some near and some far from it on either side, and those between."""
    near, far = points_around(side, tree), points_around(side, tree, spread=100.0)
    return [flat_of(point) for point in (*near, *far[1:])]


def _best_of(limits: Callable[[], "Limits"], starts: list[FloatArray]) -> Solver:
    """The best response found from any of the starts, of which the first is the strategy at hand."""
    first, *others = starts
    best: Response = yield from _newton(limits(), first, first)
    for start in others:
        found: Response = yield from _newton(limits(), start, first)
        if found.saving > best.saving or np.isnan(best.saving):
            best = found
    return best


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


def _newton(limits: "Limits", start: FloatArray, now_at: FloatArray) -> Solver:
    """min f(y) under `limits`, by Newton steps: each minimises a quadratic model of f, then f decides how far to go."""
    at_hand: Model = yield now_at
    first = float(at_hand.value) + limits.local(now_at)
    limits.allow(now_at)
    y = start
    here: Model = yield y
    for _ in range(ROUNDS):
        step = limits.step(here, y)
        if step is None:
            return Response(np.nan, y)
        now = float(here.value) + limits.extra(y)
        change = float(here.gradient @ step + 0.5 * step @ here.hessian @ step)
        if abs(limits.extra(y) - limits.extra(y + step) - change) <= ENOUGH * (1 + abs(now)):
            break
        for halving in range(HALVINGS):
            new = y + 0.5**halving * step
            there: Model = yield new
            if float(there.value) + limits.extra(new) <= now + 1e-15 * (1 + abs(now)):
                y, here = new, there
                break
        else:
            break
    saving = first - float(here.value) - limits.local(y)
    if limits.violation(y) > 1e-6 * (1 + limits.violation(now_at)):  # it did not find back: no answer from this start
        return Response(np.nan, y)
    return Response(0.0, now_at) if saving <= 0 else Response(saving, y)


class Limits(ABC):
    """What an agent may do: its own set or local function, and what shared constraints leave it."""

    def __init__(self, shared: Callable[[FloatArray], Tangents] | None) -> None:
        self.shared = shared
        self.rows: list[FloatArray] = []
        self.bounds: list[FloatArray] = []
        self.price = 0.0  # of violating a shared constraint
        self.allowed: Any = 0.0  # by how much each may be violated

    @abstractmethod
    def minimiser(self, model: Model, hessian: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """argmin of the quadratic model within the limits and tangents, and the tangents' multipliers."""

    def local(self, y: FloatArray) -> float:
        """g(y), 0 on a set."""
        del y
        return 0.0

    def allow(self, y: FloatArray) -> None:
        """Let shared constraints be violated as much as they are at y, not more."""
        if self.shared is not None:
            self.allowed = np.maximum(self.shared(y).value, 0.0)

    def violation(self, y: FloatArray) -> float:
        """Of the shared constraints, beyond what is allowed, summed."""
        return 0.0 if self.shared is None else float(np.sum(np.maximum(self.shared(y).value - self.allowed, 0.0)))

    def extra(self, y: FloatArray) -> float:
        """What comes on top of the smooth cost: g(y), and the price of violation."""
        return self.local(y) + self.price * max(self.violation(y) - KEPT, 0.0)

    def step(self, model: Model, y: FloatArray) -> FloatArray | None:
        """From y to the minimiser of the model; None where the solver fails."""
        if self.shared is not None:
            value, slope = self.shared(y)
            self.rows.append(slope)
            self.bounds.append(slope @ y - value + self.allowed)
        symmetric = (model.hessian + model.hessian.T) / 2
        least = float(np.linalg.eigvalsh(symmetric)[0])
        if least < 0:  # rounding, or a cost that is not convex
            symmetric = symmetric + (1e-12 - least) * np.eye(len(y))
        found = self.minimiser(model, symmetric, y)
        if found is None:
            return None
        self.price = max(self.price, 2 * float(np.max(np.abs(found[1]), initial=0.0)))
        return found[0] - y


# -- sets: quadratic programmes by Clarabel ----------------------------------------------------------------------------


class Conic(Limits):
    """A strategy set in conic form."""

    def __init__(self, form: ConicForm, shared: Callable[[FloatArray], Tangents] | None) -> None:
        super().__init__(shared)
        self.form = form

    def minimiser(self, model: Model, hessian: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        form = self._with_tangents()
        result = minimise(form, model.gradient - hessian @ y, hessian)
        if result.status == "unbounded":  # a linear cost on an unbounded set: go far, and see
            hessian = hessian + 1e-6 * np.eye(len(y))
            result = minimise(form, model.gradient - hessian @ y, hessian)
        return (result.x, result.dual[len(self.form.b) :]) if result.status == "solved" else None

    def _with_tangents(self) -> ConicForm:
        form = self.form
        if not self.rows:
            return form
        bound = np.concatenate(self.bounds)
        wide = sp.csr_matrix((len(bound), form.A.shape[1] - form.n))
        A = sp.vstack([form.A, sp.hstack([sp.csr_matrix(np.concatenate(self.rows)), wide])], format="csr")
        import clarabel  # noqa: PLC0415  (only where a conic programme is solved)

        cones = (*form.cones, clarabel.NonnegativeConeT(len(bound)))
        return ConicForm(A, np.concatenate([form.b, bound]), cones, form.n)


# -- local functions: L-BFGS by SciPy on the forward-backward envelope -------------------------------------------------


class Local(Limits):
    """A local function g, known by its value and prox.

    A smooth q plus g is minimised through the envelope E(v) = q(v) − γ/2‖∇q(v)‖² + g^γ(v − γ∇q(v)), which is smooth for
    γ < 1/‖∇²q‖ and has the same minimisers (Stella, Themelis & Patrinos 2017). The newest tangents Cy ≤ d enter q by an
    augmented Lagrangian: ρ/2 ‖[Cy − d + m/ρ]₊‖², with the multipliers m updated between the runs.
    """

    def __init__(self, side: Backward, own: PyTree, shared: Callable[[FloatArray], Tangents] | None) -> None:
        super().__init__(shared)
        self.side = side
        self.unravel = ravel_pytree(own)[1]

    def local(self, y: FloatArray) -> float:
        return float(sum(np.sum(leaf) for leaf in jax.tree.leaves(self.side.each(_local_value, self._tree(y)))))

    def minimiser(self, model: Model, hessian: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        n = len(y)
        C, d = (self.rows[-1], self.bounds[-1]) if self.rows else (np.zeros((0, n)), np.zeros(0))  # the newest tangents
        top, size = float(np.linalg.norm(hessian, 2)), float(np.linalg.norm(C, 2)) if len(C) else 0.0
        rho = 10 * max(top, 1e-8) / size**2 if size > 0 else 1.0
        m, v = np.zeros(len(d)), y
        for _ in range(PENALTIES if size > 0 else 1):
            v = self._smoothed(model.gradient, hessian, y, (C, d, m, rho), v)
            missed = C @ v - d
            m, before = np.maximum(m + rho * missed, 0.0), m
            if np.abs(m - before).max(initial=0.0) <= 1e-11 * (1 + np.abs(m).max(initial=0.0)):
                break
        return v, m

    def _smoothed(
        self,
        gradient: FloatArray,
        H: FloatArray,
        y: FloatArray,
        penalty: tuple[Any, Any, Any, float],
        start: FloatArray,
    ) -> FloatArray:
        """argmin of gᵀ(v − y) + ½(v − y)ᵀH(v − y) + ρ/2‖[Cv − d + m/ρ]₊‖² + g(v)."""
        C, d, m, rho = penalty
        top = float(np.linalg.norm(H + rho * C.T @ C, 2))
        gamma = 0.9 / top if top > 0 else 1.0

        def smooth(v: FloatArray) -> tuple[float, FloatArray, FloatArray]:
            over = np.maximum(C @ v - d + m / rho, 0.0)
            value = gradient @ (v - y) + 0.5 * (v - y) @ H @ (v - y) + 0.5 * rho * over @ over
            active = C[over > 0]
            return float(value), gradient + H @ (v - y) + rho * C.T @ over, H + rho * active.T @ active

        def envelope(v: FloatArray) -> tuple[float, FloatArray]:
            value, slope, curvature = smooth(v)
            p = self._prox(v - gamma * slope, gamma)
            away = v - p
            value = value - slope @ away + away @ away / (2 * gamma) + self.local(p)
            return float(value), away / gamma - curvature @ away

        from scipy.optimize import minimize  # noqa: PLC0415  (slow to import)

        found = minimize(
            envelope, start, jac=True, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 0.0, "gtol": 1e-12}
        )
        v = np.asarray(found.x)
        return self._prox(v - gamma * smooth(v)[1], gamma)

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
