"""Regions against their corners, which are looked at one by one, and domains against their widths."""

import itertools
import math

import numpy as np
import pytest

import epszero as ez
from epszero.facts import Region, features_region, region
from epszero.facts.domains import domain_diameter

RNG = np.random.default_rng(4)


def corners_of(lower, upper):
    return np.array(list(itertools.product(*zip(lower, upper, strict=True))))


@pytest.mark.parametrize(("rows", "d"), [(1, 1), (3, 2), (2, 5), (4, 4)])
def test_the_image_of_a_box(rows, d):
    """Its corners are images of corners; the farthest from the middle is half of the diameter away."""
    lower = RNG.normal(size=d)
    upper = lower + RNG.uniform(0.1, 2.0, size=d)
    R = RNG.normal(size=(rows, d))
    images = corners_of(lower, upper) @ R.T
    found = Region.box(lower, upper).through(R)
    diameter = max(np.linalg.norm(a - b) for a in images for b in images)
    assert diameter <= found.diameter <= diameter * (1 + 1e-8)
    assert found.circumradius == found.diameter / 2
    np.testing.assert_allclose(found.centre, R @ (lower + upper) / 2, atol=1e-14)
    np.testing.assert_allclose(found.lower, images.min(axis=0), atol=1e-7)
    np.testing.assert_allclose(found.upper, images.max(axis=0), atol=1e-7)
    assert (found.lower <= images.min(axis=0)).all()
    assert (found.upper >= images.max(axis=0)).all()
    points = images[:1] * 0.3 + images[-1:] * 0.7
    far = np.linalg.norm(images - points, axis=1).max()
    assert far <= found.farthest(points)[0] <= far * (1 + 1e-7)


def test_the_image_of_a_box_with_too_many_corners_to_look_at():
    """By rows, or by the absolute Gram matrix, whichever is less; both are above every corner."""
    d = region.MOST_CORNERS + 1
    lower, upper = -RNG.uniform(0.5, 1.5, size=d), RNG.uniform(0.5, 1.5, size=d)
    for R in (RNG.normal(size=(3, d)), np.ones((1, d)), np.eye(d)):
        found = Region.box(lower, upper).through(R)
        half = (upper - lower) / 2
        by_rows = np.linalg.norm(np.abs(R) @ half)
        by_gram = math.sqrt(half @ np.abs(R.T @ R) @ half)
        assert found.diameter == pytest.approx(2 * min(by_rows, by_gram), rel=1e-7)
        assert found.corners is None
        middle = (lower + upper) / 2
        signs = RNG.choice([-1.0, 1.0], size=(500, d))
        assert (np.linalg.norm((signs * half) @ R.T, axis=1) <= found.diameter / 2).all()
        np.testing.assert_allclose(found.centre, R @ middle)


def test_what_is_known_of_earlier_samples_goes_through_too():
    rows, R = RNG.normal(size=(30, 3)), RNG.normal(size=(2, 3))
    prior = Region.box(-9 * np.ones(3), 9 * np.ones(3)).after(rows).through(R).prior
    np.testing.assert_allclose(prior.centre, rows.mean(axis=0) @ R.T)
    np.testing.assert_allclose(prior.variances, np.square(R) @ rows.var(axis=0))
    assert prior.variance == pytest.approx(prior.variances.sum())
    assert prior.count == 30


def test_a_first_guess_is_the_centre_and_a_quarter_of_the_width():
    guess = Region.box(np.array([0.0, -1.0]), np.array([4.0, 1.0])).first_guess
    np.testing.assert_allclose(guess.centre, [2.0, 0.0])
    np.testing.assert_allclose(guess.variances, [1.0, 0.25])
    assert guess.variance == pytest.approx((math.hypot(4.0, 2.0) / 4) ** 2)
    assert guess.count == 1.0
    assert Region.within(2.0, 3).first_guess is None


def test_somewhere_of_a_diameter_lies_in_the_ball_of_jung():
    found = Region.within(2.0, 2)  # an equilateral triangle with sides of 2 needs a radius of 2/√3
    assert found.circumradius == pytest.approx(2 / math.sqrt(3))
    assert found.variance == pytest.approx(4 / 3)
    np.testing.assert_array_equal(found.farthest(np.zeros((5, 2))), 2.0)
    assert not found.is_point
    assert Region.within(0.0, 2).is_point


def test_sets_of_every_kind():
    ball = Region.of(ez.sets.Ball(0.5, center=[1.0, 2.0, 0.0]), 3)
    assert ball.diameter == pytest.approx(1.0)
    assert ball.circumradius == pytest.approx(0.5)
    np.testing.assert_allclose([ball.lower, ball.upper], [[0.5, 1.5, -0.5], [1.5, 2.5, 0.5]])
    simplex = Region.of(ez.sets.Simplex(2.0, dim=3), 3)
    assert simplex.diameter == pytest.approx(2 * math.sqrt(2))
    assert simplex.circumradius == pytest.approx(2 * math.sqrt(2) * math.sqrt(3 / 8))
    np.testing.assert_allclose(simplex.centre, 2 / 3)
    assert Region.of(ez.sets.HalfSpace([1.0, 0.0], 1.0), 2) is None
    assert Region.of(ez.sets.Box(0.0, np.inf), 2) is None
    assert Region.of(ez.sets.Box(0.0, [1.0, 1.0]), 3) is None
    both = Region.of(ez.sets.Product([ez.sets.Box(0.0, [3.0, 4.0]), ez.sets.Ball(6.0, dim=1)]), 3)
    assert both.diameter == pytest.approx(13.0)
    assert both.circumradius == pytest.approx(6.5)
    np.testing.assert_allclose(both.upper, [3.0, 4.0, 6.0])
    assert Region.of(ez.sets.Product([ez.sets.Box(0.0, [3.0, 4.0]), ez.sets.HalfSpace([1.0], 0.0)]), 3) is None


def test_features_of_a_support_are_held_by_their_box():
    support = ez.sets.Box([-1.0, 2.0], [3.0, 4.0])
    found = features_region(lambda xi: xi[0] * xi[1], np.zeros(2), support)
    assert found.lower <= -4.0 <= -4.0 + 1e-9
    assert found.upper >= 12.0
    assert found.diameter == pytest.approx(16.0, rel=1e-6)
    assert features_region(lambda xi: 1 / xi[0], np.zeros(2), support) is None


@pytest.mark.parametrize("points", [1, 2, 5, 9, 70])
def test_the_farthest_corner_is_never_nearer_than_it_is(points):
    """Exact for the first, the second and the ninth."""
    lower, upper = np.zeros(3), np.array([1.0, 2.0, 3.0])
    R = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, -1.0]])
    found = Region.box(lower, upper).through(R)
    images = corners_of(lower, upper) @ R.T
    c = RNG.uniform(0, 1, size=(2, points, 3)) * upper @ R.T
    exact = np.linalg.norm(images - c[:, :, None], axis=-1).max(axis=-1)
    bound = found.farthest(c)
    assert (bound >= exact).all()
    for place in (0, 1, 8):
        if place < points:
            np.testing.assert_allclose(bound[:, place], exact[:, place], rtol=1e-7)


# -- domains -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parts", "x", "diameter"),
    [
        (ez.sets.Box(0.0, [3.0, 4.0]), np.zeros(2), 5.0),
        (ez.sets.Box([1.0, 2.0], [1.0, 2.0]), np.zeros(2), 0.0),
        ([ez.sets.Box(0.0, [3.0, 4.0]), ez.sets.Ball(6.0, dim=2)], [np.zeros(2), np.zeros(2)], 13.0),
        (ez.sets.Box(0.0, 1.0), np.zeros(4), np.inf),  # of any dimension
        (ez.sets.HalfSpace([1.0, 0.0], 0.0), np.zeros(2), np.inf),
        (ez.functions.L1(1.0), np.zeros(2), np.inf),
        (ez.sets.Box(0.0, [3e200, 4e200]), np.zeros(2), 5e200),
    ],
)
def test_the_diameter_of_a_domain(parts, x, diameter):
    problem = ez.Inclusion(parts, lambda v, xi: v)
    assert domain_diameter(problem.strategies, x) == pytest.approx(diameter)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_R_of_additive_noise_is_rounded_up_whatever_its_size(size):
    """A ball: by its diameter, times the norm of what ξ is multiplied by."""
    C = np.array([[2.0, 0.0], [0.0, 1.0]])
    problem = ez.Inclusion(ez.sets.Box(-1.0, 1.0, dim=2), lambda x, xi: x + C @ xi)
    samples = ez.Samples(np.zeros((3, 2)), support=ez.sets.Ball(size, dim=2))
    R = ez.audit(problem, samples).constants["R"]
    assert 4 * size <= R.value <= 4 * size * (1 + 1e-8)
