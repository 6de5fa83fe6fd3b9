"""One suite over every kind of certificate, and one over every confidence set for a mean."""

import functools
import itertools
import json
import math

import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero import certificates
from epszero.certificates import (
    Anytime,
    Asymptotic,
    AtTheTruth,
    Bagging,
    Bernstein,
    Betting,
    Bootstrap,
    CertifiedPiece,
    Dependent,
    EmpiricalBernstein,
    Hoeffding,
    HoldOut,
    Kind,
    Known,
    McDiarmid,
    MeanBound,
    MeanDeviation,
    MedianOfMeans,
    MultipleReplications,
    Prequential,
    Region,
    RepairedStability,
    Stitched,
    SubGaussian,
    Tightest,
    TwoReplications,
    UniformStability,
    VectorStability,
)

pytestmark = pytest.mark.some(5)

H = np.array([[1.2, 0.4], [-0.2, 0.9]])
BOX, UNIT = ez.sets.Box(-0.3, 0.5, dim=2), ez.sets.Box(0.0, 1.0, dim=2)
DELTAS = (0.9, 0.5, 0.1, 0.01, 1e-6)


def rows(s, seed):
    return ez.Samples(np.random.default_rng(seed).uniform(size=(s, 2)) ** 2, support=UNIT)


@functools.cache
def solved(where):
    """A run for every kind of structure."""
    step, seen = ez.ForwardBackward(step=0.3), rows(50, 1)
    if where == "affine":
        return ez.solve(ez.Inclusion(BOX, lambda x, xi: H @ x - xi), seen, step, iterations=10)
    if where == "known":
        return ez.solve(ez.Inclusion(BOX, lambda x: H @ x - 0.3), method=step, iterations=10)
    if where == "unbounded":
        return ez.solve(ez.Inclusion(BOX, lambda x, xi: H @ x - xi), ez.Samples(seen.values), step, iterations=10)
    if where == "loss":
        return ez.solve(ez.Minimization(lambda x, xi: 0.5 * jnp.sum((x - xi) ** 2), BOX), seen, step, iterations=10)
    declared = ez.declare(mu=1.0, kappa=2.0, R=1.5)
    problem = ez.VariationalInequality(lambda x, xi: x + jnp.tanh(x - xi), BOX, declared=declared)
    return ez.solve(problem, rows(80, 2), step, iterations=10, holdout=0.4)


# Every public kind, and where it applies. A new one must be entered here.
KINDS = {
    "known": (Known(), {"known"}),
    "as published, replacement": (UniformStability(), {"affine", "general"}),
    "as published, removal": (UniformStability("removal"), {"affine", "general"}),
    "repaired": (RepairedStability(), {"affine", "general"}),
    "vector stability": (VectorStability(), {"affine", "general"}),
    "mean deviation": (MeanDeviation(), {"affine"}),
    "certified piece": (CertifiedPiece(), {"affine"}),
    "mean deviation, box": (MeanDeviation(Betting()), {"affine"}),
    "the noise at the truth": (AtTheTruth(), {"affine", "general"}),
    "hold-out": (HoldOut(), {"general"}),
    "anytime": (Anytime(), {"affine", "general"}),
    "dependent, β": (Dependent(beta=[0.0]), {"affine"}),
    "dependent, φ": (Dependent(phi=0.2), {"affine"}),
    "prequential": (Prequential(), {"affine"}),
    "normal approximation": (Asymptotic(), {"affine", "general", "unbounded"}),
    "bootstrap": (Bootstrap(replications=20), {"affine", "general", "unbounded"}),
    "multiple replications": (MultipleReplications(groups=5), {"loss"}),
    "two replications": (TwoReplications(), {"loss"}),
    "bagging": (Bagging(bags=20), {"loss"}),
    "tightest": (Tightest([MeanDeviation(), VectorStability(), HoldOut()]), {"affine", "general"}),
}
KINDS = {name: (kind, places | {"loss"} if "affine" in places else places) for name, (kind, places) in KINDS.items()}
WORLDS = ("affine", "general", "known", "unbounded", "loss")
USES = [(name, where) for name, (_, places) in KINDS.items() for where in WORLDS if where in places]
EXACTLY = {"mean deviation", "mean deviation, box", "tightest"}  # where nothing is uncertain these say just that
REFUSALS = [
    (name, where)
    for name, (_, places) in KINDS.items()
    for where in WORLDS
    if where not in places and not (where == "known" and name in EXACTLY)
]


def test_every_kind_is_in_this_suite():
    public = {one for one in vars(certificates).values() if isinstance(one, type) and issubclass(one, Kind)}
    labelled = {
        certificates.MarkovChain
    }  # which takes a label of every sample: tests/certificates/test_markov_chain.py
    assert public - {Kind} == {type(kind) for kind, _ in KINDS.values()} | labelled


@pytest.mark.some(4)
@pytest.mark.parametrize(("name", "where"), USES)
def test_a_smaller_delta_gives_no_smaller_epsilon(name, where):
    found = [ez.certify(solved(where), delta, KINDS[name][0]) for delta in DELTAS]
    assert all(math.isfinite(one.epsilon) for one in found), found[-1].reason
    for loose, sure in itertools.pairwise(found):
        assert sure.epsilon >= loose.epsilon
        assert sure.distance >= loose.distance


@pytest.mark.parametrize(("name", "where"), USES)
def test_deterministic(name, where):
    first, second = (ez.certify(solved(where), 0.05, KINDS[name][0]) for _ in range(2))
    assert first.to_json() == second.to_json()
    (alone,) = ez.certify_many([solved(where)], 0.05, KINDS[name][0])
    assert alone.to_json() == first.to_json()


@pytest.mark.parametrize(("name", "where"), USES)
def test_the_record_is_strict_and_holds_up(name, where):
    solution = solved(where)
    text = ez.certify(solution, 0.05, KINDS[name][0]).to_json()
    json.loads(text, parse_constant=pytest.fail)
    data = rows(80, 2) if solution.holdout is not None else solution.samples
    found = ez.verify(text, solution.problem, data)
    assert found, str(found)


@pytest.mark.parametrize(("name", "where"), USES)
def test_what_it_leans_on_is_said(name, where):
    found = ez.certify(solved(where), 0.05, KINDS[name][0])
    assert found.verdict in ("guaranteed", "conditional", "heuristic")
    assert (found.verdict == "guaranteed") == (where == "known")
    assert found.epsilon >= found.terms.get("empirical", 0.0) - 1e-12
    assert len(found.by) > 5
    assert len(found.reason) > 5
    if solved(where).samples is not None:
        assert any("samples" in leaning.what for leaning in found.leans_on)
    for word in ("residual", "by", "leans on"):
        assert word in str(found)


@pytest.mark.parametrize(("name", "where"), REFUSALS)
def test_refused_means_infinite_and_a_reason(name, where):
    found = ez.certify(solved(where), 0.05, KINDS[name][0])
    assert found.verdict == "refused"
    assert (found.epsilon, found.distance, found.relative_distance) == (math.inf, None, None)
    assert (found.exploitability, found.cost_gap) == (None, None)
    assert len(found.reason.split()) > 3
    assert found.reason in str(found)
    json.loads(found.to_json(), parse_constant=pytest.fail)


@pytest.mark.parametrize("name", sorted(EXACTLY))
def test_without_samples_nothing_is_added(name):
    found = ez.certify(solved("known"), 0.05, KINDS[name][0])
    assert found.epsilon == pytest.approx(solved("known").residual, rel=1e-9)


# -- confidence sets for a mean --------------------------------------------------------------------------------------

BOUNDS = {
    "empirical Bernstein": EmpiricalBernstein(),
    "empirical Bernstein, anytime": EmpiricalBernstein(anytime=True),
    "betting": Betting(),
    "betting, anytime": Betting(anytime=True),
    "Bernstein": Bernstein(),
    "Bernstein, variance declared": Bernstein(variance=0.3),
    "Hoeffding": Hoeffding(),
    "stitched": Stitched(),
    "McDiarmid": McDiarmid(),
    "sub-Gaussian": SubGaussian(0.5),
    "median of means": MedianOfMeans(0.6),
}
X = np.random.default_rng(3).beta(0.6, 1.4, size=(5, 24, 3))
REGION = Region.box(np.zeros(3), np.ones(3))


def test_every_bound_is_in_this_suite():
    public = {one for one in vars(certificates).values() if isinstance(one, type) and issubclass(one, MeanBound)}
    assert public - {MeanBound} == {type(bound) for bound in BOUNDS.values()}


def reach(found):
    return found.norm_from(found.centre)


@pytest.mark.parametrize("name", BOUNDS)
def test_a_smaller_delta_gives_no_shorter_radius(name):
    lengths = [reach(BOUNDS[name].around(X, REGION, delta)) for delta in DELTAS]
    for loose, sure in itertools.pairwise(lengths):
        assert np.all(sure >= loose * (1 - 1e-9))


@pytest.mark.parametrize("name", BOUNDS)
def test_trials_do_not_know_of_each_other(name):
    order = np.array([3, 1, 4, 0, 2])
    straight, shuffled = (BOUNDS[name].around(data, REGION, 0.1) for data in (X, X[order]))
    np.testing.assert_allclose(shuffled.centre, straight.centre[order], rtol=1e-10)
    np.testing.assert_allclose(shuffled.radius, straight.radius[order], rtol=1e-10)
    alone = BOUNDS[name].around(X[2], REGION, 0.1)
    np.testing.assert_allclose(alone.centre, straight.centre[2], rtol=1e-6)
    np.testing.assert_allclose(alone.radius, straight.radius[2], rtol=1e-6)


def scaled(bound, a):
    """The same bound in other units: what is declared of the tails is scaled along."""
    if isinstance(bound, SubGaussian | MedianOfMeans):
        return type(bound)(bound.sigma * abs(a))
    return Bernstein(variance=bound.variance * a**2) if isinstance(bound, Bernstein) and bound.variance else bound


@pytest.mark.parametrize(("a", "b"), [(1.0, 7.0), (250.0, 0.0), (1e-3, -2.0), (-3.0, 1.0)])
@pytest.mark.parametrize("name", BOUNDS)
def test_units_and_origin_do_not_matter(name, a, b):
    moved = Region.box(*np.sort([a * np.zeros(3) + b, a * np.ones(3) + b], axis=0))
    before = BOUNDS[name].around(X, REGION, 0.1)
    after = scaled(BOUNDS[name], a).around(a * X + b, moved, 0.1)
    np.testing.assert_allclose(after.radius, abs(a) * before.radius, rtol=2e-5)
    np.testing.assert_allclose(after.centre, a * before.centre + b, rtol=2e-5, atol=2e-5 * abs(a))


@pytest.mark.parametrize("name", BOUNDS)
def test_a_promised_radius_is_kept(name):
    bound = BOUNDS[name]
    promised = bound.radius(24, 3, REGION, 0.1)
    if promised is None:
        assert isinstance(bound, EmpiricalBernstein | Betting | Bernstein | MedianOfMeans)
    else:
        assert np.all(reach(bound.around(X, REGION, 0.1)) <= promised * (1 + 1e-4))


@pytest.mark.parametrize("name", BOUNDS)
def test_a_set_holds_its_centre_and_its_support_function_is_right(name):
    found = BOUNDS[name].around(X, REGION, 0.1)
    assert np.all(found.contains(found.centre))
    direction = np.array([0.3, -2.0, 0.5])
    assert np.all(found.support(direction) >= found.centre @ direction)
    assert np.all(found.support(direction) + found.support(-direction) >= 0)
