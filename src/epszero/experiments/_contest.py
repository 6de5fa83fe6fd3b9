"""The figure of `likely`: coverage and width against s for every law; coverage of the cost gap where there is one."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from epszero.report import figure, tidy

MARKS = {"sure": "o", "likely": "s", "misused": "x"}
STYLES: dict[str, Any] = {"sure": "-", "likely": "--", "misused": ":"}
APART, WIDEST = (
    1.13,
    1.6,
)  # by which neighbours, and the first and the last, are moved along s: no interval hides another
NOMINAL = 95.0


def answered() -> pl.Expr:
    """Whether at most half of the data sets were refused: of fewer a coverage says little."""
    return 2 * pl.col("refused") <= pl.col("data sets")


def drawn_contest(table: pl.DataFrame, colours: dict[str, str], titles: Sequence[str]) -> Any:
    """A column per law; rows: coverage of the distance, its width, coverage of the cost gap."""
    sheet = figure(15.0, 9.6)
    grid = sheet.subplots(3, len(titles), sharex=True)
    sizes = table["s"].unique().sort().to_list()
    used: list[Any] = []
    for column, title in enumerate(titles):
        of_law = table.filter(pl.col("law") == title)
        distance, gap = (of_law.filter(pl.col("line") == line) for line in ("‖x − x*‖", "cost gap"))
        top, middle, bottom = grid[:, column]
        top.set_title(title, loc="left", fontsize=11)
        _coverage(top, distance, colours)
        _width(middle, distance, colours)
        if gap.height:
            _coverage(bottom, gap, colours)
            used.append(bottom)
        else:
            bottom.set_axis_off()
            middle.tick_params(labelbottom=True)
        used += [top, middle]
        for ax in grid[:, column]:
            ax.set_xscale("log")
            ax.set_xticks(sizes, [str(s) for s in sizes])
            ax.minorticks_off()
            ax.set_xlim(sizes[0] / 1.5, sizes[-1] * 1.5)
        (bottom if gap.height else middle).set_xlabel("samples s")
    grid[0, 0].set_ylabel("‖x − x*‖: coverage (%)")
    grid[1, 0].set_ylabel("‖x − x*‖: bound / true quantile")
    first = next((ax for ax in grid[2] if ax.axison), None)
    if first is not None:
        first.set_ylabel("cost gap: coverage (%)")
    tidy(*used)
    _legend(sheet, grid, table, colours)
    return sheet


def _series(table: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """Who, sure or likely, and the rows where most data sets got a number."""
    names = table["by"].unique(maintain_order=True).to_list()
    parts = [table.filter(pl.col("by") == name) for name in names]
    return [(name, part["kind"][0], part.filter(answered()).sort("s")) for name, part in zip(names, parts, strict=True)]


def _coverage(ax: Any, table: pl.DataFrame, colours: dict[str, str]) -> None:
    series = _series(table)
    apart = min(APART, WIDEST ** (1 / max(len(series) - 1, 1)))
    ax.axhline(NOMINAL, color="black", linewidth=1.0, linestyle="--")
    refused: list[str] = []
    for place, (name, kind, rows) in enumerate(series):
        s = rows["s"].to_numpy() * apart ** (place - (len(series) - 1) / 2)
        share, low, high = (
            100 * rows[column].to_numpy() for column in ("coverage", "99 % interval, low", "99 % interval, high")
        )
        ends = np.maximum([share - low, high - share], 0)
        ax.errorbar(s, share, ends, color=colours[name], marker=MARKS[kind], markersize=4, linewidth=1.3,
                    linestyle=STYLES[kind], elinewidth=1.0)  # fmt: skip
        missing = table.filter(pl.col("by") == name, ~answered())["s"].to_list()
        if missing:
            refused.append(f"{name}: refuses {_when(missing, rows['s'].to_list())}")
    ax.set_ylim(0, 103)
    for line, text in enumerate(refused):
        ax.annotate(text, (0.03, 0.04 + 0.07 * line), xycoords="axes fraction", fontsize=7.5).set_in_layout(False)


def _when(missing: list[int], said: list[int]) -> str:
    """At which s most data sets were refused."""
    if not said:
        return "always"
    if max(missing) < min(said):
        return f"for s ≤ {max(missing)}"
    return f"for s ≥ {min(missing)}" if min(missing) > max(said) else f"at s = {', '.join(map(str, sorted(missing)))}"


def _width(ax: Any, table: pl.DataFrame, colours: dict[str, str]) -> None:
    for name, kind, rows in _series(table):
        ax.plot(rows["s"], rows["width"], color=colours[name], marker=MARKS[kind], markersize=4, linewidth=1.3,
                linestyle=STYLES[kind])  # fmt: skip
    ax.axhline(1.0, color="black", linewidth=1.0, linestyle="--")
    floor = table.filter(pl.col("floor over quantile").is_not_null()).unique("s").sort("s")
    if floor.height:
        ax.fill_between(floor["s"], 1e-3, floor["floor over quantile"], color="black", alpha=0.12, linewidth=0)
    ax.set_yscale("log")
    values = [*table.filter(answered())["width"], *floor["floor over quantile"]]
    ax.set_ylim(min(0.1, *values) / 1.3, max(values) * 1.5)


def _legend(sheet: Any, grid: Any, table: pl.DataFrame, colours: dict[str, str]) -> None:
    from matplotlib.lines import Line2D  # noqa: PLC0415  (for those who draw)
    from matplotlib.patches import Patch  # noqa: PLC0415

    kinds = dict(zip(table["by"], table["kind"], strict=True))
    handles: list[Any] = [
        Line2D(
            [],
            [],
            color=colours[name],
            marker=MARKS[kind],
            markersize=4,
            linestyle=STYLES[kind],
            label=f"{kind}: {name}",
        )
        for name, kind in sorted(kinds.items(), key=lambda one: list(MARKS).index(one[1]))
    ]
    handles.append(
        Line2D([], [], color="black", linewidth=1.0, linestyle="--", label="95 %, and the true 95 % quantile")
    )
    handles.append(Patch(color="black", alpha=0.12, linewidth=0, label="below the floor: no sure bound can be here"))
    free = next((ax for ax in grid[2] if not ax.axison), None)
    if free is None:
        sheet.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    else:
        legend = free.legend(handles=handles, loc="upper left", frameon=False, fontsize=9.5, borderaxespad=0.0)
        legend.set_in_layout(False)
