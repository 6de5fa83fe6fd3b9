"""What a plan expects of the certificate that `ez.certify` makes: it comes true, and half as many will not do.

Random problems, laws, supports, pilots and targets (planned_problems.py). Twins of the forecast that are broken on
purpose, without the range of the support or without the split of δ, fail the same count.
"""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from certified_data import UNIT, rows
from planned_problems import questions

import epszero as ez
from epszero.certificates import CertifiedPiece, MeanDeviation
from epszero.certificates.foreseen import Foreseen
from epszero.certificates.mean import MeanSet

ENOUGH, HALF = 0.9, 0.3  # of the certificates meet the target at the planned number; at half of it at most


def planned(question, target):
    pilot = question.samples(question.pilot, 1)
    return ez.plan(question.problem, target, question.delta, of=question.of, samples=pilot)


def share_met(many, plans, part=1.0):
    """Of the certificates on `part` of the planned samples, fresh ones: how many meet the target."""
    met = [
        question.certified(max(2, int(plan.samples * part)), 2, plan.using) <= target
        for (question, target), plan in zip(questions(many), plans, strict=True)
    ]
    return sum(met) / len(met)


def without_range(self, X, region, delta):
    """A normal approximation."""
    del region
    variance = np.sum(np.var(X, axis=0))
    return MeanSet(np.mean(X, axis=0), np.sqrt(2 * math.log(2 / delta) * variance / self.size))


def without_split(self, *asked):
    """Every line at all of δ."""
    del self, asked
    return dict.fromkeys(("residual", "piece", "distance", "exploitability", "intervals"), 1.0)


TWINS = {"no range": (Foreseen, "around", without_range), "no split": (CertifiedPiece, "shares", without_split)}
MANY = [12, pytest.param(200, marks=pytest.mark.long)]


@pytest.mark.parametrize("many", MANY)
def test_plans_come_true_and_half_as_many_will_not_do(many, record_property):
    plans = [planned(*one) for one in questions(many)]
    met, half = share_met(many, plans), share_met(many, plans, 0.5)
    record_property("meet the target", met)
    record_property("at half of the samples", half)
    assert met >= ENOUGH
    assert half <= HALF


@pytest.mark.some(2)
@pytest.mark.parametrize("many", MANY)
@pytest.mark.parametrize("twin", TWINS)
def test_a_forecast_that_is_broken_on_purpose_does_not_come_true(twin, many, monkeypatch, record_property):
    with monkeypatch.context() as patched:
        patched.setattr(*TWINS[twin])
        plans = [planned(*one) for one in questions(many)]
    met = share_met(many, plans)
    record_property("meet the target", met)
    assert met < ENOUGH


# -- what is planned for ---------------------------------------------------------------------------------------------


def expected(plan, of=None):
    (row,) = [row for row in plan.rows if row.kind.startswith("default" if of is None else f'default, of="{of}"')
              and row.of == of]  # fmt: skip
    return row


@pytest.mark.parametrize(("of", "target"), [("residual", 0.05), ("distance", 0.05), ("exploitability", 0.002)])
def test_the_best_is_the_default_and_one_line_alone_takes_fewer(game, of, target):
    plan = ez.plan(game, target, of=of, samples=rows(300, 1))
    usual, alone = expected(plan), expected(plan, of)
    assert plan.best is usual is plan.expected
    assert plan.using is None
    assert alone.answer < plan.samples < plan.promised[0].answer / 2
    assert usual.call == "ez.certify(solution)"
    assert alone.call == f'ez.certify(solution, of="{of}")'
    assert not plan.best.promised
    text = str(plan)
    assert f"Collect {plan.samples:,} samples" in text
    assert f"Whatever the data: {int(plan.promised[0].answer):,}" in text
    given = ez.plan(game, size=plan.samples, of=of, samples=rows(300, 1))
    assert 0.9 * target < given.best.answer <= target * (1 + 1e-9)


def test_one_line_alone_comes_true(game):
    plan = ez.plan(game, 0.1, of="distance", samples=rows(400, 1))
    s = int(expected(plan, "distance").answer)
    met = [ez.certify(ez.solve(game, rows(s, seed)), of="distance").distance <= 0.1 for seed in range(10, 20)]
    assert sum(met) >= 9


@pytest.mark.long
def test_curved_sets_and_noise_that_x_multiplies_are_planned_for_too():
    ball = ez.sets.Ball(0.5, dim=3)
    for problem in (
        ez.VariationalInequality(lambda x, xi: 2 * x - xi, ball),
        ez.VariationalInequality(lambda x, xi: 2 * x + 0.1 * x**3 - (1 + x) * xi / 2, ball),
    ):
        plan = ez.plan(problem, 0.1, of="residual", samples=rows(300, 1))
        assert isinstance(ez.certify(ez.solve(problem, rows(50, 2))).using, MeanDeviation)
        met = [ez.certify(ez.solve(problem, rows(plan.samples, seed))).epsilon <= 0.1 for seed in range(10, 20)]
        assert sum(met) >= 8
        assert ez.certify(ez.solve(problem, rows(plan.samples // 2, 30))).epsilon > 0.1


@pytest.mark.long
def test_agents_with_data_of_their_own_are_planned_for():
    game = ez.Game(
        [lambda x, xi, i=i: x[i] @ x[i] + 0.3 * x[0] @ x[1] - xi @ x[i] for i in range(2)],
        [ez.sets.Box(-2.0, 2.0, dim=3)] * 2,
    )
    plan = ez.plan(game, 0.2, samples=[rows(200, 1), rows(300, 2)])
    data = [rows(plan.samples, seed) for seed in (3, 4)]
    assert ez.certify(ez.solve(game, data)).epsilon <= 0.2
    assert "by a pilot of 200" in plan.best.note


def test_a_vertex_takes_what_it_takes_to_tell_the_vertex():
    problem = ez.Minimization(lambda x, xi: 0.5 * x @ x - xi @ x, ez.sets.Box(-1.0, -0.5, dim=3))
    plan = ez.plan(problem, 1e-6, of="distance", samples=rows(200, 1))
    assert ez.certify(ez.solve(problem, rows(plan.samples, 2))).distance <= 1e-6
    assert plan.samples < 1000
    never = expected(ez.plan(problem, 1e-18, of="distance", samples=rows(200, 1)))
    assert never.answer is None
    assert "below rounding" in never.note


# -- what cannot be planned for --------------------------------------------------------------------------------------


def test_without_a_pilot_only_promises_are_left(game):
    plan = ez.plan(game, 0.05, samples=UNIT)
    assert plan.expected is None
    assert plan.best is plan.promised[0]
    assert "pilot" in expected(plan).note


def test_small_and_ordered_pilots_are_refused(line):
    assert "too small" in expected(ez.plan(line, 0.1, samples=rows(5, 1))).note
    walk = np.clip(np.cumsum(np.random.default_rng(0).normal(0, 0.05, size=(300, 3)), axis=0) + 0.5, 0, 1)
    ordered = ez.plan(line, 0.1, samples=ez.Samples(walk, support=UNIT))
    assert "not independent" in expected(ordered).note
    assert ordered.best is ordered.promised[0]


@pytest.mark.long
def test_targets_that_are_out_of_reach_are_said_to_be(line):
    assert "below rounding" in expected(ez.plan(line, 1e-18, of="distance", samples=rows(100, 1))).note
    assert "more than 1e+15 samples" in expected(ez.plan(line, 1e-9, of="distance", samples=rows(100, 1))).note
    many = ez.plan(line, 1e-6, of="distance", samples=rows(100, 1))
    assert "nobody collects so many" in expected(many).note
    assert many.samples > 10**9
    never = ez.plan(line, 0.1, of="cost gap", samples=rows(100, 1))
    assert "not a minimisation" in expected(never).note
    with pytest.raises(ez.InputError, match="target"):
        ez.plan(line, math.inf, samples=UNIT)


def test_without_structure_the_row_of_the_usual_kind_is_named(bent):
    plan = ez.plan(bent, 0.5, samples=rows(20, 1))
    assert "row of its own" in expected(plan).note


@pytest.mark.long
def test_few_samples_give_no_distance_where_it_needs_the_piece():
    """B is strongly monotone on the face alone."""
    problem = ez.VariationalInequality(
        lambda x, xi: jnp.array([x[0] - xi[0], 1.0 + 0.1 * xi[1]]), ez.sets.Box(-2.0, 2.0, dim=2)
    )
    pilot = ez.Samples(np.random.default_rng(0).uniform(size=(200, 2)), support=ez.sets.Box(0.0, 1.0, dim=2))
    plan = ez.plan(problem, size=10, of="distance", samples=pilot)
    assert expected(plan).answer is None
    assert "not strongly monotone" in expected(plan).note
    assert ez.plan(problem, 0.1, of="distance", samples=pilot).samples < 5000
