"""What follows from a certified piece, against sums that are done by hand."""

import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.certificates.case import Case
from epszero.certificates.piece import piece_of
from epszero.certificates.sharp import Levels, _above, _aim, _Aimed, _factor, certified
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
    kept = U.keeps(np.array([2.0, 1e-3, 0.9, 1.2]), np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), mean)
    np.testing.assert_array_equal(kept, [True, False, False, True])  # the last by the support, where every mean lies


def test_samples_that_were_kept_aside_do_not_make_x_better_than_it_is():
    """x comes from one sample in fifty; what the others say of the law is no claim about x."""
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ H @ x - xi @ x, ez.sets.Box(-3.0, 3.0, dim=2))
    rng, misses = np.random.default_rng(5), 0
    for _ in range(20):
        samples = ez.Samples(rng.uniform(-1, 1, (2000, 2)), support=BOX)
        solution = ez.solve(problem, samples, holdout=0.98)
        certificate = ez.certify(solution)
        assert not isinstance(certificate.sharp.known, Unknown)
        misses += np.linalg.norm(solution.x) > certificate.distance
    assert misses <= 2


def _with_pilot(rest):
    """What is aimed at by a pilot that lies on another piece than all samples, and what is certified with it."""
    pilot = np.random.default_rng(6).uniform([0.3, -0.1], [0.5, 0.1], (40, 2))
    rows, C = np.vstack([pilot, rest]), -np.eye(2)
    problem = ez.Inclusion(ez.sets.Box(-0.2, 0.2, dim=2), lambda x, xi: x - xi)
    solution = ez.solve(problem, ez.Samples(rows, support=BOX))
    assert abs(solution.x[0]) < 0.2
    with double():
        case = Case.of(solution)
        aim = _aim(case, piece_of(case, C), pilot, rows.mean(axis=0), C)
        return pilot.mean(axis=0), aim, certified(case, rows, Region.of(BOX, 2), C, 0.01)


def test_a_pilot_on_another_piece_aims_by_its_own():
    """There x₁ is held by the bound 0.2, with a multiplier near 0.4 − 0.2; what follows has no say in it."""
    rng = np.random.default_rng(7)
    mean, first, known = _with_pilot(rng.uniform(-0.2, 0.2, (360, 2)))
    _, second, _ = _with_pilot(rng.uniform(-0.3, 0.2, (360, 2)))
    np.testing.assert_allclose(first.margins, second.margins, atol=1e-12)
    np.testing.assert_allclose(first.sensitivities, second.sensitivities, atol=1e-12)
    assert np.abs(first.margins - (mean[0] - 0.2)).min() < 1e-12
    assert not isinstance(known, Unknown)  # the pilot aims, and the other samples decide
