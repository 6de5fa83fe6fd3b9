"""Costs whose derivatives hide what their values do: jumps, derivatives written by hand, valleys elsewhere, NaN.

The truth is found on a dense grid. Whatever a certificate says, guaranteed or conditional, must not be less; and of
costs that hide nothing it must still say something.
"""

import functools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez

UNIT = ez.sets.Box(-np.ones(1), np.ones(1))
GRID = np.linspace(-1.0, 1.0, 2001)[:, None]
TABLE = np.array([0.0, 1.0, -1.0, 2.0])


@jax.custom_jvp
def tilted(x):
    return x


tilted.defjvp(lambda primals, tangents: (tilted(primals[0]), 0.25 * tangents[0]))


@jax.custom_vjp
def halved(x):
    return x**2


halved.defvjp(lambda x: (halved(x), x), lambda x, g: (g * x,))

HIDING = {
    "floor": lambda x, t, a: a * jnp.floor(3 * (x - t)),
    "ceil": lambda x, t, a: a * jnp.ceil(3 * (x - t)),
    "round": lambda x, t, a: a * jnp.round(2 * (x - t)),
    "sign": lambda x, t, a: a * jnp.sign(x - t),
    "where": lambda x, t, a: jnp.where(x > t, a, 0.0),
    "cond": lambda x, t, a: jax.lax.cond(x > t, lambda: a, lambda: 0.0 * a),
    "truth": lambda x, t, a: a * (x > t),
    "whole": lambda x, t, a: a * (3 * (x - t)).astype(int),
    "remainder": lambda x, t, a: a * jnp.mod(x - t, 0.4),
    "index": lambda x, t, a: a * jnp.asarray(TABLE)[jnp.clip(4 * (x - t), 0, 3).astype(int)],
    "search": lambda x, t, a: a * jnp.searchsorted(jnp.array([-0.5, 0.0, 0.5]), x - t),
    "stop": lambda x, t, a: a * jax.lax.stop_gradient(x) + t,
    "stop inside": lambda x, t, a: a * (x - t) * jax.lax.stop_gradient(x),
    "custom jvp": lambda x, t, a: a * tilted(x) + t,
    "custom vjp": lambda x, t, a: a * halved(x - t),
    "kink": lambda x, t, a: a * (jax.nn.relu(x - t) - jax.nn.relu(t - x)),
    "single": lambda x, t, a: 1e6 * a * ((x - t).astype(jnp.float32).astype(jnp.float64) - (x - t)),
}
HONEST = {
    "nothing": lambda x, t, a: a * x + t,
    "exp": lambda x, t, a: jnp.abs(a) * jnp.exp(x - t),
    "softplus": lambda x, t, a: jnp.abs(a) * jax.nn.softplus(3 * (x - t)),
    "logsumexp": lambda x, t, a: jnp.abs(a) * jax.nn.logsumexp(jnp.array([1.0, -2.0]) * (x - t)),
    "root": lambda x, t, a: jnp.abs(a) * jnp.sqrt(1 + (x - t) ** 2),
}


@functools.cache
def cost_of(kind):
    """One function for each kind, so that it is compiled once; what varies are parameters of agents."""
    part = {**HIDING, **HONEST}[kind]

    def cost(own, average, p):
        return p["wear"] * own[0] ** 2 + 0.1 * average[0] * own[0] + part(own[0], p["at"], p["size"])

    return cost


def certified(problem, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ez.ConvexityWarning)
        solution = ez.solve(problem, throw=False, **options)
    return solution, ez.certify(solution)


def savings(cost, x, parameters):
    """What each agent could save on the grid, the others held still."""
    found = []
    with jax.enable_x64(True):
        for i, own in enumerate(x):
            mine = {name: values[i] for name, values in parameters.items()}
            alone = jax.vmap(lambda y, own=own, mine=mine: cost(y, x.mean(axis=0) + (y - own) / len(x), mine))
            found.append(float(alone(own[None])[0] - np.min(alone(GRID))))
    return np.array(found)


numbers = st.floats(-1.0, 1.0).map(lambda v: round(v, 3))
sizes = st.floats(0.1, 20.0).flatmap(lambda v: st.sampled_from([v, -v]))


@pytest.mark.long
@budget(12)
@given(st.sampled_from(sorted(HIDING)), st.lists(st.tuples(numbers, sizes), min_size=2, max_size=2), numbers)
def test_no_saving_is_certified_below_the_truth(kind, each, start):
    parameters = {"wear": np.array([1.0, 0.7]), "at": np.array([t for t, _ in each]), "size": [a for _, a in each]}
    parameters["size"] = np.array(parameters["size"])
    game = ez.AggregativeGame(cost_of(kind), parameters, UNIT)
    try:
        solution, found = certified(game, x0=np.full((2, 1), start))
    except ez.InputError:
        return  # a start at which something is undefined
    if found.exploitability is None:
        assert found.notes["exploitability"]
        assert found.notes["stationary"] or found.verdict is ez.certificates.Verdict.REFUSED
        return
    assert (found.exploitability >= savings(cost_of(kind), solution.x, parameters) - 1e-9).all(), kind


@pytest.mark.some(6)
@pytest.mark.parametrize("kind", sorted(HONEST))
def test_costs_that_hide_nothing_are_certified(kind):
    parameters = {"wear": np.array([1.0, 0.7]), "at": np.array([0.3, -0.2]), "size": np.array([0.5, 2.0])}
    solution, found = certified(ez.AggregativeGame(cost_of(kind), parameters, UNIT))
    assert found.verdict in (ez.certificates.Verdict.GUARANTEED, ez.certificates.Verdict.CONDITIONAL), found
    assert (found.exploitability < 1e-6).all()
    assert (found.exploitability >= savings(cost_of(kind), solution.x, parameters) - 1e-9).all()


# -- what was found, one by one ----------------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "loss",
    [
        lambda x: x @ x + 10 * jnp.floor(x).sum(),
        lambda x: x @ x + 10 * jnp.round(x).sum(),
        lambda x: x @ x + 10 * jnp.sign(x).sum(),
        lambda x: x @ x + jnp.where(x > -0.5, 10.0, 0.0).sum(),
        lambda x: x @ x + 10 * x.astype(int).sum(),
        lambda x: x @ x + jnp.asarray(TABLE)[jnp.clip(4 * x[0] + 2, 0, 3).astype(int)],
        lambda x: x @ x + jax.lax.stop_gradient(3 * x).sum(),
        lambda x: x @ x + 3 * tilted(x).sum(),
    ],
    ids=["floor", "round", "sign", "where", "cast", "index", "stop_gradient", "custom_jvp"],
)
def test_a_loss_that_its_derivative_does_not_tell_has_no_cost_gap(loss):
    _, found = certified(ez.Minimization(loss, UNIT))
    assert found.cost_gap is None
    assert found.distance is None
    assert "none:" in str(found)
    assert str(found).startswith("ε-stationary point")


@pytest.mark.long
def test_a_step_tariff_is_found_by_certificate_audit_and_check():
    tariff = lambda x: 5 * jnp.where(x[0][0] > 0.05, 1.0, 0.0)  # noqa: E731
    costs = [lambda x: (x[0] - 0.8) @ (x[0] - 0.8) + 0.1 * x[0] @ x[1] + tariff(x), lambda x: x[1] @ x[1] - x[1].sum()]
    game = ez.Game(costs, [ez.sets.Box(np.zeros(1), np.ones(1))] * 2)
    solution, found = certified(game)
    assert found.exploitability is None
    assert "jumps" in found.notes["exploitability"]
    assert solution.status is ez.Status.STATIONARY
    assert ez.audit(game).assumptions["convex costs"].status == "violated"
    check = solution.check_equilibrium()
    assert check.largest > 4.3
    assert "not convex, or jumps" in str(check)


@pytest.mark.long
def test_a_local_minimum_is_called_stationary():
    problem = ez.Minimization(lambda x: jnp.sum(x**4 - 3 * x**2 + x))
    with pytest.warns(ez.ConvexityWarning, match="need not be a minimum"):
        solution = ez.solve(problem, x0=np.array([1.5]))
    assert solution.status is ez.Status.STATIONARY
    assert str(solution).startswith("stationary")
    text = str(ez.certify(solution))
    assert text.startswith("ε-stationary point")
    assert "cost gap        none: loss: is not convex" in text
    assert ez.audit(problem, x0=np.array([1.5])).assumptions["convex costs"].status == "violated"


@pytest.mark.long
def test_a_gradient_that_is_stopped_gives_no_cocoercivity():
    twisted = ez.Minimization(lambda x: jnp.exp(x).sum() + jax.lax.stop_gradient(x[0]) * x[1] * 5, UNIT2)
    audit = ez.audit(twisted)
    assert "theta" not in audit.constants or "gradient" not in audit.constants["theta"].evidence


UNIT2 = ez.sets.Box(-np.ones(2), np.ones(2))


@pytest.mark.long
def test_what_a_user_vouches_for_is_said_to_be_so():
    lopsided = lambda x: jnp.where(x < 0, 2 * x**2, x**2).sum()  # noqa: E731  (no rule knows it; Huber's loss is known)
    _, plain = certified(ez.Minimization(lopsided, UNIT))
    assert plain.cost_gap is None
    assert "ez.declare(convex=True)" in plain.notes["cost_gap"]
    _, vouched = certified(ez.Minimization(lopsided, UNIT, declared=ez.declare(convex=True)))
    assert vouched.verdict is ez.certificates.Verdict.CONDITIONAL
    assert vouched.cost_gap < 1e-6
    assert any(one.evidence == "ez.declare(convex=True)" for one in vouched.leans_on)


# -- where nothing is defined ------------------------------------------------------------------------------------------


def test_a_loss_that_is_nan_on_the_whole_domain_is_refused():
    problem = ez.Minimization(lambda x: jnp.log(x[0] - 5), ez.sets.Box(np.zeros(1), np.ones(1)))
    with pytest.raises(ez.InputError, match="^loss: is NaN or infinite at the start"):
        ez.solve(problem)


@pytest.mark.long
def test_a_run_that_ends_where_the_loss_is_nan_has_failed():
    problem = ez.Minimization(lambda x: (x @ x + 2 * x.sum()) + 0 * jnp.log(x[0] + 0.5) ** 0, UNIT)
    valued = ez.Minimization(lambda x: x @ x + 2 * x.sum() + jax.lax.stop_gradient(0 * jnp.log(x[0] + 0.5)), UNIT)
    for one in (problem, valued):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            solution = ez.solve(one, x0=np.array([0.5]), throw=False)
        found = ez.certify(solution)
        assert found.cost_gap is None or solution.status is ez.Status.CONVERGED
    assert solution.status is ez.Status.NOT_FINITE


@pytest.mark.some(3)
@pytest.mark.parametrize("part", [jnp.log, lambda x: jnp.log1p(x - 1), jnp.sqrt, lambda x: x**0.5, jnp.arccosh])
def test_an_undefined_part_of_the_domain_leaves_no_distance(part):
    problem = ez.VariationalInequality(lambda x: x + 0 * part(x), over=UNIT)
    _, found = certified(problem, x0=np.array([0.5]))
    assert found.distance is None
    start = np.array([1.0])
    assert ez.audit(problem, x0=start).assumptions["defined"].status == "open"
