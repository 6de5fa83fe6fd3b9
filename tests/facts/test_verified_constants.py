"""Verified constants of nonlinear problems: never on the wrong side of what a dense search sees, and near it."""

from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import epszero as ez
from epszero import facts as facts_room
from epszero.facts import Provenance, Unknown

Box = ez.sets.Box


def facts_of(*given: Any) -> Any:
    """Facts whose constants are looked at without asking first whether they are known."""
    return facts_room.facts_of(*given)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


class Case(NamedTuple):
    problem: Any
    x: Any
    flat: Any  # O(x, ξ) of flat points, written down once more
    within: Any  # the domain, as a set of flat points
    support: Any = None

    @property
    def facts(self):
        return self.known(0.2)

    def known(self, effort):
        supports, row = ([], None) if self.support is None else ([self.support], np.zeros(len(self.support.lower)))
        return facts_of(self.problem, supports, row, self.x, effort)


def inequality(F, over, n, support=None):
    """F(x), or F(x, ξ)."""
    flat = (lambda x, xi: F(x)) if support is None else F
    return Case(ez.VariationalInequality(F, over=over), np.zeros(n), flat, over, support)


def quartic():
    """A concave two-person game as in Rosen, Econometrica 33 (1965): quartic costs and opposed interests."""
    costs = [lambda x: jnp.sum(x[0] ** 4 / 4 + x[0] ** 2 / 2 + 2 * x[0] * x[1]),
             lambda x: jnp.sum(x[1] ** 4 / 4 + x[1] ** 2 / 2 - 2 * x[0] * x[1])]  # fmt: skip
    box = Box(-2, 2, dim=1)

    def flat(x, xi):
        return jnp.stack([x[0] ** 3 + x[0] + 2 * x[1], x[1] ** 3 + x[1] - 2 * x[0]])

    return Case(ez.Game(costs, [box, box]), [np.zeros(1), np.zeros(1)], flat, Box(-2, 2, dim=2))


def oligopoly():
    """Five firms of Murphy, Sherali & Soyster, Math. Prog. 24 (1982), about their equilibrium."""
    c, beta, elasticity = np.array([10, 8, 6, 4, 2.0]), np.array([1.2, 1.1, 1.0, 0.9, 0.8]), 1.1
    at = np.array([36.9318, 41.8175, 43.7060, 42.6588, 39.1786])

    def F(x):
        total = jnp.sum(x)
        price = (5000 / total) ** (1 / elasticity)
        return c + (x / 5.0) ** (1 / beta) - price + x * price / (elasticity * total)

    return inequality(F, Box(at - 10, at + 10), 5)


def kojima_shindo():
    """The map of Kojima & Shindo, J. Oper. Res. Soc. Japan 29 (1986), not monotone."""

    def F(x):
        a, b, c, d = x
        return jnp.stack([3 * a**2 + 2 * a * b + 2 * b**2 + c + 3 * d - 6, 2 * a**2 + a + b**2 + 10 * c + 2 * d - 2,
                          3 * a**2 + a * b + 2 * b**2 + 2 * c + 9 * d - 9,
                          a**2 + 3 * b**2 + 2 * c + 3 * d - 3])  # fmt: skip

    return inequality(F, Box(0, 2, dim=4), 4)


def braess():
    """Path times on Braess's network with times of the Bureau of Public Roads (1964), t(1 + 0.15 (v/c)⁴)."""
    uses = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1], [0, 0, 1.0]])  # edges × paths
    free, capacity = np.array([10, 50, 50, 10, 10.0]), np.array([4, 2, 2, 4, 2.0])
    return inequality(lambda x: uses.T @ (free * (1 + 0.15 * ((uses @ x) / capacity) ** 4)), Box(1, 3, dim=3), 3)


def kelly():
    """Users with logarithmic utilities who share a link with a rising price: Kelly, Eur. Trans. Telecom. 8 (1997)."""
    w = np.array([1.0, 2.0, 3.0])
    return inequality(lambda x: -w / x + (jnp.sum(x) / 4) ** 3, Box(0.5, 3, dim=3), 3)


def logistic():
    """Logistic regression with a ridge: Hosmer & Lemeshow, Applied Logistic Regression (1989)."""
    rows = np.random.default_rng(0).normal(size=(12, 3))
    return inequality(lambda x: rows.T @ jax.nn.sigmoid(rows @ x) / 4 + 0.2 * x, Box(-2, 2, dim=3), 3)


def softplus():
    """Smoothed Fischer-like plus functions, as in Chen & Mangasarian, Comput. Optim. Appl. 5 (1996), and a rotation."""
    K = np.array([[1.0, 2.0, 0.0], [-2.0, 1.0, 1.0], [0.0, -1.0, 0.5]])
    return inequality(lambda x: K @ x + jax.nn.softplus(3 * x - 1) - 2, Box(-1, 2, dim=3), 3)


def network():
    """A Hopfield network at rest, I − W tanh: Hopfield, PNAS 81 (1984), with exponential leakage."""
    W = np.array([[0.3, -0.8, 0.2], [0.5, 0.1, -0.6], [-0.2, 0.7, 0.4]])
    return inequality(lambda x: jnp.exp(0.5 * x) + x - W @ jnp.tanh(x), Box(-1.5, 1.5, dim=3), 3)


def exponential_cournot():
    """Firms under p = 10 exp(−Q/4), as in Murphy, Sherali & Soyster's class: quantities below the turning point."""

    def cost(own, average, mine):
        return mine * jnp.sum(own) + 0.2 * own @ own - 10 * jnp.exp(-jnp.sum(3 * average) / 4) * jnp.sum(own)

    def flat(x, xi):
        return np.array([1.0, 1.5, 2.0]) + 0.4 * x - 10 * jnp.exp(-jnp.sum(x) / 4) * (1 - x / 4)

    game = ez.AggregativeGame(cost, np.array([1.0, 1.5, 2.0]), Box(0, 2, dim=1))
    return Case(game, np.zeros((3, 1)), flat, Box(0, 2, dim=3))


def internet_switching():
    """Problem A.1 of Facchinei & Kanzow, Optimization 59 (2010), with four users, about their equilibrium 3/16."""
    return inequality(_share, Box(0.17, 0.205, dim=4), 4)


def internet_switching_wide():
    """The same further from its equilibrium."""
    return inequality(_share, Box(0.15, 0.25, dim=4), 4)


def _share(x):
    total = jnp.sum(x)
    return -(total - x) / total**2 + 1.0


def noisy_growth():
    """Gompertz-like costs with random slopes and shocks: O(x, ξ) = (1 + ξ₀)x³ + eˣ + Kx + ξ₁ sin x."""
    K = np.array([[0.5, 1.0], [-1.0, 0.5]])
    return inequality(lambda x, xi: (1 + xi[0]) * x**3 + jnp.exp(x) + K @ x + xi[1] * jnp.sin(x),
                      Box(-1, 1, dim=2), 2, Box([-0.5, -0.8], [0.5, 0.8]))  # fmt: skip


def noisy_routing():
    """Two roads of the Bureau of Public Roads with random capacities, in a network with a toll that rises."""
    free = np.array([1.0, 1.5])
    return inequality(lambda x, xi: free * (1 + 0.15 * (x / xi[:2]) ** 4) + 0.1 * jnp.sum(x) + xi[2] * x,
                      Box(0.5, 2, dim=2), 2, Box([0.9, 1.1, 0.1], [1.1, 1.3, 0.3]))  # fmt: skip


def noisy_routing_wide():
    """The same with capacities that vary more."""
    return noisy_routing()._replace(support=Box([0.8, 1.0, 0.1], [1.2, 1.5, 0.3]))


CASES = {make.__name__: make for make in (
    quartic, oligopoly, kojima_shindo, braess, kelly, logistic, softplus, network, exponential_cournot,
    internet_switching, internet_switching_wide, noisy_growth, noisy_routing, noisy_routing_wide,
)}  # fmt: skip
QUICK = ("quartic", "softplus", "exponential_cournot", "noisy_growth")
LOOSE = ("internet_switching_wide",)  # μ ≥ 0.41 where it is 1, in ten seconds


# -- what is seen -----------------------------------------------------------------------------------------------------


class Seen(NamedTuple):
    mu: float
    kappa: float
    M: float
    R: float


def points(rng, low, high, many=6000):
    """Random points of a box, its corners, and a grid."""
    n = len(low)
    side = max(2, int(many ** (1 / n)))
    grid = np.array(list(product(np.linspace(0, 1, side), repeat=n))) if side**n <= 20_000 else np.zeros((0, n))
    corners = np.round(rng.uniform(size=(min(1000, 8 * 2**n), n)))
    return low + np.concatenate([rng.uniform(size=(many, n)), grid, corners]) * (high - low)


def seen(case, seed=0):
    """The extremes over many points of the domain and the support."""
    rng = np.random.default_rng(seed)
    n = sum(np.size(leaf) for leaf in jax.tree.leaves(case.x))
    around = Box(*_around(case.within, n))
    x = points(rng, around.lower, around.upper)
    x = x if isinstance(case.within, Box) else np.concatenate([x[case.within.contains(x)], case.within.project(x)])
    xi = np.zeros((len(x), 0))
    if case.support is not None:
        rows = points(rng, case.support.lower, case.support.upper, len(x))
        xi = rng.permutation(rows)[: len(x)]
    J = np.asarray(jax.jit(jax.vmap(jax.jacfwd(case.flat)))(x, xi))
    values = jax.jit(jax.vmap(case.flat))
    sizes = np.linalg.norm(values(x, xi), axis=1)
    R = 0.0
    if case.support is not None:
        ends = np.where(rng.uniform(size=(2, *xi.shape)) < 0.5, case.support.lower, case.support.upper)
        pairs = ((xi, rng.permutation(xi)), ends, (ends[0], case.support.lower + case.support.upper - ends[0]))
        R = max(np.linalg.norm(values(x, a) - values(x, b), axis=1).max() for a, b in pairs)
    least = np.linalg.eigvalsh((J + np.swapaxes(J, 1, 2)) / 2)[:, 0].min()
    return Seen(least, np.linalg.norm(J, 2, axis=(1, 2)).max(), sizes.max(), R)


def _around(within, n):
    if isinstance(within, Box):
        return np.broadcast_to(within.lower, n), np.broadcast_to(within.upper, n)
    eye = np.eye(n)
    return -np.asarray(within.support(-eye)), np.asarray(within.support(eye))


def bounds(case, effort=1.0):
    facts = case.known(effort)
    found = [facts.kappa, facts.slope, facts.M, facts.R]
    kappa, mu, M, R = (one.value for one in found)
    return Seen(mu, kappa, M, R)


def safe(found, truth):
    """Whether no bound is on the wrong side of what was seen."""
    room = 1e-9
    return (
        found.mu <= truth.mu + room * abs(truth.kappa) and found.kappa >= truth.kappa * (1 - room)
        and truth.M * (1 - room) <= found.M and truth.R * (1 - room) <= found.R
    )  # fmt: skip


def near(found, truth):
    """Whether bounds are within a factor 2 of what was seen."""
    return (
        found.mu >= (truth.mu / 2 if truth.mu > 0 else 2 * truth.mu)
        and found.kappa <= 2 * truth.kappa and found.M <= 2 * truth.M and found.R <= 2 * truth.R
    )  # fmt: skip


@pytest.mark.some(4)
@pytest.mark.parametrize("name", QUICK)
def test_the_usual_effort_is_enough_for_some(name):
    case = CASES[name]()
    found, truth = bounds(case), seen(case)
    assert case.facts.structure.in_x == "nonlinear"
    assert case.facts.slope.provenance is Provenance.VERIFIED
    assert safe(found, truth)
    assert near(found, truth)


@pytest.mark.some(4)
@pytest.mark.parametrize("name", [name for name in CASES if name not in (*QUICK, *LOOSE)])
def test_little_effort_is_safe(name):
    case = CASES[name]()
    facts, truth = case.known(0.05), seen(case)
    assert facts.slope.value <= truth.mu + 1e-9 * truth.kappa
    assert facts.kappa.value >= truth.kappa * (1 - 1e-9)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_more_effort_comes_within_a_factor_of_two(name):
    case = CASES[name]()
    found, truth = bounds(case, 6.0), seen(case)
    assert safe(found, truth)
    assert near(found, truth) or name in LOOSE


@pytest.mark.some(3)
@pytest.mark.parametrize("name", [name for name in CASES if name not in LOOSE])
def test_the_search_sees_what_the_library_calls(name):
    """The functions that are written down here are those of the problems."""
    case = CASES[name]()
    rng = np.random.default_rng(1)
    n = sum(np.size(leaf) for leaf in jax.tree.leaves(case.x))
    flat, unravel = ravel_pytree(case.x)
    x = np.asarray(case.within.project(rng.normal(size=n)))
    xi = None if case.support is None else rng.uniform(case.support.lower, case.support.upper)
    ours = case.flat(x, np.zeros(0) if xi is None else xi)
    theirs = ravel_pytree(case.problem.oracle(unravel(jnp.asarray(x, flat.dtype)), xi))[0]
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.fixture
def no_rules(monkeypatch):
    """Enclosures alone."""
    facts = import_module("epszero.facts.facts")
    monkeypatch.setattr(facts, "ruled", lambda _: facts.NO_RULES)


def test_the_check_finds_bounds_at_the_middle_only(monkeypatch, no_rules):
    verified = import_module("epszero.facts.enclosed")
    branching = import_module("epszero.facts.branching")

    def at_the_middle(task, most):
        middle = (task.box.lower + task.box.upper)[None] / 2
        value = float(np.asarray(task.above(*[np.repeat(middle, task.batch, axis=0)] * 2))[0])
        return branching.Supremum(value, value, 1)

    monkeypatch.setattr(verified, "supremum", at_the_middle)
    for name in ("kelly", "logistic", "exponential_cournot", "noisy_growth"):
        case = CASES[name]()
        assert not safe(bounds(case), seen(case))


@pytest.mark.long
def test_more_work_never_makes_a_bound_looser_and_the_same_work_finds_the_same(no_rules):
    case = CASES["oligopoly"]()
    slopes = [case.known(effort).slope.value for effort in (0.01, 0.1, 0.3)]
    norms = [case.known(effort).kappa.value for effort in (0.01, 0.1, 0.3)]
    assert slopes == sorted(slopes)
    assert slopes[-1] > slopes[0]
    assert norms == sorted(norms, reverse=True)
    again = CASES["oligopoly"]()  # another problem, asked in another order
    assert [again.known(effort).slope.value for effort in (0.3, 0.01)] == [slopes[2], slopes[0]]


# -- what cannot be verified ------------------------------------------------------------------------------------------


def test_an_unbounded_domain_says_what_is_needed():
    facts = inequality(lambda x: x**3, ez.sets.WholeSpace(dim=2), 2).facts
    assert facts.slope.value <= 0
    assert isinstance(facts.mu, Unknown)
    assert isinstance(facts.kappa, Unknown)
    assert isinstance(facts.M, Unknown)
    assert "domain is unbounded" in facts.unenclosed


def test_bounded_slopes_are_verified_on_an_unbounded_domain_too():
    facts = inequality(lambda x: 2 * x + jnp.tanh(x), ez.sets.WholeSpace(dim=2), 2).facts
    assert facts.slope.value == pytest.approx(2.0, rel=1e-6)
    assert 3.0 <= facts.kappa.value <= 3.1


@pytest.mark.parametrize("jump", [
    lambda x: jnp.where(x > 0.2, x, x - 1), jnp.sign, jnp.floor, jnp.round, lambda x: (x > 0) * 1.0,
    lambda x: jnp.where(x > 0.2, x + 1, x), lambda x: x.astype(int) * 1.0,
])  # fmt: skip
def test_what_jumps_is_not_verified_and_it_is_said(jump):
    facts = inequality(lambda x: x + jump(x), Box(-1, 1, dim=2), 2).facts
    assert isinstance(facts.slope, Unknown)
    assert isinstance(facts.kappa, Unknown)
    assert isinstance(facts.mu, Unknown)
    assert "no enclosure" in facts.unenclosed


def test_jumps_that_are_out_of_reach_do_no_harm():
    case = inequality(lambda x: x**3 + jnp.where(x > 2.0, 0.0, x), Box(-1, 1, dim=2), 2)
    assert case.facts.slope.value == pytest.approx(1.0, rel=0.02)
    assert case.facts.unenclosed == ""


def test_kinks_are_no_jumps():
    case = inequality(lambda x: jnp.abs(x) + 2 * x + jnp.maximum(x, 0.3), Box(-1, 1, dim=2), 2)
    assert 0.5 <= case.facts.slope.value <= 1.0
    assert 4.0 <= case.facts.kappa.value <= 8.0


def test_derivatives_of_the_users_making_are_seen_through():
    @jax.custom_jvp
    def lying(x):
        return x**2

    lying.defjvp(lambda primals, tangents: (lying(*primals), 5.0 * tangents[0]))

    @jax.custom_vjp
    def backwards(x):
        return x**2

    backwards.defvjp(lambda x: (x**2, None), lambda _, g: (5.0 * g,))
    for f in (lying, backwards, jax.jit(lying), jax.vmap(lying)):
        facts = inequality(lambda x, f=f: x + f(x), Box(-0.4, 1, dim=2), 2).facts
        assert 0.2 - 0.02 <= facts.slope.value <= 0.2
        assert 3.0 <= facts.kappa.value <= 3.1


def test_stopped_gradients_are_seen_through():
    facts = inequality(lambda x: 2 * x + jax.lax.stop_gradient(jnp.tanh(x) - 2 * x), Box(-1, 1, dim=2), 2).facts
    slope = facts.slope
    assert slope is None or slope.value <= 1 - np.tanh(1) ** 2


# -- the support ------------------------------------------------------------------------------------------------------


def multiplied(support):
    return inequality(lambda x, xi: jnp.exp(x) * xi[0] + x + xi[1], Box(-1, 1, dim=2), 2, support)


def test_the_support_matters():
    narrow, wide = multiplied(Box([0.9, -1], [1.1, 1])), multiplied(Box([-0.2, -1], [2, 1]))
    for case in (narrow, wide):
        found, truth = bounds(case, 0.4), seen(case)
        assert safe(found, truth)
        assert near(found, truth)
    assert narrow.facts.slope.value > 1.2
    assert wide.facts.slope.value < 0.5  # 1 − 0.2 e at worst
    assert wide.facts.kappa.value > 1.5 * narrow.facts.kappa.value


def test_a_missing_support_gives_nothing_and_is_said():
    case = multiplied(Box([0.9, -1], [1.1, 1]))
    facts = facts_of(case.problem, [None], np.zeros(2), np.zeros(2))
    assert isinstance(facts.mu, Unknown)
    assert isinstance(facts.kappa, Unknown)
    assert isinstance(facts.R, Unknown)
    assert isinstance(facts.M, Unknown)
    assert "support is not known" in facts.unenclosed


def test_a_missing_support_does_not_matter_where_noise_is_additive():
    problem = ez.VariationalInequality(lambda x, xi: x**3 + x + xi, over=Box(-1, 1, dim=2))
    facts = facts_of(problem, [None], np.zeros(2), np.zeros(2))
    assert facts.structure.in_xi == "additive"
    assert 0.98 <= facts.slope.value <= 1.0
    assert 4.0 <= facts.kappa.value <= 4.1
    assert isinstance(facts.R, Unknown)
    assert isinstance(facts.M, Unknown)


# -- domains that are no boxes ----------------------------------------------------------------------------------------

SETS = {
    "simplex": ez.sets.Simplex(dim=3),
    "ball": ez.sets.Ball(radius=0.7, dim=3),
    "budget": ez.sets.BoxBudget(0.0, 1.0, at_most=1.2, dim=3),
}


@pytest.mark.some(3)
@pytest.mark.some(2)
@pytest.mark.parametrize("name", SETS)
def test_only_points_of_the_domain_count(name):
    """At the corners of the box around it, the function is much steeper than anywhere on the domain."""
    within = SETS[name]
    case = inequality(lambda x: x + jnp.exp(3 * (jnp.sum(x) - 1.2)) + 0.3 * x**2, within, 3)
    kappa, mu = case.facts.kappa.value, case.facts.slope.value
    truth, around = seen(case), seen(case._replace(within=Box(*_around(within, 3))))
    assert mu <= truth.mu
    assert truth.kappa * (1 - 1e-9) <= kappa <= 2 * truth.kappa
    assert around.kappa > 3 * truth.kappa


@pytest.mark.long
def test_a_pole_outside_of_the_domain_does_no_harm():
    within = ez.sets.Simplex(dim=2)
    case = inequality(lambda x: x + 1 / (1.6 - x[0] - x[1]) - 1 / (x[0] + x[1] - 0.4), within, 2)
    facts, truth = case.facts, seen(case)
    kappa = facts.kappa
    # No enclosure of the whole box around is asked for anything but jumps, and there 1/x is refused.
    if isinstance(kappa, Unknown):
        assert "no enclosure" in facts.unenclosed
    else:
        assert truth.kappa * (1 - 1e-9) <= kappa.value <= 2 * truth.kappa
