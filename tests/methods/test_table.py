"""Problems × methods with planted solutions: the observed rate is no worse than the proved one."""

import numpy as np
import pytest
from steppers import states

import epszero as ez

RNG = np.random.default_rng(8)
n = 6
ROOT = RNG.normal(size=(n, n))
SKEW = ROOT - ROOT.T
PAYOFF = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])  # rock, paper, scissors: thirds
PLANTED = np.array([0.2, -0.3, 0.5, 0.0, 1.0, -1.0])  # at both ends of the box in the last two entries
NORMAL = np.array([0.0, 0.0, 0.0, 0.0, 0.7, -0.4])


def shifted(H):
    """H(x − x̂) − z with z ∈ N(x̂): x̂ is a zero."""
    return lambda x: H @ (x - PLANTED) - NORMAL


STRONG = 0.5 * np.eye(n) + 0.3 * SKEW
COCOERCIVE = ROOT[:, :3] @ ROOT[:, :3].T / n  # a gradient without curvature in three directions
GAME = np.block([[np.zeros((3, 3)), PAYOFF], [-PAYOFF.T, np.zeros((3, 3))]])
BOX = ez.sets.Box(-np.ones(n), 1.0)
SIMPLICES = [ez.sets.Simplex(dim=3), ez.sets.Simplex(dim=3)]


def game(x):
    return [PAYOFF @ x[1], -PAYOFF.T @ x[0]]


THIRDS = np.full(6, 1 / 3)
PROBLEMS = {  # problem, x⁰, the zero (None: not unique), κ
    "strongly monotone": (ez.Inclusion(BOX, shifted(STRONG)), np.zeros(n), PLANTED, np.linalg.norm(STRONG, 2)),
    "rotation": (ez.Inclusion(BOX, shifted(SKEW)), np.zeros(n), None, np.linalg.norm(SKEW, 2)),
    "cocoercive": (ez.Inclusion(BOX, shifted(COCOERCIVE)), np.zeros(n), None, np.linalg.norm(COCOERCIVE, 2)),
    "non-smooth": (
        ez.Inclusion(ez.functions.L1(0.3 * np.ones(n)), lambda x: STRONG @ (x - PLANTED) - 0.3 * np.sign(PLANTED)),
        np.zeros(n), PLANTED, np.linalg.norm(STRONG, 2),
    ),
    "matrix game": (
        ez.VariationalInequality(game, SIMPLICES), [np.array([0.8, 0.1, 0.1]), np.array([0.1, 0.2, 0.7])],
        THIRDS, np.linalg.norm(GAME, 2),
    ),
}  # fmt: skip
SHARES = {  # the method at a share of 1/κ that its proof takes
    "forward-backward-forward": (ez.ForwardBackwardForward, 0.7),
    "extragradient": (ez.Extragradient, 0.7),
    "past extragradient": (ez.PastExtragradient, 0.45),
    "forward-reflected-backward": (ez.ForwardReflectedBackward, 0.45),
    "projected reflected gradient": (ez.ProjectedReflectedGradient, 0.4),
    "golden ratio": (ez.GoldenRatio, 0.75),
    "extra-anchored gradient": (ez.ExtraAnchoredGradient, 0.5),
    "accelerated reflected gradient": (ez.AcceleratedReflectedGradient, 1 / 12),
    "fast optimistic gradient": (ez.FastOptimisticGradient, 0.24),
    "relaxed extragradient": (lambda g: ez.Relaxed(ez.Extragradient(g), 0.7), 0.7),
    "Anderson": (lambda g: ez.Anderson(ez.Extragradient(g)), 0.7),
}
ANCHORED = ("extra-anchored gradient", "accelerated reflected gradient", "fast optimistic gradient")
K = 400


def flat(point):
    return np.concatenate([np.ravel(leaf) for leaf in point]) if isinstance(point, list) else np.ravel(point)


@pytest.mark.some(6)
@pytest.mark.parametrize("method", SHARES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_rates_are_no_worse_than_proved(name, method):
    problem, x0, zero, kappa = PROBLEMS[name]
    kind, share = SHARES[method]
    g = share / kappa
    _, found = states(problem, kind(g), x0, K)
    residuals = np.array([one.residual for one in found])
    ends = np.stack([flat(one.x if one.point is None else one.point) for one in found])
    if method in ANCHORED:  # O(1/k) at the last iterate: γ(k + 1)‖e‖ ≤ 2.02‖x⁰ − x̂‖ is the constant of Yoon & Ryu
        far = np.linalg.norm(flat(x0) - (PLANTED if zero is None else zero))
        assert (g * np.arange(2, K + 2) * residuals).max() <= 2.02 * far
    else:  # e → 0, and ‖e‖ ≤ 2‖x⁰ − x̂‖/(γ√k) for some iterate up to k
        best = np.minimum.accumulate(residuals)
        far = np.linalg.norm(flat(x0) - (PLANTED if zero is None else zero))
        assert (best * g * np.sqrt(np.arange(1, K + 1))).max() <= 2 * far
        assert residuals[-1] <= 0.05 * residuals[0]
    if zero is not None and method not in ANCHORED:
        assert np.linalg.norm(ends[-1] - zero) <= 1e-2


@pytest.mark.long
def test_on_a_rotation_forward_backward_diverges_as_theory_says():
    """‖x⁺‖² = (1 + γ²)‖x‖² for B(x) = Jx, J a turn by a right angle."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=2), lambda x: turn @ x)
    _, found = states(problem, ez.ForwardBackward(0.3), np.array([1.0, 0.5]), 60)
    sizes = np.array([np.linalg.norm(one.x) for one in found])
    np.testing.assert_allclose(sizes[1:] / sizes[:-1], np.sqrt(1 + 0.3**2), rtol=1e-12)
    for kind, share in SHARES.values():
        _, others = states(problem, kind(share), np.array([1.0, 0.5]), 60)
        assert others[-1].residual < 0.3 * np.linalg.norm([1.0, 0.5])


def test_the_constant_of_extra_anchored_gradient_is_that_of_its_theorem():
    """‖B(x^k)‖² ≤ 260 κ²‖x⁰ − x̂‖²/(k + 1)² at γ = 1/(8κ) (Yoon & Ryu, Thm 2), and nearly so on a rotation."""
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=2), lambda x: turn @ x)
    _, found = states(problem, ez.ExtraAnchoredGradient(1 / 8), np.array([1.0, 0.5]), 300)
    scaled = np.array([one.residual * (k + 2) for k, one in enumerate(found)]) / np.linalg.norm([1.0, 0.5])
    assert 0.8 * np.sqrt(260) <= scaled.max() <= np.sqrt(260)


@pytest.mark.long
def test_fast_forward_backward_has_the_rate_of_its_theorem_and_restarts_make_it_linear():
    Q = np.diag(np.geomspace(1e-3, 1.0, n))
    problem = ez.Minimization(lambda x: 0.5 * (x - PLANTED) @ Q @ (x - PLANTED) - NORMAL @ x, BOX)
    x0 = np.zeros(n)
    value = lambda x: 0.5 * (x - PLANTED) @ Q @ (x - PLANTED) - NORMAL @ (x - PLANTED)  # noqa: E731
    _, plain = states(problem, ez.FastForwardBackward(1.0, restart=False), x0, K)
    gaps = np.array([value(one.point) for one in plain])
    assert (gaps * np.arange(2, K + 2) ** 2).max() <= 2 * np.linalg.norm(x0 - PLANTED) ** 2
    assert gaps.min() >= -1e-12
    _, again = states(problem, ez.FastForwardBackward(1.0), x0, K)
    slow = ez.solve(problem, None, ez.ForwardBackward(1.0), x0=x0, iterations=K)
    assert again[-1].residual < 1e-3 * min(plain[-1].residual, slow.residual)
