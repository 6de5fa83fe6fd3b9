"""One suite over every method: z is in A(x), residuals are honest, zeros are found, stability is bounded or refused."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero import methods
from epszero.methods.stability import Premises, Unstable

pytestmark = pytest.mark.some(3)

METHODS = {
    "forward-backward, backtracking": ez.ForwardBackward(),
    "forward-backward, constant step": ez.ForwardBackward(step=0.15),
    "forward-backward, scheduled": ez.ForwardBackward(step=lambda k: 0.2 - 0.1 / (k + 1.0)),
    "forward-backward, relaxed": ez.ForwardBackward(step=0.2, relaxation=0.7),
    "forward-backward-forward, backtracking": ez.ForwardBackwardForward(),
    "forward-backward-forward, constant step": ez.ForwardBackwardForward(step=0.15),
    "extragradient, backtracking": ez.Extragradient(),
    "adaptive golden ratio": ez.AdaptiveGoldenRatio(),
    "extragradient, scheduled": ez.Extragradient(step=lambda k: 0.12 - 0.05 / (k + 1.0)),
    "past extragradient": ez.PastExtragradient(),
    "forward-reflected-backward": ez.ForwardReflectedBackward(step=0.06),
    "projected reflected gradient": ez.ProjectedReflectedGradient(),
    "golden ratio": ez.GoldenRatio(step=0.1, phi=1.5),
    "extra-anchored gradient": ez.ExtraAnchoredGradient(),
    "accelerated reflected gradient": ez.AcceleratedReflectedGradient(),
    "fast optimistic gradient": ez.FastOptimisticGradient(alpha=4.0),
    "relaxed": ez.Relaxed(ez.ForwardBackwardForward(step=0.12), 0.8),
    "Anderson": ez.Anderson(ez.Extragradient(), memory=3),
    "Douglas–Rachford": ez.DouglasRachford(step=0.4),
    "Davis–Yin": ez.DavisYin(step=0.2, implicit=0.5 * np.eye(4)),
    "loopless variance reduction": ez.LooplessVarianceReduction(5, step=0.1, seed=2),
    "random blocks": ez.RandomBlock(1, step=0.15),
    "asynchronous": ez.Asynchronous(2, step=0.05),
}
ANCHORED = {  # residuals of these fall like 1/k, strongly monotone or not: what they reach in 5000 steps
    "extra-anchored gradient": 5e-3,
    "accelerated reflected gradient": 3e-2,
    "fast optimistic gradient": 1e-3,
}
NOISY = {"mini-batch forward-backward": ez.MiniBatchForwardBackward(8, step=0.1, seed=1)}  # ends near the zero

n = 4
RNG = np.random.default_rng(3)
ROOT = RNG.normal(size=(n, n))
H = ROOT @ ROOT.T / n + np.eye(n) + 0.3 * (ROOT - ROOT.T)  # strongly monotone, not symmetric; ‖H‖ about 4
SAMPLES = ez.Samples(RNG.normal(size=(40, n)) + 1.0)


class Rotated:
    """A maximally monotone A that is no subdifferential: A(x) = Sx with S skew, (Id + γS)⁻¹ in closed form."""

    S = np.kron(np.eye(2), np.array([[0.0, 1.0], [-1.0, 0.0]]))

    def resolvent(self, v, step):
        return jnp.linalg.solve(jnp.eye(n) + step * self.S, v)


SIDES = {
    "whole space": ez.sets.WholeSpace(dim=n),
    "box": ez.sets.Box(np.zeros(n), 0.3),
    "ball": ez.sets.Ball(0.5, dim=n),
    "simplex": ez.sets.Simplex(dim=n),
    "box with budget": ez.sets.BoxBudget(0.0, 1.0, at_least=1.0, at_most=2.0, dim=n),
    "polyhedron": ez.sets.Polyhedron([*np.eye(n), *-np.eye(n), np.ones(n)], [*np.ones(n), *np.zeros(n), 0.7]),
    "l1": ez.functions.L1(0.4 * np.ones(n)),
    "elastic net": ez.functions.ElasticNet(0.4 * np.ones(n), 0.2),
    "l2": ez.functions.L2(0.8),
    "total variation": ez.functions.TotalVariation1D(0.3),
    "max entry": ez.functions.MaxEntry(0.5),
    "log barrier": ez.functions.LogBarrier(0.5),
    "conjugate": ez.functions.Conjugate(ez.functions.Huber(0.7)),
    "resolvent": Rotated(),
}


def B(x, xi):
    return H @ x - xi


FIRST, *OTHERS = METHODS
TYPICAL = ["simplex", "l1", "resolvent"]  # B lives on the whole space, as forward-backward-forward needs
PAIRS = [(FIRST, side) for side in SIDES] + [(method, side) for method in OTHERS for side in TYPICAL]


@pytest.mark.some(8)
@pytest.mark.parametrize(("method", "side"), PAIRS)
def test_z_is_in_A_of_x_and_the_residual_is_what_it_says(method, side):
    A = SIDES[side]
    tol = ANCHORED.get(method, 1e-9)
    solution = ez.solve(ez.Inclusion(A, B), SAMPLES, METHODS[method], x0=np.full(n, 0.25), tol=tol, iterations=5000)
    check = solution.check()
    assert check.in_domain
    assert abs(check.gap) <= 1e-8 * (1 + np.linalg.norm(solution.z))
    e = solution.z + H @ solution.x - SAMPLES.values.mean(axis=0)
    assert np.linalg.norm(e) == pytest.approx(solution.residual, abs=1e-12)
    assert solution.residual <= tol


@pytest.mark.some(3)
@pytest.mark.parametrize("method", METHODS | NOISY)
def test_z_is_in_A_of_x_before_convergence_too(method):
    for K in (0, 1, 5):
        one = (METHODS | NOISY)[method]
        solution = ez.solve(ez.Inclusion(SIDES["l1"], B), SAMPLES, one, x0=np.full(n, 0.25), iterations=K)
        assert abs(solution.check().gap) <= 1e-9
        assert solution.check().residual == pytest.approx(solution.residual, abs=1e-12)


def test_the_membership_test_itself_can_fail():
    solution = ez.solve(ez.Inclusion(SIDES["box"], B), SAMPLES, x0=np.full(n, 0.25))
    A = solution.problem.A
    assert A.gap(solution.x, solution.z) == pytest.approx(0, abs=1e-9)
    assert A.gap(solution.x, -solution.z) > 1e-3
    assert A.gap(np.full(n, 0.1), np.ones(n)) > 1e-3


@pytest.mark.long
def test_all_methods_find_the_same_zero():
    problem = ez.Inclusion(SIDES["simplex"], B)
    tols = {name: ANCHORED.get(name, 1e-10) for name in METHODS}
    answers = {name: ez.solve(problem, SAMPLES, method, tol=tols[name]).x for name, method in METHODS.items()}
    for name, x in answers.items():
        np.testing.assert_allclose(x, answers[FIRST], atol=10 * tols[name])  # μ is 1.0


# -- minimisation ----------------------------------------------------------------------------------------------------

MINIMIZING = {
    "fast forward-backward": ez.FastForwardBackward(),
    "fast forward-backward, no restart": ez.FastForwardBackward(step=0.1, restart=False),
}


def loss(x, xi):
    return 0.5 * x @ (H + H.T) @ x / 2 - xi @ x


@pytest.mark.some(2)
@pytest.mark.parametrize("method", MINIMIZING)
@pytest.mark.parametrize("side", ["simplex", "l1", "box"])
def test_minimisers_too(method, side):
    problem, x0 = ez.Minimization(loss, SIDES[side]), np.full(n, 0.25)
    for more in ({"iterations": 0}, {"iterations": 5}, {"tol": 1e-8, "iterations": 5000}):
        solution = ez.solve(problem, SAMPLES, MINIMIZING[method], x0=x0, **more)
        check = solution.check()
        assert check.in_domain
        assert abs(check.gap) <= 1e-9 * (1 + np.linalg.norm(solution.z))
        e = solution.z + (H + H.T) @ solution.x / 2 - SAMPLES.values.mean(axis=0)
        assert np.linalg.norm(e) == pytest.approx(solution.residual, abs=1e-12)
    np.testing.assert_allclose(solution.x, ez.solve(problem, SAMPLES, x0=x0).x, atol=1e-7)


@pytest.mark.parametrize("method", MINIMIZING)
def test_minimisers_refuse_what_is_no_gradient(method):
    for problem in (ez.Inclusion(SIDES["box"], B), GAME):
        with pytest.raises(ez.InputError, match=r"^method: fast forward-backward is for the gradient"):
            ez.solve(problem, SAMPLES, MINIMIZING[method])


# -- shared constraints: the same contract on strategies and multipliers ---------------------------------------------

COUPLED = {
    "preconditioned, backtracking": ez.PreconditionedForwardBackward(),
    "preconditioned, given steps": ez.PreconditionedForwardBackward(step=0.1, dual_step=0.5),
    "forward-backward-forward": ez.ForwardBackwardForward(),
    "extragradient": ez.Extragradient(),
    "adaptive golden ratio": ez.AdaptiveGoldenRatio(),
    "past extragradient, shared": ez.PastExtragradient(),
    "forward-reflected-backward, shared": ez.ForwardReflectedBackward(),
    "projected reflected gradient, shared": ez.ProjectedReflectedGradient(),
    "golden ratio, shared": ez.GoldenRatio(),
    "extra-anchored gradient, shared": ez.ExtraAnchoredGradient(),
    "accelerated reflected gradient, shared": ez.AcceleratedReflectedGradient(),
    "fast optimistic gradient, shared": ez.FastOptimisticGradient(),
    "relaxed, shared": ez.Relaxed(ez.PreconditionedForwardBackward(step=0.1, dual_step=0.5), 0.9),
    "Anderson, shared": ez.Anderson(ez.PreconditionedForwardBackward(step=0.1, dual_step=0.5)),
    "Douglas–Rachford": ez.DouglasRachford(step=0.5),
    "Condat–Vũ": ez.CondatVu(step=0.1, dual_step=0.5),
    "Chambolle–Pock": ez.ChambollePock(step=0.1, dual_step=0.4, restarts=False),
}
G, b = RNG.normal(size=(2, n)), np.array([-0.4, 0.1])


def split(i):
    """Agent i owns two entries of x and the cost whose gradient is its rows of Hx − ξ."""
    own = slice(2 * i, 2 * i + 2)

    def cost(x, xi):
        whole = jnp.concatenate([x[0], x[1]])
        rows = H[own, own]
        cross = H[own] @ whole - rows @ x[i]
        return 0.5 * x[i] @ (rows + rows.T) @ x[i] / 2 + x[i] @ (cross - xi[own])

    return cost


GAME = ez.Game([split(0), split(1)], [ez.sets.Box(-1, 1, dim=2), ez.sets.Ball(0.8, dim=2)], shared=(G, b))


@pytest.mark.some(8)
@pytest.mark.parametrize("method", COUPLED)
def test_with_shared_constraints_too(method):
    tol = ANCHORED.get(method.removesuffix(", shared"), 1e-9)
    for K in (0, 3, None):
        solution = ez.solve(GAME, SAMPLES, COUPLED[method], iterations=K, tol=None if K is not None else tol)
        check = solution.check()
        assert check.in_domain
        assert (solution.multipliers >= 0).all()
        assert abs(check.gap) <= 1e-9 * (1 + np.linalg.norm(np.concatenate(solution.z)))
        assert check.residual == pytest.approx(solution.residual, abs=1e-12)
    assert (G @ np.concatenate(solution.x) <= b + 10 * tol).all()
    assert solution.multipliers @ (G @ np.concatenate(solution.x) - b) == pytest.approx(0, abs=10 * tol)
    assert solution.multipliers.max() > 0.1
    answer = ez.solve(GAME, SAMPLES, tol=1e-11).x
    np.testing.assert_allclose(np.concatenate(solution.x), np.concatenate(answer), atol=10 * tol)


# -- stability: a bound, or a sentence that says why there is none -----------------------------------------------------

ALL = METHODS | MINIMIZING | COUPLED | NOISY
KNOWN = Premises(R=2.0, mu=0.9, kappa=4.5, theta=0.9 / 4.5**2, diameter=2.0)


@pytest.mark.some(4)
@pytest.mark.parametrize("method", ALL)
def test_stability_is_bounded_or_refused_in_a_sentence(method):
    smooth = ez.Minimization(loss, SIDES["box"]) if method in MINIMIZING else ez.Inclusion(SIDES["box"], B)
    problem, x0 = (GAME, None) if method in COUPLED else (smooth, np.full(n, 0.25))
    settled = ez.solve(problem, SAMPLES, ALL[method], x0=x0, iterations=0).method
    for K in (0, 20):
        try:
            claim = settled.stability(KNOWN, K)
        except Unstable as refusal:
            said = str(refusal)
        else:
            said = claim.because + "."
            assert 0 < claim.mean_difference(80) < claim.mean_difference(40) <= claim.difference(40) < np.inf
        assert len(said) > 10
        assert said.endswith(".")


@pytest.mark.parametrize("method", ALL)
def test_a_method_comes_back_from_its_record(method):
    given = ALL[method]
    record = given.to_record(schedule=[0.1, 0.15] if "scheduled" in method else None)
    again = methods.Method.from_record(json.loads(json.dumps(record)), np.zeros(n))
    assert type(again) is type(given)
    assert again.to_record() == record


def test_every_method_is_in_this_suite():
    public = {m for m in vars(methods).values() if isinstance(m, type) and issubclass(m, methods.Method)}
    assert public - {methods.Method} == {type(method) for method in ALL.values()}
