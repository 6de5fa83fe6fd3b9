"""What is likely: by the normal approximation and by the bootstrap; beside what is sure, and never in its place."""

import math

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import Asymptotic, Bootstrap, Known
from epszero.certificates.asymptotic import likely_norm
from epszero.certificates.bootstrap import block_length, blocks

H = np.array([[1.2, 0.4], [-0.2, 0.9]])
UNIT = ez.sets.Box(0.0, 1.0, dim=2)
PROBLEM = ez.Inclusion(ez.sets.Box(-5.0, 0.5, dim=2), lambda x, xi: H @ x - xi)
MEAN = np.array([0.5, 0.5])


def rows(s, seed):
    return ez.Samples(np.random.default_rng(seed).uniform(size=(s, 2)), support=UNIT)


def truth():
    return ez.solve(PROBLEM, ez.Samples(MEAN[None]), tol=1e-12).x


def test_the_quantile_in_one_dimension_is_the_normal_one():
    X = np.random.default_rng(0).normal(size=(400, 1))
    expected = 1.96 * 3.0 * X.std(ddof=1) / 20
    assert likely_norm(X, np.array([[3.0]]), 0.05) == pytest.approx(expected, rel=0.02)
    for scale in (1e-150, 1e140):
        assert likely_norm(scale * X, np.array([[3.0]]), 0.05) / scale == pytest.approx(expected, rel=0.02)
    assert likely_norm(X, np.zeros((1, 1)), 0.05) == 0.0
    assert likely_norm(np.ones((5, 1)), np.ones((1, 1)), 0.05) == 0.0


def test_on_a_kind_law_its_coverage_is_nearly_nominal():
    trials, x = 500, truth()
    solutions = ez.solve_many(PROBLEM, [rows(3000, seed) for seed in range(trials)])
    missed = {name: 0 for name in ("distance", "epsilon")}
    for solution in solutions:
        found = ez.certify(solution, 0.1, Asymptotic())
        missed["distance"] += bool(np.linalg.norm(solution.x - x) > found.distance)
        missed["epsilon"] += bool(np.linalg.norm(solution.z + H @ solution.x - MEAN) > found.epsilon)
    for name, count in missed.items():
        assert abs(count / trials - 0.1) <= 0.03 + 0.01, name


def test_always_heuristic_and_shorter_than_what_is_sure():
    solution = ez.solve(PROBLEM, rows(1000, 1))
    sure = ez.certify(solution)
    for kind in (Asymptotic(), Bootstrap(replications=40)):
        found = ez.certify(solution, using=kind)
        assert found.verdict == "heuristic"
        assert found.distance < sure.distance
        assert found.epsilon < sure.epsilon
    assert ez.certify(solution, using=Bootstrap(200)).distance == pytest.approx(
        ez.certify(solution, using=Asymptotic()).distance, rel=0.2
    )


def test_the_second_line_is_beside_the_first_and_not_in_it():
    solution = ez.solve(PROBLEM, rows(1000, 1))
    certificate = ez.certify(solution)
    plain = ez.certify(solution, likely=False)
    assert certificate.likely == pytest.approx(ez.certify(solution, using=Asymptotic()).distance, rel=1e-6)
    assert "likely ≤" in str(certificate)
    assert "likely" not in str(plain)
    assert certificate.to_json() == plain.to_json()
    assert ez.Certificate.from_json(plain.to_json()).likely is None
    assert ez.certify(ez.solve(PROBLEM, rows(5, 1))).likely is None
    with pytest.raises(ez.InputError, match="likely"):
        ez.certify(solution, likely="no")


def test_days_in_blocks():
    rng = np.random.default_rng(3)
    noise, chain = rng.normal(size=2000), np.zeros(2000)
    for i in range(1, 2000):
        chain[i] = 0.9 * chain[i - 1] + noise[i]
    assert block_length(noise[:, None]) <= 3
    assert 15 <= block_length(chain[:, None]) <= 120
    assert block_length(np.ones((50, 1))) == 1
    found = blocks(rng, 10, 4)
    assert len(found) == 10
    assert (np.diff(found)[[0, 1, 2, 4, 5, 6]] == 1).all()
    assert found.max() < 10
    spread = ez.Samples(np.clip(0.5 + chain[:, None] * [0.05, 0.03], 0, 1), support=UNIT)
    solution = ez.solve(PROBLEM, spread)
    by_blocks, by_rows = (ez.certify(solution, using=Bootstrap(60, block)) for block in (None, 1))
    assert by_blocks.terms["block"] > 10
    assert by_blocks.epsilon > 2 * by_rows.epsilon
    assert "rows on end" in by_blocks.by


@pytest.mark.parametrize("kind", [Asymptotic(), Bootstrap(replications=20)])
def test_one_sample_says_nothing(kind):
    found = ez.certify(ez.solve(PROBLEM, rows(1, 0)), using=kind)
    assert (found.verdict, found.epsilon) == ("refused", math.inf)


def test_wrong_settings():
    for settings in ({"replications": 3}, {"block": 0}, {"seed": -1}):
        with pytest.raises(ez.InputError, match=next(iter(settings))):
            Bootstrap(**settings)
    assert Known().other_truth is False
