"""How tight are certificates? Every kind against the truth, on the charging game with real prices.

P is the uniform law on the pool of days (3649 × 14 Dutch day-ahead prices, 2015 to 2024): draws with replacement are
independent, B is known exactly, and the support is the pool's box. `width`: the mean certified ‖e‖ over trials, divided
by the true 95 % quantile of ‖e‖. `missed`: how often the truth lay beyond. `distance`: certified ‖x − x*‖/‖x‖, and the
true one. `saving`: the certified largest saving of a vehicle, and the true one.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import epszero as ez
from benchmarks._measure import Row
from epszero.experiments._outcome import Setting
from epszero.experiments.tightness import KINDS, RUNS, true_errors

DEFAULT = "default (empirical Bernstein)"
TRIALS, DELTA = 100, 0.05
TARGETS = {100: 4.6, 500: 2.5, 3000: 2.0}


def rows() -> Iterator[Row]:
    """Prints the table, and gives one line per target."""
    market = ez.datasets.day_ahead_prices(support="pool")
    days = market.values
    game = ez.models.ev_charging(vehicles=20, seed=0)
    law = ez.Samples(days.mean(axis=0)[None])  # B depends on the law of prices through their mean alone
    truth = ez.solve(game, law)
    widths: dict[tuple[str, int], float] = {}
    for s, target in TARGETS.items():
        draws = [market.take(s, seed=trial) for trial in range(TRIALS)]
        runs = {name: run(draws) for name, run in RUNS.items()}
        errors = {name: _errors(solutions, law) for name, solutions in runs.items()}
        quantile = float(np.quantile(true_errors(Setting(), s), 1 - DELTA))
        table = Table("certificate", "ε", "width", "missed", "distance", "true", "saving", "true", title=f"s = {s}")
        for name, (kind, run) in KINDS.items():
            found = ez.certify_many(runs[run], DELTA, kind)
            epsilon = np.array([one.epsilon for one in found])
            widths[name, s] = float(np.mean(epsilon)) / quantile
            table.add_row(name, f"{np.mean(epsilon):.4g}", f"{widths[name, s]:.4g}",
                          f"{np.mean(errors[run] > epsilon):.3f}", *_meanings(found, truth, law))  # fmt: skip
            if name == DEFAULT and s == 3000:
                share = float(np.mean([one.relative_distance or np.inf for one in found]))
                yield Row(
                    "certified distance at s = 3000, part of ‖x‖", share, 0.15, share, "≤ 0.15", share <= 0.15, ""
                )
        Console(width=140).print(table)
        width = widths[DEFAULT, s]
        yield Row(f"width of the default certificate, s = {s}", width, 1.0, width, f"≤ {target}", width <= target, "")
        split = widths["hold-out of half", s] / width
        yield Row(f"hold-out of half against the default, s = {s}", split * width, width, split, "≤ 2", split <= 2, "")


def _errors(solutions: list[ez.Solution], law: ez.Samples) -> np.ndarray[Any, Any]:
    """The true ‖e‖ of every solution."""
    return np.array([dataclasses.replace(one, samples=law).check().residual for one in solutions])


def _meanings(found: list[ez.Certificate], truth: ez.Solution, law: ez.Samples) -> tuple[str, ...]:
    size = float(np.linalg.norm(truth.x))
    away = np.mean([np.inf if one.distance is None else one.distance for one in found]) / size
    really = np.mean([np.linalg.norm(one.solution.x - truth.x) for one in found]) / size
    saving = np.mean([np.max(one.exploitability) if one.exploitability is not None else np.inf for one in found])
    first = dataclasses.replace(found[0].solution, samples=law)
    return f"{away:.3g}", f"{really:.3g}", f"{saving:.3g}", f"{first.check_equilibrium().largest:.2g}"
