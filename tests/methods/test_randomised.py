"""Randomised methods against their published iterations, in NumPy, with the draws that they say they make; with all
samples, all blocks or no delay they are forward-backward, iterate for iterate; refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.methods.sampling import batches, blocks_of, key_at
from epszero.methods.variance_reduction import COIN
from epszero.problems.backward import Backward

n, s = 4, 12
RNG = np.random.default_rng(5)
ROOT = RNG.normal(size=(n, n))
H = ROOT @ ROOT.T / n + 0.5 * np.eye(n) + 0.4 * (ROOT - ROOT.T)
DATA = RNG.uniform(0.2, 1.0, size=(s, n))
BOX = ez.sets.Box(-0.4, 0.4, dim=n)
X0 = np.full(n, 0.25)


def sloped(x, xi):
    """Affine in features."""
    return H @ x + xi * x - xi


def bent(x, xi):
    """Not affine in features."""
    return H @ x + jnp.arctan(3 * xi * x) - xi


def values(B, x, rows):
    slopes = rows * x if B is sloped else np.arctan(3 * rows * x)
    return (H @ x + slopes - rows).mean(axis=0)


def run(B, method, K, problem=None):
    problem = ez.Inclusion(BOX, B) if problem is None else problem
    return ez.solve(problem, ez.Samples(DATA), method, x0=X0 if isinstance(problem.A.parts, ez.sets.Box) else None,
                    iterations=K)  # fmt: skip


@pytest.mark.some(2)
@pytest.mark.parametrize("B", [sloped, bent])
def test_mini_batches_are_the_published_iteration(B):
    K, steps = 6, [0.2 / (1 + k) for k in range(7)]
    drawn = batches(3, K + 1, s, 5)
    assert all(len(set(row.tolist())) == 5 for row in drawn)
    x = X0
    for gamma, batch in zip(steps, drawn, strict=True):
        y = x - gamma * values(B, x, DATA[batch])
        x = np.clip(y, -0.4, 0.4)
    found = run(B, ez.MiniBatchForwardBackward(5, lambda k: 0.2 / (1.0 + k), seed=3), K)
    np.testing.assert_allclose(found.x, x, atol=1e-14)
    np.testing.assert_allclose(found.z, (y - x) / gamma, atol=1e-12)
    assert found.residual == pytest.approx(np.linalg.norm((y - x) / gamma + values(B, x, DATA)), abs=1e-12)


@pytest.mark.some(2)
@pytest.mark.parametrize("B", [sloped, bent])
def test_variance_reduction_is_the_published_iteration(B):
    K, gamma, p, b = 40, 0.05, 0.3, 2
    drawn = batches(1, K + 1, s, b)
    with jax.enable_x64(True):
        coins = np.array([jax.random.uniform(jax.random.fold_in(key_at(1, k), COIN)) for k in range(K + 1)]) < p
    assert 0 < coins.sum() < K
    x = w = X0
    for batch, coin in zip(drawn, coins, strict=True):
        g = values(B, x, DATA[batch]) - values(B, w, DATA[batch]) + values(B, w, DATA)
        w = x if coin else w
        x = np.clip(x - gamma * g, -0.4, 0.4)
    found = run(B, ez.LooplessVarianceReduction(b, gamma, renewal=p, seed=1), K)
    np.testing.assert_allclose(found.x, x, atol=1e-13)


@pytest.mark.long
def test_variance_reduction_converges_where_mini_batches_do_not():
    one, other = (
        run(bent, method(2, 0.05), 2000) for method in (ez.LooplessVarianceReduction, ez.MiniBatchForwardBackward)
    )
    assert one.residual < 1e-12
    assert other.residual > 1e-4


# -- blocks ------------------------------------------------------------------------------------------------------------


def cost(i):
    own = slice(2 * i, 2 * i + 2)

    def of(x, xi):
        whole = jnp.concatenate(x)
        rows = H[own, own]
        return 0.25 * x[i] @ (rows + rows.T) @ x[i] + x[i] @ (H[own] @ whole - rows @ x[i] - xi[own])

    return of


GAME = ez.Game([cost(0), cost(1)], [ez.sets.Box(-0.4, 0.4, dim=2), ez.functions.L1(np.full(2, 0.1))])


def gradient(x):
    full = [H[:2] @ x, H[2:] @ x]
    own = [(H[:2, :2] - H[:2, :2].T) / 2 @ x[:2], (H[2:, 2:] - H[2:, 2:].T) / 2 @ x[2:]]
    return np.concatenate(full) - np.concatenate(own) - DATA.mean(axis=0)


def resolvents(v, gamma):
    return np.concatenate([np.clip(v[:2], -0.4, 0.4), np.sign(v[2:]) * np.maximum(np.abs(v[2:]) - 0.1 * gamma, 0)])


@pytest.mark.long
def test_random_blocks_are_the_published_iteration():
    K, gamma = 12, 0.2
    with jax.enable_x64(True):
        moved = [int(jax.random.permutation(key_at(4, k), 2)[0]) for k in range(K + 1)]
    assert set(moved[1:]) == {0, 1}
    x, z = np.zeros(n), np.zeros(n)
    for k, block in enumerate(moved):
        y = x - gamma * gradient(x)
        new = resolvents(y, gamma)
        own = slice(None) if k == 0 else slice(2 * block, 2 * block + 2)
        x, z = x.copy(), z.copy()
        x[own], z[own] = new[own], ((y - new) / gamma)[own]
    found = run(None, ez.RandomBlock(1, gamma, seed=4), K, GAME)
    np.testing.assert_allclose(np.concatenate(found.x), x, atol=1e-14)
    np.testing.assert_allclose(np.concatenate(found.z), z, atol=1e-13)
    assert abs(found.check().gap) < 1e-12


@pytest.mark.long
def test_delays_are_the_published_iteration():
    K, gamma, D = 12, 0.1, 3
    with jax.enable_x64(True):
        delays = [np.minimum(jax.random.randint(key_at(7, k), (2,), 0, D + 1), k) for k in range(K + 1)]
    assert np.max(delays) == D
    past = [np.zeros(n)]
    for k, delay in enumerate(delays):
        seen = np.concatenate([past[k - delay[0]][:2], past[k - delay[1]][2:]])
        past.append(resolvents(past[-1] - gamma * gradient(seen), gamma))
    found = run(None, ez.Asynchronous(D, gamma, seed=7), K, GAME)
    np.testing.assert_allclose(np.concatenate(found.x), past[-1], atol=1e-14)


def test_blocks_are_what_A_is_separable_by():
    rows = Backward("A", [ez.sets.Box(0.0, 1.0, dim=2), ez.sets.Ball(1.0, dim=3)])
    numbers, count = blocks_of(rows, [np.zeros((3, 2)), np.zeros(3)])
    assert count == 4
    assert numbers[0].tolist() == [[0, 0], [1, 1], [2, 2]]
    assert numbers[1].tolist() == [3, 3, 3]


# -- special cases -----------------------------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize("K", [0, 9])
@pytest.mark.parametrize("method", [ez.MiniBatchForwardBackward(s, 0.2), ez.LooplessVarianceReduction(s, 0.2)])
def test_with_full_batches_they_are_forward_backward(method, K):
    one, other = (run(bent, each, K) for each in (method, ez.ForwardBackward(0.2)))
    assert np.abs(one.x - other.x).max() <= 1e-16
    assert one.residual == pytest.approx(other.residual, abs=1e-15)


@pytest.mark.some(3)
@pytest.mark.parametrize("K", [0, 9])
@pytest.mark.parametrize("method", [ez.RandomBlock(2, 0.2), ez.Asynchronous(0, 0.2)])
def test_with_all_blocks_or_no_delay_they_are_forward_backward(method, K):
    one, other = (run(None, each, K, GAME) for each in (method, ez.ForwardBackward(0.2)))
    assert np.abs(np.concatenate(one.x) - np.concatenate(other.x)).max() <= 1e-16


@pytest.mark.long
def test_many_data_sets_at_once_give_what_each_gives_alone():
    sets = [ez.Samples(DATA), ez.Samples(DATA[::-1] + 0.1), ez.Samples(DATA[:7])]
    for method in (ez.MiniBatchForwardBackward(4, 0.1, seed=2), ez.LooplessVarianceReduction(4, 0.1, seed=2)):
        together = ez.solve_many(ez.Inclusion(BOX, bent), sets, method, x0=X0, iterations=15)
        for data, found in zip(sets, together, strict=True):
            alone = ez.solve(ez.Inclusion(BOX, bent), data, method, x0=X0, iterations=15)
            np.testing.assert_allclose(found.x, alone.x, atol=1e-15)


def test_seeds_make_the_difference_and_nothing_else_does():
    runs = [run(bent, ez.MiniBatchForwardBackward(3, 0.1, seed=seed), 20).x for seed in (0, 0, 1)]
    assert (runs[0] == runs[1]).all()
    assert np.abs(runs[0] - runs[2]).max() > 1e-4


KNOWN = ez.Inclusion(BOX, lambda x: H @ x)
SHARED = ez.Game([cost(0), cost(1)], [ez.sets.Box(-1, 1, dim=2)] * 2, shared=(np.ones((1, n)), 1.0))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ez.MiniBatchForwardBackward(0), "batch: must be at least 1"),
        (lambda: ez.MiniBatchForwardBackward(2, seed=-1), "seed: must be at least 0"),
        (lambda: ez.LooplessVarianceReduction(2, renewal=1.5), "renewal: is a probability"),
        (lambda: ez.Asynchronous(-1), "delay: must be at least 0"),
        (lambda: ez.RandomBlock(1.5), "blocks: must be a whole number"),
        (
            lambda: run(bent, ez.MiniBatchForwardBackward(s + 1, 0.1), 1),
            "batch: must be at most the number of sam",
        ),
        (lambda: run(bent, ez.MiniBatchForwardBackward(3), 1), "step: is left out, and no constants"),
        (lambda: run(None, ez.RandomBlock(3, 0.1), 1, GAME), "blocks: must be at most the number of blocks, 2"),
        (lambda: run(None, ez.RandomBlock(1, 0.1), 1, SHARED), "not for shared constraints"),
        (lambda: run(None, ez.LooplessVarianceReduction(1, 0.1), 1, SHARED), "not for shared constraints"),
        (lambda: ez.solve(KNOWN, method=ez.MiniBatchForwardBackward(1, 0.1), iterations=1), "nothing is uncertain"),
        (
            lambda: ez.solve(GAME, [ez.Samples(DATA)] * 2, ez.MiniBatchForwardBackward(1, 0.1), iterations=1),
            "one data set that all agents see",
        ),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make, said):
    with pytest.raises(ez.InputError, match=said):
        make()
