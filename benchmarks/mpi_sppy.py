"""The cost gap of a given x, by mpi-sppy's MMW interval and by ours, on its own example: the farmer.

Birge & Louveaux' farmer as mpi-sppy has it (`mpisppy.tests.examples.farmer`): 500 acres of wheat, corn and sugar beets,
yields below, at or above average by turns, plus uniform noise. Both are given the same x, the best for the first
scenarios, and the same batches of the next ones. The true cost is an integral that has a formula, so coverage is
counted. Their scenarios are read off their models. Needs the extra `mpi-sppy`, with Pyomo and a solver that it knows.
"""

import contextlib
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

import epszero as ez
from benchmarks._measure import Row
from epszero.certificates.case import Case
from epszero.certificates.gaps import gaps
from epszero.certificates.replications import student

EXAMPLE, SOLVER = "mpisppy.tests.examples.farmer", "appsi_highs"
ABSENT = "mpi-sppy: skipped, as mpi-sppy, pyomo or highspy is not installed (the dependency group bench has them)."
SETS, FIRST, BATCHES, SIZE = 30, 60, 10, 15  # data sets; scenarios for x; batches, and scenarios in each
DELTA = 0.05
COST, NEED = np.array([150.0, 230.0, 260.0]), np.array([200.0, 240.0, 6000.0])
BELOW, ABOVE = np.array([238.0, 210.0, 36.0]), np.array([170.0, 150.0, 10.0])  # what a ton is worth up to NEED, and on
LEVELS = np.array([[2.0, 2.4, 16.0], [2.5, 3.0, 20.0], [3.0, 3.6, 24.0]])
SUPPORT = ez.sets.Box(LEVELS[0], LEVELS[2] + 1)  # of yields


def farm() -> ez.Minimization:
    """The second stage in closed form: each crop is worth BELOW a ton up to NEED, ABOVE beyond."""

    def cost(x: Any, harvest: Any) -> Any:
        tons = harvest * x - NEED
        return COST @ x + jnp.sum(jnp.maximum(-ABOVE * tons, -BELOW * tons))

    apart = float(np.linalg.norm(BELOW * (LEVELS[2] + 1) - ABOVE * LEVELS[0]))  # of two gradients at one x
    acres = ez.sets.BoxBudget(0.0, 500.0, at_most=500.0, dim=3)
    return ez.Minimization(cost, acres, declared=ez.declare(R=apart, convex=True))


def true_cost(x: Any) -> float:
    """The mean over the three levels and uniform noise: E w⁺ of a w that is uniform, crop by crop."""
    low = LEVELS * x - NEED
    high = low + x
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = np.where(x > 0, high**2 / (2 * np.where(x > 0, x, 1.0)), 0.0)
    beyond = np.where(low >= 0, (low + high) / 2, np.where(high <= 0, 0.0, crossing))
    return float(COST @ x + np.sum(np.mean((BELOW - ABOVE) * beyond - BELOW * (low + high) / 2, axis=0)))


@dataclass(frozen=True)
class Counted:
    """Of one data set: the true gap, and what each says of it."""

    gap: float
    theirs: float
    ours: float  # on the same batches
    drawn: float  # ours, on batches that are drawn
    sure: float  # ours, a bound
    apart: float  # largest difference of a batch's gap, relative to the largest gap
    seconds: tuple[float, float]


def rows() -> Iterator[Row]:
    """Agreement, coverage, width and time."""
    if not all(find_spec(name) for name in ("mpisppy", "pyomo", "highspy")):
        print(ABSENT)
        return
    problem = farm()
    least = optimize.minimize(
        true_cost, np.array([170.0, 80.0, 250.0]), bounds=[(0, 500)] * 3, method="SLSQP", options={"ftol": 1e-14},
        constraints={"type": "ineq", "fun": lambda x: 500.0 - x.sum()}
    ).fun  # fmt: skip
    with contextlib.redirect_stdout(io.StringIO()):  # theirs prints
        found = [_one(problem, least, place) for place in range(SETS + 1)][1:]  # the first compiles
    apart = max(one.apart for one in found)
    yield Row("farmer, gaps of batches: relative difference", apart, 1e-6, apart / 1e-6, "≤ 1e-6", apart <= 1e-6, "")
    who = (lambda one: one.ours), (lambda one: one.theirs)
    ours, theirs = (sum(one.gap <= bound(one) for one in found) / SETS for bound in who)
    yield Row(f"farmer, share of {SETS} gaps covered", ours, theirs, ours / theirs, "≥ 0.95", ours >= 1 - DELTA, "")
    true = float(np.mean([one.gap for one in found]))
    ours, theirs = (float(np.mean([bound(one) for one in found])) for bound in who)
    yield Row(f"farmer, mean likely bound; true gap {true:.3g}", ours, theirs, ours / theirs, "—", True, "$")
    drawn = float(np.mean([one.drawn for one in found]))
    yield Row("farmer, the same, batches drawn at random", drawn, theirs, drawn / theirs, "—", True, "$")
    sure = float(np.mean([one.sure for one in found]))
    yield Row("farmer, mean sure bound against their likely one", sure, theirs, sure / theirs, "—", True, "$")
    ours, theirs = (min(one.seconds[place] for one in found) for place in (0, 1))
    yield Row(f"farmer, {BATCHES} batches of {SIZE}", ours, theirs, ours / theirs, "≤ 1", ours <= theirs)


def _one(problem: ez.Minimization, least: float, place: int) -> Counted:
    """Scenarios of its own for each data set; those below 3 have no noise."""
    start = 3 + place * (FIRST + BATCHES * SIZE)
    harvests = np.array([_harvest(number) for number in range(start, start + FIRST + BATCHES * SIZE)])
    rng = np.random.default_rng(place)  # in their order, level by level in turns, ours refuses them
    first, kept = (ez.Samples(rng.permutation(part), support=SUPPORT) for part in (harvests[:FIRST], harvests[FIRST:]))
    solution = replace(ez.solve(problem, first), holdout=kept)
    began = perf_counter()
    drawn = ez.certify(solution, DELTA, ez.certificates.MultipleReplications(BATCHES, seed=place)).cost_gap
    between = perf_counter()
    theirs = _mmw(solution.x, start + FIRST)
    seconds = between - began, perf_counter() - between
    with jax.enable_x64(True):
        batches = np.arange(BATCHES * SIZE).reshape(BATCHES, SIZE)
        each = gaps(Case.of(solution), ez.Samples(harvests[FIRST:]), batches).each
    apart = float(np.abs(each - theirs["Glist"]).max() / np.abs(each).max())
    sure = ez.certify(solution, DELTA).cost_gap
    gap = true_cost(solution.x) - least
    ours = float(each.mean() + student(1 - DELTA, BATCHES - 1) * each.std(ddof=1) / math.sqrt(BATCHES))
    return Counted(gap, theirs["gap_inner_bound"], ours, drawn or math.inf, sure or math.inf, apart, seconds)


def _harvest(number: int) -> list[float]:
    model = import_module(EXAMPLE).scenario_creator(f"scen{number}")
    return [float(model.Yield[crop].value) for crop in ("WHEAT0", "CORN0", "SUGAR_BEETS0")]


def _mmw(x: Any, start: int) -> dict[str, Any]:
    config = import_module("mpisppy.utils.config").Config()
    for name, kind, value in (("EF_2stage", bool, True), ("EF_solver_name", str, SOLVER), ("num_scens", int, SIZE)):
        config.quick_assign(name, kind, value)
    # theirs sorts crops by name: corn, sugar beets, wheat
    mmw = import_module("mpisppy.confidence_intervals.mmw_ci").MMWConfidenceIntervals(
        EXAMPLE, config, {"ROOT": np.asarray(x)[[1, 2, 0]]}, BATCHES, batch_size=SIZE, start=start, verbose=False
    )
    return mmw.run(1 - DELTA)
