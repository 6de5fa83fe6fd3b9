"""Every splitting method side by side on the charging game: how far one day can move its answer, and what is certified.

The paper ends by asking for methods beyond forward-backward. For each method, with K iterations on s days: the
stability d that it claims (docs/theory.md#stability), the difference that one swapped day makes, and ε of the paper's
certificate, repaired, of the stability of the residual vector, and of the default one, which asks no method for it.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import numpy as np
import polars as pl

import epszero as ez
from epszero.experiments._charging import DELTA, GAMMA, FloatArray, charging
from epszero.experiments._outcome import Comparison, Outcome, Setting, size
from epszero.experiments._store import Arrays, Piece
from epszero.facts import Constant, Facts, facts_of
from epszero.methods import Method, Premises, Stability, Unstable
from epszero.report import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, figure, tidy

C = ez.certificates
TITLE = "Splitting: stability and certificate of all methods side by side"
LENGTHS, SIZES = (3, 10, 30, 100, 300, 1000), (100, 300, 1000, 3000)
DAYS, LAST = 1000, 300  # s while K grows, and K while s does
KINDS: dict[str, Any] = {"repaired": C.RepairedStability(), "vector": C.VectorStability(), "default": None}
STEP = 17.4  # 2/(μ + κ) of this game, rounded down


@cache
def methods(s: int) -> dict[str, tuple[Method, str]]:
    """The methods, with their colours; batches are a tenth of the s samples."""
    stiff = 0.5 * _jacobian()
    return {
        f"forward-backward, γ = {GAMMA}": (ez.ForwardBackward(GAMMA), GREEN),
        f"forward-backward, γ = {STEP}": (ez.ForwardBackward(STEP), BLUE),
        "relaxed by ½": (ez.ForwardBackward(STEP, relaxation=0.5), SKY),
        "forward-backward-forward": (ez.ForwardBackwardForward(6.0), ORANGE),
        "extragradient": (ez.Extragradient(6.0), GREY),
        "Douglas–Rachford": (ez.DouglasRachford(47.0), RED),
        "Davis–Yin, half of B implicit": (ez.DavisYin(30.0, stiff), PURPLE),
        "mini-batches of s/10": (ez.MiniBatchForwardBackward(s // 10, STEP), "black"),
        "variance reduction, s/10": (ez.LooplessVarianceReduction(s // 10, STEP), "tab:olive"),
        "5 of 20 vehicles at random": (ez.RandomBlock(5, STEP), "tab:brown"),
        "delays up to 3": (ez.Asynchronous(3, 2.5), "tab:cyan"),
    }


@cache
def _facts() -> Facts:
    it = charging()
    with jax.enable_x64(True):
        return facts_of(it.game, [it.pool.support], it.pool.values[0], np.zeros_like(it.exact))


def _jacobian() -> FloatArray:
    J = _facts().jacobian
    assert J is not None
    return J.jacobian


def pieces(setting: Setting) -> Sequence[Piece]:
    """A few data sets for every K and every s."""
    few = min(setting.trials, 3)
    points = [(DAYS, K) for K in LENGTHS] + [(s, LAST) for s in SIZES if s != DAYS]
    return [Piece(f"splitting-s{s}-K{K}-{few}", lambda s=s, K=K: _runs(setting, s, K, few)) for s, K in points]


def _runs(setting: Setting, s: int, K: int, few: int) -> Arrays:
    """One row per method: d claimed and seen, ‖ê‖, ε of each kind (infinite where there is none), the true ‖e‖."""
    it = charging()
    draws = it.draws(setting, s, range(few))
    rows: dict[str, list[float]] = {name: [] for name in ("claimed", "mean", "seen", "residual", "true", *KINDS)}
    for method, _ in methods(s).values():
        runs = ez.solve_many(it.game, draws, method, iterations=K)
        claim, place = _claim(runs[0], K, s)
        rows["claimed"].append(np.nan if claim is None else claim.difference(s))
        rows["mean"].append(np.nan if claim is None else claim.mean_difference(s))
        rows["seen"].append(max(_moved(draw, run, place, K) for draw, run in zip(draws, runs, strict=True)))
        rows["residual"].append(float(np.mean([run.residual for run in runs])))
        rows["true"].append(float(np.mean(it.errors(runs))))
        for name, kind in KINDS.items():
            rows[name].append(float(np.mean([one.epsilon for one in ez.certify_many(runs, DELTA, kind)])))
    return {name: np.array(values, dtype=float) for name, values in rows.items()}


def _claim(run: ez.Solution, K: int, s: int) -> tuple[Stability | None, int]:
    """What the method claims, and the sample that it says matters most."""
    it = charging()
    apart = size(it.pool.values.max(axis=0) - it.pool.values.min(axis=0)) * np.sqrt(len(it.exact))
    J, diameter = _jacobian(), _facts().diameter
    wide = diameter.value if isinstance(diameter, Constant) else np.inf
    mu, kappa = float(np.linalg.eigvalsh((J + J.T) / 2)[0]), float(np.linalg.norm(J, 2))
    facts = Premises(apart, mu=mu, kappa=kappa, jacobian=J, diameter=wide, everywhere=True)
    try:
        claim = run.method.stability(facts, K)
    except Unstable:
        return None, 0
    return claim, int(np.argmax(claim.differences(s)))


def _moved(draw: ez.Samples, run: ez.Solution, place: int, K: int) -> float:
    """How far the output moves when the day at `place` becomes the day of the pool that is farthest from it."""
    it = charging()
    days = np.array(draw.values)
    far = np.linalg.norm(it.pool.values - days[place], axis=1)
    days[place] = it.pool.values[int(np.argmax(far))]
    other = ez.solve(it.game, ez.Samples(days), run.method, iterations=K)
    return size(other.x - run.x)


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """The table of all points, and three panels."""
    del setting
    names = list(methods(DAYS))
    points = [(DAYS, K) for K in LENGTHS] + [(s, LAST) for s in SIZES if s != DAYS]
    table = pl.concat(
        [
            pl.DataFrame(
                {
                    "method": names,
                    "s": [s] * len(names),
                    "K": [K] * len(names),
                    "claimed d": one["claimed"],
                    "its mean over the days": one["mean"],
                    "seen": one["seen"],
                    "‖ê‖": one["residual"],
                    "true ‖e‖": one["true"],
                    **{f"ε, {kind}": one[kind] for kind in KINDS},
                }
            )
            for (s, K), one in zip(points, found, strict=True)
        ]
    )
    by_length = found[: len(LENGTHS)]
    at = dict(zip(points, found, strict=True))
    by_size = [at[s, LAST] for s in SIZES]
    least = {name: by_length[-1]["repaired"][row] for row, name in enumerate(names)}
    best = min(least, key=lambda name: least[name])
    ratio = max(float(np.nanmax(one["seen"] / one["claimed"])) for one in found)
    comparisons = (
        Comparison(
            "other splitting methods",
            "left open",
            f"{sum(np.isfinite(by_length[-1]['claimed']))} of {len(names)} with a proved stability",
            "delays have none; random vehicles have one on average over the seed, which no certificate takes for sure.",
        ),
        Comparison(
            f"the paper's certificate, repaired, K = {LENGTHS[-1]}, s = {DAYS}",
            f"{least[names[0]]:.3g} with γ = {GAMMA}",
            f"{least[best]:.3g} by {best}",
            f"the default certificate has {by_length[-1]['default'].min():.3g}, whatever the method.",
        ),
        Comparison(
            "largest share of a claimed d that a swapped day makes",
            "—",
            f"{ratio:.3g}",
            "above 1 a claim would be false",
        ),
    )
    return Outcome(table, comparisons, _drawn(by_length, by_size))


def _drawn(by_length: list[Arrays], by_size: list[Arrays]) -> Any:
    sheet = figure(12.5, 5.2)
    left, middle, right = sheet.subplots(1, 3)
    for row, (name, (_, colour)) in enumerate(methods(DAYS).items()):
        left.loglog(LENGTHS, [one["claimed"][row] for one in by_length], color=colour, label=name)
        left.loglog(LENGTHS, [one["seen"][row] for one in by_length], color=colour, linestyle="", marker=".")
        for ax, places, series in ((middle, LENGTHS, by_length), (right, SIZES, by_size)):
            ax.loglog(places, [one["default"][row] for one in series], color=colour, marker="o", markersize=3)
            repaired = np.array([one["repaired"][row] for one in series])
            ax.loglog(places, np.where(np.isfinite(repaired), repaired, np.nan), color=colour, linestyle="--")
    left.set_title(f"one day of {DAYS:,}: claimed d (line) and seen (dots)", loc="left", fontsize=10)
    middle.set_title(f"ε, s = {DAYS:,}: default (line), repaired (dashes)", loc="left", fontsize=10)
    right.set_title(f"ε, K = {LAST}: default (line), repaired (dashes)", loc="left", fontsize=10)
    right.loglog(SIZES, [np.min(one["true"]) for one in by_size], color="black", linestyle=":", label="least true ‖e‖")
    for ax, what in ((left, "iterations K"), (middle, "iterations K"), (right, "samples s")):
        ax.set_xlabel(what)
    tidy(left, middle, right)
    lines = [ax.get_legend_handles_labels() for ax in (left, right)]
    sheet.legend(
        [line for handles, _ in lines for line in handles],
        [label for _, labels in lines for label in labels],
        loc="outside lower center", ncols=4, frameon=False, fontsize=9,
    )  # fmt: skip
    return sheet
