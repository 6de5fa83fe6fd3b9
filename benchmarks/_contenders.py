"""Who solves a problem of the collection: our default, our methods by name, and peers where they apply.

A contender makes, from a posed problem, a call without arguments that returns a flat point and what is said of it; None
where it does not apply. Ours is the whole call of `ez.solve`. Of peers the matrices, or NashOpt's game, are made
beforehand and not timed. All are asked for the tolerance that decides, or less: ours for 1e-8 of the scale (a tenth of
it where constraints are shared, as a residual in multipliers is not one in x), peers for what makes them pass.
"""

import importlib
import importlib.util
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import numpy as np

import epszero as ez
from benchmarks._programmes import Programme, affine_programme, matrix_programme, pieces_programme
from benchmarks._published import PUBLISHED, Points, run
from benchmarks.collection._case import Affine, Array, Costs, Payoffs, Pieces, Posed, Regression, flat

TOLERANCE = 1e-8  # times the scale of a problem
NAMED = (
    "ForwardBackward",
    "ForwardBackwardForward",
    "Extragradient",
    "PreconditionedForwardBackward",
    "AdaptiveGoldenRatio",
    "GoldenRatio",
    "ForwardReflectedBackward",
    "PastExtragradient",
    "ProjectedReflectedGradient",
    "ExtraAnchoredGradient",
    "AcceleratedReflectedGradient",
    "FastOptimisticGradient",
    "FastForwardBackward",
    "Anderson",
    "Relaxed",
)
WRAPPED = {  # of forward-backward where it applies; of forward-backward-forward where constraints are shared
    "Anderson": ez.Anderson,
    "Relaxed": lambda of: ez.Relaxed(of, 0.8),
}
OURS = ("default", *(name for name in NAMED if name in ez.__all__))
Call = Callable[[], Array]
Answer = tuple[Array, str, bool]  # a flat point, how the run says that it ended, and whether it calls it a solution
Contender = Callable[[Posed], Callable[[], Answer] | None]
LARGEST = 60  # entries up to which NashOpt gets one player for each: it keeps a matrix per player


class NotFoundError(RuntimeError):
    """The contender ended without an answer, and says so."""


def asked(posed: Posed) -> float:
    """The tolerance that ours are asked for."""
    shared = getattr(posed.problem, "coupling", None) is not None
    return (0.1 if shared else 1.0) * TOLERANCE * posed.scale


def ours(posed: Posed, name: str, iterations: int | None = None) -> Answer:
    """Solved by us; where a run fails, the point that it reached, which is then no solution whatever the judge says."""
    method = None if name == "default" else _named(posed, name)
    claimed = True
    try:
        found = ez.solve(posed.problem, posed.samples, method, tol=asked(posed), iterations=iterations)
    except ez.SolveError as error:
        found, claimed = error.solution, False
    return flat(found.x), f"{found.status.value} after {found.iterations}", claimed


def _named(posed: Posed, name: str) -> ez.methods.Method:
    if name not in WRAPPED:
        return getattr(ez, name)()
    shared = getattr(posed.problem, "coupling", None) is not None
    return WRAPPED[name](ez.ForwardBackwardForward() if shared else ez.ForwardBackward())


def _ours(name: str) -> Contender:
    def make(posed: Posed) -> Callable[[], Answer] | None:
        coupling = getattr(posed.problem, "coupling", None)
        if name == "FastForwardBackward" and not getattr(posed.problem, "is_gradient", False):
            return None
        if name == "PreconditionedForwardBackward" and (coupling is None or not coupling.affine):
            return None
        if name == "ForwardBackward" and coupling is not None:
            return None
        return lambda: ours(posed, name)

    return make


def _programme(posed: Posed) -> Programme | None:
    """What solvers of linear and quadratic programmes take."""
    if (payoffs := posed.form(Payoffs)) is not None:
        return matrix_programme(payoffs)
    if (pieces := posed.form(Pieces)) is not None:
        return pieces_programme(pieces)
    form = posed.form(Affine)
    return affine_programme(form) if form is not None and np.array_equal(form.M, form.M.T) else None


def _of_programme(solve: Callable[[Programme], Callable[[], Array]], linear: bool = False) -> Any:
    def make(posed: Posed) -> Call | None:
        programme = _programme(posed)
        if programme is None or (linear and programme.P.nnz):
            return None
        call = solve(programme)
        return lambda: programme.point(call())

    return make


def _daqp(posed: Posed) -> Call | None:
    """Its affine variational inequalities, where the matrix is not symmetric, else its quadratic programmes."""
    form = posed.form(Affine)
    if form is None:
        return None
    from daqp import solve  # noqa: PLC0415

    region, symmetric = form.region, np.array_equal(form.M, form.M.T)
    upper, lower = np.append(region.upper, region.high), np.append(region.lower, region.low)
    sense = np.where(upper == lower, 5, 0).astype(np.int32)
    upper, lower = np.clip(upper, -1e30, 1e30), np.clip(lower, -1e30, 1e30)

    def call() -> Array:
        x, _, flag, _ = solve(form.M, form.q, region.G, upper, lower, sense, is_avi=not symmetric,
                              primal_tol=1e-11, dual_tol=1e-11, iter_limit=1_000_000)  # fmt: skip
        if flag < 1:
            raise NotFoundError(f"exit flag {flag}")
        return x

    return call


def _nashopt(posed: Posed) -> Call | None:
    """`GNEP_LQ` by Lemke's method where all is affine, else `GNEP`, which solves the KKT system."""
    form, costs = posed.form(Affine), posed.form(Costs)
    if form is not None and len(form.q) <= LARGEST and _numpy(posed) is None:
        return _nashopt_affine(form)
    return None if costs is None else _nashopt_costs(costs)


def _nashopt_affine(form: Affine) -> Call:
    from nashopt import GNEP_LQ  # noqa: PLC0415

    n, region = len(form.q), form.region
    Q, c = [], []
    for i in range(n):  # the costs whose own gradients are the rows of Mx + q, symmetric as NashOpt makes them
        own = np.zeros((n, n))
        own[i], own[:, i] = form.M[i], form.M[i]
        Q.append(own)
        c.append(np.where(np.arange(n) == i, form.q, 0.0))
    equal = region.low == region.high
    above, below = np.isfinite(region.high) & ~equal, np.isfinite(region.low) & ~equal
    G, high, low = region.G, region.high, region.low
    bounds = {"lb": region.lower, "ub": region.upper}
    if not len(G):  # bounds as rows: without any it does not take the game for a variational one
        G, high, low, bounds = np.eye(n), region.upper, region.lower, {}
        equal, above, below = np.zeros(n, bool), np.isfinite(high), np.isfinite(low)
    more = {"Aeq": G[equal], "beq": low[equal]} if equal.any() else {}
    A, b = np.vstack([G[above], -G[below]]), np.concatenate([high[above], -low[below]])
    rows = {"A": A, "b": b} if len(A) else {}
    with redirect_stdout(StringIO()):
        game = GNEP_LQ([1] * n, Q, c, variational=True, solver="lemke_dual", **rows, **more, **bounds)

    def call() -> Array:
        with redirect_stdout(StringIO()):
            found = game.solve(solver_options={})
        if found.x is None:
            raise NotFoundError(str(found.status))
        return np.asarray(found.x)

    return call


def _nashopt_costs(costs: Costs) -> Call:
    import jax  # noqa: PLC0415
    from nashopt import GNEP  # noqa: PLC0415

    region = costs.region
    shared = {"g": lambda x: region.G @ x - region.high, "ng": len(region.G)} if len(region.G) else {}
    with jax.enable_x64(True), redirect_stdout(StringIO()):
        game = GNEP(costs.sizes, costs.costs, lb=region.lower, ub=region.upper, variational=bool(shared), **shared)
    middle = np.clip(0.5, region.lower, region.upper)

    def call() -> Array:
        with jax.enable_x64(True), redirect_stdout(StringIO()):
            return np.asarray(game.solve(x0=middle, verbose=0).x)

    return call


def _numpy(posed: Posed) -> Call | None:
    """A linear system, where nothing bounds x."""
    form = posed.form(Affine)
    if (
        form is None
        or len(form.region.G)
        or np.isfinite(form.region.lower).any()
        or np.isfinite(form.region.upper).any()
    ):
        return None
    return lambda: np.linalg.solve(form.M, -form.q)


def _learned(posed: Posed) -> Call | None:
    form = posed.form(Regression)
    if form is None:
        return None
    linear = importlib.import_module("sklearn.linear_model")
    settings = {"fit_intercept": False, "tol": 1e-12, "max_iter": 100_000} | form.settings
    model = getattr(linear, form.model)(**settings)
    return lambda: np.ravel(model.fit(form.rows, form.answers).coef_)


def _monviso(posed: Posed) -> Call | None:
    """Its extragradient, as it needs no more than a Lipschitz constant; its projections are by CVXPY."""
    form = posed.form(Affine)
    if form is None:
        return None
    kind = importlib.import_module("monviso").VI
    region, step = form.region, 0.9 / np.linalg.norm(form.M, 2)
    sides = ((np.eye(region.size), region.lower, region.upper), (region.G, region.low, region.high))
    rows = [lambda y, side=side: _between(side[0] @ y, *side[1:]) for side in sides if np.isfinite(side[1:]).any()]
    problem = kind(region.size, lambda x: form.M @ x + form.q, S=rows)

    def call() -> Array:
        for x in problem.eg(np.zeros(region.size), step):
            if posed.residual(x) <= TOLERANCE * posed.scale:
                return x
        raise NotFoundError("no more points")

    return call


def _published(method: Callable[..., Points]) -> Callable[[Posed], Call | None]:
    def make(posed: Posed) -> Call | None:
        form = posed.form(Affine)
        if form is None:
            return None
        return lambda: run(method, form, lambda x: posed.residual(x) <= TOLERANCE * posed.scale)

    return make


def _between(rows: Any, low: Array, high: Array) -> Any:
    import cvxpy as cp  # noqa: PLC0415

    below, above = np.isfinite(low), np.isfinite(high)
    return cp.hstack([rows[below] - low[below], high[above] - rows[above]]) >= 0


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


def _quiet(make: Callable[[Posed], Call | None]) -> Contender:
    """A peer says nothing of its answer."""

    def made(posed: Posed) -> Callable[[], Answer] | None:
        call = make(posed)
        return None if call is None else lambda: (call(), "", True)

    return made


def _peers() -> dict[str, Contender]:
    from benchmarks import _programmes as by  # noqa: PLC0415

    all_peers = {
        "NumPy": ("numpy", _numpy),
        "linprog": ("scipy", _of_programme(by.linprog, linear=True)),
        "Clarabel": ("clarabel", _of_programme(by.clarabel)),
        "OSQP": ("osqp", _of_programme(by.osqp)),
        "DAQP": ("daqp", _daqp),
        "NashOpt": ("nashopt", _nashopt),
        "scikit-learn": ("sklearn", _learned),
        "monviso": ("monviso", _monviso),
    } | {name: ("numpy", _published(method)) for name, method in PUBLISHED.items()}
    return {name: _quiet(make) for name, (module, make) in all_peers.items() if _installed(module)}


PEERS = _peers()
CONTENDERS = {name: _ours(name) for name in OURS} | PEERS
