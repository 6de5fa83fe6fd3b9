"""Both references for x*: exact under the law of the pool, and the paper's surrogate scheme. How far apart are they?"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from epszero.experiments._charging import SCHEME_ITERATIONS, SCHEME_STEP, charging, surrogate_piece
from epszero.experiments._outcome import Comparison, Outcome, Setting, size
from epszero.experiments._series import percent
from epszero.experiments._store import Arrays, Piece
from epszero.report import BLUE, GREEN, ORANGE, SKY, beside, figure, tidy

TITLE = "References: the equilibrium under the law of the days, and by the paper's surrogate scheme"


def pieces(setting: Setting) -> Sequence[Piece]:
    """The scheme's run."""
    return [surrogate_piece(setting)]


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Three points, their distances and demands."""
    it, scheme = charging(), found[0]["x"]
    points = {
        "law of the pool (x*)": it.exact,
        "surrogate law, solved exactly": it.uniform,
        f"surrogate law, the paper's scheme ({int(found[0]['drawn']):,} draws)": scheme,
    }
    table = pl.DataFrame(
        [
            {
                "reference": name,
                "‖x‖": size(x),
                "distance to x*, relative": size(x - it.exact) / size(it.exact),
                "distance to the surrogate law's, relative": size(x - it.uniform) / size(it.uniform),
                "least demand (kWh)": float(x.mean(axis=0).min()),
                "greatest demand (kWh)": float(x.mean(axis=0).max()),
            }
            for name, x in points.items()
        ]
    )
    values = it.pool.values
    middle = (values.min(axis=0) + values.max(axis=0)) / 2
    comparisons = (
        Comparison(
            "the law behind x*",
            "uniform between each hour's least and greatest price of the pool",
            f"its mean price is {middle.mean():.3f} €/kWh; that of the days is {values.mean():.3f} €/kWh",
            "The extremes are single days (a crisis in August 2022, a storm of negative prices).",
        ),
        Comparison(
            "x*",
            "one reference",
            f"the two equilibria are {percent(size(it.uniform - it.exact) / size(it.exact))} of the norm of the first "
            f"apart, {percent(size(it.uniform - it.exact) / size(it.uniform))} of that of the second",
            "An error measured against the surrogate's x* tends to the latter, however many samples.",
        ),
        Comparison(
            "accuracy of the scheme",
            "not given",
            f"{percent(size(scheme - it.uniform) / size(it.uniform))} from its own limit",
            f"{SCHEME_ITERATIONS} iterations with γ = {SCHEME_STEP:g}; the paper gives neither.",
        ),
    )
    sheet = figure(9.0, 5.6)
    top, bottom = sheet.subplots(2, 1, sharex=True)
    hours = np.arange(values.shape[1])
    for (name, x), colour, line in zip(points.items(), (BLUE, GREEN, SKY), ("-", "-", "--"), strict=True):
        top.plot(hours, x.mean(axis=0), color=colour, linestyle=line, linewidth=2.0, label=name.split(" (")[0])
    top.set_ylabel("average demand (kWh per hour)")
    bottom.plot(hours, values.mean(axis=0), color=BLUE, label="mean of the days")
    bottom.plot(hours, middle, color=GREEN, label="mean of the surrogate law")
    bottom.fill_between(hours, values.min(axis=0), values.max(axis=0), color=ORANGE, alpha=0.2, label="all days")
    bottom.set_ylabel("price (€/kWh)")
    bottom.set_xticks(hours[::2], [f"{hour}:00" for hour in hours[::2]])
    bottom.set_xlabel("time of day")
    for ax in (top, bottom):
        beside(ax)
    tidy(top, bottom)
    return Outcome(table, comparisons, sheet)
