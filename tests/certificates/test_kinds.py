"""Each kind's ε against a few lines of NumPy written from its claim; and the paper's own numbers."""

import dataclasses
import math

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import H, rows

import epszero as ez
from epszero.certificates import (
    Anytime,
    Bernstein,
    Betting,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    Known,
    McDiarmid,
    MeanDeviation,
    Region,
    RepairedStability,
    SubGaussian,
    Tightest,
    UniformStability,
    VectorStability,
)
from epszero.certificates.uniform_stability import published, strongly_monotone_beta

pytestmark = pytest.mark.some(2)

DELTAS = (0.3, 0.05, 1e-4)
REGION = Region.box(np.zeros(3), np.ones(3))
RHO = math.sqrt(3) / 2
DIAMETER = 0.6 * math.sqrt(3)  # of the box of `line`


def empirical(solution, B=lambda x: H @ x):
    """ê, for the additive inclusion."""
    return solution.z + B(solution.x) - solution.samples.values.mean(axis=0)


@pytest.mark.parametrize("delta", DELTAS)
def test_mean_deviation(run, played, delta):
    by = MeanDeviation(Hoeffding())
    radius = RHO * math.sqrt(2 * math.log(2 / delta) / 40)
    e = np.linalg.norm(empirical(run))
    assert ez.certify(run, delta, by).epsilon == pytest.approx(e + radius, rel=1e-8)
    # All four vehicles pay the same prices, so C is four identities, one above the other: ‖C‖ = 2.
    assert ez.certify(played, delta, by).epsilon == pytest.approx(played.residual + 2 * radius, rel=1e-7)


@pytest.mark.parametrize("bound", [EmpiricalBernstein(), Bernstein(), McDiarmid(), SubGaussian(0.5)])
def test_mean_deviation_takes_the_ball_of_any_bound(run, bound):
    ball = bound.around(run.samples.values, REGION, 0.1)
    expected = np.linalg.norm(run.z + H @ run.x - ball.centre) + ball.radius
    assert ez.certify(run, 0.1, MeanDeviation(bound)).epsilon == pytest.approx(expected, rel=1e-8)


def test_mean_deviation_by_a_box(run):
    box = Betting().around(run.samples.values, REGION, 0.1)
    expected = np.linalg.norm(run.z + H @ run.x - box.centre) + np.linalg.norm(box.radius)
    assert ez.certify(run, 0.1, MeanDeviation(Betting())).epsilon == pytest.approx(expected, rel=1e-8)


def test_mean_deviation_through_features_and_a_map_that_depends_on_x():
    """O(x, ξ) = x + ξ₁²x + ξ₂ξ₃·1: φ(ξ) = (ξ₁², ξ₂ξ₃), C(x) = (x, 1)."""
    f = ez.oracles.Affine(lambda x, f: x + f[0] * x + f[1], lambda xi: jnp.stack([xi[0] ** 2, xi[1] * xi[2]]))
    problem = ez.Inclusion(ez.sets.Box(0.5, 1.0, dim=3), f)
    solution = ez.solve(problem, rows(40, 5), ez.ForwardBackward(step=0.2), iterations=3, x0=np.array([0.6, 1, 0.8]))
    found = ez.certify(solution, 0.1, MeanDeviation(Hoeffding(), support=ez.sets.Box(0.0, 1.0, dim=2)))
    xi = rows(40, 5).values
    mean = np.array([np.mean(xi[:, 0] ** 2), np.mean(xi[:, 1] * xi[:, 2])])
    C = np.stack([solution.x, np.ones(3)], axis=1)
    e = solution.z + solution.x + C @ mean
    radius = math.sqrt(2) / 2 * math.sqrt(2 * math.log(2 / 0.1) / 40)
    assert found.epsilon == pytest.approx(np.linalg.norm(e) + np.linalg.norm(C, 2) * radius, rel=1e-8)


@pytest.mark.parametrize("delta", DELTAS)
def test_hold_out(held, delta):
    m = len(held.holdout)
    assert (m, len(held.samples)) == (24, 36)
    values = held.x + np.tanh(held.x - held.holdout.values)
    rho = math.sqrt(3) * math.sqrt(3 / 8)  # Jung: a set of diameter √3 in R³
    radius = rho * math.sqrt(2 * math.log(2 / delta) / m)
    expected = np.linalg.norm(held.z + values.mean(axis=0)) + radius
    assert ez.certify(held, delta, HoldOut(Hoeffding())).epsilon == pytest.approx(expected, rel=1e-8)


def test_hold_out_with_structure_sees_the_features(run):
    fresh = rows(25, 6)
    expected = np.linalg.norm(run.z + H @ run.x - fresh.values.mean(axis=0))
    expected += RHO * math.sqrt(2 * math.log(2 / 0.1) / 25)
    assert ez.certify(run, 0.1, HoldOut(Hoeffding(), samples=fresh)).epsilon == pytest.approx(expected, rel=1e-8)


def test_anytime(run):
    def at(m):  # stitched: 2^{k+1} for m, δ/((k+1)(k+2)) for δ
        k = int(math.log2(m))
        radius = RHO / m * math.sqrt(2 * 2 ** (k + 1) * math.log(2 * (k + 1) * (k + 2) / 0.1))
        return np.linalg.norm(run.z + H @ run.x - run.samples.values[:m].mean(axis=0)) + radius

    assert ez.certify(run, 0.1, Anytime(Hoeffding())).epsilon == pytest.approx(at(40), rel=1e-8)
    several = ez.certify(run, 0.1, Anytime(Hoeffding(), looks=(31, 36)))
    assert several.epsilon == pytest.approx(min(at(31), at(36), at(40)), rel=1e-8)


def test_dependent(run):
    X = run.samples.values
    left = 0.1 - 12 * 0.001  # every third: 13 of 40
    radius = RHO * math.sqrt(2 * math.log(2 / left) / 13)
    expected = np.linalg.norm(run.z + H @ run.x - X[:37:3].mean(axis=0)) + radius
    thinned = ez.certify(run, 0.1, Dependent(beta={3: 0.001}, bound=Hoeffding()))
    assert thinned.epsilon == pytest.approx(expected, rel=1e-8)
    assert (thinned.terms["gap"], thinned.terms["delta_left"]) == (3.0, pytest.approx(left))
    radius = math.sqrt(3) * (1 + 2 * 0.75) * math.sqrt(2 * math.log(2 / 0.1) / 40)
    by_phi = ez.certify(run, 0.1, Dependent(phi=[0.5, 0.25]))
    assert by_phi.epsilon == pytest.approx(np.linalg.norm(empirical(run)) + radius, rel=1e-8)
    assert ez.certify(run, 0.1, Dependent(phi=0.75)).epsilon == by_phi.epsilon


def test_the_gap_is_the_best_of_all(run):
    rate = lambda gap: 0.5**gap  # noqa: E731
    best = min(
        (math.log(2 / (0.1 - (40 // a - 1) * rate(a))) / (40 // a), a)
        for a in range(1, 41)
        if (40 // a - 1) * rate(a) < 0.1
    )
    assert ez.certify(run, 0.1, Dependent(beta=rate)).terms["gap"] == best[1]


def test_tightest(run):
    kinds = [MeanDeviation(Hoeffding()), MeanDeviation(Betting()), VectorStability()]
    evenly = min(ez.certify(run, 0.1 / 3, kind).epsilon for kind in kinds)
    assert ez.certify(run, 0.1, Tightest(kinds)).epsilon == pytest.approx(evenly, rel=1e-12)
    weighted = [ez.certify(run, 0.1 * w / 10, kind).epsilon for kind, w in zip(kinds, (7, 1, 2), strict=True)]
    assert ez.certify(run, 0.1, Tightest(kinds, [7, 1, 2])).epsilon == pytest.approx(min(weighted), rel=1e-12)


@pytest.mark.parametrize("delta", DELTAS)
def test_vector_stability(run, bent_run, delta):
    log = math.sqrt(math.log(1 / delta) / 80)
    found = ez.certify(run, delta, VectorStability())
    additive = np.linalg.norm(empirical(run)) + math.sqrt(RHO**2 / 40) + math.sqrt(3) * log
    assert found.epsilon == pytest.approx(additive, rel=1e-8)
    R, L, mu = math.sqrt(3), 4.0, 1.0  # L = 2κ
    d, e = R / (mu * 40), bent_run.residual
    width = math.sqrt(R**2 / 2 / 40 + L**2 * d**2 / 2) + L * d + (R + L * 40 * d) * log + L * e / mu
    assert ez.certify(bent_run, delta, VectorStability()).epsilon == pytest.approx(e + width, rel=1e-7)


@pytest.mark.long
def test_vector_stability_with_shared_constraints():
    """‖x − x̂‖ ≤ ‖ê‖/μ is false where constraints are shared, so the run's own stability must serve instead."""
    costs = [lambda x, xi, i=i: jnp.sum(0.5 * x[i] ** 2 - 100 * x[i] + 0.1 * jnp.tanh(xi * x[i])) for i in range(2)]
    game = ez.Game(
        costs, [ez.sets.Box(-5.0, 5.0, dim=1)] * 2, (np.full((1, 2), 0.05), np.zeros(1)),
        declared=ez.declare(mu=0.9, kappa=1.1, R=0.3),
    )  # fmt: skip
    samples = ez.Samples(np.random.default_rng(0).uniform(-1, 1, size=(50, 1)))
    step = ez.PreconditionedForwardBackward(step=0.1, dual_step=5.0)
    solution, end = ez.solve(game, samples, step, iterations=20), ez.solve(game, samples, tol=1e-9)
    found = ez.certify(solution, 0.05, VectorStability())
    away = np.linalg.norm(np.concatenate(solution.x) - np.concatenate(end.x))
    assert away > np.linalg.norm(solution.residual) / 0.9  # what the shorter argument would claim
    assert "exact zero" not in found.by
    assert found.epsilon > ez.certify(dataclasses.replace(solution, iterations=0), 0.05, VectorStability()).epsilon


@pytest.mark.parametrize("delta", DELTAS)
def test_repaired_stability(run, delta):
    gamma, K, s, R = 0.3, 12, 40, math.sqrt(3)
    q = np.linalg.norm(np.eye(3) - gamma * H, 2)
    d = sum(gamma * R * q**k for k in range(K + 1)) / s
    beta = (1 + q) * d
    risk = gamma * np.mean(np.linalg.norm(run.z + H @ run.x - run.samples.values, axis=1))
    bound = risk + beta + (2 * s * beta + gamma * R) * math.sqrt(math.log(1 / delta) / (2 * s))
    found = ez.certify(run, delta, RepairedStability())
    assert found.epsilon == pytest.approx(bound / gamma, rel=1e-6)
    assert found.terms["epsilon_residual"] == pytest.approx(bound, rel=1e-6)


@pytest.mark.parametrize("rule", ["replacement", "removal"])
def test_as_published(run, rule):
    gamma, s, delta = 0.3, 40, 0.05
    mu, kappa = np.linalg.eigvalsh((H + H.T) / 2)[0], np.linalg.norm(H, 2)
    M = ez.audit(run.problem, run.samples).constants["M"].value  # one constant, one value
    tau = math.sqrt(1 - gamma * (2 * mu - gamma * kappa**2))
    beta = 2 * gamma * M * (1 + tau) / (s * (1 - tau))
    losses = gamma * np.linalg.norm(run.z + H @ run.x - run.samples.values, axis=1)
    if rule == "replacement":
        bound = losses.mean() + beta + (s * beta + 2 * gamma * M) * math.sqrt(2 * math.log(1 / delta) / s)
    else:
        bound = losses.mean() + 2 * beta + (4 * s * beta + 2 * gamma * M) * math.sqrt(math.log(1 / delta) / (2 * s))
    found = ez.certify(run, delta, UniformStability(rule))
    assert found.epsilon == pytest.approx(bound / gamma, rel=1e-6)
    assert {"empirical_risk", "beta", "loss_bound", "epsilon_residual"} <= found.terms.keys()
    assert found.terms["largest_loss"] == pytest.approx(losses.max(), rel=1e-8)


def test_known(exact):
    found = ez.certify(exact, 0.05)
    assert isinstance(found.using, Known)
    assert found.epsilon == pytest.approx(np.linalg.norm(exact.z + H @ exact.x - 0.3), rel=1e-12)


# -- the paper's numbers (THEORY section 1, erratum 5) ---------------------------------------------------------------

PAPER = {"mu": 0.0127, "kappa": 0.1159}
GAMMA, M, LOSS, S = 0.02, 39.2192, 24.3852, 3000


def test_the_papers_numbers_by_its_formulas():
    beta = strongly_monotone_beta(GAMMA, PAPER["mu"], PAPER["kappa"], M, S)
    assert S * beta == pytest.approx(12_481, rel=1e-3)
    terms = published("replacement", S, 0.05, beta, LOSS, 0.0)
    assert 563 <= terms["epsilon_residual"] < 564
    assert round(terms["epsilon_residual"] / GAMMA) == 28_152  # 28 151.95
    removal = published("removal", S, 0.05, beta, LOSS, 0.0)["epsilon_residual"]
    tail = math.sqrt(math.log(20) / (2 * S))
    assert removal == pytest.approx(2 * beta + (4 * S * beta + LOSS) * tail, rel=1e-12)


def slowly(x, xi):
    """Slopes between 0.06 and 0.11: within the paper's μ and κ, but not affine, so that what is declared counts."""
    return 0.06 * x + 0.05 * jnp.tanh(x) + xi


def paper_run(**declared):
    box = ez.sets.Box(-1.0, 1.0, dim=1)
    problem = ez.Inclusion(box, slowly, declared=ez.declare(M=M, **declared))
    return ez.solve(problem, ez.Samples(np.zeros((S, 1)), support=box), ez.ForwardBackward(step=GAMMA), iterations=20)


@pytest.mark.long
def test_the_papers_numbers_through_certify():
    found = ez.certify(paper_run(**PAPER), 0.05, UniformStability(loss_bound=LOSS))
    assert found.terms["empirical_risk"] == pytest.approx(0.0, abs=1e-12)
    assert found.terms["beta"] * S == pytest.approx(12_481, rel=1e-3)
    assert found.terms["epsilon_residual"] >= 563
    assert round(found.epsilon) == 28_152
    assert found.epsilon == pytest.approx(found.terms["epsilon_residual"] / GAMMA)
    assert found.distance == pytest.approx(1.0)  # all of the domain: ε/μ is two million
    assert found.verdict == "conditional"


@pytest.mark.long
def test_the_cocoercive_form_grows_with_the_iterations():
    box = ez.sets.Box(-1.0, 1.0, dim=1)
    problem = ez.Inclusion(box, lambda x, xi: 0.01 * x**3 + xi, declared=ez.declare(M=M, theta=5.0))
    samples, step = ez.Samples(np.zeros((S, 1)), support=box), ez.ForwardBackward(step=GAMMA)
    for K in (10, 20):
        found = ez.certify(ez.solve(problem, samples, step, iterations=K), 0.05, UniformStability())
        assert found.terms["beta"] == pytest.approx(4 * GAMMA * M * K / S, rel=1e-12)
        assert found.verdict == "heuristic"  # Lemma 3.7 counts one forward step too few


def test_a_table_of_what_declared_rates_would_promise():
    slow, fast, never = Dependent.table(1000, [lambda gap: 2 * 0.9**gap, [0.0], lambda gap: 1.0])
    assert (fast.gap, fast.kept, fast.width) == (1, 1000, pytest.approx(1.0))
    assert slow.gap > 50
    assert slow.kept == 1000 // slow.gap
    assert slow.width > math.sqrt(slow.gap)
    assert (never.kept, never.width) == (1, pytest.approx(math.sqrt(1000)))
    run = ez.solve(ez.Inclusion(ez.sets.Box(-1.0, 1.0, dim=2), lambda x, xi: x - xi), _thousand())
    found = ez.certify(run, 0.05, Dependent(beta=lambda gap: 2 * 0.9**gap))
    assert (found.terms["gap"], found.terms["delta_left"]) == (slow.gap, slow.delta_left)
    with pytest.raises(ez.InputError, match="samples"):
        Dependent.table(0, [[0.0]])


def _thousand():
    rows = np.random.default_rng(0).uniform(size=(1000, 2))
    return ez.Samples(rows, support=ez.sets.Box(0.0, 1.0, dim=2))
