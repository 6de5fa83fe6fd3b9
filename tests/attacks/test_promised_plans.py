"""What a plan promises is kept on every data set, by the kind that it names: searched over laws, targets and measures.

Laws at two corners of the support have the largest variance there is, and small shares of them the rarest outcomes.
"""

import functools

import numpy as np
import pytest
from budget import budget
from hypothesis import assume, given
from hypothesis import strategies as st

import epszero as ez
from epszero.certificates import Bernstein, Hoeffding, MeanDeviation, MedianOfMeans

DIM = 2
UNIT = ez.sets.Box(0.0, 1.0, dim=DIM)
H = np.array([[1.5, 0.4], [-0.4, 0.8]])
MOST = 4000  # samples, so that an example takes no time


@functools.cache
def problem(name):
    if name == "inclusion":
        return ez.VariationalInequality(lambda x, xi: H @ x - xi, ez.sets.Box(-5.0, 5.0, dim=DIM))
    return ez.Game(
        [lambda x, xi, i=i: x[i] @ x[i] + 0.3 * x[0] @ x[1] - xi @ x[i] for i in range(2)],
        [ez.sets.Box(-2.0, 2.0, dim=DIM)] * 2,
    )


def draw(law, share, s, seed):
    """s rows of a law on the unit square."""
    rng = np.random.default_rng(seed)
    if law == "corners":  # opposite ones: the variance is the largest on the support
        return np.repeat((rng.uniform(size=(s, 1)) < share).astype(float), DIM, axis=1)
    if law == "corners of each":
        return (rng.uniform(size=(s, DIM)) < share).astype(float)
    if law == "uniform":
        return rng.uniform(size=(s, DIM))
    return rng.beta(share, 1 - share, size=(s, DIM))


def value(certificate, of):
    found = {"residual": certificate.epsilon, "distance": certificate.distance,
             "exploitability": certificate.exploitability}[of]  # fmt: skip
    return np.inf if found is None else float(np.max(found))


ASKED = [("inclusion", "residual"), ("inclusion", "distance"), ("game", "residual"), ("game", "exploitability")]
LAWS = ["corners", "corners of each", "uniform", "beta"]


@pytest.mark.long
@budget(8)
@given(
    asked=st.sampled_from(ASKED),
    law=st.sampled_from(LAWS),
    share=st.floats(0.02, 0.98),
    target=st.floats(0.05, 1.5),
    delta=st.sampled_from([0.3, 0.05, 1e-4]),
    more=st.sampled_from([0, 0, 1, 7]),
    seed=st.integers(0, 2**16),
)
def test_the_kind_that_a_plan_names_meets_the_target_on_every_data_set(asked, law, share, target, delta, more, seed):
    name, of = asked
    plan = ez.plan(problem(name), target, delta, of=of, samples=UNIT)
    for row in plan.promised:
        s = int(row.answer) + more
        if s > MOST:
            continue
        data = ez.Samples(draw(law, share, s, seed), support=UNIT)
        found = ez.certify(ez.solve(problem(name), data), delta, row.using)
        assume(found.obstacle is not ez.certificates.Obstacle.NOT_INDEPENDENT)  # a false alarm in ten thousand
        assert value(found, of) <= target, row.kind
    assert plan.using is plan.best.using


@budget(6)
@given(size=st.integers(2, 2000), law=st.sampled_from(LAWS), share=st.floats(0.02, 0.98), seed=st.integers(0, 2**16))
def test_what_so_many_samples_promise_is_kept(size, law, share, seed):
    plan = ez.plan(problem("inclusion"), delta=0.05, of="distance", samples=UNIT, size=size)
    data = ez.Samples(draw(law, share, size, seed), support=UNIT)
    for row in plan.promised:
        found = ez.certify(ez.solve(problem("inclusion"), data), 0.05, row.using)
        assume(found.obstacle is not ez.certificates.Obstacle.NOT_INDEPENDENT)
        assert value(found, "distance") <= row.answer, row.kind


# -- regressions -------------------------------------------------------------------------------------------------------


def test_a_plan_names_who_keeps_its_promise():
    """The default certificate exceeds the target at the promised size in 6 cases of 6."""
    plan = ez.plan(problem("inclusion"), 0.2, 0.05, samples=UNIT)
    for seed in range(6):
        data = ez.Samples(draw("corners", 0.5, plan.samples, seed), support=UNIT)
        solution = ez.solve(problem("inclusion"), data)
        assert ez.certify(solution, 0.05, plan.using).epsilon <= 0.2
        assert ez.certify(solution, 0.05).epsilon > 0.2  # expected, not promised
    (default,) = [row for row in plan.rows if row.usual]
    assert not default.sure
    assert default.using is None
    assert "expected, not promised" in str(plan)


def test_samples_kept_aside_are_promised_nothing():
    """Their residual is that of a point solved on other samples: it is about as large as the deviation."""
    plan = ez.plan(problem("inclusion"), 0.3, 0.05, samples=UNIT)
    (row,) = [row for row in plan.rows if row.kind.startswith("hold-out")]
    assert not row.sure
    assert row not in plan.promised
    s = 2 * int(np.ceil(0.5 * 2 * np.log(40) / 0.3**2))  # what was promised once
    data = ez.Samples(draw("corners", 0.5, s, 1), support=UNIT)
    held = ez.solve(problem("inclusion"), data, holdout=0.5)
    assert ez.certify(held, 0.05, ez.certificates.HoldOut(Hoeffding())).epsilon > 0.3


def test_a_median_is_not_the_mean_that_was_solved_for():
    bound, other = MedianOfMeans(0.8), Bernstein(variance=0.5)
    plan = ez.plan(problem("inclusion"), 0.5, 1e-4, samples=UNIT, bounds=[bound, other])
    (row,) = [row for row in plan.rows if row.kind == f"mean deviation, {bound.title}"]
    assert row.answer is None
    assert any(isinstance(row.using, MeanDeviation) and row.using.bound is other for row in plan.promised)


def test_a_stream_with_more_than_was_planned_keeps_the_promise():
    """The stitched bound starts anew at every power of two, wider than just before it."""
    plan = ez.plan(problem("inclusion"), 0.2, 0.05, samples=UNIT)
    (row,) = [row for row in plan.promised if row.kind.startswith("anytime")]
    for s in (int(row.answer), 1 << int(row.answer).bit_length()):
        data = ez.Samples(draw("uniform", 0.5, s, 3), support=UNIT)
        assert ez.certify(ez.solve(problem("inclusion"), data), 0.05, row.using).epsilon <= 0.2


def test_a_plan_by_size_counts_no_samples():
    with pytest.raises(ez.InputError, match=r"plan\.best\.answer"):
        _ = ez.plan(problem("inclusion"), size=100, samples=UNIT).samples
