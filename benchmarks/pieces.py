"""How sharp are certified pieces? Distance, saving and residual against their true quantiles, on real prices.

P is the uniform law on the pool of days, as in certificates.py. Figures are means over TRIALS data sets; the true 95 %
quantiles are those of the same number of data sets. `today` is what the residual alone says (`MeanDeviation`).
"""

import dataclasses
from collections.abc import Iterator
from time import perf_counter

import numpy as np

import epszero as ez
from benchmarks._measure import Row
from epszero.facts import Unknown

TRIALS, DELTA = 100, 0.05
SUPPORTS = {"pool's box": "pool", "market's limits": "market"}


def rows() -> Iterator[Row]:
    game = ez.models.ev_charging(vehicles=20, seed=0)
    days = ez.datasets.day_ahead_prices(support="pool").values
    law = ez.Samples(days.mean(axis=0)[None])
    truth = ez.solve(game, law)
    size = float(np.linalg.norm(truth.x))
    for name, s, target in (("pool's box", 3000, 0.02), ("market's limits", 3000, 0.043), ("pool's box", 1000, 0.042)):
        market = ez.datasets.day_ahead_prices(support=SUPPORTS[name])
        solutions = ez.solve_many(game, [market.take(s, seed=trial) for trial in range(TRIALS)])
        found = ez.certify_many(solutions, DELTA)
        today = ez.certify_many(solutions, DELTA, ez.certificates.MeanDeviation())
        certified = float(
            np.mean([one.sharp is not None and not isinstance(one.sharp.known, Unknown) for one in found])
        )
        away = np.array([np.linalg.norm(one.x - truth.x) for one in solutions])
        claimed = np.array([one.distance for one in found])
        share = float(np.mean(claimed)) / size
        before = float(np.mean([one.distance for one in today])) / size
        yield Row(
            f"distance, s = {s}, {name}; today", share, before, share / before, f"≤ {target}", share <= target, ""
        )
        yield Row(f"misses of the distance, s = {s}, {name}", float(np.mean(away > claimed)), DELTA, 0, "≤ 0.05",
                  float(np.mean(away > claimed)) <= DELTA, "")  # fmt: skip
        yield Row(f"piece certified, s = {s}, {name}", certified, 1.0, certified, "≥ 0.95", certified >= 0.95, "")
        if name == "pool's box" and s == 3000:
            yield from _against_truth(solutions, found, law, away)


def _against_truth(
    solutions: list[ez.Solution], found: list[ez.Certificate], law: ez.Samples, away: np.ndarray
) -> Iterator[Row]:
    true = float(np.quantile(away, 1 - DELTA))
    mean = float(np.mean([one.distance for one in found]))
    yield Row("distance over its true 95 % quantile", mean, true, mean / true, "≤ 3.0", mean <= 3 * true, "")
    alone = float(np.mean([one.distance for one in ez.certify_many(solutions, DELTA, of="distance")]))
    yield Row('the same, of="distance"', alone, true, alone / true, "≤ 2.6", alone <= 2.6 * true, "")
    under_law = [dataclasses.replace(one, samples=law) for one in solutions]
    saved = float(np.quantile([one.check_equilibrium().largest for one in under_law], 1 - DELTA))
    claimed = float(np.mean([np.max(one.exploitability) for one in found]))
    yield Row(
        "largest saving over its true 95 % quantile", claimed, saved, claimed / saved, "≤ 9", claimed <= 9 * saved, "€"
    )
    errors = float(np.quantile([one.check().residual for one in under_law], 1 - DELTA))
    epsilon = float(np.mean([one.epsilon for one in found]))
    yield Row("ε over its true 95 % quantile", epsilon, errors, epsilon / errors, "≤ 1.9", epsilon <= 1.9 * errors, "")
    first = solutions[: TRIALS // 2]
    took = []
    for work in (lambda one: ez.certify(one, DELTA), lambda one: ez.solve(one.problem, one.samples)):
        start = perf_counter()
        for one in first:
            work(one)
        took.append((perf_counter() - start) / len(first))
    certify, solve = took
    yield Row("certify against solve", certify, solve, certify / solve, "≤ solve + 1 ms", certify <= solve + 1e-3, "s")
