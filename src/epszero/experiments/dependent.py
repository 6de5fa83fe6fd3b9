"""The whole pipeline with dependent days: what the audit says, what is refused, and what holds all the same.

Days are drawn by a chain with a known rate of mixing: the next day of the calendar with probability ¾, else a day
picked at random. Its stationary law is the uniform one on the pool, so the truth is known, and β(a) ≤ ¾^a: two chains
that restart at the same time agree from then on.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import epszero as ez
from epszero.experiments._charging import DELTA, charging
from epszero.experiments._outcome import Comparison, Outcome, Setting
from epszero.experiments._store import Arrays, Piece
from epszero.report import BLUE, GREEN, ORANGE, RED, figure, tidy

C = ez.certificates
TITLE = "Dependent days: audit, refusal, and a certificate that holds (s = 3000)"
S, STAY = 3000, 0.75
MIXING = C.Dependent(beta=lambda gap: STAY**gap)


def pieces(setting: Setting) -> Sequence[Piece]:
    """The real days in their order; then trials of the chain."""
    batches = setting.batches(50, 4 * setting.trials)
    return [
        Piece("dependent-real", _real),
        *(
            Piece(f"dependent-trials{batch.start}to{batch.stop}", lambda batch=batch: _trials(setting, batch))
            for batch in batches
        ),
    ]


def _real() -> Arrays:
    """What the audit and a certificate say of ten years in their order."""
    it = charging()
    audit = ez.audit(it.game, it.pool)
    lines = [f"{name}: {said.status}; {said.evidence}" for name, said in audit.violated().items()]
    refused = ez.certify(ez.solve(it.game, it.pool))
    return {
        "audit": np.array("\n".join(lines)),
        "reason": np.array(refused.reason),
        "verdict": np.array(refused.verdict),
    }


def chain(rng: np.random.Generator, days: int, s: int) -> NDArray[np.int64]:
    """Rows of the pool, s of them, by the chain."""
    restart = rng.random(s) > STAY
    restart[0] = True
    start = np.maximum.accumulate(np.where(restart, np.arange(s), 0))
    return (rng.integers(days, size=s)[start] + np.arange(s) - start) % days


def _trials(setting: Setting, batch: range) -> Arrays:
    """The true ‖e‖, and ε by three certificates: ∞ where it is refused."""
    it = charging()
    days = it.pool.values
    rows = [days[chain(setting.generator(5, trial), len(days), S)] for trial in batch]
    mixed = [setting.generator(6, trial).permutation(one) for trial, one in zip(batch, rows, strict=True)]
    ordered, shuffled = ([ez.Samples(one, support=it.pool.support) for one in kind] for kind in (rows, mixed))
    runs, blind = ez.solve_many(it.game, ordered), ez.solve_many(it.game, shuffled)
    found: dict[str, Any] = {"true": it.errors(runs)}
    for name, solutions, kind in (("default", runs, None), ("blind", blind, None), ("mixing", runs, MIXING)):
        found[name] = np.array([one.epsilon for one in ez.certify_many(solutions, DELTA, kind)])
    spread = [np.sqrt(20 * np.sum(np.var(one, axis=0)) / S) for one in rows]
    found["normal"] = 1.96 * np.array(spread)
    return found


def outcome(setting: Setting, found: list[Arrays]) -> Outcome:
    """Refusals, misses and widths."""
    del setting
    real, trials = found[0], {name: np.concatenate([part[name] for part in found[1:]]) for name in found[1]}
    names = {
        "default": "default certificate, days in their order",
        "blind": "default certificate, order destroyed before",
        "normal": "normal approximation as if independent (no certificate)",
        "mixing": "Dependent(β(a) = ¾^a), declared",
    }
    many = len(trials["true"])
    quantile = float(np.quantile(trials["true"], 1 - DELTA))
    given = {key: trials[key][np.isfinite(trials[key])] for key in names}
    means = {key: float(values.mean()) if len(values) else None for key, values in given.items()}
    table = pl.DataFrame(
        {
            "by": list(names.values()),
            "refused": [many - len(given[key]) for key in names],
            "mean ε": list(means.values()),
            "width": [None if mean is None else mean / quantile for mean in means.values()],
            "missed": [float((trials["true"] > trials[key]).mean()) for key in names],
        },
        schema_overrides={"mean ε": pl.Float64, "width": pl.Float64},
    )
    share = {key: f"{100 * float((trials['true'] > trials[key]).mean()):.3g} %" for key in names}
    comparisons = (
        Comparison(
            "ten years of days in their order",
            "treated as independent samples",
            f"{real['verdict']}: {real['reason']}",
            "Prices of neighbouring days are alike (lag-1 autocorrelation of the daily mean: 0.93).",
        ),
        Comparison(
            "as if independent",
            "assumed",
            f"the normal approximation misses {share['normal']} of {many} data sets",
            "Dependent days carry less information than their number says. With the order destroyed no test can see "
            f"it, and our bound for independent samples misses {share['blind']}, where 5 % are allowed.",
        ),
        Comparison(
            "with a declared rate of mixing",
            "—",
            f"misses {share['mixing']}, at {means['mixing'] or np.inf:.3g}",
            "Every a-th day is kept, and what their dependence may cost is taken off δ.",
        ),
    )
    sheet = figure(9.0, 4.0)
    ax = sheet.subplots()
    shown = {
        "true ‖e‖": (trials["true"], GREEN),
        names["normal"]: (given["normal"], RED),
        names["blind"]: (given["blind"], ORANGE),
        names["mixing"]: (given["mixing"], BLUE),
    }
    least, most = (end([end(values) for values, _ in shown.values() if len(values)]) for end in (np.min, np.max))
    for label, (values, colour) in shown.items():
        ax.hist(values, bins=np.geomspace(least, most, 50).tolist(), color=colour, alpha=0.6, label=label)
    ax.set_xscale("log")
    ax.set_xlabel("residual")
    ax.set_ylabel(f"data sets, of {many}")
    ax.legend(frameon=False, fontsize=9)
    tidy(ax)
    text = f"Audit of ten years of days in their order:\n{real['audit']}"
    return Outcome(table, comparisons, sheet, text=text)
