"""Certificates as JSON, and what `ez.verify` finds out about them."""

import base64
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import UNIT, rows

import epszero as ez
from epszero.certificates import (
    Anytime,
    Bernstein,
    Betting,
    Certificate,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    Known,
    MeanDeviation,
    MedianOfMeans,
    Outcome,
    RepairedStability,
    SubGaussian,
    Tightest,
    UniformStability,
    VectorStability,
)

pytestmark = pytest.mark.some(2)

KINDS = {
    "default": None,
    "mean deviation": MeanDeviation(EmpiricalBernstein()),
    "a support of its own": MeanDeviation(Betting(), support=ez.sets.Box(-0.5, 1.5, dim=3)),
    "estimated": MeanDeviation(support="estimated"),
    "settings": MeanDeviation(Bernstein(share=0.3)),
    "tails": MeanDeviation(SubGaussian(0.4)),
    "median": MeanDeviation(MedianOfMeans(0.9)),
    "as published": UniformStability("removal"),
    "loss bound": UniformStability(loss_bound=50.0),
    "repaired": RepairedStability(),
    "vector": VectorStability(),
    "anytime": Anytime(Hoeffding(), looks=(10, 20)),
    "dependent, list": Dependent(beta=[0.5, 0.0]),
    "dependent, dictionary": Dependent(beta={4: 0.001}, gap=4),
    "dependent, function": Dependent(beta=lambda gap: 0.3**gap),
    "dependent, φ": Dependent(phi=[0.5, 0.1]),
    "tightest": Tightest([MeanDeviation(Betting()), VectorStability(), RepairedStability()], weights=[3, 1, 1]),
    "refused": HoldOut(),
    "does not apply": Known(),
}


def strict(text):
    """JSON as its standard has it: Infinity and NaN are no numbers."""

    def never(name):
        raise ValueError(name)

    return json.loads(text, parse_constant=never)


@pytest.mark.parametrize("name", KINDS)
def test_round_trip_of_every_kind(run, line, name):
    certificate = ez.certify(run, 0.07, KINDS[name])
    text = certificate.to_json()
    strict(text)
    found = ez.verify(text, line, run.samples)
    assert found, str(found)
    assert found.certificate.epsilon == pytest.approx(certificate.epsilon, rel=1e-9)
    back = Certificate.from_json(text)
    assert (back.epsilon, back.delta, back.distance, back.verdict) == (
        certificate.epsilon, certificate.delta, certificate.distance, certificate.verdict)  # fmt: skip
    assert back.leans_on == certificate.leans_on
    assert back.to_json() == text
    assert str(back) == str(ez.certify(run, 0.07, KINDS[name], likely=False))  # a guess is no part of a record


REFUSED_RATE = Dependent(beta=lambda gap: 1.0, gap=2)
WITHIN = Tightest([MeanDeviation(), Dependent(beta=lambda gap: 0.3**gap)])


@pytest.mark.parametrize("kind", [REFUSED_RATE, WITHIN], ids=["refused", "within tightest"])
def test_a_function_for_a_rate_is_recorded_wherever_it_is(run, line, kind):
    text = ez.certify(run, 0.07, kind).to_json()
    strict(text)
    assert ez.verify(text, line, run.samples)


@pytest.mark.long
def test_round_trip_of_a_game(played, game):
    for kind in (None, UniformStability(), RepairedStability(), VectorStability(), MeanDeviation(Betting())):
        found = ez.verify(ez.certify(played, 0.05, kind).to_json(), game, played.samples)
        assert found, str(found)


def test_round_trip_without_samples(exact):
    found = ez.verify(ez.certify(exact).to_json(), exact.problem)
    assert found, str(found)
    assert found.certificate.verdict == "guaranteed"


def test_round_trip_of_a_hold_out(held, bent):
    """`verify` takes the data as they were given to solve, and keeps the same ones aside."""
    text = ez.certify(held, 0.05).to_json()
    found = ez.verify(text, bent, rows(60, 3))
    assert found, str(found)
    assert not ez.verify(text, bent, rows(60, 4))
    assert not ez.verify(text, bent, rows(20, 3))


def test_round_trip_of_fresh_samples(run, line, bent_run, bent):
    fresh = rows(25, 6)
    for solution, problem in ((run, line), (bent_run, bent)):
        text = ez.certify(solution, 0.05, HoldOut(samples=fresh)).to_json()
        assert ez.verify(text, problem, solution.samples, fresh=fresh)
        missing = ez.verify(text, problem, solution.samples)
        assert not missing
        assert "fresh" in str(missing)
        assert not ez.verify(text, problem, solution.samples, fresh=rows(25, 7))


def test_round_trip_of_fresh_samples_within_tightest(run, line):
    fresh = rows(25, 6)
    certificate = ez.certify(run, 0.05, Tightest([HoldOut(samples=fresh), MeanDeviation(Hoeffding())]))
    found = ez.verify(certificate.to_json(), line, run.samples, fresh=fresh)
    assert found, str(found)


def test_round_trip_of_a_stream(run, line):
    certificate = ez.certify(run, 0.05, Anytime()).update(rows(20, 8)).update(rows(30, 9))
    stream = run.samples.followed_by(rows(20, 8)).followed_by(rows(30, 9))
    found = ez.verify(certificate.to_json(), line, run.samples, fresh=stream)
    assert found, str(found)


@pytest.mark.long
def test_round_trip_of_agents_with_data_of_their_own():
    costs = [ez.oracles.Affine(lambda x, xi, i=i: x[i] @ x[i] + 0.3 * x[0] @ x[1] + xi @ x[i]) for i in range(2)]
    game = ez.Game(costs, [ez.sets.Box(-1.0, 1.0, dim=3)] * 2)
    samples = [rows(20, 10), rows(30, 11)]
    certificate = ez.certify(ez.solve(game, samples), 0.05)
    assert np.isfinite(certificate.epsilon)
    assert ez.verify(certificate.to_json(), game, samples)
    assert not ez.verify(certificate.to_json(), game, samples[::-1])


@pytest.mark.long
def test_round_trip_with_shared_constraints():
    costs = [ez.oracles.Affine(lambda x, xi, i=i: x[i] @ x[i] + xi @ x[i]) for i in range(2)]
    game = ez.Game(costs, [ez.sets.Box(-1.0, 1.0, dim=3)] * 2, shared=(np.ones((1, 6)), np.array([-1.6])))
    samples = rows(30, 12)
    certificate = ez.certify(ez.solve(game, samples), 0.05)
    assert certificate.distance is not None
    found = ez.verify(certificate.to_json(), game, samples)
    assert found, str(found)


@pytest.mark.long
def test_round_trip_of_a_pytree():
    def value(x, xi):
        return {"a": 2 * x["a"] + xi["p"], "b": x["b"] + jnp.sum(x["a"]) / 5 - xi["q"]}

    A = {"a": ez.sets.Box(-1.0, 1.0, dim=2), "b": ez.sets.Box(-1.0, 1.0, dim=1)}
    rng = np.random.default_rng(0)
    support = ez.sets.Product({"p": ez.sets.Box(0.0, 1.0, dim=2), "q": ez.sets.Box(0.0, 1.0, dim=1)})
    samples = ez.Samples.from_arrays({"p": rng.uniform(size=(30, 2)), "q": rng.uniform(size=(30, 1))}, support)
    problem = ez.Inclusion(A, value)
    certificate = ez.certify(ez.solve(problem, samples), 0.05)
    assert np.isfinite(certificate.epsilon)
    found = ez.verify(certificate.to_json(), problem, samples)
    assert found, str(found)


SCHEDULED = {
    "scheduled": ez.ForwardBackward(step=lambda k: 0.2 / (1 + 0.1 * k)),
    "relaxed": ez.ForwardBackward(step=0.2, relaxation=0.7),
    "extragradient": ez.Extragradient(step=0.2),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", SCHEDULED)
def test_round_trip_of_other_runs(name):
    """Without μ the method's own stability matters, so the record must rebuild it."""
    problem = ez.VariationalInequality(
        lambda x, xi: jnp.tanh(x - xi), ez.sets.Box(-1.0, 1.0, dim=3), declared=ez.declare(kappa=1.0, theta=1.0, R=1.8)
    )
    samples = rows(30, 13)
    certificate = ez.certify(ez.solve(problem, samples, SCHEDULED[name], iterations=10), 0.05, VectorStability())
    found = ez.verify(certificate.to_json(), problem, samples)
    assert found, str(found)


# -- tampering -------------------------------------------------------------------------------------------------------


def _smaller_x(record):
    point = np.frombuffer(base64.b64decode(record["point"][0]["float64"]), dtype="<f8") * 0.9
    record["point"][0]["float64"] = base64.b64encode(point.tobytes()).decode()


TAMPERED = {
    "epsilon": lambda record: record.update(epsilon=record["epsilon"] * 0.99),
    "a little of epsilon": lambda record: record.update(epsilon=record["epsilon"] * (1 - 1e-5)),
    "delta": lambda record: record.update(delta=record["delta"] / 2),
    "distance": lambda record: record.update(distance=record["distance"] * 0.9),
    "exploitability": lambda record: record.update(exploitability=[x / 2 for x in record["exploitability"]]),
    "total": lambda record: record.update(total_exploitability=record["total_exploitability"] / 2),
    "kind": lambda record: record["kind"].update({}),
    "bound": lambda record: record["kind"].update(bound={"class": "McDiarmid"}),
    "x": _smaller_x,
    "verdict": lambda record: record.update(verdict="guaranteed"),
    "terms": lambda record: record["terms"].update(empirical=0.5),
    "leans on": lambda record: record["leans_on"].pop(),
    "provenance": lambda record: [each.update(provenance="exact") for each in record["leans_on"]],
}


@pytest.mark.parametrize("name", TAMPERED)
def test_tampering_is_found(played, game, name):
    record = strict(ez.certify(played, 0.05, MeanDeviation(EmpiricalBernstein())).to_json())
    TAMPERED[name](record)
    if name == "kind":
        record["kind"] = {"class": "VectorStability"}
    found = ez.verify(json.dumps(record), game, played.samples)
    assert not found
    assert "does not hold up" in str(found)


def test_other_data_and_other_problems_are_found(run, line, bent, additive):
    text = ez.certify(run, 0.05).to_json()
    assert not ez.verify(text, line, rows(40, 99))
    assert not ez.verify(text, line, run.samples[:39])
    assert not ez.verify(text, bent, run.samples)
    assert not ez.verify(text, additive, run.samples)
    wider = ez.Samples(run.samples.values, support=ez.sets.Box(-1.0, 1.0, dim=3))
    assert not ez.verify(text, line, wider)  # the support is part of what is claimed
    assert ez.verify(text, line, ez.Samples(run.samples.values, support=UNIT))


@pytest.mark.parametrize("junk", ["", "{}", "[1, 2]", "not json", 7, None, '{"form": 99}'])
def test_what_is_no_record_is_refused(line, run, junk):
    with pytest.raises(ez.InputError, match="certificate_json"):
        ez.verify(junk, line, run.samples)


def test_bad_arguments_of_verify(run, line):
    text = ez.certify(run).to_json()
    with pytest.raises(ez.InputError, match="problem"):
        ez.verify(text, run, run.samples)
    with pytest.raises(ez.InputError, match="samples"):
        ez.verify(text, line)
    with pytest.raises(ez.InputError, match="data"):
        ez.verify(text, line, data=run.samples)


def test_a_record_carries_what_it_takes(run):
    record = strict(ez.certify(run, 0.05).to_json())
    assert record["data"]["seen"][0]["digest"] == run.samples.digest()
    assert {"python", "epszero", "jax", "numpy"} <= record["versions"].keys()
    assert record["run"]["method"] == "ForwardBackward"
    assert record["run"]["iterations"] == 12
    assert record["terms"]["samples"] == 40


OLD = Path(__file__).parent / "data"  # records that version 0.1.0 wrote before they had a second form


def old_problem():
    values = (np.arange(60).reshape(30, 2) * 0.6180339887) % 1.0
    samples = ez.Samples(values, support=ez.sets.Box(0.0, 1.0, dim=2))
    H = np.array([[2.0, 0.5], [-0.5, 1.0]])
    return ez.VariationalInequality(lambda x, xi: H @ x - xi, over=ez.sets.Box(-1.0, 1.0, dim=2)), samples


def test_records_of_the_first_form_are_read_and_recomputed():
    problem, samples = old_problem()
    text = (OLD / "record_form_1.json").read_text(encoding="utf-8")
    claimed = ez.Certificate.from_json(text)
    found = ez.verify(text, problem, samples)
    assert found, found
    assert found.certificate.epsilon == pytest.approx(claimed.epsilon, rel=1e-9)


def test_a_record_of_the_first_form_that_leans_on_its_run_makes_the_run_again():
    problem, samples = old_problem()
    text = (OLD / "record_form_1_of_a_run.json").read_text(encoding="utf-8")
    found = ez.verify(text, problem, samples)
    assert found.certificate.epsilon <= ez.Certificate.from_json(text).epsilon * (1 + 1e-9)
    assert found.outcome in (Outcome.HOLDS, Outcome.CANNOT)  # words of constants have changed, the claim has not
    moved = json.loads(text) | {"run": json.loads(text)["run"] | {"iterations": 3}}
    assert not ez.verify(moved, problem, samples)
