"""Forward-backward-forward and extragradient: against loops in NumPy, and on rotations that defeat forward-backward."""

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.facts import declared_only, lipschitz_range

pytestmark = pytest.mark.some(2)

TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
H = np.kron(np.eye(2), TURN) * 2.0 + 0.1 * np.eye(4)
SHIFT = np.array([0.3, -0.2, 0.9, 0.1])
BOX = ez.sets.Box(-0.4, np.array([0.5, 0.6, 0.7, 0.8]))
METHODS = {"fbf": ez.ForwardBackwardForward, "eg": ez.Extragradient}


def operator(x):
    return H @ x - SHIFT


def plain_loop(name, step, K):
    """The formulas of the headers, in NumPy."""
    x = BOX.project(np.ones(4))
    for k in range(K + 1):
        gamma = step(k) if callable(step) else step
        middle = BOX.project(x - gamma * operator(x))
        if name == "fbf":
            z = (x - middle) / gamma - operator(x)
            x, point = middle - gamma * (operator(middle) - operator(x)), middle
        else:
            new = BOX.project(x - gamma * operator(middle))
            z = (x - new) / gamma - operator(middle)
            x = point = new
    return point, z


@pytest.mark.some(3)
@pytest.mark.parametrize("K", [0, 1, 6])
@pytest.mark.parametrize("step", [0.3, lambda k: 0.4 / (k + 2.0)], ids=["constant", "scheduled"])
@pytest.mark.parametrize("name", METHODS)
def test_iterates_are_those_of_a_plain_loop(name, step, K):
    problem = ez.VariationalInequality(operator, over=BOX)
    solution = ez.solve(problem, None, METHODS[name](step), x0=np.ones(4), iterations=K)
    x, z = plain_loop(name, step, K)
    np.testing.assert_allclose(solution.x, x, atol=1e-13)
    np.testing.assert_allclose(solution.z, z, atol=1e-12)
    assert abs(solution.check().gap) < 1e-12


def rotation(radius=10.0, **declared):
    return ez.Inclusion(ez.sets.Ball(radius, dim=2), lambda x: TURN @ x, declared=ez.declare(**declared))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_a_pure_rotation_converges_where_forward_backward_does_not(method):
    np.testing.assert_allclose(ez.solve(rotation(), None, method(), x0=[1.0, 2.0]).x, 0, atol=1e-8)
    known = ez.solve(rotation(kappa=1.0), None, method(), x0=[1.0, 2.0])
    np.testing.assert_allclose(known.x, 0, atol=1e-8)
    assert known.step == pytest.approx(1 / np.sqrt(2))
    with pytest.raises(ez.SolveError, match="circles"):
        ez.solve(rotation(), None, ez.ForwardBackward(step=0.3), x0=[1.0, 2.0], iterations=20_000, tol=1e-6)


def test_the_method_is_chosen_from_what_is_declared_or_found():
    assert "forward-backward-forward" in ez.solve(rotation(kappa=1.0), x0=[1.0, 2.0]).method.description
    assert "0.707107 from the exact constants" in ez.solve(rotation(), x0=[1.0, 2.0]).method.description
    bent = ez.Inclusion(ez.sets.Ball(3.0, dim=2), lambda x: TURN @ x + 1e-3 * x**3, declared=ez.declare(monotone=True))
    found = ez.solve(bent, x0=[1.0, 2.0])
    assert "adaptive golden ratio" in found.method.description
    assert found.status is ez.Status.CONVERGED


def test_the_distance_to_the_zero_falls_as_claimed():
    """‖x⁺ − x*‖² ≤ ‖x − x*‖² − (1 − γ²κ²)‖x − x̄‖², with equality for a rotation without constraints."""
    gamma, x = 0.5, np.array([1.0, 2.0])
    middle = x - gamma * TURN @ x
    new = middle - gamma * TURN @ (middle - x)
    assert new @ new == pytest.approx(x @ x - (1 - gamma**2) * np.sum((x - middle) ** 2))
    too_long = 1.2
    middle = x - too_long * TURN @ x
    assert np.linalg.norm(middle - too_long * TURN @ (middle - x)) > np.linalg.norm(x)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
def test_a_step_beyond_one_over_kappa_is_refused(method):
    with pytest.raises(ez.InputError, match=r"^step: must be below 0.5, .*kappa = 2.*step=None"):
        ez.solve(rotation(kappa=2.0), None, method(step=0.6), x0=[1.0, 2.0])


@pytest.mark.parametrize(("mu", "kappa"), [(0.1, 1.0), (1.0, 1.5), (1e-3, 10.0)])
def test_the_best_step_minimises_the_factor_of_the_theory(mu, kappa):
    steps = lipschitz_range(declared_only(rotation(mu=mu, kappa=kappa)), None, np.zeros(2))

    def factor(gamma):
        return 1 - 1 / (1 / (2 * gamma * mu) + 1 / (1 - (gamma * kappa) ** 2))

    assert factor(steps.best) <= min(factor(g) for g in np.linspace(1e-3, 0.999, 500) / kappa) + 1e-9
    assert steps.limit == pytest.approx(1 / kappa)


@pytest.mark.long
def test_extragradient_stays_where_the_operator_is_defined():
    """∇(−log x) exists for x > 0 only; forward-backward-forward must notice and shorten its step."""
    problem = ez.VariationalInequality(lambda x: 2.0 - 1 / x, over=ez.sets.Box(1e-3, 5.0, dim=3))
    for method in METHODS.values():
        np.testing.assert_allclose(ez.solve(problem, None, method(), x0=np.full(3, 4.0)).x, 0.5, atol=1e-7)


@pytest.mark.long
def test_a_matrix_game_from_samples():
    rng = np.random.default_rng(4)
    samples = ez.Samples.from_arrays(rng.normal(size=(30, 3, 4)))
    A = samples.values.mean(axis=0)
    simplices = [ez.sets.Simplex(dim=3), ez.sets.Simplex(dim=4)]
    problem = ez.VariationalInequality(lambda x, xi: [xi @ x[1], -(xi.T @ x[0])], over=simplices)
    for method in METHODS.values():
        x, y = ez.solve(problem, samples, method(), tol=1e-9).x
        assert np.max(x @ A) - np.min(A @ y) < 1e-7  # the duality gap
    assert jnp.asarray(1.0).dtype == jnp.float32  # the user's configuration is as it was
