"""Figure 2 of the paper: aggregate demand at the equilibrium and as approximated from 3000 days; prices below."""

from collections.abc import Sequence

import numpy as np

from epszero.experiments._charging import MOST, Trials, charging, surrogate_piece, trial_pieces
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._series import demand_table, draw_demand
from epszero.experiments._store import Arrays, Piece

TITLE = "Figure 2: aggregate demand and prices (s = 3000, K = 1000)"
K = 1000


def pieces(setting: Setting) -> Sequence[Piece]:
    """Those of Figure 1 with the most samples."""
    return [surrogate_piece(setting), *trial_pieces(setting, MOST, K)]


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Demand by hour."""
    trials = Trials.gathered(found[1:], found[0]["x"])
    it = charging()
    off = np.abs(trials.demand.mean(axis=0) - it.exact.mean(axis=0))
    other = np.abs(trials.surrogate.mean(axis=0) - it.exact.mean(axis=0))
    comparisons = (
        Comparison(
            "σ(x^1001) against σ(x*)",
            "two curves, compared by eye",
            f"they differ by at most {off.max():.3g} kWh an hour; trials spread by "
            f"{trials.demand.std(axis=0).max():.2g}",
            "The rest is not noise: K = 1000 steps of γ = 0.02 stop short of the equilibrium.",
        ),
        Comparison(
            "σ(x*) itself",
            "under the uniform law between least and greatest price",
            f"up to {other.max():.3g} kWh an hour away from σ(x*) under the law of the days",
            "Rare price spikes move the middle of the range, and with it that law's mean, far from the mean price.",
        ),
        Comparison(
            "bidding zone",
            "not named",
            "Dutch",
            "Ten years of the same length (3649 days); other zones have other prices.",
        ),
    )
    figure = draw_demand(trials, "x¹⁰⁰¹", f"{setting.trials} trials, s = {MOST}, K = {K}")
    return Outcome(demand_table(trials), comparisons, figure)
