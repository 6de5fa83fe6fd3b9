"""Certified pieces: all lines of a certificate miss no more often than δ together; broken twins are convicted.

The twins are shown with bounds that are exact for the normal law where there would be slack to hide a break.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.stats import norm

from epszero.certificates import MeanBound, MeanSet, piece, sharp
from epszero.facts import Region

from .coverage import too_many
from .pieces import WORLDS, Tally, judged, normal, planted

DELTAS = (0.3, 0.05)
QUICK, LONG = 40, 300


def _convicted(tally: Tally, delta: float, claim: str = "") -> bool:
    return too_many(tally.claims[claim] if claim else tally.misses, tally.trials, delta)


def _hold(where: str, trials: int, of: str | None = None) -> None:
    world = planted(where)
    solutions = world.solved(np.random.default_rng(7), trials)
    for delta in DELTAS:
        tally = judged(world, solutions, delta, of)
        assert not _convicted(tally, delta), f"{where}, δ = {delta}, of {of}: {tally}"


@pytest.mark.slow
@pytest.mark.parametrize("where", WORLDS)
def test_all_lines_together_miss_no_more_often_than_delta(where):
    _hold(where, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("of", [None, "distance", "intervals"])
@pytest.mark.parametrize("where", WORLDS)
def test_all_lines_together_miss_no_more_often_than_delta_in_many_trials(where, of):
    _hold(where, LONG, of)


@pytest.mark.parametrize("where", ["lasso", "shared constraint", "two agents"])
def test_pieces_are_certified_where_margins_are_wide(where):
    """A certificate that never certifies would miss nothing either."""
    world = planted(where)
    assert judged(world, world.solved(np.random.default_rng(3), 8), 0.05).certified == 8


# -- broken on purpose -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Exact(MeanBound):
    """The exact interval for normal samples whose support is eight standard deviations to each side."""

    title = "normal quantile"
    needs_region = True
    split: bool = True  # whether levels are those that were asked for, or those before they were split

    def around(self, X, region, delta):
        sigma = (region.upper - region.lower).max() / 16
        level = delta if self.split else delta * X.shape[0]
        radius = sigma * norm.isf(min(level, 1.0) / 2) / np.sqrt(X.shape[-2])
        return MeanSet(X.mean(axis=-2), np.full(X.shape[:-2], radius))


def _judged(where: str, delta: float, of: str | None = None, trials: int = 150) -> Tally:
    world = planted(where)
    return judged(world, world.solved(np.random.default_rng(11), trials), delta, of)


def test_a_piece_that_is_not_checked_is_convicted(monkeypatch):
    def unchecked(case, features, region, C, delta):
        found = piece.piece_of(case, C)
        return sharp.Sharp(found, features, region, np.ravel(case.x), None, None)

    assert not _convicted(_judged("a multiplier that is nearly 0", 0.05), 0.05)
    monkeypatch.setattr("epszero.certificates.certified_piece.certified", unchecked)
    assert _convicted(_judged("a multiplier that is nearly 0", 0.05), 0.05)


def test_a_slack_to_the_other_side_is_convicted(monkeypatch):
    """1 + x₁ in place of 1 − x₁, which is 2 less the slack, and changes the other way."""

    def wrong(case, C):
        found = piece.piece_of(case, C)
        assert isinstance(found, piece.AffinePiece)
        rows = sum(len(block.face.slacks) for block in found.blocks)
        margins = np.concatenate([2.0 - found.margins[:rows], found.margins[rows:]])
        sensitivities = np.vstack([-found.sensitivities[:rows], found.sensitivities[rows:]])
        return replace(found, margins=margins, sensitivities=sensitivities)

    where = "a half-space that is hardly leant on"
    assert not _convicted(_judged(where, 0.05), 0.05)
    monkeypatch.setattr("epszero.certificates.sharp.piece_of", wrong)
    assert _convicted(_judged(where, 0.05), 0.05)


def test_T_of_another_face_is_convicted(monkeypatch):
    """As if the entry that moves most were held."""
    right = sharp.piece_of

    def wrong(case, C):
        found = right(case, C)
        assert isinstance(found, piece.AffinePiece)
        T = found.T.copy()
        T[np.argmax(np.abs(T).sum(axis=1))] = 0.0
        return replace(found, T=T)

    monkeypatch.setattr(sharp, "EmpiricalBernstein", Exact)
    assert not _convicted(_judged("normal", 0.3, "distance"), 0.3)
    monkeypatch.setattr(sharp, "piece_of", wrong)
    assert _convicted(_judged("normal", 0.3, "distance"), 0.3)


@pytest.mark.parametrize("split", [True, False])
def test_intervals_without_a_split_of_delta_are_convicted(monkeypatch, split):
    monkeypatch.setattr(sharp, "Betting", lambda: Exact(split))
    tally = _judged("normal, eight entries", 0.3, "intervals")
    assert tally.certified == tally.trials
    assert _convicted(tally, 0.3, "intervals") == (not split)


@pytest.mark.parametrize("reused", [False, True])
def test_a_pilot_that_is_reused_is_convicted(monkeypatch, reused):
    """U is aimed at the entry that stands out: in samples of its own, or in those that U is made of."""
    monkeypatch.setattr(sharp, "EmpiricalBernstein", Exact)
    d, trials, delta, misses = 20, 300, 0.3, 0
    region, rng = Region.of(normal(d).support, d), np.random.default_rng(5)
    for _ in range(trials):
        pilot, rest = rng.normal(size=(10, d)), rng.normal(size=(90, d))
        row = np.eye(d)[[np.argmax(np.abs(np.mean(rest if reused else pilot, axis=0)))]]
        U = sharp._Aimed.at(row, np.ones(1), rest, region, delta)
        misses += bool(np.linalg.norm(U.R @ np.zeros(d) - U.centre) > U.radius)
    assert too_many(misses, trials, delta) == reused


def test_exact_bounds_miss_about_as_often_as_they_may(monkeypatch):
    """So that nothing above is hidden by slack: distance alone has 78 % of δ."""
    monkeypatch.setattr(sharp, "EmpiricalBernstein", Exact)
    tally = _judged("normal", 0.3, "distance", 300)
    assert 0.15 <= tally.misses / tally.trials <= 0.33
