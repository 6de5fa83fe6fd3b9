"""Points that come nearer: what earlier samples fix, the identity that leads to x̂, and how often the bound misses."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.validity.coverage import allowed

import epszero as ez
from epszero.certificates import AtTheTruth, stages
from epszero.certificates import at_the_truth as room
from epszero.certificates.truth import Aim

POOL = np.random.default_rng(0).uniform(-1, 1, size=(50, 3))
SUPPORT = ez.sets.Box(-1.0, 1.0, dim=3)
DELTA = 0.3


def _problem():
    return ez.Minimization(lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2 + 0.1 * x @ x, ez.sets.Box(-0.5, 0.5, dim=2))


def _law(x):
    a, b = POOL[:, 1:], POOL[:, 0]
    return a.T @ (a @ x - b) / len(a) + 0.2 * x


def _followed(monkeypatch, s=200, seed=1):
    """The stages of one certificate, with what it was made of."""
    seen = {}
    original = room.stages_of

    def following(case, samples, ground, x, aims):
        seen["stages"] = original(case, samples, ground, x, aims)
        seen["ground"], seen["aims"], seen["case"] = ground, aims, case
        return seen["stages"]

    monkeypatch.setattr(room, "stages_of", following)
    data = ez.Samples(POOL, support=SUPPORT).take(s, seed=seed)
    solution = ez.solve(_problem(), data)
    seen["certificate"] = ez.certify(solution, DELTA, using=AtTheTruth())
    return solution, data, seen


@pytest.mark.long
def test_each_point_is_a_function_of_the_samples_before(monkeypatch):
    sizes = []
    original = stages._solved
    monkeypatch.setattr(
        stages, "_solved", lambda case, samples, x: sizes.append(len(samples)) or original(case, samples, x)
    )
    _, data, seen = _followed(monkeypatch)
    every = seen["stages"].every
    assert sizes == [40, 80, 160]
    assert [len(stage.values) for stage in every] == [20, 40, 80, 40]
    start = 20
    for stage in every:
        rows = data.values[start : start + len(stage.values)]
        a, b = rows[:, 1:], rows[:, 0]
        np.testing.assert_allclose(stage.values, a * (a @ stage.x - b)[:, None] + 0.2 * stage.x, atol=1e-12)
        before = data.values[:start]
        own = before[:, 1:] * (before[:, 1:] @ stage.x - before[:, 0])[:, None] + 0.2 * stage.x
        np.testing.assert_allclose(stage.centre, own.mean(axis=0), atol=1e-12)
        start += len(stage.values)


def test_what_is_left_at_x_is_the_noise_at_the_mean_point_and_that_of_the_jacobian(monkeypatch):
    solution, data, seen = _followed(monkeypatch)
    found, a = seen["stages"], POOL[:, 1:]
    H, rest = a.T @ a / len(a) + 0.2 * np.eye(2), data.values[20:, 1:]
    empirical = rest.T @ rest / len(rest) + 0.2 * np.eye(2)
    moved = solution.x - found.x
    known = solution.z + found.mean + empirical @ moved
    unknown = (_law(found.x) - found.mean) + (H - empirical) @ moved
    np.testing.assert_allclose(known + unknown, solution.z + _law(solution.x), atol=1e-12)


@pytest.mark.long
def test_the_mean_of_what_the_points_meet_misses_no_more_often_than_it_says(monkeypatch):
    missed, broken, trials = 0, 0, 60
    for seed in range(trials):
        with monkeypatch.context() as patch:
            _, _, seen = _followed(patch, seed=seed + 1)
        found, aim = seen["stages"], seen["aims"][0]
        away = np.linalg.norm(found.mean - _law(found.x))
        missed += away > found.radius(aim)
        broken += away > 0.1 * aim.log / (found.many * aim.w)
    assert missed <= allowed(trials, DELTA)
    assert broken > allowed(trials, DELTA)


def test_the_share_of_the_residual_pays_for_one_mean(monkeypatch):
    """That of the stages. The mean at the pilot's point would be an event of its own, for which there is no share."""
    asked = []
    monkeypatch.setattr(room, "_at_pilot", lambda *_: asked.append("the pilot's point") or (None, 0.0))
    _, _, seen = _followed(monkeypatch)
    assert not asked
    assert np.isfinite(seen["certificate"].epsilon)


def test_parts_with_one_range_are_as_one():
    aim = Aim(np.eye(2), 0.3, 2.0)
    assert aim.over(100, [(1.0, 20.0), (1.0, 30.0)]) == pytest.approx(aim.radius(100, 1.0, 50.0))
    assert aim.over(100, [(1.0, 20.0), (4.0, 30.0)]) == np.inf  # 4 · 0.3 is too wide for this weight
    assert aim.over(100, [(0.0, 0.0)]) == 0.0


def test_a_range_that_is_too_wide_for_the_weights_keeps_the_point_before(monkeypatch):
    monkeypatch.setattr(stages, "_solved", lambda case, samples, x: jnp.asarray(x) * 0 + 1e9)
    _, _, seen = _followed(monkeypatch)
    first = seen["stages"].every[0].x
    for stage in seen["stages"].every[1:]:
        np.testing.assert_array_equal(stage.x, first)
    assert np.isfinite(seen["certificate"].epsilon)


@pytest.mark.long
def test_ranges_over_a_simplex_are_those_of_its_corners():
    """Markowitz: |rᵀw| is at most the largest |r_j| anywhere on the simplex, which a ball about x̂ does not know."""
    r = np.random.default_rng(1).uniform(-0.1, 0.1, size=(60, 4))
    problem = ez.Minimization(lambda w, r: 5 * w @ jnp.outer(r, r) @ w - r @ w, ez.sets.Simplex(dim=4))
    data = ez.Samples(r, support=ez.sets.Box(-0.1, 0.1, dim=4)).take(3000, seed=1)
    certificate = ez.certify(ez.solve(problem, data))
    assert certificate.distance < 0.9 * np.sqrt(2)
