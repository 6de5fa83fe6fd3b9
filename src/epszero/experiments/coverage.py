"""Coverage: of many data sets, how often does the truth lie beyond the certificate? More than δ of them is wrong."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from scipy import stats

import epszero as ez
from epszero.experiments._charging import DELTA, charging
from epszero.experiments._outcome import Comparison, Outcome, Setting, finite, size
from epszero.experiments._store import Arrays, Piece
from epszero.experiments.tightness import RUNS
from epszero.report import BLUE, RED, figure, tidy

C = ez.certificates
TITLE = "Coverage: how often the truth lies beyond the certificate (s = 100, δ = 0.05)"
S, TIMES = 100, 10  # so many more trials than elsewhere
KINDS: dict[str, tuple[Any, str]] = {
    "default (empirical Bernstein)": (None, "solved"),
    "mean deviation, betting": (C.MeanDeviation(C.Betting()), "solved"),
    "mean deviation, Hoeffding": (C.MeanDeviation(C.Hoeffding()), "solved"),
    "anytime": (C.Anytime(), "solved"),
    "hold-out of half": (C.HoldOut(), "half"),
}
BROKEN = "broken on purpose: one standard deviation of the mean"


def pieces(setting: Setting) -> Sequence[Piece]:
    """Batches of a hundred."""
    batches = setting.batches(100, TIMES * setting.trials)
    return [
        Piece(f"coverage-trials{batch.start}to{batch.stop}", lambda batch=batch: _trials(setting, batch))
        for batch in batches
    ]


def _trials(setting: Setting, batch: range) -> Arrays:
    """Truth over bound for ε, distance and saving: a row per kind, a column per trial; above 1 is a miss."""
    it = charging()
    draws = [it.pool.take(S, seed=setting.generator(4, trial)) for trial in batch]
    solved = {run: RUNS[run](draws) for run in ("solved", "half")}
    truth = {run: it.errors(solutions) for run, solutions in solved.items()}
    away = {run: np.array([size(one.x - it.exact) for one in solutions]) for run, solutions in solved.items()}
    rows: dict[str, list[Any]] = {"residual": [], "distance": []}
    for kind, run in KINDS.values():
        found = ez.certify_many(solved[run], DELTA, kind)
        rows["residual"].append(truth[run] / [one.epsilon for one in found])
        rows["distance"].append(away[run] / finite([one.distance for one in found]))
    spread = [np.sqrt(20 * np.sum(np.var(draw.values, axis=0)) / S) for draw in draws]
    rows["residual"].append(truth["solved"] / spread)
    rows["distance"].append(np.full(len(batch), np.nan))
    return {name: np.array(values) for name, values in rows.items()}


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Shares, each with a 99 % interval (Clopper–Pearson)."""
    del setting
    residual, distance = (np.concatenate([part[name] for part in found], axis=1) for name in ("residual", "distance"))
    many, names = residual.shape[1], [*KINDS, BROKEN]
    misses = (residual > 1).sum(axis=1)
    exact = [stats.binomtest(int(count), many).proportion_ci(0.99) for count in misses]
    table = pl.DataFrame(
        {
            "certificate": names,
            "trials": [many] * len(names),
            "missed ‖e‖": misses / many,
            "99 % interval, low": [float(one.low) for one in exact],
            "99 % interval, high": [float(one.high) for one in exact],
            "missed ‖x − x*‖": [*((row > 1).mean() for row in distance[:-1]), None],
            "verdict": ["fine" if one.low <= DELTA else "convicted: more than δ" for one in exact],
        }
    )
    worst = max(misses[:-1]) / many
    comparisons = (
        Comparison(
            "misses, at most δ = 5 %",
            "not measured",
            f"at most {100 * worst:.2g} % of {many} data sets",
            "Bounds that hold for every law of bounded prices are wide for this one.",
        ),
        Comparison(
            "a broken bound",
            "—",
            f"{100 * misses[-1] / many:.3g} % missed",
            f"By the same count: {table['verdict'][-1]}.",
        ),
    )
    sheet = figure(9.0, 3.8)
    ax = sheet.subplots()
    places = np.arange(len(names))[::-1]
    low, high = (np.array([getattr(one, end) for one in exact]) for end in ("low", "high"))
    colours = [BLUE] * len(KINDS) + [RED]
    for place, share, left, right, colour in zip(places, misses / many, low, high, colours, strict=True):
        ax.plot([100 * left, 100 * right], [place, place], color=colour, linewidth=2.0)
        ax.plot([100 * share], [place], marker="o", color=colour)
    ax.axvline(100 * DELTA, color="black", linestyle="--", linewidth=1.0)
    ax.set_yticks(places, names)
    ax.set_xscale("symlog", linthresh=1.0)
    ax.set_xticks([0, 0.5, 1, 2, 5, 10, 50, 100], ["0", "0.5", "1", "2", "5", "10", "50", "100"])
    ax.set_xlim(-0.05, 100)
    ax.set_xlabel(f"% of {many} data sets beyond ε, with a 99 % interval; dashed: δ")
    tidy(ax)
    return Outcome(table, comparisons, sheet)
