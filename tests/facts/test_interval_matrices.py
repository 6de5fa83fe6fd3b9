"""Eigenvalue bounds of interval matrices, against members drawn at random and at the vertices."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epszero.facts.interval_matrices import largest_norm, least_eigenvalue

pytestmark = pytest.mark.some(2)

KINDS = ("plain", "thin", "wide", "symmetric", "some exact", "tiny", "huge", "singular", "diagonal")


def intervals(rng, n, kind, m=None):
    centre, radius = rng.normal(size=(m or n, n)), rng.uniform(size=(m or n, n))
    if kind == "thin":
        radius *= 1e-9
    if kind == "wide":
        radius *= 30
    if kind == "symmetric" and m is None:
        centre, radius = centre + centre.T, radius + radius.T
    if kind == "some exact":
        radius *= rng.uniform(size=radius.shape) < 0.4
    if kind == "singular":
        centre, radius = np.outer(centre[:, 0], centre[0]), 1e-3 * radius
    if kind == "diagonal" and m is None:
        centre, radius = np.diag(np.diag(centre)), np.diag(np.diag(radius))
    scale = {"tiny": 1e-140, "huge": 1e150}.get(kind, 1.0)
    return scale * (centre - radius), scale * (centre + radius)


def members(rng, lower, upper, count):
    """Random members, members with every entry at a bound, and the two ends."""
    share = rng.uniform(size=(count, *lower.shape))
    share[::2] = np.round(share[::2])
    share[0], share[1] = 0.0, 1.0
    return np.clip(lower + share * (upper - lower), lower, upper)


def least_of(J):
    return np.linalg.eigvalsh((J + np.swapaxes(J, -1, -2)) / 2)[..., 0]


def safe_below(bound, rng, lower, upper):
    slack = 1e-13 * max(np.abs(lower).max(), np.abs(upper).max())  # the reference is rounded, too
    return bound <= least_of(members(rng, lower, upper, 60)).min() + slack


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 6, 9])
def test_the_least_eigenvalue_of_every_member_is_above(n, kind):
    rng = np.random.default_rng(n)
    cases = [intervals(rng, n, kind) for _ in range(12)]
    bounds = least_eigenvalue(np.stack([low for low, _ in cases]), np.stack([high for _, high in cases]))
    assert bounds.shape == (12,)
    assert all(safe_below(bound, rng, *case) for bound, case in zip(bounds, cases, strict=True))


def test_the_check_finds_a_bound_that_forgets_the_radius():
    rng = np.random.default_rng(0)
    cases = [intervals(rng, n, "plain") for n in (2, 3, 5, 9)]
    centres = [(low + high) / 2 for low, high in cases]
    broken = [float(least_eigenvalue(centre, centre)) for centre in centres]
    assert not any(safe_below(bound, rng, *case) for bound, case in zip(broken, cases, strict=True))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_up_to_six_rows_the_bound_is_attained_by_a_vertex(n):
    rng = np.random.default_rng(n)
    for kind in ("plain", "thin", "wide", "symmetric", "some exact", "singular", "diagonal"):
        lower, upper = intervals(rng, n, kind)
        signs = np.array(list(product((1, -1), repeat=n)))
        vertices = np.where(signs[:, :, None] == signs[:, None, :], lower, upper)
        reached = least_of(vertices).min()
        assert reached - float(least_eigenvalue(lower, upper)) <= 1e-9 * max(1.0, np.abs(vertices).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (3, 3), (5, 2), (8, 8)])
def test_the_norm_of_every_member_is_below(shape, kind):
    rng = np.random.default_rng(shape[0])
    for _ in range(12):
        lower, upper = intervals(rng, shape[1], kind, shape[0])
        bound = float(largest_norm(lower, upper))
        true = np.linalg.norm(members(rng, lower, upper, 60), 2, (-2, -1)).max()
        assert bound >= true * (1 - 1e-14)
        assert bound <= np.linalg.norm(np.maximum(np.abs(lower), np.abs(upper))) * (1 + 1e-12)


def test_the_norm_of_an_exact_matrix_is_its_norm_and_a_broken_one_fails():
    rng = np.random.default_rng(3)
    J, radius = rng.normal(size=(20, 5, 7)), 0.1
    np.testing.assert_allclose(largest_norm(J, J), np.linalg.norm(J, 2, (-2, -1)), rtol=1e-12)
    top = np.linalg.norm(J + radius * np.sign(J), 2, (-2, -1))
    assert (largest_norm(J - radius, J + radius) >= top).all()
    assert (largest_norm(J, J) < top).all()


@settings(max_examples=80, deadline=None)
@given(st.floats(-1e300, 1e300), st.floats(0, 1e300))
def test_one_row_is_exact(lower, width):
    upper = lower + width
    low, high = np.array([[lower]]), np.array([[upper]])
    assert float(least_eigenvalue(low, high)) == lower
    assert float(largest_norm(low, high)) == max(abs(lower), abs(upper))


def test_infinite_entries_leave_no_bound_and_do_not_touch_their_neighbours():
    lower, upper = np.tile(np.eye(3), (4, 1, 1)), np.tile(np.eye(3), (4, 1, 1))
    lower[1, 0, 2], upper[2, 1, 0], upper[3, 0, 0] = -np.inf, np.inf, np.nan
    low, high = least_eigenvalue(lower, upper), largest_norm(lower, upper)
    np.testing.assert_allclose(low[0], 1.0, rtol=1e-12)
    np.testing.assert_allclose(high[0], 1.0, rtol=1e-12)
    assert (low[1:] == -np.inf).all()
    assert (high[1:] == np.inf).all()


def test_a_diagonal_without_an_upper_end_does_not_matter_for_the_least_eigenvalue():
    lower, upper = np.eye(2), np.array([[np.inf, 0.5], [0.5, 3.0]])
    assert 0.4999 <= least_eigenvalue(lower, upper) <= 1.0
    assert largest_norm(lower, upper) == np.inf
    assert least_eigenvalue(np.array([[-np.inf, 0.0], [0.0, 1.0]]), np.eye(2)) == -np.inf


def test_batches_of_any_shape_and_large_matrices():
    rng = np.random.default_rng(1)
    low, high = intervals(rng, 4, "plain")
    assert least_eigenvalue(np.tile(low, (2, 3, 1, 1)), high).shape == (2, 3)
    assert largest_norm(np.zeros((0, 4, 4)), np.zeros((0, 4, 4))).shape == (0,)
    assert least_eigenvalue(np.zeros((0, 4, 4)), np.zeros((0, 4, 4))).shape == (0,)

    centre = rng.normal(size=(200, 200)) / 20 + 3 * np.eye(200)
    lower, upper = centre - 1e-4, centre + 1e-4
    assert safe_below(float(least_eigenvalue(lower, upper)), rng, lower, upper)
    assert least_of(centre) - float(least_eigenvalue(lower, upper)) <= 200 * 1e-4 + 1e-9


def test_nearly_singular_members_are_not_called_definite():
    rng = np.random.default_rng(2)
    for n in (2, 4, 8):
        root = rng.normal(size=(50, n, n - 1))
        gram = root @ np.swapaxes(root, 1, 2)  # λ_min = 0, rounding aside
        assert (least_eigenvalue(gram, gram) <= 0).all()
        assert (least_eigenvalue(gram, gram) >= -1e-10 * n).all()
