"""Figure 4 of the paper: aggregate demand at the equilibrium and after K = 5000 iterations on 3000 days."""

from collections.abc import Sequence

import numpy as np

from epszero.experiments._charging import MOST, Trials, charging, surrogate_piece, trial_pieces
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._series import demand_table, draw_demand
from epszero.experiments._store import Arrays, Piece

TITLE = "Figure 4: aggregate demand (s = 3000, K = 5000)"
K = 5000


def pieces(setting: Setting) -> Sequence[Piece]:
    """Those of Figure 3 with K = 5000."""
    return [surrogate_piece(setting), *trial_pieces(setting, MOST, K)]


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Demand by hour."""
    trials = Trials.gathered(found[1:], found[0]["x"])
    off = np.abs(trials.demand.mean(axis=0) - charging().exact.mean(axis=0))
    comparisons = (
        Comparison(
            "σ(x^5001) against σ(x*)",
            "two curves, compared by eye",
            f"they differ by at most {off.max():.3g} kWh an hour; trials spread by "
            f"{trials.demand.std(axis=0).max():.2g}",
            "Nearer than after 1000 iterations (Figure 2), and the spread between trials is what 3000 days leave open.",
        ),
    )
    figure = draw_demand(trials, "x⁵⁰⁰¹", f"{setting.trials} trials, s = {MOST}, K = {K}")
    return Outcome(demand_table(trials), comparisons, figure)
