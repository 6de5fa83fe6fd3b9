"""Exact constants of affine problems, against dense linear algebra on matrices that are written down here."""

from importlib import import_module
from itertools import pairwise, product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero import facts as facts_room
from epszero.facts import Provenance, Unknown

pytestmark = pytest.mark.some(2)

KINDS = ("potential", "strongly monotone", "merely monotone", "rotating", "indefinite")
SIZES = ([1, 1], [1, 2, 1], [3, 2], [1, 2, 1, 2])


def facts_of(*given: Any) -> Any:
    """Facts whose constants are looked at without asking first whether they are known."""
    return facts_room.facts_of(*given)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def least_eigenvalue(J):
    return np.linalg.eigvalsh((J + J.T) / 2)[0]


def cocoercivity(J):
    """The largest θ with sym(J) − θJᵀJ ⪰ 0, by bisection; 0 where there is none."""
    size = np.linalg.norm(J, 2)

    def holds(theta):
        return least_eigenvalue(J - theta * J.T @ J) >= -1e-13 * size

    low, high = 0.0, 2.0 / size
    if not holds(1e-9 / size):
        return 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def right(mu, kappa, J, room=1e-7):
    """Whether the bounds are on the safe side of every one of the Jacobians, and near."""
    several = np.reshape(J, (-1, *np.shape(J)[-2:]))
    least, size = min(map(least_eigenvalue, several)), max(np.linalg.norm(one, 2) for one in several)
    rounded = 1e-13 * size + 1e-300
    return least - room * size <= mu <= least + rounded and size - rounded <= kappa <= size * (1 + room) + rounded


def right_theta(theta, J):
    """Whether θ is that of the Jacobian; None stands for none."""
    true, size = cocoercivity(J), np.linalg.norm(J, 2)
    if theta is None:
        return true <= 1e-6 / size
    return true * (1 - 1e-5) <= theta <= true * (1 + 1e-6) + 1e-9 / size


def matrix(rng, kind, n):
    root, other = rng.normal(size=(2, n, n))
    skew, definite = other - other.T, root @ root.T
    thin = root[:, : max(1, n // 2)]
    return {
        "potential": definite + 0.1 * np.eye(n),
        "strongly monotone": definite + skew + 0.1 * np.eye(n),
        "merely monotone": thin @ thin.T,
        "rotating": skew,
        "indefinite": root,
    }[kind]


# -- games ------------------------------------------------------------------------------------------------------------


def quadratic_game(rng, kind, sizes):
    """A game and its Jacobian, whose diagonal blocks are symmetric, as costs make them."""
    n, ends = sum(sizes), np.cumsum([0, *sizes])
    J, c = matrix(rng, kind, n), rng.normal(size=n)
    own = np.zeros((n, n), dtype=bool)
    for a, b in pairwise(ends):
        own[a:b, a:b] = True
    J = np.where(own, (J + J.T) / 2, J)

    def cost(a, b, i):
        others = np.where(own, 0.0, J)[a:b]
        return lambda x: 0.5 * x[i] @ J[a:b, a:b] @ x[i] + x[i] @ (others @ jnp.concatenate(x) + c[a:b])

    costs = [cost(a, b, i) for i, (a, b) in enumerate(pairwise(ends))]
    return ez.Game(costs, [ez.sets.Box(-1, 1, dim=size) for size in sizes]), J, c


def differences(costs, sizes, h=0.5):
    """The Jacobian of the pseudogradient by second differences, exact for quadratic costs."""
    n, ends = sum(sizes), np.cumsum([0, *sizes])
    owner, J = np.repeat(np.arange(len(sizes)), sizes), np.zeros((n, n))
    for a, b in product(range(n), repeat=2):
        for s, t in product((1, -1), repeat=2):
            x = h * (s * np.eye(n)[a] + t * np.eye(n)[b])
            J[a, b] += s * t * float(costs[owner[a]](np.split(x, ends[1:-1]), None)) / (4 * h * h)
    return J


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS)
def test_quadratic_games(kind):
    rng = np.random.default_rng(KINDS.index(kind))
    for sizes in SIZES:
        game, J, _ = quadratic_game(rng, kind, sizes)
        facts = facts_of(game, [], None, [np.zeros(size) for size in sizes])
        mu, kappa, theta = facts.slope, facts.kappa, facts.theta
        assert facts.structure.jacobian == "constant"
        assert mu.provenance is kappa.provenance is Provenance.EXACT
        assert right(mu.value, kappa.value, J)
        assert right_theta(None if isinstance(theta, Unknown) else theta.value, J)
        assert isinstance(facts.mu, Unknown) == (mu.value <= 0)
        assert (facts.gradient is Provenance.EXACT) == (kind in ("potential", "merely monotone"))


def test_the_matrices_are_those_of_the_costs():
    rng = np.random.default_rng(5)
    for kind in KINDS:
        game, J, _ = quadratic_game(rng, kind, [1, 2, 1])
        np.testing.assert_allclose(differences(game.costs, [1, 2, 1]), J, atol=1e-12)


def test_the_check_finds_eigenvalues_without_symmetrising():
    rng = np.random.default_rng(6)
    for kind, n in product(("strongly monotone", "indefinite"), range(2, 7)):
        J = matrix(rng, kind, n)
        assert right(least_eigenvalue(J), np.linalg.norm(J, 2), J)
        assert not right(np.linalg.eigvals(J).real.min(), np.linalg.norm(J, 2), J)


def test_the_check_finds_a_cocoercivity_from_mu_and_kappa_alone():
    rng = np.random.default_rng(7)
    for n in range(2, 7):
        J = matrix(rng, "strongly monotone", n)
        assert not right_theta(least_eigenvalue(J) / np.linalg.norm(J, 2) ** 2, J)
        assert not right_theta(1 / np.linalg.norm(J, 2), J)
        assert not right_theta(None, J)


# -- variational inequalities -----------------------------------------------------------------------------------------


def corners(lower, upper):
    return np.array(list(product(*zip(np.atleast_1d(lower), np.atleast_1d(upper), strict=True))))


@pytest.mark.parametrize("kind", KINDS)
def test_additive_noise_over_a_box(kind):
    """O(x, ξ) = Jx + c + Cξ: μ, κ, θ by eigenvalues, R and M over the corners of domain and support."""
    rng = np.random.default_rng(10 + KINDS.index(kind))
    for n in (1, 2, 3, 4):
        for p in (1, 3):
            J, c, C = matrix(rng, kind, n), rng.normal(size=n), rng.normal(size=(n, p))
            centre, width = rng.normal(size=p), rng.uniform(0, 2, size=p)
            low = rng.normal(size=n)
            box = ez.sets.Box(low, low + rng.uniform(0.1, 3, size=n))
            problem = ez.VariationalInequality(lambda x, xi, J=J, c=c, C=C: J @ x + c + C @ xi, over=box)
            support = ez.sets.Box(centre - width, centre + width)
            facts = facts_of(problem, [support], np.zeros(p), np.zeros(n))
            assert (facts.structure.in_x, facts.structure.in_xi) == ("affine", "additive")
            theta = facts.theta
            assert right(facts.slope.value, facts.kappa.value, J)
            assert not J.any() or right_theta(None if isinstance(theta, Unknown) else theta.value, J)
            R = max(np.linalg.norm(C @ d) for d in corners(-2 * width, 2 * width))
            assert R * (1 - 1e-13) <= facts.R.value <= R * (1 + 1e-8)
            images = corners(box.lower, box.upper) @ J.T
            noises = corners(support.lower, support.upper) @ C.T
            values = (images[:, None] + noises + c).reshape(-1, n)
            M = np.linalg.norm(values, axis=1).max()  # convex, so largest at a corner
            assert M * (1 - 1e-12) <= facts.M.value <= np.linalg.norm(np.abs(values).max(axis=0)) * (1 + 1e-8)
            assert facts.M.value <= np.sqrt(n) * M * (1 + 1e-8)


def test_wide_noise_has_a_safe_R():
    """Beyond the corners that are tried, R is a bound."""
    rng = np.random.default_rng(20)
    C, width = rng.normal(size=(5, 20)), rng.uniform(size=20)
    problem = ez.VariationalInequality(lambda x, xi: x + C @ xi, over=ez.sets.Box(-1, 1, dim=5))
    R = facts_of(problem, [ez.sets.Box(-width, width)], np.zeros(20), np.zeros(5)).R.value
    seen = np.linalg.norm(2 * width * rng.choice([-1.0, 1.0], size=(20_000, 20)) @ C.T, axis=1).max()
    assert seen <= R <= 2 * seen


def multiplied(rng, kind, n, p):
    """(H0 + Σ ξ_k H_k)x + Cξ + c."""
    H0, C, c = matrix(rng, kind, n), rng.normal(size=(n, p)), rng.normal(size=n)
    H = np.stack([matrix(rng, rng.choice(KINDS), n) for _ in range(p)]) * rng.choice([0.1, 1.0], size=(p, 1, 1))
    if p > 1:
        H[0] = 0.0  # one that moves O, and not its Jacobian

    def F(x, xi):
        return H0 @ x + jnp.tensordot(xi, H, axes=1) @ x + C @ xi + c

    return F, H0, H


@pytest.mark.some(4)
@pytest.mark.parametrize("kind", KINDS)
def test_random_matrices_over_a_box(kind):
    rng = np.random.default_rng(30 + KINDS.index(kind))
    for n, p in ((1, 1), (2, 1), (2, 3), (3, 2), (4, 5), (3, 4), (5, 2), (2, 6)):
        F, H0, H = multiplied(rng, kind, n, p)
        low = rng.normal(size=p)
        support = ez.sets.Box(low, low + rng.uniform(0, 2, size=p) * (rng.uniform(size=p) < 0.8))
        problem = ez.VariationalInequality(F, over=ez.sets.Ball(dim=n))
        facts = facts_of(problem, [support], np.zeros(p), np.zeros(n))
        assert (facts.structure.jacobian, facts.structure.in_xi) == ("depends on ξ", "affine")
        mu, kappa = facts.slope, facts.kappa
        assert mu.provenance is kappa.provenance is Provenance.EXACT
        every = H0 + np.tensordot(corners(support.lower, support.upper), H, axes=1)
        assert right(mu.value, kappa.value, every, room=1e-6)  # the support is made larger by 1e-9
        inside = H0 + np.tensordot(rng.uniform(support.lower, support.upper, size=(50, p)), H, axes=1)
        assert min(map(least_eigenvalue, inside)) >= mu.value


def test_the_check_finds_constants_at_the_middle_of_the_support():
    rng = np.random.default_rng(40)
    for n in (2, 3, 4):
        _, H0, H = multiplied(rng, "strongly monotone", n, 3)
        every = H0 + np.tensordot(corners(-np.ones(3), np.ones(3)), H, axes=1)
        assert not right(least_eigenvalue(H0), np.linalg.norm(H0, 2), every, room=1e-6)


@pytest.mark.some(3)
@pytest.mark.parametrize(("support", "p"), [(ez.sets.Box(-1, 1, dim=14), 14), (ez.sets.Ball(dim=3), 3)])
def test_more_corners_than_are_tried_and_supports_that_are_no_boxes(support, p):
    rng = np.random.default_rng(50)
    F, H0, H = multiplied(rng, "strongly monotone", 3, p)
    facts = facts_of(ez.VariationalInequality(F, over=ez.sets.Ball(dim=3)), [support], np.zeros(p), np.zeros(3))
    mu, kappa = facts.slope, facts.kappa
    assert mu.provenance is kappa.provenance is Provenance.VERIFIED
    points = support.project(rng.normal(size=(2000, p)) * 3)
    every = H0 + np.tensordot(points, H, axes=1)
    assert mu.value <= min(map(least_eigenvalue, every))
    assert kappa.value >= np.linalg.norm(every, 2, axis=(1, 2)).max()


@pytest.mark.long
def test_a_support_that_is_open_where_it_matters_gives_no_constants():
    rng = np.random.default_rng(60)
    F, H0, H = multiplied(rng, "strongly monotone", 2, 3)
    problem = ez.VariationalInequality(F, over=ez.sets.Ball(dim=2))
    for support in (None, ez.sets.Box([-1, -1, -1], [1, 1, np.inf])):
        facts = facts_of(problem, [support], np.zeros(3), np.zeros(2))
        assert isinstance(facts.mu, Unknown)
        assert isinstance(facts.kappa, Unknown)
        assert "support is not known" in facts.unenclosed
    harmless = ez.sets.Box([-np.inf, -1, -1], [np.inf, 1, 1])  # along the entry that moves no matrix
    facts = facts_of(problem, [harmless], np.zeros(3), np.zeros(2))
    every = H0 + np.tensordot(corners([0, -1, -1], [0, 1, 1]), H, axes=1)
    assert right(facts.slope.value, facts.kappa.value, every, room=1e-6)


# -- aggregative games ------------------------------------------------------------------------------------------------


def cost(own, average, xi, mine):
    return 0.5 * own @ mine["D"] @ own + own @ mine["E"] @ average + mine["weight"] * (xi @ own)


def parameters(rng, kind, N, n):
    D, E = np.stack([matrix(rng, kind, n) for _ in range(N)]), rng.normal(size=(N, n, n))
    D = (D + np.swapaxes(D, 1, 2)) / 2  # as second derivatives are
    if kind == "potential":
        E[:] = (E[0] + E[0].T) / 2
    if rng.uniform() < 0.5:
        D, E = D * np.eye(n), E * np.eye(n)
    return {"D": D, "E": E, "weight": rng.normal(size=N)}


def written(mine):
    """∂F_i/∂x_j of F_i = D_i x_i + E_i x̄ + E_iᵀx_i/N + weight_i ξ."""
    D, E = mine["D"], mine["E"]
    N, n = D.shape[:2]
    blocks = np.repeat(E[:, None] / N, N, axis=1)
    blocks[np.arange(N), np.arange(N)] += D + np.swapaxes(E, 1, 2) / N
    return blocks.transpose(0, 2, 1, 3).reshape(N * n, N * n)


def known_game(rng, kind, N, n):
    mine = parameters(rng, kind, N, n)
    width = rng.uniform(size=n)
    game = ez.AggregativeGame(cost, mine, ez.sets.Box(-1, 2, dim=n))
    facts = facts_of(game, [ez.sets.Box(-width, width)], np.zeros(n), np.zeros((N, n)))
    return facts, written(mine), 2 * np.linalg.norm(mine["weight"]) * np.linalg.norm(width)


@pytest.mark.some(2)
@pytest.mark.parametrize("kind", KINDS)
def test_aggregative_games_written_down(kind):
    rng = np.random.default_rng(70 + KINDS.index(kind))
    for N, n in ((3, 2), (8, 4)):
        facts, J, R = known_game(rng, kind, N, n)
        theta = facts.theta
        assert right(facts.slope.value, facts.kappa.value, J)
        assert right_theta(None if isinstance(theta, Unknown) else theta.value, J)
        assert facts.R.value == pytest.approx(R, rel=1e-9)
        rough = np.linalg.norm(rng.uniform(-1, 2, size=(500, N * n)) @ J.T, axis=1).max()
        assert rough <= facts.M.value <= np.sqrt(N * n) * (2 * np.linalg.norm(J, 2) * np.sqrt(N * n) + R)


@pytest.mark.some(4)
@pytest.mark.parametrize("TRIALS", [4, pytest.param(20, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", KINDS)
def test_aggregative_games_through_their_structure(kind, TRIALS, monkeypatch):
    """The same with no matrix over all agents: 400 games."""
    for name in ("facts", "affine"):
        monkeypatch.setattr(import_module(f"epszero.facts.{name}"), "DENSE", 0)
    rng = np.random.default_rng(80 + KINDS.index(kind))
    for N, n in ((2, 1), (5, 2), (7, 3), (12, 4)):
        for _ in range(TRIALS):
            facts, J, _ = known_game(rng, kind, N, n)
            assert facts.jacobian is None
            assert facts.aggregate is not None
            mu, kappa, theta = facts.slope, facts.kappa, facts.theta
            assert mu.provenance is kappa.provenance is Provenance.EXACT
            assert right(mu.value, kappa.value, J)
            symmetric = np.allclose(J, J.T, atol=1e-12)
            assert (facts.gradient is Provenance.EXACT) == (symmetric and least_eigenvalue(J) >= -1e-12)
            if not isinstance(theta, Unknown):
                assert least_eigenvalue(J - theta.value * J.T @ J) >= -1e-9 * kappa.value
                assert theta.value == pytest.approx(1 / kappa.value if symmetric else mu.value / kappa.value**2)
            else:
                assert mu.value <= 1e-9 * kappa.value


# -- through the audit ------------------------------------------------------------------------------------------------


def test_the_audit_tells_the_same():
    rng = np.random.default_rng(90)
    J, C = matrix(rng, "strongly monotone", 3), rng.normal(size=(3, 2))
    problem = ez.VariationalInequality(lambda x, xi: J @ x + C @ xi, over=ez.sets.Box(-1, 2, dim=3))
    samples = ez.Samples(rng.uniform(-1, 1, size=(50, 2)), support=ez.sets.Box(-1, 1, dim=2))
    found = ez.audit(problem, samples).constants
    assert right(found["mu"].value, found["kappa"].value, J)
    assert right_theta(found["theta"].value, J)
    assert found["R"].value == pytest.approx(max(np.linalg.norm(C @ d) for d in corners([-2, -2], [2, 2])), rel=1e-8)
    seen = rng.uniform(-1, 2, size=(5000, 3)) @ J.T + rng.uniform(-1, 1, size=(5000, 2)) @ C.T
    assert np.linalg.norm(seen, axis=1).max() <= found["M"].value <= 3 * np.linalg.norm(seen, axis=1).max()
    assert found["diameter"].value == pytest.approx(np.sqrt(27))
    assert all(one.provenance is Provenance.EXACT for one in found.values())


def test_the_audit_of_random_matrices_tells_the_same():
    rng = np.random.default_rng(91)
    F, H0, H = multiplied(rng, "potential", 3, 3)
    problem = ez.VariationalInequality(F, over=ez.sets.Ball(dim=3))
    samples = ez.Samples(rng.uniform(-0.05, 0.05, size=(50, 3)), support=ez.sets.Box(-0.05, 0.05, dim=3))
    found = ez.audit(problem, samples, budget=1.0).constants
    every = H0 + np.tensordot(corners(-0.05 * np.ones(3), 0.05 * np.ones(3)), H, axes=1)
    assert right(found["mu"].value, found["kappa"].value, every, room=1e-6)


@pytest.mark.long
def test_the_audit_of_an_aggregative_game_tells_the_same():
    rng = np.random.default_rng(92)
    mine = parameters(rng, "strongly monotone", 6, 2)
    game = ez.AggregativeGame(cost, mine, ez.sets.Box(-1, 2, dim=2))
    samples = ez.Samples(rng.uniform(-1, 1, size=(50, 2)), support=ez.sets.Box(-1, 1, dim=2))
    facts = facts_of(game, [samples.support], np.zeros(2), np.zeros((6, 2)))
    found = ez.audit(game, samples, budget=1.0).constants
    J = written(mine)
    assert found["kappa"].value == pytest.approx(np.linalg.norm(J, 2))
    assert facts.slope.value == pytest.approx(least_eigenvalue(J), abs=1e-8 * np.linalg.norm(J, 2))
    assert ("mu" in found) == (least_eigenvalue(J) > 0)


def test_M_where_nothing_is_uncertain():
    J = matrix(np.random.default_rng(93), "strongly monotone", 2)
    problem = ez.VariationalInequality(lambda x: J @ x, over=ez.sets.Box(-1, 1, dim=2))
    found = ez.audit(problem).constants
    M = np.linalg.norm(corners([-1, -1], [1, 1]) @ J.T, axis=1).max()
    assert M * (1 - 1e-12) <= found["M"].value <= np.sqrt(2) * M * (1 + 1e-9)


def test_no_sample_that_may_not_exist_bounds_the_values():
    """ξ lies in [100, 101], which nobody says: a declared R does not make ‖O(x, 0)‖ + κ·diameter + R a bound."""
    problem = ez.VariationalInequality(
        lambda x, xi: jnp.tanh(x) + xi, over=ez.sets.Box(-1.0, 1.0, dim=1), declared=ez.declare(R=1.0, kappa=1.0)
    )
    found = facts_of(problem, [None], np.zeros(1), np.zeros(1)).M
    assert isinstance(found, Unknown) or found.value >= 101
