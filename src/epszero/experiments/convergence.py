"""Convergence: the paper's step γ = 0.02 against ours, from the exact constants, on the same 3000 days."""

from collections.abc import Sequence

import numpy as np
import polars as pl

import epszero as ez
from epszero.experiments._charging import GAMMA, MOST, charging
from epszero.experiments._outcome import Comparison, Outcome, Setting, size
from epszero.experiments._series import percent
from epszero.experiments._store import Arrays, Piece
from epszero.report import BLUE, GREEN, GREY, figure, tidy

TITLE = "Convergence: the paper's step and ours (s = 3000)"
LENGTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def pieces(setting: Setting) -> Sequence[Piece]:
    """One run for each length and step."""
    return [Piece("convergence", lambda: _runs(setting))]


def _runs(setting: Setting) -> Arrays:
    it = charging()
    (data,) = it.draws(setting, MOST, [0])
    limit = ez.solve(it.game, data, tol=1e-12).x
    ours = ez.solve(it.game, data)
    found: Arrays = {
        "step": np.array(float(np.max(ours.step))),
        "stopped": np.array(ours.iterations),
        "floor": np.array(size(limit - it.exact) / size(it.exact)),
    }
    for name, step in (("paper", GAMMA), ("ours", float(found["step"]))):
        runs = [ez.solve(it.game, data, ez.ForwardBackward(step), iterations=K) for K in LENGTHS]
        found[f"{name}_to_limit"] = np.array([size(run.x - limit) / size(limit) for run in runs])
        found[f"{name}_to_truth"] = np.array([size(run.x - it.exact) / size(it.exact) for run in runs])
        found[f"{name}_residual"] = np.array([run.residual for run in runs])
    return found


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Distance to the data's own equilibrium and to the truth."""
    del setting
    (one,) = found
    table = pl.DataFrame(
        {
            "K": LENGTHS,
            "γ = 0.02: to the data's equilibrium": one["paper_to_limit"],
            "γ = 0.02: to x*": one["paper_to_truth"],
            "our step: to the data's equilibrium": one["ours_to_limit"],
            "our step: to x*": one["ours_to_truth"],
        }
    )
    K = LENGTHS.index(1000)
    last = one["paper_to_limit"]
    comparisons = (
        Comparison(
            "step",
            f"γ = {GAMMA}",
            f"γ = {float(one['step']):.3g}, from the exact μ and κ",
            "The paper's lemma allows γ < 2μ/κ². As this game has a potential, 2/(μ + κ) converges too, and fastest.",
        ),
        Comparison(
            "distance to the data's own equilibrium after K = 1000",
            percent(float(last[K])),
            f"{one['ours_to_limit'][K]:.1e}",
            f"ours stops at a residual of 1e-9 after {int(one['stopped'])} iterations",
        ),
        Comparison(
            "what 3000 days leave open",
            "—",
            percent(float(one["floor"])),
            "‖x̂ − x*‖/‖x*‖ of this data set, where iterations end in the long run: beyond it only more days help.",
        ),
    )
    sheet = figure(8.5, 4.4)
    ax = sheet.subplots()
    for name, colour, label in (("paper", GREEN, "γ = 0.02"), ("ours", BLUE, f"γ = {float(one['step']):.3g}")):
        ax.loglog(
            LENGTHS,
            np.maximum(one[f"{name}_to_limit"], 1e-13),
            color=colour,
            marker="o",
            label=f"{label}: to x̂ (these days)",
        )
        ax.loglog(
            LENGTHS, one[f"{name}_to_truth"], color=colour, linestyle=":", marker=".", label=f"{label}: to x* (the law)"
        )
    ax.axhline(float(one["floor"]), color=GREY, linestyle="--", linewidth=1.0, label="‖x̂ − x*‖/‖x*‖")
    ax.set_xlabel("iterations K")
    ax.set_ylabel("relative distance")
    ax.legend(frameon=False, fontsize=9)
    tidy(ax)
    return Outcome(table, comparisons, sheet)
