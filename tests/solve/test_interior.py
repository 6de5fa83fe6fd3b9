"""The interior-point method of affine problems, against projections, and where there is nothing to be found."""

import numpy as np
import pytest
import scipy.sparse as sp

from epszero.solve.interior import GOOD, Interior

RNG = np.random.default_rng(7)


def none(n):
    return sp.csr_matrix((0, n)), np.zeros(0)


def box(low, high):
    n = len(low)
    return sp.csr_matrix(np.vstack([np.eye(n), -np.eye(n)])), np.concatenate([high, -low])


def monotone(n, condition, turning):
    root = np.linalg.qr(RNG.normal(size=(n, n)))[0]
    skew = RNG.normal(size=(n, n))
    return root @ np.diag(np.logspace(0, -np.log10(condition), n)) @ root.T + turning * (skew - skew.T)


@pytest.mark.parametrize("turning", [0.0, 0.3], ids=["symmetric", "turning"])
@pytest.mark.parametrize("condition", [1e1, 1e8])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6], ids="{:g}".format)
def test_boxes_whatever_the_condition_and_the_units(condition, turning, size):
    n = 40
    H, q = monotone(n, condition, turning), RNG.normal(size=n)
    low, high = -RNG.uniform(0.5, 1, n), RNG.uniform(0.5, 1, n)
    found = Interior(size * H, box(low, high), none(n)).solution(size * q)
    np.testing.assert_allclose(np.clip(found - (H @ found + q), low, high), found, atol=1e-5)


def test_the_orthant_has_no_size_of_its_own():
    H, q = monotone(20, 10, 0.2), 1e5 * RNG.normal(size=20)
    found = Interior(H, (-sp.eye(20, format="csr"), np.zeros(20)), none(20)).solution(q)
    np.testing.assert_allclose(np.maximum(found - (H @ found + q), 0.0), found, atol=1e-5 * 1e5)


def test_equations_that_depend_on_each_other_and_auxiliary_variables():
    """|x₁| + |x₂| + |x₃| ≤ 1 by auxiliary bounds, and Σx = 0.5 said twice."""
    eye, none_of = np.eye(3), np.zeros((1, 3))
    G = np.vstack([np.hstack([eye, -eye]), np.hstack([-eye, -eye]), np.hstack([none_of, np.ones((1, 3))])])
    E = np.array([[1.0, 1, 1, 0, 0, 0], [2.0, 2, 2, 0, 0, 0]])
    found = Interior(
        np.eye(3), (sp.csr_matrix(G), np.array([0.0] * 6 + [1.0])), (sp.csr_matrix(E), np.array([0.5, 1.0]))
    )
    x = found.solution(-np.array([2.0, 0.0, -3.0]))[:3]
    np.testing.assert_allclose(x, [0.75, 0.0, -0.25], atol=1e-6)


def test_nothing_is_handed_out_where_there_is_no_point_or_no_solution():
    n = 2
    empty = sp.csr_matrix(np.array([[1.0, 0.0], [-1.0, 0.0]])), np.array([-1.0, -1.0])
    assert Interior(np.eye(n), empty, none(n)).solution(np.zeros(n)) is None
    falling = -sp.eye(n, format="csr"), np.zeros(n)
    assert Interior(np.zeros((n, n)), falling, none(n)).solution(-np.ones(n)) is None


def test_what_is_handed_out_is_good():
    """Also where multipliers vanish: the worst case for a method that stays away from bounds."""
    n = 30
    H = monotone(n, 10, 0.3)
    x = np.where(np.arange(n) % 2 == 0, 1.0, RNG.uniform(-0.5, 0.5, n))
    found = Interior(H, box(-np.ones(n), np.ones(n)), none(n)).solution(-H @ x)
    assert np.abs(found - x).max() <= np.sqrt(GOOD)
