"""Where the audit, or what leans on it, once said something false: each case was found by somebody who tried."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

S, VI = ez.sets, ez.VariationalInequality
UNIT = S.Box(-1.0, 1.0, dim=2)
FEW = ez.Samples(np.random.default_rng(0).uniform(-0.1, 0.1, (30, 2)), support=S.Box(-0.1, 0.1, dim=2))
THREE = ez.Samples(np.random.default_rng(0).uniform(-0.1, 0.1, (30, 3)), support=S.Box(-0.1, 0.1, dim=3))


def diagonal(*entries):
    return lambda x, p: jnp.asarray(entries) * x + p


def status(audit, *names):
    return [str(audit.assumptions[name].status) for name in names]


def test_slopes_at_far_corners_of_the_support_are_not_cancelled_away():
    high = 1e15
    values = np.column_stack([np.full(100, high), np.random.default_rng(0).uniform(-1, 1, (100, 2))])
    problem = VI(lambda x, p: (15.1 - 15.0985e-15 * p[0]) * x - p[1:], over=S.Box(-1e4, 1e4, dim=2))
    audit = ez.audit(problem, ez.Samples(values, support=S.Box([0.0, -1, -1], [high, 1, 1])))
    assert audit.constants["mu"].value == pytest.approx(0.0015, rel=1e-6)


@pytest.mark.parametrize("narrow", [jnp.float32, jnp.float16])
def test_narrow_numbers_are_averaged_in_double(narrow):
    values = np.random.default_rng(1).uniform(9, 12, (500, 2))
    solution = ez.solve(VI(lambda x, p: x - p.astype(narrow) ** 2, over=S.Box(-1e5, 1e5, dim=2)), ez.Samples(values))
    squares = np.asarray(values.astype(narrow) ** 2, dtype=float)
    np.testing.assert_allclose(solution.x, squares.mean(axis=0), rtol=1e-12)


@pytest.mark.parametrize("factor", [1e200, 1e-170])
def test_the_size_of_noise_neither_overflows_nor_vanishes(factor):
    audit = ez.audit(VI(lambda x, p: x + factor * p, over=UNIT), FEW)
    assert audit.constants["R"].value == pytest.approx(factor * 0.2 * np.sqrt(2), rel=1e-9)


def half_product(x, p):
    product = jax.lax.dot_general(x, jnp.eye(2), (((0,), (0,)), ((), ())), preferred_element_type=jnp.float32)
    return product.astype(jnp.float64) + p


@pytest.mark.some(2)
@pytest.mark.parametrize("oracle", [half_product, lambda x, p: x.astype(jnp.float32).astype(jnp.float64) + p])
def test_rounding_is_not_affine_nor_continuous(oracle):
    found = ez.audit(VI(oracle, over=S.Box(1.0, 2.0, dim=2)), FEW, budget=0.3).constants
    assert {str(found[name].provenance) for name in ("mu", "kappa")} <= {"estimated"}


def test_a_box_in_uneven_units_is_not_flat():
    uneven = VI(diagonal(1e-9, -1.0), over=S.Box([0.0, 0.0], [1e10, 1.0]))
    assert status(ez.audit(uneven, FEW, x0=[5e9, 0.5]), "monotone", "average monotone") == ["violated", "violated"]
    thin = VI(diagonal(1.0, -1.0), over=S.Box([0.0, 0.0], [1.0, 1e-9]))
    assert status(ez.audit(thin, FEW), "average monotone") == ["violated"]


def test_a_small_negative_eigenvalue_is_not_rounding():
    assert status(ez.audit(VI(diagonal(1e6, -1e-5), over=UNIT), FEW), "monotone") == ["violated"]
    assert status(ez.audit(VI(diagonal(1.0, 5e-11), over=UNIT), FEW), "strongly monotone") == ["holds"]


@pytest.mark.long
def test_on_a_flat_domain_directions_that_leave_it_do_not_count():
    strong = VI(lambda x, p: x - x.mean() + p, over=S.Simplex(dim=3))
    assert status(ez.audit(strong, THREE), "monotone", "strongly monotone") == ["holds", "holds"]
    skew = 0.3 * np.array([[0.0, 1, -1], [-1, 0, 1], [1, -1, 0]]) - 1.0
    turning = VI(lambda x, p: skew @ x + p, over=S.Simplex(dim=3))
    assert status(ez.audit(turning, THREE), "monotone") == ["holds"]
    assert "extragradient" in ez.solve(turning, THREE).method.description


@pytest.mark.long
def test_a_domain_of_one_point_and_an_operator_of_one_value():
    point = VI(lambda x, p: -x + p, over=S.Singleton([1.0, 2.0]))
    assert ez.solve(point, FEW).status is ez.Status.CONVERGED
    assert str(ez.audit(point, FEW))
    assert status(ez.audit(VI(lambda x, p: 0 * x + p, over=UNIT), FEW), "cocoercive") == ["holds"]


def test_noise_that_is_bounded_by_the_function_is_not_called_unbounded():
    normal = np.random.default_rng(0).normal(size=(1000, 2))
    assert status(ez.audit(VI(lambda x, p: x + jnp.tanh(p), over=UNIT), normal), "bounded noise") == ["open"]
    other = np.column_stack([normal[:, 0], np.random.default_rng(1).uniform(size=1000)])
    assert status(ez.audit(VI(lambda x, p: x + p[1], over=UNIT), other), "bounded noise") == ["open"]
    assert status(ez.audit(VI(lambda x, p: x + p, over=UNIT), normal), "bounded noise") == ["violated"]


@pytest.mark.long
def test_samples_outside_a_declared_support_prove_nothing():
    values = np.random.default_rng(0).uniform(1, 2, (40, 2))
    values[::2] = -50
    problem = VI(lambda x, p: p * x + x**3, over=UNIT, declared=ez.declare(support=S.Box(1.0, 2.0)))
    audit = ez.audit(problem, ez.Samples(values), budget=0.5)
    assert status(audit, "average monotone", "samples inside the support") == ["open", "violated"]
    assert audit.constants["kappa"].provenance == "estimated"


@pytest.mark.some(3)
@pytest.mark.parametrize(
    "oracle",
    [
        lambda x, p: x + p[jnp.argmax(p)],
        lambda x, p: x + p.at[0].set(0.0),
        lambda x, p: x - 50 * (p > 0.0),
        lambda x, p: x - 3 * (20 * p).astype(int),
        lambda x, p: jax.lax.fori_loop(0, 2, lambda i, x: x + p[i], x),
    ],
)
def test_functions_that_index_compare_or_loop_are_solved_and_averaged_right(oracle):
    solution = ez.solve(VI(oracle, over=S.Box(-99.0, 99.0, dim=2)), FEW)
    with jax.enable_x64(True):
        values = [np.asarray(oracle(jnp.asarray(solution.x), jnp.asarray(row)), dtype=float) for row in FEW.values]
    np.testing.assert_allclose(np.mean(values, axis=0) + solution.z, 0, atol=1e-7)


@pytest.mark.long
def test_large_affine_problems_are_not_refused_for_their_size():
    large = ez.solve(VI(lambda x: 2 * x - 1, over=S.Box(-1.0, 1.0, dim=1600)))
    np.testing.assert_allclose(large.x, 0.5, atol=1e-8)


def test_what_has_no_gradient_is_still_looked_at_and_what_is_undefined_is_refused():
    def slow(x, p):
        return jax.lax.while_loop(lambda c: c[0] < p[0], lambda c: (c[0] + 1, c[1] * 1.1), (-5.0, x))[1]

    assert status(ez.audit(VI(slow, over=UNIT), FEW, budget=0.3), "monotone") == ["not contradicted"]
    with pytest.raises(ez.InputError, match="NaN or infinite at the start"):
        ez.audit(VI(lambda x, p: x * jnp.nan + p, over=UNIT), FEW)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ez.audit(VI(lambda x: x, over=UNIT), budget=[1, 2]), "^budget: must be one number"),
        (lambda: ez.audit(VI(lambda x: x, over=UNIT), seed=-3), "^seed: must be at least 0"),
        (lambda: ez.declare(mu=[1, 2]), "^mu: must be one number"),
        (lambda: ez.declare(kappa=True), "^kappa: must be one number"),
        (
            lambda: ez.solve(
                VI(lambda x, p: x + p, over=UNIT, declared=ez.declare(support=S.Box(0.0, 1.0, dim=7))),
                ez.Samples(FEW.values),
            ),
            "^support: the declared one does not fit",
        ),
    ],
)
def test_wrong_arguments_get_a_sentence(call, match):
    with pytest.raises(ez.InputError, match=match):
        call()


@pytest.mark.long
def test_what_was_found_out_about_a_problem_goes_with_it():
    problem = VI(lambda x, p: x + p, over=UNIT)
    ez.solve(problem, FEW)
    ez.audit(problem, FEW)
    gone = weakref.ref(problem)
    del problem
    gc.collect()
    assert gone() is None


@pytest.mark.long
def test_equal_values_do_not_refute_cocoercivity():
    """max(x, 0) is constant below 0, where 0 ≥ θ·0."""
    hinge = VI(lambda x, p: jnp.maximum(x, 0.0) * (1 + p), over=UNIT, declared=ez.declare(theta=0.8, monotone=True))
    assert status(ez.audit(hinge, FEW, budget=0.3), "cocoercive") == ["declared"]
    wrong = VI(lambda x, p: jnp.maximum(x, 0.0) * (1 + p), over=UNIT, declared=ez.declare(theta=1.3, monotone=True))
    assert status(ez.audit(wrong, FEW, budget=0.3), "cocoercive") == ["violated"]


@pytest.mark.long
def test_a_size_derived_over_the_support_names_it():
    problem = VI(lambda x, p: 2 * x + jnp.tanh(x + p), over=UNIT)
    found = ez.certify(ez.solve(problem, FEW), using=ez.certificates.VectorStability())
    assert np.isfinite(found.epsilon)
    (R,) = [leaning for leaning in found.leans_on if leaning.what.startswith("R =")]
    assert (R.provenance, R.evidence) == ("declared", "verified over the declared support")


@pytest.mark.long
def test_many_agents_on_flat_sets_are_monotone_where_they_can_move():
    game = ez.AggregativeGame(
        lambda x, mean, p, q: -2 * x.sum() * mean.sum() + 0.5 * q * x @ x + p @ x, np.ones(200), S.Simplex(dim=8)
    )
    data = ez.Samples(np.random.default_rng(0).uniform(-0.1, 0.1, (30, 8)))
    solution = ez.solve(game, data)
    assert "between points of the domain" in solution.method.description
    assert solution.check_equilibrium().largest < 1e-7
