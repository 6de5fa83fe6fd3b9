"""How many samples it takes: the least that will do, certificates keep the promise, and the inverse agrees."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import UNIT, rows

import epszero as ez
from epszero.certificates import Hoeffding, McDiarmid, MeanDeviation, SubGaussian, VectorStability

HOEFFDING, MCDIARMID = (f"mean deviation, {bound.title}" for bound in (Hoeffding(), McDiarmid()))


def row(plan, kind):
    (found,) = [row for row in plan.rows if row.kind == kind]
    return found


def test_the_answer_is_the_closed_form(line):
    plan = ez.plan(line, 0.1, 0.05, samples=UNIT)
    rho = math.sqrt(3) / 2
    assert row(plan, HOEFFDING).answer == math.ceil(rho**2 * 2 * math.log(40) / 0.1**2)
    assert row(plan, MCDIARMID).answer == math.ceil(((rho + math.sqrt(3 * math.log(20) / 2)) / 0.1) ** 2)
    assert plan.samples == min(row.answer for row in plan.rows if row.answer is not None)
    assert plan.best == plan.rows[0]


@pytest.mark.some(3)
@pytest.mark.parametrize("of", ["residual", "distance", "exploitability"])
def test_the_answer_is_the_least_and_size_is_the_inverse(game, of):
    plan = ez.plan(game, 0.05, 0.05, of=of, samples=rows(10, 1))
    seen = 0
    for found in plan.rows:
        if found.answer is None or found.answer > 1e12 or found.kind.startswith("default"):  # a forecast, close enough
            continue
        s, seen = int(found.answer), seen + 1
        enough = row(ez.plan(game, delta=0.05, of=of, samples=rows(10, 1), size=s), found.kind).answer
        fewer = row(ez.plan(game, delta=0.05, of=of, samples=rows(10, 1), size=max(1, s - 2)), found.kind).answer
        assert enough <= 0.05 * (1 + 1e-12), found.kind
        assert fewer > 0.05 * (1 - 1e-12), found.kind
    assert seen >= 4


def test_smaller_targets_and_deltas_take_more(line):
    counts = [ez.plan(line, target, delta, samples=UNIT).samples for target, delta in
              ((0.2, 0.3), (0.2, 0.05), (0.1, 0.05), (0.1, 0.001))]  # fmt: skip
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


@pytest.mark.parametrize(("of", "target"), [("residual", 0.3), ("distance", 0.5), ("exploitability", 0.05)])
def test_real_certificates_keep_the_promise(game, of, target):
    plan = ez.plan(game, target, 0.05, of=of, samples=UNIT)
    for kind, name in ((MeanDeviation(Hoeffding()), HOEFFDING), (MeanDeviation(McDiarmid()), MCDIARMID),
                       (VectorStability(), "vector stability")):  # fmt: skip
        needed = int(row(plan, name).answer)
        solution = ez.solve(game, rows(needed, 5), tol=1e-10)
        found = ez.certify(solution, 0.05, kind)
        value = {"residual": found.epsilon, "distance": found.distance,
                 "exploitability": np.max(found.exploitability)}[of]  # fmt: skip
        assert value <= target * (1 + 1e-6), name
        assert value >= 0.5 * target, name


def test_the_cost_gap_of_a_minimisation():
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ x - xi @ x, ez.sets.Box(-5.0, 5.0, dim=3))
    plan = ez.plan(problem, 0.01, 0.05, of="cost gap", samples=UNIT)
    # ½ε² ≤ 0.01
    assert row(plan, HOEFFDING).answer == pytest.approx(0.75 * 2 * math.log(40) / 0.02, abs=2)


@pytest.mark.long
def test_without_structure_declared_constants_serve(bent):
    plan = ez.plan(bent, 0.5, 0.05, samples=rows(5, 1))
    assert {found.kind for found in plan.rows if found.answer is not None} == {
        f"hold-out of half, {Hoeffding().title}", "vector stability"}  # fmt: skip
    rho = math.sqrt(3) * math.sqrt(3 / 8)
    half = row(plan, f"hold-out of half, {Hoeffding().title}")
    # on samples kept aside the residual is not 0: its mean is at most the distance of two means
    assert half.answer == 2 * math.ceil(rho**2 * (math.sqrt(2 * math.log(40)) + math.sqrt(2)) ** 2 / 0.25)
    assert not half.sure
    assert plan.best.kind == "vector stability"
    solution = ez.solve(bent, rows(plan.samples, 3), ez.ForwardBackward(step=0.3), iterations=200)
    assert ez.certify(solution, 0.05, plan.using).epsilon <= 0.5


def test_further_bounds_and_a_pilot(line):
    plan = ez.plan(line, 0.1, 0.05, samples=rows(50, 1), bounds=[SubGaussian(0.5)])
    assert row(plan, f"mean deviation, {SubGaussian(0.5).title}").answer is not None
    assert row(plan, f"hold-out of half, {SubGaussian(0.5).title}").answer is not None
    guess = [found for found in plan.rows if not found.sure]
    assert all("expected, not promised" in found.note for found in guess)
    assert [found.using for found in guess if found.kind.startswith("default")] == [None, None]
    assert plan.best in guess
    assert plan.promised[0] not in guess
    never = [found for found in plan.rows if "uniform stability" in found.kind]
    assert len(never) == 2
    assert all(found.answer is None and "does not vanish" in found.note for found in never)


def test_what_is_printed(line):
    text = str(ez.plan(line, 0.1, 0.05, samples=UNIT))
    assert text.startswith("residual ≤ 0.1 at 95 %: samples needed")
    assert HOEFFDING in text
    assert "promised with using=MeanDeviation(Hoeffding())" in text
    assert "expected, not promised" in text
    assert "—" in text
    assert "that 500 samples give" in str(ez.plan(line, size=500, samples=UNIT))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"target": 0.0}, "target"),
        ({"target": -1.0}, "target"),
        ({"target": "small"}, "target"),
        ({}, "exactly one"),
        ({"target": 0.1, "size": 10}, "exactly one"),
        ({"size": 0}, "size"),
        ({"target": 0.1, "delta": 1.0}, "delta"),
        ({"target": 0.1, "of": "regret"}, "of"),
        ({"target": 0.1, "samples": None}, "samples"),
        ({"target": 0.1, "samples": ez.sets.Box(0.0, 1.0)}, "dim"),
        ({"target": 0.1, "goal": 2}, "goal"),
        ({"target": [0.1, 0.2]}, "target"),
        ({"size": 10**400}, "size"),
        ({"target": 0.1, "bounds": [3]}, "bound"),
        ({"target": 0.1, "bounds": 3}, "bounds"),
    ],
)
def test_refusals(line, options, match):
    with pytest.raises(ez.InputError, match=match):
        ez.plan(line, **({"samples": UNIT} | options))


@pytest.mark.long
def test_problems_that_cannot_be_planned_for(exact, line):
    with pytest.raises(ez.InputError, match="problem"):
        ez.plan("game", 0.1, samples=UNIT)
    with pytest.raises(ez.InputError, match="does not depend on samples"):
        ez.plan(exact.problem, 0.1, samples=UNIT)
    bare = ez.plan(line, 0.1, samples=ez.Samples(rows(20, 1).values))  # no support, no constants
    with pytest.raises(ez.InputError, match="no kind can promise"):
        _ = bare.samples
    assert all("size of the noise" in found.note for found in bare.rows if "stability, " not in found.kind)
    with pytest.raises(ez.InputError, match="no kind can promise"):
        _ = ez.plan(line, 0.1, of="exploitability", samples=UNIT).best
    monotone = ez.VariationalInequality(
        lambda x, xi: jnp.tanh(x - xi) ** 3, ez.sets.Box(-1.0, 1.0, dim=3), declared=ez.declare(kappa=1.0, R=1.8)
    )
    plan = ez.plan(monotone, 0.5, samples=rows(5, 1))
    assert "mu" in row(plan, "vector stability").note
