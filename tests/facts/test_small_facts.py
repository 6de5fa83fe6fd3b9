"""Small facts that constants and proofs lean on: symmetry, gradients, roundings to the safe side, boxes outside."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.facts import Aggregate, OwnHessians, Provenance, aggregates, declared_only, facts_of
from epszero.facts.affine import ConstantJacobian
from epszero.facts.average import _aggregate, _flat_aggregate, _large
from epszero.facts.domains import _apart
from epszero.facts.large import mu_kappa
from epszero.facts.steps import _best_of_two, scaled_rows, spectrum

BOX = ez.sets.Box(-1.0, 1.0, dim=2)


def _facts(field):
    return facts_of(ez.Inclusion(BOX, field), (BOX,), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("size", [1e-120, 1e-3, 0.9, 1.0, 700.0, 1e120])
@pytest.mark.parametrize("off", [0.0, 1e-14, 3e-11, 1e-9, 1e-3, 0.5])
def test_a_matrix_is_symmetric_up_to_rounding_at_every_scale(size, off):
    J = size * np.array([[1.0, 0.3, 0.0], [0.3 + off, 1.0, 0.1], [0.0, 0.1, 3.0]])
    assert ConstantJacobian(J).symmetric == (off < 1e-12)


@pytest.mark.parametrize("scale", [1e-6, 1 / 3, 7.0])
def test_the_largest_eigenvalue_is_rounded_up(scale):
    gram = scale * np.array([[2.0, 1.0], [1.0, 2.0]])
    assert 3 * scale < spectrum(gram) < 3 * scale * (1 + 1e-10)
    assert spectrum(np.zeros((0, 0))) == 0.0


def test_rows_of_a_shared_constraint_are_scaled_to_length_1():
    costs = [lambda x, xi, i=i: x[i] @ x[i] + xi @ x[i] for i in range(2)]
    G = np.array([[3.0, 0.0, 4.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 2.0, 0.0, 0.0]])
    game = ez.Game(costs, [BOX, BOX], shared=(G, np.ones(3)))
    with double():
        lengths, norm = scaled_rows(game.coupling, [np.zeros(2), np.zeros(2)])
    np.testing.assert_allclose(lengths, [5.0, 1.0, 2.0])
    scaled = G / lengths[:, None]
    exact = np.linalg.norm(scaled, 2) ** 2
    assert exact <= norm <= exact * (1 + 1e-9)
    nothing = ez.Game(costs, [BOX, BOX], shared=(np.zeros((1, 4)), np.ones(1)))
    with double():
        assert scaled_rows(nothing.coupling, [np.zeros(2), np.zeros(2)])[1] > 0  # it is divided by


def test_a_minimisation_is_a_gradient_whatever_is_declared():
    least = ez.Minimization(lambda x, xi: x @ x + xi @ x, BOX)
    assert declared_only(least).gradient
    field = ez.VariationalInequality(lambda x, xi: x + xi, BOX)
    assert not declared_only(field).gradient
    assert declared_only(
        ez.VariationalInequality(lambda x, xi: x + xi, BOX, declared=ez.declare(gradient=True))
    ).gradient


def test_one_reason_is_enough_for_constants_to_be_eigenvalues():
    with double():
        assert _facts(lambda x, xi: 2.0 * x + xi).affine_everywhere
        at_corners = _facts(lambda x, xi: (2.0 + xi[0]) * x + xi)
        assert at_corners.jacobian is None
        assert at_corners.affine_everywhere
        assert not _facts(lambda x, xi: x + jnp.tanh(x - xi)).affine_everywhere


def test_a_step_in_the_noise_is_no_step_in_x():
    """sign(ξ) jumps: what is continuous in x alone has no enclosed Jacobian in both."""
    with double():
        stepped = _facts(lambda x, xi: x * (2.0 + jnp.sign(xi[0])) + xi)
        assert stepped._jumps
        assert not stepped.jumps_in_x
        assert not _facts(lambda x, xi: x * (2.0 + jnp.tanh(xi[0])) + xi)._jumps


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_boxes_are_apart_from_a_ball_only_if_they_are(size):
    """A box of half-widths r about c, and a ball of radius 1: apart where the nearest corner is beyond."""
    ball = ez.sets.Ball(size, dim=2)
    centres = size * np.array([[3.0, 0.0], [1.4, 1.4], [1.0, 0.0], [1.3, 0.0], [-2.0, 2.0]])
    reach = size * np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.2], [0.2, 0.2], [0.9, 0.9]])
    with double():
        found = _apart(ball, centres, reach)
    nearest = np.linalg.norm(np.maximum(np.abs(centres) - reach, 0.0), axis=1)
    assert (nearest[found] > size).all()  # never called apart where it is not
    np.testing.assert_array_equal(found, [True, True, False, True, True])


# -- aggregative games on flat sets ------------------------------------------------------------------------------------

ACROSS, ALONG = np.array([[1.0, -3.0], [-3.0, 1.0]]), np.array([[1.0, 3.0], [3.0, 1.0]])  # −2 along (1, 1); (1, −1)


def _flat(sets, own, agents=3):
    game = ez.AggregativeGame(lambda x, average, xi, p: x @ x + x @ average + xi @ x, np.ones(agents), sets)
    with double():
        known = facts_of(game, (BOX,), np.zeros(2), np.zeros((agents, 2)))
        return _flat_aggregate(known, Aggregate(np.stack([own] * agents), np.zeros((agents, 2, 2))))


def test_what_bends_down_across_a_flat_domain_does_not_matter():
    """Between points of simplices entries sum to 0: there ACROSS is 4 times the identity, and ALONG is −2 times."""
    found = _flat(ez.sets.Simplex(dim=2), ACROSS)
    assert found is not None
    assert found.mu == pytest.approx(4.0)
    assert 4.0 <= found.kappa <= 4.0 * (1 + 1e-6)
    assert found.monotone is Provenance.EXACT
    assert found.flat
    assert _flat(ez.sets.Simplex(dim=2), ALONG) is None


def test_sets_that_are_not_flat_are_not_called_so():
    assert _flat(ez.sets.Box(-1.0, 1.0, dim=2), ACROSS) is None


def test_one_agent_whose_set_is_not_flat_is_enough():
    """All but the last are held to x₂ = 0, where the first entry of the matrix counts alone."""
    upper = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    held = np.where(np.arange(3)[:, None] < 3, [1.0, 0.0], 0.0)
    assert _flat(ez.sets.Box(np.zeros((3, 2)), held), ACROSS) is not None
    assert _flat(ez.sets.Box(np.zeros((3, 2)), upper), ACROSS) is None


@pytest.mark.parametrize(("J", "mu"), [([[1.0, 0.3], [0.2, 1.0]], 0.75), ([[3.0, 1.0], [-1.0, 5.0]], 3.0)])
def test_the_least_eigenvalue_of_a_large_matrix_by_its_discs(J, mu):
    """Gershgorin's is exact where all else is equal; ‖J‖ by rows and columns."""
    found, kappa = mu_kappa(np.array(J))
    assert mu * (1 - 1e-9) <= found <= mu
    assert np.linalg.norm(J, 2) <= kappa <= np.linalg.norm(J, 2) * 1.5


def test_a_large_matrix_is_called_a_gradient_only_if_it_is_symmetric():
    for J, symmetric in ((np.array([[2.0, 1.0], [1.0, 2.0]]), True), (np.array([[2.0, 1.0], [-1.0, 2.0]]), False)):
        problem = ez.Inclusion(BOX, lambda x, xi, J=J: J @ x + xi)
        with double():
            B = problem.oracle.average(np.zeros((3, 2)), np.zeros(2))
            found = _large(B, np.zeros(2), declared_only(problem))
        assert found.gradient == symmetric
        assert found.monotone is Provenance.EXACT


@pytest.mark.parametrize(("size", "strong"), [(1.0, True), (0.0, False)])
def test_an_aggregate_that_does_not_bend_is_not_strongly_monotone(size, strong):
    game = ez.AggregativeGame(lambda x, average, xi, p: x @ x + xi @ x, np.ones(3), BOX)
    with double():
        known = facts_of(game, (BOX,), np.zeros(2), np.zeros((3, 2)))
        whole = Aggregate(np.full((3, 2), size), np.zeros((3, 2)))
        found = _aggregate(known, whole, declared_only(game))
    assert found.mu == (pytest.approx(1.0) if strong else None)


@pytest.mark.parametrize("most", [10**6, 0])
def test_entries_of_agents_that_bend_together_are_no_diagonal(most, monkeypatch):
    """Where whole matrices are too many, only what is diagonal is written down."""
    monkeypatch.setattr(aggregates, "WRITTEN", most)
    for off in (0.0, 0.5):
        M = np.array([[1.0, off], [off, 2.0]])
        game = ez.AggregativeGame(lambda x, a, xi, p, M=M: 0.5 * p * x @ M @ x + xi @ x, np.array([1.0, 3.0]), BOX)
        with double():
            found = aggregates.aggregate(game.oracle_of_agents, np.zeros((2, 2)), np.zeros(2))
        if off and not most:
            assert found is None
            continue
        own = found.own[:, :, None] * np.eye(2) if found.diagonal else found.own
        np.testing.assert_allclose(own, np.array([1.0, 3.0])[:, None, None] * M, atol=1e-12)


def test_a_hessian_that_is_singular_up_to_rounding_has_no_inverse():
    """Its least eigenvalue comes out as 1e-15, above 0: that is no strong convexity."""
    A = np.random.default_rng(0).normal(size=(6, 3))
    A = np.column_stack([A, A[:, 0] + A[:, 1]])
    assert OwnHessians([A.T @ A]).inverses is None
    (inverse,) = OwnHessians([np.diag([1.0, 4.0])]).inverses or [np.zeros((2, 2))]
    assert inverse == pytest.approx(np.diag([1.0, 0.25]))
    assert (np.diag(inverse) >= [1.0, 0.25]).all()


@pytest.mark.parametrize("mu", [1e-6, 0.03, 1.0])
def test_the_step_of_two_evaluations_has_the_least_rate(mu):
    step, rate = _best_of_two(mu, 2.0)
    grid = np.linspace(1e-6, 1 - 1e-6, 200_001)
    rates = np.sqrt(1 - 1 / (1 / (2 * grid * mu / 2.0) + 1 / (1 - grid**2)))
    assert rate <= rates.min() * (1 + 1e-12)
    assert rate == pytest.approx(rates.min(), rel=1e-9)
    assert step * 2.0 == pytest.approx(grid[np.argmin(rates)], abs=1e-4)
