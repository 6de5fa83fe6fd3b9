"""What is known of a problem has one owner, and is never written on what the user holds: one test per defect seen.

Each compares objects that were asked something else before with objects built for the one question.
"""

import copy
import json

import jax.numpy as jnp
import numpy as np
import pytest
from answers import difference, of_certificate, of_solution, of_verification
from house_problems import ASKED, bumpy, shared, turning, uniform, units, units_of, weighted, weights

import epszero as ez
from epszero.certificates import VectorStability

pytestmark = [pytest.mark.filterwarnings("ignore:.*not convex:UserWarning"), pytest.mark.some(2)]
FLAT, BENT = (ASKED["bumpy"].starts[name] for name in ("flat", "bent"))


def test_a_certificate_uses_mu_of_its_own_support():
    """μ = 1 over the first support and 0.1 over the second: the gap of the second is not halved by the first."""
    near, far = weights(2.0, 1.0, 0), weights(20.0, 0.1, 1)
    problem = weighted()
    ez.certify(ez.solve(problem, near))
    after, alone = (ez.certify(ez.solve(one, far)) for one in (problem, weighted()))
    assert alone.cost_gap == pytest.approx(6.02, abs=0.01)
    assert after.cost_gap == alone.cost_gap
    assert not any("μ = 1:" in str(leaning) for leaning in after.leans_on)
    assert not difference(of_certificate(after), of_certificate(alone))


def test_certificates_made_together_know_nothing_of_each_other():
    near, far = weights(2.0, 1.0, 0), weights(20.0, 0.1, 1)
    solutions = [ez.solve(weighted(), data) for data in (near, far)]
    problem = weighted()
    together = ez.certify_many([ez.solve(problem, data) for data in (near, far)])
    for one, solution in zip(together, solutions, strict=True):
        assert not difference(of_certificate(one), of_certificate(ez.certify(solution)))


@pytest.mark.parametrize("before", [FLAT, BENT], ids=["flat first", "bent first"])
def test_convexity_is_looked_at_where_the_run_starts(before):
    """Not where an earlier run of the same object started: what is seen there does not depend on x0's shape alone."""
    samples, method = uniform([-1], [1], 40, 0), ez.ForwardBackward()
    game = bumpy()
    ez.solve(game, samples, method, x0=before)
    for start in (FLAT, BENT):
        after, alone = (ez.solve(one, samples, method, x0=start) for one in (game, bumpy()))
        assert after.notes == alone.notes
        assert not difference(of_certificate(ez.certify(after)), of_certificate(ez.certify(alone)))


def asks_for_steps(game, samples):
    ez.solve(game, samples)


def asks_for_an_audit(game, samples):
    ez.audit(game, samples)


@pytest.mark.parametrize("between", [asks_for_steps, asks_for_an_audit])
def test_steps_follow_the_units_of_the_data_at_hand(between):
    """Not of the data that were looked at last: then other steps are taken, and many more iterations."""
    game, alike, unlike = units(), units_of(1.0, 0), units_of(40.0, 1)
    alone = of_solution(ez.solve(units(), alike))
    assert not difference(of_solution(ez.solve(game, alike)), alone)
    between(game, unlike)
    assert not difference(of_solution(ez.solve(game, alike)), alone)


def held(problem):
    """What a problem holds, but for values that its class works out from the rest once; dictionaries by their size."""
    worked_out = {name for cls in type(problem).__mro__ for name, one in vars(cls).items() if hasattr(one, "attrname")}
    kept = {name: one for name, one in vars(problem).items() if name not in worked_out}
    return {name: len(one) if isinstance(one, dict) else one for name, one in kept.items()}


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ASKED)
def test_nothing_is_written_on_the_problem(name):
    """Every attribute is the object that it was."""
    problem, samples = ASKED[name].problem(), next(iter(ASKED[name].data.values()))()
    start = next(iter(ASKED[name].starts.values()))
    before = held(problem)
    ez.audit(problem, samples, x0=start)
    ez.certify(ez.solve(problem, samples, ASKED[name].method(), x0=start))
    after = held(problem)
    assert after.keys() == before.keys()
    assert [name for name in before if after[name] is not before[name]] == []


# -- verify ------------------------------------------------------------------------------------------------------------


def double_well(x, i, xi):
    return 0.25 * jnp.sum(x[i] ** 4) - 0.5 * x[i] @ x[i] + xi @ x[i]


def first_well(x, xi):
    return double_well(x, 0, xi)


def second_well(x, xi):
    return double_well(x, 1, xi)


def wells():
    """Bent between the two bottoms: seen from the start and from the solution alike. The user vouches all the same."""
    return ez.Game([first_well, second_well], [ez.sets.Box(-2.0, 2.0, dim=1)] * 2, declared=ez.declare(monotone=True))


@pytest.mark.long
def test_verify_does_not_believe_the_notes_of_a_record():
    """A non-convex game whose note was taken out, and whose savings were filled in, is not a game that holds up."""
    samples = uniform([-0.1], [0.1], 40, 0)
    solution = ez.solve(wells(), samples, ez.ForwardBackward(step=0.05), x0=[np.array([0.5])] * 2)
    record = json.loads(ez.certify(solution).to_json())
    assert record["exploitability"] is None
    assert "not convex" in record["notes"]["exploitability"]
    assert ez.verify(json.dumps(record), wells(), samples)

    forged = copy.deepcopy(record)
    forged["run"]["notes"] = []
    found = ez.verify(json.dumps(forged), wells(), samples)
    if found.certificate is not None and found.certificate.exploitability is not None:
        believed = json.loads(found.certificate.to_json())
        for name in ("exploitability", "total_exploitability", "notes", "leans_on", "verdict"):
            forged[name] = believed[name]
    else:
        forged["exploitability"], forged["total_exploitability"] = [0.01, 0.01], 0.02
    assert not ez.verify(json.dumps(forged), wells(), samples)


@pytest.mark.long
def test_verify_does_not_depend_on_what_the_problem_was_asked_before():
    samples = uniform([-1], [1], 40, 0)
    text = ez.certify(ez.solve(bumpy(), samples, ez.ForwardBackward(), x0=BENT)).to_json()
    game = bumpy()
    ez.solve(game, samples, ez.ForwardBackward(), x0=FLAT)
    assert of_verification(ez.verify(text, game, samples)) == of_verification(ez.verify(text, bumpy(), samples))


def saturating(x, xi):
    return {"a": jnp.tanh(x["a"] - xi), "b": 0.5 * jnp.tanh(x["b"] + xi)}


def saturated():
    """Cocoercive, not strongly monotone: stability is that of the run, so the record must rebuild its steps."""
    return ez.VariationalInequality(
        saturating,
        {"a": ez.sets.WholeSpace(dim=1), "b": ez.sets.WholeSpace(dim=1)},
        declared=ez.declare(theta=1.0, kappa=1.0, R=2.3),
    )


@pytest.mark.long
def test_an_honest_record_holds_up_with_a_step_per_block():
    samples = uniform([-1], [1], 40, 0)
    method = ez.ForwardBackward(step={"a": 0.5, "b": 0.2})
    certificate = ez.certify(ez.solve(saturated(), samples, method, iterations=10), using=VectorStability())
    assert np.isfinite(certificate.epsilon)
    found = ez.verify(certificate.to_json(), saturated(), samples)
    assert found, str(found)


def first_bound(x, xi):
    return (1 + 0.2 * xi[0]) * x[0] @ x[0] + xi @ x[0]


def second_bound(x, xi):
    return (2 + 0.2 * xi[1]) * x[1] @ x[1] + xi @ x[1]


def bound_together():
    """The Jacobian moves with ξ and a constraint is shared, so what is known of the run counts."""
    boxes = [ez.sets.Box(-1.0, 1.0, dim=2)] * 2
    return ez.Game([first_bound, second_bound], boxes, shared=(np.ones((1, 4)), np.array([-1.0])))


@pytest.mark.long
def test_an_honest_record_holds_up_after_the_preconditioned_method():
    samples = uniform([0, 0], [1, 1], 40, 0)
    method = ez.PreconditionedForwardBackward(step=0.05)
    certificate = ez.certify(ez.solve(bound_together(), samples, method, iterations=10), using=VectorStability())
    found = ez.verify(certificate.to_json(), bound_together(), samples)
    assert found, str(found)


# -- one number for one constant ---------------------------------------------------------------------------------------


def leant(certificate, name):
    """What the certificate says of a constant: its number, where it comes from, and why."""
    (found,) = {one for one in certificate.leans_on if one.what.startswith(f"{name} = ")}
    return found.what, found.provenance, found.evidence


R_OF = {
    "additive": (turning, None, lambda: uniform([-1, -1], [1, 1], 30, 0)),
    "additive, declared larger": (turning, ez.declare(R=3.0), lambda: uniform([-1, -1], [1, 1], 30, 0)),
    "moving with x, declared larger": (weighted, ez.declare(R=3.0), lambda: weights(2.0, 1.0, 0)),
    "moving with x": (weighted, None, lambda: weights(2.0, 1.0, 0)),
}


@pytest.mark.parametrize("name", R_OF)
def test_R_is_one_number(name):
    """√8 in the audit is √8 in the certificate, which adds that it leans on the declared support where it does."""
    make, declared, data = R_OF[name]
    problem = make() if declared is None else make().declaring(declared)
    said = ez.audit(problem, data()).constants["R"]
    certificate = ez.certify(ez.solve(problem, data()), using=VectorStability())
    what, provenance, evidence = leant(certificate, "R")
    assert what == f"R = {said.value:.4g}"
    over = ("declared", f"{said.provenance} over the declared support")
    assert (provenance, evidence) in {(said.provenance, said.evidence), over}


@pytest.mark.long
def test_a_plan_promises_nothing_that_no_certificate_can_keep():
    """The game is seen not to be convex, so nothing bounds what an agent could save, with however many samples."""
    samples = uniform([-0.1], [0.1], 40, 0)
    solution = ez.solve(wells(), samples, ez.ForwardBackward(step=0.05))
    reason = ez.certify(solution).notes["exploitability"]
    assert "not convex" in reason
    rows = ez.plan(wells(), size=1000, of="exploitability", samples=samples).rows
    assert [row for row in rows if row.answer is not None] == []
    assert any("not convex" in row.note for row in rows)


# -- solve_many --------------------------------------------------------------------------------------------------------


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ASKED)
def test_one_of_many_is_the_one(name):
    asked = ASKED[name]
    start = next(iter(asked.starts.values()))
    alone = [ez.solve(asked.problem(), make(), asked.method(), x0=start) for make in asked.data.values()]
    (single,) = ez.solve_many(asked.problem(), [next(iter(asked.data.values()))()], asked.method(), x0=start)
    many = ez.solve_many(asked.problem(), [make() for make in asked.data.values()], asked.method(), x0=start)
    for one, other in zip([single, *many], [alone[0], *alone], strict=True):
        assert not difference(of_solution(one), of_solution(other))


# -- what the user holds -----------------------------------------------------------------------------------------------


def heavy(own, average, xi, p):
    return p["w"] * own @ own + xi @ own + 0.1 * average @ own


@pytest.mark.long
def test_a_game_keeps_parameters_of_its_own():
    mine = {"w": np.array([1.0, 2.0])}
    game = ez.AggregativeGame(heavy, mine, ez.sets.Box(-1.0, 1.0, dim=2))
    samples = uniform([-1, -1], [1, 1], 30, 0)
    before = of_solution(ez.solve(game, samples))
    mine["w"][:] = 5
    np.testing.assert_array_equal(game.parameters["w"], [1.0, 2.0])
    assert not difference(of_solution(ez.solve(game, samples)), before)


def test_samples_keep_values_of_their_own():
    mine = np.random.default_rng(0).uniform(size=(20, 2))
    samples = ez.Samples(mine, support=ez.sets.Box(0.0, 1.0, dim=2))
    before = of_solution(ez.solve(turning(), samples))
    mine[:] = 0.5
    assert not difference(of_solution(ez.solve(turning(), samples)), before)


@pytest.mark.long
def test_a_declaration_does_not_reach_the_problem_it_was_made_from():
    problem, samples = shared(), uniform([0, 0], [1, 1], 20, 3)
    alone = of_certificate(ez.certify(ez.solve(shared(), samples)))
    other = problem.declaring(ez.declare(mu=1e-3))
    ez.certify(ez.solve(other, samples))
    assert not difference(of_certificate(ez.certify(ez.solve(problem, samples))), alone)
