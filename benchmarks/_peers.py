"""The equilibrium of the charging game, found by peers: NashOpt's `GNEP_LQ` and best responses with CVXPY/Clarabel.

Each peer is a pair, set-up and solve, so that either the whole or the solve alone can be timed; `nashopt`,
`gauss_seidel` and `jacobi` are the whole, from the data to the point. Nothing is printed. `residual` judges them all by
the same measure, with a projection that is nobody's but numpy's. NashOpt 1.3.9 imports `qpsolvers` without asking for
it: install both.
"""

from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from typing import Any, Literal

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Solver = Literal["dr_daqp", "lemke_dual"]
OPTIONS: dict[str, dict[str, float]] = {
    "dr_daqp": {"primal_tol": 1e-10, "iter_limit": 1_000_000},  # its own, 1e-6 and 10 000, are no faster
    "lemke_dual": {},  # the pivoting tolerance is 1e-12 and the limit 10⁶ pivots as they come
}
TIGHT = {"tol_gap_abs": 1e-13, "tol_gap_rel": 1e-13, "tol_feas": 1e-13}  # Clarabel's own are 1e-8


@dataclass(frozen=True)
class Charging:
    """Car i minimises wearᵢ‖xᵢ‖² + feeᵢ Σxᵢ + price·xᵢ + ‖meanⱼ xⱼ − reference‖², 0 ≤ xᵢ ≤ cap, Σxᵢ ≥ needᵢ.

    `wear`, `fee` and `need` have an entry per car, `price` one per hour.
    """

    wear: Array
    fee: Array
    need: Array
    price: Array
    cap: float = 2.5
    reference: float = 1.0

    @property
    def cars(self) -> int:
        return self.wear.size

    @property
    def hours(self) -> int:
        return self.price.size

    def pseudogradient(self, x: Array) -> Array:
        """F(x), cars by hours."""
        pull = 2 / self.cars * (x.mean(axis=0) - self.reference)
        return 2 * self.wear[:, None] * x + self.fee[:, None] + self.price + pull

    def project(self, y: Array) -> Array:
        """On each car's set: the multiplier of its need by bisection, down to the last bit that counts."""
        low, high = np.zeros(self.cars), np.maximum(self.cap - y.min(axis=1), 0.0)  # at `high` all hours are full
        high[np.clip(y, 0, self.cap).sum(axis=1) >= self.need] = 0.0
        for _ in range(80):
            middle = (low + high) / 2
            short = np.clip(y + middle[:, None], 0, self.cap).sum(axis=1) < self.need
            low, high = np.where(short, middle, low), np.where(short, high, middle)
        return np.clip(y + high[:, None], 0, self.cap)


def draw(cars: int, hours: int = 14, seed: int = 0) -> Charging:
    """A game of the family measured, with `cars` cars."""
    rng = np.random.default_rng(seed)
    return Charging(
        wear=rng.uniform(0.002, 0.008, cars),
        fee=rng.uniform(0.02, 0.075, cars),
        need=rng.uniform(12, 18, cars),
        price=rng.uniform(0.0, 0.2, hours),
    )


def residual(data: Charging, x: Array) -> float:
    """The natural residual ‖x − P(x − F(x))‖₂ over all cars and hours."""
    return float(np.linalg.norm(x - data.project(x - data.pseudogradient(x))))


def nashopt_setup(data: Charging, solver: Solver, agents: int = 2) -> Any:
    """NashOpt's game: one agent per car with `agents=data.cars`, or as many groups of cars.

    `GNEP_LQ` keeps a dense (NT)×(NT) matrix for each agent, but its variational solvers read no more of them than the
    pseudogradient Gx + r. The game has a potential (G is symmetric), so with Qᵢ = G and cᵢ = r for all agents the cars
    may be grouped at will without changing G, r or the equilibrium. Two groups, the fewest NashOpt takes, spare it the
    copies: N = 200 cars one by one hold 12.5 GB. Needs are rows of A, the box goes to `lb` and `ub`.
    """
    from nashopt import GNEP_LQ  # noqa: PLC0415 (it takes two seconds)

    cars, hours, size = data.cars, data.hours, data.cars * data.hours
    matrix = np.tile(2 / cars**2 * np.eye(hours), (cars, cars))
    matrix[np.diag_indices(size)] += np.repeat(2 * data.wear, hours)
    linear = data.pseudogradient(np.zeros((cars, hours))).ravel()
    groups = [hours * len(part) for part in np.array_split(np.arange(cars), agents)]
    with redirect_stdout(StringIO()):
        return GNEP_LQ(
            groups,
            [matrix] * agents,
            [linear] * agents,
            lb=np.zeros(size),
            ub=np.full(size, data.cap),
            A=-np.kron(np.eye(cars), np.ones(hours)),
            b=-data.need,
            variational=True,  # these solvers refuse anything else; with local constraints alone it is no restriction
            solver=solver,
        )


def nashopt_solve(data: Charging, game: Any) -> Array:
    """Solve a game that is set up; it may be solved again, nothing is kept from one time to the next."""
    with redirect_stdout(StringIO()):
        found = game.solve(solver_options=OPTIONS[game.solver])
    solved = found.success if game.solver == "lemke_dual" else found.status_str == "1"
    if not solved:
        raise RuntimeError(f"NashOpt with {game.solver}: {getattr(found, 'status_str', None) or found.status.status}")
    return found.x.reshape(data.cars, data.hours)


def nashopt(data: Charging, solver: Solver, agents: int = 2) -> Array:
    """The equilibrium by NashOpt, set-up included.

    `dr_daqp` is Douglas–Rachford splitting with an active-set finish, compiled C; `lemke_dual` eliminates x and pivots
    in the multipliers of the 2NT + N inequalities, compiled by Numba at the first call of a process.
    """
    return nashopt_solve(data, nashopt_setup(data, solver, agents))


Step = Callable[[Array], Array]


def _programme(data: Charging, cars: int) -> tuple[Any, Any, Any, Any]:
    """Best responses of `cars` cars: min ‖x‖² + linear·x over their sets, `linear` and the needs being parameters.

    What a car minimises, divided by its curvature wear + 1/N², is of this form: the Hessian is constant and hence there
    is the least to do per call. Returned: the problem, x, `linear` and the needs.
    """
    x, linear, need = cp.Variable((cars, data.hours)), cp.Parameter((cars, data.hours)), cp.Parameter(cars)
    limits = [x >= 0, x <= data.cap, cp.sum(x, axis=1) >= need]
    return cp.Problem(cp.Minimize(cp.sum_squares(x) + cp.vdot(linear, x)), limits), x, linear, need


def gauss_seidel_setup(data: Charging) -> Step:
    """A sweep in which the cars respond one after the other, one small quadratic programme compiled for all of them."""
    problem, variable, linear, need = _programme(data, 1)
    curvature = data.wear + 1 / data.cars**2

    def respond(i: int, others: Array) -> Array:
        pull = 2 / data.cars * (others / data.cars - data.reference)
        linear.value = ((data.fee[i] + data.price + pull) / curvature[i])[None]
        need.value = data.need[i : i + 1]
        problem.solve(solver=cp.CLARABEL, **TIGHT)
        return variable.value[0]

    def sweep(x: Array) -> Array:
        x, total = x.copy(), x.sum(axis=0)
        for i in range(data.cars):
            others = total - x[i]
            x[i] = respond(i, others)
            total = others + x[i]
        return x

    respond(0, np.ones(data.hours))  # compiles
    return sweep


def jacobi_setup(data: Charging) -> Step:
    """A sweep in which all cars respond at once, in one quadratic programme, and go a part of the way.

    The part is 2/(μ + λ), at most 1, with μ and λ the bounds on the eigenvalues of the game's matrix relative to the
    cars' own curvatures; all the way, it overshoots.
    """
    problem, variable, linear, need = _programme(data, data.cars)
    curvature = data.wear + 1 / data.cars**2
    need.value = data.need
    own = data.wear / curvature
    scaled = np.diag(own) + 1 / data.cars**2 / np.sqrt(np.outer(curvature, curvature))
    part = 2 / (own.min() + np.linalg.eigvalsh(scaled)[-1])

    def sweep(x: Array) -> Array:
        pull = 2 / data.cars * ((x.sum(axis=0) - x) / data.cars - data.reference)
        linear.value = (data.fee[:, None] + data.price + pull) / curvature[:, None]
        problem.solve(solver=cp.CLARABEL, **TIGHT)
        return x + min(part, 1.0) * (variable.value - x)

    sweep(np.ones((data.cars, data.hours)))  # compiles
    return sweep


def best_response(data: Charging, sweep: Step, tol: float = 1e-8, sweeps: int = 2000) -> tuple[Array, int]:
    """Sweep from all ones until the natural residual is at most `tol` or stalls; the best point and the sweeps made.

    Clarabel's points are not exact, so the residual has a floor (1e-10 at N = 20, 4e-9 at N = 200, with `TIGHT`): 50
    sweeps without a new best end the run.
    """
    x = best = np.ones((data.cars, data.hours))
    least, last = np.inf, 0
    for k in range(1, sweeps + 1):
        x = sweep(x)
        now = residual(data, x)
        if now < least:
            best, least, last = x, now, k
        if least <= tol or k - last >= 50:
            return best, k
    return best, sweeps


def gauss_seidel(data: Charging) -> Array:
    """The equilibrium by best responses one after the other, compilation included."""
    return best_response(data, gauss_seidel_setup(data))[0]


def jacobi(data: Charging) -> Array:
    """The equilibrium by damped best responses all at once, compilation included."""
    return best_response(data, jacobi_setup(data))[0]
