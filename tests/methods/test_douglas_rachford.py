"""Douglas–Rachford and Davis–Yin against their published iterations, in NumPy, and against each other; refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.methods.inner import MOST, Inner, factorised, resolvent_of

n = 4
RNG = np.random.default_rng(5)
ROOT = RNG.normal(size=(n, n))
H = ROOT @ ROOT.T / n + 0.5 * np.eye(n) + 0.4 * (ROOT - ROOT.T)
DATA = RNG.normal(size=(30, n)) + 0.5
BOX = ez.sets.Box(-0.4, 0.4, dim=n)
X0 = np.full(n, 0.25)


def affine(x, xi):
    return H @ x - xi


def bent(x, xi):
    return H @ x + x**3 - xi


def clip(v):
    return np.clip(v, -0.4, 0.4)


def run(B, method, K, data=DATA, x0=X0):
    return ez.solve(ez.Inclusion(BOX, B), ez.Samples(data), method, x0=x0, iterations=K)


def lions_mercier(resolvent, gamma, K):
    """x^K of p = J_{γB}(ζ), x = J_{γA}(2p − ζ), ζ⁺ = ζ + x − p, and its z."""
    zeta = X0
    for _ in range(K + 1):
        p = resolvent(zeta)
        x = clip(2 * p - zeta)
        z = (2 * p - zeta - x) / gamma
        e = (p - x) / gamma
        zeta = zeta + x - p
    return x, z, p, e


@pytest.mark.parametrize("K", [0, 1, 7])
def test_affine_iterates_are_the_published_ones(K):
    gamma = 0.7
    x, z, p, e = lions_mercier(
        lambda zeta: np.linalg.solve(np.eye(n) + gamma * H, zeta + gamma * DATA.mean(axis=0)), gamma, K
    )
    found = run(affine, ez.DouglasRachford(gamma), K)
    np.testing.assert_allclose(found.x, x, atol=1e-13)
    np.testing.assert_allclose(found.z, z, atol=1e-12)
    assert found.residual == pytest.approx(np.linalg.norm(e + H @ x - H @ p), abs=1e-12)


def scipy_resolvent(zeta, gamma):
    from scipy.optimize import fsolve  # noqa: PLC0415  (needed here only)

    return fsolve(lambda p: p + gamma * (H @ p + p**3 - DATA.mean(axis=0)) - zeta, zeta, xtol=1e-12)


@pytest.mark.parametrize("K", [0, 6])
def test_a_bent_operator_is_solved_for_as_well_as_was_asked(K):
    gamma = 1.5
    x, z, _, _ = lions_mercier(lambda zeta: scipy_resolvent(zeta, gamma), gamma, K)
    found = run(bent, ez.DouglasRachford(gamma, accuracy=1e-12), K)
    np.testing.assert_allclose(found.x, x, atol=1e-10)
    np.testing.assert_allclose(found.z, z, atol=1e-10)
    assert found.check().residual == pytest.approx(found.residual, abs=1e-13)


@pytest.mark.long
def test_an_accuracy_out_of_reach_stops_the_run():
    found = ez.solve(
        ez.Inclusion(BOX, bent), ez.Samples(DATA), ez.DouglasRachford(1.5, accuracy=1e-30), x0=X0, tol=1e-9, throw=False
    )
    assert found.status is ez.Status.NO_STEP


@pytest.mark.long
def test_the_error_of_the_inner_solve_is_what_is_measured():
    """‖p − J(ζ)‖ ≤ ‖p + γB̂(p) − ζ‖, whatever p is, and Newton's method finds it from far away."""
    gamma, zeta = 2.0, np.array([30.0, -20.0, 5.0, 0.1])
    with jax.enable_x64(True):
        B = ez.oracles.Exact(lambda x: jnp.asarray(H) @ x + x**3).average(None, zeta)
        start = Inner(10 * zeta, jnp.asarray(jnp.inf), factorised(B, gamma, zeta))
        exact, rough = (
            jax.tree.map(np.asarray, resolvent_of(B, gamma, zeta, start, accuracy)) for accuracy in (1e-11, 1e2)
        )
    assert exact.off <= 1e-11
    np.testing.assert_allclose(exact.p + gamma * (H @ exact.p + exact.p**3), zeta, atol=1e-10)
    assert 1e-6 < np.linalg.norm(rough.p - exact.p) <= rough.off <= 1e2


@pytest.mark.long
def test_a_rotation_that_forward_backward_leaves_is_solved():
    S = np.array([[0.0, 1.0], [-1.0, 0.0]])
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=2), lambda x, xi: S @ x - xi)
    data = ez.Samples(np.ones((3, 2)))
    found = ez.solve(problem, data, ez.DouglasRachford(1.0), x0=np.zeros(2), tol=1e-12)
    np.testing.assert_allclose(found.x, np.linalg.solve(S, np.ones(2)), atol=1e-10)
    assert ez.solve(problem, data, ez.ForwardBackward(1.0), x0=np.zeros(2), tol=1e-9, throw=False).status.is_failure


# -- Davis–Yin ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("K", [0, 1, 9])
def test_davis_yin_is_the_published_iteration(K):
    gamma, stiff = 0.4, H + 0.3 * np.diag([5.0, 0, 0, 1])
    found = run(bent, ez.DavisYin(gamma, stiff), K)
    zeta, mean = X0, DATA.mean(axis=0)
    for _ in range(K + 1):
        p = np.linalg.solve(np.eye(n) + gamma * stiff, zeta)
        w = 2 * p - zeta - gamma * (H @ p + p**3 - mean - stiff @ p)
        x = clip(w)
        zeta = zeta + x - p
    np.testing.assert_allclose(found.x, x, atol=1e-13)
    np.testing.assert_allclose(found.z, (w - x) / gamma, atol=1e-12)


@pytest.mark.parametrize("K", [0, 1, 20])
def test_with_nothing_forward_it_is_douglas_rachford_and_with_nothing_implicit_forward_backward(K):
    data = np.zeros((3, n))  # B̂ = H
    one, other = (run(affine, method, K, data) for method in (ez.DavisYin(0.6, H), ez.DouglasRachford(0.6)))
    np.testing.assert_allclose(one.x, other.x, atol=1e-14)
    one, other = (run(bent, m, K) for m in (ez.DavisYin(0.2, np.zeros((n, n))), ez.ForwardBackward(0.2)))
    np.testing.assert_allclose(one.x, other.x, atol=1e-15)
    np.testing.assert_allclose(one.z, other.z, atol=1e-13)


@pytest.mark.long
def test_a_stiff_part_takes_a_step_that_forward_backward_cannot():
    stiff = np.diag([1e4, 1.0, 1.0, 1.0])
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=n), lambda x, xi: stiff @ x + x - xi)
    data = ez.Samples(DATA)
    found = ez.solve(problem, data, ez.DavisYin(1.0, stiff), x0=X0, tol=1e-9, iterations=100)
    np.testing.assert_allclose(found.x, DATA.mean(axis=0) / (np.diag(stiff) + 1), atol=1e-9)
    late = ez.solve(problem, data, ez.ForwardBackward(1e-4), x0=X0, iterations=found.iterations)
    assert late.residual > 0.1


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ez.DouglasRachford(-1.0), "step: must be positive"),
        (lambda: ez.DouglasRachford([1.0, 2.0]), "step: must be one number"),
        (lambda: ez.DouglasRachford(1.0, accuracy=0.0), "accuracy: must be positive"),
        (lambda: ez.DouglasRachford(gamma=1.0), "gamma: DouglasRachford has no such argument"),
        (lambda: ez.DavisYin(1.0, np.ones(3)), "implicit: must be a square matrix"),
        (lambda: ez.DavisYin(1.0, -np.eye(2)), "implicit: must be monotone"),
        (lambda: ez.DavisYin(0.0, np.eye(2)), "step: must be positive"),
        (lambda: run(affine, ez.DavisYin(1.0, np.eye(2)), 1), "implicit: has 2 rows, but x has 4 entries"),
        (lambda: run(lambda x, xi: jnp.arctan(x) - xi, ez.DouglasRachford(), 1), "step: is left out, and no Lipschitz"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make, said):
    with pytest.raises(ez.InputError, match=said):
        make()


def test_too_many_entries_are_refused():
    with pytest.raises(ez.InputError, match=f"up to {MOST} entries"):
        ez.DouglasRachford(1.0).prepared(ez.Inclusion(BOX, affine), np.zeros(MOST + 1))
