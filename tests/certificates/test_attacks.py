"""Numbers that were once too small: each of these fooled an earlier version."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez

C = ez.certificates
VALUES = np.random.default_rng(0).uniform(0, 3, (200, 1))
DATA = ez.Samples(VALUES, support=ez.sets.Box(0.0, 3.0, dim=1))
BOX = ez.sets.Box(-10.0, 10.0, dim=1)
PLAIN = ez.VariationalInequality(lambda x, xi: x - xi, BOX)


@pytest.fixture(scope="module")
def plain():
    return ez.solve(PLAIN, DATA)


@pytest.mark.long
def test_a_stopped_derivative_does_not_hide_the_noise(plain):
    declared = ez.VariationalInequality(ez.oracles.Affine(lambda x, f: x - jax.lax.stop_gradient(f)), BOX)
    found = ez.certify(ez.solve(declared, DATA))
    assert found.epsilon == pytest.approx(ez.certify(plain, of="residual").epsilon, rel=1e-6)


@pytest.mark.parametrize("oracle", [lambda x, xi: x - jnp.floor(xi), lambda x, xi: x - jnp.where(xi > 1.5, 2.0, 0.0)])
def test_structure_is_not_proved_by_a_derivative_that_vanishes(oracle):
    found = ez.certify(ez.solve(ez.VariationalInequality(oracle, BOX), DATA))
    assert any("φ(ξ)" in leaning.what for leaning in found.leans_on)  # a feature, not ξ itself
    assert found.epsilon > 0.05  # of noise with the standard deviation 0.8, from 200 samples


@pytest.mark.long
def test_no_promise_where_the_noise_depends_on_x():
    plan = ez.plan(ez.VariationalInequality(lambda x, xi: x * (1 + xi) - 1, BOX), target=0.01, samples=DATA)
    asked = [row for row in plan.rows if "deviation" in row.kind or "hold-out" in row.kind]
    assert len(asked) >= 3
    assert all(row.answer is None and "not additive" in row.note for row in asked)


def test_a_split_needs_two_samples():
    plan = ez.plan(PLAIN, size=1, samples=DATA)
    assert next(row for row in plan.rows if row.kind.startswith("hold-out")).answer is None


@pytest.mark.parametrize("declared", [{"R": 1e-3}, {"M": 1e-3}])
def test_a_declared_size_that_samples_refute_is_refused(declared):
    constants = ez.declare(mu=0.9, kappa=1.1, **declared)
    problem = ez.VariationalInequality(lambda x, xi: x - jnp.tanh(xi + 0.01 * x), BOX, declared=constants)
    solution = ez.solve(problem, DATA, holdout=0.5)
    for kind in (C.VectorStability(), C.HoldOut()):
        found = ez.certify(solution, using=kind)
        assert found.verdict == "refused"
        assert found.epsilon == np.inf
        assert any(leaning.provenance == "violated" for leaning in found.leans_on)


def test_what_the_run_has_seen_must_lie_in_the_support_too():
    problem = ez.VariationalInequality(lambda x, xi: x - xi**2, BOX)
    seen = ez.Samples(np.concatenate([VALUES[:50], [[30.0]]]))
    kind = C.HoldOut(samples=ez.Samples(VALUES[100:]), support=ez.sets.Box(-30.0, 30.0, dim=1))
    found = ez.certify(ez.solve(problem, seen), using=kind)
    assert found.verdict == "refused"
    assert "sample 50" in found.reason


def test_an_operator_that_is_not_monotone_has_no_cocoercivity_at_any_scale():
    problem = ez.VariationalInequality(lambda x, xi: -1e-10 * x + 1e-10 * xi, ez.sets.Box(-1e3, 1e3, dim=1))
    solution = ez.solve(problem, DATA, ez.ForwardBackward(step=1e10), iterations=20, throw=False)
    found = ez.certify(solution, using=C.UniformStability())
    assert found.verdict == "refused"
    assert "μ =" not in found.reason
    assert "θ =" not in found.reason


def test_what_z_lacks_is_paid_for():
    problem = ez.VariationalInequality(lambda x: 1e-3 * (x - 1.0), ez.sets.Box(0.0, 1.0, dim=1))
    for x in (np.array([0.99]), np.array([1 - 1e-5])):
        # z + B(x) = 0, but z is not in N(x): the distance must not follow from that alone
        found = ez.certify(dataclasses.replace(ez.solve(problem), point=x, element=1e-3 * (1 - x)))
        if x[0] < 0.999:
            assert found.verdict == "refused"
            assert "z is not in A(x)" in found.reason
        else:
            assert 1e-5 * (1 - 1e-9) <= found.distance < 2e-5
            assert found.epsilon >= 1e-8 * (1 - 1e-2)


@pytest.mark.long
def test_costs_seen_not_to_be_convex_have_no_exploitability():
    game = ez.Game([lambda x, xi: jnp.sum(x[0] ** 4 - 8 * x[0] ** 2 + (0.3 + xi) * x[0])], [BOX])
    with pytest.warns(ez.ConvexityWarning):
        solution = ez.solve(game, DATA, x0=[np.array([1.0])], throw=False)
    found = ez.certify(solution)
    assert found.exploitability is None
    assert "not convex" in found.notes["exploitability"]
    loss = ez.Minimization(lambda x, xi: jnp.sum(x**4 - 8 * x**2 + (0.3 + xi) * x), BOX)
    with pytest.warns(ez.ConvexityWarning, match="^loss: is not convex"):
        stationary = ez.solve(loss, DATA, x0=np.array([1.0]), throw=False)
    assert ez.certify(stationary).cost_gap is None


SEEN = VALUES[:100]


@pytest.fixture(scope="module")
def general():
    problem = ez.VariationalInequality(lambda x, xi: x - xi**2, BOX, declared=ez.declare(R=9.0))
    return ez.solve(problem, DATA[:100])


@pytest.mark.parametrize(
    "values",
    [SEEN.astype(np.float32), SEEN + 1e-15, SEEN[np.random.default_rng(1).integers(100, size=100)],
     np.concatenate([SEEN[:99], VALUES[150:151]]), np.concatenate([SEEN[:50], VALUES[150:]]), SEEN[:4], SEEN[::-1]],
    ids=["narrowed", "nudged", "bootstrap", "all but one", "half", "four", "reversed"],
)  # fmt: skip
def test_seen_samples_are_recognised_by_their_values(general, values):
    with pytest.raises(ez.InputError, match="seen"):
        ez.certify(general, using=C.HoldOut(samples=ez.Samples(values)))


def test_samples_with_few_outcomes_are_not_taken_for_seen_ones():
    coin = np.random.default_rng(0).integers(2, size=(200, 1)).astype(float)
    problem = ez.VariationalInequality(lambda x, xi: x - xi**2, BOX, declared=ez.declare(R=1.0))
    found = ez.certify(ez.solve(problem, ez.Samples(coin[:100])), using=C.HoldOut(samples=ez.Samples(coin[100:])))
    assert found.verdict == "conditional"


@pytest.mark.parametrize("delta", [1.9999, 0, -1, "a"])
def test_no_record_holds_up_with_another_delta(plain, delta):
    record = json.loads(ez.certify(plain, using=C.MeanDeviation(C.Hoeffding())).to_json())
    with pytest.raises(ez.InputError, match="delta"):
        ez.verify(record | {"delta": delta}, PLAIN, DATA)


@pytest.mark.parametrize("damage", [{"data": 1}, {"kind": {"class": "MeanDeviation", "other": 1}}, {"point": []}])
def test_damaged_records_are_answered_in_a_sentence(plain, damage):
    record = json.loads(ez.certify(plain).to_json())
    with pytest.raises(ez.InputError, match="^(certificate_json|problem): .*record"):
        ez.verify(record | damage, PLAIN, DATA)
    with pytest.raises(ez.InputError, match="^certificate_json: .*damaged"):
        ez.verify({"form": 1}, PLAIN, DATA)


def test_supports_that_a_record_cannot_hold_are_passed_again(plain):
    inside = ez.sets.Polyhedron(np.array([[1.0], [-1.0]]), np.array([3.0, 0.0]))
    kind = C.MeanDeviation(C.Hoeffding(), support=inside)
    text = ez.certify(plain, using=kind).to_json()
    found = ez.verify(text, PLAIN, DATA)
    assert found.outcome is C.Outcome.CANNOT
    assert not found
    assert "using" in str(found)
    assert ez.verify(text, PLAIN, DATA, using=kind)


def test_a_scaled_support_is_recorded(plain):
    kind = C.MeanDeviation(support=ez.sets.Scaled(ez.sets.Box(0.0, 1.0, dim=1), 3.0))
    assert ez.verify(ez.certify(plain, using=kind).to_json(), PLAIN, DATA)


def test_constant_data_on_a_point():
    problem = ez.VariationalInequality(lambda x, xi: x - xi, ez.sets.Box(-1.0, 1.0, dim=2))
    found = ez.certify(
        ez.solve(problem, ez.Samples(np.full((20, 2), 0.3), support=ez.sets.Box([0.3, 0.3], [0.3, 0.3])))
    )
    assert found.epsilon < 1e-8


def test_sizes_beyond_floating_point_are_refused():
    problem = ez.VariationalInequality(lambda x, xi: x - xi, ez.sets.WholeSpace(dim=2))
    tiny = ez.Samples(np.zeros((20, 2)), support=ez.sets.Box(0.0, 1e-170, dim=2))
    found = ez.certify(ez.solve(problem, tiny, throw=False))
    assert found.verdict == "refused"
    assert "diameter" in found.reason


@pytest.mark.long
def test_no_curvature_and_one_free_agent_give_no_warning():
    game = ez.Game([lambda x: jnp.sum(x[0] ** 4), lambda x: jnp.sum((x[1] - 1) ** 4)], [BOX, ez.sets.WholeSpace(dim=1)])
    found = ez.certify(ez.solve(game, tol=1e-6))
    assert found.exploitability is not None
    assert np.isfinite(found.exploitability[0])
    assert found.exploitability[1] == np.inf


@pytest.mark.long
def test_samples_of_agents_are_seen_to_be_affine_without_a_word():
    costs = [lambda x, xi, i=i: jnp.sum(x[i] ** 2 + xi * x[i] + 0.1 * x[0] * x[1]) for i in range(2)]
    data = [DATA[:90], DATA[90:]]
    found = ez.certify(ez.solve(ez.Game(costs, [BOX, BOX]), data))
    assert found.verdict == "conditional"
    assert "2 data sets" in found.by


def test_a_cocoercivity_that_the_jacobian_refutes_is_refused():
    problem = ez.VariationalInequality(lambda x, xi: 2 * x - xi, BOX, declared=ez.declare(theta=0.4))
    assert (
        ez.certify(ez.solve(problem, DATA, ez.ForwardBackward(0.3), iterations=9), using=C.RepairedStability()).epsilon
        < np.inf
    )
    wrong = ez.VariationalInequality(lambda x, xi: 2 * x - xi, BOX, declared=ez.declare(theta=0.6))
    found = ez.certify(ez.solve(wrong, DATA, ez.ForwardBackward(0.3), iterations=9), using=C.RepairedStability())
    assert found.verdict == "refused"
    assert "cocoercive" in found.reason


@pytest.mark.long
def test_a_planned_saving_holds_wherever_the_answer_will_be():
    game = ez.Game(
        [lambda x, xi: jnp.sum(xi * x[0])], [ez.sets.Box(-1.0, 1.0, dim=1)]
    )  # no curvature: the reach decides
    (row,) = [row for row in ez.plan(game, size=100, of="exploitability", samples=DATA).rows if "McDiarmid" in row.kind]
    found = ez.certify(ez.solve(game, DATA[:100], throw=False), using=C.MeanDeviation(C.McDiarmid()))
    assert found.exploitability is not None
    assert row.answer is not None
    assert row.answer >= found.exploitability.max() - 1e-9
