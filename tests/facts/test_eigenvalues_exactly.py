"""Eigenvalues, norms and steps against what NumPy or a grid says: right to many digits, not only on the safe side."""

import itertools
import math

import numpy as np
import pytest

import epszero as ez
from epszero.facts import AverageFacts, Gram, largest
from epszero.facts.affine import ConstantJacobian
from epszero.facts.gram import largest_on_box, power_near
from epszero.facts.interval_matrices import largest_norm, least_eigenvalue
from epszero.facts.large import mu_kappa
from epszero.facts.low_rank import BlocksAndLowRank, aggregative_mu_kappa
from epszero.facts.provenance import Provenance
from epszero.facts.steps import lipschitz_range, scaled_rows, step_range
from epszero.problems.shared import AffineConstraint


def symmetric(rng, *shape):
    A = rng.normal(size=shape)
    return (A + np.swapaxes(A, -1, -2)) / 2


# -- one constant Jacobian ---------------------------------------------------------------------------------------------

MATRICES = {
    "plain": np.array([[2.0, 0.7, 0.0], [-0.3, 1.1, 0.4], [0.1, 0.0, 0.6]]),
    "symmetric": np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 0.7]]),
    "not monotone": np.array([[1.0, 3.0], [1.0, 1.0]]),
    "of rank one": np.array([[1.0, 1.0], [1.0, 1.0]]),
    "a turn": np.array([[0.0, 1.0], [-1.0, 0.0]]),
    "small": 1e-9 * np.array([[2.0, 0.7], [-0.3, 1.1]]),
    "large": 1e9 * np.array([[2.0, 0.7], [-0.3, 1.1]]),
}
CIRCLE = np.stack([np.cos(np.linspace(0, np.pi, 200_001)), np.sin(np.linspace(0, np.pi, 200_001))])


@pytest.mark.parametrize("name", MATRICES)
def test_constants_of_one_jacobian(name):
    J = MATRICES[name]
    found, size = ConstantJacobian(J), float(np.abs(J).max())
    values = np.linalg.eigvalsh((J + J.T) / 2)
    assert found.mu <= values[0]
    assert found.mu == pytest.approx(values[0], abs=1e-12 * size)
    assert found.kappa >= np.linalg.norm(J, 2)
    assert found.kappa == pytest.approx(np.linalg.norm(J, 2), rel=1e-12)
    assert found.monotone is bool(values[0] >= -1e-14 * size)
    assert found.symmetric is bool(np.abs(J - J.T).max() == 0)
    np.testing.assert_allclose(found.spectrum[0], values, atol=1e-12 * size)
    if len(J) == 2:
        images = J @ CIRCLE
        squares = np.sum(images**2, axis=0)
        along = np.sum(images * CIRCLE, axis=0)
        shares = along[squares > 1e-9 * size**2] / squares[squares > 1e-9 * size**2]
        if shares.min() * size <= 1e-9:
            assert found.theta is None
        else:
            assert found.theta <= shares.min() * (1 + 1e-9)
            assert found.theta == pytest.approx(shares.min(), rel=1e-6)
    if values[0] <= 1e-14 * size:
        assert found.contraction is None
        return
    assert found.contraction is not None
    step, q = found.contraction
    norms = [np.linalg.norm(np.eye(len(J)) - g * J, 2) for g in np.linspace(0, 3 / np.linalg.norm(J, 2), 5001)]
    assert q == pytest.approx(np.linalg.norm(np.eye(len(J)) - step * J, 2), rel=1e-9)
    assert q == pytest.approx(min(norms), abs=1e-3)
    nu, weights = found.multipliers
    assert nu.min() > 1 / values[0]
    for one, weight in zip(nu, weights, strict=True):
        exact = np.linalg.eigvalsh(one * (J + J.T) / 2 - np.eye(len(J)))
        np.testing.assert_allclose(np.sort(1 / weight), exact, rtol=1e-6)
    C = np.random.default_rng(0).normal(size=(len(J), 2))
    direct = [C.T @ np.linalg.inv(one * (J + J.T) / 2 - np.eye(len(J))) @ C for one in nu]
    np.testing.assert_allclose(found.weighted(C), direct, rtol=1e-6)


def test_cocoercivity_is_told_from_what_is_not():
    for seed in range(6):
        J = np.random.default_rng(seed).normal(size=(2, 2)) + 2 * np.eye(2)
        images = J @ CIRCLE
        theta = float(np.min(np.sum(images * CIRCLE, axis=0) / np.sum(images**2, axis=0)))
        if theta > 0:
            assert ConstantJacobian(J).cocoercive(theta * (1 - 1e-6))
            assert not ConstantJacobian(J).cocoercive(theta * (1 + 1e-6))


def test_what_a_jacobian_may_be_off_by_is_taken_off():
    J = MATRICES["plain"]
    assert ConstantJacobian(J, noise=0.05).mu == pytest.approx(ConstantJacobian(J).mu - 0.05)


def test_eigenvalues_of_a_large_jacobian():
    rng = np.random.default_rng(1)
    dominant = np.diag(rng.uniform(5, 9, size=30)) + 0.1 * rng.normal(size=(30, 30))
    bent = 0.3 * rng.normal(size=(30, 30))
    plain = bent @ bent.T + 0.5 * np.eye(30) + 0.2 * (bent - bent.T)
    for J in (dominant, plain, plain - 0.6 * np.eye(30), np.ones((5, 5)), -np.eye(4)):
        mu, kappa = mu_kappa(J)
        least = np.linalg.eigvalsh((J + J.T) / 2)[0]
        assert mu <= least + 1e-12
        assert kappa >= np.linalg.norm(J, 2)
        assert kappa == pytest.approx(math.sqrt(np.abs(J).sum(axis=0).max() * np.abs(J).sum(axis=1).max()), rel=1e-9)
    S = (dominant + dominant.T) / 2
    discs = [S[i, i] - sum(abs(S[i, j]) for j in range(30) if j != i) for i in range(30)]
    assert mu_kappa(dominant)[0] == pytest.approx(min(discs), rel=1e-9)
    least, diagonal = np.linalg.eigvalsh((plain + plain.T) / 2)[0], np.diag(plain).min()
    shares = [share for share in (1.0, 0.5, 0.1, 1e-2, 1e-3, 1e-4) if share * diagonal < least]
    assert mu_kappa(plain)[0] == pytest.approx(shares[0] * diagonal, rel=1e-9)
    assert mu_kappa(np.ones((5, 5)))[0] == 0.0
    assert mu_kappa(-np.eye(4))[0] == -math.inf
    assert mu_kappa(np.array([[1.0, 2.0], [2.0, 1.0]]))[0] == -math.inf


# -- blocks and a low rank ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7, 3), (1, 5), (90, 3), (250, 1), (40, 8)])
@pytest.mark.parametrize("k", [0, 1, 2, 4])
@pytest.mark.parametrize("seed", range(3))
def test_extreme_eigenvalues_of_blocks_and_a_low_rank(shape, k, seed):
    N, n = shape
    rng = np.random.default_rng([seed, N, k])
    blocks, U, M = symmetric(rng, N, n, n), rng.normal(size=(N, n, k)) / math.sqrt(N), symmetric(rng, k, k)
    if seed == 1:
        M = M @ M  # no negative sign
    if seed == 2:
        M = -M @ M
    S = np.zeros((N * n, N * n))
    for i in range(N):
        S[i * n : (i + 1) * n, i * n : (i + 1) * n] = blocks[i]
    rows = U.reshape(N * n, k)
    S += rows @ M @ rows.T
    values = np.linalg.eigvalsh(S)
    spread = values[-1] - values[0]
    found = BlocksAndLowRank(blocks, U, M)
    assert values[0] - 2e-8 * spread <= found.least() <= values[0] + 1e-13 * spread
    assert values[-1] - 1e-13 * spread <= found.largest() <= values[-1] + 2e-8 * spread
    off = BlocksAndLowRank(blocks, U, M, slack=0.1)
    assert values[0] - 0.5 <= off.least() <= values[0] - 0.1  # what it may be off by is not looked for
    x = found.lowest_vector().ravel()
    assert np.linalg.norm(x) == pytest.approx(1)
    assert x @ S @ x == pytest.approx(values[0], abs=1e-6 * spread)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("N", "n"), [(5, 3), (120, 2), (75, 3)])
@pytest.mark.parametrize("unit", [1.0, 1e-120, 1e130])
def test_constants_of_an_aggregative_game(N, n, diagonal, unit):
    rng = np.random.default_rng([N, n])
    D, E = rng.normal(size=(N, n, n)) + 2 * np.eye(n), rng.normal(size=(N, n, n))
    if diagonal:
        D, E = D * np.eye(n), E * np.eye(n)
    J = np.zeros((N, n, N, n))
    for i in range(N):
        J[i, :, i, :] += D[i]
        for j in range(N):
            J[i, :, j, :] += E[i] / N
    J = J.reshape(N * n, N * n)
    least, norm = np.linalg.eigvalsh((J + J.T) / 2)[0], np.linalg.norm(J, 2)
    for given in [(D, E)] + ([(np.einsum("nii->ni", D), np.einsum("nii->ni", E))] if diagonal else []):
        mu, kappa = aggregative_mu_kappa(unit * given[0], unit * given[1])
        assert least - 1e-7 * norm <= mu / unit <= least + 1e-13 * norm
        assert norm * (1 - 1e-13) <= kappa / unit <= norm * (1 + 1e-7)


# -- matrices within bounds --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_the_least_eigenvalue_within_bounds_is_that_of_a_corner(n, seed):
    rng = np.random.default_rng([n, seed])
    centre, radius = rng.normal(size=(n, n)), rng.uniform(0, 0.4, size=(n, n))
    ends = itertools.product((-1, 1), repeat=n * n)
    corners = [centre + np.reshape(signs, (n, n)) * radius for signs in ends]
    exact = min(np.linalg.eigvalsh((J + J.T) / 2)[0] for J in corners)
    found = float(least_eigenvalue(centre - radius, centre + radius))
    assert exact - 1e-12 <= found <= exact + 1e-14
    norm = max(np.linalg.norm(J, 2) for J in corners)
    assert (
        norm
        <= float(largest_norm(centre - radius, centre + radius))
        <= min(np.linalg.norm(np.abs(centre) + radius, 2), np.linalg.norm(centre, 2) + np.linalg.norm(radius, 2))
        * (1 + 1e-12)
    )


@pytest.mark.parametrize("kind", ["dominant", "centred", "with a wide diagonal", "turned"])
def test_bounds_of_larger_matrices_are_as_short_as_their_formulas(kind):
    rng = np.random.default_rng(5)
    n = 9
    C, R = symmetric(rng, n, n), 0.02 * np.ones((n, n))
    if kind == "dominant":
        C = np.diag(np.arange(3.0, 3.0 + n)) + 0.1 * C
    if kind == "with a wide diagonal":
        R = R + np.eye(n)
    if kind == "turned":
        C, R = 0.0 * C + 5 * np.eye(n), 0.5 * np.ones((n, n))
    J = C + (np.triu(np.ones((n, n))) - np.tril(np.ones((n, n))))  # the part that is not symmetric does not matter
    low, high = C - R, C + R
    off = np.maximum(np.abs(low), np.abs(high)) * (1 - np.eye(n))
    discs = min(low[i, i] - off[i].sum() for i in range(n))
    compared = np.linalg.eigvalsh(np.diag(np.diag(low)) - off)[0]
    rohn = np.linalg.eigvalsh(C)[0] - np.linalg.eigvalsh(R)[-1]
    R0, C0 = R * (1 - np.eye(n)), C - np.diag(np.diag(R))
    lowered = np.linalg.eigvalsh(C0)[0] - np.linalg.eigvalsh(R0)[-1]
    best = max(discs, compared, rohn, lowered)
    assert float(least_eigenvalue(J - R, J + R)) == pytest.approx(best, abs=1e-10)
    assert float(least_eigenvalue(J - R, J + R)) <= best + 1e-13
    size = np.maximum(np.abs(J - R), np.abs(J + R))
    by_sums = math.sqrt(size.sum(axis=0).max() * size.sum(axis=1).max())
    shortest = min(np.linalg.norm(J, 2) + np.linalg.norm(R, 2), np.linalg.norm(size, 2), by_sums, np.linalg.norm(size))
    assert float(largest_norm(J - R, J + R)) == pytest.approx(shortest, rel=1e-10)


# -- images of products of balls ---------------------------------------------------------------------------------------


def test_images_of_balls_and_boxes_by_hand():
    rng = np.random.default_rng(2)
    C = rng.normal(size=(4, 5))
    gram = Gram.of(C)
    assert gram.unit == power_near(C)
    np.testing.assert_allclose(gram.K * gram.unit**2, C.T @ C)
    width = rng.uniform(0.1, 2, size=5)
    corners = np.array(list(itertools.product((-1, 1), repeat=5))) * width
    exact = np.linalg.norm(corners @ C.T, axis=1).max()
    assert exact <= largest_on_box(gram, width) <= exact * (1 + 1e-10)
    K = C.T @ C
    plain = min(width @ np.abs(K) @ width, 5 * np.linalg.eigvalsh(K * np.outer(width, width))[-1])
    assert float(largest(gram, width, np.arange(5))) == pytest.approx(math.sqrt(plain))
    group, radii = np.array([0, 0, 1, 1, 1]), np.array([0.3, 1.5])
    parts = [np.flatnonzero(group == k) for k in range(2)]
    total = sum(
        radii[a] * radii[b] * np.linalg.norm(K[np.ix_(parts[a], parts[b])], 2) for a in range(2) for b in range(2)
    )
    D = radii[group]
    expected = math.sqrt(min(total, 2 * np.linalg.eigvalsh(K * np.outer(D, D))[-1]))
    assert float(largest(gram, radii, group)) == pytest.approx(expected)
    assert float(largest(gram, np.array([0.7]))) == pytest.approx(0.7 * np.linalg.norm(C, 2))
    wide = Gram.of(rng.normal(size=(3, 15)))  # more corners than are tried
    assert largest_on_box(wide, np.ones(15)) == float(largest(wide, np.ones(15), np.arange(15)))
    assert largest_on_box(Gram.of(np.array([[3.0]])), np.array([2.0])) == pytest.approx(6.0)


@pytest.mark.parametrize("value", [1.0, 1.5, 2.0, 3.9, 0.25, 0.3, 1e-200, 1e200])
def test_a_power_of_two_at_or_below(value):
    found = power_near(np.array([-value, value / 3]))
    assert found <= value < 2 * found
    assert math.frexp(found)[0] == 0.5
    assert power_near(np.zeros(2)) == 1.0
    assert power_near(np.array([math.inf])) == 1.0


# -- steps -------------------------------------------------------------------------------------------------------------


def test_steps_by_the_table():
    both = step_range(AverageFacts(mu=0.5, kappa=2.0, gradient=True))
    assert (both.best, both.rate, both.limit) == pytest.approx((2 / 2.5, 1.5 / 2.5, 2 / 2.0))
    coarse = step_range(AverageFacts(mu=0.5, kappa=2.0))
    assert (coarse.best, coarse.rate, coarse.limit) == pytest.approx((0.5 / 4, math.sqrt(1 - 0.25 / 4), 2 * 0.5 / 4))
    mixed = step_range(AverageFacts(mu=0.5, theta=0.4))
    assert (mixed.best, mixed.rate, mixed.limit) == pytest.approx((0.4, math.sqrt(1 - 0.2), 0.8))
    alone = step_range(AverageFacts(theta=0.4))
    assert (alone.best, alone.rate, alone.limit) == pytest.approx((4 * 0.4 / 3, 1.0, 0.8))
    known = step_range(AverageFacts(mu=0.5, kappa=2.0, contraction=(0.33, 0.1)))
    assert (known.best, known.rate) == (0.33, 0.1)
    better = step_range(AverageFacts(mu=0.5, kappa=2.0, theta=0.1))
    assert better.limit == pytest.approx(2 * 0.125)
    assert step_range(AverageFacts(kappa=2.0)) is None
    assert step_range(AverageFacts()) is None
    flat = step_range(AverageFacts(kappa=2.0, gradient=True))
    assert (flat.best, flat.rate, flat.limit) == pytest.approx((4 / 3 / 2, 1.0, 1.0))


def test_steps_of_two_evaluations():
    assert lipschitz_range(AverageFacts(), None, np.zeros(2)) is None
    assert lipschitz_range(AverageFacts(kappa=0.0), None, np.zeros(2)) is None
    plain = lipschitz_range(AverageFacts(kappa=4.0), None, np.zeros(2))
    assert (plain.best, plain.limit, plain.rate) == pytest.approx((1 / (math.sqrt(2) * 4), 1 / 4, 1.0))
    strong = lipschitz_range(AverageFacts(mu=1.0, kappa=4.0), None, np.zeros(2))
    grid = np.linspace(1e-6, 1 / 4 - 1e-6, 400_001)
    squares = 1 - 1 / (1 / (2 * grid * 1.0) + 1 / (1 - (grid * 4) ** 2))
    assert strong.rate == pytest.approx(math.sqrt(squares.min()), rel=1e-6)
    assert strong.best == pytest.approx(grid[np.argmin(squares)], rel=1e-3)
    G, b = np.array([[1.0, 2.0], [0.0, 3.0]]), np.zeros(2)
    game = ez.Game([lambda x: x[0] @ x[0], lambda x: x[1] @ x[1]], [ez.sets.Box(-1.0, 1.0, dim=1)] * 2, shared=(G, b))
    x = [np.zeros(1), np.zeros(1)]
    assert isinstance(game.coupling, AffineConstraint)
    shared = lipschitz_range(AverageFacts(mu=1.0, kappa=4.0), game.coupling, x)
    assert shared.limit == pytest.approx(1 / (4 + np.linalg.norm(G, 2)))
    assert shared.best == pytest.approx(shared.limit / math.sqrt(2))
    lengths, size = scaled_rows(game.coupling, x)
    np.testing.assert_allclose(lengths, np.linalg.norm(G, axis=1))
    assert size == pytest.approx(np.linalg.norm(G / lengths[:, None], 2) ** 2)


def test_many_shared_rows_are_bounded_instead():
    rng = np.random.default_rng(3)
    G = rng.normal(size=(2001, 2)) * rng.uniform(1e-3, 1e3, size=(2001, 1))
    G[7] = 0.0
    game = ez.Game(
        [lambda x: x[0] @ x[0], lambda x: x[1] @ x[1]], [ez.sets.Box(-1.0, 1.0, dim=1)] * 2, shared=(G, np.ones(2001))
    )
    lengths, size = scaled_rows(game.coupling, [np.zeros(1), np.zeros(1)])
    exact = np.where(np.linalg.norm(G, axis=1) > 0, np.linalg.norm(G, axis=1), 1.0)
    np.testing.assert_allclose(lengths, exact)
    scaled = np.abs(G / exact[:, None])
    assert size == pytest.approx(scaled.sum(axis=0).max() * scaled.sum(axis=1).max())
    assert size >= np.linalg.norm(G / exact[:, None], 2) ** 2


def test_what_is_known_of_an_average():
    assert AverageFacts(theta=1.0).cocoercive
    assert AverageFacts(gradient=True).cocoercive
    assert AverageFacts(mu=1.0, kappa=1.0).cocoercive
    assert not AverageFacts(mu=1.0).cocoercive
    assert not AverageFacts(kappa=1.0).cocoercive
    assert AverageFacts(monotone=Provenance.EXACT).doubt == ""
    assert "not monotone" in AverageFacts(monotone=Provenance.VIOLATED).doubt
    assert "not known" in AverageFacts().doubt
