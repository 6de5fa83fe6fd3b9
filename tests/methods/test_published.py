"""Each method against its published iteration, written in plain NumPy, and special cases iterate for iterate."""

import jax.numpy as jnp
import numpy as np
import pytest
from steppers import points, states

import epszero as ez

n, K = 4, 25
RNG = np.random.default_rng(5)
ROOT = RNG.normal(size=(n, n))
SKEW, SHIFT = 0.6 * (ROOT - ROOT.T), RNG.normal(size=n)
KAPPA = float(np.linalg.norm(SKEW, 2)) + 0.9
X0 = np.array([0.3, -0.2, 0.5, 0.1])
GOLDEN = (1 + 5**0.5) / 2


def F(x):
    """Monotone, not affine, and far from cocoercive."""
    return 0.2 * x + 0.7 * np.arctan(x) + SKEW @ x + SHIFT


def traced(x):
    return 0.2 * x + 0.7 * jnp.arctan(x) + SKEW @ x + SHIFT


def clip(v, step):
    return np.clip(v, -0.4, 0.6)


def soften(v, step):
    return np.sign(v) * np.maximum(np.abs(v) - 0.3 * step, 0.0)


def keep(v, step):
    return v


SIDES = {
    "box": (ez.sets.Box(np.full(n, -0.4), 0.6), clip),
    "l1": (ez.functions.L1(0.3 * np.ones(n)), soften),
    "free": (ez.sets.WholeSpace(dim=n), keep),
}


# -- the published iterations -----------------------------------------------------------------------------------------


def popov(J, g):
    """Popov (1980), eq. (2)-(3)."""
    x = y = X0
    for _ in range(K):
        x = J(x - g * F(y), g)
        y = J(x - g * F(y), g)
        yield y


def malitsky_tam(J, g):
    """Malitsky & Tam (2020), eq. (2.2) with one step."""
    x = before = X0
    for _ in range(K):
        x, before = J(x - g * F(x) - g * (F(x) - F(before)), g), x
        yield x


def reflected(J, g):
    """Malitsky (2015), eq. (1.4): F at 2x − x⁻."""
    x = before = X0
    for _ in range(K):
        x, before = J(x - g * F(2 * x - before), g), x
        yield x


def yoon_ryu(J, g):
    """Yoon & Ryu (2021), EAG-C, with resolvents."""
    x = X0
    for k in range(K):
        half = J(x + (X0 - x) / (k + 2) - g * F(x), g)
        x = J(x + (X0 - x) / (k + 2) - g * F(half), g)
        yield x


def cai_zheng(J, g):
    """Cai & Zheng (2023), (ARG)."""
    before, x = X0, J(X0 - g * F(X0), g)
    yield x
    for k in range(1, K):
        half = 2 * x - before + (X0 - x) / (k + 1) - (X0 - before) / k
        x, before = J(x - g * F(half) + (X0 - x) / (k + 1), g), x
        yield x


def sedlmayer(J, g, alpha=3.0):
    """Sedlmayer, Nguyen & Boţ (2023), Algorithm 1, from z⁰ = z̄⁰ = x⁰ and a forward-backward step with its normal."""
    before, last = X0, X0
    x = J(X0 - g * F(X0), g)
    xi = (X0 - x) / g - F(X0)
    yield x
    for k in range(1, K):
        bar = x + (1 - alpha / (k + alpha)) * (x - before) - alpha * g / (k + alpha) * (F(last) + xi)
        step = g * (1 + k / (k + alpha))
        inside = F(bar) - F(last) - xi
        x, before = J(bar - step * inside, step), x
        xi = (k + alpha) / (g * (2 * k + alpha)) * (bar - x) - inside
        last = bar
        yield x


def bot(J, g, alpha=3.0):
    """Boţ, Csetnek & Nguyen (2025), Algorithm 2, with s = 2γ: no A."""
    s = 2 * g
    before, last, x = X0, X0, X0 - g * F(X0)
    yield x
    for k in range(1, K):
        bar = x + (1 - alpha / (k + alpha)) * (x - before) - alpha * s / (2 * (k + alpha)) * F(last)
        x, before = bar - s / 2 * (1 + k / (k + alpha)) * (F(bar) - F(last)), x
        last = bar
        yield x


def graal(J, g, phi=GOLDEN):
    """Malitsky (2020), eq. (8)-(9)."""
    x = bar = X0
    for _ in range(K):
        bar = ((phi - 1) * x + bar) / phi
        x = J(bar - g * F(x), g)
        yield x


PUBLISHED = {
    "past extragradient": (ez.PastExtragradient, 0.45, popov),
    "forward-reflected-backward": (ez.ForwardReflectedBackward, 0.45, malitsky_tam),
    "projected reflected gradient": (ez.ProjectedReflectedGradient, 0.4, reflected),
    "extra-anchored gradient": (ez.ExtraAnchoredGradient, 0.5, yoon_ryu),
    "accelerated reflected gradient": (ez.AcceleratedReflectedGradient, 1 / 12, cai_zheng),
    "fast optimistic gradient": (ez.FastOptimisticGradient, 0.24, sedlmayer),
    "golden ratio": (ez.GoldenRatio, 0.8, graal),
}
CASES = [(name, side) for name in PUBLISHED for side in ("box", "l1")] + [("fast optimistic gradient", "free")]


@pytest.mark.some(4)
@pytest.mark.parametrize(("name", "side"), CASES)
def test_iterates_are_the_published_ones_and_their_elements_true(name, side):
    kind, share, published = PUBLISHED[name]
    (A, J), g = SIDES[side], share / KAPPA
    problem = ez.Inclusion(A, traced)
    _, found = states(problem, kind(g), X0, K)
    by_hand = list((bot if side == "free" else published)(J, g))
    assert len(by_hand) == K
    for state, x in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(state.x, x, atol=1e-12)
        assert problem.A.in_domain(state.x)
        assert abs(problem.A.gap(state.x, state.z)) <= 1e-10
        np.testing.assert_allclose(state.Bx, F(x), atol=1e-12)
        assert state.residual == pytest.approx(np.linalg.norm(state.z + F(state.x)), abs=1e-12)
    assert np.abs(np.diff(by_hand, axis=0)).max() > 1e-3  # it moves


def wrong_reflection(J, g):
    x = before = X0
    for _ in range(K):
        x, before = J(x - g * F(2 * x + before), g), x
        yield x


def wrong_optimism(J, g, alpha=3.0):
    before, last, x = X0, X0, J(X0 - g * F(X0), g)
    xi = (X0 - x) / g - F(X0)
    yield x
    for k in range(1, K):
        bar = x + k / (k + alpha) * (x - before) - alpha * g * (F(last) + xi)  # without 1/(k + α)
        step, inside = g * (1 + k / (k + alpha)), F(bar) - F(last) - xi
        x, before = J(bar - step * inside, step), x
        xi, last = (bar - x) / step - inside, bar
        yield x


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("projected reflected gradient", wrong_reflection), ("fast optimistic gradient", wrong_optimism)],
)
def test_updates_that_others_got_wrong_would_be_noticed(name, wrong):
    kind, share, _ = PUBLISHED[name]
    (A, J), g = SIDES["l1"], share / KAPPA
    found = points(ez.Inclusion(A, traced), kind(g), X0, K)
    assert np.abs(found - np.stack(list(wrong(J, g)))).max() > 1e-2


# -- minimisation -----------------------------------------------------------------------------------------------------

Q = ROOT @ ROOT.T / n + np.diag([0.01, 0.02, 0.05, 0.1])
LARGEST = float(np.linalg.norm(Q, 2))


def loss(x):
    return 0.5 * x @ Q @ x + SHIFT @ x


def fista(J, g, restart):
    """Beck & Teboulle (2009), eq. (4.1)-(4.3); restarts as O'Donoghue & Candès (2015)."""
    x = y = X0
    t = 1.0
    for _ in range(60):
        x_next = J(y - g * (Q @ y + SHIFT), g)
        if restart and (y - x_next) @ (x_next - x) > 0:
            t = 1.0
        t_next = (1 + np.sqrt(1 + 4 * t**2)) / 2
        y = x_next + (t - 1) / t_next * (x_next - x)
        x, t = x_next, t_next
        yield x


@pytest.mark.some(3)
@pytest.mark.parametrize("restart", [True, False])
@pytest.mark.parametrize("side", ["box", "l1"])
def test_fast_forward_backward_is_fista(side, restart):
    A, J = SIDES[side]
    g = 1 / LARGEST
    problem = ez.Minimization(loss, A)
    _, found = states(problem, ez.FastForwardBackward(g, restart=restart), X0, 60)
    by_hand = list(fista(J, g, restart))
    for state, x in zip(found, by_hand, strict=True):
        np.testing.assert_allclose(state.point, x, atol=1e-11)
        assert abs(problem.A.gap(state.point, state.z)) <= 1e-10
        assert state.residual == pytest.approx(np.linalg.norm(state.z + Q @ x + SHIFT), abs=1e-10)
    other = list(fista(J, g, not restart))
    assert side == "box" or np.abs(np.subtract(by_hand, other)).max() > 1e-6  # the restart happens


# -- special cases, iterate for iterate -------------------------------------------------------------------------------


def optimistic(g):
    x = before = X0
    for _ in range(K):
        x, before = x - 2 * g * F(x) + g * F(before), x
        yield x


def free(kind, *arguments, **more):
    return points(ez.Inclusion(SIDES["free"][0], traced), kind(*arguments, **more), X0, K)


def test_without_A_methods_are_their_free_forms():
    g = 0.4 / KAPPA
    x, descent = X0, []
    for _ in range(K):
        x = x - g * F(x)
        descent.append(x)
    np.testing.assert_allclose(free(ez.ForwardBackward, g), descent, atol=1e-12)
    np.testing.assert_allclose(free(ez.ForwardReflectedBackward, g), list(optimistic(g)), atol=1e-12)
    # Popov's y follows optimistic gradient: y⁺ = x⁺ − γF(y) with x⁺ = x − γF(y) and y = x − γF(y⁻)
    y = free(ez.PastExtragradient, g)
    direct, before, now = [], F(X0), y[0]
    for _ in range(K - 1):
        now, before = now - 2 * g * F(now) + g * before, F(now)
        direct.append(now)
    np.testing.assert_allclose(y[1:], direct, atol=1e-12)


def affine(x):
    return SKEW @ x + 0.3 * x + SHIFT


@pytest.mark.parametrize("side", ["box", "l1"])
def test_for_affine_operators_both_reflections_are_one(side):
    problem = ez.Inclusion(SIDES[side][0], affine)
    one = points(problem, ez.ForwardReflectedBackward(0.3 / KAPPA), X0, K)
    np.testing.assert_allclose(points(problem, ez.ProjectedReflectedGradient(0.3 / KAPPA), X0, K), one, atol=1e-12)


def test_as_phi_falls_to_one_the_golden_ratio_stands_on_its_anchor():
    """x̄ → x⁰, so x⁺ = J(x⁰ − γF(x)): Picard's iteration for the resolvent of A + F at x⁰."""
    (A, J), g = SIDES["box"], 0.3 / KAPPA
    found = points(ez.Inclusion(A, traced), ez.GoldenRatio(g, phi=1 + 1e-12), X0, K)
    x, picard = X0, []
    for _ in range(K):
        x = J(X0 - g * F(x), g)
        picard.append(x)
    np.testing.assert_allclose(found, picard, atol=1e-9)


PLAIN = {
    "forward-backward": ez.ForwardBackward(0.1 / KAPPA),
    "forward-backward-forward": ez.ForwardBackwardForward(0.5 / KAPPA),
    "extragradient": ez.Extragradient(0.5 / KAPPA),
}


@pytest.mark.parametrize("name", PLAIN)
def test_wrappers_of_nothing_are_the_method(name):
    problem = ez.Inclusion(SIDES["l1"][0], traced)
    alone = points(problem, PLAIN[name], X0, K)
    np.testing.assert_array_equal(points(problem, ez.Relaxed(PLAIN[name], 1.0), X0, K), alone)
    np.testing.assert_array_equal(points(problem, ez.Anderson(PLAIN[name], memory=0), X0, K), alone)


def test_relaxed_forward_backward_is_the_one_with_its_own_relaxation():
    problem, g = ez.Inclusion(SIDES["l1"][0], traced), 0.2 / KAPPA
    own = points(problem, ez.ForwardBackward(g, relaxation=0.6), X0, K)
    np.testing.assert_allclose(points(problem, ez.Relaxed(ez.ForwardBackward(g), 0.6), X0, K), own, atol=1e-14)


def by_hand_anderson(J, g, memory):
    """Walker & Ni (2011), eq. (2.2), with the safeguard: back to T(x) of the last point that was kept."""

    def T(x):
        return J(x - g * (Q @ x + SHIFT), g)

    def residual(x, Tx):
        return np.linalg.norm((x - Tx) / g - (Q @ x + SHIFT) + Q @ Tx + SHIFT)

    x, ahead, least, kept, output = X0, False, np.inf, [], None
    for _ in range(K):
        Tx = T(x)
        r = residual(x, Tx)
        if ahead and r > 0.999 * least:
            x, ahead = kept[-1][1], False
        else:
            kept, least, output = [*kept, (x, Tx)][-memory - 1 :], min(least, r), Tx
            f = np.array([b - a for a, b in kept])
            x, ahead = Tx, len(kept) > 1
            if ahead:
                c = np.linalg.lstsq(np.diff(f, axis=0).T, f[-1], rcond=None)[0]
                x = Tx - c @ np.diff([b for _, b in kept], axis=0)
        yield output


@pytest.mark.long
def test_anderson_is_the_published_iteration_with_its_safeguard():
    (A, J), g = SIDES["l1"], 1 / LARGEST
    found = points(ez.Minimization(loss, A), ez.Anderson(ez.ForwardBackward(g), memory=2), X0, 12)
    by_hand = np.stack(list(by_hand_anderson(J, g, 2)))[:12]
    np.testing.assert_allclose(found, by_hand, atol=1e-7)


@pytest.mark.long
def test_anderson_never_ends_above_what_it_kept_and_needs_fewer_steps():
    problem, g = ez.Minimization(loss, SIDES["l1"][0]), 1 / LARGEST
    _, found = states(problem, ez.Anderson(ez.ForwardBackward(g)), X0, 60)
    plain = ez.solve(problem, None, ez.ForwardBackward(g), x0=X0, tol=1e-9)
    ahead = ez.solve(problem, None, ez.Anderson(ez.ForwardBackward(g)), x0=X0, tol=1e-9)
    assert ahead.iterations < plain.iterations / 4
    np.testing.assert_allclose(ahead.x, plain.x, atol=1e-6)
    assert min(one.residual for one in found) == found[-1].residual
