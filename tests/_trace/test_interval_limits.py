"""What enclosures trust: libraries, and not the derivatives of users; and what they refuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from epszero._trace.intervals import Enclosed, Interval, NoEnclosure, without_custom_rules

SCALAR = np.zeros(())
MATRIX = np.array([[1.5, -2.0, 0.0], [0.25, 1.0, -3.0], [-0.5, 0.0, 2.0]])


def box1(low, high):
    return Interval(np.asarray(low, np.float64), np.asarray(high, np.float64))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.where(x > 0, 1.0, x),
        jnp.sign,
        jnp.floor,
        jnp.ceil,
        jnp.round,
        lambda x: (x > 0) * 1.0,
        lambda x: jax.lax.cond(x > 0, lambda v: v + 3, lambda v: v, x),
        lambda x: x.astype(jnp.int32).astype(jnp.float64),
        lambda x: jnp.tanh(1 / x),
        lambda x: jnp.arctan(jnp.tan(2 * x)),
        lambda x: jnp.tanh(x**-1),
        lambda x: x / jnp.abs(x),
    ],
)
def test_jumps_are_refused_where_the_function_must_be_continuous(function):
    enclosed = Enclosed(function, SCALAR)
    assert enclosed(box1(-1.5, 1.5))
    with pytest.raises(NoEnclosure, match="jumps at"):
        enclosed(box1(-1.5, 1.5), continuous=True)
    assert enclosed(box1(0.6, 0.7), continuous=True)


@pytest.mark.parametrize(
    "function",
    [
        jnp.abs,
        lambda x: jnp.maximum(x, 0),
        lambda x: jnp.clip(x, -1, 1),
        jax.nn.softplus,
        jax.nn.relu,
        jnp.sin,
        jax.nn.gelu,
        lambda x: jax.nn.logsumexp(jnp.stack([x, 2 * x])),
        lambda x: jax.nn.softmax(jnp.stack([x, 2 * x])),
        jnp.tanh,
    ],
)
def test_kinks_are_no_jumps(function):
    enclosed = Enclosed(function, SCALAR)
    assert enclosed(box1(-1.5, 1.5), continuous=True)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (jnp.sort, "sort"),
        (jnp.argmax, "argmax"),
        (lambda x: x % 2.0, "rem"),
        (lambda x: jnp.fft.fft(x).real, "fft|complex"),
        (lambda x: jnp.linalg.solve(MATRIX, x), "lu|triangular_solve|solve"),
        (lambda x: x[x[0].astype(int)], "dynamic_slice|gather|whole"),
        (lambda x: jnp.arctan2(x, x), "atan2"),
        (lambda x: jnp.sin(x.astype(jnp.float32)), "sin in float32"),
        (lambda x: jnp.sqrt(x - 2), "sqrt"),
        (lambda x: jnp.log(x - 9), "undefined"),
        (lambda x: jnp.arcsin(x * 3), "asin"),
        (lambda x: (x - 1) ** 0.5, "sqrt|pow"),
        (lambda x: (x - 1) ** 0.7, "pow"),
        (lambda x: jax.lax.scan(lambda c, _: (c * 2, None), x, None, length=20000)[0], "20000 turns"),
        (lambda x: jax.lax.while_loop(lambda c: c[0] < 1.5, lambda c: c + 1.0, x), "while"),
        (lambda x: jnp.take(x, jnp.array([7])), "gather"),
    ],
)
def test_what_has_no_rule_is_named(function, message):
    with pytest.raises(NoEnclosure, match=message):
        Enclosed(function, np.zeros(3))(box1(np.zeros(3), np.ones(3)))


def test_what_nothing_depends_on_needs_no_rule():
    bound = Enclosed(lambda x: (jnp.sort(x), x + 1)[1], np.zeros(3))(box1(np.zeros(3), np.ones(3)))
    assert np.all(bound.lower == 1)
    assert np.all(bound.upper == 2)


def test_trees_constants_and_whole_numbers():
    def function(tree, place):
        return {"at": tree["a"][place] * tree["b"][0], "constant": jnp.arange(2)}

    enclosed = Enclosed(function, {"a": np.zeros(3), "b": (np.zeros(()),)}, np.array([0]))
    result = enclosed({"a": box1(np.arange(3.0), np.arange(3.0) + 1), "b": (np.asarray(2.0),)}, np.array([2]))
    assert result["at"].lower == 4
    assert result["at"].upper == 6
    assert np.all(result["constant"].lower == [0, 1])
    assert np.all(result["constant"].upper == [0, 1])
    with pytest.raises(ValueError, match="shape"):
        enclosed({"a": np.zeros(4), "b": (np.zeros(()),)}, np.array([2]))
    with pytest.raises(ValueError, match="lower end above"):
        enclosed({"a": box1(np.ones(3), np.zeros(3)), "b": (np.zeros(()),)}, np.array([2]))


def test_one_box_given_twice_is_two_variables():
    box = box1(0, 1)
    bound = Enclosed(lambda x, y: (x - y, x * y, x == y), SCALAR, SCALAR)(box, box)
    assert bound[0] == (-1, 1)
    assert bound[1] == (0, 1)
    assert bound[2] == (0, 1)


@jax.custom_jvp
def lying(x):
    return x**2


@lying.defjvp
def _(primals, tangents):
    return lying(*primals), 0.0 * tangents[0]


@jax.custom_vjp
def cheating(x):
    return x**2


cheating.defvjp(lambda x: (cheating(x), None), lambda _, g: (0.0 * g,))


@pytest.mark.parametrize(
    "wrap", [lambda f: f, jax.jit, jax.checkpoint, lambda f: jax.jit(lambda x: jax.jit(f)(x) * 1.0)]
)
@pytest.mark.parametrize("function", [lying, cheating, lambda x: x * jax.lax.stop_gradient(x)])
def test_derivatives_of_the_users_making_are_seen_through(function, wrap):
    with jax.enable_x64(True):
        x = jnp.asarray(3.0)
        assert jax.grad(wrap(function))(x) != 6
        for derivative in (jax.grad, jax.jacfwd):
            assert derivative(without_custom_rules(wrap(function)))(x) == 6
        assert without_custom_rules(wrap(function))(x) == 9
    bound = Enclosed(jax.jacfwd(without_custom_rules(wrap(function))), SCALAR)(box1(1, 2))
    assert bound.lower <= 2
    assert bound.upper >= 4
    with pytest.raises(NoEnclosure, match="scan"):
        Enclosed(without_custom_rules(lambda x: jax.lax.scan(lambda c, _: (function(c), None), x, None, 3)[0]), SCALAR)


@pytest.mark.parametrize(
    "function",
    [
        jax.nn.logsumexp,
        jax.nn.softmax,
        jax.nn.log_softmax,
        lambda x: jax.nn.logsumexp(jnp.outer(x, x), axis=1) ** 2,
        lambda x: x @ jax.nn.softmax(jnp.outer(x, x), axis=0),
    ],
)
def test_a_stopped_gradient_that_cancels_is_the_truth(function):
    plain = without_custom_rules(function)
    box = box1([0.3, 0.7, -0.2], [0.35, 0.72, -0.1])
    assert "stop_gradient" in str(jax.make_jaxpr(plain)(box.lower))
    bound = Enclosed(jax.jacfwd(plain), box.lower)(box)
    assert np.all(bound.upper - bound.lower < 0.9)
    with jax.enable_x64(True):
        x, step = jnp.asarray(box.lower), 1e-6
        values = jax.jit(jax.vmap(function))(jnp.concatenate([x + step * np.eye(3), x - step * np.eye(3)]))
        columns = (values[:3] - values[3:]) / (2 * step)
        assert jnp.allclose(jax.jit(jax.jacfwd(plain))(x), jnp.moveaxis(columns, 0, -1), rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: jnp.exp(x - jax.lax.stop_gradient(x)) * x,
        lambda x: jnp.log(jnp.sum(jnp.exp(x - jax.lax.stop_gradient(x)))),
        lambda x: jax.nn.softmax(x) + jax.lax.stop_gradient(x),
        lambda x: jnp.exp(x - jax.lax.stop_gradient(jnp.max(x))),
        lambda x: (
            jnp.sum(jnp.exp(x - jax.lax.stop_gradient(x[::-1]))) / jnp.sum(jnp.exp(-jax.lax.stop_gradient(x[::-1])))
        ),
        lambda x: jnp.log(jnp.sum(jnp.exp(x - jax.lax.stop_gradient(x[0])))) + 2 * jax.lax.stop_gradient(x[0]),
        lambda x: jnp.exp(x - (s := jax.lax.stop_gradient(jnp.max(x)))) / (jnp.sum(jnp.exp(x - s)) + 1),
    ],
)
def test_a_stopped_gradient_that_does_not_cancel_is_not(function):
    plain = without_custom_rules(function)
    with jax.enable_x64(True):
        x, step = jnp.array([0.3, 0.7, -0.2]), 1e-6
        values = jax.jit(jax.vmap(function))(jnp.concatenate([x + step * np.eye(3), x - step * np.eye(3)]))
        columns = (values[:3] - values[3:]) / (2 * step)
        assert jnp.allclose(jax.jit(jax.jacfwd(plain))(x), jnp.moveaxis(columns, 0, -1), rtol=0, atol=1e-8)


LIBRARY = {
    "exp": (-700, 700),
    "exp2": (-1000, 1000),
    "expm1": (-40, 700),
    "log": (1e-300, 5),
    "log1p": (-0.999, 5),
    "sin": (-1e4, 1e4),
    "cos": (-1e4, 1e4),
    "tan": (-1e3, 1e3),
    "tanh": (-20, 20),
    "sinh": (-700, 700),
    "cosh": (-700, 700),
    "asin": (-1, 1),
    "acos": (-1, 1),
    "atan": (-1e3, 1e3),
    "asinh": (-1e5, 1e5),
    "acosh": (1, 1e5),
    "atanh": (-0.999, 0.999),
    "cbrt": (-1e5, 1e5),
    "sqrt": (0, 1e9),
    "rsqrt": (1e-9, 1e9),
    "logistic": (-700, 700),
}
NUMPY = {
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "asinh": "arcsinh",
    "acosh": "arccosh",
    "atanh": "arctanh",
}


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="no longer floats on this machine")
@pytest.mark.parametrize("name", LIBRARY)
def test_functions_of_the_libraries_against_longer_floats(name):
    low, high = LIBRARY[name]
    x = np.random.default_rng(6).uniform(size=4000) ** np.tile([1, 20], 2000) * (high - low) + low
    x = np.concatenate([x, np.nextafter(low, high) + 1e-3 * (high - low) * np.linspace(0, 1, 100)])
    long = x.astype(np.longdouble)
    if name == "rsqrt":
        values = 1 / np.sqrt(long)
    elif name == "logistic":
        values = 1 / (1 + np.exp(-long))
    else:
        values = getattr(np, NUMPY.get(name, name))(long)
    bound = Enclosed(getattr(jax.lax, name), x)(x)
    slack = 8 * np.finfo(np.longdouble).eps * np.abs(values)
    assert np.all(bound.lower <= values + slack)
    assert np.all(values - slack <= bound.upper)
    tight = bound.upper - bound.lower <= 1e-13 * np.maximum(np.abs(values), 0.1)
    assert np.mean(tight) > 0.99  # the tangent has poles
