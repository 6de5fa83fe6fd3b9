"""Kinks read from traced functions: what is recognised, what is named, and that the parts make up the function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from epszero._double import double
from epszero._trace.intervals import Interval
from epszero._trace.kink_signs import proved_convex
from epszero._trace.kinks import AFFINE, QUADRATIC, SMOOTHLY, Kinks, Unread, read_kinks

X, XI = np.zeros(3), np.zeros(4)


def read(function):
    with double():
        return read_kinks(function, X, XI)


def pinball(u, tau=0.3):
    return jnp.maximum(tau * u, (tau - 1) * u)


READ = {
    "pinball": (lambda x, r: pinball(r[0] - r[1:] @ x), 1, AFFINE),
    "relu": (lambda x, r: jax.nn.relu(r[0] - r[1:] @ x), 1, AFFINE),
    "leaky relu": (lambda x, r: jax.nn.leaky_relu(r[0] - r[1:] @ x, 0.3), 1, AFFINE),
    "hinge and ridge": (lambda x, r: jnp.maximum(0, 1 - r[0] * (r[1:] @ x)) + 0.1 * x @ x, 1, QUADRATIC),
    "where": (lambda x, r: jnp.where(r[0] > x[0], 2 * (r[0] - x[0]), x[0] - r[0]), 1, AFFINE),
    "where not": (lambda x, r: jnp.where(~(x > r[1:]), 0.0, x - r[1:]).sum(), 1, AFFINE),
    "clip below": (lambda x, r: jnp.clip(x, 0, None).sum(), 1, AFFINE),
    "clip to infinity": (lambda x, r: jnp.clip(x, 0, jnp.inf).sum(), 1, AFFINE),
    "clip on both sides": (lambda x, r: jnp.clip(x, 0, 1).sum(), 2, AFFINE),
    "clamp": (lambda x, r: jax.lax.clamp(0.0, x, 1.0).sum(), 2, AFFINE),
    "max entry of abs": (lambda x, r: jnp.max(jnp.abs(x)), 2, AFFINE),
    "norms": (lambda x, r: jnp.linalg.norm(x, 1) + jnp.linalg.norm(x, jnp.inf), 4, AFFINE),
    "rows of a matrix": (lambda x, r: jnp.max(jnp.outer(r[1:], x), axis=1).sum(), 1, AFFINE),
    "vmapped": (lambda x, r: jax.vmap(jax.nn.relu)(x - r[1:]).sum(), 1, AFFINE),
    "jitted": (lambda x, r: jax.jit(lambda u: jnp.abs(u).sum())(x - r[1:]), 1, AFFINE),
    "nested": (lambda x, r: jnp.maximum(jnp.abs(x[0]) + x[1], jax.nn.relu(x[2]) - r[0]), 3, AFFINE),
    "softplus beside": (lambda x, r: jax.nn.softplus(x[0]) + jnp.abs(x[1]), 1, SMOOTHLY),
    "entropy beside": (lambda x, r: jnp.sum(x * jnp.log(x)) + jnp.abs(x[0]), 1, SMOOTHLY),
    "only NaN is asked for": (lambda x, r: jnp.where(jnp.isnan(x), 0.0, jnp.abs(x)).sum(), 1, AFFINE),
}


@pytest.mark.some(4)
@pytest.mark.parametrize("name", READ)
def test_recognised_and_the_parts_make_up_the_function(name):
    function, count, degree = READ[name]
    kinks = read(function)
    assert isinstance(kinks, Kinks)
    assert len(kinks.pieces) == count
    assert kinks.degree == degree
    rng = np.random.default_rng(1)
    with double():
        for _ in range(5):
            signs = np.array([1, 1, 1] if degree == SMOOTHLY else [1, -1, 1])
            x, xi = rng.uniform(0.1, 2.0, size=3) * signs, rng.normal(size=4)
            t = []
            for piece in kinks.pieces:  # each by what is known of those before it
                later = [jnp.zeros(one.shape) for one in kinks.pieces[len(t) :]]
                parts = kinks.parts(x, [*t, *later], xi)
                branches, margin = parts.branches[len(t)], parts.margins[len(t)]
                extreme = jnp.min if piece.sense < 0 else jnp.max
                t.append(extreme(branches, 0) if margin is None else jnp.where(margin > 0, branches[0], branches[1]))
            assert float(kinks.parts(x, t, xi).value) == pytest.approx(float(function(x, xi)), rel=1e-14)


NAMED = {
    "a square of a kink": (lambda x, r: jax.nn.relu(x[0]) ** 2, "maximum", "bends"),
    "a product of kinks": (lambda x, r: jnp.abs(x[0]) * jnp.abs(x[1]), "abs", "multiplied"),
    "times x": (lambda x, r: x[1] * jnp.abs(x[0]), "abs", "multiplied"),
    "exp of a kink": (lambda x, r: jnp.exp(jnp.abs(x[0])), "abs", "bends"),
    "a kink of a square": (lambda x, r: jnp.maximum(x[0] ** 2, x[1]), "maximum", "not affine"),
    "sort": (lambda x, r: jnp.sort(x)[0], "sort", "not followed"),
    "a jump": (lambda x, r: jnp.floor(x[0]) + jnp.abs(x[1]), "floor", "not followed"),
    "an indicator": (lambda x, r: (r[0] - x[0]) * (0.3 - (r[0] < x[0])), "comparison", "used as a number"),
    "two conditions": (lambda x, r: jnp.where((x > 0) & (x < 1), x, 0.0).sum(), "where", "something else"),
    "Huber": (lambda x, r: jnp.where(jnp.abs(x) < 1, x * x / 2, jnp.abs(x) - 0.5).sum(), "where", "not affine"),
    "a loop": (lambda x, r: jax.lax.scan(lambda c, a: (c + jnp.abs(a), None), 0.0, x)[0], "scan", "loop"),
    "single precision": (lambda x, r: jnp.abs(x.astype(jnp.float32)).sum().astype(float), "abs", "float32"),
    "a root beside": (lambda x, r: jnp.sqrt(1 + x[0] ** 2) + jnp.abs(x[0]), "abs", "sqrt"),
    "a stopped gradient": (lambda x, r: jax.lax.stop_gradient(x[0]) + jnp.abs(x[1]), "stop_gradient", "not followed"),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_of_the_form_is_named(name):
    function, what, why = NAMED[name]
    found = read(function)
    assert isinstance(found, Unread)
    assert found.where.startswith(what)
    assert why in found.why
    assert "test_kinks_read.py:" in found.where


@pytest.mark.parametrize(
    "function",
    [
        lambda x, r: x @ x,
        lambda x, r: jnp.exp(x).sum() + jnp.linalg.norm(x),
        lambda x, r: jax.nn.relu(r).sum() * x[0],
        lambda x, r: jnp.where(r[0] > 0, x[0], x[1]),
        lambda x, r: jax.nn.softplus(x).sum(),
    ],
)
def test_no_kinks_in_x(function):
    assert read(function) is None


def test_a_derivative_written_by_hand_is_passed_by():
    @jax.custom_jvp
    def lying(u):
        return jnp.abs(u)

    lying.defjvp(lambda primals, tangents: (lying(*primals), 7.0 * tangents[0]))
    kinks = read(lambda x, r: lying(x[0]))
    assert not isinstance(kinks, Unread)
    with double():
        slopes = jax.jacfwd(lambda x: kinks.parts(x, [jnp.zeros(())], XI).branches[0])(X)
    np.testing.assert_array_equal(slopes, [[1, 0, 0], [-1, 0, 0]])


BOX = Interval(np.full(4, -1.0), np.array([1.0, 2.0, 3.0, 4.0]))


@pytest.mark.some(4)
@pytest.mark.parametrize(
    ("function", "convex"),
    [
        (lambda x, r: pinball(r[0] - r[1:] @ x), True),
        (lambda x, r: jnp.max(jnp.abs(x)) - jnp.min(x) + r[0] ** 2 * jnp.abs(x[0]) + x @ x, True),
        (lambda x, r: r[0] * jnp.abs(x[0]), False),
        (lambda x, r: (r[0] + 1.5) * jnp.abs(x[0]), True),
        (lambda x, r: -jnp.abs(x[0]), False),
        (lambda x, r: jax.nn.relu(x[0]) - jax.nn.relu(-x[0]), False),
        (lambda x, r: jnp.maximum(-jnp.abs(x[0]), x[1]), False),
        (lambda x, r: jnp.abs(x[0]) - x @ x, False),
        (lambda x, r: jnp.abs(x[0]) + r[0] * x @ x, False),
        (lambda x, r: jnp.clip(x, 0, 1).sum(), False),
    ],
)
def test_convex_for_all_samples_only_if_proved(function, convex):
    kinks = read(function)
    with double():
        assert proved_convex(kinks, X, XI, BOX) is convex
