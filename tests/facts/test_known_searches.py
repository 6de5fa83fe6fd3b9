"""Branch and bound, boxes around domains, and searches for pairs, on functions whose extremes are known by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.facts.branching import (
    Task,
    _batched,  # pyright: ignore[reportPrivateUsage]
    _halves,  # pyright: ignore[reportPrivateUsage]
    _influence,  # pyright: ignore[reportPrivateUsage]
    _middle,  # pyright: ignore[reportPrivateUsage]
    supremum,
)
from epszero.facts.domains import (
    Bounds,
    by_solver,
    domain_box,
    domain_diameter,
    domain_support,
    misses,
    nearest,
    only_boxes,
    support_box,
    support_centre,
    tangent,
)
from epszero.facts.search import between, extremes, sizes


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


# -- branch and bound --------------------------------------------------------------------------------------------------


def square(lower, upper):
    """Of x₁² − x₂ + 3x₁x₂, term by term, over boxes of the plane."""
    (a, c), (b, d) = lower.T, upper.T
    first = np.maximum(a**2, b**2)
    products = np.max([a * c, a * d, b * c, b * d], axis=0)
    return first - c + 3 * products


BOX = Bounds(np.array([-1.0, 0.5]), np.array([2.0, 1.0]))
TOP = 4 - 1 + 6  # at (2, 1)


def test_the_supremum_is_found_from_above():
    found = supremum(Task(square, BOX, 8), 4000)
    assert TOP <= found.at_most <= TOP + 0.011 * TOP
    assert found.seen <= TOP
    assert found.seen >= TOP * 0.97
    assert found.at_most <= found.seen * 1.01 + 1e-12
    assert supremum(Task(square, BOX, 8), 1).at_most == 4 - 0.5 + 6
    assert supremum(Task(square, BOX, 8), 1).boxes == 1
    enough = supremum(Task(square, BOX, 8, enough=9.4), 4000)
    assert TOP <= enough.at_most <= 9.4
    assert enough.boxes < found.boxes


def test_a_search_ends_when_its_work_is_done():
    """Bounds that never come down: about as many boxes are looked at as were granted."""
    calls = []

    def loose(lower, upper):
        calls.append(len(lower))
        return 10.0 + 0.0 * lower[:, 0]

    for most in (50, 200):
        found = supremum(Task(lambda low, high: loose(low, high) + (high - low).sum(axis=1), BOX, 8), most)
        assert found.boxes <= most + 8
    assert set(calls) == {8}


def test_infinite_bounds_are_given_up_early_and_nothing_is_claimed():
    found = supremum(Task(lambda low, high: np.full(len(low), np.inf), BOX, 8), 400)
    assert found.at_most == math.inf
    assert found.boxes <= 100 + 8
    nan = supremum(Task(lambda low, high: np.full(len(low), np.nan), BOX, 8), 40)
    assert nan.at_most == math.inf


def test_boxes_outside_do_not_count():
    """Only x₁ + x₂ ≤ 0 counts, where x₁ + 2x₂ is at most 1: at (−1, 1) of the square."""
    whole = Bounds(-np.ones(2), np.ones(2))

    def above(lower, upper):
        return upper[:, 0] + 2 * upper[:, 1]

    def outside(lower, upper):
        return lower.sum(axis=1) > 0

    def inside(points):
        return points - np.maximum(points.sum(axis=1, keepdims=True), 0.0) / 2

    found = supremum(Task(above, whole, 16, outside, inside), 4000)
    assert 1.0 <= found.at_most <= 1.1
    assert found.seen <= 1.0 + 1e-12
    assert supremum(Task(above, whole, 16, lambda low, high: np.ones(len(low), dtype=bool)), 100).at_most == -math.inf


def test_halves_are_the_box():
    rng = np.random.default_rng(0)
    lower = rng.uniform(-1, 0, size=(6, 3))
    upper = lower + rng.uniform(0.1, 1, size=(6, 3))
    whole = Bounds(lower.min(axis=0), upper.max(axis=0))
    weights = np.array([1.0, 0.3, 2.0])
    low, high = _halves(lower, upper, whole, weights)
    for i in range(6):
        across = int(np.argmax(weights * (upper[i] - lower[i]) / (whole.upper - whole.lower)))
        at = (lower[i, across] + upper[i, across]) / 2
        first, second = upper[i].copy(), lower[i].copy()
        first[across] = second[across] = at
        np.testing.assert_allclose(low[2 * i], lower[i])
        np.testing.assert_allclose(high[2 * i], first)
        np.testing.assert_allclose(low[2 * i + 1], second)
        np.testing.assert_allclose(high[2 * i + 1], upper[i])
    opened = Bounds(np.array([-np.inf, 0.0]), np.array([np.inf, 1.0]))
    low, high = _halves(opened.lower[None], opened.upper[None], opened, np.ones(2))
    assert high[0, 0] == low[1, 0] == 0.0


def test_middles():
    lower, upper = np.array([0.0, -np.inf, 3.0, -np.inf]), np.array([4.0, 3.0, np.inf, np.inf])
    np.testing.assert_allclose(_middle(lower, upper), [2.0, 3.0 - 4.0, 3.0 + 4.0, 0.0])


def test_influence_is_how_much_a_bound_falls():
    task = Task(lambda low, high: (high - low) @ np.array([1.0, 5.0, 0.0]), Bounds(np.zeros(3), np.ones(3)), 4)
    found = _influence(task, np.zeros(3), np.ones(3), 6.0, 100)
    np.testing.assert_allclose(found, [1.0, 5.0, 5e-3])
    np.testing.assert_allclose(_influence(task, np.zeros(3), np.array([1.0, 1.0, 0.0]), 6.0, 100), [1.0, 5.0, 0.0])
    np.testing.assert_allclose(_influence(task, np.zeros(3), np.ones(3), 6.0, 2), [1.0, 1.0, 1.0])
    flat = Task(lambda low, high: np.zeros(len(low)), Bounds(np.zeros(3), np.ones(3)), 4)
    np.testing.assert_allclose(_influence(flat, np.zeros(3), np.ones(3), 0.0, 100), [1.0, 1.0, 1.0])


@pytest.mark.parametrize("many", [1, 3, 4, 5, 9])
def test_batches_are_all_of_one_size(many):
    seen = []

    def above(lower, upper):
        seen.append(lower.shape)
        return lower[:, 0] + 10 * upper[:, 1]

    rng = np.random.default_rng(many)
    lower, upper = rng.normal(size=(many, 2)), rng.normal(size=(many, 2))
    np.testing.assert_allclose(_batched(above, lower, upper, 4), lower[:, 0] + 10 * upper[:, 1])
    assert seen == [(4, 2)] * math.ceil(many / 4)


# -- domains -----------------------------------------------------------------------------------------------------------


def strategies(*parts):
    return ez.Game([lambda x, i=i: x[i] @ x[i] for i in range(len(parts))], list(parts)).strategies


TWO = strategies(ez.sets.Ball(2.0, center=np.array([1.0, 0.0])), ez.sets.Box(np.array([-1.0]), np.array([3.0])))
POINT = [np.zeros(2), np.zeros(1)]


def test_boxes_around_domains():
    box = domain_box(TWO, POINT)
    np.testing.assert_allclose(box.lower, [-1, -2, -1], atol=1e-7)
    np.testing.assert_allclose(box.upper, [3, 2, 3], atol=1e-7)
    assert np.all(box.lower <= [-1, -2, -1])
    assert np.all(box.upper >= [3, 2, 3])
    assert box.bounded
    assert not Bounds(np.zeros(1), np.full(1, np.inf)).bounded
    assert not Bounds(np.full(1, -np.inf), np.zeros(1)).bounded
    assert domain_diameter(TWO, POINT) == pytest.approx(math.hypot(4.0, 4.0))
    assert domain_diameter(strategies(ez.sets.WholeSpace(dim=2)), [np.zeros(2)]) == math.inf
    assert not only_boxes(TWO)
    assert only_boxes(strategies(ez.sets.Box(0.0, 1.0, dim=2)))
    assert not by_solver(TWO)
    assert by_solver(strategies(ez.sets.Polyhedron(np.eye(2), np.ones(2))))


def test_supports_of_domains_and_nearest_points():
    rows = np.random.default_rng(1).normal(size=(5, 3))
    expected = rows[:, 0] + 2 * np.hypot(rows[:, 0], rows[:, 1]) + np.maximum(-rows[:, 2], 3 * rows[:, 2])
    np.testing.assert_allclose(domain_support(TWO, POINT, rows), expected)
    open_ended = strategies(ez.sets.WholeSpace(dim=2), ez.sets.Box(np.array([-1.0]), np.array([3.0])))
    along = np.array([[0.0, 0.0, 2.0], [1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(domain_support(open_ended, POINT, along), [6.0, np.inf])
    free = ez.Minimization(lambda x: x @ x, ez.functions.L1(0.1)).strategies
    np.testing.assert_array_equal(domain_support(free, np.zeros(2), np.array([[0.0, 0.0], [0.0, 1.0]])), [0.0, np.inf])
    found = nearest(TWO, POINT, np.array([[5.0, 0.0, 9.0], [1.0, 1.0, 0.0], [1.0, -4.0, -2.0]]))
    np.testing.assert_allclose(found, [[3, 0, 3], [1, 1, 0], [1, -2, -1]])


def test_boxes_that_miss_a_ball():
    centres = np.array(
        [[5.0, 0, 0], [3.2, 0, 0], [1.0, 2.4, 0], [1.0, 2.6, 0], [2.6, 1.6, 0], [2.4, 1.4, 0], [1, 0, 9]]
    )
    reach = np.array([0.5, 0.5, 0.5])
    found = misses(TWO, POINT, centres - reach, centres + reach)
    for centre, missed in zip(centres, found, strict=True):
        closest = np.clip([1.0, 0.0], (centre - reach)[:2], (centre + reach)[:2])
        assert bool(missed) is bool(math.dist(closest, (1.0, 0.0)) > 2)


def test_supports_of_samples():
    row = {"a": jnp.zeros(2), "b": jnp.zeros(1)}
    box, exact = support_box([ez.sets.Box(np.array([0.0, 1.0, 2.0]), np.array([3.0, 4.0, 5.0]))], row)
    np.testing.assert_array_equal(box.lower, [0, 1, 2])
    np.testing.assert_array_equal(box.upper, [3, 4, 5])
    assert exact
    box, exact = support_box([ez.sets.Ball(1.0, center=np.array([1.0, 2.0, 3.0]))], row)
    np.testing.assert_allclose(box.lower, [0, 1, 2], atol=1e-7)
    np.testing.assert_allclose(box.upper, [2, 3, 4], atol=1e-7)
    assert np.all(box.upper >= [2, 3, 4])
    assert not exact
    assert not support_box([None], row)[0].bounded
    centre = support_centre([ez.sets.Ball(1.0, center=np.array([1.0, 2.0, 3.0]))], row)
    np.testing.assert_allclose(centre["a"], [1, 2])
    np.testing.assert_allclose(centre["b"], [3])


def test_directions_of_flat_domains():
    assert tangent(TWO, POINT) is None
    simplex = strategies(ez.sets.Simplex(1.0, dim=4))
    basis = tangent(simplex, [np.full(4, 0.25)])
    assert basis.shape == (4, 3)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-9)
    np.testing.assert_allclose(basis.sum(axis=0), 0, atol=1e-9)
    thin = tangent(strategies(ez.sets.Box(np.array([0.0, 1.0]), np.array([2.0, 1.0]))), [np.array([1.0, 1.0])])
    np.testing.assert_allclose(np.abs(thin), [[1.0], [0.0]], atol=1e-12)


# -- searches ----------------------------------------------------------------------------------------------------------

J = np.array([[1.0, 2.0], [-0.5, 0.3]])
SAMPLES = np.random.default_rng(2).uniform(0.5, 1.5, size=(40, 2))
SCALED = ez.VariationalInequality(lambda x, xi: xi[0] * (J @ x) + xi[1], ez.sets.Box(-1.0, 1.0, dim=2))


def test_slopes_between_points():
    for direction in np.random.default_rng(3).normal(size=(4, 2)):
        found = between(SCALED, np.zeros(2), direction, np.array([2.0, 0.7]), 5)
        unit = direction / np.linalg.norm(direction)
        assert found.sample == 5
        assert np.all(np.abs(found.x) <= 1)
        d = found.x - found.y
        assert found.value == pytest.approx(2 * d @ J @ d / (d @ d))
        assert found.value <= 2 * unit @ J @ unit + 1e-12
    bowl = ez.VariationalInequality(lambda x, xi: x - jnp.sign(x) * xi, ez.sets.WholeSpace(dim=1))
    steep = between(bowl, np.zeros(1), np.ones(1), jnp.ones(1), None)
    assert steep.value == pytest.approx(1 - 1 / 0.1)  # between ±0.1, the nearest that are tried


@pytest.mark.long
def test_extremes_of_a_linear_operator():
    """The least and the steepest slope are those of the Jacobian, times the least or the largest factor."""
    least = np.linalg.eigvalsh((J + J.T) / 2)[0]
    found = extremes(SCALED, SAMPLES, np.zeros(2))
    factors = SAMPLES[:, 0]
    assert factors.max() * least - 1e-9 <= found.slope.value <= 0.9 * factors.max() * least
    steepest = factors.max() * np.linalg.norm(J, 2)
    assert 0.9 * steepest <= found.steepness.value <= steepest * (1 + 1e-9)
    for one in found:
        d, change = one.x - one.y, SAMPLES[one.sample, 0] * (J @ (one.x - one.y))
        assert np.all(np.abs([one.x, one.y]) <= 1 + 1e-12)
        expected = {
            id(found.slope): d @ change / (d @ d),
            id(found.steepness): np.linalg.norm(change) / np.linalg.norm(d),
            id(found.cocoercivity): d @ change / (change @ change),
        }[id(one)]
        assert one.value == pytest.approx(expected, rel=1e-6)
    quick = extremes(SCALED, SAMPLES, np.zeros(2), steps=1)
    assert found.slope.value <= quick.slope.value + 1e-3
    assert quick.slope.value >= factors.max() * least - 1e-9


def test_sizes_are_attained():
    size, apart = sizes(SCALED, SAMPLES, np.zeros(2))
    values = np.array([row[0] * (J @ size.x) + row[1] for row in SAMPLES])
    assert size.value == pytest.approx(np.linalg.norm(values, axis=1).max())
    assert size.value == pytest.approx(np.linalg.norm(values[size.sample]))
    corner = np.max(np.linalg.norm([J @ s for s in ([1, 1], [1, -1])], axis=1))
    assert size.value >= 0.6 * (SAMPLES[:, 0].max() * corner)
    at = np.array([row[0] * (J @ apart.x) + row[1] for row in SAMPLES])
    first = at[np.argsort(np.linalg.norm(SAMPLES, axis=1))[0]]
    assert apart.value == pytest.approx(np.linalg.norm(at - first, axis=1).max())
    assert apart.value == pytest.approx(np.linalg.norm(at[apart.sample] - first))
