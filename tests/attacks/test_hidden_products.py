"""Random programs in x and ξ: what is taken apart is the program, at every point, and its mean that of its features."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

from epszero._trace.features import recovered
from epszero._trace.separated import separated

M = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0], [3.0, 0.0, 1.0]])
ONES = np.ones(3)


@jax.custom_jvp
def lying(x):
    return x**2


lying.defjvp(lambda primals, tangents: (lying(*primals), jnp.zeros_like(primals[0])))

FAIR = [jnp.square, lambda a: -a, lambda a: M @ a, lambda a: a[::-1], lambda a: a / 3, lambda a: jnp.sum(a) * ONES,
        jnp.cumsum, lambda a: a**3, lambda a: jnp.power(a, 2.0), lambda a: a.at[1].set(0.5),
        lambda a: a.at[jnp.array([0, 0])].add(a[1:]), lambda a: jnp.stack([a, 2 * a], axis=1)[:, 1],
        lambda a: a * jnp.float32(0.3), jax.jit(lambda a: a * a), lambda a: jnp.where(M[0] > 0, a, 2 * a),
        lambda a: jax.lax.dynamic_update_slice(a, a[:1], (2,))]  # fmt: skip
TRAPS = [jnp.abs, jnp.floor, jnp.sign, jax.lax.stop_gradient, lying, jnp.sort, lambda a: jnp.sqrt(a * a),
         lambda a: jnp.maximum(a, 0.3), lambda a: jnp.where(a > 0, a, 2 * a), lambda a: jnp.power(a * a, 1.5),
         lambda a: a[jnp.clip(jnp.asarray(a, int), 0, 2)], lambda a: a.astype(jnp.float16).astype(float),
         lambda a: a.astype(int) * 1.0, lambda a: a.astype(jnp.float32).astype(float), jnp.tanh,
         lambda a: jax.lax.cond(a[0] > 0.1, lambda: 2 * a, lambda: a - 1)]  # fmt: skip
BINARY = [jnp.add, jnp.subtract, jnp.multiply, jnp.multiply, lambda a, b: a * (b @ b), lambda a, b: jnp.outer(a, b)[1],
          lambda a, b: (a @ b) * ONES, lambda a, b: a / (2 + b**2), lambda a, b: a.at[0].set(b[1])]  # fmt: skip
UNARY = [*FAIR, *TRAPS]

trees = st.recursive(
    st.sampled_from(["x", "xi", "xi"]),
    lambda inner: (
        st.tuples(st.integers(0, len(UNARY) - 1), inner) | st.tuples(st.integers(0, len(BINARY) - 1), inner, inner)
    ),
    max_leaves=6,
)


def built(tree, x, xi):
    if isinstance(tree, str):
        return jnp.asarray({"x": x, "xi": xi}[tree])
    if len(tree) == 2:
        return UNARY[tree[0]](built(tree[1], x, xi))
    return BINARY[tree[0]](built(tree[1], x, xi), built(tree[2], x, xi))


def wrong(f, seen, seed):
    """Whether f differs from what is made of its features, or its mean from that of their mean."""

    @jax.jit
    def both(x, rows):
        values = jax.vmap(f, in_axes=(None, 0))(x, rows)
        features = jax.vmap(seen.features)(rows)
        found = jax.vmap(seen.joint, in_axes=(None, 0))(x, features)
        return values, found, seen.joint(x, jax.tree.map(lambda one: jnp.mean(one, axis=0), features))

    rng = np.random.default_rng(seed)
    values, found, mean = map(np.asarray, both(rng.normal(size=3), rng.normal(size=(9, 3)) * rng.choice([0.3, 3.0])))
    size = 1e-9 * (1 + np.abs(values).max())
    return np.abs(found - values).max() > size or np.abs(mean - values.mean(axis=0)).max() > size


@pytest.mark.long
@budget(12)
@given(trees, st.integers(0, 10**6))
def test_what_is_taken_apart_is_the_program(tree, seed):
    def f(x, xi):
        return built((2, "xi", tree), x, xi) * 1.0

    with jax.enable_x64(True):
        for way in (separated, recovered):
            seen = way(f, ONES, ONES)
            if seen is not None and seen.features is not None:
                assert not wrong(f, seen, seed)


@budget(10)
@given(st.integers(0, len(TRAPS) - 1), st.integers(0, len(FAIR) - 1), st.sampled_from(["inside", "outside"]))
def test_a_trap_that_both_x_and_xi_enter_is_never_taken_apart(trap, fair, where):
    """Also where it is a polynomial at almost every point."""

    def f(x, xi):
        inside = xi * x + xi[::-1]
        mixed = TRAPS[trap](FAIR[fair](inside)) if where == "inside" else FAIR[fair](TRAPS[trap](inside))
        return xi * mixed + 1.0 * jnp.sum(TRAPS[trap](inside))

    with jax.enable_x64(True):
        assert separated(f, ONES, ONES) is None
