"""Where features lie: never outside of what is said, and closer than in a box where ξ has a length."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._trace.separated import separated
from epszero.facts.region import Region, features_region

D = 5  # a label and four entries

SUPPORTS = {
    "a box": ez.sets.Box(-1.0, 1.0, dim=D),
    "a box away from 0": ez.sets.Box(0.5, 1.0, dim=D),
    "a ball": ez.sets.Ball(1.0, dim=D),
    "a ball away from 0": ez.sets.Ball(1.0, center=np.linspace(0, 1, D)),
    "a ball of another norm": ez.sets.Ball(1.0, norm=1, dim=D),
    "entries that sum to 1": ez.sets.Simplex(dim=D),
    "an ellipsoid": ez.sets.Ellipsoid(np.diag(np.arange(1.0, D + 1))),
    "a product": ez.sets.Product([ez.sets.Box(-1.0, 1.0, dim=1), ez.sets.Ball(1.0, dim=D - 1)]),
}
LOSSES = {
    "least squares": lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2,
    "Markowitz": lambda x, r: 5 * (x @ r[:4]) ** 2 - r[:4] @ x,
    "cubic": lambda x, r: (r[:4] @ x) ** 3 / 3 + (r[0] * x[0]) ** 4,
}


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@functools.cache
def features(name):
    """ξ ↦ φ(ξ), and the same for many at once."""
    seen = separated(jax.grad(LOSSES[name]), np.ones(4), np.ones(D))
    return (lambda r: seen.features(r)[0]), jax.jit(jax.vmap(lambda r: seen.features(r)[0]))


@functools.cache
def points(name, many=1500):
    """Of a support, most of them at its ends."""
    support = SUPPORTS[name]
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(many, D)) * rng.choice([0.2, 1.0, 20.0], size=(many, 1))
    rows[: many // 3] = np.sign(rows[: many // 3]) * rng.integers(0, 2, size=(many // 3, D)) * 20
    if isinstance(support, ez.sets.Product):
        first, second = support.sets
        return np.concatenate([first.project(rows[:, :1]), second.project(rows[:, 1:])], axis=1)
    return np.asarray(support.project(rows))


def broken(region, loss, support):
    """What of a region is contradicted by points of the support."""
    found = np.asarray(features(loss)[1](points(support)))
    squares = np.sum(found**2, axis=1)
    apart = np.sqrt(np.max(squares[:, None] + squares - 2 * found @ found.T))
    means = np.stack([found.mean(axis=0), found[:7].mean(axis=0), found[0], found[-1], region.centre])
    far = np.linalg.norm(found[None] - means[:, None], axis=2).max(axis=1)
    small = 1e-9 * (1 + region.diameter)
    said = {
        "lower": (found >= region.lower - small).all(),
        "upper": (found <= region.upper + small).all(),
        "diameter": apart <= region.diameter + small,
        "farthest": (far <= region.farthest(means) + small).all(),
        "circumradius": apart / 2 <= region.circumradius + small,
    }
    return [name for name, right in said.items() if not right]


@pytest.mark.some(4)
@pytest.mark.parametrize("support", SUPPORTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_features_lie_where_it_is_said(loss, support):
    region = features_region(features(loss)[0], np.zeros(D), SUPPORTS[support])
    assert region is not None
    assert broken(region, loss, support) == []
    assert region.diameter <= Region.box(region.lower, region.upper).diameter * (1 + 1e-9)


@pytest.mark.parametrize("support", SUPPORTS)
def test_the_check_finds_what_is_too_short(support):
    """A third of what is said would be a lie, on all of them."""
    region = features_region(features("least squares")[0], np.zeros(D), SUPPORTS[support])
    short = [dataclasses.replace(block, reach=block.reach / 3, diameter=block.diameter / 3) for block in region.blocks]
    lies = dataclasses.replace(region, blocks=tuple(short), diameter=region.diameter / 3)
    assert {"diameter", "farthest"} <= set(broken(lies, "least squares", support))


def test_a_ball_bounds_all_products_together():
    """‖aaᵀ‖ ≤ ρ² and ‖aaᵀ − bbᵀ‖ ≤ √2 ρ², where the box has a length that grows with the number of entries."""
    region = features_region(lambda a: jnp.ravel(jnp.outer(a, a)), np.zeros(8), ez.sets.Ball(3.0, dim=8))
    assert region.diameter == pytest.approx(np.sqrt(2) * 9, rel=1e-6)
    assert region.circumradius <= 9 * (1 + 1e-6)
    assert Region.box(region.lower, region.upper).diameter > 2 * region.diameter


def test_squares_and_products_have_exact_ranges():
    box = ez.sets.Box([-1.0, 2.0], [2.0, 3.0])
    region = features_region(lambda a: jnp.stack([a[0] ** 2, a[0] * a[0], a[0] * a[1]]), np.zeros(2), box)
    np.testing.assert_allclose(region.lower, [0, 0, -3], atol=1e-12)
    np.testing.assert_allclose(region.upper, [4, 4, 6], atol=1e-12)


def test_products_of_entries_that_sum_to_one_are_at_most_a_quarter():
    region = features_region(lambda a: jnp.stack([a[0] * a[1], a[0] ** 2]), np.zeros(3), ez.sets.Simplex(dim=3))
    np.testing.assert_allclose(region.upper, [0.25, 1.0], rtol=1e-6)


def test_other_features_lie_in_their_box():
    ball = ez.sets.Ball(1.0, dim=2)
    region = features_region(lambda a: jnp.stack([jnp.exp(a[0]), a[0] + a[1] ** 2]), np.zeros(2), ball)
    assert region.blocks == ()
    np.testing.assert_allclose(region.upper, [np.e, 2.0], rtol=1e-9)
