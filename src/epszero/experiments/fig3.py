"""Figure 3 of the paper: the relative error and the bounds against the number of iterations, with s = 3000 samples."""

from collections.abc import Sequence

import numpy as np

from epszero.experiments._charging import DELTA, ITERATIONS, MOST, Trials, charging, surrogate_piece, trial_pieces
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._series import draw_series, multiple, percent, series_data, series_table, split_pieces
from epszero.experiments._store import Arrays, Piece

TITLE = "Figure 3: error and bounds against the number of iterations K (s = 3000, γ = 0.02, δ = 0.05)"


def pieces(setting: Setting) -> Sequence[Piece]:
    """The trials for every K."""
    return [surrogate_piece(setting), *(piece for K in ITERATIONS for piece in trial_pieces(setting, MOST, K))]


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Box plots and bounds."""
    groups = split_pieces(found[1:], [len(setting.batches())] * len(ITERATIONS))
    series = {K: Trials.gathered(group, found[0]["x"]) for K, group in zip(ITERATIONS, groups, strict=True)}
    first, last = series[ITERATIONS[0]], series[ITERATIONS[-1]]
    share = 1 - last.arrays["paper"].mean() / first.arrays["paper"].mean()
    noise = np.sqrt(20) * np.linalg.norm(charging().pool.values - charging().law.values, axis=1).mean()
    errors = ", ".join(f"{percent(float(np.median(one.error)))} at {K}" for K, one in series.items())
    comparisons = (
        Comparison(
            "the bound against K",
            "a limited number of iterations is “dominated” by the empirical error",
            f"paper's ε: {multiple(first.relative('paper').mean())} at K = {ITERATIONS[0]}, "
            f"{multiple(last.relative('paper').mean())} at {ITERATIONS[-1]}",
            f"All that K changes in ε as published is the empirical risk, {share:.0e} of the whole; the stability "
            "term, which does not depend on K, dominates.",
        ),
        Comparison(
            "what is left of ε as s, K → ∞",
            "not discussed",
            f"E‖O(x*, ξ) − B(x*)‖ = {noise:.3g}; our ε is {last.arrays['ours'].mean():.3g} already",
            "The risk is the mean of norms, not the norm of the mean: Jensen's inequality is not an equality.",
        ),
        Comparison(
            "dispersion for K ∈ {5000, 10000}",
            "“a slight dispersion”",
            f"5–95 % of the error at K = {ITERATIONS[-1]}: {percent(last.row()['error 5 %'])} to "
            f"{percent(last.row()['error 95 %'])}",
            "The same: as the iteration settles, what the samples differ in remains.",
        ),
        Comparison(
            "convergence",
            "K up to 10000 with γ = 0.02",
            f"median error {errors}",
            "γ = 0.02 is 900 times shorter than 2/(μ + κ): experiment `convergence`.",
        ),
    )
    figure = draw_series("iterations K", series, f"{setting.trials} trials, s = {MOST}, γ = 0.02, δ = {DELTA}")
    return Outcome(series_table("K", series), comparisons, figure, series_data("K", series))
