"""Losses with kinks, solved to optimality: against closed forms and CVXPY, with subgradients that are what they say."""

import time

import cvxpy as cp
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.solve.status import Status

RNG = np.random.default_rng(0)
DEMAND = RNG.lognormal(size=(2001, 1))
DESIGN = np.c_[np.ones(60), RNG.normal(size=(60, 4))]
TABLE = np.c_[DESIGN @ RNG.normal(size=5) + RNG.standard_t(3, size=60), DESIGN]
LABELS = np.c_[np.sign(DESIGN @ RNG.normal(size=5) + RNG.normal(size=60)), DESIGN]
RETURNS = 0.001 + 0.02 * RNG.standard_t(4, size=(200, 5))


def newsvendor(x, demand):
    return 0.3 * jnp.maximum(x[0] - demand[0], 0) + 0.7 * jnp.maximum(demand[0] - x[0], 0)


def pinball(x, row):
    u = row[0] - row[1:] @ x
    return jnp.maximum(0.7 * u, -0.3 * u)


def hinge(x, row):
    return jax.nn.relu(1 - row[0] * (row[1:] @ x)) + 0.05 * x @ x


def deviation(x, row):
    return jnp.abs(row[0] - row[1:] @ x)


def average(loss, x, data):
    """f̂ at x, in double precision, by another way than the solver's."""
    with jax.enable_x64(True):
        return float(np.mean(np.asarray(jax.vmap(lambda row: loss(jax.tree.map(jnp.asarray, x), row))(data))))


def the_facts_hold(solution, loss, data):
    """x, z and the subgradient are what they say, by values alone."""
    assert solution.status is Status.CONVERGED
    check = solution.check()
    assert check.in_domain
    assert abs(check.gap) <= 1e-12
    assert check.residual == pytest.approx(solution.residual, abs=1e-12)
    g, x = solution.subgradient, solution.x
    here, rng = average(loss, x, data), np.random.default_rng(2)
    for size in (1e-6, 1e-3, 1.0, 100.0):
        for _ in range(5):
            step = jax.tree.map(lambda leaf, size=size: size * rng.normal(size=np.shape(leaf)), x)
            there = average(loss, jax.tree.map(np.add, x, step), data)
            along = sum(jax.tree.leaves(jax.tree.map(lambda a, b: float(np.sum(a * b)), g, step)))
            assert there >= here + along - 1e-12 * (1 + abs(there))


def test_the_newsvendor_orders_a_quantile():
    solution = ez.solve(ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1)), DEMAND)
    the_facts_hold(solution, newsvendor, DEMAND)
    quantile = np.sort(DEMAND[:, 0])[int(np.ceil(0.7 * len(DEMAND))) - 1]
    assert solution.x[0] == pytest.approx(quantile, rel=1e-15)
    assert solution.residual < 1e-12
    assert "linear programme" in str(solution)


def test_between_two_samples_any_order_is_best():
    data = np.array([[1.0], [2.0], [3.0], [4.0]])

    def both(x, demand):
        return jnp.abs(x[0] - demand[0])

    solution = ez.solve(ez.Minimization(both, ez.sets.Box(0.0, 10.0, dim=1)), data)
    the_facts_hold(solution, both, data)
    assert 2.0 <= solution.x[0] <= 3.0


def test_many_equal_samples_share_the_kink():
    data = np.repeat([[1.0], [2.0]], [300, 200], axis=0)
    solution = ez.solve(ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1)), data)
    the_facts_hold(solution, newsvendor, data)
    assert solution.x[0] == pytest.approx(2.0, rel=1e-15)


def programmes():
    x = cp.Variable(5)
    u, fit = TABLE[:, 0] - TABLE[:, 1:] @ x, LABELS[:, 1:] @ x
    quantile = cp.sum(cp.maximum(0.7 * u, -0.3 * u)) / 60
    margin = cp.sum(cp.pos(1 - cp.multiply(LABELS[:, 0], fit))) / 60 + 0.05 * cp.sum_squares(x)
    absolute = cp.sum(cp.abs(u)) / 60
    box = [x >= -0.5, x <= 0.5]
    budget = [x >= 0, x <= 1, cp.sum(x) >= 1, cp.sum(x) <= 2]
    G = np.random.default_rng(5).normal(size=(7, 5))
    sets = ez.sets
    return {
        "quantile regression": (pinball, None, TABLE, quantile, []),
        "support vectors": (hinge, None, LABELS, margin, []),
        "quantile regression, box": (pinball, sets.Box(-0.5, 0.5, dim=5), TABLE, quantile, box),
        "support vectors, budget": (
            hinge, sets.BoxBudget(0.0, 1.0, at_least=1.0, at_most=2.0, dim=5), LABELS, margin, budget,
        ),
        "absolute deviations, l1": (deviation, ez.functions.L1(0.1), TABLE, absolute + 0.1 * cp.norm1(x), []),
        "absolute deviations, elastic net": (
            deviation, ez.functions.ElasticNet(0.1, 0.3), TABLE,
            absolute + 0.1 * cp.norm1(x) + 0.15 * cp.sum_squares(x), [],
        ),
        "absolute deviations, total variation": (
            deviation, ez.functions.TotalVariation1D(0.2), TABLE, absolute + 0.2 * cp.norm1(cp.diff(x)), [],
        ),
        "absolute deviations, simplex": (deviation, sets.Simplex(dim=5), TABLE, absolute, [x >= 0, cp.sum(x) == 1]),
        "absolute deviations, polyhedron": (deviation, sets.Polyhedron(G, np.ones(7)), TABLE, absolute, [G @ x <= 1]),
        "support vectors, ball": (hinge, sets.Ball(0.3, dim=5), LABELS, margin, [cp.norm(x) <= 0.3]),
        "largest deviation": (
            lambda x, r: jnp.max(jnp.abs(r[1:] * x - r[0])), sets.Box(-0.5, 0.5, dim=5), TABLE,
            sum(cp.norm_inf(cp.multiply(r[1:], x) - r[0]) for r in TABLE) / 60, box,
        ),
        "logistic with kinks": (
            lambda x, r: jnp.logaddexp(0.0, -r[0] * (r[1:] @ x)) + 0.02 * jnp.abs(x - 1).sum(), None, LABELS,
            cp.sum(cp.logistic(-cp.multiply(LABELS[:, 0], fit))) / 60 + 0.02 * cp.norm1(x - 1), [],
        ),
    }  # fmt: skip


PROGRAMMES = programmes()


@pytest.mark.some(4)
@pytest.mark.parametrize("name", PROGRAMMES)
@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_the_optimum_is_that_of_another_modelling_language(name):
    loss, side, data, objective, constraints = PROGRAMMES[name]
    best = cp.Problem(cp.Minimize(objective), constraints).solve(
        solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    solution = ez.solve(ez.Minimization(loss, side), data, x0=np.zeros(5))
    the_facts_hold(solution, loss, data)
    here = average(loss, solution.x, data) + (float(side(solution.x)) if isinstance(side, ez.functions.Function) else 0)
    assert here == pytest.approx(best, abs=1e-8)


def test_value_at_risk_with_its_extra_variable():
    def cvar(v, row):
        return v["t"][0] + jax.nn.relu(-row @ v["x"] - v["t"][0]) / 0.05

    parts = {"x": ez.sets.Simplex(dim=5), "t": ez.sets.WholeSpace(dim=1)}
    solution = ez.solve(ez.Minimization(cvar, parts), RETURNS)
    the_facts_hold(solution, cvar, RETURNS)
    x, t = cp.Variable(5), cp.Variable()
    risk = t + cp.sum(cp.pos(-RETURNS @ x - t)) / 200 / 0.05
    best = cp.Problem(cp.Minimize(risk), [x >= 0, cp.sum(x) == 1]).solve(solver="CLARABEL")
    assert average(cvar, solution.x, RETURNS) == pytest.approx(best, abs=1e-8)
    worst = np.sort(-RETURNS @ solution.x["x"])[-10:]  # 5 % of 200
    assert average(cvar, solution.x, RETURNS) == pytest.approx(worst.mean(), abs=1e-12)


def test_without_samples():
    def loss(x):
        return jnp.sum(jnp.abs(DESIGN @ x - TABLE[:, 0]))

    solution = ez.solve(ez.Minimization(loss), x0=np.zeros(5))
    assert solution.status is Status.CONVERGED
    assert np.sum(np.abs(DESIGN @ solution.x - TABLE[:, 0]) < 1e-12) >= 5  # as many as there are entries


@pytest.mark.parametrize("unit", [1e-9, 1e9])
@pytest.mark.parametrize("money", [1e-9, 1e9])
def test_units_do_not_matter(unit, money):
    problem = ez.Minimization(lambda x, r: money * newsvendor(x, r), ez.sets.Box(0.0, 10.0 * unit, dim=1))
    solution = ez.solve(problem, unit * DEMAND[:501])
    assert solution.x[0] == pytest.approx(unit * np.sort(DEMAND[:501, 0])[350], rel=1e-12)
    assert solution.residual <= 1e-12 * money


CONCAVE = {
    "a difference that is linear": lambda x, r: jax.nn.relu(x[0]) - jax.nn.relu(-x[0]) + r[0] * x[1],
    "minus abs": lambda x, r: -jnp.abs(x[0] - r[0]),
    "a negative weight in the data": lambda x, r: r[0] * jnp.abs(x[0]),
    "where with a jump": lambda x, r: jnp.where(x[0] > r[0], x[0] - r[0] + 1e-9, 0.0),
    "where that does not meet": lambda x, r: jnp.where(x[0] > r[0] + 0.1, x[0] - r[0], 0.0),
    "where of another direction": lambda x, r: jnp.where(x[0] > 0, x[1], 0.0),
    "clip": lambda x, r: jnp.clip(x[0] - r[0], 0, 1),
    "a product of kinks": lambda x, r: jnp.abs(x[0]) * jnp.abs(x[1]),
    "a kink inside, turned over": lambda x, r: jnp.maximum(-jnp.abs(x[0]), x[1] - 5),
    "a smooth part that bends down": lambda x, r: jnp.abs(x[0] - r[0]) - x @ x,
    "a hidden jump": lambda x, r: jnp.abs(x[0]) + jnp.floor(x[1]),
}


@pytest.mark.some(6)
@pytest.mark.parametrize("name", CONCAVE)
@pytest.mark.filterwarnings("ignore::epszero.ConvexityWarning")
def test_what_is_not_convex_is_not_solved_as_if_it_were(name):
    data = np.random.default_rng(3).normal(size=(20, 2))
    solution = ez.solve(ez.Minimization(CONCAVE[name], ez.sets.Box(-1.0, 1.0, dim=2)), data, throw=False)
    assert solution.subgradient is None
    assert "programme" not in solution.method.description


@pytest.mark.long
def test_a_kink_that_is_not_followed_is_named_with_a_remedy():
    def by_indicator(x, r):
        return (r[0] - x[0]) * (0.7 - (r[0] < x[0]))

    problem = ez.Minimization(by_indicator, ez.sets.Box(0.0, 10.0, dim=1))
    with pytest.raises(ez.SolveError, match=r"a kink \(comparison at test_kinks.py:\d+, by_indicator\)") as caught:
        ez.solve(problem, DEMAND[:501])
    assert "smooth it" in str(caught.value)


@pytest.mark.some(2)
@pytest.mark.parametrize("method", [ez.ForwardBackward(), ez.ForwardBackward(step=0.1)])
def test_a_named_method_is_told_of_the_way_that_works(method):
    problem = ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1))
    with pytest.raises(ez.SolveError, match="solved to optimality if method is left out"):
        ez.solve(problem, DEMAND[:501], method)


@pytest.mark.long
def test_a_regularizer_that_does_not_fit_is_named():
    problem = ez.Minimization(lambda x, r: jnp.abs(x - r).sum(), ez.functions.L2(0.05))
    data = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ez.SolveError, match=r"cannot be joined with the regularizer L2"):
        ez.solve(problem, data, x0=np.zeros(2))


@pytest.mark.long
def test_many_shapes_of_points():
    rows = np.random.default_rng(4).normal(size=(30, 12))

    def table(x, r):
        return jnp.abs(x - r.reshape(4, 3)).sum()

    solution = ez.solve(ez.Minimization(table, ez.sets.Simplex(dim=3)), rows, x0=np.full((4, 3), 1 / 3))
    the_facts_hold(solution, table, rows)
    single = ez.solve(ez.Minimization(lambda x, r: jnp.abs(x - r[0])), rows[:, :1], x0=0.0)
    assert abs(single.x - np.median(rows[:, 0])) <= np.ptp(np.sort(rows[:, 0])[14:16])


def test_what_prints_is_followed_too():
    def loud(x, r):
        jax.debug.print("{x}", x=x, ordered=False)
        return jnp.abs(x[0] - r[0])

    assert ez.solve(ez.Minimization(loud, ez.sets.Box(0.0, 1.0, dim=1)), DEMAND[:5]).subgradient is not None


@pytest.mark.long
def test_fixed_iterations_run_as_before():
    problem = ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1))
    solution = ez.solve(problem, DEMAND[:501], iterations=5)
    assert solution.iterations == 5
    assert solution.subgradient is None


@pytest.mark.long
def test_squares_of_kinks_are_smooth_and_go_the_usual_way():
    problem = ez.Minimization(lambda x, r: jax.nn.relu(r[0] - x[0]) ** 2 + 0.1 * x[0], ez.sets.Box(0.0, 10.0, dim=1))
    solution = ez.solve(problem, DEMAND[:501])
    assert solution.status is Status.CONVERGED
    assert solution.subgradient is None


@pytest.mark.long
def test_no_least_value_is_said():
    with pytest.raises(ez.SolveError, match="no least value"):
        ez.solve(ez.Minimization(lambda x, r: jnp.maximum(x[0], x[0] - r[0])), DEMAND[:50], x0=np.zeros(1))


def test_many_data_sets():
    problem = ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1))
    sets = [DEMAND[:100], DEMAND[100:301], DEMAND[:100]]
    many = ez.solve_many(problem, sets)
    for one, data in zip(many, sets, strict=True):
        assert one.x == ez.solve(problem, data).x
        assert one.subgradient is not None


def test_a_tolerance_that_is_not_reached_fails():
    problem = ez.Minimization(pinball)
    with pytest.raises(ez.SolveError, match="stalled"):
        ez.solve(problem, TABLE, tol=1e-40)
    assert ez.solve(problem, TABLE, tol=1e-6).status is Status.CONVERGED


def test_a_forged_subgradient_does_not_pass_the_check():
    import dataclasses  # noqa: PLC0415

    solution = ez.solve(ez.Minimization(pinball), TABLE)
    forged = dataclasses.replace(solution, subgradient=solution.subgradient + 1.0, element=solution.element - 1.0)
    assert float(np.linalg.norm(forged.element + forged.subgradient)) < 1e-9
    assert forged.check().residual > 0.1


@pytest.mark.parametrize("declared", [None, ez.declare(convex=True)])
def test_certificates_speak_of_the_same_point(declared):
    problem = ez.Minimization(newsvendor, ez.sets.Box(0.0, 10.0, dim=1), declared=declared)
    data = ez.Samples(DEMAND, support=ez.sets.Box(0.0, 100.0))
    certificate = ez.certify(
        ez.solve(problem, data, holdout=0.3), using=ez.certificates.HoldOut(support=ez.sets.Box(-0.7, 0.3, dim=1))
    )
    assert certificate.epsilon < 0.2
    assert ez.verify(certificate.to_json(), problem, data)


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("loss", "side", "data"),
    [
        (newsvendor, ez.sets.Box(0.0, 10.0, dim=1), DEMAND),
        (pinball, None, np.c_[RNG.normal(size=500), RNG.normal(size=(500, 10))]),
        (hinge, None, np.c_[np.sign(RNG.normal(size=500)), RNG.normal(size=(500, 20))]),
    ],
    ids=["newsvendor 2001", "quantiles 500 × 10", "support vectors 500 × 20"],
)
def test_the_second_call_is_quick(loss, side, data):
    problem = ez.Minimization(loss, side)
    ez.solve(problem, data)
    started = time.perf_counter()
    ez.solve(problem, data)
    assert time.perf_counter() - started < 1.0
