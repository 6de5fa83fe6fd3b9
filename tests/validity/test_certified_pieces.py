"""Certified pieces: all lines of a certificate miss no more often than δ together; broken twins are convicted.

The twins are shown with bounds that are exact for the normal law where there would be slack to hide a break.
"""

from dataclasses import replace

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import MeanDeviation

from .broken import TWINS, exact
from .certified_pieces import DELTAS, Pieces
from .coverage import Row, too_many
from .pieces import WORLDS, judged, planted

QUICK, LONG, TRIALS = 40, 300, 150


def _hold(where: str, trials: int, of: str | None = None) -> None:
    world = planted(where)
    solutions = world.solved(np.random.default_rng(7), trials)
    for delta in DELTAS:
        tally = judged(world, solutions, delta, of)
        assert not too_many(tally.misses, tally.trials, delta), f"{where}, δ = {delta}, of {of}: {tally}"


@pytest.mark.some(4)
@pytest.mark.slow
@pytest.mark.parametrize("where", WORLDS)
def test_all_lines_together_miss_no_more_often_than_delta(where):
    _hold(where, QUICK)


@pytest.mark.long
@pytest.mark.parametrize("of", [None, "distance", "intervals"])
@pytest.mark.parametrize("where", WORLDS)
def test_all_lines_together_miss_no_more_often_than_delta_in_many_trials(where, of):
    _hold(where, LONG, of)


@pytest.mark.some(3)
@pytest.mark.parametrize("where", ["lasso", "shared constraint", "two agents"])
def test_pieces_are_certified_where_margins_are_wide(where):
    """A certificate that never certifies would miss nothing either."""
    world = planted(where)
    assert judged(world, world.solved(np.random.default_rng(3), 8), 0.05).certified == 8


@pytest.mark.some(2)
@pytest.mark.parametrize("where", ["one multiplier of eight is nearly 0", "a lasso of eight near a kink"])
def test_pieces_are_certified_in_part_near_a_kink_and_that_is_sharper(where):
    world = planted(where)
    solved = world.solved(np.random.default_rng(3), 8)
    assert judged(world, solved, 0.05).partly == 8
    alone = ez.certify_many(solved.solutions, 0.05, MeanDeviation())
    for found, before in zip(ez.certify_many(solved.solutions, 0.05), alone, strict=True):
        assert found.distance < 0.8 * before.distance
        assert "slacks and multipliers of the piece are certified" in found.notes["distance"]


# -- broken on purpose -----------------------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize("name", TWINS)
def test_what_is_broken_is_convicted_and_its_sound_half_is_not(name):
    twin = TWINS[name]
    for broken in (False, True):
        assert too_many(twin.missed(broken, TRIALS), TRIALS, twin.delta) == broken


@pytest.mark.long
def test_intervals_of_the_twin_are_certified():
    """Else a split of δ would not matter."""
    world = planted(TWINS["delta not split"].where)
    assert judged(world, world.solved(np.random.default_rng(11), 20), 0.3, "intervals").certified == 20


@pytest.mark.long
def test_exact_bounds_miss_about_as_often_as_they_may():
    """So that nothing above is hidden by slack: distance alone has 78 % of δ."""
    world = planted("normal")
    with exact():
        tally = judged(world, world.solved(np.random.default_rng(11), 300), 0.3, "distance")
    assert 0.15 <= tally.misses / tally.trials <= 0.33


@pytest.mark.long
def test_a_row_of_a_twin_fails_where_it_is_not_convicted():
    row = Row("", "", "", "", 0.3, 0, 100, 1.0)
    assert not row.failed
    assert replace(row, broken=True).failed
    assert replace(row, misses=99).failed
    assert not replace(row, misses=99, broken=True).failed


@pytest.mark.long
def test_the_study_counts_every_line_of_every_world_and_every_twin():
    study = Pieces()
    assert {where for twin, where in study.tasks() if not twin} == set(WORLDS)
    assert {twin for twin, _ in study.tasks() if twin} == set(TWINS)
    rows = study.run(("", "two agents"), 20)
    assert {row.bound for row in rows} == {"all lines", "distance alone", "exploitability alone", "intervals alone"}
    assert {row.delta for row in rows} == set(DELTAS)
    assert all(row.trials == 20 and row.certified == 1.0 for row in rows)
