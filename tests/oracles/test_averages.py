"""Two ways to one average: collapsed to a feature mean, and summed over the samples in chunks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import epszero as ez
from epszero.oracles import Blocks, OwnData, as_oracle, sample_mean

pytestmark = pytest.mark.some(2)

N = 3


def G(x):
    return x**3 + jnp.flip(x)


def matrix(x):
    return jnp.outer(jnp.sin(x), x) + jnp.eye(N)


def features(xi):
    return xi**2 - 1.0


WAYS = {
    "additive": (ez.oracles.Additive(G), lambda x, xi: G(x) + xi),
    "additive in features": (ez.oracles.Additive(G, features), lambda x, xi: G(x) + features(xi)),
    "affine by a matrix": (ez.oracles.AffineInFeatures(G, matrix), lambda x, xi: G(x) + matrix(x) @ xi),
    "affine by a product": (
        ez.oracles.AffineInFeatures(G, lambda x, f: jnp.cos(x) * f, features),
        lambda x, xi: G(x) + jnp.cos(x) * features(xi),
    ),
}


def averaged(oracle, data, x):
    with jax.enable_x64(True):
        return np.asarray(oracle.average(data, x)(x))


@pytest.mark.parametrize("way", WAYS)
@settings(derandomize=True, deadline=None, max_examples=10)
@given(s=st.integers(1, 40), seed=st.integers(0, 10_000))
def test_collapsed_equals_summed_equals_a_plain_loop(way, s, seed):
    rng = np.random.default_rng(seed)
    data, x = rng.normal(size=(s, N)), rng.normal(size=N)
    structured, plain = WAYS[way]
    with jax.enable_x64(True):
        loop = np.mean([np.asarray(plain(x, xi)) for xi in data], axis=0)
    np.testing.assert_allclose(averaged(structured, data, x), loop, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(averaged(as_oracle("B", plain), data, x), loop, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("bytes_", [1, 100, 1000, 1 << 30])
def test_the_size_of_a_chunk_changes_nothing_but_rounding(monkeypatch, bytes_):
    monkeypatch.setattr(sample_mean, "CHUNK_BYTES", bytes_)
    rng = np.random.default_rng(0)
    data, x = rng.normal(size=(101, N)), rng.normal(size=N)
    oracle = as_oracle("B", lambda x, xi: jnp.exp(x * xi))
    np.testing.assert_allclose(averaged(oracle, data, x), np.exp(x * data).mean(axis=0), rtol=1e-13)


@pytest.mark.parametrize("way", WAYS)
def test_the_average_of_a_structured_oracle_does_not_hold_the_samples_declared_or_not(way):
    data = np.zeros((1000, N))
    with jax.enable_x64(True):
        averages = [as_oracle("B", oracle).average(data, np.zeros(N)) for oracle in WAYS[way]]
        summed = as_oracle("B", lambda x, xi: jnp.exp(x * xi)).average(data, np.zeros(N))
    sizes = [sum(np.size(leaf) for leaf in jax.tree.leaves(one)) for one in averages]
    assert all(N <= size <= 2 * N for size in sizes), sizes  # one mean, and the numbers of the function
    assert sum(leaf.size for leaf in jax.tree.leaves(summed)) == 1000 * N


def test_data_that_is_not_a_matrix():
    rng = np.random.default_rng(0)
    data = {"P": rng.normal(size=(50, N, N)), "q": rng.normal(size=(50, N))}
    x = rng.normal(size=N)
    expected = data["P"].mean(axis=0) @ x + data["q"].mean(axis=0)
    general = as_oracle("B", lambda x, xi: xi["P"] @ x + xi["q"])
    affine = ez.oracles.AffineInFeatures(jnp.zeros_like, lambda x, f: f["P"] @ x + f["q"])
    np.testing.assert_allclose(averaged(general, data, x), expected, rtol=1e-12)
    np.testing.assert_allclose(averaged(affine, data, x), expected, rtol=1e-12)


def test_blocks_average_each_agent_over_its_own_data():
    oracle = as_oracle("B", [lambda x, xi: x[0] + xi, lambda x, xi: x[0].sum() * x[1] - xi])
    assert isinstance(oracle, Blocks)
    own = OwnData([np.ones((4, 2)), 3 * np.ones((7, 3))])
    x = [np.array([1.0, 2.0]), np.ones(3)]
    with jax.enable_x64(True):
        first, second = oracle.average(own, x)(x)
    np.testing.assert_allclose(first, [2, 3])
    np.testing.assert_allclose(second, np.zeros(3), atol=1e-12)


def test_structure_is_named():
    assert as_oracle("B", lambda x: x).structure == "known"
    assert as_oracle("B", lambda x, xi: x).structure == "general"
    assert ez.oracles.Additive(G).structure == "additive"
    assert ez.oracles.AffineInFeatures(G, matrix).structure == "affine in features"


def test_a_default_argument_is_not_a_sample():
    assert not as_oracle("B", lambda x, scale=2.0: scale * x).uncertain


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (3.0, "must be a function"),
        ([], "no block"),
        (lambda: 0, "takes 0 arguments"),
        (lambda a, b, c: 0, "takes 3 arguments"),
    ],
)
def test_what_is_not_an_oracle_is_refused(given, words):
    with pytest.raises(ez.InputError, match=words):
        as_oracle("B", given)


def test_structured_oracles_refuse_what_is_not_a_function():
    with pytest.raises(ez.InputError, match="^G: must be a function"):
        ez.oracles.Additive(np.eye(2))
    with pytest.raises(ez.InputError, match="^C: must be a function"):
        ez.oracles.AffineInFeatures(G, np.eye(2))


def test_a_gradient_keeps_the_structure():
    loss = ez.oracles.AffineInFeatures(lambda x: jnp.sum(x**2), lambda x: x)  # Σx² + ⟨x, ξ⟩
    gradient = loss.transformed(jax.grad)
    assert gradient.structure == "affine in features"
    data = np.random.default_rng(0).normal(size=(10, N))
    x = np.ones(N)
    np.testing.assert_allclose(averaged(gradient, data, x), 2 * x + data.mean(axis=0), rtol=1e-13)
