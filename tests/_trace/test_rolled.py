"""Loops over strategies become one operation each, with the same values and derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from epszero._trace.recorded import recorded
from epszero._trace.rolled import Rolled
from epszero.oracles import Opaque
from epszero.oracles.traced import traced

N = 12
RNG = np.random.default_rng(0)
A = RNG.normal(size=(N, N))
POINT = [RNG.normal(size=3) for _ in range(N)]


def shared(x, own):
    return sum(own * x[j][0] + jnp.sin(x[j][1]) for j in range(N))


LOOPS = {
    "sum": lambda x: jnp.sum(sum(x) ** 2),
    "weighted": lambda x: sum(float(A[0, j]) * x[j][0] for j in range(N)) * x[1][2],
    "entries": lambda x: sum(x[j][j % 3] ** 2 for j in range(N)),
    "left out": lambda x: sum(A[0, j] * x[j] @ x[j] for j in range(N) if j != 3) + jnp.exp(x[3][0]),
    "products": lambda x: sum(x[j] @ x[(j + 1) % N] for j in range(N)),
    "shared": lambda x: shared(x, x[0][0] ** 2),
    "concatenated": lambda x: jnp.sum(jnp.concatenate(x) ** 2 * np.arange(3 * N)),
    "stacked": lambda x: jnp.sum(jnp.stack(x) @ A[:3, 0]) + jnp.stack([v[0] for v in x]) @ A[0],
    "columns": lambda x: jnp.sum(jnp.stack(x, axis=1) ** 3 * A[:3]),
    "two kinds": lambda x: sum(x[j][0] ** 2 if j % 2 else jnp.exp(x[j][0]) for j in range(N)),
    "with numbers": lambda x: sum(x[j][0] + 0.5 * j for j in range(N)),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", sorted(LOOPS))
def test_values_and_derivatives_stay(name):
    with jax.enable_x64(True):
        function, rolled = LOOPS[name], traced(Opaque(LOOPS[name]), POINT)
        np.testing.assert_allclose(rolled(POINT), function(POINT), rtol=1e-13)
        for made, wanted in zip(jax.grad(rolled)(POINT), jax.grad(function)(POINT), strict=True):
            np.testing.assert_allclose(made, wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", sorted(LOOPS))
def test_the_program_does_not_grow_with_the_loop(name):
    with jax.enable_x64(True):
        program = recorded(LOOPS[name], POINT)
    assert any(isinstance(step, Rolled) for step in program.steps)
    assert len(program.steps) < 2 * N


def test_a_long_loop_inside_of_a_term():
    many = [np.full(1, 0.1 * j) for j in range(600)]

    def function(x):
        return x[0][0] * (1 + sum(jnp.sin(v)[0] for v in x)) / 7

    with jax.enable_x64(True):
        program = recorded(function, many)
        np.testing.assert_allclose(traced(Opaque(function), many)(many), function(many), rtol=1e-12)
    assert len(program.steps) < 10


def test_what_is_used_elsewhere_is_not_drawn_into_a_loop():
    def function(x):
        terms = [v[0] ** 2 for v in x]
        return sum(terms) * terms[3]

    with jax.enable_x64(True):
        np.testing.assert_allclose(traced(Opaque(function), POINT)(POINT), function(POINT), rtol=1e-13)
