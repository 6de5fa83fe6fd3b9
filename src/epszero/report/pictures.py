"""A picture of any answer: strategies of agents, parts of a point, multipliers; with error bars of a certificate.

Few numbers are bars, side by side for each agent; more are lines, one per agent, and of very many agents the mean and
the band in which most lie. The pictures of models share what is here: error bars, and what is said below them.
"""

import textwrap
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from epszero._checks import InputError, refuse
from epszero._types import FloatArray
from epszero.certificates import Certificate
from epszero.problems import AggregativeGame, Game, Problem
from epszero.report.style import BLUE, COLOURS, GREY, PURPLE, SPREAD, beside, figure, tidy, whole
from epszero.solve import Solution
from epszero.solve.labels import Block, blocks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS = 13.0  # of a note on an inch
BARS = "black"
MOST_PANELS = 6
MOST_COLUMNS = 60  # that are drawn as bars
MOST_LINES = 6  # agents that have a line of their own
MOST_NAMES = 26  # on an axis


def picture(problem: Problem, solution: Any, certificate: Any = None) -> "Figure":
    """A figure of a solution of the problem."""
    if not isinstance(solution, Solution):
        refuse("solution", f"must come from ez.solve, but it is a {type(solution).__name__}", "Pass what it returned")
    try:
        problem.check_point("solution", solution.x)
    except InputError as error:
        remedy = "Pass a solution of this problem"
        raise InputError.about("solution", "is that of another problem", remedy) from error
    sure = with_bands(certificate, solution)
    every = blocks(problem, solution.x, solution.samples)
    ends = [(None, None)] * len(every) if sure is None else _ends(sure, every)
    panels = _together(problem, every, ends)
    prices = solution.multipliers
    shown = panels[:MOST_PANELS]
    sheet = figure(8.0, 2.6 * (len(shown) + (prices is not None)) + (0.4 if certificate is None else 0.8))
    axes: list[Axes] = list(np.atleast_1d(sheet.subplots(len(shown) + (prices is not None), 1)))
    for ax, (title, block, low, high) in zip(axes, shown, strict=False):
        _draw(ax, block, (low, high), sure if isinstance(problem, AggregativeGame) and len(every) == 1 else None)
        ax.set_ylabel(title)
    if prices is not None:
        band = None if sure is None or sure.without_intervals else sure.multipliers
        axes[-1].bar(np.arange(len(prices)), prices, color=PURPLE)
        if band is not None:
            error_bars(axes[-1], np.arange(len(prices)), np.ravel(band.lower), np.ravel(band.upper))
        axes[-1].set_ylabel("multiplier")
        axes[-1].set_xlabel("shared constraint")
        whole(axes[-1])
    left = len(panels) - len(shown)
    axes[0].set_title(
        _title(problem, solution) + (f"; {left} more are not drawn" if left else ""), loc="left", fontsize=11
    )
    tidy(*axes)
    note(sheet, certificate)
    return sheet


Panel = tuple[str, Block, FloatArray | None, FloatArray | None]


def _together(problem: Problem, every: list[Block], ends: list[Any]) -> list[Panel]:
    """One panel for each part; agents whose strategies have one length share one."""
    if isinstance(problem, Game) and len({block.values.shape for block in every}) == 1 and len(every) == problem.agents:
        values = np.concatenate([block.values for block in every])
        low, high = (None if one[0] is None else np.concatenate(one) for one in zip(*ends, strict=True))
        return [("strategy", Block("", values, every[0].entries), low, high)]
    word = "agent " if isinstance(problem, Game) else ""
    alone = "strategy" if isinstance(problem, AggregativeGame) else "x"
    return [(f"{word}{block.name}" if block.name else alone, block, *pair) for block, pair in
            zip(every, ends, strict=True)]  # fmt: skip


def _ends(sure: Certificate, every: list[Block]) -> list[tuple[FloatArray, FloatArray]]:
    band = sure.intervals
    sides = [jax.tree.leaves(side) for side in (band.lower, band.upper)]
    return [
        (np.reshape(low, block.values.shape), np.reshape(high, block.values.shape))
        for low, high, block in zip(*sides, every, strict=True)
    ]


def _draw(
    ax: "Axes", block: Block, ends: tuple[FloatArray | None, FloatArray | None], sure: Certificate | None
) -> None:
    """Rows of numbers, entry by entry."""
    rows, width = block.values.shape
    if width == 1 and rows > 1:  # agents with one number each
        block = Block("", block.values.T, None)
        ends = (None if ends[0] is None else ends[0].T, None if ends[1] is None else ends[1].T)
        rows, width = 1, rows
        ax.set_xlabel("agent")
    else:
        ax.set_xlabel("" if block.entries else "entry")
    places, (low, high) = np.arange(width), ends
    if rows > MOST_LINES:
        _many(ax, block.values, places, sure)
    elif rows * width <= MOST_COLUMNS:
        for i, row in enumerate(block.values):
            at = places + 0.8 * ((i + 0.5) / rows - 0.5)
            ax.bar(
                at, row, width=0.8 / rows, color=COLOURS[i % len(COLOURS)], label=f"{i}" if rows > 1 else "_nolegend_"
            )
            if low is not None and high is not None:
                error_bars(ax, at, low[i], high[i], thick=1.4 if rows * width <= MOST_COLUMNS / 2 else 0.8)
    else:
        for i, row in enumerate(block.values):
            colour = COLOURS[i % len(COLOURS)]
            ax.plot(places, row, color=colour, linewidth=1.5, label=f"{i}" if rows > 1 else "_nolegend_")
            if low is not None and high is not None:
                ax.fill_between(places, low[i], high[i], color=colour, alpha=0.3, linewidth=0)
    ax.axhline(0.0, color=GREY, linewidth=0.8)
    if rows > 1:
        beside(ax)
        legend = ax.get_legend()
        if legend is not None and rows <= MOST_LINES:
            legend.set_title("agent")
    _named(ax, block.entries, width)


def _many(ax: "Axes", values: FloatArray, places: Any, sure: Certificate | None) -> None:
    """Mean and spread over rows that are too many to be told apart; the mean with its certified bounds."""
    lower, upper = np.percentile(values, SPREAD, axis=0)
    mean = values.mean(axis=0)
    label = f"{SPREAD[0]}–{SPREAD[1]} %\nof {len(values):,}"
    step = {"step": "mid"} if len(places) > 1 else {}
    if len(places) == 1:
        ax.vlines(places, lower, upper, color=BLUE, alpha=0.25, linewidth=30.0, label=label)
        ax.plot(places, mean, "_", color=BLUE, markersize=30.0, label="mean")
    else:
        ax.fill_between(places, lower, upper, color=BLUE, alpha=0.25, linewidth=0, label=label, **step)  # pyright: ignore[reportArgumentType]
        ax.plot(places, mean, color=BLUE, drawstyle="steps-mid", linewidth=2.0, label="mean")
    if sure is not None:
        total = sure.aggregate
        ends = (np.ravel(jax.tree.leaves(side)[0]) / len(values) for side in (total.lower, total.upper))
        error_bars(ax, places, *ends, label="certified\nmean")


def _named(ax: "Axes", names: list[str] | None, width: int) -> None:
    if names is None:
        whole(ax)
        return
    every = -(-width // MOST_NAMES)
    tilted = max(map(len, names[::every])) * (width / every) > 70
    ax.set_xticks(
        range(0, width, every), names[::every], rotation=45 if tilted else 0, ha="right" if tilted else "center"
    )


def _title(problem: Problem, solution: Solution) -> str:
    if isinstance(problem, Game | AggregativeGame):
        return f"{type(problem).__name__}: {problem.agents:,} agents"
    many = sum(int(np.size(leaf)) for leaf in jax.tree.leaves(solution.x))
    return f"{type(problem).__name__}: {many:,} entries"


# -- what all pictures share -------------------------------------------------------------------------------------------


def with_bands(certificate: object, solution: Solution) -> Certificate | None:
    """The certificate, where it has error bars for the picture; refused where it is of another solution."""
    if certificate is None:
        return None
    if not isinstance(certificate, Certificate):
        kind = type(certificate).__name__
        refuse(
            "certificate", f"must come from ez.certify, but it is a {kind}", "Pass what it returned, or leave it out"
        )
    other = certificate.solution
    if other is not None and other is not solution and not _same(other.x, solution.x):
        refuse("certificate", "speaks of another solution", "Pass the certificate of this solution")
    return None if certificate.without_intervals else certificate


def _same(one: Any, other: Any) -> bool:
    (left, nest), (right, other_nest) = jax.tree.flatten(one), jax.tree.flatten(other)
    return nest == other_nest and all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def error_bars(
    ax: "Axes", places: ArrayLike, lower: FloatArray, upper: FloatArray, label: str = "", thick: float = 1.4
) -> None:
    """From lower to upper; thick ones with ends, which are seen where the rest is short."""
    ax.vlines(places, lower, upper, color=BARS, linewidth=thick, zorder=5, label=label or "_nolegend_")
    for ends in (lower, upper) if thick > 1 else ():
        ax.plot(places, ends, "_", color=BARS, markersize=2.5 + 2.5 * thick, markeredgewidth=thick, zorder=5)


def note(sheet: "Figure", certificate: Certificate | None) -> None:
    """Below the figure: how sure its error bars are, or why there are none."""
    if certificate is None:
        return
    why = certificate.without_intervals
    guess = ", as a guess," if certificate.verdict == "heuristic" else ""
    sure = f"error bars: with {100 * (1 - certificate.delta):.6g} %{guess} all hold together, with the certificate"
    text = f"without error bars: {why}" if why else sure
    letters = int(LETTERS * sheet.get_figwidth())
    sheet.supxlabel(textwrap.fill(text, letters), fontsize=8, color=GREY, x=0.01, ha="left")
