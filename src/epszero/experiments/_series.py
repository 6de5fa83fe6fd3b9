"""Figures 1 and 3, and 2 and 4, are drawn alike: errors and bounds over a series of trials; demand and prices."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epszero.experiments._charging import FloatArray, Trials, charging
from epszero.experiments._store import Arrays
from epszero.report import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, beside, figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOUNDS = {  # array of a trial: its name in the legend, marker, colour
    "printed": ("paper's ε (printed constants)", "v", GREEN),
    "paper": ("paper's ε (proved constants)", "^", GREEN),
    "printed_risk": ("paper's ε_residual (what “30 %” is)", "d", GREEN),
    "repaired": ("paper's ε, repaired", "s", ORANGE),
    "distance": ("our bound on ‖x − x*‖", "o", PURPLE),
    "ours": ("our ε", "o", BLUE),
    "true": ("true ‖z + B(x)‖", "x", GREY),
}
BOXES = 0.35  # of the height, for the boxes; the bounds are drawn above


def series_table(name: str, series: Mapping[int, Trials]) -> pl.DataFrame:
    """One row for each s, or each K."""
    return pl.DataFrame([{name: value, **trials.row()} for value, trials in series.items()])


def series_data(name: str, series: Mapping[int, Trials]) -> pl.DataFrame:
    """One row for each trial."""
    frames: list[pl.DataFrame] = []
    for value, trials in series.items():
        numbers = {key: array for key, array in trials.arrays.items() if array.ndim == 1}
        columns: dict[str, Any] = {
            "trial": np.arange(len(trials.error)),
            "error": trials.error,
            "error by the paper's x*": trials.surrogate_error,
            **numbers,
        }
        frames.append(pl.DataFrame(columns).insert_column(0, pl.Series(name, [value] * len(trials.error))))
    return pl.concat(frames)


def draw_series(name: str, series: Mapping[int, Trials], title: str) -> "Figure":
    """Box plots of the relative error on the left axis, mean bounds on a logarithmic one on the right.

    Both axes are stretched so that boxes lie below and bounds above. Below: the error by the paper's reference.
    """
    sheet = figure(10.0, 6.4)
    left, lower = sheet.subplots(2, 1, sharex=True, height_ratios=[3.2, 1.0])
    places = np.arange(len(series), dtype=float)
    errors = [100 * one.error for one in series.values()]
    boxes(left, places, errors, BLUE, "error, x* under the law of the pool")
    boxes(lower, places, [100 * one.surrogate_error for one in series.values()], SKY, "error, x* by the paper's scheme")
    low, high = min(map(np.min, errors)), max(map(np.max, errors))
    left.set_ylim(low - 0.1 * (high - low), low + (high - low) / BOXES)
    left.set_ylabel("relative error ‖x − x*‖/‖x*‖ (%)")
    lower.set_ylabel("relative error (%)")
    right = left.twinx()
    means = {array: [float(one.relative(array).mean()) for one in series.values()] for array in BOUNDS}
    for array, (label, marker, colour) in BOUNDS.items():
        hollow = "none" if array in ("paper", "distance") else colour
        right.semilogy(
            places, means[array], marker=marker, color=colour, markerfacecolor=hollow, linewidth=0.8, label=label
        )
    least, greatest = min(map(min, means.values())) / 2, max(map(max, means.values())) * 2
    right.set_ylim(least * (least / greatest) ** (BOXES / (1 - BOXES)), greatest)
    right.set_ylabel("mean bound, as a multiple of ‖x*‖")
    lower.set_xticks(places, [f"{value:,}" for value in series])
    lower.set_xlabel(name)
    left.set_title(title, loc="left", fontsize=11)
    tidy(left, lower)
    right.spines["top"].set_visible(False)
    shown = [ax.get_legend_handles_labels() for ax in (right, left, lower)]
    sheet.legend(
        [line for lines, _ in shown for line in lines],
        [label for _, labels in shown for label in labels],
        loc="outside right center",
        frameon=False,
        fontsize=9,
    )
    return sheet


def boxes(ax: "Axes", places: FloatArray, columns: Sequence[FloatArray], colour: str, label: str) -> None:
    """One box per column, filled."""
    drawn = ax.boxplot(
        columns,
        positions=places.tolist(),
        widths=0.4,
        patch_artist=True,
        manage_ticks=False,
        flierprops={"markersize": 3, "marker": "."},
        medianprops={"color": "black"},
    )
    for box in drawn["boxes"]:
        box.set(facecolor=colour, alpha=0.55)
    ax.plot([], [], color=colour, linewidth=8, alpha=0.55, label=label)


def draw_demand(trials: Trials, output: str, title: str) -> "Figure":
    """Aggregate demand at the equilibrium and at the trials' mean; the price's mean and spread below."""
    it = charging()
    prices = it.pool.values
    sheet = figure(9.0, 5.6)
    top, bottom = sheet.subplots(2, 1, sharex=True)
    hours = np.arange(prices.shape[1])
    top.plot(hours, it.exact.mean(axis=0), color=BLUE, linewidth=2.5, label="σ(x*), law of the pool")
    top.plot(hours, trials.surrogate.mean(axis=0), color=SKY, linestyle="--", label="σ(x*), paper's scheme")
    band(top, hours, trials.demand, RED, f"mean of σ({output}),\n± standard deviation")
    top.set_ylabel("average demand (kWh per hour)")
    top.set_title(title, loc="left", fontsize=11)
    band(bottom, hours, prices, ORANGE, "mean price,\n± standard deviation")
    bottom.set_ylabel("price (€/kWh)")
    bottom.set_xticks(hours, [f"{hour}:00" for hour in hours])
    bottom.set_xlabel("time of day")
    for ax in (top, bottom):
        beside(ax)
    tidy(top, bottom)
    return sheet


def band(ax: "Axes", places: NDArray[Any], rows: FloatArray, colour: str, label: str) -> None:
    """Mean and standard deviation of the rows."""
    mean, spread = rows.mean(axis=0), rows.std(axis=0)
    ax.fill_between(places, mean - spread, mean + spread, color=colour, alpha=0.25)
    ax.plot(places, mean, color=colour, linewidth=2.0, label=label)


def demand_table(trials: Trials) -> pl.DataFrame:
    """One row for each hour."""
    it = charging()
    demand, prices = trials.demand, it.pool.values
    return pl.DataFrame(
        {
            "hour": np.arange(prices.shape[1]),
            "σ(x*)": it.exact.mean(axis=0),
            "σ(x*) by the paper's scheme": trials.surrogate.mean(axis=0),
            "σ(x), mean of trials": demand.mean(axis=0),
            "σ(x), standard deviation": demand.std(axis=0),
            "price, mean": prices.mean(axis=0),
            "price, standard deviation": prices.std(axis=0),
        }
    )


def percent(value: float) -> str:
    """A share, for a sentence."""
    return f"{100 * value:.3g} %"


def multiple(value: float) -> str:
    """A multiple of ‖x*‖, for a sentence."""
    return f"{value:,.3g} ‖x*‖" if value < 1e5 else f"{value:.2e} ‖x*‖"


def split_pieces(found: Sequence[Arrays], counts: Sequence[int]) -> list[list[Arrays]]:
    """What the pieces gave, cut into runs of so many."""
    ends = np.cumsum(counts).tolist()
    return [list(found[end - many : end]) for end, many in zip(ends, counts, strict=True)]
