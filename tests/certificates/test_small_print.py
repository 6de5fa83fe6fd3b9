"""What a certificate leans on, and what records may hold: small conditions that words and verdicts depend on."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.certificates import CertifiedPiece, HoldOut, MeanDeviation, reading
from epszero.certificates._base import INDEPENDENT
from epszero.certificates.agreement import _alike
from epszero.certificates.case import MONOTONE, Case
from epszero.certificates.encoding import _set
from epszero.certificates.hold_out import FRESH
from epszero.certificates.piece import may_have_pieces, piece_of
from epszero.facts import Unknown

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
ROWS = np.random.default_rng(0).uniform(-1, 1, (120, 2))
SAMPLES = ez.Samples(ROWS, support=BOX)


def test_a_resolvent_of_ones_own_is_leant_on():
    """A part of A that is no set or function of the library is taken to be monotone by the user's word."""

    class Clipped:
        def resolvent(self, v, step):
            return jnp.clip(v, -1.0, 1.0)

    problem = ez.Inclusion(Clipped(), lambda x, xi: x + xi)
    certificate = ez.certify(ez.solve(problem, SAMPLES, x0=np.zeros(2)), using=MeanDeviation())
    assert MONOTONE in {one.what for one in certificate.leans_on}
    assert certificate.verdict.name == "CONDITIONAL"
    own = ez.certify(ez.solve(ez.Inclusion(BOX, lambda x, xi: x + xi), SAMPLES), using=MeanDeviation())
    assert MONOTONE not in {one.what for one in own.leans_on}


def test_fresh_samples_say_it_once_and_where_they_were_drawn():
    problem = ez.Inclusion(BOX, lambda x, xi: x + xi)
    solution = ez.solve(problem, SAMPLES)
    given = ez.Samples(np.random.default_rng(1).uniform(-1, 1, (50, 2)), support=BOX)
    by_word = ez.certify(solution, using=HoldOut(samples=given)).leans_on
    assert FRESH in by_word
    assert INDEPENDENT not in by_word  # that is part of being fresh
    drawn = ez.Samples(np.random.default_rng(2).uniform(-1, 1, (500, 2)), support=BOX).take(50, seed=1)
    said = [one.evidence for one in ez.certify(solution, using=HoldOut(samples=drawn)).leans_on]
    assert any("drawn at random from 500 rows" in one for one in said)


# -- shared constraints ------------------------------------------------------------------------------------------------

SHARED = (np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]]), np.array([-0.5, 3.0]))


def _duel():
    costs = [lambda x, xi, i=i: 0.5 * x[i] @ x[i] + 0.3 * x[0] @ x[1] + 0.2 * xi @ x[i] for i in range(2)]
    return ez.Game(costs, [BOX, BOX], shared=SHARED)


@pytest.mark.long
def test_a_game_with_shared_constraints_has_a_piece_with_their_slacks_and_prices():
    """The first is leant on, by a price; the second has room, which is its slack."""
    solution = ez.solve(_duel(), SAMPLES, tol=1e-12)
    with double():
        case = Case.of(solution)
        assert may_have_pieces(case)
        found = piece_of(case, case.noise_map(case.collapsed(case.samples))[0])
    assert not isinstance(found, Unknown)
    x = np.concatenate(solution.x)
    assert SHARED[0][0] @ x == pytest.approx(-0.5, abs=1e-9)
    assert found.prices[0] > 0.1
    assert found.prices[1] == 0.0
    room = 3.0 - SHARED[0][1] @ x
    assert np.isclose(found.margins, room, atol=1e-9).any()
    assert (found.margins > 0).all()
    assert isinstance(ez.certify(solution).using, CertifiedPiece)


# -- records -----------------------------------------------------------------------------------------------------------


def test_numbers_may_differ_by_as_much_as_their_neighbours_do():
    """Those that were computed from numbers nudged by a few units in the last place."""
    honest, nearby = {"a": [1.0, 2.0]}, {"a": [1.0 + 1e-5, 2.0]}
    assert _alike({"a": [1.0 + 1e-5, 2.0]}, honest, [nearby])
    assert not _alike({"a": [1.0 + 1e-5, 2.0]}, honest, [])
    assert not _alike({"a": [1.0 + 1e-5, 2.0]}, honest, [{"b": [1.0 + 1e-5, 2.0]}])
    assert not _alike({"a": [1.0, 2.0 + 1e-5]}, honest, [nearby])
    assert not _alike({"a": [1.0 + 1e-3, 2.0]}, honest, [nearby])
    assert not _alike({"a": [1.0]}, honest, [nearby])


@pytest.mark.parametrize("name", ["annotations", "Nothing", "np", "__name__"])
def test_a_record_speaks_of_sets_only(name):
    with pytest.raises(ez.InputError, match="not in ez.sets"):
        _set(name, {})


def test_a_set_of_a_record_is_made_of_its_attributes():
    box = _set("Box", {"lower": np.zeros(2), "upper": np.ones(2)})
    assert isinstance(box, ez.sets.Box)
    np.testing.assert_array_equal(box.upper, 1.0)


def test_what_is_nested_too_deeply_is_damaged():
    tree: object = 1
    for _ in range(3):
        tree = [tree]
    reading._shallow("here", tree, 4)
    with pytest.raises(ez.InputError, match="too deeply"):
        reading._shallow("here", tree, 3)
    with pytest.raises(ez.InputError, match="too deeply"):
        reading._shallow("here", {"a": {"b": 1}}, 2)
