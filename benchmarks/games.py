"""The charging game against NashOpt and best responses with CVXPY/Clarabel, and its growth from 20 to 10⁶ vehicles.

All solvers get the same game and stop at a natural residual ‖x − P(x − F(x))‖ of 1e-8 or better, which is checked, as
is that they find the same point. Ours is the whole call of `ez.solve`, 3000 samples of prices included; of the peers
only the solve is timed, not the set-up. NashOpt's first solver gets ten seconds at 200 vehicles; it took 106 s when it
was left alone, and its second one, which cannot be stopped, 108 s.
"""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import epszero as ez
from benchmarks._measure import Row, best_of, timed
from benchmarks._peers import (
    OPTIONS,
    Charging,
    best_response,
    draw,
    gauss_seidel_setup,
    jacobi_setup,
    nashopt_setup,
    nashopt_solve,
    residual,
)

TOLERANCE, SAMPLES, PATIENCE = 1e-8, 3000, 10.0
SIZES = (20, 200, 2_000, 20_000, 200_000, 1_000_000)
PLOT = Path("build/growth.png")


def ours(data: Charging) -> tuple[Any, ez.Samples]:
    """The same game, and samples of prices with the same mean."""
    fleet = ez.models.Fleet(wear=data.wear, fee=data.fee, need=data.need, cap=np.full(data.cars, data.cap))
    noise = np.random.default_rng(1).uniform(-0.05, 0.05, (SAMPLES, data.hours))
    prices = ez.Samples(data.price + noise - noise.mean(axis=0))
    return ez.models.ev_charging(hours=data.hours, fleet=fleet, reference=data.reference), prices


def rows() -> list[Row]:
    return [_against_peers(20, 10), _against_peers(200, 100), *_growth()]


def _against_peers(cars: int, wanted: float) -> Row:
    data = draw(cars)
    game, prices = ours(data)
    mine = ez.solve(game, prices, tol=TOLERANCE).x
    assert residual(data, mine) <= TOLERANCE, residual(data, mine)
    time = best_of(20, lambda: ez.solve(game, prices, tol=TOLERANCE))
    peers = _nashopt(data, mine) | _best_responses(data, mine)
    fastest = min(peers, key=lambda name: peers[name])
    listed = ", ".join(f"{name} {1e3 * seconds:.0f} ms" for name, seconds in sorted(peers.items(), key=lambda p: p[1]))
    print(f"{cars} vehicles: ours {1e3 * time:.2f} ms; {listed}", flush=True)
    ratio = peers[fastest] / time
    what = f"the charging game, {cars} vehicles, to 1e-8, against {fastest}"
    return Row(what, time, peers[fastest], ratio, f"≥ {wanted:g}", ratio >= wanted)


def _nashopt(data: Charging, mine: Any) -> dict[str, float]:
    times = {}
    for solver in ("dr_daqp", "lemke_dual"):
        game: Any = nashopt_setup(data, solver)
        if data.cars <= 20:
            _agrees(data, nashopt_solve(data, game), mine)
            times[f"NashOpt {solver}"] = best_of(5, lambda game=game: nashopt_solve(data, game))
        elif solver == "dr_daqp":
            OPTIONS[solver]["time_limit"] = PATIENCE
            try:
                times[f"NashOpt {solver}"] = timed(lambda game=game: nashopt_solve(data, game))
            except RuntimeError:
                times[f"NashOpt {solver} (given up)"] = PATIENCE
    return times


def _best_responses(data: Charging, mine: Any) -> dict[str, float]:
    times = {}
    for name, setup in (("CVXPY, all at once", jacobi_setup), ("CVXPY, one by one", gauss_seidel_setup)):
        sweep = setup(data)
        _agrees(data, best_response(data, sweep)[0], mine)
        times[name] = best_of(2, lambda sweep=sweep: best_response(data, sweep))
    return times


def _agrees(data: Charging, theirs: Any, mine: Any) -> None:
    assert residual(data, theirs) <= TOLERANCE, residual(data, theirs)
    np.testing.assert_allclose(mine, theirs, atol=1e-5)


def _growth() -> list[Row]:
    """Seconds of one iteration, and of a whole run to 1e-8·√N, as N grows."""
    steps, runs = [], []
    for cars in SIZES:
        game, prices = ours(draw(cars))
        many = max(3, min(300, 2_000_000 // cars))

        def run(k: int, game: Any = game, prices: Any = prices) -> Any:
            return ez.solve(game, prices, ez.ForwardBackward(step=20.0), iterations=k - 1)

        few, more = best_of(2, lambda: run(2)), best_of(2, lambda many=many: run(2 + many))
        steps.append((more - few) / many)
        tol = TOLERANCE * np.sqrt(cars / 20)
        runs.append(best_of(1, lambda game=game, prices=prices, tol=tol: ez.solve(game, prices, tol=tol)))
        print(
            f"{cars:>9} vehicles: {1e6 * steps[-1]:.1f} µs an iteration, {1e3 * runs[-1]:.2f} ms to the end", flush=True
        )
    slope = float(np.polyfit(np.log(SIZES), np.log(steps), 1)[0])
    _plot(steps, runs)
    what = "an iteration, per vehicle, with 10⁶ of them against 20"
    each = np.array(steps) / np.array(SIZES)
    return [
        Row(what, each[-1], each[0], each[-1] / each[0], "≤ 2", each[-1] / each[0] <= 2),
        Row("an iteration from 20 to 10⁶ vehicles, as a power of N", slope, 1.0, slope, "≤ 1.1", slope <= 1.1, unit=""),
    ]


def _plot(steps: list[float], runs: list[float]) -> None:
    sheet = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = sheet.subplots()
    axes.loglog(SIZES, runs, "o-", label="to the equilibrium")
    axes.loglog(SIZES, steps, "s-", label="one iteration")
    linear = np.array(SIZES) * steps[-1] / SIZES[-1]
    axes.loglog(SIZES, linear, "k:", label="proportional to N")
    axes.set(xlabel="vehicles (14 hours each)", ylabel="seconds", title="Growth with the number of agents")
    axes.grid(alpha=0.3)
    axes.legend()
    PLOT.parent.mkdir(exist_ok=True)
    sheet.savefig(PLOT, dpi=150)
    print(f"The picture is in {PLOT}.")
