"""The audit: what it derives is right, what it calls violated is witnessed, and it says so in words and in JSON."""

import json
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero.certificates import HoldOut, MeanDeviation

ROOT = Path(__file__).parent.parent.parent
RNG = np.random.default_rng(0)
TURN = np.array([[0.0, 1.0], [-1.0, 0.0]])
UNIT = ez.sets.Box(-1.0, 1.0, dim=2)
DATA = ez.Samples(RNG.uniform(1.0, 2.0, size=(200, 2)), support=ez.sets.Box(1.0, 2.0, dim=2))


def slope(oracle, witness, row):
    """⟨O(x) − O(y), x − y⟩/‖x − y‖² at a witness, by hand."""
    x, y = np.asarray(witness.x), np.asarray(witness.y)
    with jax.enable_x64(True):
        change = np.asarray(oracle(x, row)) - np.asarray(oracle(y, row))
    return float(change @ (x - y) / ((x - y) @ (x - y)))


def statuses(audit):
    return {name: str(one.status) for name, one in audit.assumptions.items()}


@pytest.fixture(scope="module")
def academic():
    """The paper's quadratic programme: P̄ + diag ξ with ξ normal, x in a box."""
    rng = np.random.default_rng(7)
    Q, _ = np.linalg.qr(rng.normal(size=(10, 10)))
    P, q = Q @ np.diag(np.linspace(0, 1, 10)) @ Q.T, rng.normal(0, np.sqrt(0.5), size=10)

    def oracle(x, xi):
        return (P + jnp.diag(xi)) @ x + q

    values = rng.normal(0, np.sqrt(0.5), size=(4000, 10))
    problem = ez.VariationalInequality(oracle, over=ez.sets.Box(0.0, 1.3, dim=10))
    return P, oracle, values, problem


@pytest.mark.long
def test_the_academic_example_of_the_paper_is_violated_with_witnesses(academic):
    P, oracle, values, problem = academic
    audit = ez.audit(problem, values)
    monotone, noise = audit.assumptions["monotone"], audit.assumptions["bounded noise"]
    assert (monotone.status, noise.status) == ("violated", "violated")
    bent = np.linalg.eigvalsh(P + np.stack([np.diag(row) for row in values]))[:, 0] < -1e-9
    assert 0.95 < bent.mean() < 1
    assert f"{bent.sum()} of 4000" in monotone.evidence
    row = values[monotone.witness.sample]
    assert slope(oracle, monotone.witness, row) == pytest.approx(monotone.witness.value, rel=1e-6)
    assert monotone.witness.value < 0
    assert "normal" in noise.evidence
    assert noise.sample is not None
    least = np.linalg.eigvalsh(P + np.diag(values.mean(axis=0)))[0]  # λ_min(P̄) = 0: the average may be either
    assert audit.assumptions["average monotone"].status == ("holds" if least > -1e-9 else "violated")
    whole = ez.audit(problem, ez.Samples(values, support=ez.sets.WholeSpace(dim=10)))
    assert whole.assumptions["bounded noise"].status == "violated"
    assert "unbounded" in whole.assumptions["bounded noise"].evidence


@pytest.mark.long
def test_noise_that_satisfies_the_assumptions_is_not_violated(academic):
    P, _, _, problem = academic
    mild = ez.Samples(np.random.default_rng(1).uniform(0.1, 0.5, size=(300, 10)), support=ez.sets.Box(0.1, 0.5, dim=10))
    audit = ez.audit(problem, mild)
    assert audit.violated() == {}
    corners = [np.linalg.eigvalsh(P + np.diag(corner))[0] for corner in (np.full(10, 0.1), np.full(10, 0.5))]
    assert audit.constants["mu"].value == pytest.approx(min(corners), abs=1e-8)
    assert audit.constants["mu"].provenance == "exact"


@pytest.mark.long
def test_days_in_their_order_are_dependent_and_shuffled_ones_are_not():
    table = pl.read_csv(ROOT / "examples" / "prices_nl_2024.csv")
    days = table.select(pl.selectors.numeric()).to_numpy()[:, :14]
    game = ez.models.ev_charging(vehicles=3, hours=days.shape[1], seed=0)
    ordered = ez.Samples(days)
    found = ez.audit(game, ordered)
    assert found.assumptions["independent"].status == "violated"
    assert found.order.lag_one > 0.5
    assert found.order.effective < len(days) / 3
    certificate = ez.certify(ez.solve(game, ordered), using=MeanDeviation(support=ez.sets.Box(-5, 5)))
    assert certificate.verdict == "refused"
    assert "not independent" in certificate.reason
    for drawn in (ordered.take(len(days), seed=0), ordered.take(len(days), seed=0, replace=False)):
        audit = ez.audit(game, drawn)
        assert {audit.assumptions[name].status for name in ("independent", "identically distributed")} == {
            "not contradicted"
        }


@pytest.mark.long
def test_everything_is_exact_for_an_affine_game_and_the_words_are_all_there():
    game = ez.models.ev_charging(vehicles=4, seed=0)
    prices = ez.Samples(RNG.uniform(0, 0.3, size=(100, 14)), support=ez.sets.Box(0.0, 0.3, dim=14))
    audit = ez.audit(game, prices)
    assert {name: str(one.provenance) for name, one in audit.constants.items()} == dict.fromkeys(
        ("mu", "kappa", "theta", "R", "M", "diameter"), "exact"
    )
    assert audit.violated() == {}
    assert (audit.structure.in_x, audit.structure.in_xi, audit.structure.symmetric) == ("affine", "additive", True)
    record = json.loads(audit.to_json())
    assert set(record["assumptions"]) == set(audit.assumptions)
    for name in audit.assumptions:
        assert name in str(audit)
    assert max(map(len, str(audit).splitlines())) <= 120


WRONG = {
    "mu": (lambda x, xi: jnp.tanh(x) * xi, {"mu": 0.9}, "strongly monotone"),
    "kappa": (lambda x, xi: jnp.sinh(x) * xi, {"kappa": 1.1}, "Lipschitz"),
    "theta": (lambda x, xi: jnp.sinh(x) * xi + TURN @ x, {"theta": 0.9}, "cocoercive"),
    "monotone": (lambda x, xi: jnp.sin(3 * x) * xi, {"monotone": True}, "monotone"),
    "gradient": (lambda x, xi: x**3 * xi + TURN @ x, {"gradient": True}, "gradient"),
    "R": (lambda x, xi: x**3 + jnp.tanh(x + xi), {"R": 1e-3}, "bounded noise"),
    "M": (lambda x, xi: x**3 + jnp.tanh(x + xi), {"M": 0.1}, "bounded noise"),
    "support": (lambda x, xi: x + xi, {"support": ez.sets.Box(1.0, 1.5, dim=2)}, "samples inside the support"),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_is_violated_with_a_witness(name):
    oracle, declared, assumption = WRONG[name]
    problem = ez.VariationalInequality(oracle, UNIT, declared=ez.declare(**declared))
    audit = ez.audit(problem, ez.Samples(DATA.values), budget=0.5)
    found = audit.assumptions[assumption]
    assert found.status == "violated"
    if name in ("mu", "monotone"):
        again = slope(oracle, found.witness, DATA.values[found.witness.sample])
        assert again == pytest.approx(found.witness.value, rel=1e-4)
        assert again < declared.get("mu", 0.0)
    if name in ("mu", "kappa", "theta", "R", "M"):
        assert audit.constants[name].provenance == "violated"
    json.loads(audit.to_json())


RIGHT = {
    "mu": (lambda x, xi: jnp.tanh(x) * xi, {"mu": 0.4}),
    "kappa": (lambda x, xi: jnp.sinh(x) * xi, {"kappa": 3.1}),
    "monotone": (lambda x, xi: jnp.where(x > 0, x, 2 * x) * xi, {"monotone": True}),
    "gradient": (lambda x, xi: x**3 * xi, {"gradient": True}),
    "R and M": (lambda x, xi: x**3 + jnp.tanh(x + xi), {"R": 2.0, "M": 3.0}),
    "independent": (lambda x, xi: x + xi, {"independent": True, "support": ez.sets.Box(1.0, 2.0, dim=2)}),
}


@pytest.mark.some(2)
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_declaration_is_not_contradicted(name):
    oracle, declared = RIGHT[name]
    problem = ez.VariationalInequality(oracle, UNIT, declared=ez.declare(**declared))
    audit = ez.audit(problem, ez.Samples(DATA.values), budget=0.5)
    assert audit.violated().keys() <= {"strongly monotone", "cocoercive"}  # x³ is not, nor need it be


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("oracle", "constants"),
    [
        (lambda x, xi: jnp.tanh(x) * xi + TURN @ x, {"mu": 0.9, "kappa": 4.0}),
        (lambda x, xi: jnp.sinh(x) * xi, {"mu": 0.5, "kappa": 1.1}),
    ],
)
def test_a_certificate_on_a_contradicted_constant_is_refused(oracle, constants):
    problem = ez.VariationalInequality(oracle, UNIT, declared=ez.declare(R=3.0, **constants))
    solution = ez.solve(problem, DATA, ez.ForwardBackwardForward(step=0.1), holdout=0.5)
    found = ez.certify(solution, using=ez.certificates.VectorStability())
    assert found.verdict == "refused"
    assert any(leaning.provenance == "violated" for leaning in found.leans_on)


@pytest.mark.long
def test_a_verified_constant_makes_a_distance_without_a_word():
    problem = ez.VariationalInequality(lambda x, xi: x**3 + 0.5 * x + TURN @ x - xi, UNIT)
    found = ez.certify(ez.solve(problem, DATA))
    (mu,) = [leaning for leaning in found.leans_on if "μ" in leaning.what]
    assert mu.provenance == "verified"
    assert found.distance == pytest.approx(found.epsilon / 0.5, rel=0.02)


@pytest.mark.long
def test_features_that_are_found_serve_all_samples():
    problem = ez.VariationalInequality(lambda x, xi: x + jnp.exp(xi) - xi**2, UNIT)
    found = ez.certify(ez.solve(problem, DATA))
    assert "sample-mean deviation" in found.by
    assert any("φ(ξ)" in leaning.what and leaning.provenance == "exact" for leaning in found.leans_on)
    bare = ez.certify(ez.solve(problem, ez.Samples(DATA.values), holdout=0.5), using=HoldOut())
    assert bare.verdict == "refused"


def test_where_start_step_and_domain_are_at_fault_it_is_said():
    problem = ez.VariationalInequality(lambda x: x - 1, UNIT)
    audit = ez.audit(problem, method=ez.ForwardBackward(step=2.5), x0=[3.0, 0.0])
    assert statuses(audit)["x0 in the domain"] == "violated"
    assert statuses(audit)["step"] == "violated"
    assert ez.audit(problem, method=ez.ForwardBackward(step=1.5)).assumptions["step"].status == "holds"
    assert statuses(ez.audit(problem, method=ez.Extragradient(step=1.5)))["step"] == "violated"
    free = ez.audit(ez.VariationalInequality(lambda x: x - 1, ez.sets.WholeSpace(dim=2)))
    assert statuses(free)["compact domain"] == "violated"
    assert free.samples is None
    json.loads(free.to_json())


def test_costs_that_are_not_convex_are_violated_and_not_refused():
    bent = ez.audit(ez.Game([lambda x: -x[0] @ x[0], lambda x: x[1] @ x[1]], [UNIT, UNIT]))
    assert statuses(bent)["convex costs"] == "violated"
    assert statuses(bent)["monotone"] == "violated"
    assert "nothing is proved to converge" in bent.method


def test_repeated_rows_are_not_independent():
    twice = DATA[np.repeat(np.arange(100), 2)]
    assert statuses(ez.audit(ez.VariationalInequality(lambda x, xi: x - xi, UNIT), twice))["independent"] == "violated"


def test_one_data_set_per_agent():
    costs = [lambda x, xi, i=i: x[i] @ x[i] + xi @ x[i] for i in range(2)]
    audit = ez.audit(ez.Game(costs, [UNIT, UNIT]), [DATA[:90], DATA[90:]])
    assert audit.violated() == {}
    assert audit.constants["R"].value == pytest.approx(2.0)  # two agents, two entries each, which move by 1
    assert audit.order is None


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: ez.audit("game"), "^problem: must be a problem"),
        (lambda: ez.audit(ez.VariationalInequality(lambda x, xi: x - xi, UNIT)), "^samples: are needed"),
        (lambda: ez.audit(ez.VariationalInequality(lambda x: x, UNIT), DATA), "^samples: are given, but"),
        (lambda: ez.audit(ez.VariationalInequality(lambda x: x, UNIT), budget=-1.0), "^budget"),
        (lambda: ez.audit(ez.VariationalInequality(lambda x: x[:1], UNIT)), "must return a value shaped like x"),
        (lambda: ez.declare(monotone=1), "^monotone: must be True or False"),
        (lambda: ez.declare(support=[0, 1]), "^support: must be a set"),
        (lambda: ez.declare(independent="yes"), "^independent: must be True or False"),
    ],
)
def test_bad_input_gets_a_sentence(call, match):
    with pytest.raises(ez.InputError, match=match):
        call()


@pytest.mark.long
def test_the_page_on_the_audit_runs():
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/audit.md").read_text(), re.MULTILINE | re.DOTALL):
        exec(compile(block.replace("print(audit)", "str(audit)"), "audit.md", "exec"), names)  # our own text
    assert names["careful"].declared.independent
