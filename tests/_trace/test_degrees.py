"""Degrees by tracing: "affine" must never be wrong, whatever the function is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epszero._trace.degrees import degrees

A = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [3.0, 0.0, 1.0]])
ONES = np.ones(3)


@jax.custom_jvp
def lying(x):  # its derivative says that it is constant
    return x**2


lying.defjvp(lambda primals, tangents: (lying(*primals), jnp.zeros_like(primals[0])))

KNOWN = {  # (degree in u at most what is claimed, in v, mixed)
    "affine": (lambda u, v: A @ u + 2 * v - 1, (1, 1, False)),
    "bilinear": (lambda u, v: u * v, (1, 1, True)),
    "noise in a nonlinear function": (lambda u, v: u + jnp.tanh(v), (1, 2, False)),
    "gradient of a quadratic": (
        lambda u, v: jax.grad(lambda y: 0.5 * y @ A @ y + v @ y + jnp.mean(y) ** 2)(u), (1, 1, False)),
    "mapped": (jax.vmap(lambda a, b: 2 * a + b), (1, 1, False)),
    "indexed": (lambda u, v: u[jnp.array([2, 1, 0])] + v[::-1], (1, 1, False)),
    "set": (lambda u, v: u.at[0].set(v[0]), (1, 1, False)),
    "sums": (lambda u, v: jnp.cumsum(u) + jnp.sum(v) / 3, (1, 1, False)),
    "chosen by a constant": (lambda u, v: jnp.where(A[0] > 0, u, v), (1, 1, False)),
    "jitted": (lambda u, v: jax.jit(lambda a: A @ a)(u) + v, (1, 1, False)),
}  # fmt: skip
FOOLERS = {  # derivative zero, constant or a lie, though the function is not affine
    "round": lambda u, v: u + jnp.round(v),
    "floor": lambda u, v: u + jnp.floor(v),
    "sign": lambda u, v: u + jnp.sign(v),
    "comparison": lambda u, v: u + (v > 0),
    "branch": lambda u, v: jnp.where(v > 0, u, 2 * u),
    "cond": lambda u, v: jax.lax.cond(v[0] > 0, lambda: u, lambda: -u),
    "stopped": lambda u, v: u + jax.lax.stop_gradient(v**2),
    "lying": lambda u, v: u + lying(v),
    "integer": lambda u, v: u + v.astype(int),
    "narrowed": lambda u, v: u + v.astype(jnp.float16),
    "sorted": lambda u, v: u + jnp.sort(v),
    "largest": lambda u, v: u + jnp.argmax(v),
    "absolute": lambda u, v: u + jnp.abs(v),
    "clipped": lambda u, v: u + jnp.clip(v, -1, 1),
    "scanned": lambda u, v: u + jax.lax.scan(lambda c, _: (c * c, None), v, None, length=2)[0],
    "looped": lambda u, v: u + jax.lax.fori_loop(0, 2, lambda _, c: c * c, v),
    "indexed by data": lambda u, v: u + jnp.asarray(A)[jnp.asarray(v[0], int)],
    "outer": lambda u, v: u + jnp.outer(v, v)[0],
    "power": lambda u, v: u + v**3 / v,
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_affine_is_seen(name):
    function, wanted = KNOWN[name]
    with jax.enable_x64(True):
        assert tuple(degrees(function, ONES, ONES)) == wanted


@pytest.mark.parametrize("name", FOOLERS)
def test_what_is_not_affine_is_not_taken_for_it(name):
    with jax.enable_x64(True):
        found = degrees(FOOLERS[name], ONES, ONES)
    assert found.v == 2


UNARY = [jnp.tanh, jnp.abs, jnp.round, jnp.sign, jnp.cumsum, jnp.square, lambda a: -a, lambda a: A @ a,
         lambda a: a[::-1], lambda a: a / 3, lambda a: jnp.sum(a) * ONES, lambda a: jnp.maximum(a, 0.3),
         jax.lax.stop_gradient, lying, lambda a: a.at[1].set(0.5), lambda a: jnp.concatenate([a[1:], a[:1]]),
         jnp.sort]  # fmt: skip
BINARY = [jnp.add, jnp.subtract, jnp.multiply, lambda a, b: a / (2 + b**2), jnp.maximum,
          lambda a, b: jnp.where(a > 0, a, b), lambda a, b: a * (b @ b), lambda a, b: jnp.where(A[0] > 0, a, b),
          lambda a, b: jnp.outer(a, b)[1]]  # fmt: skip

trees = st.recursive(
    st.sampled_from(["u", "v", "one"]),
    lambda inner: (
        st.tuples(st.integers(0, len(UNARY) - 1), inner) | st.tuples(st.integers(0, len(BINARY) - 1), inner, inner)
    ),
    max_leaves=8,
)


def built(tree, u, v):
    if isinstance(tree, str):
        return {"u": u, "v": v, "one": jnp.asarray(ONES)}[tree]
    if len(tree) == 2:
        return UNARY[tree[0]](built(tree[1], u, v))
    return BINARY[tree[0]](built(tree[1], u, v), built(tree[2], u, v))


@pytest.mark.long
@given(tree=trees, seed=st.integers(0, 10**6))
@settings(max_examples=300, deadline=None)
def test_no_expression_is_called_affine_that_is_not(tree, seed):
    rng = np.random.default_rng(seed)
    u, w, v, y = rng.normal(size=(4, 3)) * rng.choice([0.3, 3.0])

    def f(u, v):
        return np.asarray(built(tree, jnp.asarray(u), jnp.asarray(v)))

    with jax.enable_x64(True):
        found = degrees(lambda u, v: built(tree, u, v), ONES, ONES)
        size = 1e-8 * (
            1 + np.abs(f(u, v)).max() + np.abs(f(w, y)).max() + np.abs(f(u, y)).max() + np.abs(f(w, v)).max()
        )
        if found.v <= 1:
            assert np.abs(f(u, (v + y) / 2) - (f(u, v) + f(u, y)) / 2).max() <= size
        if found.v == 0:
            assert np.abs(f(u, v) - f(u, y)).max() <= size
        if found.u <= 1:
            assert np.abs(f((u + w) / 2, v) - (f(u, v) + f(w, v)) / 2).max() <= size
        if not found.mixed:
            assert np.abs(f(u, v) - f(w, v) - f(u, y) + f(w, y)).max() <= size
