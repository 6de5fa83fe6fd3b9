"""What residuals mean: distance, savings and the largest norm, against brute force; never below it."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import H, rows

import epszero as ez
from epszero._points import flat_of
from epszero.certificates import Hoeffding, MeanDeviation
from epszero.certificates._base import Finding
from epszero.certificates.agents import Curvatures, curvatures, uncertain_savings
from epszero.certificates.case import Case
from epszero.certificates.consequences import distance, exploitability
from epszero.certificates.residuals import Residuals
from epszero.facts import Gram, largest
from epszero.solve.equilibrium import equilibrium_check

ANGLES = np.linspace(0, 2 * np.pi, 20_001)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)])


def planar(seed):
    """A strongly monotone matrix of the plane, with a condition number of about 30."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    return turn @ np.diag([0.1, rng.uniform(0.5, 3.0)]) @ turn.T + rng.normal() * np.array([[0.0, 1.0], [-1.0, 0.0]])


def solved(J, b=0.3):
    problem = ez.Inclusion(ez.sets.WholeSpace(dim=2), ez.oracles.Affine(lambda x, xi: J @ x + b + xi))
    return ez.solve(problem, ez.Samples(np.zeros((1, 2))), ez.ForwardBackward(step=0.01), iterations=1)


def farthest(J, e):
    """max ‖u‖ s.t. uᵀJu ≤ uᵀe: along each direction v it is vᵀe/vᵀJv. `e` may be many, along the last axis."""
    bent = np.sum(CIRCLE * (J @ CIRCLE), axis=0)
    return float(np.max((CIRCLE.T @ e) / bent[:, None]))


@pytest.mark.parametrize("seed", range(4))
def test_the_distance_of_one_residual_is_exact(seed):
    J, rng = planar(seed), np.random.default_rng(seed)
    with jax.enable_x64(True):
        case = Case.of(solved(J))
        for e in rng.normal(size=(5, 2)):
            brute, found = farthest(J, e[:, None]), distance(case, Finding(Residuals.ball(e, 0.0), "")).value
            assert brute <= found * (1 + 1e-7)
            assert found <= 1.01 * brute
            assert found <= np.linalg.norm(e) / np.linalg.eigvalsh((J + J.T) / 2)[0] * (1 + 1e-8)


@pytest.mark.parametrize("seed", range(4))
def test_the_distance_of_a_ball_a_box_and_an_ellipse(seed):
    J, rng = planar(seed), np.random.default_rng(100 + seed)
    C, centre, radii = rng.normal(size=(2, 2)), rng.normal(size=2), rng.uniform(0.1, 1.0, size=2)
    mu = np.linalg.eigvalsh((J + J.T) / 2)[0]
    corners = radii[:, None] * np.array([[1, 1, -1, -1], [1, -1, 1, -1]])
    every = CIRCLE[:, ::50]
    sets = {
        "ball": (Residuals.ball(centre, 0.7), centre[:, None] + 0.7 * every),
        "ellipse": (Residuals(centre, np.array([0.7]), None, C, Gram(C.T @ C)), centre[:, None] + 0.7 * C @ every),
        "box": (Residuals(centre, radii, np.arange(2), C, Gram(C.T @ C)), centre[:, None] + C @ corners),
    }
    with jax.enable_x64(True):
        case = Case.of(solved(J))
        for name, (residuals, possible) in sets.items():
            found = distance(case, Finding(residuals, "")).value
            assert farthest(J, possible) <= found * (1 + 1e-7), name
            assert found <= residuals.epsilon / mu * (1 + 1e-7), name
            assert residuals.epsilon >= np.linalg.norm(possible, axis=0).max() * (1 - 1e-12), name
        first, *others = (residuals for residuals, _ in sets.values())
        together = distance(case, Finding(first, "", alternatives=tuple(others))).value
        assert together == min(distance(case, Finding(residuals, "")).value for residuals, _ in sets.values())


# -- savings ---------------------------------------------------------------------------------------------------------

BEND, CROSS = np.array([1.0, 0.4]), 0.3
BOXES = [ez.sets.Box(-1.0, 1.0, dim=2), ez.sets.Box(-0.5, 2.0, dim=2)]


@pytest.fixture(scope="module")
def duel():
    """Two agents with ½h_i‖x_i‖² + c⟨x_1, x_2⟩ + ⟨ξ, x_i⟩."""
    costs = [lambda x, xi, i=i: 0.5 * BEND[i] * x[i] @ x[i] + CROSS * x[0] @ x[1] + xi @ x[i] for i in range(2)]
    samples = ez.Samples(np.random.default_rng(0).uniform(size=(30, 2)), support=ez.sets.Box(0.0, 1.0, dim=2))
    return ez.solve(ez.Game(costs, BOXES), samples, ez.ForwardBackward(step=0.2), iterations=4)


def savings(solution, e):
    """What each agent saves if the true residual is e: F = e − z, and a best response is a projection."""
    x, F = np.stack(solution.x), (e - np.concatenate(solution.z)).reshape(2, 2)
    best = np.stack([BOXES[i].project(x[i] - F[i] / BEND[i]) for i in range(2)])
    return -np.sum(F * (best - x) + BEND[:, None] / 2 * (best - x) ** 2, axis=1)


@pytest.mark.parametrize("shape", ["ball", "shared prices", "box", "a single residual"])
def test_savings_never_exceed_their_bound(duel, shape):
    rng = np.random.default_rng(1)
    C, centre = np.concatenate([np.eye(2), np.eye(2)]), rng.normal(scale=0.05, size=4)
    v = rng.normal(size=(2 if "ball" not in shape else 4, 300))
    v *= 0.4 / np.linalg.norm(v, axis=0)
    if shape == "ball":
        residuals, possible = Residuals.ball(centre, 0.4), centre[:, None] + v
    elif shape == "shared prices":
        residuals, possible = Residuals(centre, np.array([0.4]), None, C, Gram(C.T @ C)), centre[:, None] + C @ v
    elif shape == "box":
        radii = np.array([0.4, 0.1])
        residuals = Residuals(centre, radii, np.arange(2), C, Gram(C.T @ C))
        possible = centre[:, None] + C @ (np.sign(v) * radii[:, None])
    else:
        residuals, possible = Residuals.ball(centre, 0.0), centre[:, None]
    with jax.enable_x64(True):
        each, total = exploitability(Case.of(duel), Finding(residuals, ""))
    found = np.array([savings(duel, e) for e in possible.T])
    assert np.all(found.max(axis=0) <= each.value + 1e-12)
    assert found.sum(axis=1).max() <= total.value + 1e-12
    assert total.value <= np.sum(each.value) + 1e-12
    assert np.all(each.value <= 10 * found.max(axis=0) + 1e-3)


@pytest.mark.long
def test_savings_by_curvature_are_exact_without_constraints():
    costs = [lambda x, xi, i=i: 0.5 * BEND[i] * x[i] @ x[i] + CROSS * x[0] @ x[1] + xi @ x[i] for i in range(2)]
    game = ez.Game(costs, [ez.sets.WholeSpace(dim=2)] * 2)
    solution = ez.solve(game, ez.Samples(np.ones((1, 2))), ez.ForwardBackward(step=0.2), iterations=1)
    e = np.array([0.3, -0.1, 0.2, 0.5])
    with jax.enable_x64(True):
        each, total = exploitability(Case.of(solution), Finding(Residuals.ball(e, 0.0), ""))
    np.testing.assert_allclose(each.value, np.sum(e.reshape(2, 2) ** 2, axis=1) / (2 * BEND), rtol=1e-12)
    assert total.value == pytest.approx(np.sum(each.value))


@pytest.mark.long
def test_without_curvature_support_functions_serve():
    """Costs ⟨ξ, x_i⟩: no Hessian at all, and C has zeros."""
    costs = [lambda x, xi, i=i: xi @ x[i] for i in range(2)]
    samples = ez.Samples(np.random.default_rng(2).uniform(size=(50, 2)), support=ez.sets.Box(0.0, 1.0, dim=2))
    solution = ez.solve(ez.Game(costs, BOXES), samples, ez.ForwardBackward(step=0.2), iterations=3)
    found = ez.certify(solution, 0.1, MeanDeviation(Hoeffding()))
    radius = np.sqrt(2) / 2 * np.sqrt(2 * np.log(20) / 50)
    assert found.exploitability is not None
    assert np.isfinite(found.exploitability).all()
    assert found.exploitability[0] <= solution.check_equilibrium().at_most[0] + radius * np.sqrt(8) + 1e-9
    assert found.distance is None


# -- shared constraints ----------------------------------------------------------------------------------------------


def coupled(wrapped):
    """Two agents share Gx ≤ b; what differs between games is in the samples, so that one compilation serves all."""

    def cost(i):
        def own(x, xi):
            return 0.5 * BEND[i] * x[i] @ x[i] + CROSS * x[0] @ x[1] + xi[2 * i : 2 * i + 2] @ x[i]

        return own

    G, b = np.array([[1.0, 1.0, 0.5, 1.0], [1.0, 0.0, -1.0, 0.5]]), np.array([-0.3, 0.2])
    return ez.Game([wrapped(cost(0)), wrapped(cost(1))], BOXES, shared=(G, b))


@pytest.mark.parametrize(
    "wrapped",
    [pytest.param(ez.oracles.Affine, marks=pytest.mark.long), lambda cost: cost],
    ids=["declared", "proved"],
)
def test_the_distance_with_shared_constraints_holds(wrapped):
    """Whenever the true mean is within the confidence set, which is what probability has to do with it."""
    support, step = ez.sets.Box(-2.0, 1.0, dim=4), ez.PreconditionedForwardBackward(step=0.2, dual_step=0.5)
    active, game = 0, coupled(wrapped)
    for seed, iterations in itertools.product(range(5), (15, 400)):
        rng = np.random.default_rng(seed)
        mean = rng.uniform(-1.2, 0.2, size=4)
        samples = ez.Samples(mean + rng.uniform(-0.8, 0.8, size=(300, 4)), support=support)
        truth = ez.solve(game, ez.Samples(mean[None]), tol=1e-10)
        solution = ez.solve(game, samples, step, iterations=iterations)
        found = ez.certify(solution, 0.05, MeanDeviation(Hoeffding()))
        radius = 3 * np.sqrt(2 * np.log(40) / 300)  # the box has a circumradius of 3
        assert np.linalg.norm(samples.values.mean(axis=0) - mean) <= radius
        away = np.linalg.norm(np.concatenate(solution.x) - np.concatenate(truth.x))
        assert found.distance is not None, found.notes
        assert away <= found.distance
        assert np.all(np.array(truth_savings(game, mean, solution)) <= found.exploitability + 1e-7)
        active += truth.multipliers.max() > 1e-3
    assert active >= 6


def truth_savings(game, mean, solution):
    """By the library's conic solver, under the true mean."""
    return equilibrium_check(game, mean[None], solution.point, None).saving


# -- the largest norm over a product of balls ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_largest_is_never_below_what_sampling_finds(seed):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(6, 5))
    K = C.T @ C
    group = np.array([0, 0, 1, 2, 2])
    radii = rng.uniform(0.1, 2.0, size=3)
    v = rng.normal(size=(20_000, 5))
    whole = v / np.linalg.norm(v, axis=1, keepdims=True)
    assert np.linalg.norm(whole @ C.T, axis=1).max() <= largest(Gram(K), np.array([1.0]))
    assert largest(Gram(K), np.array([1.0])) == pytest.approx(np.linalg.norm(C, 2), rel=1e-9)
    split = v.copy()
    for k in range(3):
        part = split[:, group == k]
        split[:, group == k] = radii[k] * part / np.linalg.norm(part, axis=1, keepdims=True)
    found = largest(Gram(K), radii, group)
    assert np.linalg.norm(split @ C.T, axis=1).max() <= found
    assert found <= np.sqrt(3) * np.linalg.norm(C, 2) * np.linalg.norm(radii)
    box = rng.uniform(0.1, 2.0, size=5)
    assert np.linalg.norm((np.sign(v) * box) @ C.T, axis=1).max() <= largest(Gram(K), box, np.arange(5))
    stack = largest(Gram(np.stack([K, 4 * K])), radii, group)
    np.testing.assert_allclose(stack, [found, 2 * found])


def test_largest_is_exact_for_orthogonal_groups():
    K = np.diag([4.0, 1.0, 9.0])
    assert largest(Gram(K), np.array([1.0, 2.0, 3.0]), np.arange(3)) == pytest.approx(np.sqrt(4 + 4 + 81))


# -- a minimisation --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_cost_gap_and_a_distance_hold():
    Q = (H + H.T) / 2
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ Q @ x - xi @ x, ez.functions.L1(0.1))
    samples = rows(50, 7)
    solution = ez.solve(problem, samples, ez.ForwardBackward(step=0.2), iterations=5)
    found = ez.certify(solution, 0.05, MeanDeviation(Hoeffding()))
    mean = samples.values.mean(axis=0) + 0.02  # a mean that the confidence set holds
    best = ez.solve(problem, ez.Samples(mean[None]), tol=1e-11).x

    def value(x):
        return 0.5 * x @ Q @ x - mean @ x + 0.1 * np.abs(x).sum()

    assert 0 <= value(solution.x) - value(best) <= found.cost_gap
    assert np.linalg.norm(solution.x - best) <= found.distance
    assert found.exploitability is None
    assert found.relative_distance == pytest.approx(found.distance / np.linalg.norm(solution.x))


@pytest.mark.long
def test_no_distance_without_strong_monotonicity(bent_run):
    bare = ez.VariationalInequality(
        lambda x, xi: jnp.tanh(x - xi) ** 3, ez.sets.Box(-1.0, 1.0, dim=3), declared=ez.declare(kappa=1.0, R=1.7)
    )
    solution = ez.solve(bare, rows(40, 2), ez.ForwardBackward(step=0.3), iterations=15)
    found = ez.certify(solution, 0.05)
    assert np.isfinite(found.epsilon)
    assert found.distance is None
    assert "mu" in found.notes["distance"]
    sure = ez.certify(bent_run, 0.05)
    farthest = np.linalg.norm(np.abs(bent_run.x) + 1.0)  # of the domain, a box
    assert sure.distance == pytest.approx(min(sure.epsilon, farthest))


def linear_over_rows_of_simplices():
    """Three points of a simplex as one leaf: a product of simplices, whose corners are not those of one simplex."""
    problem = ez.Minimization(lambda x, xi: xi @ x.ravel(), ez.sets.Simplex())
    corners = np.array([np.eye(4)[list(picks)].ravel() for picks in itertools.product(range(4), repeat=3)])
    return problem, np.full((3, 4), 0.25), [corners]


def linear_in_two_leaves():
    """As many leaves as agents, but every agent has both."""
    parts = {"a": ez.sets.Box(0.0, 1.0), "b": ez.sets.Box(0.0, 5.0)}
    cost = lambda own, mean, xi, p: p * xi[:2] @ own["a"] + xi[2:] @ own["b"]  # noqa: E731
    problem = ez.AggregativeGame(cost, np.array([1.0, 2.0]), parts)
    corners = np.array(list(itertools.product([0.0, 1.0], [0.0, 1.0], [0.0, 5.0], [0.0, 5.0])))
    return problem, {"a": np.zeros((2, 2)), "b": np.zeros((2, 2))}, [corners, corners]


@pytest.mark.some(2)
@pytest.mark.parametrize("made", [linear_over_rows_of_simplices, linear_in_two_leaves])
def test_savings_reach_all_corners_of_an_agents_set(made):
    problem, x0, corners = made()
    rng = np.random.default_rng(3)
    samples = ez.Samples(rng.uniform(size=(50, 12 if len(corners) == 1 else 4)), support=ez.sets.Box(0.0, 1.0))
    case = Case.of(ez.solve(problem, samples, x0=x0, throw=False))
    known = curvatures(case)
    assert isinstance(known, Curvatures)
    C = np.tile([[-1.0, 1.0], [1.0, -1.0]], (sum(len(place) for place in known.places) // 2, 1))
    residuals = Residuals(np.zeros(len(C)), np.array([0.3]), None, C, Gram(C.T @ C))
    found, x = uncertain_savings(case, known, residuals), flat_of(case.x)
    for bound, place, mine in zip(found, known.places, corners, strict=True):
        truth = 0.3 * np.linalg.norm((x[place] - mine) @ C[place], axis=1).max()
        assert bound >= truth * (1 - 1e-12)


@pytest.mark.long
def test_no_distance_is_larger_than_the_domain():
    """μ = 1e-6 makes ‖e‖/μ thousands, on a simplex that is √2 wide."""
    problem = ez.Minimization(lambda x, xi: 5e-7 * x @ x - xi @ x, ez.sets.Simplex(dim=3))
    data = ez.Samples(np.random.default_rng(0).uniform(0, 1, size=(100, 3)), support=ez.sets.Box(0.0, 1.0))
    found = ez.certify(ez.solve(problem, data), using=ez.certificates.MeanDeviation())
    assert found.distance is not None
    assert 0.5 < found.distance <= np.sqrt(3) + 1e-9
    assert "no point of the domain is farther" in found.notes["distance"]
