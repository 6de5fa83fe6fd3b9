"""What follows from a certified piece, against sums that are done by hand."""

import numpy as np
import pytest

import epszero as ez
from epszero.certificates.sharp import Levels, _above, _Aimed, _factor
from epszero.facts import Region, Unknown

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
H = np.array([[2.0, 0.5], [0.5, 1.0]])
SAMPLES = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (400, 2)), support=BOX)


@pytest.fixture(scope="module")
def sharp():
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ H @ x - xi @ x, ez.sets.Box(-3.0, 3.0, dim=2))
    known = ez.certify(ez.solve(problem, SAMPLES)).sharp
    assert known is not None
    assert not isinstance(known.known, Unknown)
    return known.known


def test_inside_the_box_T_is_the_inverse_and_a_saving_is_half_a_square(sharp):
    np.testing.assert_allclose(sharp.piece.T, -np.linalg.inv(H), atol=1e-12)
    np.testing.assert_allclose(sharp.responses.grams[0], np.linalg.inv(H), atol=1e-12)


def test_a_lower_level_makes_every_line_longer(sharp):
    lines = [
        (sharp.distance(Levels(d, d, d)), sharp.savings(Levels(d, d, d))[0], np.ptp(sharp.intervals(np.eye(2), d)))
        for d in (0.2, 0.02, 0.002)
    ]
    assert (np.diff(lines, axis=0) > 0).all()


def test_the_floor_is_below_the_distance(sharp):
    parts = sharp.parts(Levels(0.02, 0.01, 0.01), 0.05)
    assert 0 < parts["distance, floor"] < sharp.distance(Levels(0.02, 0.01, 0.01))


def test_a_matrix_above_others_is():
    rng = np.random.default_rng(1)
    roots = rng.normal(size=(4, 3, 2))
    grams = roots @ roots.swapaxes(1, 2)
    R = _factor(_above(grams))
    for gram in grams:
        assert np.linalg.eigvalsh(R.T @ R - gram)[0] > -1e-9
    assert _factor(np.zeros((2, 2))).shape == (0, 2)


def test_U_keeps_what_is_far_and_not_what_is_near_or_in_a_direction_it_does_not_bound():
    rows = np.random.default_rng(2).uniform(-1, 1, (300, 2))
    U = _Aimed.at(np.array([[1.0, 0.0]]), np.ones(1), rows, Region.of(BOX, 2), 0.05)
    mean = rows.mean(axis=0)
    kept = U.keeps(np.array([2.0, 1e-3, 2.0]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), mean)
    np.testing.assert_array_equal(kept, [True, False, False])
