"""Bounds on a certified piece against sums done by hand, with balls and intervals that are known."""

import math
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest
import scipy.linalg

import epszero as ez
from epszero._double import double
from epszero.certificates import CertifiedPiece, Hoeffding, MeanBound, MeanDeviation, MeanSet, Tightest, sharp
from epszero.certificates import piece as pieces
from epszero.certificates.agents import Curvatures
from epszero.certificates.case import Case
from epszero.certificates.faces import faces_of
from epszero.certificates.mean.median_of_means import _rare
from epszero.certificates.sharp import Levels, Sharp, _above, _factor
from epszero.facts import Aggregate, Unknown

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
DELTA, LEVELS = 0.05, Levels(0.02, 0.01, 0.004)
SAMPLES = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (400, 2)), support=BOX)
BENDS, NOISE = np.array([1.0, 3.0]), np.array([[[1.0, 0.2], [0.0, 1.0]], [[0.5, 0.0], [-0.3, 0.1]]])


def _game(held: float = 9.0):
    """Two agents with two entries each, whose costs are ½b‖x_i‖² + 0.2x₁ᵀx₂ + (C_iξ)ᵀx_i."""
    costs = [
        lambda x, xi, i=i: 0.5 * BENDS[i] * x[i] @ x[i] + 0.2 * x[0] @ x[1] + (NOISE[i] @ xi) @ x[i] for i in range(2)
    ]
    return ez.Game(costs, [ez.sets.Box(-held, held, dim=2)] * 2)


@pytest.fixture(scope="module")
def solution():
    return ez.solve(_game(), SAMPLES)


@pytest.fixture
def known(solution) -> Sharp:
    """Afresh: what is worked out once would outlive a bound that a test puts in place."""
    found = ez.certify(solution).sharp
    assert found is not None
    assert isinstance(found.known, Sharp)
    return replace(found.known)


@dataclass(frozen=True)
class Ball(MeanBound):
    """A ball about the mean, moved a little: its radius is 1/δ, so that the level can be read off."""

    title = "a ball"
    needs_region = True
    off: float = 0.0

    def around(self, X, region, delta):
        centre = X.mean(axis=-2)
        return MeanSet(centre + self.off, np.full(X.shape[:-2], 1 / delta))


@pytest.fixture(params=[0.0, 0.7])
def balls(request, monkeypatch):
    monkeypatch.setattr(sharp, "Swift", lambda: Ball(request.param))
    monkeypatch.setattr(sharp, "Betting", lambda: Ball(0.0))
    return request.param


@pytest.mark.long
def test_the_matrices_of_two_agents(known):
    """Nothing is held: T is the inverse of all, and an agent responds by the inverse of its own."""
    H = np.kron(np.diag(BENDS), np.eye(2)) + 0.2 * np.kron([[0.0, 1.0], [1.0, 0.0]], np.eye(2))
    np.testing.assert_allclose(known.piece.T, np.linalg.solve(H, np.vstack(NOISE)), atol=1e-12)
    for gram, C, bend in zip(known.responses.grams, NOISE, BENDS, strict=True):
        np.testing.assert_allclose(gram, C.T @ C / bend, atol=1e-12)


def test_a_distance_is_the_radius_and_what_the_ball_is_off(known, balls):
    """With an event of its own: ‖T(m − m̂)‖ over the ball of T."""
    T = known.roots.T
    np.testing.assert_allclose(T.T @ T, known.piece.T.T @ known.piece.T, atol=1e-12)
    off = np.linalg.norm(np.full(len(T), balls)) + np.linalg.norm(known.piece.start)
    assert known.distance(Levels(0.1, 0.0, 0.0)) == pytest.approx(10.0 + off, rel=1e-9)


def test_savings_are_the_largest_over_the_ball(known, balls):
    """½(√(dᵀG_id) + fixed)² over ‖Rd − off‖ ≤ radius, by an eigenvalue; with an event of their own."""
    R = _factor(_above(known.responses.grams))
    found = known.savings(Levels(0.0, 0.1, 0.0))
    away = np.linalg.solve(R, np.full(len(R), balls))
    for saving, gram, fixed in zip(found, known.responses.grams, known.responses.fixed, strict=True):
        most = math.sqrt(scipy.linalg.eigh(gram, R.T @ R, eigvals_only=True)[-1])
        whole = math.sqrt(away @ gram @ away) + 10.0 * most + fixed
        assert saving == pytest.approx(whole**2 / 2, rel=1e-6)
    assert found[0] > 1.5 * found[1]  # else the order of the agents could be any


@pytest.mark.long
def test_the_largest_of_three_eigenvalues_counts(monkeypatch):
    """Three features, of which an agent's costs bend with each by another amount."""
    cube = ez.sets.Box(-1.0, 1.0, dim=3)
    costs = [
        lambda x, xi, i=i: 0.5 * x[i] @ x[i] + (np.array([[1.0, 1.5, 3.0], [2.0, 2.0, 0.5]])[i] * xi) @ x[i]
        for i in range(2)
    ]
    samples = ez.Samples(np.random.default_rng(1).uniform(-1, 1, (400, 3)), support=cube)
    found = ez.certify(ez.solve(ez.Game(costs, [ez.sets.Box(-999.0, 999.0, dim=3)] * 2), samples)).sharp
    assert found is not None
    assert isinstance(found.known, Sharp)
    monkeypatch.setattr(sharp, "Swift", Ball)
    R, gram = _factor(_above(found.known.responses.grams)), found.known.responses.grams[0]
    values = scipy.linalg.eigh(gram, R.T @ R, eigvals_only=True)
    assert values[-1] > 1.5 * values[1]
    assert found.known.savings(Levels(0.0, 0.1, 0.0))[0] == pytest.approx(100.0 * values[-1] / 2, rel=1e-6)


def test_one_event_may_serve_distance_and_savings(known, balls):
    """At the sum of their levels, through a map above both."""
    R = known.roots.joint
    assert R is not None
    for root in (known.roots.T, known.roots.grams):
        unit = root / np.linalg.norm(root, 2)
        assert np.linalg.eigvalsh(R.T @ R - unit.T @ unit)[0] > -1e-9
    away = np.linalg.solve(R, np.full(len(R), balls))
    T = known.roots.T
    most = np.linalg.norm(T @ np.linalg.inv(R), 2)
    by_hand = 10.0 * most + np.linalg.norm(T @ away) + np.linalg.norm(known.piece.start)
    assert known.distance(Levels(0.06, 0.04, 0.0)) == pytest.approx(by_hand, rel=1e-6)
    G = known.responses.grams[0]
    most = math.sqrt(scipy.linalg.eigh(G, R.T @ R, eigvals_only=True)[-1])
    whole = math.sqrt(away @ G @ away) + 10.0 * most + known.responses.fixed[0]
    assert known.savings(Levels(0.06, 0.04, 0.0))[0] == pytest.approx(whole**2 / 2, rel=1e-6)


def test_an_agent_whose_face_is_not_firm_may_save_anything(known, balls):
    some = replace(known, certified=np.array([True, False])).savings(LEVELS)
    np.testing.assert_allclose(some, [known.savings(LEVELS)[0], np.inf])


def test_what_the_width_of_a_distance_is_made_of(known):
    T, s = known.piece.T, 400
    parts = known.parts(LEVELS, DELTA)
    mean = SAMPLES.values.mean(axis=0)
    variance = np.trace(T @ np.cov(SAMPLES.values.T, bias=True) @ T.T)
    by_variance = math.sqrt(2 * math.log(2 / DELTA) * variance / s)
    corners = np.array(list(product([-1.0, 1.0], repeat=2)))
    far = np.linalg.norm((corners - mean) @ T.T, axis=1).max()
    whole = known._reach(known._event(LEVELS, "T", 0.0)[0], DELTA)
    assert parts["distance by variance"] == pytest.approx(by_variance)
    assert parts["distance by range"] == pytest.approx(whole - by_variance)
    assert parts["distance by the split of delta"] == pytest.approx(known.distance(LEVELS) - whole)
    assert parts["distance, floor"] == pytest.approx(math.log(1 / DELTA) / s * far)


def test_intervals_are_the_range_of_each_row_times_the_radius_at_its_share_of_delta(known, balls):
    """ℓᵀT(ξ − lower) over its range is scaled to [0, 1]; two rows of three move, and share δ."""
    L = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, -2.0, 0.5, 0.0]])
    low, high = known.intervals(L, 0.1)
    rows = L @ known.piece.T
    at = L @ (known.x + known.piece.start)
    reach = 2 * np.abs(rows).sum(axis=1)  # of the support [−1, 1]²
    radius = reach * 2 / 0.1  # two of the rows share δ
    np.testing.assert_allclose(low, at - radius, atol=1e-9)
    np.testing.assert_allclose(high, at + radius, atol=1e-9)


def test_a_matrix_above_two_is_no_larger_than_it_must_be():
    above = _above(np.stack([np.diag([1.0, 4.0]), np.diag([3.0, 2.0])]))
    np.testing.assert_allclose(above, np.diag([3.0, 4.0]), rtol=1e-8)


def test_a_factor_of_a_singular_matrix_has_an_inverse():
    K = np.diag([0.0, 4.0])
    R = _factor(K)
    assert R.shape == (2, 2)
    assert np.linalg.eigvalsh(R.T @ R)[0] > 0
    np.testing.assert_allclose(R.T @ R, K, atol=1e-10)


# -- the piece ---------------------------------------------------------------------------------------------------------


@pytest.mark.some(2)
@pytest.mark.parametrize("missed", [0.0, 0.03])
def test_what_a_point_misses_of_its_faces_is_returned_by_blocks_as_by_the_whole(missed):
    """The way back to the face of the constraints, which the rest then follows."""
    costs = np.linspace(0.5, 2.0, 5)
    game = ez.AggregativeGame(
        lambda x, average, xi, p: 0.5 * p * x @ x + 0.4 * x @ average + (xi - np.array([0.9, 0.0])) @ x,
        costs,
        ez.sets.BoxBudget(0.0, 1.0, at_least=0.5, dim=2),
    )
    solution = ez.solve(game, SAMPLES[:50], tol=1e-12)
    with double():
        case = Case.of(solution)
        blocks = faces_of(case)
        assert not isinstance(blocks, Unknown)
        assert case.jacobian is not None
        whole = pieces._Whole(case.jacobian.jacobian, blocks, None, np.zeros((10, 1)))
    weights = costs[:, None] * np.ones(2) + 0.4 / 5
    separate = pieces._Separate(Aggregate(weights, np.full((5, 2), 0.4)), blocks, np.zeros((10, 1)))
    beta = missed * np.arange(1, len(whole.N) + 1)
    moved = whole.returned(beta)
    np.testing.assert_allclose(separate.returned(beta), moved, atol=1e-12)
    np.testing.assert_allclose(whole.N @ moved, beta, atol=1e-12)
    free = whole.Z.T @ whole.times(moved[:, None])[:, 0]
    np.testing.assert_allclose(free, 0.0, atol=1e-12)  # along the face nothing pushes
    assert (np.abs(moved).max() > 0) == bool(missed)
    assert len(whole.N) > 0


# -- how δ is spent ----------------------------------------------------------------------------------------------------


def test_where_there_are_costs_a_share_is_kept_for_savings():
    with_costs, without = (CertifiedPiece().shares(costs, 0.05, 100) for costs in (True, False))
    assert with_costs["exploitability"] > 0 == without["exploitability"]
    assert without["distance"] == pytest.approx(with_costs["distance"] + with_costs["exploitability"])


def test_savings_on_a_face_that_is_not_firm_fall_back(solution, monkeypatch):
    monkeypatch.setattr(Sharp, "savings", lambda self, levels: np.array([0.0, np.inf]))
    found = ez.certify(solution)
    monkeypatch.setattr(Sharp, "savings", lambda self, levels: None)
    usual = ez.certify(solution)
    assert found.exploitability[0] == 0.0 < usual.exploitability[0]
    assert found.exploitability[1] == usual.exploitability[1] < np.inf
    assert found.total_exploitability == pytest.approx(found.exploitability.sum())


def test_a_kind_whose_share_is_nothing_does_not_stop_the_others(solution):
    """The first share is lost to the range of float64."""
    found = ez.certify(solution, 1e-300, Tightest([MeanDeviation(Hoeffding())] * 2, weights=[1e-90, 1.0]))
    assert found.epsilon == ez.certify(solution, 1e-300, MeanDeviation(Hoeffding())).epsilon < np.inf


# -- small things that bounds are made of ------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-290, 1e-305])
def test_a_rare_event_at_levels_that_no_quantile_reaches(delta):
    """P(Bin(k, p) ≥ a) ≤ C(k, a)pᵃ = δ, but for what p is moved inward."""
    blocks, shares, rare = _rare(True, delta)
    for k, share, p in zip(blocks[::50], shares[::50], rare[::50], strict=True):
        a = math.ceil(share * k - 1e-9)
        log = math.log(math.comb(int(k), a)) + a * math.log(p)
        assert math.log(delta) - 1e-3 * a < log <= math.log(delta)


@pytest.mark.parametrize("places", [[[0, 1], [2, 3]], [[0], [1, 2, 3]]])
def test_lengths_where_one_number_is_known_of_all_agents(places):
    e = np.array([3.0, 4.0, 1.0, 2.0])
    where = [np.array(own) for own in places]
    known = Curvatures(where, np.array(0.25), "", (), "")
    np.testing.assert_allclose(known.lengths(e), [0.5 * np.linalg.norm(e[own]) for own in where])
    np.testing.assert_allclose(known.steepest, 0.5)
