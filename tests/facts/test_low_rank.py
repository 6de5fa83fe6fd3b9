"""Extreme eigenvalues of blocks and a low rank, against the matrix written down."""

import numpy as np
import pytest

from epszero.facts import low_rank as structured
from epszero.facts.low_rank import BlocksAndLowRank, aggregative_mu_kappa

pytestmark = pytest.mark.some(2)

KINDS = ("dense", "diagonal", "alike", "alike diagonal", "singular", "indefinite", "rotating", "partly coupled",
         "uncoupled", "strong", "skewed scales", "repeated", "zero")  # fmt: skip


def game(rng, kind, N, n):
    D, E = rng.normal(size=(N, n, n)), rng.normal(size=(N, n, n))
    eye = np.eye(n)
    if "diagonal" in kind:
        D, E = D * eye, E * eye
    if "alike" in kind:
        D, E = np.tile(D[:1], (N, 1, 1)), np.tile(E[:1], (N, 1, 1))
    if kind == "singular":
        D, E = D[:, :, :1] @ D[:, :1, :], E[:, :, :1] * E[:1, :1, :]
    if kind == "dense":
        D = D @ np.swapaxes(D, 1, 2) + 0.1 * eye
    if kind == "rotating":
        D, E = D - np.swapaxes(D, 1, 2), 5 * (E - np.swapaxes(E, 1, 2))
    if kind == "partly coupled":
        E[rng.uniform(size=N) < 0.7] = 0.0
    if kind == "uncoupled":
        E[:] = 0.0
    if kind == "strong":
        E *= 1e4
    if kind == "skewed scales":
        D, E = D * 10.0 ** rng.integers(-6, 6, (N, 1, 1)), E * 10.0 ** rng.integers(-6, 6, n)
    if kind == "repeated":
        D, E = np.tile(eye, (N, 1, 1)) * rng.integers(0, 3, (N, 1, 1)), rng.integers(-1, 2, (N, 1, 1)) * eye
        D, E = D.astype(float), E.astype(float)
    if kind == "zero":
        D = np.zeros_like(D)
    return D, E


def written(D, E):
    N, n = D.shape[:2]
    J = np.einsum("iab,j->iajb", E, np.ones(N) / N)
    J[np.arange(N), :, np.arange(N), :] += D
    return J.reshape(N * n, N * n)


def right(found, D, E, tolerance=1e-6):
    """Whether the bounds are on the safe side and near."""
    J = written(D, E)
    mu, kappa = np.linalg.eigvalsh((J + J.T) / 2)[0], np.linalg.norm(J, 2)
    rounded = 1e-13 * kappa + 1e-300  # of the reference
    return (
        mu - tolerance * kappa <= found[0] <= mu + rounded
        and kappa - rounded <= found[1] <= kappa * (1 + tolerance) + rounded
    )


@pytest.fixture(params=["by inertia", "as built"])
def route(request, monkeypatch):
    if request.param == "by inertia":
        monkeypatch.setattr(structured, "DENSE", 0)
    return request.param


@pytest.mark.parametrize("kind", KINDS)
def test_mu_and_kappa_of_random_games(kind, route):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(30):
        D, E = game(rng, kind, int(rng.integers(1, 25)), int(rng.integers(1, 6)))
        assert right(aggregative_mu_kappa(D, E), D, E)


def test_the_check_finds_bounds_that_forget_the_coupling(route):
    rng = np.random.default_rng(0)
    for kind in ("dense", "diagonal", "alike", "indefinite", "rotating", "strong", "partly coupled", "zero"):
        games = [game(rng, kind, 12, 3) for _ in range(10)]  # where agents are alike, the coupling need not matter
        assert not all(right(aggregative_mu_kappa(D, np.zeros_like(E)), D, E) for D, E in games)


def test_diagonals_may_be_given_as_such_and_decouple(monkeypatch):
    rng = np.random.default_rng(1)
    for _ in range(20):
        D, E = game(rng, "diagonal", 60, 4)
        short = tuple(np.einsum("iaa->ia", blocks) for blocks in (D, E))
        assert aggregative_mu_kappa(*short) == aggregative_mu_kappa(D, E)
        assert right(aggregative_mu_kappa(*short), D, E)
        monkeypatch.setattr(structured, "_diagonals", lambda blocks: None)
        assert right(aggregative_mu_kappa(short[0], E), D, E)
        monkeypatch.undo()


def lifted(rng, N, n, k, rank):
    blocks, U, M = rng.normal(size=(N, n, n)), rng.normal(size=(N, n, k)) / np.sqrt(N), rng.normal(size=(k, rank))
    M = 3 * M * rng.choice([-1.0, 1.0], size=rank) @ M.T
    if rng.uniform() < 0.4:
        blocks[:] = blocks[0]
    if rng.uniform() < 0.3:
        U[rng.uniform(size=N) < 0.5] = 0.0
    if rng.uniform() < 0.3:
        U[..., 0] = 0.0
    if rng.uniform() < 0.3:
        blocks = np.round(blocks)
    blocks, M = (blocks + np.swapaxes(blocks, 1, 2)) / 2, (M + M.T) / 2
    rows = U.reshape(N * n, k)
    S = rows @ M @ rows.T
    S.reshape(N, n, N, n)[np.arange(N), :, np.arange(N), :] += blocks
    return BlocksAndLowRank(blocks, U, M), S


def test_any_low_rank_and_the_vector_behind_it(route):
    rng = np.random.default_rng(2)
    for _ in range(150):
        k = int(rng.integers(1, 7))
        S, dense = lifted(rng, int(rng.integers(1, 20)), int(rng.integers(1, 5)), k, int(rng.integers(0, k + 1)))
        values = np.linalg.eigvalsh(dense)
        size = np.abs(values).max()
        assert -1e-13 * size <= values[0] - S.least() <= 1e-7 * size
        assert -1e-13 * size <= S.largest() - values[-1] <= 1e-7 * size
        x = S.lowest_vector()
        np.testing.assert_allclose(np.linalg.norm(x), 1.0, rtol=1e-12)
        assert x.ravel() @ dense @ x.ravel() - values[0] <= 1e-6 * size


def test_no_shift_above_the_least_eigenvalue_is_ever_proved(monkeypatch):
    monkeypatch.setattr(structured, "DENSE", 0)
    rng = np.random.default_rng(3)
    proved = 0
    for _ in range(150):
        k = int(rng.integers(1, 5))
        S, dense = lifted(rng, int(rng.integers(2, 15)), int(rng.integers(1, 4)), k, k)
        values = np.linalg.eigvalsh(dense)
        size = np.abs(values).max()
        steps = [sign * size * 10.0**power for sign in (-1, 1) for power in (-13, -9, -3)]
        near = [value + step for value in (*values[:3], *S.rotated.values[:3]) for step in steps]
        for shift in (*near, *rng.uniform(values[0] - size, values[-1] + size, 10), *S.rotated.values[:5]):
            found = S.rotated.seen_from(float(shift))[0]
            proved += found
            assert not found or shift <= values[0] + 1e-13 * size
    assert proved > 1000


def test_a_large_game_agrees_with_its_average_direction():
    rng = np.random.default_rng(4)
    N, n = 20_000, 5
    D = np.tile(rng.normal(size=(n, n)) + 4 * np.eye(n), (N, 1, 1))
    E = np.tile(rng.normal(size=(n, n)), (N, 1, 1))
    mu, kappa = aggregative_mu_kappa(D, E)  # blocks alike: spectra of D_i on the differences, of D + E on the average
    both = [D[0], D[0] + E[0]]
    least = min(np.linalg.eigvalsh((J + J.T) / 2)[0] for J in both)
    norm = max(np.linalg.norm(J, 2) for J in both)
    assert 0 <= least - mu <= 1e-7 * norm
    assert 0 <= kappa - norm <= 1e-7 * norm


def test_one_agent_is_its_own_average():
    rng = np.random.default_rng(5)
    for n in (1, 2, 7):
        D, E = rng.normal(size=(2, 1, n, n))
        assert right(aggregative_mu_kappa(D, E), D, E, 1e-11)


def test_what_is_not_finite_leaves_no_bound():
    D = np.ones((3, 2, 2))
    assert aggregative_mu_kappa(D, D * np.inf) == (-np.inf, np.inf)
    assert aggregative_mu_kappa(D * np.nan, D) == (-np.inf, np.inf)
    assert aggregative_mu_kappa(np.ones((3, 2)), np.full((3, 2), np.nan)) == (-np.inf, np.inf)


@pytest.mark.parametrize("scale", [0.0, 1e-250, 1e-150, 1e150, 1e250])
def test_very_large_and_very_small_numbers(scale, route):
    rng = np.random.default_rng(6)
    for kind in ("indefinite", "diagonal"):
        D, E = game(rng, kind, 9, 3)
        mu, kappa = aggregative_mu_kappa(D * scale, E * scale)
        if scale == 0:
            assert mu == kappa == 0
        else:
            assert right((mu / scale, kappa / scale), D, E)
