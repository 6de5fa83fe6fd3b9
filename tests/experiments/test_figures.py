"""The experiments themselves: what they lean on is right, and their numbers say what the paper's errata say."""

import numpy as np
import pytest

import epszero as ez
from epszero.experiments import dependent, fig1, splitting, table2, tightness
from epszero.experiments._charging import charging, printed_residual, surrogate_piece
from epszero.experiments._outcome import Setting, size

pytestmark = pytest.mark.long


def test_the_chain_of_days_has_the_law_and_the_rate_that_are_claimed():
    days, s = 7, 200_000
    rows = dependent.chain(np.random.default_rng(0), days, s)
    assert np.bincount(rows, minlength=days) / s == pytest.approx(1 / 7, abs=0.006)
    for gap in (1, 3):
        ahead = np.mean(rows[gap:] == (rows[:-gap] + gap) % days)
        assert ahead == pytest.approx(dependent.STAY**gap + (1 - dependent.STAY**gap) / days, abs=0.01)


@pytest.mark.parametrize("gaussian", [True, False])
def test_the_reference_of_the_academic_example_is_optimal(gaussian):
    one = table2.Instance.drawn(np.random.default_rng(3), gaussian)
    x = one.optimum()
    gradient = one.q + one.P @ x + one.law.values[0] * x
    assert np.linalg.eigvalsh(one.P)[[0, -1]] == pytest.approx([0.0, 1.0], abs=1e-12)
    step = x - np.clip(x - gradient, 0.0, one.a)
    assert size(step) < 1e-6


def test_the_printed_constants_give_what_theory_says():
    (least,) = printed_residual(np.zeros(1), 3000)  # erratum 5: at least 563, or 28 152 after the division by γ
    assert (least, least / 0.02) == (pytest.approx(563.04, abs=0.01), pytest.approx(28152, abs=1))


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Figure 1 with three trials, for the most samples only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fig1, "SIZES", (3000,))
        (result,) = ez.experiments.reproduce("fig1", tmp_path_factory.mktemp("fig1"), trials=3)
    return result


@pytest.mark.slow
def test_figure_one_shows_what_the_claim_of_thirty_per_cent_is(first):
    (many,) = first.table.to_dicts()
    assert many["paper's ε_residual/‖x*‖, printed constants"] == pytest.approx(563.06 / 17.716, rel=1e-4)
    assert many["paper's ε/‖x*‖, printed constants"] == pytest.approx(28153 / 17.716, rel=1e-4)
    assert many["paper's ε/‖x*‖"] > 1e4 * many["our ε/‖x*‖"]
    assert many["our bound on ‖x − x*‖/‖x*‖"] < 0.2
    assert many["true ‖e‖/‖x*‖"] < many["our ε/‖x*‖"]
    assert many["ours missed"] == 0
    assert "30 %" in first.comparisons[0].paper
    assert first.outcome.data is not None
    assert len(first.outcome.data) == 3


@pytest.mark.slow
def test_the_two_references_differ_by_more_than_half():
    it = charging()
    scheme = surrogate_piece(Setting()).run()["x"]
    assert size(scheme - it.uniform) < 0.03 * size(it.uniform)
    assert 0.5 < size(it.uniform - it.exact) / size(it.exact) < 0.7
    best = ez.solve(it.game, it.law)
    assert best.check_equilibrium().largest < 1e-8
    assert size(best.x - it.exact) < 1e-6


@pytest.mark.long
def test_every_experiment_runs_and_says_something(tmp_path):
    results = ez.experiments.reproduce("all", tmp_path, trials=6)
    assert [one.name for one in results] == list(ez.experiments.NAMES)
    for one in results:
        assert one.comparisons
        assert one.table.height
        assert {file.suffix for file in one.files} >= {".png", ".pdf", ".svg", ".csv", ".json", ".md"}
    tables = {one.name: one.table for one in results}
    assert tables["table2"]["paper's ε, by its formula"][4] > 50 * tables["table2"]["paper's ε, by its formula"][0]
    assert "not positive semidefinite" in next(one.text for one in results if one.name == "table2")
    width = dict(zip(tables["tightness"]["certificate"], tables["tightness"]["width"], strict=True))
    assert 1 < width["default (empirical Bernstein)"] < 2.0
    assert width["paper, as published"] > 5e5
    assert tables["coverage"]["verdict"].to_list() == ["fine"] * 5 + ["convicted: more than δ"]
    assert tables["dependent"]["refused"][0] == 24
    assert tables["dependent"]["missed"][3] <= 0.05
    assert all(-0.6 < slope < -0.45 for slope in tables["growth"]["slope"])
    (draw,) = charging().draws(Setting(), 300, [0])
    (half,), whole = tightness.RUNS["half"]([draw]), ez.solve(charging().game, draw, holdout=0.5)
    assert half.holdout is not None
    assert whole.holdout is not None
    assert half.holdout.digest() == whole.holdout.digest()
    assert size(half.x - whole.x) < 1e-7


def test_splitting_methods_side_by_side_keep_their_claims(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(splitting, "LENGTHS", (10, 100))
        patch.setattr(splitting, "SIZES", (1000,))
        patch.setattr(splitting, "LAST", 100)
        (result,) = ez.experiments.reproduce("splitting", tmp_path, trials=2)
    rows = result.table.to_dicts()
    assert len(rows) == 22
    known = [row for row in rows if np.isfinite(row["claimed d"])]
    assert {row["method"] for row in rows} - {row["method"] for row in known} == {"delays up to 3"}
    sure = [row for row in known if "random" not in row["method"]]
    assert all(0 < row["seen"] <= row["claimed d"] for row in sure)
    assert all(row["true ‖e‖"] <= min(row["ε, default"], row["ε, repaired"]) for row in rows)
