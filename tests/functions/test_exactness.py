"""Closed forms held against one-dimensional root finding and against longer problems, to the last digits."""

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import epszero.functions as ez
from epszero.sets import Box

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("step", [1e-6, 1e-2, 1.0, 1e4])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 50.0])
def test_the_prox_of_entropy_solves_its_equation(step, weight):
    v, t = np.concatenate([RNG.normal(size=20) * 10.0 ** RNG.integers(-3, 4, 20), [0.0]]), step * weight

    def root(v):  # of x + t·log x = v − t, in the logarithm of x
        return np.exp(scipy.optimize.brentq(lambda u: np.exp(u) + t * (u + 1) - v, -1e16, 50.0, xtol=1e-14, rtol=1e-15))

    np.testing.assert_allclose(ez.NegativeEntropy(weight).prox(v, step), [root(x) for x in v], rtol=1e-9, atol=1e-300)


def test_entropy_where_an_exponential_would_overflow():
    v = np.array([1e12, 1e300, np.inf, -1e12, -np.inf, 1e-300])
    p = ez.NegativeEntropy(1.0).prox(v, 1.0)
    np.testing.assert_allclose(p[:3], v[:3], rtol=1e-10)
    assert (p[3:5] == 0).all()
    np.testing.assert_allclose(p[5] + np.log(p[5]), -1.0, rtol=1e-14)
    assert (ez.NegativeEntropy(1e-300).prox([1.0, -1.0], 1e-300) == [1.0, 0.0]).all()


def test_the_barrier_does_not_cancel():
    p = ez.LogBarrier(2.0).prox([-1e12, -1.0, 0.0, 1.0, 1e12, 1e200, -1e200, np.inf], 1.0)
    np.testing.assert_allclose(p[:5], [2e-12, 1.0, np.sqrt(2.0), 2.0, 1e12], rtol=1e-12)
    np.testing.assert_allclose(p[5:], [1e200, 2e-200, np.inf], rtol=1e-12)


def optimality_of_variation(v, p, height):
    """How far u, with p = v − Dᵀu, is from |u| ≤ height and from u = height·sign(Dp) where Dp ≠ 0."""
    u = -np.cumsum(v - p, axis=-1)
    jump = np.diff(p, axis=-1)
    size = np.abs(v).max() * v.shape[-1]
    outside = np.maximum(np.abs(u[..., :-1]) - height, 0.0).max(initial=0.0)
    slack = np.where(np.abs(jump) > 1e-9 * size, np.abs(u[..., :-1] - height * np.sign(jump)), 0.0).max(initial=0.0)
    return max(outside, slack, np.abs(u[..., -1]).max()) / size


@pytest.mark.some(4)
@pytest.mark.parametrize("n", [2, 7, 60, 500])
@pytest.mark.parametrize("height", [0.0, 0.01, 1.0, 30.0, 1e12])
def test_variation_on_walks_steps_and_ties(n, height):
    walk = np.cumsum(RNG.normal(size=(5, n)), axis=-1)
    for v in (walk, np.round(walk), 1e3 + np.sign(walk), RNG.normal(size=(5, n)), np.ones((5, n))):
        p = ez.TotalVariation1D(1.0).prox(v, height or 1e-300)
        assert optimality_of_variation(v, p, height) < 1e-13


def test_variation_is_exact_at_every_scale():
    v = np.cumsum(RNG.normal(size=50))
    p = ez.TotalVariation1D(2.0).prox(v)
    for scale in (1e-250, 1e-12, 1e12, 1e250):
        np.testing.assert_allclose(ez.TotalVariation1D(2.0 * scale).prox(scale * v) / scale, p, rtol=1e-11)
    np.testing.assert_allclose(ez.TotalVariation1D(2.0).prox(v + 1e6) - 1e6, p, atol=1e-8)
    assert np.ptp(ez.TotalVariation1D(1e300).prox(v)) == 0  # flat, and flat exactly


def test_variation_of_two_entries():
    np.testing.assert_allclose(ez.TotalVariation1D(1.0).prox([0.0, 5.0]), [1.0, 4.0])
    np.testing.assert_allclose(ez.TotalVariation1D(1.0).prox([0.0, 1.0]), [0.5, 0.5])


def test_a_quadratic_of_any_step():
    root = RNG.normal(size=(4, 6))
    P, q, v = root.T @ root, RNG.normal(size=6), RNG.normal(size=6)  # of rank 4
    f = ez.Quadratic(P, q)
    for step in (1e-6, 1.0, 1e6):
        np.testing.assert_allclose(
            f.prox(v, step),
            scipy.linalg.solve(np.eye(6) + step * P, v - step * q, assume_a="pos"),
            rtol=1e-6,
            atol=1e-8,
        )
    assert f.conjugate(q) == 0
    assert f.conjugate(q + scipy.linalg.null_space(P)[:, 0]) == np.inf
    np.testing.assert_allclose(f.conjugate(q + P @ v), v @ P @ v / 2)


def test_the_largest_entry_far_from_zero():
    np.testing.assert_allclose(ez.MaxEntry(3.0).prox(1e9 + np.array([0.0, 2.0, 3.0])) - 1e9, [0.0, 1.0, 1.0], atol=1e-6)


def test_values_off_the_domain_are_infinite():
    assert ez.NegativeEntropy()([1.0, -1e-3]) == np.inf
    assert ez.NegativeEntropy()([1.0, -1e-12]) == 0.0  # rounding
    assert ez.LogBarrier()([1.0, 0.0]) == np.inf
    assert ez.Indicator(Box(0.0, 1.0))([2.0]) == np.inf
    assert ez.L1(1.0).conjugate([1.0 + 1e-12]) == 0.0
    assert ez.L1(1.0).conjugate([1.0 + 1e-6]) == np.inf
    assert ez.L1([1e-3, 1e9]).conjugate([1.1e-3, 0.0]) == np.inf  # each entry by its own weight
    assert ez.Zero().conjugate([np.inf]) == np.inf
    assert ez.OnBlock(ez.L1(), [0]).conjugate([0.5, 0.1]) == np.inf
