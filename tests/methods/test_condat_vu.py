"""Condat–Vũ and Chambolle–Pock against their published iterations, in NumPy, and restarts that pay; refusals."""

import numpy as np
import pytest

import epszero as ez

m, n, s = 3, 4, 10
RNG = np.random.default_rng(8)
L = RNG.normal(size=(m, n))
Q = np.diag(RNG.uniform(0.5, 1.5, n))
DATA = RNG.normal(size=(s, n))
MEAN = DATA.mean(axis=0)
SIDES = [ez.sets.Box(-1.0, 1.0, dim=n), ez.functions.L1(np.full(m, 0.3))]


def problem(curved):
    """min over the box, max: ½xᵀQx − ξᵀx + yᵀLx − 0.3‖y‖₁; without the first two terms for Chambolle–Pock."""
    return ez.Inclusion(SIDES, lambda z, xi: [curved * (Q @ z[0]) - xi + L.T @ z[1], -L @ z[0]])


def published(tau, sigma, curved, K):
    x, y = np.zeros(n), np.zeros(m)
    for _ in range(K + 1):
        v = x - tau * (curved * Q @ x - MEAN) - tau * L.T @ y
        x_next = np.clip(v, -1, 1)
        w = y + sigma * L @ (2 * x_next - x)
        y_next = np.sign(w) * np.maximum(np.abs(w) - 0.3 * sigma, 0)
        z = [(v - x_next) / tau, (w - y_next) / sigma]
        x, y = x_next, y_next
    return (x, y), z


@pytest.mark.parametrize("K", [0, 1, 25])
@pytest.mark.parametrize("curved", [0.0, 1.0])
def test_iterates_are_the_published_ones_and_without_a_smooth_part_chambolle_pocks(K, curved):
    methods = [ez.CondatVu(0.2, 0.3, restarts=False)] + [ez.ChambollePock(0.2, 0.3, restarts=False)] * (curved == 0)
    for method in methods:
        found = ez.solve(problem(curved), ez.Samples(DATA), method, x0=[np.zeros(n), np.zeros(m)], iterations=K)
        point, z = published(0.2, 0.3, curved, K)
        for a, b in zip([*found.x, *found.z], [*point, *z], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)
        assert found.check().residual == pytest.approx(found.residual, abs=1e-12)
        assert abs(found.check().gap) < 1e-12


@pytest.mark.long
def test_on_shared_constraints_it_is_preconditioned_forward_backward():
    game = ez.Game(
        [lambda x, xi: 0.5 * x[0] @ Q @ x[0] - xi @ x[0]], [ez.sets.Box(-1, 1, dim=n)], shared=(L, np.full(m, 0.1))
    )
    methods = ez.CondatVu(0.1, 0.2, restarts=False), ez.PreconditionedForwardBackward(0.1, 0.2)
    one, other = (ez.solve(game, ez.Samples(DATA), method, iterations=30) for method in methods)
    np.testing.assert_allclose(one.x[0], other.x[0], atol=1e-13)
    np.testing.assert_allclose(one.multipliers, other.multipliers, atol=1e-13)


@pytest.mark.long
def test_restarts_pay_on_a_matrix_game_and_keep_z_an_element():
    game = ez.models.zero_sum(np.random.default_rng(0).normal(size=(20, 30)))
    with_them, without = (
        ez.solve(game, method=ez.ChambollePock(restarts=restarts), tol=1e-8, iterations=40_000, throw=False)
        for restarts in (True, False)
    )
    assert with_them.iterations < 0.2 * without.iterations
    assert with_them.residual <= 1e-8
    assert abs(with_them.check().gap) < 1e-12
    assert with_them.check().residual == pytest.approx(with_them.residual, abs=1e-13)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ez.CondatVu(step=-1.0), "step: must be positive"),
        (lambda: ez.ChambollePock(dual_step=[1.0, 2.0]), "dual_step: must be one number"),
        (lambda: ez.CondatVu(restarts="often"), "restarts: must be True or False"),
        (
            lambda: ez.solve(ez.Inclusion(SIDES[0], lambda x, xi: x - xi), DATA, ez.CondatVu(0.1, 0.1), iterations=1),
            "for points of two blocks",
        ),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(make, said):
    with pytest.raises(ez.InputError, match=said):
        make()
