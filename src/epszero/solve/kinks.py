"""Minimisation of a loss with kinks, to optimality: recognised from its operations, solved as a programme.

    min (1/s) Σ f(x, ξ_i) + g(x),   f = smooth + Σ_k w_k(ξ)·max_b (affine in x, and in other kinks)
The kinks are read from the traced loss (_trace/kinks.py) and put into numbers (solve/tables.py); functions on the known
side are read the same way, sets give their conic form. Linear throughout: a linear programme; a quadratic smooth part:
a quadratic one; any other smooth part: quadratic programmes around the point reached, each with a line search (proximal
Newton: Lee, Sun & Saunders 2014). What a solver finds only says where to look: x is put into dom A by the resolvent,
z = (y − J(y))/γ at y = x − γg is an element of A there, g is a true element of ∂f̂(x), and ‖z + g‖ is computed.
Assumes that the sample average is convex, which is asked of its numbers; where it is not, or something on the way is
not followed, the usual methods run and `kink_note` says what was in the way.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from epszero._double import to_numpy
from epszero._points import add, flat, flat_of, norm, shaped_like, subtract
from epszero._trace.kinks import Unread
from epszero._types import FloatArray, PyTree
from epszero.methods import Method
from epszero.oracles import Average
from epszero.problems import Problem
from epszero.problems.backward import Backward
from epszero.sets import Set
from epszero.solve.balance import nearest_shares
from epszero.solve.landing import landed
from epszero.solve.pieces import Subgradient
from epszero.solve.programme import Found, solved
from epszero.solve.recognised import Case, case_of
from epszero.solve.request import Request
from epszero.solve.setup import Setting, values_of
from epszero.solve.solution import Solution, Trace
from epszero.solve.status import Status
from epszero.solve.tables import NotConvex, refuse_bent

RELATIVE = 1e-9  # of the size of what is added up: the residual of an answer, where the user gives no tol
ROUNDS = 60  # quadratic programmes around the point reached
HALVINGS = 40
STILL = 1e-13  # of the size of x: it does not move any more
ROUNDING = 64 * float(np.finfo(np.float64).eps)  # of the largest entry: the resolvent leaves x where it is
NEARBY = 1e-9  # of the same: the resolvent's element may belong to x itself
REMEDY = "Write it as a sum of maxima of affine functions of x with weights ≥ 0, or smooth it (jax.nn.softplus, Huber)"


def answered(request: Request, setting: Setting) -> Solution | None:
    """The solution of a minimisation whose kinks are recognised; None for all other problems, and other requests."""
    if request.method is not None or not request.wants_tol:
        return None
    case = case_of(request.problem, values_of(setting.samples), setting.point)
    if not isinstance(case, Case):
        return None
    found = _newton(case, flat_of(setting.point)) if case.bends else _once(case)
    return None if found.failed else _solution(request, setting, case, found)


def at_a_jump(problem: Problem, data: PyTree, x: PyTree, B: Average) -> bool:
    """Whether the loss has kinks, and its gradient jumps at x: then what is left of a residual there is no rounding.

    A gradient that only bends changes ten times as much ten times as far away.
    """
    if case_of(problem, data, x) is None:
        return False
    with jax.enable_x64(True):
        near, far = (float(_change(B, x, np.asarray(size))) for size in (1e-10, 1e-9))
    return near > 0.3 * far


@eqx.filter_jit
def _change(B: Average, x: PyTree, size: Any) -> Any:
    """‖B̂(x + d) − B̂(x − d)‖, d of `size` beside the largest entry of x."""
    reach = size * jnp.maximum(jnp.max(jnp.abs(flat(x))), 1e-3)
    away = jax.tree.map(lambda leaf: reach * (2 + jnp.cos(jnp.arange(leaf.size)).reshape(leaf.shape)), x)
    return norm(subtract(B(add(x, away)), B(subtract(x, away))))


def kink_note(problem: Problem, data: PyTree, x: PyTree, *, named: bool) -> list[str]:
    """What a run that ended badly should know of kinks in the loss. `named`: the user chose the method."""
    case = case_of(problem, data, x)
    if case is None:
        return []
    if isinstance(case, Unread):
        return [f"The loss has {case}. {REMEDY}."]
    kink = case.kinks.pieces[0]
    if named:
        said = "is solved to optimality if method is left out, and iterations too"
        return [f"The loss has a kink ({kink}), at which a gradient says little; it {said}."]
    found = _newton(case, flat_of(x)) if case.bends else _once(case)
    return [f"The loss has kinks ({kink}) and was tried as a programme: {found.failed}."] if found.failed else []


# -- solving -----------------------------------------------------------------------------------------------------------


def _once(case: Case) -> Found:
    """Smooth parts that are at most quadratic."""
    both = (case.loss.smooth, case.local.smooth)
    bent = [one.hessian for one in both if one.hessian is not None]
    return solved(case.rows.with_model(both[0].slope + both[1].slope, sum(bent[1:], start=bent[0]) if bent else None))


def _newton(case: Case, x: FloatArray) -> Found:
    """Quadratic programmes around x, and a line search, until x stays."""
    value = _total(case)
    here = value(x)
    found = Found(x, np.zeros(0), "", "it has no value, or no slope, at a point on the way")
    for _ in range(ROUNDS):
        slope, hessian = _model(case, x)
        if not (np.isfinite(here) and np.isfinite(slope).all()):
            return found
        try:
            refuse_bent(hessian)
        except NotConvex as reason:
            return Found(x, np.zeros(0), "", str(reason))
        found = solved(case.rows.with_model(slope - hessian @ x, hessian))
        if found.failed:
            return found
        step = found.v[: len(x)] - x
        if np.linalg.norm(step) <= STILL * (np.linalg.norm(x) + np.linalg.norm(found.v[: len(x)])):
            return found
        for halving in range(HALVINGS):
            new = x + 0.5**halving * step
            there = value(new)
            if there <= here:
                x, here = new, there
                break
        else:
            return found
    return found


def _model(case: Case, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and Hessian of the smooth parts at x."""
    slope, hessian = np.zeros(len(x)), np.zeros((len(x), len(x)))
    for one in (case.loss.smooth, case.local.smooth):
        if one.model is not None:
            _, more, bend = one.model(x)
            slope, hessian = slope + more, hessian + bend
        else:
            slope = slope + one.gradient(x)
            hessian = hessian + (0.0 if one.hessian is None else one.hessian)
    return slope, (hessian + hessian.T) / 2


def _total(case: Case) -> Callable[[FloatArray], float]:
    """f̂ + g on the domain."""

    def value(x: FloatArray) -> float:
        total = 0.0
        for one in (case.loss, case.local):
            smooth = one.smooth
            if smooth.model is not None:
                total += smooth.model(x)[0]
            else:
                total += float(smooth.slope @ x) + (
                    0.0 if smooth.hessian is None else 0.5 * float(x @ smooth.hessian @ x)
                )
            total += float(np.sum(one.omega * one.at(x).tau))
        return total if np.isfinite(total) else np.inf

    return value


# -- facts -------------------------------------------------------------------------------------------------------------


def _solution(request: Request, setting: Setting, case: Case, found: Found) -> Solution:
    """From where the solver looked: a point of the domain, elements of A and ∂f̂ there, and the residual."""
    x = found.v[: case.rows.n]
    tol = RELATIVE * case.loss.size(x) if request.tol is None else float(request.tol)
    best = _elements(case, x, case.rows.shares(found.y)[0], case.rows.normal(found.y))
    if best.residual > tol:  # where the solver's accuracy is not enough
        best = min(best, _landed(case, x, found.y), key=_residual)
    if best.residual > tol:
        best = min(best, _elements(case, best.x, nearest_shares(case.loss, best.x, -best.z)), key=_residual)
    x, z, sub, residual = best
    kink = f"The loss has kinks ({case.kinks.pieces[0]}): solution.subgradient is an element of its subdifferential"
    notes = (*setting.notes, f"{kink}, up to {sub.eta:.1e} in the values.")
    status = Status.CONVERGED if residual <= tol else Status.STALLED
    if status is Status.CONVERGED and setting.examination.bent:
        status = Status.STATIONARY
    return Solution(
        point=shaped_like(case.x, x),
        element=shaped_like(case.x, z),
        residual=residual,
        iterations=0,
        status=status,
        notes=notes,
        trace=Trace(np.array([0]), np.array([residual])),
        step=None,
        problem=request.problem,
        samples=setting.samples,
        method=AsProgramme(found.by),
        holdout=setting.kept_aside,
        start=jax.tree.map(np.array, setting.x),
        subgradient=shaped_like(case.x, sub.g),
    )


class Elements(NamedTuple):
    """x ∈ dom A, z ∈ A(x), g ∈ ∂f̂(x), ‖z + g‖."""

    x: FloatArray
    z: FloatArray
    sub: Subgradient
    residual: float


def _elements(case: Case, x: FloatArray, shares: FloatArray, normal: FloatArray | None = None) -> Elements:
    """By the resolvent, near x. `normal`: an element for sets that are projected on by a solver."""
    sub, A, like = case.loss.subgradient(x, shares), case.problem.strategies, case.x
    gamma = (float(np.linalg.norm(x)) or case.loss.unit) / (case.loss.size(x) or 1.0)  # rounding spoils z as g
    y = shaped_like(like, x - gamma * sub.g)
    near = to_numpy(A.resolvent(jax.tree.map(jnp.asarray, y), jnp.asarray(gamma)))
    element = jax.tree.map(lambda one, other: (one - other) / gamma, y, near)
    if normal is not None:
        near, element = (
            A.each(_kept, *pair) for pair in ((near, shaped_like(like, x)), (element, shaped_like(like, normal)))
        )
    found, z = flat_of(near), flat_of(element)
    other = case.loss.subgradient(found, shares)
    moved = Elements(found, z, other, float(np.linalg.norm(z + other.g)))
    reach, left = max(np.abs(x).max(), case.loss.unit), float(np.abs(found - x).max())
    if left > ROUNDING * reach and (left > NEARBY * reach or not _is_element(A, shaped_like(like, x), element, reach)):
        return moved
    kept = Elements(x, z, sub, float(np.linalg.norm(z + sub.g)))
    return kept if kept.residual <= 2 * moved.residual else moved


def _is_element(A: Backward, x: PyTree, z: PyTree, reach: float) -> bool:
    """Whether z ∈ A(x) to rounding, by the Fenchel gap."""
    return A.in_domain(x) and abs(A.gap(x, z)) <= ROUNDING * reach * float(np.abs(flat_of(z)).sum())


def _landed(case: Case, x: FloatArray, y: FloatArray) -> Elements:
    """After Newton's method on the equations of tied rows."""
    rows = case.rows.pieces[0]
    near, multipliers = landed(rows, case.problem.placed, case.x, x, y[: len(rows.r)])
    return _elements(case, near, rows.shares(multipliers))


def _residual(one: Elements) -> float:
    return one.residual


def _kept(part: Any, by_resolvent: Any, by_programme: Any) -> Any:
    """The programme's own, of a set that a solver projects on; else the resolvent's, which is good to rounding."""
    return by_programme if isinstance(part, Set) and not part.exact else by_resolvent


class AsProgramme(Method):
    """No steps: the whole problem went to a solver at once."""

    static = ("description",)
    description: str

    def __init__(self, description: str) -> None:
        self.description = description

    def prepared(self, problem: Problem, x: PyTree, known: Any = None) -> Method:
        del problem, x, known
        return self

    def init(self, A: Backward, B: Any, x: PyTree) -> Any:
        raise TypeError("A programme is solved at once: it has no steps.")

    def step(self, A: Backward, B: Any, state: Any) -> Any:
        raise TypeError("A programme is solved at once: it has no steps.")

    def last_step(self, state: Any) -> PyTree:
        del state
