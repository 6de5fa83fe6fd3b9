"""Enclosures hold every value a function takes in a box; and are tight, exact or refused where they claim to be."""

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epszero._trace.intervals import Enclosed, Interval, NoEnclosure, without_custom_rules
from epszero._trace.intervals import arithmetic as arithmetic
from epszero._trace.intervals.rules import RULES

N = 3
MATRIX = np.array([[1.5, -2.0, 0.0], [0.25, 1.0, -3.0], [-0.5, 0.0, 2.0]])
ANY, POSITIVE, INSIDE = (-3.0, 3.0), (0.05, 3.0), (-0.95, 0.95)

FUNCTIONS = {
    "polynomial": (lambda x: x**3 - 2 * x**2 + x * x - x**4 + x**5, ANY),
    "quadratic": (lambda x: x @ MATRIX @ x, ANY),
    "bilinear": (lambda x: jnp.outer(x, x) @ jnp.cos(jnp.outer(x, x)), ANY),
    "inner": (lambda x: x @ x, ANY),
    "einsum": (lambda x: jnp.einsum("ij,j,k->ki", MATRIX, x, x), ANY),
    "rational": (lambda x: (x[0] - x[1]) / (1 + x[2] ** 2) + 1 / (x + 4), ANY),
    "negative powers": (lambda x: x**-1 + x**-2 - x**-3, POSITIVE),
    "real powers": (lambda x: x**2.5 + x**-0.5 + x**x, POSITIVE),
    "roots": (lambda x: jnp.sqrt(x) + jax.lax.rsqrt(x) - jnp.cbrt(x), POSITIVE),
    "cbrt": (lambda x: jnp.cbrt(x - 5), ANY),
    "norm": (lambda x: jnp.linalg.norm(x + 4), ANY),
    "exponentials": (lambda x: jnp.exp(x) - jnp.exp2(x) + jnp.expm1(-x) * jnp.exp(-(x**2)), ANY),
    "logarithms": (lambda x: jnp.log(x) + jnp.log1p(x) - jnp.log10(x) * jnp.log2(x), POSITIVE),
    "sigmoids": (lambda x: jax.nn.sigmoid(x) * jnp.tanh(x) + jax.scipy.special.erf(x), ANY),
    "erfc": (jax.lax.erfc, ANY),
    "waves": (lambda x: jnp.sin(3 * x) * jnp.cos(x) + jnp.sin(x + 100), ANY),
    "tan": (jnp.tan, INSIDE),
    "inverse waves": (lambda x: jnp.arcsin(x) - jnp.arccos(x) + jnp.arctan(3 * x), INSIDE),
    "hyperbolic": (lambda x: jnp.sinh(x) + jnp.cosh(x) - jnp.arcsinh(x), ANY),
    "inverse hyperbolic": (lambda x: jnp.arctanh(x) + jnp.arccosh(x + 2.5), INSIDE),
    "kinks": (lambda x: jnp.abs(x) + jnp.maximum(x, 0.5) - jnp.minimum(x, x[::-1]) + jnp.clip(x, -1, 1), ANY),
    "largest": (lambda x: jnp.max(x) - jnp.min(x) * jnp.sum(x), ANY),
    "jumps": (lambda x: jnp.sign(x) + jnp.floor(x) - jnp.ceil(2 * x) + jnp.round(x), ANY),
    "where": (lambda x: jnp.where(x > x[::-1], x, x**2), ANY),
    "logic": (lambda x: jnp.where((x > 0) & ~(x > 1) | (x <= -1) ^ (x >= -2), x, 1.0) * jnp.any(x > 0), ANY),
    "truth": (lambda x: (x > 0).astype(x.dtype) * x + jnp.all(x < 2), ANY),
    "relu": (jax.nn.relu, ANY),
    "gelu": (jax.nn.gelu, ANY),
    "silu": (jax.nn.silu, ANY),
    "softplus": (jax.nn.softplus, ANY),
    "softmax": (jax.nn.softmax, ANY),
    "log-softmax": (jax.nn.log_softmax, ANY),
    "logsumexp": (jax.nn.logsumexp, ANY),
    "logaddexp": (lambda x: jnp.logaddexp(x, x[::-1] * 2), ANY),
    "moments": (lambda x: jnp.mean(x) + jnp.var(x), ANY),
    "product": (jnp.prod, ANY),
    "cumulative": (lambda x: jnp.cumsum(x) * jnp.cumprod(x) + jax.lax.cummax(x), ANY),
    "reverse cumulative": (lambda x: jax.lax.cumsum(x, reverse=True), ANY),
    "indices": (lambda x: x[jnp.array([2, 0, 2])] * x[1] + x[::-1], ANY),
    "sets": (lambda x: x.at[1].set(2.0).at[jnp.array([0, 0])].add(x[:2]), ANY),
    "shapes": (
        lambda x: jnp.concatenate([jnp.tile(x, (2, 1)).T.reshape(2, 3), jnp.pad(x[None], ((0, 1), (0, 0)))]),
        ANY,
    ),
    "stack": (lambda x: jnp.stack([x, jnp.roll(x, 1)]).sum(axis=0) - jnp.diff(x, append=0.0), ANY),
    "stack along another axis": (lambda x: jnp.stack([x, 2 * x + 10, x - 5], axis=1), ANY),
    "splits": (lambda x: jnp.split(x, 3)[1] * jnp.split(x, 3)[2], ANY),
    "scan": (lambda x: jax.lax.scan(lambda c, v: (jnp.sin(c) + v, c * v), 0.5, x), ANY),
    "fori": (lambda x: jax.lax.fori_loop(0, 4, lambda i, c: c * x[i % 3] + i, x), ANY),
    "while": (lambda x: jax.lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 4, c[1] * x), (0.0, x))[1], ANY),
    "cond": (lambda x: jax.lax.cond(x[0] > 0, jnp.sin, lambda v: v**2, x), ANY),
    "switch": (lambda x: jax.lax.switch(2, [jnp.sin, jnp.cos, jnp.exp], x), ANY),
    "remat": (jax.checkpoint(lambda x: jnp.sin(x) * x), ANY),
    "single": (lambda x: (x.astype(jnp.float32) * 1.1 + 1).astype(jnp.float64), ANY),
    "triangle": (lambda x: jnp.triu(jnp.outer(x, x)) @ jnp.eye(3), ANY),
}
CUSTOM = ("relu", "gelu", "silu", "softplus", "softmax", "log-softmax", "logsumexp", "logaddexp", "cond", "remat")
BACKWARD = ("while",)  # cannot be differentiated backwards


def leaves(tree):
    return jax.tree.leaves(tree, is_leaf=lambda part: isinstance(part, Interval))


def boxes(rng, span, count, shape=(N,)):
    """Wide, narrow and degenerate."""
    low, high = span
    for k in range(count):
        ends = np.sort(rng.uniform(low, high, (2, *shape)), axis=0)
        width = (1.0, 0.1, 1e-6, 0.0)[k % 4]
        yield Interval(ends[0], ends[0] + width * (ends[1] - ends[0]))


def points(rng, box, count):
    """Corners, edges and inner points, in the box."""
    share = rng.uniform(size=(count, *box.lower.shape))
    share[: count // 3] = np.round(share[: count // 3])
    share[count // 3 : count // 2, ..., 0] = 0.0
    return np.clip(box.lower + share * (box.upper - box.lower), box.lower, box.upper)


def assert_holds(function, box, rng, count=40, evaluate=None, enclosed=None):
    enclosed = enclosed or Enclosed(function, box.lower)
    bounds = leaves(enclosed(box))
    with jax.enable_x64(True):
        evaluate = evaluate or jax.jit(jax.vmap(function))
        values = jax.tree.leaves(evaluate(jnp.asarray(points(rng, box, count))))
    for bound, value in zip(bounds, values, strict=True):
        numbers = np.asarray(value, np.float64)
        assert bound.lower.dtype == bound.upper.dtype == np.float64
        assert not np.isnan(bound.lower).any()
        assert not np.isnan(bound.upper).any()
        assert np.all(bound.lower <= bound.upper)
        assert bound.lower.shape == numbers.shape[1:]
        inside = (numbers >= bound.lower - 1e-300) & (numbers <= bound.upper + 1e-300) | np.isnan(numbers)
        assert inside.all(), (bound, numbers[~inside.reshape(count, -1).all(axis=1)][:3])


@pytest.mark.some(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_value_in_a_box_is_enclosed(name):
    function, span = FUNCTIONS[name]
    ways = [function, without_custom_rules(function)] if name in CUSTOM else [function]
    rng = np.random.default_rng(len(name))

    def everything(x):
        return function(x), [jax.jacfwd(way)(x) for way in ways]

    enclosed = Enclosed(everything, np.zeros(N))
    with jax.enable_x64(True):
        evaluate = jax.jit(jax.vmap(everything))
    for box in boxes(rng, span, 12):
        assert_holds(everything, box, rng, 100, evaluate, enclosed)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in BACKWARD][::7])
def test_backward_derivatives_and_batches_too(name):
    function, span = FUNCTIONS[name]
    batch = jax.vmap(jax.jacrev(function))
    rng = np.random.default_rng(len(name))
    low, high = (np.stack(ends) for ends in zip(*boxes(rng, span, 4), strict=True))
    assert_holds(batch, Interval(low, high), rng, 40)


def real(value):
    return Fraction(float(value))


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_rounding_is_outward_in_exact_arithmetic(sign):
    rng = np.random.default_rng(0)
    scale = 10.0 ** rng.integers(-20, 20, (2, 200))
    x, y = rng.normal(size=(2, 200)) * scale
    y *= sign
    ours = Enclosed(lambda x, y: (x + y, x - y, x * y, x / y, jnp.cumsum(x), jnp.dot(x, y), jnp.sum(y)), x, y)(x, y)
    total = Fraction(0)
    for k in range(200):
        a, b = real(x[k]), real(y[k])
        total += a
        for bound, exact in zip(ours[:5], (a + b, a - b, a * b, a / b, total), strict=True):
            assert real(bound.lower[k]) <= exact <= real(bound.upper[k])
            if bound is not ours[4]:
                assert bound.upper[k] - bound.lower[k] <= 1e-15 * abs(float(exact))
    dot, whole = sum(real(a) * real(b) for a, b in zip(x, y, strict=True)), sum(map(real, y))
    assert real(ours[5].lower) <= dot <= real(ours[5].upper)
    assert real(ours[6].lower) <= whole <= real(ours[6].upper)


@pytest.mark.parametrize("kind", ["left", "right", "both", "dense"])
def test_matrix_products_of_intervals(kind, monkeypatch):
    rng = np.random.default_rng(1)
    if kind == "dense":
        monkeypatch.setattr(arithmetic, "DENSE", 1)
    a, b = rng.normal(size=(2, 4, 5)) * (rng.random((2, 4, 5)) > 0.3), rng.normal(size=(2, 5, 3))
    a[0, 1] = 0.0
    left = Interval(a, a + (kind != "right") * np.abs(a) * rng.random(a.shape))
    right = Interval(b, b + (kind != "left") * rng.random(b.shape))
    result = Enclosed(jnp.matmul, a, b)(left, right)
    assert np.all(result.lower[0, 1] == 0)
    assert np.all(result.upper[0, 1] == 0)
    exact = arithmetic.mul(Interval(*(end[..., None] for end in left)), Interval(*(end[:, None] for end in right)))
    low, high = exact.lower.sum(axis=2), exact.upper.sum(axis=2)
    assert np.all(result.lower <= low + 1e-14)
    assert np.all(result.upper >= high - 1e-14)
    if kind != "dense":
        assert np.allclose(result.lower, low, rtol=0, atol=1e-13)
        assert np.allclose(result.upper, high, rtol=0, atol=1e-13)
    for _ in range(50):
        x, y = (v.lower + rng.integers(0, 2, v.lower.shape) * (v.upper - v.lower) for v in (left, right))
        product = x @ y
        assert np.all((result.lower <= product) & (product <= result.upper))


@pytest.mark.parametrize(("name", "reference", "at"), [
    ("exp", math.exp, 1.0), ("sin", math.sin, 0.5), ("tanh", math.tanh, 0.3), ("log", math.log, 3.0),
    ("atan", math.atan, 2.0), ("erf", math.erf, 0.7), ("sqrt", math.sqrt, 2.0), ("cosh", math.cosh, 1.5),
])  # fmt: skip
def test_points_have_narrow_enclosures(name, reference, at):
    bound = Enclosed(getattr(jax.lax, name), np.zeros(()))(np.asarray(at))
    assert bound.lower <= reference(at) <= bound.upper
    assert bound.upper - bound.lower <= 1e-13 * abs(reference(at))


@pytest.mark.parametrize("name", ["polynomial", "quadratic", "sigmoids", "softplus", "einsum", "hyperbolic", "moments"])
def test_narrow_at_points_also_for_derivatives(name):
    function, span = FUNCTIONS[name]
    x = np.random.default_rng(3).uniform(*span, N)
    for transformed in (function, jax.jacfwd(function)):
        for bound in leaves(Enclosed(transformed, x)(x)):
            size = np.maximum(np.abs(bound.lower), 1.0)
            assert np.all(bound.upper - bound.lower <= 1e-12 * size)


def box1(low, high):
    return Interval(np.asarray(low, np.float64), np.asarray(high, np.float64))


SCALAR = np.zeros(())


@pytest.mark.parametrize(
    ("function", "box", "low", "high"),
    [
        (lambda x: x * x, (-1, 2), 0, 4),
        (lambda x: x**2, (-1, 2), 0, 4),
        (lambda x: x**4, (-2, 1), 0, 16),
        (lambda x: x**3, (-2, 1), -8, 1),
        (lambda x: x - x, (-1, 2), 0, 0),
        (lambda x: 0.0 * x, (-np.inf, np.inf), 0, 0),
        (lambda x: 1 / x, (0, 2), 0.5, np.inf),
        (lambda x: 1 / x, (-2, 0), -np.inf, -0.5),
        (lambda x: 1 / x, (-1, 1), -np.inf, np.inf),
        (lambda x: x**-2, (-1, 2), 0.25, np.inf),
        (jnp.abs, (-1, 2), 0, 2),
        (jnp.sin, (0, 3), 0, 1),
        (jnp.cos, (-1, 1), math.cos(1), 1),
        (jnp.cosh, (-1, 1), 1, math.cosh(1)),
        (jnp.tanh, (-np.inf, np.inf), -1, 1),
        (jnp.exp, (-np.inf, 0), 0, 1),
        (jnp.log, (-1, 1), -np.inf, 0),
        (jax.nn.relu, (-1, 2), 0, 2),
        (jax.grad(jax.nn.relu), (-1, 2), 0, 1),
        (jax.grad(jax.nn.relu), (1, 2), 1, 1),
        (lambda x: jnp.where(x > 0, 5.0, x), (-1, 2), -1, 5),
        (lambda x: jnp.where(x > 0, 5.0, x), (1, 2), 5, 5),
        (lambda x: jnp.where(x > 0, 5.0, x), (-1, 0), -1, 0),
        (lambda x: jnp.where(jnp.isnan(x), 9.0, x), (-1, 2), -1, 2),
        (lambda x: jax.lax.cond(x > 0, lambda v: v + 3, lambda v: v, x), (-1, 2), -1, 5),
        (jnp.sqrt, (0, 4), 0, 2),
        (jnp.floor, (-0.5, 1.5), -1, 1),
        (jnp.round, (0.5, 1.5), 0, 2),
        (jnp.sign, (0, 3), 0, 1),
        (jax.lax.round, (0.5, 2.5), 1, 3),
        (lambda x: jnp.linalg.norm(jnp.stack([x, x])), (0, 0), 0, 0),
        (lambda x: jnp.sum(jnp.array([0.0, 1.0, 0.0]) * x), (0.1, 0.3), 0.1, 0.3),
        (lambda x: x + 0.0, (0.1, 0.3), 0.1, 0.3),
        (lambda x: x * 1.0 * -1.0, (0.1, 0.3), -0.3, -0.1),
        (lambda x: jnp.sqrt(1 - x**2), (-1, 1), 0, 1),
        (lambda x: jax.grad(jnp.max)(jnp.stack([x, 0 * x]))[0], (-1, 1), 0, 1),
        (lambda x: x - x, (-np.inf, 1), -np.inf, np.inf),
        (lambda x: jnp.isfinite(x) * 1.0, (-1, 1), 1, 1),
    ],
)
def test_tight(function, box, low, high):
    bound = Enclosed(function, SCALAR)(box1(*box))
    for found, wanted in zip(bound, (low, high), strict=True):
        assert found == wanted if wanted in (0, 1, -1, np.inf, -np.inf) else math.isclose(found, wanted, rel_tol=1e-13)
    assert bound.lower <= low
    assert bound.upper >= high


def test_zeros_of_a_sparse_jacobian_stay_zeros():
    def function(x):
        return jnp.stack([jnp.sin(x[0]) * x[1], x[2] ** 2, jnp.exp(x[1])])

    jacobian = Enclosed(jax.jacfwd(function), np.zeros(3))(box1(-np.ones(3), np.ones(3)))
    pattern = np.array([[1, 1, 0], [0, 0, 1], [0, 1, 0]], bool)
    assert np.all(jacobian.lower[~pattern] == 0)
    assert np.all(jacobian.upper[~pattern] == 0)
    assert np.all(jacobian.upper[pattern] > 0)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_infinite_boxes_make_no_nan(name):
    function, _ = FUNCTIONS[name]
    ends = ((-np.inf, np.inf), (0.0, np.inf), (1e300, np.inf), (-np.inf, -1.0), (-1e308, 1e308), (0.0, 5e-324))
    derivative = [jax.jacfwd(function)] if len(name) % 4 == 0 else []  # of some of them, for time
    for enclosed in (Enclosed(transformed, np.zeros(N)) for transformed in (function, *derivative)):
        for low, high in ends:
            try:
                bounds = leaves(enclosed(box1(np.full(N, low), np.full(N, high))))
            except NoEnclosure:
                continue
            assert all(np.all(bound.lower <= bound.upper) for bound in bounds)  # which no NaN is


UNARY = [
    jnp.sin,
    jnp.cos,
    jnp.tanh,
    jnp.exp,
    jnp.abs,
    jnp.square,
    jnp.negative,
    jax.nn.softplus,
    jax.nn.sigmoid,
    jnp.arctan,
    jax.nn.relu,
    lambda v: jnp.sqrt(1 + v**2),
    lambda v: jnp.log1p(v**2),
    lambda v: 1 / (2 + jnp.sin(v)),
    lambda v: v**3,
    lambda v: v @ MATRIX,
    jnp.cumsum,
    lambda v: v[::-1],
    lambda v: jnp.sum(v) * v,
    jnp.expm1,
]
BINARY = [jnp.add, jnp.subtract, jnp.multiply, jnp.maximum, jnp.minimum, lambda a, b: jnp.where(a > b, a, b * b),
          lambda a, b: a / (1 + jnp.abs(b)), lambda a, b: jnp.dot(a, b) * a, jnp.logaddexp]  # fmt: skip
LEAVES = st.one_of(
    st.just(lambda x: x), st.floats(-4, 4).map(lambda c: lambda x: c + 0 * x), st.just(lambda x: x * x[0])
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.sampled_from(UNARY), inner).map(lambda t: lambda x: t[0](t[1](x))),
        st.tuples(st.sampled_from(BINARY), inner, inner).map(lambda t: lambda x: t[0](t[1](x), t[2](x))),
    ),
    max_leaves=6,
)


@pytest.mark.long
@settings(max_examples=20)
@given(TREES, st.integers(0, 2**32), st.booleans())
def test_random_expressions(expression, seed, derivative):
    rng = np.random.default_rng(seed)
    box = next(boxes(rng, (-2.0, 2.0), 1)) if seed % 2 else list(boxes(rng, (-2.0, 2.0), 2))[1]
    function = jax.jacfwd(expression) if derivative else expression
    with jax.enable_x64(True):
        evaluate = jax.jit(jax.vmap(function))
        values = jax.tree.leaves(evaluate(jnp.asarray(points(rng, box, 40))))
    if all(np.isfinite(value).all() for value in values):
        assert_holds(function, box, rng, 40, evaluate)


def test_a_broken_rule_does_not_pass(monkeypatch):
    def broken(_, operands, __):
        x, y = operands
        return [arithmetic.hull([arithmetic.point(x.lower * y.lower), arithmetic.point(x.upper * y.upper)])]

    def check():
        rng = np.random.default_rng(5)
        for box in boxes(rng, ANY, 4):
            assert_holds(lambda x: x * x[::-1], box, rng)

    check()
    monkeypatch.setitem(RULES, "mul", broken)
    with pytest.raises(AssertionError):
        check()
