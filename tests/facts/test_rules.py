"""Everyday nonlinear problems: what rules of convexity prove of them, against the truth in closed form."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero.facts import enclosed
from epszero.facts.facts import facts_of
from epszero.facts.provenance import Constant, Known, Provenance, Unknown

RIDGE = 0.1
RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(7, 4)), RNG.normal(size=7)
SQUARE = ez.sets.Box(-1.0, 1.0, dim=4)


@pytest.fixture
def no_search(monkeypatch):
    """Proofs are by rules alone."""

    def refuse(*_, **__):
        raise AssertionError("a search")

    monkeypatch.setattr(enclosed.Operator, "refined", refuse)


def facts(problem, support=None, row=None) -> Any:
    with double():
        x = jax.tree.map(jnp.asarray, problem.start)
        return facts_of(problem, [] if row is None else [support], row, x)


def of(loss, over=SQUARE):
    return facts(ez.Minimization(loss, over))


def logistic(x, row):
    return jnp.log1p(jnp.exp(-row[0] * (row[1:] @ x))) + 0.5 * RIDGE * x @ x


SPELLINGS = {
    "log1p(exp)": logistic,
    "log(1 + exp)": lambda x, row: jnp.log(1 + jnp.exp(-row[0] * (row[1:] @ x))) + 0.5 * RIDGE * jnp.sum(x**2),
    "softplus": lambda x, row: jax.nn.softplus(-row[0] * (row[1:] @ x)) + 0.5 * RIDGE * x @ x,
    "logaddexp": lambda x, row: jnp.logaddexp(0.0, -row[0] * jnp.dot(row[1:], x)) + 0.5 * RIDGE * jnp.vdot(x, x),
    "log_sigmoid": lambda x, row: -jax.nn.log_sigmoid(row[0] * (row[1:] @ x)) + 0.5 * RIDGE * jnp.sum(x * x),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_ridge_logistic_regression(spelling, no_search):
    n = 30
    problem = ez.Minimization(SPELLINGS[spelling], ez.sets.Ball(5.0, dim=n))
    known = facts(problem, ez.sets.Box(-np.ones(n + 1), np.ones(n + 1)), jnp.zeros(n + 1))
    assert known.mu.value == pytest.approx(RIDGE, rel=1e-9)
    assert known.mu.value <= RIDGE
    assert RIDGE + n / 4 <= known.kappa.value <= (RIDGE + n / 4) * (1 + 1e-6)
    assert known.R.value <= 2 * np.sqrt(n) * (1 + 1e-6)
    assert known.M.value <= np.sqrt(n) + RIDGE * 5 + 1e-6
    assert known.kappa.provenance is Provenance.VERIFIED
    assert "softplus″ ≤ ¼" in known.kappa.evidence
    assert isinstance(known.convex, Known)
    assert known.convex.provenance is Provenance.VERIFIED
    assert known.theta.provenance is Provenance.VERIFIED


def test_the_size_of_the_domain_does_not_matter(no_search):
    n = 5
    for radius in (1.0, 1e3, 1e6):
        problem = ez.Minimization(logistic, ez.sets.Ball(radius, dim=n))
        known = facts(problem, ez.sets.Box(-np.ones(n + 1), np.ones(n + 1)), jnp.zeros(n + 1)).ruled
        assert known.kappa.value <= RIDGE + n / 4 + 1e-6
        assert known.R.value <= 2 * np.sqrt(n) + 1e-6


@pytest.mark.parametrize("links", [5, 60, 200])
def test_routing_with_power_four_is_monotone(links, no_search):
    roads = [(0, 1, 1.0 + k / links, 0.1, 4) for k in range(links)]
    game = ez.models.routing(roads, [(0, 1, 3.0), (0, 1, 2.0)], most_paths=links)
    slope = facts(game).nonnegative_slope
    assert slope.value >= -1e-30
    assert slope.provenance is Provenance.VERIFIED


def agents(count):
    """Mixed convex costs of their own, and a common price of the total."""

    def cost(i):
        kinds = (
            lambda t: jnp.log1p(jnp.exp(t)),
            lambda t: t**4 + 0.1 * t**2,
            jnp.cosh,
            lambda t: jnp.sqrt(1 + t**2),
            lambda t: (1 + t) * jnp.log(1 + t),
        )

        def lost(x):
            total = jnp.sum(jnp.concatenate(x))
            return kinds[i % 5](x[i][0] - 0.1) + 0.05 * x[i][0] * total + jnp.exp(0.01 * total)

        return lost

    return ez.Game([cost(i) for i in range(count)], [ez.sets.Box(0.0, 2.0, dim=1) for _ in range(count)])


@pytest.mark.some(2)
@pytest.mark.parametrize("count", [5, 20])
def test_agents_with_mixed_convex_costs(count, no_search):
    known = facts(agents(count))
    assert known.nonnegative_slope.value > 0
    assert isinstance(known.convex, Known)
    assert known.convex.provenance is Provenance.VERIFIED


def test_an_aggregative_game(no_search):
    def cost(own, mean, at):
        return jnp.sum(jax.nn.softplus(own - at)) + 0.1 * own @ mean + jnp.sum(jnp.exp(0.1 * mean))

    game = ez.AggregativeGame(cost, np.linspace(0.0, 1.0, 20), ez.sets.Box(0.0, 2.0, dim=4))
    assert facts(game).nonnegative_slope.value > 0


LOSSES = {  # loss, μ at least about, κ at most
    "logsumexp": (lambda x: jax.nn.logsumexp(A @ x + B) + 0.1 * x @ x, 0.2, 0.2 + np.linalg.norm(A, 2) ** 2 / 2),
    "root": (lambda x: jnp.sqrt(1 + jnp.sum((A @ x + B) ** 2)) + 0.1 * x @ x, 0.2, 0.2 + np.linalg.norm(A, 2) ** 2),
    "pseudo-huber": (lambda x: jnp.sum(jnp.sqrt(1 + (A @ x - B) ** 2)), 0.0, np.linalg.norm(A, 2) ** 2),
    "huber": (
        lambda x: jnp.sum(jnp.where(jnp.abs(A @ x - B) <= 0.5, (A @ x - B) ** 2, jnp.abs(A @ x - B) - 0.25)),
        0.0,
        2 * np.linalg.norm(A, 2) ** 2,
    ),
    "entropy": (lambda x: jnp.sum((x + 2) * jnp.log(x + 2)), 1 / 3, 1.0),
    "entr": (lambda x: -jnp.sum(jax.scipy.special.entr(x + 2)), 1 / 3, 1.0),
    "squared hinge": (lambda x: jnp.sum(jnp.maximum(1 - A @ x, 0.0) ** 2), 0.0, 2 * np.linalg.norm(A, 2) ** 2),
    "barrier": (lambda x: -jnp.sum(jnp.log(1.5 - x)), 1 / 2.5**2, 4.0),
    "power": (lambda x: jnp.sum((x + 2) ** 2.5), 2.5 * 1.5, 2.5 * 1.5 * 3**0.5),
    "over linear": (lambda x: x[0] ** 2 / (x[1] + 2), 0.0, 4.0),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, no_search):
    loss, mu, kappa = LOSSES[name]
    known = of(loss)
    assert mu * (1 - 1e-9) - 1e-12 <= known.ruled.slope.value
    assert name == "pseudo-huber" or known.ruled.slope.value <= mu + 1e-9
    assert known.ruled.kappa.value <= kappa * (1 + 1e-6)
    assert isinstance(known.convex, Known)
    assert known.convex.provenance is Provenance.VERIFIED


def test_compositions_of_which_only_the_curvature_is_known(no_search):
    known = of(lambda x: jnp.exp(jnp.sum(x**2)) + jnp.log(jnp.sum(jnp.exp((A @ x) ** 2))))
    assert known.ruled.slope is None or known.ruled.slope.value <= 0
    nested = of(lambda x: jnp.exp(0.1 * jnp.sum((A @ x - B) ** 2)) + jnp.sum(jnp.cosh(x)) ** 2)
    assert nested.ruled.slope.value == 0.0
    assert nested.ruled.kappa is None


NOT_PROVED = {
    "concave": lambda x: -jnp.sum(jax.nn.softplus(A @ x)),
    "decreasing outer function": lambda x: jnp.exp(-jnp.sum(x**2)),
    "a jump": lambda x: jnp.sum(jnp.where(jnp.abs(x) <= 0.5, 0.5 * x**2, jnp.abs(x) - 0.2)),
    "a kink": lambda x: jnp.sum(jnp.abs(x)) + x @ x,
    "a kink of a difference": lambda x: jnp.sum(jax.nn.relu(x) - jax.nn.relu(-x)),
    "a stopped gradient": lambda x: jnp.sum(jnp.exp(x) * jax.lax.stop_gradient(x)),
    "a pole": lambda x: jnp.sum(1 / (x + 0.5)),
    "a logarithm": lambda x: -jnp.sum(jnp.log(x + 0.5)),
    "a root of 0": lambda x: -jnp.sum(jnp.sqrt(x + 1.0)),
}


@pytest.mark.parametrize("name", NOT_PROVED)
def test_what_is_not_so_is_not_claimed(name):
    known = of(NOT_PROVED[name]).ruled
    assert not known.monotone
    assert known.kappa is None or name == "concave"


@jax.custom_jvp
def steep(x):
    return jnp.sum(x**4)


steep.defjvp(lambda primals, tangents: (steep(primals[0]), -jnp.sum(jnp.exp(primals[0]) * tangents[0])))


def test_a_derivative_of_the_users_own_is_what_counts():
    known = of(lambda x: steep(x) + 0.5 * x @ x).ruled  # O = x − exp(x), whatever the values say
    assert not known.by_costs
    assert not known.convex
    assert known.slope.value <= 1 - np.e + 1e-9


def test_weights_that_differ_between_agents_are_not_taken_for_a_gradient():
    def cost(i, weight):
        return lambda x: weight * jnp.exp(3 * x[0][0] - 3 * x[1][0]) + 0.01 * x[i][0] ** 2

    game = ez.Game([cost(0, 1.0), cost(1, 30.0)], [ez.sets.Box(-1.0, 1.0, dim=1)] * 2)
    assert not facts(game).ruled.monotone  # its Jacobian at 0 has the eigenvalue −100 or so
    same = ez.Game([cost(0, 1.0), cost(1, 1.0)], [ez.sets.Box(-1.0, 1.0, dim=1)] * 2)
    assert facts(same).ruled.monotone


def oligopoly(price, own, low, high):
    """Costs own_i(q_i) − q_i price(Q)."""

    def cost(i):
        return lambda x: own(i, x[i][0]) - x[i][0] * price(jnp.sum(jnp.concatenate(x)))

    return ez.Game([cost(i) for i in range(len(low))], [ez.sets.Box([a], [b]) for a, b in zip(low, high, strict=True)])


def least_seen(game, low, high, rng):
    """The least eigenvalue of the symmetric part of the Jacobian at random points."""
    with double():
        flat = jax.jit(jax.jacfwd(lambda x: jnp.concatenate(game.oracle(list(x[:, None]), None))))
        seen = np.inf
        for _ in range(60):
            share = rng.random(len(low)) ** rng.choice([0.2, 1.0, 8.0])
            x = np.where(
                rng.random(len(low)) < 0.4, np.where(rng.random(len(low)) < 0.5, low, high), low + share * (high - low)
            )
            J = np.asarray(flat(jnp.asarray(x)))
            seen = min(seen, np.linalg.eigvalsh((J + J.T) / 2)[0])
    return seen


def test_the_oligopoly_of_murphy_sherali_and_soyster(no_search):
    c, beta = np.array([10.0, 8, 6, 4, 2]), np.array([1.2, 1.1, 1.0, 0.9, 0.8])

    def own(i, q):
        return c[i] * q + beta[i] / (1 + beta[i]) * 0.2 ** (1 / beta[i]) * q ** ((1 + beta[i]) / beta[i])

    game = oligopoly(lambda Q: (5000 / Q) ** (1 / 1.1), own, np.ones(5), np.full(5, 100.0))
    slope = facts(game).slope
    assert slope.provenance is Provenance.VERIFIED
    assert 0.1 < slope.value < least_seen(game, np.ones(5), np.full(5, 100.0), np.random.default_rng(0))


PRICES = {
    "power": lambda Q: 9.0 * Q**-0.7,
    "exponential": lambda Q: 4.0 * jnp.exp(-0.3 * Q),
    "shifted": lambda Q: 5.0 / (1.0 + Q),
    "increasing": lambda Q: jnp.sqrt(1.0 + Q),
    "bent down": lambda Q: 3.0 - 0.02 * Q**3,
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", PRICES)
def test_oligopolies_against_dense_search(name):
    rng = np.random.default_rng(7)
    for n in (2, 3, 6):
        low = rng.uniform(0.05, 1.0, size=n)
        high = low + rng.uniform(0.1, 4.0, size=n)
        bends = rng.uniform(0.0, 0.2, size=n)
        game = oligopoly(PRICES[name], lambda i, q, bends=bends: bends[i] * q**2, low, high)
        found = facts(game).ruled.slope
        assert found.value <= least_seen(game, low, high, rng) + 1e-9


def test_an_operator_that_is_given(no_search):
    problem = ez.VariationalInequality(lambda x: A.T @ jnp.arctan(A @ x) + 0.1 * x, over=ez.sets.NonNegative(dim=4))
    known = facts(problem)
    assert known.ruled.slope.value == pytest.approx(0.1, rel=1e-9)
    assert known.ruled.kappa.value <= 0.1 + np.linalg.norm(A, 2) ** 2 + 1e-6


def test_least_squares_with_random_rows(no_search):
    n = 6
    known = facts(
        ez.Minimization(lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2, ez.sets.Ball(1.0, dim=n)),
        ez.sets.Box(-np.ones(n + 1), np.ones(n + 1)),
        jnp.zeros(n + 1),
    ).ruled
    assert known.slope.value == 0.0
    assert known.kappa.value <= n + 1e-9
    assert isinstance(known.M, Constant)


def test_the_audit_says_it_in_a_phrase():
    n = 3
    data = np.sign(np.random.default_rng(0).normal(size=(40, n + 1)))
    samples = ez.Samples(data, support=ez.sets.Box(-np.ones(n + 1), np.ones(n + 1)))
    audit = ez.audit(ez.Minimization(logistic, ez.sets.Ball(2.0, dim=n)), samples)
    assert audit.constants["kappa"].evidence.startswith("sum of convex functions of affine maps; softplus″ ≤ ¼")
    assert audit.assumptions["convex costs"].status == "holds"


def test_why_not_is_told():
    known = of(lambda x: jnp.sum(jnp.floor(x) * jnp.exp(x))).ruled
    assert "floor" in known.why_not
    assert not isinstance(known.slope, Unknown)
