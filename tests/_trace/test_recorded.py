"""Functions with one skeleton share programs, so nothing but numbers may differ between them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epszero._trace.recorded import recorded
from epszero.oracles import Opaque
from epszero.oracles.traced import Traced, traced

X = np.linspace(-1.0, 2.0, 6).reshape(2, 3)


def skeleton(function, *examples):
    with jax.enable_x64(True):
        found = recorded(function, *examples)
    return None if found is None else (found.skeleton, found.starts, found.slots)


@jax.jit
def called(function, *arguments):
    return function(*arguments)


def same(function, *arguments):
    """What the traced function gives inside of a compiled program, against the function itself."""
    with jax.enable_x64(True):
        np.testing.assert_allclose(
            np.asarray(called(traced(Opaque(function), *arguments), *arguments)),
            np.asarray(function(*arguments)),
            rtol=1e-13,
            atol=1e-13,
        )


KINDS = {
    "literal": lambda a, k: lambda x: jnp.sum(a * x**2 + a),
    "power": lambda a, k: lambda x: jnp.sum(x ** (2 + k)),
    "axis": lambda a, k: lambda x: jnp.sum(jnp.cumsum(x, axis=k % 2) * a),
    "index": lambda a, k: lambda x: x[k % 2, k % 3] * a,
    "slice": lambda a, k: lambda x: jnp.sum(x[:, k % 2 : k % 2 + 2] ** 2) * a,
    "shape": lambda a, k: lambda x: jnp.sum(jnp.ones(k + 1) * a) * jnp.sum(x),
    "dtype": lambda a, k: lambda x: jnp.sum((x * a).astype([jnp.float32, jnp.float64][k % 2]).astype(float)),
    "comparison": lambda a, k: lambda x: jnp.sum(jnp.where([jnp.less, jnp.greater, jnp.equal][k % 3](x, a), x, a)),
    "branch": lambda a, k: lambda x: jnp.sum(x * a) if k % 2 else jnp.sum(x + a),
    "constant": lambda a, k: lambda x: jnp.sum(np.full((2, 3), a) @ x.T) * k,
    "gather": lambda a, k: lambda x: jnp.sum(x[np.array([0, k % 2]), np.array([k % 3, 1])]) * a,
    "order": lambda a, k: (lambda x: jnp.sum(a - x)) if k % 2 else (lambda x: jnp.sum(x - a)),
    "loop": lambda a, k: lambda x: jax.lax.fori_loop(0, k + 1, lambda i, s: s + a * jnp.sum(x) + i, 0.0),
    "choice": lambda a, k: lambda x: jax.lax.cond(x[0, 0] > a, lambda: jnp.sum(x), lambda: -k * jnp.sum(x)),
    "jax's own": lambda a, k: lambda x: jnp.sum([jax.nn.relu, jax.nn.softplus, jax.nn.silu][k % 3](a * x)),
    "whole number": lambda a, k: lambda x: jnp.sum(x * (jnp.arange(3) + k)) * a,
    "reduction": lambda a, k: lambda x: [jnp.max, jnp.min, jnp.prod][k % 3](x) * a,
    "jitted": lambda a, k: lambda x: x[0, 0] * jax.jit(lambda v: jnp.sum(v * a) + k)(x),
}


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    numbers=st.lists(st.tuples(st.sampled_from([0.5, -0.0, 1.5, 2.0]), st.integers(0, 5)), min_size=2, max_size=3),
)
def test_functions_that_differ_in_anything_give_their_own_answers(kind, numbers):
    for a, k in numbers:
        same(KINDS[kind](a, k), X)


DECIDING = ("power", "axis", "index", "slice", "shape", "dtype", "comparison", "branch", "order", "reduction")


@pytest.mark.parametrize("kind", DECIDING)
def test_what_decides_about_a_program_is_in_its_skeleton(kind):
    assert skeleton(KINDS[kind](1.5, 0), X) != skeleton(KINDS[kind](1.5, 1), X)


@pytest.mark.parametrize("kind", ["literal", "axis", "index", "constant", "order", "jitted", "jax's own"])
def test_numbers_are_not(kind):
    assert skeleton(KINDS[kind](1.5, 2), X) == skeleton(KINDS[kind](0.25, 2), X)


def test_shapes_and_nesting_of_arguments_count():
    def total(x):
        return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x))

    seen = [skeleton(total, x) for x in (np.zeros(2), np.zeros(3), [np.zeros(2)], {"a": np.zeros(2)}, np.zeros(2, int))]
    assert len(set(seen)) == len(seen)


def test_what_cannot_be_compared_stays_what_it_is():
    def calls_python(x):
        return jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), x.dtype), x, vmap_method="sequential")

    @jax.custom_jvp
    def by_hand(x):
        return jnp.sum(x)

    by_hand.defjvps(lambda t, ans, x: 2 * jnp.sum(t))
    for function in (calls_python, by_hand):
        assert skeleton(function, X) is None
        assert traced(Opaque(function), X) == Opaque(function)


def test_arrays_are_copied():
    held = np.ones(3)
    function = traced(Opaque(lambda x: jnp.sum(held * x)), np.zeros(3))
    held[:] = 5.0
    assert isinstance(function, Traced)
    assert float(function(np.ones(3))) == 3.0
