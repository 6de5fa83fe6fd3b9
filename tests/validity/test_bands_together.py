"""Bands of one certificate hold together: entries, sums over agents, multipliers, and one call of `interval`.

Agents share caps, of which one half binds: there multipliers move and sums do not. Every agent has noise of its own in
every hour, so that bands of different kinds are nearly independent, and none holds only because another does. Bounds
are Student's, exact for the normal law, so that no slack hides a break.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import t

import epszero as ez
from epszero.certificates import MeanBound, MeanSet, bands, sharp

from .coverage import too_many
from .pieces import normal

pytestmark = pytest.mark.slow
AGENTS, HOURS, SAMPLES, TRIALS, DELTA = 6, 4, 60, 150, 0.3
WEAR = np.linspace(1.0, 1.4, AGENTS)
PULL, CAP = 200.0, np.array([1e4, 1e4, 300.0, 400.0])  # far from every other bound
CONTRASTS = np.stack([np.kron((-1.0) ** np.arange(AGENTS), hour) for hour in np.eye(HOURS)])


@dataclass(frozen=True)
class Student(MeanBound):
    """Exact for normal samples."""

    title = "Student's interval"
    needs_region = True

    def around(self, X, region, delta):
        del region
        s = X.shape[-2]
        return MeanSet(X.mean(axis=-2), t.isf(delta / 2, s - 1) * X.std(axis=-2, ddof=1) / np.sqrt(s))


class Undivided(tuple[Any, ...]):
    """Groups that count as one."""

    def __len__(self) -> int:
        return 1


def _cost(own, mean, xi, agent):
    del mean
    return 0.5 * agent["wear"] * own @ own - (PULL + agent["place"] @ xi.reshape(AGENTS, HOURS)) @ own


@pytest.fixture(scope="module")
def certificates():
    shared = ez.AffineConstraint(lambda x: x.sum(axis=0), CAP)
    agents = {"wear": WEAR, "place": np.eye(AGENTS)}
    game = ez.AggregativeGame(_cost, agents, ez.sets.Box(-1e4, 1e4, dim=HOURS), shared)
    law = normal(AGENTS * HOURS)
    rows = law.draw(np.random.default_rng(3), (TRIALS, SAMPLES))
    solutions = ez.solve_many(game, [ez.Samples(one, support=law.support) for one in rows])
    return ez.certify_many(solutions, DELTA, of="intervals")


@pytest.fixture(autouse=True)
def _exact(monkeypatch):
    monkeypatch.setattr(sharp, "Betting", Student)


def _misses(certificates) -> tuple[int, dict[str, int]]:
    """Of all bands at once, and of each."""
    prices = np.maximum(PULL - CAP / np.sum(1 / WEAR), 0.0)
    x = (PULL - prices) / WEAR[:, None]
    truth = {"entries": x.ravel(), "sums": x.sum(axis=0), "prices": prices, "asked": CONTRASTS @ x.ravel()}
    claims, misses = dict.fromkeys(truth, 0), 0
    for one in certificates:
        found = one.intervals, one.aggregate, one.multipliers, one.interval(CONTRASTS)
        false = [name for name, band in zip(truth, found, strict=True) if _outside(band, truth[name])]
        misses += bool(false)
        for name in false:
            claims[name] += 1
    return misses, claims


def _outside(band: bands.Band, truth: np.ndarray) -> bool:
    low, high = np.ravel(band.lower) - 1e-6, np.ravel(band.upper) + 1e-6
    return bool((truth < low).any() or (truth > high).any())


@pytest.mark.long
def test_all_bands_at_once_miss_no_more_often_than_delta(certificates):
    misses, claims = _misses(certificates)
    assert not too_many(misses, TRIALS, DELTA), claims
    assert misses > DELTA / 2 * TRIALS, "slack would hide what the twins show"


def test_bands_that_do_not_divide_by_their_rows_are_convicted(certificates, monkeypatch):
    right = sharp.Sharp._between

    def undivided(self, at, rows, delta):
        ends = [right(self, at[[k]], rows[[k]], delta) for k in range(len(at))]
        return tuple(np.concatenate(sides) for sides in zip(*ends, strict=True))

    monkeypatch.setattr(sharp.Sharp, "_between", undivided)
    misses, claims = _misses(certificates)
    assert too_many(misses, TRIALS, DELTA), claims


def test_bands_that_all_spend_the_whole_share_are_convicted(certificates, monkeypatch):
    monkeypatch.setattr(bands, "groups", lambda _: Undivided(bands.Group))
    misses, claims = _misses(certificates)
    assert too_many(misses, TRIALS, DELTA), claims


def test_two_calls_by_themselves_do_not_hold_together(certificates):
    """Each row does, at 1 − δ; all of them are far from it, which is what the docstring says."""
    truth = (PULL / WEAR[:, None] * np.ones(2)).ravel()
    free = [agent * HOURS + hour for agent in range(AGENTS) for hour in (0, 1)]
    missed = np.array(
        [
            [_outside(one.interval(entry, together=False), truth[k : k + 1]) for k, entry in enumerate(free)]
            for one in certificates
        ]
    )
    assert not any(too_many(int(count), TRIALS, DELTA) for count in missed.sum(axis=0))
    assert missed.mean() > 0.8 * DELTA
    assert too_many(int(missed.any(axis=1).sum()), TRIALS, DELTA)
