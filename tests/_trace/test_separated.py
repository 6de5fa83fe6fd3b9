"""Products of x and ξ taken apart: what comes out is the function itself, with as few features as there are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from epszero._points import entries
from epszero._trace import polynomials
from epszero._trace.features import recovered
from epszero._trace.separated import separated

N = 4
M = np.arange(16.0).reshape(N, N) / 10
X, XI = np.ones(N), np.ones(N + 1)


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


@jax.custom_jvp
def lying(x):  # its derivative says that it is constant
    return x**2


lying.defjvp(lambda primals, tangents: (lying(*primals), jnp.zeros_like(primals[0])))


PRODUCTS = {  # how many features there are in truth
    "least squares": (jax.grad(lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2), 10 + 4),
    "least squares as a sum": (jax.grad(lambda x, r: 0.5 * jnp.square(jnp.sum(r[1:] * x) - r[0])), 14),
    "as a power": (jax.grad(lambda x, r: 0.5 * jnp.power(r[1:] @ x - r[0], 2.0)), 14),
    "Markowitz": (jax.grad(lambda w, r: 5 * w @ jnp.outer(r[1:], r[1:]) @ w - r[1:] @ w), 10 + 4),
    "Markowitz as a square": (jax.grad(lambda w, r: 5 * (w @ r[1:]) ** 2 - r[1:] @ w), 14),
    "ridge": (jax.grad(lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2 + 0.3 * x @ x), 14),
    "curvature of rank one": (jax.grad(lambda x, r: 0.5 * (r[0] * jnp.sum(x)) ** 2 + x @ M @ x), 1),
    "a sum that is squared": (jax.grad(lambda x, r: (jnp.sum(r) * jnp.sum(x)) ** 2), 1),
    "a matrix times its transpose": (jax.grad(lambda x, r: 0.5 * jnp.sum((r[:4].reshape(2, 2) @ x[:2]) ** 2)), 3),
    "entries picked": (jax.grad(lambda x, r: (x[0] * r[0] - x[2] * r[1]) ** 2), 3),
    "picked by an array": (jax.grad(lambda x, r: (x[np.array([0, 2])] @ r[np.array([3, 3])]) ** 2), 1),
    "a quotient": (lambda x, r: r[0] * (x / r[1:]), 4),
    "cubic in x": (jax.grad(lambda x, r: (r[1] * x[0] + r[2] * x[1]) ** 4), 5),
    "nonlinear in x alone": (lambda x, r: r[0] * (jnp.tanh(x) * r[0] + jnp.abs(x) * r[1]), 2),
    "nonlinear in ξ alone": (lambda x, r: jnp.exp(r[0]) * (x * jnp.sin(r[1])) * r[2], 1),
    "shifted": (lambda x, r: (r[1:] - 1) * ((r[1:] + 2) @ x), 14),
    "running sums": (lambda x, r: r[0] * jnp.cumsum(r[0] * x), 1),
    "chosen by a constant": (lambda x, r: r[0] * jnp.where(M[0] > 0.1, r[0] * x, r[1] * x), 2),
    "mapped": (lambda x, r: r[0] * jax.vmap(lambda a, b: a * b)(x, r[1:]), 4),
    "jitted": (lambda x, r: r[0] * jax.jit(lambda a: a * r[0])(x), 1),
    "numbers of single precision": (lambda x, r: r[0] * (x * r[0]) * jnp.float32(0.1), 1),
}

TRAPS = {  # polynomials at some points only, or by their derivative only
    "a choice": lambda x, r: r[0] * jnp.where(x * r[1] > 0, x, 2 * x),
    "an absolute value": lambda x, r: r[0] * jnp.abs(x * r[0]),
    "the root of a square": lambda x, r: r[0] * jnp.sqrt((r[0] * x) ** 2),
    "a floor": lambda x, r: r[0] * (jnp.floor(x * r[0]) + r[0] * x),
    "a stopped gradient": jax.grad(lambda x, r: jnp.sum((r[0] * x) * jax.lax.stop_gradient(r[0] * x))),
    "a lie": lambda x, r: r[0] * lying(r[0] * x),
    "an index of x": lambda x, r: r[0] * r[jnp.clip(jnp.asarray(x, int), 0, 3)] * r[1],
    "an index of ξ": lambda x, r: r[0] * x[jnp.clip(jnp.asarray(r[:4], int), 0, 3)] * r[1],
    "half precision": lambda x, r: r[0] * (r[0] * x).astype(jnp.float16).astype(float),
    "a product of few digits": lambda x, r: r[0] * ((r[1:]).astype(jnp.float32) * x.astype(jnp.float32)),
    "whole numbers": lambda x, r: r[0] * (r[0] * x).astype(int),
    "a power that is no whole number": lambda x, r: r[0] * jnp.power(r[0] * x, 1.5),
    "a power of the data": lambda x, r: r[0] * (jnp.abs(x) * r[1]) ** r[2],
    "a sorted product": lambda x, r: r[0] * jnp.sort(r[0] * x),
    "a maximum": lambda x, r: r[0] * jnp.maximum(r[0] * x, 0.0),
    "a loop": lambda x, r: jax.lax.fori_loop(0, 3, lambda _, c: c * r[0], x),
    "a branch": lambda x, r: r[0] * jax.lax.cond(r[1] > 0, lambda: r[0] * x, lambda: x),
    "a high power": lambda x, r: (r[0] * x) ** 7 * r[0],
}


def far(f, seen, seed):
    """How far what is made of the features is from f, and from its mean at their mean, relatively."""

    @jax.jit
    def gaps(x, rows):
        values = jax.vmap(f, in_axes=(None, 0))(x, rows)
        features = jax.vmap(seen.features)(rows)
        found = jax.vmap(seen.joint, in_axes=(None, 0))(x, features)
        mean = seen.joint(x, [jnp.mean(one, axis=0) for one in features])
        size = 1 + jnp.abs(values).max()
        return jnp.abs(found - values).max() / size, jnp.abs(mean - values.mean(axis=0)).max() / size

    rng = np.random.default_rng(seed)
    return max(map(float, gaps(rng.normal(size=N), rng.normal(size=(7, N + 1)))))


@pytest.mark.some(4)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_taken_apart(name):
    f, many = PRODUCTS[name]
    seen = recovered(f, X, XI)
    assert seen is not None
    assert entries(jax.eval_shape(seen.features, XI)) == many
    assert seen.degree.v == 1
    assert far(f, seen, 0) < 1e-13


@pytest.mark.parametrize("name", TRAPS)
def test_what_is_no_product_is_left_alone(name):
    assert separated(TRAPS[name], X, XI) is None
    assert recovered(TRAPS[name], X, XI) is None


@pytest.mark.parametrize(("operation", "trap"), [("abs", "an absolute value"), ("floor", "a floor")])
def test_the_check_finds_a_rule_that_is_wrong(operation, trap, monkeypatch):
    monkeypatch.setitem(polynomials.ARITHMETIC, operation, lambda _, x: x)
    seen = separated(TRAPS[trap], X, XI)
    assert seen is not None
    assert far(TRAPS[trap], seen, 1) > 0.1


def test_what_is_additive_stays_so():
    seen = recovered(lambda x, r: M @ x + r[0] * r[1:] - jnp.outer(r[1:], r[1:])[0], X, XI)
    assert not seen.degree.mixed
    assert seen.degree.u == 1


def test_too_many_features_are_none():
    f = jax.grad(lambda x, r: 0.5 * (r[1:] @ x - r[0]) ** 2)
    assert recovered(f, np.ones(40), np.ones(41)) is None
    assert recovered(f, np.ones(30), np.ones(31)) is not None


def test_a_function_of_many_terms_is_given_up():
    assert separated(lambda x, r: jnp.cumsum(jnp.outer(x, x) @ x * jnp.sum(r) ** 4) * r[0], np.ones(50), XI) is None
    f = jax.grad(lambda x, r: jnp.sum((r.reshape(30, 100) @ x) ** 2))
    assert recovered(f, np.ones(100), np.ones(3000)) is None


def test_the_order_in_which_products_are_written_does_not_matter():
    def f(x, r):
        return jnp.stack([r[0] * (r[1] * x[0]) - r[1] * (x[0] * r[0]), r[2] * (x[1] * r[0]) + r[0] * (r[2] * x[0])])

    seen = recovered(f, X, XI)
    assert entries(jax.eval_shape(seen.features, XI)) == 1  # the first entry is 0, whatever ξ
