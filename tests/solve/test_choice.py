"""Method and step are chosen from what is known of B̂; the residual is the proof, and what is disproved is refused."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
BOX = ez.sets.Box(-1.0, 1.0, dim=2)
DATA = ez.Samples(np.random.default_rng(0).uniform(0.5, 1.5, size=(60, 2)))

CHOSEN = {  # problem → how the description begins, and where the step comes from
    "strongly monotone": (lambda x: 2 * x - 1, None, "forward-backward,", "exact"),
    "turning": (lambda x: TURN @ x + 0.05 * x - 1, None, "forward-backward-forward,", "exact"),
    "merely monotone": (lambda x: TURN @ x - 1, None, "forward-backward-forward,", "exact"),
    "cocoercive only": (lambda x: jnp.sum(x) * jnp.ones(2) - 1, None, "forward-backward,", "exact"),
    "constant": (lambda x: jnp.array([1.0, -1.0]), None, "forward-backward,", "backtracking"),
    "known by its average": (lambda x, xi: xi * x - 1, DATA, "forward-backward,", "exact"),
    "nonlinear": (lambda x: x**3 + x + TURN @ x - 1, None, "adaptive golden ratio,", "slopes on the way"),
    "nonlinear in ξ too": (lambda x, xi: jnp.exp(x) * xi - 1, DATA, "adaptive golden ratio,", "slopes on the way"),
}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", CHOSEN)
def test_the_method_suits_what_is_known(name):
    oracle, samples, method, step = CHOSEN[name]
    solution = ez.solve(ez.VariationalInequality(oracle, BOX), samples, x0=[0.3, -0.2])
    assert solution.method.description.startswith(method)
    assert step in solution.method.description
    assert solution.notes == ()


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("costs", "shared", "method"),
    [
        ([lambda x: x[0] @ x[0] + x[0] @ x[1], lambda x: x[1] @ x[1]], (np.ones((1, 4)), 0.5), "preconditioned"),
        ([lambda x: x[0] @ x[1], lambda x: -x[0] @ x[1]], (np.ones((1, 4)), 0.5), "forward-backward-forward"),
        ([lambda x: x[0] @ x[0], lambda x: x[1] @ x[1]], lambda x: x[0] @ x[0] + x[1] @ x[1] - 1, "forward-backward-f"),
    ],
)
def test_shared_constraints_have_methods_of_their_own(costs, shared, method):
    assert ez.solve(ez.Game(costs, [BOX, BOX], shared=shared)).method.description.startswith(method)


@pytest.mark.long
def test_what_is_shown_not_to_be_monotone_is_refused_before_it_runs():
    problem = ez.VariationalInequality(lambda x: -x, BOX)
    why = "B is not monotone: the least eigenvalue"
    with pytest.raises(ez.InputError, match=f"^method: no method is proved to converge, as {why}.*throw=False"):
        ez.solve(problem)
    tried = ez.solve(problem, throw=False, iterations=3)
    assert "Nothing is proved to converge" in tried.message
    assert ez.solve(problem, None, ez.ForwardBackward(), iterations=3).notes == ()


@pytest.mark.some(3)
@pytest.mark.parametrize(
    ("oracle", "why"),
    [
        (lambda x: jnp.sin(1.8 * x) + 0.1, "could not be proved"),  # monotone on the box, but for its ends
        (lambda x: jnp.where(x > 0, 2 * x, x) - 1, "jumps"),
        (lambda x: jnp.sort(x) + 0 * x + 2 * x - 1, "sort"),
    ],
)
def test_what_is_not_proved_is_run_and_the_residual_is_the_proof(oracle, why):
    solution = ez.solve(ez.VariationalInequality(oracle, BOX), x0=[0.4, -0.3])
    assert solution.status is ez.Status.CONVERGED
    assert any(why in note for note in solution.notes)
    np.testing.assert_allclose(BOX.project(solution.x - oracle(solution.x)), solution.x, atol=1e-8)


@pytest.mark.long
def test_what_is_refuted_on_the_way_is_called_stationary():
    solution = ez.solve(ez.VariationalInequality(lambda x: x**3 - x, BOX), x0=[0.1, 0.1])
    assert solution.status is ez.Status.STATIONARY
    assert "B is not monotone: ⟨B(u) − B(v), u − v⟩ = -" in solution.message


def test_a_loss_that_is_not_convex_is_run_with_a_warning():
    saddle = ez.Minimization(lambda x: x[0] ** 2 - x[1] ** 2 + 0.1 * x[1], BOX)
    with pytest.warns(ez.ConvexityWarning):
        solution = ez.solve(saddle, x0=[0.5, 0.2])
    assert solution.status is ez.Status.STATIONARY
    np.testing.assert_allclose(solution.x, [0.0, 1.0], atol=1e-8)


def test_many_runs_go_on_and_say_that_nothing_is_proved():
    many = ez.solve_many(ez.VariationalInequality(lambda x, xi: xi - x, BOX), [DATA], iterations=3)
    assert "Nothing is proved to converge" in many[0].message


def test_ones_word_is_enough_unless_it_is_disproved():
    kinked = ez.VariationalInequality(lambda x: jnp.where(x > 0, 2 * x, x) - 1, BOX, declared=ez.declare(monotone=True))
    np.testing.assert_allclose(ez.solve(kinked).x, 0.5, atol=1e-8)
    wrong = ez.VariationalInequality(lambda x: -x, BOX, declared=ez.declare(monotone=True))
    with pytest.raises(ez.InputError, match="B is not monotone"):
        ez.solve(wrong)


@pytest.mark.long
def test_a_flat_domain_may_be_monotone_where_the_space_is_not():
    """On the simplex the sum is constant, so that −3 Σ x does not count."""
    flat = ez.VariationalInequality(lambda x: x - 3 * jnp.sum(x) + jnp.array([0.0, 0.2, 0.1]), ez.sets.Simplex(dim=3))
    solution = ez.solve(flat)
    np.testing.assert_allclose(solution.x, [1.3 / 3, 0.7 / 3, 1 / 3], atol=1e-7)
    assert ez.audit(flat).assumptions["monotone"].status == "holds"


@pytest.mark.long
def test_a_flat_domain_with_shared_constraints():
    costs = [lambda x: 0.5 * x[0] @ x[0] - 3 * x[0].sum() ** 2, lambda x: x[1] @ x[1] - 2 * x[1].sum() * x[0].sum()]
    game = ez.Game(costs, [ez.sets.Simplex(dim=2)] * 2, shared=(np.array([[1.0, 0.0, 1.0, 0.0]]), 0.8))
    solution = ez.solve(game)
    assert solution.method.description.startswith("preconditioned")
    assert solution.check_equilibrium().largest < 1e-7


@pytest.mark.parametrize("TRIALS", [4, pytest.param(60, marks=pytest.mark.long)])
def test_affine_monotone_problems_are_never_refused_and_converge_as_claimed(TRIALS):
    rng = np.random.default_rng(3)
    for trial in range(TRIALS):
        n = int(rng.integers(1, 5))
        root = rng.normal(size=(n, int(rng.integers(1, n + 1))))
        turn = rng.normal(size=(n, n)) * rng.choice([0.0, 1.0])
        H = (rng.choice([0.0, 1.0]) * root @ root.T + turn - turn.T) * 10.0 ** rng.uniform(-3, 3)
        q = rng.normal(size=n) * np.abs(H).max()
        problem = ez.VariationalInequality(lambda x, H=H, q=q: H @ x + q, ez.sets.Ball(1.0, dim=n))
        solution = ez.solve(problem, tol=1e-6 * (1 + np.abs(q).max()))
        assert solution.status is ez.Status.CONVERGED, trial
