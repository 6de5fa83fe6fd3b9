"""Samples along a Markov chain: how fast it forgets is bounded from its path, and the bound holds."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import epszero as ez
from epszero.certificates import Dependent, MarkovChain
from epszero.certificates.markov_chain import (
    SHARE,
    AlongAChain,
    contraction,
    forgetting,
    second_order,
    summed,
    transitions,
)
from epszero.certificates.mean import Region

STICKY = np.array([[0.8, 0.2], [0.3, 0.7]])
THREE = np.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.7, 0.0, 0.3]])  # τ(P) = 1, τ(P²) < 1
FAST = np.full((4, 4), 0.25)
UNIT = ez.sets.Box(0.0, 1.0, dim=2)
PROBLEM = ez.Inclusion(ez.sets.Box(-5.0, 5.0, dim=2), lambda x, xi: x - xi)


def stationary(P):
    values, vectors = np.linalg.eig(P.T)
    pi = np.real(vectors[:, np.argmax(np.real(values))])
    return pi / pi.sum()


def paths(P, s, trials, rng, start=None):
    """(trials, s) states; from the stationary law, or from one state."""
    steps = np.cumsum(P, axis=1)
    now = rng.choice(len(P), size=trials, p=stationary(P)) if start is None else np.full(trials, start)
    found = [now]
    for _ in range(s - 1):
        now = (rng.random((trials, 1)) > steps[now]).sum(axis=1).clip(max=len(P) - 1)
        found.append(now)
    return np.stack(found, axis=1)


def exact(P, powers=3000):
    power, total, own = np.eye(len(P)), 0.0, 1.0
    for _ in range(powers):
        own = contraction(power)
        total += own
        if own < 1e-12:
            break
        power = power @ P
    return total


def rows_of(path, rng, middle):
    """ξ of a law that the label chooses, in the unit square."""
    return np.clip(middle[path] + 0.1 * rng.uniform(-1, 1, size=(len(path), 2)), 0, 1)


def solved(path, seed=0, **settings):
    rng = np.random.default_rng(seed)
    middle = np.linspace(0.1, 0.9, path.max() + 1)[:, None] * [1.0, 0.5] + 0.1
    return ez.solve(PROBLEM, ez.Samples(rows_of(path, rng, middle), support=UNIT), **settings)


# -- the mathematics ---------------------------------------------------------------------------------------------------


def test_the_contraction_is_the_largest_distance_of_rows():
    rng = np.random.default_rng(0)
    for d in (1, 2, 5):
        P = rng.dirichlet(np.ones(d), size=d)
        pairs = [np.abs(P[i] - P[j]).sum() / 2 for i, j in itertools.product(range(d), repeat=2)]
        assert contraction(P) == pytest.approx(max(pairs))


@pytest.mark.parametrize("P", [STICKY, THREE, FAST], ids=["sticky", "three", "fast"])
def test_without_error_the_sum_is_nearly_exact(P):
    assert exact(P) - 1e-9 <= summed(P, 0.0) <= 1.25 * exact(P) + 1e-9


def test_every_matrix_within_r_has_a_smaller_sum():
    """Rows moved by r in total variation, towards what forgets most slowly: their own state, or at random."""
    rng = np.random.default_rng(1)
    for P, r in itertools.product((STICKY, THREE, FAST), (0.01, 0.05)):
        bound = summed(P, r)
        if not math.isfinite(bound):
            continue
        d = len(P)
        for trial in range(30):
            targets = np.eye(d) if trial == 0 else rng.dirichlet(np.full(d, 0.1), size=d)
            apart = np.abs(targets - P).sum(axis=1, keepdims=True) / 2
            Q = P + np.minimum(r / np.maximum(apart, 1e-12), 1.0) * (targets - P)
            assert exact(Q, 1500) <= bound + 1e-9


@pytest.mark.parametrize(("P", "s"), [(STICKY, 300), (THREE, 2000)], ids=["sticky", "three"])
def test_the_sum_is_below_its_bound_and_a_twin_without_radii_is_convicted(P, s):
    delta, trials, rng, true = 0.05, 400, np.random.default_rng(2), exact(P)
    found = [forgetting(path, len(P), delta) for path in paths(P, s, trials, rng)]
    plain = [
        summed(T / T.sum(axis=1, keepdims=True), 0.0)
        for T in (transitions(p, len(P)) for p in paths(P, s, trials, rng))
    ]
    assert np.mean(np.array(found) < true) <= delta
    assert np.mean(np.array(plain) < true) > 4 * delta


@pytest.mark.parametrize("start", [None, 1], ids=["stationary", "from one state"])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_the_mean_is_within_the_radius(delta, start):
    """A chain that stays long, features at opposite corners: the hardest for R."""
    P, s, trials, rng = np.array([[0.95, 0.05], [0.05, 0.95]]), 600, 2000, np.random.default_rng(3)
    total = exact(P)
    means = paths(P, s, trials, rng, start).mean(axis=1)
    radius = AlongAChain(total).radius(s, 1, Region.of(ez.sets.Box(0.0, 1.0, dim=1), 1), delta)
    assert np.mean(np.abs(means - 0.5) > radius) <= delta
    independent = AlongAChain(1.0).radius(s, 1, Region.of(ez.sets.Box(0.0, 1.0, dim=1), 1), delta)
    assert np.mean(np.abs(means - 0.5) > independent) > delta  # the twin that takes them for independent


# -- the certificate ---------------------------------------------------------------------------------------------------


def test_a_certificate_and_what_it_leans_on():
    path = paths(STICKY, 3000, 1, np.random.default_rng(4))[0]
    solution = solved(path)
    words = ["low" if one == 0 else "high" for one in path]
    by_words, by_numbers = (ez.certify(solution, 0.05, MarkovChain(labels)) for labels in (words, path))
    assert by_words.epsilon == pytest.approx(by_numbers.epsilon)
    assert by_words.verdict == "conditional"
    assert by_words.terms["states"] == 2
    assert exact(STICKY) <= by_words.terms["forgetting"] < 2 * exact(STICKY)
    assert by_words.terms["delta_left"] == pytest.approx((1 - SHARE) * 0.05)
    assert any("Markov chain" in one.what and one.provenance == "declared" for one in by_words.leans_on)
    diameter = math.sqrt(2.0)
    expected = diameter * by_words.terms["forgetting"] * (math.sqrt(2 * math.log(2 / 0.0375) / 3000) + 1 / 3000)
    assert by_words.terms["deviation"] == pytest.approx(expected, rel=1e-8)
    assert ez.certify(solution).verdict == "refused"
    declared = ez.certify(solution, 0.05, Dependent(phi=exact(STICKY) - 1))
    assert by_words.epsilon < 1.5 * declared.epsilon


def test_records_and_verification():
    path = paths(STICKY, 400, 1, np.random.default_rng(5))[0]
    solution = solved(path)
    certificate = ez.certify(solution, 0.1, MarkovChain(path))
    again = ez.Certificate.from_json(certificate.to_json())
    assert again.epsilon == certificate.epsilon
    assert isinstance(again.using, MarkovChain)
    assert again.using.labels == tuple(path.tolist())
    assert ez.verify(certificate.to_json(), PROBLEM, solution.samples)


@pytest.mark.long
def test_whole_certificates_hold():
    trials, s, delta, missed, given = 150, 400, 0.3, 0, 0
    middle = np.linspace(0.1, 0.9, 2)[:, None] * [1.0, 0.5] + 0.1
    truth = stationary(STICKY) @ middle
    for seed, path in enumerate(paths(STICKY, s, trials, np.random.default_rng(6))):
        solution = solved(path, seed)
        found = ez.certify(solution, delta, MarkovChain(path))
        given += found.verdict == "conditional"
        missed += np.linalg.norm(solution.z + solution.x - truth) > found.epsilon
    assert given > 0.9 * trials
    assert missed <= delta * trials


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_paths_that_contradict_the_chain():
    rng = np.random.default_rng(7)
    turns = np.repeat(np.arange(400) % 2, 2)  # a label stays exactly twice: the last two decide
    assert second_order(turns) < 1e-10
    assert second_order(paths(STICKY, 2000, 1, rng)[0]) > 1e-3
    assert "more than the last one" in ez.certify(solved(turns), using=MarkovChain(turns)).reason
    slow = np.cumsum(rng.normal(size=800))
    rows = 0.5 + 0.4 * slow[:, None] / np.abs(slow).max() * [1.0, 0.5]
    wandering = ez.solve(PROBLEM, ez.Samples(rows, support=UNIT))
    found = ez.certify(wandering, using=MarkovChain(rng.integers(2, size=800)))
    assert "beyond what their labels say" in found.reason
    assert found.obstacle == "the samples are not independent"


def test_false_alarms_are_rare():
    found = [second_order(path) for path in paths(THREE, 500, 300, np.random.default_rng(8))]
    assert np.mean(np.array(found) < 0.05) < 0.12
    assert min(found) > 1e-5


def test_a_path_that_tells_too_little():
    path = paths(STICKY, 3000, 1, np.random.default_rng(9))[0]
    assert "left 0 times" in ez.certify(solved(path), using=MarkovChain(path, states=3)).reason
    assert "forgets" in ez.certify(solved(path[:20]), using=MarkovChain(path[:20])).reason
    once = np.zeros(200, dtype=int)
    alone = ez.certify(solved(once), using=MarkovChain(once, states=1))
    assert alone.terms["forgetting"] == 1.0


def test_a_path_that_stays_in_one_state_says_nothing_of_the_others():
    """A chain that is rarely left: most paths of 50 know one state of two, and nothing of the mean."""
    rare, rng = np.array([[0.99, 0.01], [0.01, 0.99]]), np.random.default_rng(10)
    alike = [path for path in paths(rare, 50, 20, rng, start=0) if not path.any()]
    assert len(alike) > 5
    found = ez.certify(solved(alike[0]), using=MarkovChain(alike[0]))
    assert found.verdict == "refused"
    assert "states=" in found.reason


def test_how_many_states_there_are_is_said_to_be_declared():
    path = paths(STICKY, 500, 1, np.random.default_rng(9))[0]
    assert "no more than 2 states, as many as occur" in str(ez.certify(solved(path), using=MarkovChain(path)))
    assert "no more than 2 states, by states=" in str(ez.certify(solved(path), using=MarkovChain(path, states=2)))


@pytest.mark.parametrize(
    "of", [list, np.array, pd.Series, pd.Categorical, lambda labels: np.array(labels, dtype=object)]
)
def test_labels_may_be_columns_of_tables(of):
    words = ["calm", "storm", "calm"]
    assert MarkovChain(of(words)).labels == tuple(words)
    assert MarkovChain(of([2, 0, 2])).labels == (2, 0, 2)


def test_wrong_settings():
    for labels in ([], [[0, 1]], [[0], [0, 1]], [0.5, 1.0], ["a", np.nan], [1, "a"], "ab", None):
        with pytest.raises(ez.InputError, match="labels"):
            MarkovChain(labels)
    with pytest.raises(ez.InputError, match="labels"):
        MarkovChain(range(500))
    with pytest.raises(ez.InputError, match="states"):
        MarkovChain([0, 1, 2], states=2)
    with pytest.raises(ez.InputError, match="support"):
        MarkovChain([0, 1], support="estimated")
    path = paths(STICKY, 50, 1, np.random.default_rng(1))[0]
    with pytest.raises(ez.InputError, match="labels"):
        ez.certify(solved(path), using=MarkovChain(path[:-1]))
    assert "holdout" in ez.certify(solved(path, 1, holdout=0.5), using=MarkovChain(path)).reason
