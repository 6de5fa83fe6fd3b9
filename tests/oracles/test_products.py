"""Everyday problems, written plainly: averaged once, solved as before, certified from all samples."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.oracles.features import FeatureMean
from epszero.oracles.sample_mean import SampleMean

N = 4
RNG = np.random.default_rng(0)
ROWS = RNG.uniform(-1, 1, (300, N + 1))
DATA = ez.Samples(ROWS, support=ez.sets.Box(-1.0, 1.0, dim=N + 1))
RETURNS = ez.Samples(0.1 + 0.1 * ROWS[:, :N], support=ez.sets.Box(0.0, 0.2, dim=N))
SKEW = np.triu(np.ones((N, N)), 1) - np.tril(np.ones((N, N)), -1)


@jax.custom_jvp
def hidden(value):
    """The same number, of which nothing can be seen."""
    return value


hidden.defjvp(lambda primals, tangents: (hidden(*primals), tangents[0]))


def squares(x, r):
    return 0.5 * (r[1:] @ x - r[0]) ** 2


def problems(see):
    """By name: the problem, its samples and how many features there are; `see` is applied to what random rows enter."""
    box = ez.sets.Box(-1.0, 1.0, dim=N)
    one = ez.sets.Box(-1.0, 1.0, dim=1)
    return {
        "least squares": (ez.Minimization(lambda x, r: see(squares(x, r)), box), DATA, 14),
        "lasso": (ez.Minimization(lambda x, r: see(squares(x, r)), ez.functions.L1(0.01)), DATA, 14),
        "ridge": (ez.Minimization(lambda x, r: see(squares(x, r)) + 0.1 * x @ x, ez.sets.Ball(2.0, dim=N)), DATA, 14),
        "Markowitz": (
            ez.Minimization(lambda w, r: see(5 * w @ jnp.outer(r, r) @ w - r @ w), ez.sets.Simplex(dim=N)),
            RETURNS,
            14,
        ),
        "a random quadratic": (
            ez.VariationalInequality(lambda x, r: see(jnp.outer(r, r) @ x) + SKEW @ x + x - r, box),
            RETURNS,
            14,
        ),
        "a game": (
            ez.Game(
                [
                    lambda x, r: see(0.5 * (r[0] * x[0][0] - r[1] * x[1][0]) ** 2) + x[0] @ x[0] - r[2] * x[0][0],
                    lambda x, r: see(0.5 * r[3] ** 2 * x[1] @ x[1]) + x[1] @ x[1] + r[0] * r[1] * x[0] @ x[1],
                ],
                [one, one],
            ),
            RETURNS,
            4,
        ),
        "many agents": (
            ez.AggregativeGame(
                lambda x, mean, r, p: see(jnp.exp(p["c"]) * (r[:2] @ x) ** 2) + x @ x + x @ mean * r[2],
                {"c": np.linspace(0.0, 1.0, 5)},
                ez.sets.Box(-1.0, 1.0, dim=2),
            ),
            RETURNS,
            4,
        ),
    }


PLAIN, HIDDEN = problems(lambda value: value), problems(hidden)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", PLAIN)
def test_the_average_over_features_is_that_over_samples(name):
    problem, samples, many = PLAIN[name]
    with jax.enable_x64(True):
        x = jax.tree.map(lambda leaf: np.linspace(-1, 1, np.size(leaf)).reshape(np.shape(leaf)), point(name))
        fast, slow = (one[name][0].oracle.average(samples.values, x)(x) for one in (PLAIN, HIDDEN))
        collapsed = problem.oracle.collapsed(samples.values, x)
    for found, wanted in zip(jax.tree.leaves(fast), jax.tree.leaves(slow), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
    assert [rows.shape for rows in collapsed.features] == [(len(samples), many)]


def point(name):
    return np.zeros(N) if name == "lasso" else PLAIN[name][0].start


@pytest.mark.parametrize("name", ["ridge", *(pytest.param(name, marks=pytest.mark.long) for name in PLAIN)])
def test_solved_from_features_as_from_samples_and_certified(name):
    problem, samples, _ = PLAIN[name]
    options = {"x0": np.zeros(N)} if name == "lasso" else {}
    solution = ez.solve(problem, samples, **options)
    slowly = ez.solve(HIDDEN[name][0], samples, **options)
    for found, wanted in zip(jax.tree.leaves(solution.x), jax.tree.leaves(slowly.x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-6)
    certificate = ez.certify(solution)
    assert np.isfinite(certificate.epsilon)
    assert certificate.verdict == "conditional"


def test_an_average_holds_no_samples():
    with jax.enable_x64(True):
        average = PLAIN["least squares"][0].oracle.average(ROWS, np.zeros(N))
        slow = HIDDEN["least squares"][0].oracle.average(ROWS, np.zeros(N))
        assert isinstance(average, FeatureMean)
        assert isinstance(slow, SampleMean)
        x = np.linspace(-1, 1, N)
        np.testing.assert_allclose(average(x), slow(x), rtol=1e-12)
    assert sum(np.size(leaf) for leaf in jax.tree.leaves(average)) < ROWS.size / 4


def test_the_audit_says_how_many_features_there_are():
    structure = ez.audit(PLAIN["ridge"][0], DATA, budget=0.01).structure
    assert str(structure).startswith("O(x, ξ) = H(ξ)x + h(ξ), affine in 14 features of ξ")
    assert structure.features == 14
    assert structure.in_xi == "affine in features"
