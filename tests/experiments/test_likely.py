"""Sure beside likely: the laws have the truth that is claimed, and the counts say what they should."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero.experiments import dependent, likely
from epszero.experiments._contest import _when, answered
from epszero.experiments._laws import DELTA, HEAVY, RARE, H, laws
from epszero.experiments._outcome import Setting, size


@pytest.mark.parametrize("key", ["rare", "kink", "heavy"])
def test_the_laws_have_the_mean_and_the_support_that_are_claimed(key):
    law, rng = laws()[key], np.random.default_rng(0)
    values = law.draw(rng, 400_000).samples.values
    spread = values.std(axis=0) / math.sqrt(len(values))
    assert (np.abs(values.mean(axis=0) - law.mean) < 5 * spread).all()
    if law.support is not None:
        assert (values >= law.support[0]).all()
        assert (values <= law.support[1]).all()
    if key == "rare":
        assert np.mean(values[:, 0] == 1.0) == pytest.approx(RARE, abs=0.0006)
    if key == "heavy":  # E‖ξ − Eξ‖² = Var(exp(2n))‖shock‖², by Gauss–Hermite quadrature
        nodes, weights = np.polynomial.hermite_e.hermegauss(80)
        moments = [weights @ np.exp(2.0 * k * nodes) / math.sqrt(2 * math.pi) for k in (1, 2)]
        assert size([0.005, 0.003]) * math.sqrt(moments[1] - moments[0] ** 2) == pytest.approx(HEAVY, rel=1e-6)


@pytest.mark.parametrize("key", ["rare", "kink", "heavy"])
def test_the_truth_is_optimal_and_the_gap_is_that_of_the_cost(key):
    law = laws()[key]
    x = law.exact
    assert size(x - np.clip(x - (H @ x - law.mean), 0.0, 4.0)) < 1e-10
    other = x + np.array([0.02, -0.03])

    def cost(y):
        return y @ H @ y / 2 - law.mean @ y

    assert law.gap(other) == pytest.approx(cost(other) - cost(x), rel=1e-9)


def test_what_the_past_promises_is_the_conditional_mean_of_the_chain():
    law, s = laws()["dependent"], 3
    days = np.asarray(ez.datasets.day_ahead_prices(support="pool").values)
    drawn = law.draw(np.random.default_rng(4), s)
    rows = dependent.chain(np.random.default_rng(4), len(days), s)
    assert (drawn.samples.values == days[rows]).all()
    means = [law.mean] + [0.75 * days[(row + 1) % len(days)] + 0.25 * days.mean(axis=0) for row in rows[:-1]]
    assert drawn.promised == pytest.approx(np.mean(means, axis=0))


@pytest.mark.long
def test_the_floor_is_the_best_of_all_corners():
    law, s = laws()["rare"], 200
    share = 1 - DELTA ** (1 / s)
    corners = [np.array([a, b]) for a in (0.0, 1.0) for b in (0.0, 1.0)]
    moved = [np.linalg.solve(H, share * (corner - law.mean)) for corner in corners]  # no bound of the box is met
    assert law.floor(s) == pytest.approx(max(map(size, moved)), rel=1e-6)
    assert math.isnan(laws()["heavy"].floor(s))


@pytest.fixture
def small(monkeypatch):
    """Two entries only, one size, and a broken contender that must be seen to fail."""
    few = {key: law for key, law in laws().items() if key in ("rare", "heavy")}
    broken = likely.Contender("a tenth of it", Tenth(), "likely", "black", solves=3, lines=("distance",))
    monkeypatch.setattr(likely, "laws", lambda: few)
    monkeypatch.setattr(likely, "SIZES", (50,))
    monkeypatch.setattr(likely, "SETS", 40)
    monkeypatch.setattr(likely, "CONTENDERS", [*likely.CONTENDERS, broken])


@dataclasses.dataclass(frozen=True, eq=False)
class Tenth(ez.certificates.Asymptotic):
    """A tenth of what is likely, at a seed."""

    seed: int = 0

    def examine(self, case, delta):
        found = super().examine(case, delta)
        return dataclasses.replace(found, near=dataclasses.replace(found.near, distance=found.near.distance / 10))


@pytest.mark.long
@pytest.mark.usefixtures("small")
def test_a_contender_more_is_a_line_more_and_goes_the_whole_way(tmp_path):
    (result,) = ez.experiments.reproduce("likely", tmp_path, trials=20)
    assert {file.name for file in result.files} == {
        f"likely.{form}" for form in ("csv", "json", "md", "png", "pdf", "svg")
    }
    rows = {(row["law"], row["line"], row["by"]): row for row in result.table.to_dicts()}
    distance = {key[::2]: row for key, row in rows.items() if key[1] == "‖x − x*‖"}
    rare = "a rare outcome (0.5 %)"
    assert distance[rare, "default"]["coverage"] == 1.0
    assert distance[rare, "default"]["verdict"] == "conditional"
    assert distance[rare, "default"]["width"] > distance[rare, "default"]["floor over quantile"] > 1
    assert distance[rare, "normal approximation"]["99 % interval, high"] < 0.95  # convicted by 20 data sets
    assert distance[rare, "normal approximation"]["verdict"] == "heuristic"
    assert distance["heavy tails", "default"]["refused"] == 20
    assert distance["heavy tails", "default"]["coverage"] is None
    assert distance["heavy tails", "declared variance, median of means"]["coverage"] == 1.0
    assert distance["heavy tails", "a tenth of it"]["coverage"] < 0.6
    assert distance["heavy tails", "a tenth of it"]["further solves"] == 3
    assert ("heavy tails", "cost gap", "a tenth of it") not in rows
    assert ("heavy tails", "cost gap", "bootstrap") in rows
    assert "nothing is known of the size of the noise" in result.text


def test_who_mostly_refuses_is_not_drawn():
    rows = pl.DataFrame({"refused": [0, 10, 11, 20], "data sets": [20] * 4})
    assert rows.select(answered())[:, 0].to_list() == [True, True, False, False]


def test_the_picture_says_where_most_are_refused():
    assert _when([50, 200], []) == "always"
    assert _when([50], [200, 1000]) == "for s ≤ 50"
    assert _when([1000, 200], [50]) == "for s ≥ 200"
    assert _when([200], [50, 1000]) == "at s = 200"


def test_a_run_that_was_cut_off_goes_on():
    keys = [[piece.key for piece in likely.pieces(Setting(trials))] for trials in (likely.AT_ONCE, 3 * likely.AT_ONCE)]
    assert set(keys[0]) < set(keys[1])
    assert len(set(keys[1])) == len(keys[1])
