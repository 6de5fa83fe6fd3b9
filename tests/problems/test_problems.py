"""Stating problems: nested points, blocks, scalars, batches, inferred dimensions, known and data-driven alike."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

SAMPLES = ez.Samples(np.random.default_rng(2).normal(size=(60, 3)))
MEAN = SAMPLES.values.mean(axis=0)


def test_known_and_data_driven_are_one_path():
    """Algorithm 1 with B = the sample mean and Algorithm 2 with the samples agree iterate for iterate."""
    box = ez.sets.Box(-0.05, 0.05, dim=3)
    known = ez.VariationalInequality(lambda x: x - MEAN, over=box)
    driven = ez.VariationalInequality(lambda x, xi: x - xi, over=box)
    for K in (0, 1, 5):
        one = ez.solve(known, None, ez.ForwardBackward(0.3), iterations=K)
        other = ez.solve(driven, SAMPLES, ez.ForwardBackward(0.3), iterations=K)
        np.testing.assert_allclose(one.x, other.x, atol=1e-14)


@pytest.mark.long
def test_points_may_be_any_pytree():
    A = {"w": ez.functions.L1(0.1), "b": ez.sets.WholeSpace(), "pair": [ez.sets.NonNegative(), ez.sets.Simplex()]}

    def loss(x, xi):
        return (
            jnp.sum((x["w"] - xi) ** 2)
            + (x["b"] - 1.0) ** 2
            + jnp.sum((x["pair"][0] + 1) ** 2)
            + jnp.sum(x["pair"][1] ** 2)
        )

    x0 = {"w": np.zeros(3), "b": 0.0, "pair": [np.ones((2, 2)), np.ones(4)]}
    solution = ez.solve(ez.Minimization(loss, A), SAMPLES, x0=x0)
    np.testing.assert_allclose(solution.x["w"], np.sign(MEAN) * np.maximum(np.abs(MEAN) - 0.05, 0), atol=1e-8)
    assert solution.x["b"].shape == ()
    np.testing.assert_allclose(solution.x["b"], 1.0, atol=1e-8)
    np.testing.assert_allclose(solution.x["pair"][0], np.zeros((2, 2)), atol=1e-8)
    np.testing.assert_allclose(solution.x["pair"][1], np.full(4, 0.25), atol=1e-8)
    assert solution.check().in_domain
    assert abs(solution.check().gap) < 1e-9


def test_one_function_serves_every_leaf_below_it():
    problem = ez.Minimization(lambda x: jnp.sum((x["a"] - 1) ** 2) + jnp.sum((x["b"] + 2) ** 2), ez.functions.L1(0.5))
    solution = ez.solve(problem, x0={"a": np.zeros(2), "b": np.zeros((2, 3))})
    np.testing.assert_allclose(solution.x["a"], 0.75, atol=1e-8)
    np.testing.assert_allclose(solution.x["b"], -1.75, atol=1e-8)


@pytest.mark.long
def test_a_product_and_a_separable_sum_are_their_members():
    def F(x):
        return [x[0] - 2.0, x[1] + 2.0]

    listed = ez.solve(ez.Inclusion([ez.sets.Box(0, 1, dim=2), ez.functions.L1(np.ones(1))], F))
    product = ez.Inclusion(ez.sets.Product([ez.sets.Box(0, 1, dim=2), ez.sets.Box(-1, 1, dim=1)]), F)
    summed = ez.functions.SeparableSum([ez.functions.Indicator(ez.sets.Box(0, 1, dim=2)), ez.functions.L1(np.ones(1))])
    np.testing.assert_allclose(listed.x[0], [1, 1], atol=1e-8)
    np.testing.assert_allclose(listed.x[1], [-1], atol=1e-8)
    np.testing.assert_allclose(ez.solve(product, x0=[[0, 0], [0]]).x[1], [-1], atol=1e-8)
    np.testing.assert_allclose(ez.solve(ez.Inclusion(summed, F), x0=[[0, 0], [0]]).x[1], [-1], atol=1e-8)


@pytest.mark.long
def test_a_data_set_for_each_block():
    own = [ez.Samples(np.full((5, 1), 2.0)), ez.Samples(np.full((9, 2), -3.0))]
    F = [lambda x, xi: x[0] - xi + 0.1 * x[1].sum(), lambda x, xi: x[1] - xi - 0.1 * x[0]]
    sets = [ez.sets.Box(-10, 10, dim=1), ez.sets.Box(-10, 10, dim=2)]
    solution = ez.solve(ez.VariationalInequality(F, over=sets), own)
    a, b = solution.x
    np.testing.assert_allclose(a - 2 + 0.1 * b.sum(), 0, atol=1e-8)
    np.testing.assert_allclose(b + 3 - 0.1 * a, 0, atol=1e-8)
    np.testing.assert_allclose(solution.check().residual, solution.residual, atol=1e-12)


@pytest.mark.some(3)
@pytest.mark.parametrize("over", [ez.sets.Box(-1, 1), ez.sets.WholeSpace(), ez.sets.BoxBudget(-1, 1, at_least=-2)])
def test_the_dimension_is_inferred_where_only_one_makes_sense(over):
    solution = ez.solve(ez.VariationalInequality(lambda x, xi: x - xi, over=over), SAMPLES)
    assert solution.x.shape == (3,)


@pytest.mark.long
def test_a_batch_of_sets_gives_a_matrix_of_strategies():
    over = ez.sets.BoxBudget(0.0, 1.0, at_least=np.array([0.5, 1.0, 2.0]))
    solution = ez.solve(ez.VariationalInequality(lambda x, xi: x + xi**2, over=over), SAMPLES)
    np.testing.assert_allclose(solution.x.sum(axis=1), [0.5, 1.0, 2.0], atol=1e-9)


@pytest.mark.long
def test_data_that_is_not_a_matrix():
    rng = np.random.default_rng(0)
    P = rng.normal(size=(30, 3, 3))
    P = P @ P.transpose(0, 2, 1) + np.eye(3)
    samples = ez.Samples.from_arrays({"P": P, "q": rng.normal(size=(30, 3))})
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ xi["P"] @ x + xi["q"] @ x, ez.sets.WholeSpace(dim=3))
    expected = -np.linalg.solve(P.mean(axis=0), samples.values["q"].mean(axis=0))
    np.testing.assert_allclose(ez.solve(problem, samples).x, expected, atol=1e-8)


def test_plain_arrays_are_samples_too():
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(-9, 9, dim=3))
    np.testing.assert_allclose(ez.solve(problem, SAMPLES.values).x, MEAN, atol=1e-8)


def test_a_problem_shows_what_it_is():
    assert "additive" in repr(ez.VariationalInequality(ez.oracles.Additive(lambda x: x), over=ez.sets.Box(0, 1)))


@pytest.mark.long
def test_solving_again_does_not_compile_again():
    problem = ez.VariationalInequality(lambda x, xi: x - xi, over=ez.sets.Box(-9, 9, dim=3))
    ez.solve(problem, SAMPLES, tol=1e-8, x0=np.zeros(3))
    with jax.no_tracing():
        ez.solve(problem, ez.Samples(SAMPLES.values + 1.0), tol=1e-7, x0=np.ones(3))
