"""The noise at the truth: miss rates on pools whose law is known, broken twins, and the pieces it is made of."""

import jax.numpy as jnp
import numpy as np
import pytest
from tests.validity.coverage import allowed
from tests.validity.truths import WORLDS, judged, pool

import epszero as ez
from epszero.certificates import AtTheTruth, EmpiricalBernstein
from epszero.certificates import truth as room
from epszero.certificates.mean import Region
from epszero.certificates.residuals import Residuals
from epszero.certificates.truth import Aim, weight


@pytest.mark.long
@pytest.mark.slow
def test_it_misses_no_more_often_than_it_says():
    world = pool("turning")
    found = judged(world, world.solved(30), 0.3)
    assert found["any"] <= allowed(30, 0.3)
    assert found["distances"] == 30


@pytest.mark.long
@pytest.mark.parametrize("name", WORLDS)
def test_it_misses_no_more_often_than_it_says_anywhere(name):
    world = pool(name)
    solutions = world.solved(150, seed=1000)
    for delta in (0.3, 0.05):
        assert judged(world, solutions, delta)["any"] <= allowed(150, delta)


def _no_noise(monkeypatch):
    monkeypatch.setattr(Aim, "over", lambda self, many, parts: 0.02 * self.log / (many * self.w))


def _steeper(monkeypatch):
    curvature = room.Inside.curvature.func
    monkeypatch.setattr(room.Inside, "curvature", property(lambda self: 40 * curvature(self)))


def _at_no_distance(monkeypatch):
    monkeypatch.setattr(room.Search, "run", lambda self, ground, start: room.Known(1e-3 * start, 0.0, 0.0))


@pytest.mark.some(3)
@pytest.mark.slow
@pytest.mark.parametrize("broken", [_no_noise, _steeper, _at_no_distance])
def test_a_broken_twin_is_convicted(monkeypatch, broken):
    world = pool("turning")
    solutions = world.solved(30)
    broken(monkeypatch)
    assert judged(world, solutions, 0.3)["any"] > allowed(30, 0.3)


def test_the_bound_is_that_of_empirical_bernstein_for_constant_weights():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 2))
    aim = Aim(np.eye(2), weight(np.log(40), 500, np.sqrt(2), 0.66), np.log(40))
    here = aim.radius(500, np.sqrt(2), float(np.sum(X**2)))
    there = float(EmpiricalBernstein().around(X, Region.box(-np.ones(2), np.ones(2)), 0.05).radius)
    assert here == pytest.approx(there, rel=0.1)
    assert aim.radius(500, 2.0, float(np.sum(X**2))) > here  # a larger range is never better
    assert aim.radius(500, 1 / aim.w, 1.0) == np.inf


def least_squares(A=None):
    return ez.Minimization(
        lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2, ez.sets.Box(-2.0, 2.0, dim=2) if A is None else A
    )


def data(s=400, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.uniform(-1, 1, size=(s, 2))
    return ez.Samples(
        np.column_stack([np.clip(a @ [0.5, -0.2] + 0.1 * rng.normal(size=s), -1, 1), a]), support=ez.sets.Box(-1.0, 1.0)
    )


@pytest.mark.long
def test_plain_least_squares_is_certified_without_declaring_anything():
    found = ez.certify(ez.solve(least_squares(), data()))
    assert isinstance(found.using, AtTheTruth)
    assert found.verdict is ez.certificates.Verdict.CONDITIONAL
    assert 0 < found.distance < 2
    assert 0 < found.cost_gap <= found.epsilon * found.distance * (1 + 1e-6)


def test_one_line_may_have_most_of_delta():
    solution = ez.solve(least_squares(), data())
    assert ez.certify(solution, of="residual").epsilon < ez.certify(solution).epsilon
    with pytest.raises(ez.InputError, match="of"):
        AtTheTruth(of="intervals")


def test_a_record_is_verified():
    problem, samples = least_squares(), data()
    found = ez.certify(ez.solve(problem, samples))
    assert ez.verify(found.to_json(), problem, samples)
    assert not ez.verify(found.to_json(), problem, data(seed=1))


@pytest.mark.parametrize(
    ("problem", "samples", "said"),
    [
        (least_squares(), ez.Samples(data().values), "support"),
        (least_squares(), data(30), "too few"),
        (
            ez.VariationalInequality(lambda x, xi: jnp.floor(x * 3) + x * xi, ez.sets.Box(-1.0, 1.0, dim=1)),
            ez.Samples(np.random.default_rng(0).uniform(0.5, 1, size=(100, 1)), support=ez.sets.Box(0.5, 1.0)),
            "continuous",
        ),
    ],
)
def test_what_it_cannot_say_it_does_not_say(problem, samples, said):
    found = ez.certify(ez.solve(problem, samples, throw=False), using=AtTheTruth())
    assert found.epsilon == np.inf
    assert said in found.reason


def test_declared_supports_are_checked_against_the_samples():
    problem = ez.Minimization(
        lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2,
        ez.sets.Box(-2.0, 2.0, dim=2),
        declared=ez.declare(support=ez.sets.Box(-0.5, 0.5)),
    )
    found = ez.certify(ez.solve(problem, ez.Samples(data().values)), using=AtTheTruth())
    assert found.verdict is ez.certificates.Verdict.REFUSED


@pytest.mark.parametrize(
    "set_", [ez.sets.Simplex(2.0), ez.sets.Ball(1.5, norm=1, dim=3), ez.sets.Box(-1.0, [1.0, 2.0, 0.5])]
)
def test_corners_are_those_of_the_set(set_):
    corners = set_.corners(3)
    directions = np.random.default_rng(0).normal(size=(50, 3))
    assert np.allclose((directions @ corners.T).max(axis=1), [set_.support(d) for d in directions])


def test_corners_of_large_boxes_and_of_round_sets_are_not_written_down():
    assert ez.sets.Box(0.0, 1.0, dim=30).corners(30) is None
    assert ez.sets.Box(0.0, np.inf, dim=2).corners(2) is None
    assert ez.sets.Ball(1.0, dim=2).corners(2) is None


@pytest.mark.parametrize("group", [None, np.array([0, 1, 1]), np.arange(3)])
def test_the_largest_product_with_a_row(group):
    rng = np.random.default_rng(0)
    radii = np.array([0.5]) if group is None else np.linspace(0.5, 1.0, group.max() + 1)
    found = Residuals(np.zeros(2), radii, group, np.zeros((2, 3))).against(rows := rng.normal(size=(4, 3)))
    v = rng.normal(size=(20000, 3))
    for k, r in enumerate(radii):
        own = slice(None) if group is None else group == k
        v[:, own] *= r / np.linalg.norm(v[:, own], axis=1, keepdims=True)
    seen = (v @ rows.T).max(axis=0)
    assert (seen <= found * (1 + 1e-9)).all()
    assert (seen >= 0.9 * found).all()
