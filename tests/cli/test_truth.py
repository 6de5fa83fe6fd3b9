"""The demo against the truth: what it counts is what happens, and the limit is that of the binomial law."""

from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom

import epszero as ez

truth = import_module("epszero.cli.truth")


@pytest.mark.parametrize(("misses", "trials"), [(0, 200), (3, 200), (10, 200), (199, 200), (0, 1)])
def test_the_limit_is_where_so_few_misses_become_rare(misses, trials):
    assert binom.cdf(misses, trials, truth.limit(misses, trials)) == pytest.approx(0.05, rel=1e-9)


def test_when_all_miss_nothing_is_excluded():
    assert truth.limit(7, 7) == 1.0


@pytest.fixture(scope="module")
def pool():
    return ez.Samples(np.random.default_rng(0).uniform(0.02, 0.25, (400, 4)), support=ez.sets.Box(0.0, 0.3))


@pytest.fixture(scope="module")
def game():
    return ez.models.ev_charging(vehicles=2, hours=4, need=(2.0, 6.0))


@pytest.mark.long
def test_the_truth_of_a_small_fleet(game, pool):
    certificate = ez.certify(ez.solve(game, pool.take(300, seed=1)))
    found = truth.truth_of(certificate, pool)
    mean = ez.solve(game, ez.Samples(pool.values.mean(axis=0)[None]))  # B is affine: the mean day tells all
    assert found.distance == pytest.approx(np.linalg.norm(certificate.solution.x - mean.x), rel=1e-6)
    assert 0 <= found.saving <= certificate.exploitability.max()
    assert f"{found.distance:.3g}" in str(found)


@pytest.mark.long
def test_a_count_over_few_data_sets(game, pool):
    found = truth.truth_of(ez.certify(ez.solve(game, pool.take(300, seed=1))), pool)
    count = truth.counted(game, pool, 300, 5, 0.05)
    assert len(count.true) == 5
    assert count.misses == 0
    assert "too small 0 times" in str(count)
    below = truth.draw(found, count).axes[2]
    np.testing.assert_allclose(below.lines[2].get_ydata(), np.sort(count.true))
    assert "0 certificates too small" in below.get_title(loc="left")


def test_misses_are_counted_and_drawn(game, pool):
    certificate = ez.certify(ez.solve(game, pool.take(300, seed=1)))
    count = truth.Count(
        np.array([1.0, 3.0, 2.0]), np.array([0.5, 4.0, np.nan]), np.array([2.0, 2.5, np.inf]), 0.05, 300
    )
    assert (count.misses, count.surprises) == (1, 1)
    known = SimpleNamespace(distance=0.1, size=1.0, saving=1e-5, certificate=certificate)
    missed = truth.draw(known, count).axes[2].lines[3]
    assert (missed.get_xdata().tolist(), missed.get_ydata().tolist()) == ([2], [3.0])
