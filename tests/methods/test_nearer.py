"""How near methods with a memory come to their zeros: attacked at planted zeros, with twins that are convicted."""

import jax
import numpy as np
import pytest

import epszero as ez
from epszero.methods.stability import Premises, Unstable

STEPS, TRIALS = 25, 40
LOOKS = (0, 1, 2, 5, 12, 24)  # K
METHODS = {  # the method, and the range of γκ that its proof takes
    "forward-reflected-backward": (ez.ForwardReflectedBackward, 0.5),
    "projected reflected gradient": (ez.ProjectedReflectedGradient, 0.5),
    "past extragradient": (ez.PastExtragradient, 0.5),
    "golden ratio": (ez.GoldenRatio, (1 + 5**0.5) / 4),
    "fast forward-backward": (lambda g: ez.FastForwardBackward(g, restart=False), 1.0),
}
TIGHT = {  # the largest distance found, over the claim
    "forward-reflected-backward": 0.9,
    "projected reflected gradient": 0.9,
    "past extragradient": 0.7,
    "golden ratio": 0.2,
    "fast forward-backward": 0.3,
}


def planted(rng, gradient):
    """H, b, a box and a point x̂ of it with 0 ∈ N(x̂) + Hx̂ + b; x⁰ in the box."""
    n = int(rng.integers(1, 4))
    root = rng.normal(size=(n, n))
    skew = 0.0 if gradient else 10 ** rng.uniform(-1, 1)
    H = 10 ** rng.uniform(-2, 0) * np.eye(n) + rng.choice([0.0, 0.3]) * root @ root.T + skew * (root - root.T)
    half = np.where(rng.random(n) < 0.5, 1e6, rng.uniform(0.05, 1, n))
    zero = rng.uniform(-1, 1, n) * np.minimum(half, 1.0)
    at = rng.random(n) < 0.3
    zero[at] = half[at]
    normal = np.where(zero == half, rng.exponential(size=n), 0.0)
    x0 = np.clip(zero + rng.normal(size=n), -half, half)
    return H, -H @ zero - normal, half, zero, x0


def walk(name, g, J, F, x0):
    """The outputs of the published iterations, in plain NumPy."""
    x = y = before = bar = x0
    t, phi = 1.0, (1 + 5**0.5) / 2
    for _ in range(STEPS):
        if name == "forward-reflected-backward":
            x, before = J(x - 2 * g * F(x) + g * F(before)), x
        elif name == "projected reflected gradient":
            x, before = J(x - g * F(2 * x - before)), x
        elif name == "past extragradient":
            x = J(x - g * F(y))
            y = J(x - g * F(y))
        elif name == "golden ratio":
            bar = ((phi - 1) * x + bar) / phi
            x = J(bar - g * F(x))
        else:
            after = J(y - g * F(y))
            t, old = (1 + np.sqrt(1 + 4 * t**2)) / 2, t
            y = after + (old - 1) / t * (after - x)
            x = after
        yield y if name == "past extragradient" else x


def settled(kind, g, n, gradient):
    problem = ez.Minimization(lambda x: x @ x, ez.sets.Box(-np.ones(n), 1.0)) if gradient else None
    problem = problem or ez.Inclusion(ez.sets.Box(-np.ones(n), 1.0), lambda x: x)
    with jax.enable_x64(True):
        return kind(g).prepared(problem, np.zeros(n))


def ratios(name):
    """Distances over claims, for all trials and steps."""
    rng = np.random.default_rng(11)
    kind, most = METHODS[name]
    gradient = name == "fast forward-backward"
    for _ in range(TRIALS):
        H, b, half, zero, x0 = planted(rng, gradient)
        mu, kappa = np.linalg.eigvalsh((H + H.T) / 2)[0], np.linalg.norm(H, 2)
        g, far = most * rng.uniform(0.05, 0.999) / kappa, np.linalg.norm(x0 - zero)
        facts = Premises(0.0, mu, kappa, jacobian=H, diameter=far)
        method = settled(kind, g, len(b), gradient)
        run = walk(name, g, lambda v, half=half: np.clip(v, -half, half), lambda x, H=H, b=b: H @ x + b, x0)
        for k, x in enumerate(run):
            away = np.linalg.norm(x - zero)
            if far < 1e-3 or away < 1e-10 * far:
                break
            if k not in LOOKS:
                continue
            yield away / far, method.stability(facts, k).extra / 2 / far, k


@pytest.mark.parametrize("name", METHODS)
def test_runs_come_as_near_as_claimed_and_twins_are_convicted(name):
    found = list(ratios(name))
    assert len(found) > 2 * TRIALS
    assert max(away / claim for away, claim, _ in found) <= 1 + 1e-9
    assert max(away / claim for away, claim, k in found if k > 0) >= TIGHT[name]
    if TIGHT[name] > 0.5:
        assert any(away > claim**2 for away, claim, k in found if k > 0 and claim < 1)  # with ρ² for ρ
    else:
        assert any(away > claim / 6 for away, claim, k in found if k > 0)


@pytest.mark.long
def test_the_known_step_is_the_one_with_the_least_factor():
    H = np.array([[0.5, 2.0], [-2.0, 0.5]])
    problem = ez.Inclusion(ez.sets.Box(-np.ones(2), 1.0), lambda x: H @ x)
    for kind, most in ((ez.ForwardReflectedBackward, 0.5), (ez.PastExtragradient, 0.5), (ez.GoldenRatio, 0.809)):
        chosen = ez.solve(problem, None, kind(), x0=np.ones(2), iterations=0)
        kappa = np.linalg.norm(H, 2)
        assert 0.05 * most / kappa < chosen.step < most / kappa
        claims = {
            share: ez.solve(problem, None, kind(share * most / kappa), x0=np.ones(2), iterations=0)
            .method.stability(Premises(0.0, 0.5, kappa, diameter=1.0), 400)
            .extra
            for share in (0.2, 0.5, 0.95)
        }
        own = chosen.method.stability(Premises(0.0, 0.5, kappa, diameter=1.0), 400).extra
        assert own <= min(claims.values()) * 1.5


SPACE = ez.sets.WholeSpace(dim=2)
KNOWN = Premises(1.0, mu=0.5, kappa=1.0, diameter=2.0)
REFUSED = {
    "restarts": (lambda: ez.FastForwardBackward(0.5), KNOWN, "Restarts depend on the data"),
    "domain only": (lambda: ez.FastForwardBackward(0.5, restart=False), KNOWN, "which y may leave"),
    "not affine": (lambda: ez.ProjectedReflectedGradient(0.3), KNOWN, "where B is affine"),
    "too long": (lambda: ez.ForwardReflectedBackward(0.6), KNOWN, "must be below 1/2"),
    "too long, past": (lambda: ez.PastExtragradient(0.6), KNOWN, "must be below 1/2"),
    "too long, golden": (lambda: ez.GoldenRatio(0.9), KNOWN, "must be below φ/2"),
    "merely monotone": (lambda: ez.GoldenRatio(0.3), Premises(1.0, mu=0.0, kappa=1.0, diameter=2.0), "μ > 0"),
    "anchored": (lambda: ez.ExtraAnchoredGradient(0.3), KNOWN, "No stability bound is known"),
    "fast": (lambda: ez.FastOptimisticGradient(0.2), KNOWN, "No stability bound is known"),
    "reflected": (lambda: ez.AcceleratedReflectedGradient(0.05), KNOWN, "No stability bound is known"),
    "Anderson": (lambda: ez.Anderson(ez.ForwardBackward(0.5)), KNOWN, "No stability bound is known"),
    "relaxed": (lambda: ez.Relaxed(ez.Extragradient(0.5), 0.5), KNOWN, "relaxed, no bound is known"),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", REFUSED)
def test_where_nothing_is_known_the_certificates_for_any_algorithm_are_named(name):
    make, facts, said = REFUSED[name]
    problem = ez.Minimization(lambda x: 0.5 * x @ x, ez.sets.Box(-np.ones(2), 1.0))
    method = ez.solve(problem, None, make(), x0=np.zeros(2), iterations=0).method
    with pytest.raises(Unstable, match=said) as refusal:
        method.stability(facts, 10)
    assert "MeanDeviation, HoldOut or AtTheTruth of ez.certificates" in str(refusal.value)
