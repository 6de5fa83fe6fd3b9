"""Certificates against the number of samples, on logarithmic axes, with slopes: what more days buy."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from epszero.experiments._charging import DELTA, FloatArray, charging
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._store import Arrays, Piece
from epszero.experiments.tightness import certified, true_errors
from epszero.report import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, beside, figure, tidy

TITLE = "Growth: ε against the number of samples, with slopes"
SIZES = (100, 300, 1000, 3000, 10_000, 30_000)
KINDS = {
    "paper, as published": GREEN,
    "paper, repaired": ORANGE,
    "vector stability": RED,
    "hold-out of half": PURPLE,
    "default (empirical Bernstein)": BLUE,
    "mean deviation, betting": SKY,
}


def pieces(setting: Setting) -> Sequence[Piece]:
    """A few data sets for every s."""
    few = min(setting.trials, 5)
    trials = [Piece(f"growth-s{s}-{few}", lambda s=s: certified(setting, s, range(few), tuple(KINDS))) for s in SIZES]
    return [*trials, *(Piece(f"quantile-s{s}", lambda s=s: {"errors": true_errors(setting, s)}) for s in SIZES[:4])]


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Means, slopes between the last two decades, and the limit that the paper's bound has."""
    del setting
    epsilon = np.array([part["epsilon"].mean(axis=1) for part in found[: len(SIZES)]])  # rows s, columns kinds
    it = charging()
    floor = float(np.sqrt(20) * np.linalg.norm(it.pool.values - it.law.values, axis=1).mean())
    exact = [float(np.quantile(part["errors"], 1 - DELTA)) for part in found[len(SIZES) :]]
    truth = [*exact, *(exact[-1] * np.sqrt(SIZES[3] / s) for s in SIZES[4:])]
    slopes = [_slope(column) for column in epsilon.T]
    rows = {**dict(zip(KINDS, epsilon.T, strict=True)), "true 95 % quantile": np.array(truth)}
    table = pl.DataFrame(
        {
            "certificate": list(rows),
            **{f"s = {s}": [row[place] for row in rows.values()] for place, s in enumerate(SIZES)},
            "slope": [_slope(row) for row in rows.values()],
        }
    )
    default = list(KINDS).index("default (empirical Bernstein)")
    comparisons = (
        Comparison(
            "slope of ln ε over ln s",
            "−½ until its limit",
            f"{slopes[default]:.3f}: terms of lower order still fade, then −½",
            f"The paper's ε cannot fall below E‖O − B‖ = {floor:.3g}, which its stability term would reach at about "
            f"s = {SIZES[-1] * (epsilon[-1, 0] / floor) ** 2:.0e}; ours has no such limit.",
        ),
        Comparison(
            f"ε at s = {SIZES[-1]}",
            f"{epsilon[-1, 0]:.3g}",
            f"{epsilon[-1, default]:.3g}",
            f"{epsilon[-1, default] / truth[-1]:.3g} times the true quantile; the limit of that ratio is about 1.4.",
        ),
    )
    sheet = figure(9.5, 5.0)
    ax = sheet.subplots()
    for (name, colour), column, slope in zip(KINDS.items(), epsilon.T, slopes, strict=True):
        ax.loglog(SIZES, column, marker="o", color=colour, label=f"{name} ({slope:.2f})")
    ax.loglog(SIZES, truth, color="black", linestyle="--", label="true 95 % quantile (−0.50)")
    ax.axhline(floor, color=GREY, linestyle=":", label="limit of the paper's ε: E‖O − B‖")
    ax.set_xlabel("samples s")
    ax.set_ylabel("mean ε")
    beside(ax)
    tidy(ax)
    return Outcome(table, comparisons, sheet)


def _slope(values: FloatArray) -> float:
    """Of ln ε over ln s, from the last four sizes."""
    return float(np.polyfit(np.log(SIZES[2:]), np.log(values[2:]), 1)[0])
