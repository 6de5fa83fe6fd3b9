"""`MeanSet` answers its three questions consistently, bounds treat trials alike, and `Region` reads sets rightly."""

import math

import numpy as np
import pytest

from epszero.certificates.mean import MeanSet, Region
from epszero.sets import Ball, Box, NonNegative, Polyhedron, PositiveSemidefinite, Product, Simplex, WholeSpace

from .coverage import CONTENDERS
from .laws import LAWS

pytestmark = pytest.mark.some(2)

BALL = MeanSet(np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]]), np.array([0.7, 2.0]))
BOX = MeanSet(BALL.centre, np.array([[0.5, 0.0, 1.0], [2.0, 0.1, 0.3]]))


def points(found: MeanSet, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, trials, d) points of the set, many of them on its boundary."""
    inside = rng.uniform(-1, 1, size=(count, *found.centre.shape))
    if found.is_box:
        inside[::2] = np.sign(inside[::2])
        return found.centre + 0.999999 * found.radius * inside
    normal = rng.standard_normal(inside.shape)
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    normal[1::2] *= np.abs(inside[1::2, :, :1])
    return found.centre + 0.999999 * found.radius[:, None] * normal


@pytest.mark.parametrize("found", [BALL, BOX], ids=["ball", "box"])
def test_a_mean_set_agrees_with_itself(found):
    rng = np.random.default_rng(0)
    sampled = points(found, rng, 20_000)
    assert found.contains(sampled).all()
    assert not found.contains(found.centre + 3.0).any()
    for direction in rng.standard_normal((10, 3)):
        reached, claimed = (sampled @ direction).max(axis=0), found.support(direction)
        assert np.all(reached <= claimed)
        assert np.all(reached >= claimed - 0.05 * np.linalg.norm(direction))
        away = direction + found.centre
        far = np.linalg.norm(sampled - away, axis=-1).max(axis=0)
        assert np.all(far <= found.norm_from(away))
        assert np.all(far >= found.norm_from(away) - 0.05)
        # the distance of the farthest point is the largest support over unit directions, less that of v
        units = rng.standard_normal((2000, 1, 3))
        units /= np.linalg.norm(units, axis=-1, keepdims=True)
        assert np.all(found.support(units) - np.sum(units * away, axis=-1) <= found.norm_from(away) + 1e-12)


def test_what_lies_outside_is_found_outside():
    assert BALL.contains(BALL.centre + np.array([[0.7, 0, 0], [2.0, 0, 0]]) * 0.99).all()
    assert not BALL.contains(BALL.centre + np.array([[0.7, 0, 0], [2.0, 0, 0]]) * 1.01).any()
    assert BOX.contains(BOX.centre + BOX.radius * 0.99).all()
    assert not BOX.contains(BOX.centre + BOX.radius * 1.01 + 1e-6).any()
    assert BOX.contains(BALL.centre[0]).tolist() == [True, False]


TWO_LAWS = [LAWS["prices, d = 14"], LAWS["uniform, d = 1"]]


@pytest.mark.parametrize(
    ("contender", "law"),
    [
        pytest.param(c, law, id=f"{c.name}-{law.name}")
        for c in CONTENDERS.values()
        for law in TWO_LAWS
        if c.applies(law)
    ],
)
def test_many_trials_are_as_one_at_a_time(contender, law):
    bound, region = contender.bound(law), contender.region(law)
    X = law.draw(np.random.default_rng(1), (6, 20))
    together = bound.around(X.reshape(2, 3, 20, law.dim), region, 0.1)
    assert together.centre.shape == (2, 3, law.dim)
    assert together.radius.shape == (together.centre.shape if together.is_box else (2, 3))
    for i, x in enumerate(X):
        alone = bound.around(x, region, 0.1)
        j = np.unravel_index(i, (2, 3))
        np.testing.assert_allclose(alone.centre, together.centre[j], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(alone.radius, together.radius[j], rtol=1e-6)


@pytest.mark.parametrize("contender", CONTENDERS.values(), ids=list(CONTENDERS))
def test_a_radius_promised_is_a_radius_given(contender):
    law = LAWS["uniform, d = 14"]
    bound, region = contender.bound(law), contender.region(law)
    X = law.draw(np.random.default_rng(2), (5, 40))
    promised, given = bound.radius(40, law.dim, region, 0.1), bound.around(X, region, 0.1).radius
    assert promised is None or np.all(given <= promised * (1 + 1e-3))  # a geometric median is good to 1e-6
    assert bound.least(0.1) <= 2


REGIONS = {
    "box": (Box(np.array([0.0, -1.0]), np.array([3.0, 3.0])), 2, 5.0, 2.5),
    "box, spread": (Box(-1.0, 1.0), 3, 2 * math.sqrt(3), math.sqrt(3)),
    "box, dim": (Box(-1.0, 1.0, dim=3), 3, 2 * math.sqrt(3), math.sqrt(3)),
    "ball": (Ball(2.0, center=np.array([1.0, 1.0, 5.0])), 3, 4.0, 2.0),
    "ball of the 1-norm": (Ball(2.0, center=np.zeros(3), norm=1), 3, 4.0, 2.0),
    "ball of the ∞-norm": (Ball(1.0, center=np.zeros(4), norm=np.inf), 4, 4.0, 2.0),
    "simplex": (Simplex(1.0, dim=3), 3, math.sqrt(2), math.sqrt(2 / 3)),
    "polyhedron": (
        Polyhedron(np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]), np.array([1.0, 0.0, 0.0])),
        2,
        math.sqrt(2),
        math.sqrt(1 / 2),
    ),
    "product": (
        Product({"a": Ball(1.5, center=np.zeros(2)), "b": Box(np.array([0.0]), np.array([4.0]))}),
        3,
        5.0,
        2.5,
    ),
}


@pytest.mark.parametrize("name", REGIONS)
def test_a_region_holds_its_set_and_is_no_larger_than_known(name):
    support, dim, diameter, circumradius = REGIONS[name]
    region = Region.of(support, dim)
    rng = np.random.default_rng(3)
    flat = rng.uniform(-6, 6, size=(200, dim))
    if isinstance(support, Product):
        parts = [support.project({"a": row[:2], "b": row[2:]}) for row in flat]
        drawn = np.array([np.concatenate([part["a"], part["b"]]) for part in parts])
    else:
        drawn = np.array([np.asarray(support.project(row)) for row in flat])
    apart = np.linalg.norm(drawn[:, None] - drawn[None], axis=-1)
    assert apart.max() <= region.diameter <= max(diameter * 1.2, diameter + 1e-6)
    assert region.circumradius >= circumradius * (1 - 1e-12)
    assert region.circumradius <= region.diameter * math.sqrt(dim / (2 * dim + 2)) + 1e-6
    assert np.all(region.lower - 1e-6 <= drawn)
    assert np.all(drawn <= region.upper + 1e-6)
    centres = np.concatenate([region.centre[None], drawn[:20]])
    assert np.all(np.linalg.norm(drawn[:, None] - centres, axis=-1).max(axis=0) <= region.farthest(centres) + 1e-6)


def test_a_region_known_by_its_diameter_alone():
    region = Region.within(2.0, 3)
    assert region.circumradius == pytest.approx(2 * math.sqrt(3 / 8))
    assert region.farthest(np.zeros((5, 3))).tolist() == [2.0] * 5
    with pytest.raises(ValueError, match="bounds of a box"):
        CONTENDERS["betting"].bound(LAWS["uniform, d = 1"]).around(np.zeros((1, 5, 3)), region, 0.1)


@pytest.mark.parametrize(
    ("support", "dim"),
    [
        (WholeSpace(), 2),
        (NonNegative(), 2),
        (Box(np.array([0.0, -np.inf]), np.array([1.0, 0.0])), 2),
        (PositiveSemidefinite(2), 4),  # matrices
        (Product([Ball(1.0, center=np.zeros(2)), NonNegative(2)]), 4),
        (Product([Ball(1.0), Ball(1.0)]), 4),  # whose parts do not say how long they are
        ("elsewhere", 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no_region_where_nothing_is_known(support, dim):
    assert Region.of(support, dim) is None
