"""The cost gap, probably: several replications, two of them, and bags; against formulas by hand and the truth."""

import itertools
import math

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import epszero as ez
from epszero.certificates import Bagging, MultipleReplications, Tightest, TwoReplications
from epszero.certificates.bagging import jackknife
from epszero.certificates.replications import parts

BOX = ez.sets.Box(-5.0, 5.0, dim=2)
SQUARES = ez.Minimization(lambda x, xi: 0.5 * jnp.sum((x - xi) ** 2), BOX)  # min over a group: half its variance
KINDS = [MultipleReplications(groups=6), TwoReplications(), Bagging(bags=25)]


def rows(s, seed):
    return ez.Samples(np.random.default_rng(seed).uniform(size=(s, 2)))


def by_hand(x, groups):
    """Of SQUARES: f(x, ξ) − f(mean of the group, ξ) for every row of every group."""
    return np.array([0.5 * np.sum((x - X) ** 2 - (X.mean(axis=0) - X) ** 2, axis=1) for X in groups])


@pytest.mark.some(2)
@pytest.mark.parametrize("kept", [True, False])
def test_the_published_formulas(kept):
    solution = ez.solve(SQUARES, rows(120, 1), holdout=0.5 if kept else None)
    samples = solution.holdout if kept else solution.samples
    assert isinstance(samples, ez.Samples)
    X = np.asarray(samples.values)
    found = ez.certify(solution, 0.1, MultipleReplications(groups=6, seed=3))
    each = by_hand(solution.x, X[parts(samples, 6, 3)]).mean(axis=1)
    bound = each.mean() + stats.t.ppf(0.9, 5) * each.std(ddof=1) / math.sqrt(6)
    assert found.cost_gap == pytest.approx(bound, rel=1e-6)
    found = ez.certify(solution, 0.1, TwoReplications(seed=3))
    both = by_hand(solution.x, X[parts(samples, 2, 3)])
    pooled = both.var(axis=1, ddof=1).mean()
    bound = both.mean() + stats.norm.ppf(0.9) * math.sqrt(pooled / both.size)
    assert found.cost_gap == pytest.approx(bound, rel=1e-6)
    assert ("same samples" in found.notes["cost_gap"]) != kept
    assert any("too small" in one.evidence for one in found.leans_on) != kept


@pytest.mark.long
def test_the_regularizer_counts():
    lasso = ez.Minimization(lambda x, xi: 0.5 * jnp.sum((x - xi) ** 2), ez.functions.L1(0.3))
    solution = ez.solve(lasso, rows(40, 2), holdout=0.5, x0=np.zeros(2))
    X = np.asarray(solution.holdout.values)[parts(solution.holdout, 2, 0)]

    def cost(x, Y):
        return 0.5 * np.mean(np.sum((x - Y) ** 2, axis=1)) + 0.3 * np.abs(x).sum()

    best = [np.sign(Y.mean(axis=0)) * np.maximum(np.abs(Y.mean(axis=0)) - 0.3, 0) for Y in X]
    expected = np.mean([cost(solution.x, Y) - cost(x, Y) for x, Y in zip(best, X, strict=True)])
    assert ez.certify(solution, 0.1, TwoReplications()).terms["gap estimate"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("replacement", [True, False])
def test_the_jackknife_knows_the_variance_of_a_mean(replacement):
    n, k, rng = 30, 6, np.random.default_rng(0)
    values = rng.exponential(size=n)
    drawn = np.stack([rng.choice(n, size=k, replace=replacement) for _ in range(40_000)])
    assert jackknife(values[drawn].mean(axis=1), drawn, n, replacement) == pytest.approx(
        values.var(ddof=1) / n, rel=0.06
    )
    assert jackknife(np.ones(40_000), drawn, n, replacement) == 0.0


def test_the_jackknife_over_all_bags_is_exact():
    values = np.array([0.3, 1.0, -2.0, 0.7, 0.1])
    drawn = np.array(list(itertools.combinations(range(5), 2)))
    each, (n, k) = values[drawn].mean(axis=1), (5, 2)
    C = np.array([np.mean(((drawn == i).sum(axis=1) - k / n) * (each - each.mean())) for i in range(n)])
    assert (n - 1) * n / (n - k) ** 2 * C @ C == pytest.approx(values.var(ddof=1) / n)
    taken = (n - 1) * n / (n - k) ** 2 * k * (1 - k / n) * each.var() / len(each)
    assert jackknife(each, drawn, n, False) == pytest.approx(max(values.var(ddof=1) / n - taken, 0.0))


@pytest.mark.long
def test_a_loss_with_kinks_and_a_known_truth():
    """Newsvendor with uniform demand: the cost above the least is (x − q)²/2 at demand uniform in [0, 1]."""
    news = ez.Minimization(
        lambda x, xi: jnp.sum(jnp.maximum(0.75 * (xi - x), 0.25 * (x - xi))), ez.sets.Box(0, 1, dim=1)
    )
    samples = ez.Samples(np.random.default_rng(5).uniform(size=(600, 1)))
    solution = ez.solve(news, samples, holdout=0.5)
    gap = (float(solution.x[0]) - 0.75) ** 2 / 2
    for kind in (MultipleReplications(groups=10), TwoReplications(), Bagging(bags=40)):
        found = ez.certify(solution, 0.05, kind)
        assert found.verdict == "heuristic"
        assert gap <= found.cost_gap < 0.05, kind.title


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_always_heuristic_and_never_among_the_sure(kind):
    found = ez.certify(ez.solve(SQUARES, rows(60, 1)), using=kind)
    assert found.verdict == "heuristic"
    assert found.cost_gap > 0
    assert kind.title in found.by
    with pytest.raises(ez.InputError, match="guess"):
        Tightest([kind, MultipleReplications()])


@pytest.mark.some(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.title)
def test_what_is_refused(kind):
    few = ez.certify(ez.solve(SQUARES, rows(3, 1)), using=kind)
    assert (few.verdict, few.epsilon) == ("refused", math.inf)
    assert "too few" in few.reason
    game = ez.certify(ez.solve(ez.Inclusion(BOX, lambda x, xi: x - xi), rows(60, 1)), using=kind)
    assert "minimisation" in game.reason
    hills = ez.Minimization(lambda x, xi: jnp.sum(jnp.cos(3 * x) + 0.1 * (x - xi) ** 2), BOX)
    with pytest.warns(ez.ConvexityWarning):
        bent = ez.solve(hills, rows(60, 1))
    assert "convex" in ez.certify(bent, using=kind).reason

    class Prox:
        def resolvent(self, v, step):
            return v / (1 + step)

    unknown = ez.Minimization(lambda x, xi: 0.5 * jnp.sum((x - xi) ** 2), Prox())
    solution = ez.solve(unknown, rows(60, 1), x0=np.zeros(2))
    assert "resolvent alone" in ez.certify(solution, using=kind).reason


def test_a_bag_of_all_samples_is_refused():
    assert "smaller size" in ez.certify(ez.solve(SQUARES, rows(20, 1)), using=Bagging(20, size=20)).reason


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (MultipleReplications, {"groups": 1}),
        (MultipleReplications, {"seed": -1}),
        (TwoReplications, {"seed": 0.5}),
        (Bagging, {"bags": 3}),
        (Bagging, {"size": 1}),
        (Bagging, {"replacement": "no"}),
    ],
)
def test_wrong_settings(kind, settings):
    with pytest.raises(ez.InputError, match=next(iter(settings))):
        kind(**settings)


@pytest.mark.long
def test_on_a_kind_law_they_cover():
    """Upper bounds whose mean lies above the truth: misses at most nominal, and counting error."""
    trials, mean = 200, np.array([0.5, 0.5])
    for kind in (MultipleReplications(groups=20), TwoReplications(), Bagging(bags=100)):
        missed = 0
        for seed in range(trials):
            solution = ez.solve(SQUARES, rows(400, seed), holdout=0.5)
            gap = 0.5 * float(np.sum((solution.x - mean) ** 2))
            missed += gap > ez.certify(solution, 0.1, kind).cost_gap
        assert missed / trials <= 0.1 + 3 * math.sqrt(0.09 / trials), kind.title
