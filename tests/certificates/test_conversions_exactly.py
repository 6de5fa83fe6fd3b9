"""What follows from ε, against the formulas of docs/theory.md written down with matrices: equal to many digits."""

import itertools
import math
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.certificates._base import Finding
from epszero.certificates.agents import curvatures, reach, slack_of, support_savings, uncertain_savings
from epszero.certificates.case import Case
from epszero.certificates.consequences import cost_gap, distance, exploitability
from epszero.certificates.residuals import Residuals
from epszero.certificates.shared import multiplier_slack
from epszero.facts import Gram

RNG = np.random.default_rng(0)
BENDS = [np.array([[2.0, 0.3], [0.3, 1.0]]), np.array([[0.7]])]
CROSS = np.array([[0.2], [-0.1]])
BOXES = [ez.sets.Box(np.array([-1.0, -2.0]), np.array([1.0, 0.5])), ez.sets.Box(np.array([-0.5]), np.array([3.0]))]
ALIKE = [np.diag([1.0, 2.0]), np.diag([0.5, 0.25])]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def unequal():
    """Two agents with two numbers and with one: ½x_iᵀH_ix_i + x_1ᵀKx_2 + ⟨ξ_i, x_i⟩."""
    costs = [
        lambda x, xi: 0.5 * x[0] @ BENDS[0] @ x[0] + x[0] @ CROSS @ x[1] + xi[:2] @ x[0],
        lambda x, xi: 0.5 * x[1] @ BENDS[1] @ x[1] + 0.5 * x[0] @ CROSS @ x[1] + xi[2:] @ x[1],
    ]
    return ez.Game(costs, BOXES)


def alike():
    costs = [lambda x, xi, i=i: 0.5 * x[i] @ ALIKE[i] @ x[i] + 0.2 * x[0] @ x[1] + xi @ x[i] for i in range(2)]
    return ez.Game(costs, [ez.sets.Box(-1.0, 1.0, dim=2), ez.sets.Box(-0.5, 2.0, dim=2)])


def case_of(problem, width):
    samples = ez.Samples(np.random.default_rng(1).uniform(size=(20, width)), support=ez.sets.Box(0.0, 1.0, dim=width))
    return Case.of(ez.solve(problem, samples, ez.ForwardBackward(step=0.2), iterations=3))


@pytest.fixture(scope="module")
def two():
    with jax.enable_x64(True):
        return case_of(unequal(), 3)


@pytest.fixture(scope="module")
def same():
    with jax.enable_x64(True):
        return case_of(alike(), 2)


def sets_of(n, seed):
    rng = np.random.default_rng(seed)
    C, centre = rng.normal(size=(n, 3)), 0.3 * rng.normal(size=n)
    gram = Gram.of(C)
    return [
        Residuals.ball(centre, 0.4),
        Residuals(centre, np.array([0.4]), None, C, gram),
        Residuals(centre, np.array([0.4, 0.1, 0.2]), np.arange(3), C, gram),
        Residuals(centre, np.array([0.4, 0.1]), np.array([0, 0, 1]), C, gram),
    ]


def spread_of(residuals, T):
    """At least sup ‖TCv‖, by the formulas of `largest`."""
    if residuals.map is None:
        return residuals.radii[0] * np.linalg.norm(T, 2)
    K = (T @ residuals.map).T @ (T @ residuals.map)
    if residuals.group is None:
        return residuals.radii[0] * math.sqrt(np.linalg.eigvalsh(K)[-1])
    parts = [np.flatnonzero(residuals.group == k) for k in range(len(residuals.radii))]
    pairs = itertools.product(range(len(parts)), repeat=2)
    r, D = residuals.radii, residuals.radii[residuals.group]
    total = sum(r[a] * r[b] * np.linalg.norm(K[np.ix_(parts[a], parts[b])], 2) for a, b in pairs)
    return math.sqrt(min(total, len(r) * np.linalg.eigvalsh(K * np.outer(D, D))[-1]))


def root(M):
    values, vectors = np.linalg.eigh(M)
    return vectors @ np.diag(values**-0.5) @ vectors.T


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize("name", ["two", "same"])
def test_savings_by_curvature(name, kind, request):
    case = request.getfixturevalue(name)
    bends, n = (BENDS, 3) if name == "two" else (ALIKE, 4)
    residuals = sets_of(n, 7)[kind]
    known = curvatures(case)
    ends = [2, 3] if name == "two" else [2, 4]
    picks = [np.eye(n)[: ends[0]], np.eye(n)[ends[0] :]]
    whole = np.zeros((n, n))
    each, plain = [], []
    for pick, M in zip(picks, bends, strict=True):
        T = root(M) @ pick
        whole += pick.T @ root(M) @ pick
        each.append((np.linalg.norm(T @ residuals.centre) + spread_of(residuals, T)) ** 2 / 2)
        plain.append(spread_of(residuals, pick))
    far = [
        math.sqrt(sum(max(u - v, v - w) ** 2 for v, w, u in zip(np.ravel(x), low, high, strict=True)))
        for x, low, high in zip(case.x, *corners(case), strict=True)
    ]
    np.testing.assert_allclose(reach(case, case.x), far)
    uncertain = 0.4 * np.array(far)
    if residuals.map is not None:  # the largest over the corners of each box, which is less than by its farthest point
        ways = [
            np.array([np.ravel(x) - y for y in product(*zip(low, high, strict=True))]) @ pick @ residuals.map
            for x, low, high, pick in zip(case.x, *corners(case), picks, strict=True)
        ]
        uncertain = np.array([np.max(residuals.against(own)) for own in ways])
        assert (uncertain <= np.array(plain) * far * (1 + 1e-9)).all()
    np.testing.assert_allclose(uncertain_savings(case, known, residuals), uncertain)
    F = np.split(residuals.centre - case.z, [2])
    gaps = [
        sum(f * x - min(f * a, f * b) for f, x, a, b in zip(own, np.ravel(x), low, high, strict=True))
        for own, x, low, high in zip(F, case.x, *corners(case), strict=True)
    ]
    np.testing.assert_allclose(support_savings(case, known, residuals), np.maximum(gaps, 0) + uncertain, rtol=1e-6)
    found, total = exploitability(case, Finding(residuals, ""))
    expected = np.minimum(each, np.maximum(gaps, 0) + uncertain)
    np.testing.assert_allclose(found.value, expected + case.inexactness, rtol=1e-6, atol=1e-9)
    together = (np.linalg.norm(whole @ residuals.centre) + spread_of(residuals, whole)) ** 2 / 2
    assert total.value == pytest.approx(min(expected.sum(), together), rel=1e-6, abs=1e-8)
    assert slack_of(case) == 0.0


def corners(case):
    parts = case.problem.strategies.parts
    lows, highs = ([np.broadcast_to(getattr(part, side), np.shape(x)) for part, x in zip(parts, case.x, strict=True)]
                   for side in ("lower", "upper"))  # fmt: skip
    return lows, highs


def test_several_sets_give_the_least_of_each(two):
    sets = tuple(sets_of(3, 8))
    found, total = exploitability(two, Finding(sets[0], "", alternatives=sets[1:]))
    alone = [exploitability(two, Finding(one, "")) for one in sets]
    np.testing.assert_allclose(found.value, np.min([one[0].value for one in alone], axis=0), rtol=1e-9)
    assert total.value <= min(one[1].value for one in alone) + 1e-12


@pytest.mark.parametrize("kind", range(4))
def test_the_distance_by_the_s_lemma(two, kind):
    residuals = sets_of(3, 9)[kind]
    J = np.block([[BENDS[0], CROSS], [0.5 * CROSS.T, BENDS[1]]])
    H = (J + J.T) / 2
    mu = np.linalg.eigvalsh(H)[0]
    epsilon = np.linalg.norm(residuals.centre) + spread_of(residuals, np.eye(3))
    assert residuals.epsilon == pytest.approx(epsilon)
    tried = []
    for nu in (1 + np.exp(np.linspace(-8, 8, 81))) / mu:
        T = root(nu * H - np.eye(3))
        tried.append(nu / 2 * (np.linalg.norm(T @ residuals.centre) + spread_of(residuals, T)))
    found = distance(two, Finding(residuals, "")).value
    assert found == pytest.approx(min(*tried, epsilon / mu), rel=1e-5)


@pytest.mark.long
def test_the_distance_with_something_on_top():
    """μ‖u‖² ≤ ε‖u‖ + slack, whose largest root it is."""
    problem = ez.VariationalInequality(
        lambda x, xi: 2 * x + jnp.tanh(x - xi), ez.sets.Box(-1.0, 1.0, dim=3), declared=ez.declare(mu=2.0, kappa=3.0)
    )
    case = case_of(problem, 3)
    residuals = Residuals.ball(np.array([0.1, -0.2, 0.3]), 0.05)
    for gap in (0.0, 0.07):
        case.__dict__["graph"] = case.graph._replace(eta=gap)
        largest = max(np.roots([2.0, -residuals.epsilon, -gap]).real)
        assert distance(case, Finding(residuals, "")).value == pytest.approx(largest)
    assert residuals.epsilon == pytest.approx(math.sqrt(0.14) + 0.05)


def test_the_cost_gap_of_a_minimum():
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ BENDS[0] @ x + xi @ x, ez.sets.WholeSpace(dim=2))
    case = case_of(problem, 2)
    residuals = Residuals.ball(np.array([0.2, -0.1]), 0.3)
    M = np.linalg.inv(BENDS[0])
    lengths = math.sqrt(residuals.centre @ M @ residuals.centre) + 0.3 * math.sqrt(np.linalg.norm(M, 2))
    assert cost_gap(case, Finding(residuals, "")).value[0] == pytest.approx(lengths**2 / 2, rel=1e-6)
    assert exploitability(case, Finding(residuals, ""))[0].value is None
    assert cost_gap(case_of(alike(), 2), Finding(residuals, "")).value is None


@pytest.mark.long
def test_the_multipliers_of_a_shared_budget():
    """x₁ + x₂ ≤ 1 in [0, 1]²: the largest η is 1, at x̃ = 0, where ⟨F(0), 0 − y⟩ is at most Σ max(−F_i, 0)."""
    costs = [lambda x, xi, i=i: 0.5 * x[i] @ x[i] + xi[i] * x[i][0] for i in range(2)]
    game = ez.Game(costs, [ez.sets.Box(0.0, 1.0, dim=1)] * 2, shared=(np.array([[1.0, 1.0]]), np.array([1.0])))
    support = ez.sets.Box(np.array([-2.0, -2.0]), np.zeros(2))
    samples = ez.Samples(np.random.default_rng(3).uniform(-2, 0, size=(30, 2)), support=support)
    step = ez.PreconditionedForwardBackward(step=0.2, dual_step=0.5)
    solution = ez.solve(game, samples, step, iterations=7)
    case = Case.of(solution)
    collapsed = case.collapsed(case.samples)
    mean = samples.values.mean(axis=0)
    C, gram = case.noise_map(collapsed)
    B = collapsed.at([mean])
    residuals = Residuals(case.residual(B), np.array([0.3]), None, C, gram, B, True)
    np.testing.assert_allclose(C[:2], np.eye(2))
    most = np.maximum(-mean, 0).sum() + 0.3 * math.sqrt(2)
    off = abs(residuals.centre[2])
    assert off > 0
    expected = off * (np.linalg.norm(solution.multipliers) + most / 1.0)
    assert multiplier_slack(case, residuals) == pytest.approx(expected, rel=1e-5)
    h = sum(float(x[0]) for x in solution.x) - 1
    assert slack_of(case) == pytest.approx(float(solution.multipliers[0]) * max(-h, 0.0))
    slack = multiplier_slack(case, residuals) + case.inexactness
    plain = max(np.roots([1.0, -residuals.epsilon, -slack]).real)
    assert distance(case, Finding(residuals, "")).value <= plain * (1 + 1e-9)
    assert distance(case, Finding(residuals, "")).value >= math.sqrt(slack)
