"""Electric vehicles that charge by day-ahead prices: the game of Fabiani & Franci, section V, Table I.

Vehicle i chooses the energy x_i ∈ R^T of each hour to minimise, with x̄ the average over all N vehicles,
    wear_i ‖x_i‖² + fee_i 1ᵀx_i + E[ξ]ᵀx_i + ‖x̄ − reference‖²_P   over   0 ≤ x_i ≤ cap_i, 1ᵀx_i ≥ need_i,
or 1ᵀx_i = need_i for batteries that take no more (`exactly`),
where ξ is the vector of hourly prices. P is `weight`·I_T (the paper prints I₁₆₈, which does not fit T = 14).

A potential game, since the last term is common to all: an equilibrium minimises the sum of the other terms plus the
last one. The pseudogradient has the constant symmetric Jacobian 2 diag(wear) ⊗ I + (2/N²) 11ᵀ ⊗ P, so it is strongly
monotone with μ ≥ 2 min wear, and the equilibrium is unique where every wear > 0. ξ enters as an additive term.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._fleet import Fleet, Table, gathered
from epszero.models._inputs import Factory, FloatArray, count, each, numbers, refuse
from epszero.models._pictures import bars, note, sample_rows, strategies_of, with_bands
from epszero.models.schedules import most_together
from epszero.problems import Declared
from epszero.report import BLUE, GREY, ORANGE, PURPLE, RED, SPREAD, beside, figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_VEHICLES = 40  # that are drawn one by one
PerVehicle = ArrayLike  # a number, one per vehicle, or an interval (lo, hi) to draw from


def ev_charging(  # noqa: PLR0913  (the rows of Table I)
    vehicles: int | None = None,
    hours: int = 14,
    seed: int | np.random.Generator = 0,
    *,
    wear: PerVehicle = (0.002, 0.008),
    fee: PerVehicle = (0.02, 0.075),
    cap: PerVehicle = 2.5,
    need: PerVehicle = (12.0, 18.0),
    weight: ArrayLike = 1.0,
    reference: ArrayLike = 1.0,
    capacity: ArrayLike | None = None,
    fleet: Table | None = None,
    present: ArrayLike | None = None,
    exactly: bool = False,
    declared: Declared | None = None,
) -> ez.AggregativeGame:
    """Vehicles (20 unless told otherwise) that charge within `hours`; a sample is the vector of prices, in €/kWh.

    Vehicle i pays wear_i ‖x_i‖² + fee_i 1ᵀx_i + priceᵀx_i + ‖x̄ − reference‖²_P for its schedule x_i, in kWh per hour,
    with 0 ≤ x_i ≤ cap_i and at least need_i kWh in all. `wear`, `fee`, `cap`, `need`: a number, a list with one per
    vehicle, or a tuple (lo, hi) from which they are drawn uniformly with `seed`; the defaults are the paper's Table I.
    `fleet` brings them along instead: a file (see `ez.datasets.read_fleet`), a mapping, a frame of Polars or pandas, or
    a `Fleet`, with columns among wear, fee, need and cap; what it lacks comes from the other arguments. They are found
    again in `game.parameters`.

    `reference`: kWh that the average vehicle should draw, one number or one per hour. `weight`: P, a number, one per
    hour, or a positive semidefinite matrix. `capacity`: kWh that all vehicles together may draw, one number or one
    per hour, a constraint that they share; `solution.multipliers` are its prices in €/kWh. `present`: which part of
    each hour a vehicle is there, vehicles × hours, from 0 to 1; the cap of the hour is that part of its cap. `exactly`:
    vehicles charge what they need and no more, at negative prices too.
    `declared`: see `ez.declare`.

    A potential game, strongly monotone with μ ≥ 2 min wear: one equilibrium where every wear is above 0.
    `game.plot(solution)` shows the demand and the prices; `first_hour=22` lets the clock begin at 22:00,
    `certificate=…` draws its error bars.
    """
    hours = count("hours", hours)
    P, target = _weight(weight, hours), each("reference", reference, hours, "hour")
    limit = None if capacity is None else each("capacity", capacity, hours, "hour", least=0.0)
    cars = gathered(vehicles, seed, {"wear": wear, "fee": fee, "cap": cap, "need": need}, fleet)
    caps = _caps(cars, hours, present)
    _refuse_impossible(cars, caps, limit)
    cost = _cost(tuple(target.tolist()), P.tobytes(), P.ndim)
    if exactly:
        schedules = ez.sets.CappedSimplex(cars.need, caps)
    else:
        upper = cars.cap[:, None] if present is None else caps
        schedules = ez.sets.BoxBudget(0.0, upper, at_least=cars.need, dim=hours)
    shared = None if limit is None else ez.AffineConstraint(_total, limit)
    picture = functools.partial(_draw, vehicles=len(cars.need), reference=target, capacity=limit)
    return ez.AggregativeGame(ez.oracles.Affine(cost), cars, schedules, shared, declared=declared, picture=picture)


@Factory
def _cost(reference: tuple[float, ...], weight: bytes, axes: int) -> Callable[..., jax.Array | FloatArray]:
    """The cost of a vehicle. One function per setting: games that differ in their fleets share compiled programs."""
    target = np.array(reference)
    P = np.frombuffer(weight).reshape([len(target)] * axes)

    def cost(own: jax.Array, average: jax.Array, price: jax.Array, car: Fleet) -> jax.Array | FloatArray:
        off = average - target
        return car.wear * own @ own + car.fee * jnp.sum(own) + price @ own + off @ (P * off if axes == 1 else P @ off)

    return cost


def _total(x: jax.Array) -> jax.Array:
    return jnp.sum(x, axis=0)


def _weight(weight: ArrayLike, hours: int) -> FloatArray:
    """P: its diagonal, or a whole matrix."""
    P = numbers("weight", weight)
    if P.ndim < 2:
        return each("weight", P, hours, "hour", least=0.0)
    if P.shape != (hours, hours):
        refuse("weight", f"as a matrix it must be {hours} × {hours}, but its shape is {P.shape}", "Fit it to the hours")
    least = float(np.linalg.eigvalsh((P + P.T) / 2)[0])
    if not np.allclose(P, P.T, rtol=1e-12) or least < -1e-12 * np.abs(P).max():
        refuse(
            "weight",
            f"must be symmetric and positive semidefinite (least eigenvalue {least:.3g})",
            "Pass (P + P.T) / 2, or remove the negative part",
        )
    return P


def _caps(cars: Fleet, hours: int, present: ArrayLike | None) -> FloatArray:
    """kWh that each vehicle can charge in each hour."""
    if present is None:
        return np.broadcast_to(cars.cap[:, None], (len(cars.cap), hours)).copy()
    there = numbers("present", present, least=0.0)
    if there.shape != (len(cars.cap), hours):
        refuse(
            "present",
            f"must be vehicles × hours, {len(cars.cap)} × {hours}, but its shape is {there.shape}",
            "Pass a row per vehicle",
        )
    if there.max() > 1:
        refuse("present", f"must be parts of an hour, but one is {there.max():g}", "Pass numbers from 0 to 1")
    return cars.cap[:, None] * there


def _refuse_impossible(cars: Fleet, caps: FloatArray, capacity: FloatArray | None) -> None:
    """Needs beyond caps, then needs beyond the capacity."""
    hours = caps.shape[1]
    with np.errstate(over="ignore"):  # more than enough
        most = caps.sum(axis=1)
        over = np.flatnonzero(cars.need > most * (1 + 1e-12))
    if len(over):
        i = int(over[0])
        always = bool((caps[i] == cars.cap[i]).all())
        when = f"{hours} hours at {cars.cap[i]:g} kWh give" if always else "within the hours that it is there it gets"
        refuse(
            f"need[{i}]",
            f"vehicle {i} needs {cars.need[i]:g} kWh, but {when} {most[i]:g}",
            "Lower its need, or raise its cap or the hours",
        )
    if capacity is None:
        return
    if (caps == cars.cap[:, None]).all():
        _refuse_crowded(cars, hours, capacity)
        return
    together, wanted = most_together(caps, cars.need, capacity), float(cars.need.sum())
    if together < wanted * (1 - 1e-9):
        refuse(
            "capacity",
            f"lets all vehicles together charge {together:g} kWh while they are there, but they need {wanted:g}",
            "Raise it, or lower need",
        )


def _refuse_crowded(cars: Fleet, hours: int, capacity: FloatArray) -> None:
    """Needs beyond the capacity where all vehicles are always there: max-flow min-cut, exactly, in O(N T)."""
    with np.errstate(over="ignore"):
        scarce = np.cumsum(np.sort(capacity))
    for k in range(1, hours + 1):  # what cannot be charged outside the k hours with the least capacity
        left = float(np.maximum(cars.need - (hours - k) * cars.cap, 0.0).sum())
        if left > scarce[k - 1] * (1 + 1e-12):
            when = "hour that has" if k == 1 else f"{k} hours that have"
            refuse(
                "capacity",
                f"in the {when} the least it is {scarce[k - 1]:g} kWh, but vehicles must draw {left:g} kWh then",
                "Raise it, or lower need",
            )


def _draw(
    solution: ez.Solution,
    *,
    first_hour: int = 0,
    certificate: ez.Certificate | None = None,
    vehicles: int,
    reference: FloatArray,
    capacity: FloatArray | None,
) -> "Figure":
    hours = len(reference)
    x = strategies_of(solution, (vehicles, hours))
    prices = sample_rows(solution, hours)
    multipliers, sure = solution.multipliers, with_bands(certificate, solution)
    start = count("first_hour", first_hour, least=0)
    each = sure is not None and vehicles <= MOST_VEHICLES
    panels = ["demand", *(["each"] if each else []), "price", *([] if capacity is None else ["capacity"])]
    sheet = figure(8.0, 2.4 * len(panels) + (0.4 if certificate is None else 0.7))
    axes: list[Axes] = list(sheet.subplots(len(panels), 1, sharex=True))
    on = dict(zip(panels, axes, strict=True))
    middle = np.arange(hours) + 0.5

    demand = on["demand"]
    _spread(demand, x, BLUE, "average", "of the vehicles")
    demand.stairs(reference, color="black", linestyle="--", baseline=None, label="reference")
    if capacity is not None:
        if multipliers is None:
            refuse("solution", "was found without the capacity that this game has", "Pass a solution of it")
        demand.stairs(
            capacity / vehicles, color=RED, linewidth=2.0, linestyle=":", baseline=None, label="capacity / vehicles"
        )
        on["capacity"].bar(middle, multipliers, width=0.9, color=PURPLE)
        on["capacity"].set_ylabel("price of the capacity\n(€/kWh)")
    if sure is not None:
        total = sure.aggregate
        bars(demand, middle, total.lower / vehicles, total.upper / vehicles, "certified\naverage")
        if capacity is not None:
            bars(on["capacity"], middle, sure.multipliers.lower, sure.multipliers.upper)
    if sure is not None and each:
        _each(on["each"], x, sure.intervals)
    demand.set_ylabel("demand per vehicle\n(kWh per hour)")
    demand.set_ylim(bottom=0.0)
    demand.set_title(f"{vehicles:,} vehicles, {x.sum():,.4g} kWh", loc="left", fontsize=11)
    _spread(on["price"], prices, ORANGE, "mean", f"of {len(prices):,} samples")
    on["price"].axhline(0.0, color=GREY, linewidth=0.8)
    on["price"].set_ylabel("energy price\n(€/kWh)")

    every = -(-hours // 12)
    axes[-1].set_xticks(range(0, hours + 1, every), [f"{(start + h) % 24}:00" for h in range(0, hours + 1, every)])
    axes[-1].set_xlim(0, hours)
    axes[-1].set_xlabel("time of day")
    for ax in (demand, on["price"]):
        beside(ax)
    tidy(*axes)
    note(sheet, certificate)
    return sheet


def _each(ax: "Axes", x: FloatArray, band: Any) -> None:
    """Every vehicle's demand with its error bars, side by side within the hour."""
    vehicles, hours = x.shape
    places = np.arange(hours) + (np.arange(vehicles)[:, None] + 0.5) / vehicles
    bars(ax, places.ravel(), band.lower.ravel(), band.upper.ravel(), thick=0.7)
    ax.plot(places.ravel(), x.ravel(), "o", color=BLUE, markersize=2.0, zorder=6, label="each vehicle,\nin their order")
    for hour in range(1, hours):
        ax.axvline(hour, color=GREY, linewidth=0.4, alpha=0.5)
    ax.set_ylabel("each vehicle\n(kWh per hour)")
    ax.set_ylim(bottom=min(0.0, float(band.lower.min())))
    beside(ax)


def _spread(ax: "Axes", rows: FloatArray, colour: str, middle: str, whose: str) -> None:
    """Mean and band of the rows, a step per hour."""
    low, high = np.percentile(rows, SPREAD, axis=0)
    ax.stairs(high, baseline=low, fill=True, color=colour, alpha=0.25, label=f"{SPREAD[0]}–{SPREAD[1]} %\n{whose}")
    ax.stairs(rows.mean(axis=0), color=colour, linewidth=2.0, baseline=None, label=middle)
