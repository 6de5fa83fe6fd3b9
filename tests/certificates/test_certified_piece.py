"""The kind `CertifiedPiece`: when it is chosen, how it spends δ, and its records."""

import json

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import CertifiedPiece, MeanDeviation
from epszero.certificates.certified_piece import LINES
from epszero.facts import Unknown

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
PROBLEM = ez.Inclusion(BOX, lambda x, xi: x + np.array([2.0, 0.1]) - xi)
SAMPLES = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (400, 2)), support=BOX)


@pytest.fixture(scope="module")
def solution():
    return ez.solve(PROBLEM, SAMPLES)


def test_it_is_the_usual_one_and_sharper_than_the_residual_alone(solution):
    certificate, alone = ez.certify(solution), ez.certify(solution, using=MeanDeviation())
    assert isinstance(certificate.using, CertifiedPiece)
    assert certificate.distance < alone.distance
    assert alone.epsilon < certificate.epsilon <= 1.12 * alone.epsilon  # the price of the split


@pytest.mark.some(4)
@pytest.mark.parametrize("entries", [1, 12])  # by betting, and by empirical Bernstein
@pytest.mark.parametrize("wide", [1.0, 7.0, 1e4])  # the support: the wider, the more the range rules
@pytest.mark.parametrize("delta", [1e-4, 0.05, 0.2, 0.6])
@pytest.mark.parametrize("count", [2, 20, 200])
def test_the_residual_is_at_most_twelve_per_cent_looser_than_without_a_split(count, delta, wide, entries):
    values = np.random.default_rng(3).uniform(-1, 1, (count, entries))
    samples = ez.Samples(values, support=ez.sets.Box(-1.0, wide, dim=entries))
    problem = ez.Inclusion(ez.sets.Box(-1.0, 1.0, dim=entries), lambda x, xi: x + xi)
    solution = ez.solve(problem, samples)
    whole, alone = ez.certify(solution, delta), ez.certify(solution, delta, MeanDeviation())
    assert isinstance(whole.using, CertifiedPiece)
    assert alone.epsilon <= whole.epsilon <= 1.12 * alone.epsilon


@pytest.mark.parametrize("costs", [True, False])
@pytest.mark.parametrize("delta", [1e-12, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("of", [None, *LINES])
def test_shares_of_delta_add_up_to_no_more_than_all_of_it(of, costs, delta):
    for samples in (2, 19, 20, 3000):
        shares = CertifiedPiece(of).shares(costs, delta, samples)
        assert all(share >= 0 for share in shares.values())
        assert sum(shares.values()) == pytest.approx(1.0, abs=1e-12)


def test_one_line_alone_is_shorter(solution):
    assert ez.certify(solution, of="distance").distance < ez.certify(solution).distance
    alone = ez.certify(solution, of="intervals").intervals
    assert (alone.width < ez.certify(solution).intervals.width)[1]  # the other entry is held, and its width is 0


@pytest.mark.parametrize("of", [None, *LINES])
def test_records_hold_up_whatever_line_was_asked_for(solution, of):
    certificate = ez.certify(solution, of=of)
    assert ez.verify(certificate.to_json(), PROBLEM, SAMPLES)


@pytest.mark.parametrize("line", ["distance", "relative_distance", "epsilon"])
def test_a_forged_line_does_not(solution, line):
    record = json.loads(ez.certify(solution).to_json())
    record[line] *= 0.9
    assert not ez.verify(json.dumps(record), PROBLEM, SAMPLES)


@pytest.mark.long
def test_a_set_that_is_no_polyhedron_falls_back():
    costs = [lambda x, xi, i=i: 0.5 * x[i] @ x[i] + 0.3 * x[0] @ x[1] + xi @ x[i] for i in range(2)]
    game = ez.Game(costs, [BOX, ez.sets.Ball(1.0, dim=2)])
    solution = ez.solve(game, SAMPLES)
    certificate = ez.certify(solution)
    assert isinstance(certificate.using, MeanDeviation)
    with pytest.raises(ez.InputError, match="certified piece"):
        _ = certificate.intervals
    assert "polyhedral" in ez.certify(solution, using=CertifiedPiece()).reason


def test_few_samples_say_why_there_is_no_piece():
    certificate = ez.certify(ez.solve(PROBLEM, SAMPLES[:19]))
    assert certificate.sharp is not None
    assert isinstance(certificate.sharp.known, Unknown)
    assert "too few" in certificate.notes["distance"]
    with pytest.raises(ez.InputError, match="too few"):
        _ = certificate.intervals


@pytest.mark.long
def test_many_certificates_are_the_same_as_one_by_one():
    rows = np.random.default_rng(1).uniform(-1, 1, (3, 100, 2))
    solutions = ez.solve_many(PROBLEM, [ez.Samples(one, support=BOX) for one in rows])
    for one, other in zip(ez.certify_many(solutions), map(ez.certify, solutions), strict=True):
        assert (one.distance, one.epsilon) == (other.distance, other.epsilon)
