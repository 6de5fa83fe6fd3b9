"""Certificates by stability for Douglas–Rachford and mini-batches: they hold on data whose truth is known, follow the
formula with each sample's own share, and refuse what holds on average only."""

from types import SimpleNamespace

import numpy as np
import pytest

import epszero as ez
from epszero.certificates import RepairedStability, UniformStability, VectorStability, runs
from epszero.certificates._base import Refused

n, s, DELTA = 2, 40, 0.2
BOX = ez.sets.Box(-1.0, 1.0, dim=n)
H = np.array([[1.0, 0.4], [-0.4, 0.8]])
SUPPORT = ez.sets.Box(-np.ones(n), np.ones(n))
ADDITIVE = ez.Inclusion(BOX, lambda x, xi: H @ x + xi)
SLOPES = ez.Inclusion(
    BOX,
    lambda x, xi: (1.0 + 0.3 * xi) * x + xi,
    declared=ez.declare(mu=0.7, kappa=1.3, R=2.6 * np.sqrt(2), theta=1 / 1.3),
)
METHODS = {
    "Douglas–Rachford": (ADDITIVE, ez.DouglasRachford(0.8)),
    "mini-batches": (ADDITIVE, ez.MiniBatchForwardBackward(8, 0.4, seed=1)),
    "mini-batches, slopes": (SLOPES, ez.MiniBatchForwardBackward(8, 0.4, seed=1)),
}


def true_error(problem, run):
    """E ξ = 0, so B(x) = Hx, or x."""
    return np.linalg.norm(run.z + (H @ run.x if problem is ADDITIVE else run.x))


@pytest.mark.some(4)
@pytest.mark.parametrize("name", METHODS)
def test_they_hold_where_the_truth_is_known(name):
    problem, method = METHODS[name]
    rng = np.random.default_rng(0)
    data = [ez.Samples(np.sign(rng.normal(size=(s, n))), support=SUPPORT) for _ in range(30)]
    solved = ez.solve_many(problem, data, method, x0=np.zeros(n), iterations=15)
    for kind in (RepairedStability(), VectorStability()):
        found = ez.certify_many(solved, DELTA, kind)
        assert all(np.isfinite(one.epsilon) for one in found)
        missed = sum(true_error(problem, run) > one.epsilon for run, one in zip(solved, found, strict=True))
        assert missed <= 2  # these bounds have room: none is expected


@pytest.mark.long
def test_the_formula_takes_each_samples_own_share():
    run = ez.solve(ADDITIVE, ez.Samples(np.ones((s, n)) / 2, support=SUPPORT), METHODS["mini-batches"][1], iterations=6)
    found = ez.certify(run, DELTA, RepairedStability())
    claim = run.method.stability(ez.methods.Premises(found.terms["R"], jacobian=H), 6)
    betas = (1 + np.linalg.norm(np.eye(n) - 0.4 * H, 2)) * claim.differences(s)
    changes = np.linalg.norm(2 * betas + 0.4 * found.terms["R"] / s)
    expected = betas.mean() + changes * np.sqrt(np.log(1 / DELTA) / 2)
    assert found.terms["deviation_of_risk"] == pytest.approx(expected)
    as_if_alike = betas.mean() + (2 * s * betas.mean() + 0.4 * found.terms["R"]) * np.sqrt(np.log(1 / DELTA) / (2 * s))
    assert expected > as_if_alike * 1.01  # the expectation over the seed would be too small


@pytest.mark.long
def test_douglas_rachford_takes_the_slope_of_a_forward_step_and_not_its_own_q():
    run = ez.solve(ADDITIVE, ez.Samples(np.ones((s, n)) / 2, support=SUPPORT), ez.DouglasRachford(3.0), iterations=6)
    found = ez.certify(run, DELTA, RepairedStability())
    claim = run.method.stability(ez.methods.Premises(found.terms["R"], jacobian=H), 6)
    ahead = np.linalg.norm(np.eye(n) - 3.0 * H, 2)
    assert ahead > 1.5 > claim.q[-1]
    assert found.terms["beta"] == pytest.approx((1 + ahead) * claim.difference(s))


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("kind", "problem", "method", "said"),
    [
        (UniformStability(), ADDITIVE, ez.DouglasRachford(0.8), "plain forward-backward: pass"),
        (RepairedStability(), ADDITIVE, ez.DavisYin(0.8, np.eye(n)), "and Douglas–Rachford"),
        (RepairedStability(), SLOPES, ez.DouglasRachford(0.8), "which p = J"),
    ],
)
def test_what_is_not_proved_is_refused(kind, problem, method, said):
    run = ez.solve(problem, ez.Samples(np.ones((s, n)) / 2, support=SUPPORT), method, x0=np.zeros(n), iterations=3)
    found = ez.certify(run, DELTA, kind)
    assert found.epsilon == np.inf
    assert said in str(found)


@pytest.mark.some(2)
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_stability_on_average_is_not_taken_for_sure(monkeypatch, blocks):
    game = ez.Game([lambda x, xi, i=i: x[i] @ x[i] + xi[i] * x[i].sum() for i in (0, 1)], [BOX] * 2)
    run = ez.solve(game, ez.Samples(np.ones((s, n)) / 2), ez.RandomBlock(blocks, 0.3), iterations=5)
    how = SimpleNamespace(fixed=True, method=run.method, iterations=5)
    monkeypatch.setattr(runs, "premises", lambda case, noise: ez.methods.Premises(6.0, theta=0.5))
    case = SimpleNamespace(samples=[run.samples], run=how)
    if blocks == 2:
        assert runs.stability(case, None).difference(s) > 0
        return
    with pytest.raises(Refused, match=r"on average over its random choices.*MeanDeviation"):
        runs.stability(case, None)
