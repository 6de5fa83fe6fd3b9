"""Forward-backward against a loop in NumPy, iterate for iterate, and its choice of steps."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.facts import declared_only, step_range

pytestmark = pytest.mark.some(2)

RNG = np.random.default_rng(7)
AGENTS, HOURS = 4, 3
WEAR = RNG.uniform(0.5, 1.0, (AGENTS, 1))
NEED = np.array([1.0, 1.5, 2.0, 2.5])
SAMPLES = ez.Samples(RNG.uniform(0, 0.2, (50, HOURS)))
STRATEGIES = ez.sets.BoxBudget(0.0, 1.0, at_least=NEED, dim=HOURS)


def operator(x, price):
    return 2 * WEAR * x + price + (x.mean(axis=0) - 1) / AGENTS


def problem(**keywords):
    return ez.VariationalInequality(operator, over=STRATEGIES, **keywords)


def plain_loop(step, K, relaxation=1.0, x0=None):
    """x^{K+1} and z by the formulas of the paper's Algorithm 2."""
    price = SAMPLES.values.mean(axis=0)
    x = STRATEGIES.project(np.zeros((AGENTS, HOURS)) if x0 is None else x0)
    for k in range(K + 1):
        gamma = np.asarray(step(k) if callable(step) else step, dtype=float)
        gamma = gamma[:, None] if gamma.ndim else gamma
        y = x - gamma * operator(x, price)
        p = STRATEGIES.project(y)
        z = (y - p) / gamma
        x = x + relaxation * (p - x)
    return p, z


STEPS = {"one": 0.3, "per agent": np.array([0.1, 0.2, 0.3, 0.4]), "schedule": lambda k: 0.4 / jnp.sqrt(k + 1.0)}


@pytest.mark.some(3)
@pytest.mark.parametrize("K", [0, 1, 2, 17])
@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS.keys())
def test_the_output_of_K_iterations_is_the_papers(K, step):
    solution = ez.solve(problem(), SAMPLES, ez.ForwardBackward(step=step), x0=np.zeros((AGENTS, HOURS)), iterations=K)
    x, z = plain_loop((lambda k: float(step(np.float64(k)))) if callable(step) else step, K)
    np.testing.assert_allclose(solution.x, x, atol=1e-12)
    np.testing.assert_allclose(solution.z, z, atol=1e-11)
    assert solution.iterations == K


@pytest.mark.long
def test_relaxation():
    method = ez.ForwardBackward(step=0.3, relaxation=0.6)
    solution = ez.solve(problem(), SAMPLES, method, x0=np.ones((AGENTS, HOURS)), iterations=9)
    x, z = plain_loop(0.3, 9, relaxation=0.6, x0=np.ones((AGENTS, HOURS)))
    np.testing.assert_allclose(solution.x, x, atol=1e-12)
    np.testing.assert_allclose(solution.z, z, atol=1e-11)
    assert solution.check().in_domain


@pytest.mark.long
def test_blocks_and_stacked_agree_iterate_for_iterate():
    """The same game with x as a list of blocks, one function and one step per block."""

    def block(i):
        return lambda x, price: 2 * WEAR[i] * x[i] + price + (sum(x) / AGENTS - 1) / AGENTS

    steps = [0.1, 0.2, 0.3, 0.4]
    sets = [ez.sets.BoxBudget(0.0, 1.0, at_least=need, dim=HOURS) for need in NEED]
    listed = ez.VariationalInequality([block(i) for i in range(AGENTS)], over=sets)
    for K in (0, 3, 30):
        one = ez.solve(problem(), SAMPLES, ez.ForwardBackward(step=np.array(steps)), x0=np.zeros((4, 3)), iterations=K)
        other = ez.solve(listed, SAMPLES, ez.ForwardBackward(step=steps), x0=[np.zeros(3)] * 4, iterations=K)
        np.testing.assert_allclose(np.stack(other.x), one.x, atol=1e-12)
        own = ez.solve(listed, [SAMPLES] * 4, ez.ForwardBackward(step=steps), x0=[np.zeros(3)] * 4, iterations=K)
        np.testing.assert_allclose(np.stack(own.x), one.x, atol=1e-12)


def test_minimising_a_zero_function_is_gradient_descent():
    P = np.diag([1.0, 2.0, 3.0])
    x = np.ones(3)
    for _ in range(6):
        x = x - 0.2 * P @ x
    problem = ez.Minimization(lambda v: 0.5 * v @ P @ v)
    solution = ez.solve(problem, None, ez.ForwardBackward(0.2), x0=np.ones(3), iterations=5)
    np.testing.assert_allclose(solution.x, x, rtol=1e-14)


# -- the choice of the step ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "gradient", "best", "limit"),
    [
        ({"mu": 1.0, "kappa": 4.0}, True, 0.4, 0.5),
        ({"kappa": 4.0}, True, 1 / 3, 0.5),
        ({"mu": 1.0, "kappa": 2.0}, False, 0.25, 0.5),
        ({"mu": 1.0, "theta": 0.4}, False, 0.4, 0.8),
        ({"theta": 0.3}, False, 0.4, 0.6),
        ({"mu": 1.0, "kappa": 2.0, "theta": 0.5}, False, 0.5, 1.0),
        ({"kappa": 2.0}, False, None, None),
        ({}, True, None, None),
    ],
)
def test_the_best_step_from_what_is_declared(known, gradient, best, limit):
    declared = ez.declare(**known)
    stated = (
        ez.Minimization(lambda x: x @ x, declared=declared)
        if gradient
        else ez.Inclusion(ez.functions.Zero(), lambda x: x, declared=declared)
    )
    steps = step_range(declared_only(stated))
    if best is None:
        assert steps is None
    else:
        assert steps.best == pytest.approx(best)
        assert steps.limit == pytest.approx(limit)


def test_the_best_step_contracts_as_claimed_and_no_other_does_better():
    """On the worst case for (μ, κ), H = μI + rotation with norm κ, the factor √(1 − μ²/κ²) is attained at γ = μ/κ²."""
    mu, kappa = 0.6, 1.5
    turn = np.sqrt(kappa**2 - mu**2)
    H = np.array([[mu, turn], [-turn, mu]])
    declared = ez.declare(mu=mu, kappa=kappa)
    stated = ez.Inclusion(ez.functions.Zero(), lambda x: H @ x, declared=declared)
    solution = ez.solve(stated, x0=[1.0, 0.0], iterations=20)
    rate = np.linalg.norm(solution.x) ** (1 / 21)
    assert rate == pytest.approx(np.sqrt(1 - (mu / kappa) ** 2), rel=1e-9)
    factors = [np.linalg.norm(np.eye(2) - step * H, 2) for step in np.linspace(0.01, 2 * mu / kappa**2, 200)]
    assert min(factors) >= rate - 1e-9


@pytest.mark.long
def test_a_declared_step_is_taken_and_named_where_nothing_better_is_known():
    declared = ez.declare(mu=1.0, kappa=2.5)
    bent = ez.VariationalInequality(lambda x, xi: operator(x, xi) + 0.1 * jnp.tanh(x), STRATEGIES, declared=declared)
    solution = ez.solve(bent, SAMPLES)
    assert solution.step == pytest.approx(1.0 / 2.5**2)
    assert "from declared mu = 1, kappa = 2.5" in solution.method.description
    exact = ez.solve(problem(declared=declared), SAMPLES)
    assert "from the exact constants" in exact.method.description
    assert exact.iterations < solution.iterations


def test_a_step_beyond_the_valid_range_is_refused_before_anything_runs():
    calls = []

    def F(x):
        calls.append(1)
        return 2.0 * x

    stated = ez.VariationalInequality(F, over=ez.sets.Box(-1, 1, dim=2), declared=ez.declare(mu=2.0, kappa=2.0))
    for step in (1.0, np.float64(1.5), lambda k: 0.5 + k):
        with pytest.raises(ez.InputError, match=r"^step: must be below 1, .*mu = 2, kappa = 2.*step=None"):
            ez.solve(stated, None, ez.ForwardBackward(step=step))
    assert len(calls) <= 1  # the shape check may look once; no iteration ran


@pytest.mark.long
def test_backtracking_finds_a_step_without_any_constant():
    scales = np.array([1e-2, 1.0, 1e2])
    stated = ez.Minimization(lambda x: 0.5 * jnp.sum(scales * x**2) - jnp.sum(x), ez.sets.Box(-1e3, 1e3, dim=3))
    solution = ez.solve(stated, tol=1e-6)
    np.testing.assert_allclose(solution.x, 1 / scales, rtol=2e-3)


@pytest.mark.long
def test_backtracking_recovers_from_a_start_in_a_steep_place():
    """Curvature e^12 at the start, about 2 at the end: a step that never grows would need 10⁵ iterations."""
    stated = ez.Minimization(lambda x: jnp.sum(jnp.exp(x) - 2 * x), ez.sets.Box(-5, 12, dim=2))
    solution = ez.solve(stated, x0=[12.0, 11.0], tol=1e-8)
    np.testing.assert_allclose(solution.x, np.log(2), atol=1e-8)
    assert solution.iterations < 2000


@pytest.mark.some(3)
@pytest.mark.parametrize("start", [-800.0, -30.0, 0.0, 20.0, 300.0])
def test_backtracking_survives_flat_steep_and_overflowing_places(start):
    stated = ez.Minimization(lambda x: jnp.sum(jnp.exp(x) - 3 * x))
    solution = ez.solve(stated, x0=np.full(3, start), tol=1e-9, iterations=20_000)
    np.testing.assert_allclose(solution.x, np.log(3), atol=1e-8)


@pytest.mark.long
def test_backtracking_says_so_when_the_operator_is_a_rotation():
    stated = ez.Inclusion(ez.sets.Box(-1, 1, dim=2), lambda x: jnp.stack([x[1], -x[0]]))
    with pytest.raises(ez.SolveError, match="not look cocoercive") as caught:
        ez.solve(stated, None, ez.ForwardBackward(), x0=[0.5, 0.5])
    assert caught.value.solution.status is ez.Status.NO_STEP


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"step": -0.1}, "^step: must be positive"),
        ({"step": 0.0}, "^step: must be positive"),
        ({"step": np.nan}, "^step: must be finite"),
        ({"relaxation": 0.0}, r"^relaxation: must lie in \(0, 1\]"),
        ({"relaxation": 1.5}, r"^relaxation: must lie in \(0, 1\]"),
        ({"stepp": 0.1}, "Did you mean 'step'"),
    ],
)
def test_bad_parameters_are_refused_at_construction(keywords, words):
    with pytest.raises(ez.InputError, match=words):
        ez.ForwardBackward(**keywords)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (np.full(3, 0.1), "one per row"),
        (np.full((4, 3), 0.1), "one per row"),
        (lambda k: -0.1, "^step: must be positive"),
        (lambda k: 0.1 if k > 3 else 0.2, "jax.numpy"),
    ],
)
def test_steps_that_do_not_fit_are_refused_before_anything_runs(step, words):
    with pytest.raises(ez.InputError, match=words):
        ez.solve(problem(), SAMPLES, ez.ForwardBackward(step=step), x0=np.zeros((AGENTS, HOURS)))


@pytest.mark.long
def test_a_schedule_may_give_steps_by_block():
    sets = [ez.sets.Box(-1, 1, dim=2), ez.sets.Box(-1, 1, dim=3)]
    stated = ez.Inclusion(sets, lambda x: [x[0] - 0.5, 2 * x[1] + 0.5])
    shared = ez.solve(stated, None, ez.ForwardBackward(step=lambda k: 0.4 / (k + 1.0)), iterations=5)
    nested = ez.solve(stated, None, ez.ForwardBackward(step=lambda k: [0.4 / (k + 1.0)] * 2), iterations=5)
    np.testing.assert_allclose(np.concatenate(shared.x), np.concatenate(nested.x), atol=1e-15)
    rows = ez.VariationalInequality(lambda x: x - 0.5, over=ez.sets.Box(np.zeros((4, 2)), 1.0))
    by_row = ez.solve(rows, None, ez.ForwardBackward(step=lambda k: jnp.full(4, 0.1)), iterations=5)
    one = ez.solve(rows, None, ez.ForwardBackward(step=0.1), iterations=5)
    np.testing.assert_allclose(by_row.x, one.x, atol=1e-15)
