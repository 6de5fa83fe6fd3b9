"""What `certify_many` computes for all cases together is what each case finds alone, bit for bit or to rounding."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero._double import double
from epszero._points import flat_of
from epszero.certificates import EmpiricalBernstein, MeanDeviation, together
from epszero.certificates.case import Case
from epszero.problems.graph import Graph

S = ez.sets
UNIT = S.Box(-1.0, 1.0, dim=2)
WEIGHTS = np.array([0.5, 1.0, 1.5])


def _own(x, average, xi, p):
    return 0.5 * p * x @ x + 0.3 * x @ average + xi @ x


def _share(i):
    return lambda x, xi: x[i] @ x[i] + 0.3 * jnp.sum(x[0]) * jnp.sum(x[1]) + xi[i] * jnp.sum(x[i])


PROBLEMS = {
    "box": lambda: ez.Inclusion(UNIT, lambda x, xi: jnp.array([[2.0, 0.3], [-0.3, 1.0]]) @ x + xi),
    "numbers": lambda: ez.Inclusion(S.Box(-0.1, 0.1), lambda x, xi: 2.0 * x + xi[0]),
    "numbers in a ball": lambda: ez.Inclusion(S.Ball(0.05, dim=1), lambda x, xi: x + xi[:1]),
    "number in a ball": lambda: ez.Inclusion(S.Ball(0.05), lambda x, xi: x + xi[0]),
    "lasso": lambda: ez.Minimization(lambda x, xi: x @ x + xi @ x, ez.functions.L1(0.1)),
    "two sets": lambda: ez.Game([_share(0), _share(1)], [UNIT, S.Box(-0.1, 0.1, dim=3)]),
    "agents": lambda: ez.AggregativeGame(_own, WEIGHTS, S.Box(-0.2, 0.2, dim=2)),
}
STARTS = {"numbers": 0.0, "number in a ball": 0.0, "lasso": np.zeros(2)}
KIND = MeanDeviation(EmpiricalBernstein())


def _solved(problem, many, x0=None, seed=0):
    rows = np.random.default_rng(seed).uniform(-1, 1, (many, 40, 2))
    return [ez.solve(problem, ez.Samples(one, support=UNIT), x0=x0, iterations=50) for one in rows]


def _prepared(monkeypatch, solutions):
    """Memberships two at a time."""
    monkeypatch.setattr(together, "CHUNK", 2)
    with double():
        cases = [Case.of(one) for one in solutions]
        together.prepare(cases, KIND, 0.05)
    return cases


@pytest.mark.some(3)
@pytest.mark.parametrize("name", PROBLEMS)
def test_memberships_and_residuals_are_those_of_each_case_alone(name):
    solutions = _solved(PROBLEMS[name](), 3, STARTS.get(name))
    with double():
        cases = [Case.of(one) for one in solutions]
        together._memberships(cases)
        assert all(isinstance(case.__dict__.get("graph"), Graph) for case in cases)
        together._residuals(cases)
        for case, solution in zip(cases, solutions, strict=True):
            alone = Case.of(solution)
            np.testing.assert_allclose(case.__dict__["empirical"], alone.empirical, atol=1e-14)
            for own, other in zip((case.point, case.element), (alone.point, alone.element), strict=True):
                np.testing.assert_array_equal(flat_of(own), flat_of(other))


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_is_not_of_the_graph_is_not_called_so(name):
    """The second of three has an element that is normal there to nothing, by a little and by much."""
    solutions = _solved(PROBLEMS[name](), 3, STARTS.get(name))
    for off in (1e-6 if name == "box" else 0.3, 0.3, 1e3):
        with double():
            cases = [Case.of(one) for one in solutions]
            x, z = cases[1].found
            cases[1].found = jax.tree.map(lambda x: 0.5 * x, x), jax.tree.map(lambda z, off=off: z + off, z)
            together._memberships(cases)
        assert ["graph" in case.__dict__ for case in cases] == [True, False, True]


@pytest.mark.long
def test_solutions_of_different_problems_are_certified_one_by_one(monkeypatch):
    """They would share what is not the same: B, and the set."""
    problems = [
        ez.Inclusion(UNIT, lambda x, xi: x + xi),
        ez.Inclusion(S.Box(-0.01, 0.01, dim=2), lambda x, xi: 3.0 * x - xi),
    ]
    mixed = [one for pair in zip(*(_solved(problem, 2) for problem in problems), strict=True) for one in pair]
    cases = _prepared(monkeypatch, mixed)
    assert not any("empirical" in case.__dict__ or case.sets for case in cases)
    for one, other in zip(
        ez.certify_many(mixed, 0.05, KIND), (ez.certify(one, 0.05, KIND) for one in mixed), strict=True
    ):
        assert (one.epsilon, one.distance) == (other.epsilon, other.distance)


def test_data_sets_of_different_sizes_or_supports_share_no_confidence_set(monkeypatch):
    problem = PROBLEMS["box"]()
    rows = np.random.default_rng(3).uniform(-1, 1, (60, 2))
    wide = S.Box(-2.0, 2.0, dim=2)
    for given in (
        [ez.Samples(rows[:40], support=UNIT), ez.Samples(rows, support=UNIT)],
        [ez.Samples(rows, support=UNIT), ez.Samples(rows, support=wide)],
    ):
        solutions = [ez.solve(problem, one, iterations=50) for one in given]
        cases = _prepared(monkeypatch, solutions)
        assert not any(case.sets for case in cases)


def test_a_confidence_set_of_many_is_that_of_its_own_rows(monkeypatch):
    """In chunks of two data sets, too."""
    solutions = _solved(PROBLEMS["box"](), 5)
    for at_once in (1 << 22, 2 * 40 * 2, 1):
        monkeypatch.setattr(together, "AT_ONCE", at_once)
        for case in _prepared(monkeypatch, solutions):
            with double():
                evidence = together.Evidence(case, case.samples, None)
                (region,), _ = evidence.regions(EmpiricalBernstein())
                alone = EmpiricalBernstein().around(evidence.rows[0], region, 0.05)
            found = case.sets[EmpiricalBernstein(), 0.05]
            np.testing.assert_allclose(found.centre, alone.centre, atol=1e-15)
            np.testing.assert_allclose(found.radius, alone.radius, rtol=1e-12)


def test_too_few_samples_are_left_to_each_case_alone(monkeypatch):
    rows = np.random.default_rng(0).uniform(-1, 1, (2, 1, 2))
    problem = PROBLEMS["box"]()
    solutions = [ez.solve(problem, ez.Samples(one, support=UNIT), iterations=5) for one in rows]
    monkeypatch.setattr(EmpiricalBernstein, "least", lambda self, delta: 2)
    assert not any(case.sets for case in _prepared(monkeypatch, solutions))


def test_memberships_are_looked_at_so_many_at_a_time_and_what_is_left_alone(monkeypatch):
    """Always as many, so that one compiled programme serves all."""
    looked = []
    monkeypatch.setattr(together, "_memberships", looked.append)
    cases = _prepared(monkeypatch, _solved(PROBLEMS["box"](), 5))
    assert looked == [cases[0:2], cases[2:4]]
