"""One contract for every convex function, each held against an expression written a second time, in CVXPY."""

import inspect
import warnings
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cvxpy as cp
import jax
import jax.core
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import epszero.functions as ez
from epszero._pytree import Node
from epszero.sets import Ball, Box, BoxBudget, PositiveSemidefinite, Simplex

pytestmark = pytest.mark.some(5)

EXAMPLES = settings(derandomize=True, deadline=None, max_examples=15)
EDGES = [0.0, 1e12, -1e12, 1e-300, -1e-300]


class Flat(Node):
    """A function of pytrees as one of vectors, so that one contract serves all."""

    static, batch_shape = ("sizes", "form"), ()

    def __init__(self, function: ez.SeparableSum, point: Any) -> None:
        self.function = function
        self.sizes = tuple((np.size(leaf), np.shape(leaf)) for leaf in jax.tree.leaves(point))
        self.form = jax.tree.structure(point)

    def nest(self, x: Any) -> Any:
        parts = zip(np.cumsum([size for size, _ in self.sizes]), self.sizes, strict=True)
        return self.form.unflatten([x[end - size : end].reshape(shape) for end, (size, shape) in parts])

    def rows(self, method: Callable[..., Any], x: Any, *steps: Any) -> Any:
        if np.ndim(x) == 1:
            return method(self.nest(x), *steps)
        return np.stack(
            [self.rows(method, row, *(s[k] if np.ndim(s) else s for s in steps)) for k, row in enumerate(x)]
        )

    def __call__(self, x: Any) -> Any:
        return self.rows(self.function, x)

    def conjugate(self, y: Any) -> Any:
        return self.rows(self.function.conjugate, y)

    def prox(self, v: Any, step: Any = 1.0) -> Any:
        join = jnp.concatenate if isinstance(v, jax.core.Tracer) else np.concatenate

        def flat(x: Any, step: Any) -> Any:
            return join([leaf.reshape(-1) for leaf in jax.tree.leaves(self.function.prox(x, step))])

        return self.rows(flat, v, step)


@dataclass
class Case:
    """A function, the shape of its points, and what it should be: a CVXPY expression, perhaps with constraints."""

    name: str
    function: Any
    shape: tuple[int, ...]
    written: Callable[[Any], Any]
    accuracy: float = 1e-6  # of the reference; Clarabel's exponential cones give no more than 5e-6

    @cached_property
    def problem(self) -> tuple[Any, Any, Any, Any, Any]:
        x, v, weight = cp.Variable(self.shape), cp.Parameter(self.shape), cp.Parameter(nonneg=True)
        written = self.written(x)
        cost, rows = written if isinstance(written, tuple) else (written, [])
        near = cp.sum_squares(x - v)
        return x, v, weight, cp.Problem(cp.Minimize(weight * cost + near / 2), rows), (cost, rows)

    def slow_prox(self, v: Any, step: float) -> Any:
        x, target, weight, problem, _ = self.problem
        target.value, weight.value = v, step
        tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-12 if self.accuracy < 5e-6 else 1e-11)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")  # the solver went as far as it can
            problem.solve(solver=cp.CLARABEL, **tight)
        return x.value

    def slow_value(self, at: Any) -> float:
        x, *_, (cost, rows) = self.problem
        x.project_and_assign(at)
        if any(np.max(row.violation()) > 1e-9 for row in rows):
            return np.inf
        with np.errstate(all="ignore"):
            value = float(cost.value if isinstance(cost, cp.Expression) else cost)
        return np.inf if np.isnan(value) else value

    def dot(self, a: Any, b: Any) -> Any:
        return np.sum(a * b, axis=tuple(range(-len(self.shape), 0)))

    def norm(self, a: Any) -> Any:
        return np.sqrt(self.dot(a, a))

    def points(self, *batch: int, scale: float = 3.0) -> Any:
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        return scale * rng.normal(size=(*batch, *self.shape))


W4, C4 = np.array([0.0, 0.5, 2.0, 1.0]), np.array([1.0, -2.0, 0.0, 0.3])
ROOT = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0]])
PSD, Q3 = ROOT.T @ ROOT, ROOT.T @ np.array([0.3, -1.0])  # of rank 2
TALL = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])


def unweighted_tv(x: Any) -> Any:
    return cp.norm1(x[1:] - x[:-1])


CASES = [
    Case("zero", ez.Zero(), (3,), lambda x: cp.Constant(0.0)),
    Case("box", ez.Indicator(Box([0.0, -1.0], [1.0, 2.0])), (2,), lambda x: (0, [x >= [0, -1], x <= [1, 2]])),
    Case("budget", ez.Indicator(BoxBudget(0, 2, 3)), (4,), lambda x: (0, [x >= 0, x <= 2, cp.sum(x) >= 3])),
    Case("ball", ez.Indicator(Ball(2.0)), (3,), lambda x: (0, [cp.norm(x) <= 2])),
    Case("psd", ez.Indicator(PositiveSemidefinite(2)), (2, 2), lambda x: (0, [x == x.T, x >> 0])),
    Case("l1", ez.L1(1.5), (5,), lambda x: 1.5 * cp.norm1(x)),
    Case("l1 per entry", ez.L1(W4), (4,), lambda x: W4 @ cp.abs(x)),
    Case("l1 of nothing", ez.L1(0.0), (5,), lambda x: cp.Constant(0.0)),
    Case("l2", ez.L2(2.0), (3,), lambda x: 2 * cp.norm(x)),
    Case("l2 of one", ez.L2(), (1,), cp.norm),
    Case("l2 of nothing", ez.L2(0.0), (3,), lambda x: cp.Constant(0.0)),
    Case("squared", ez.SquaredL2(), (6,), lambda x: cp.sum_squares(x) / 2),
    Case("squared per entry", ez.SquaredL2(W4, C4), (4,), lambda x: W4 @ cp.square(x - C4) / 2),
    Case("elastic", ez.ElasticNet(0.7, 0.4), (4,), lambda x: 0.7 * cp.norm1(x) + 0.2 * cp.sum_squares(x)),
    Case("elastic per entry", ez.ElasticNet(C4**2, W4), (4,), lambda x: C4**2 @ cp.abs(x) + W4 @ cp.square(x) / 2),
    Case(
        "groups",
        ez.GroupL2([[3, 0], [1, 4, 5]], [1.0, 0.5]),
        (6,),
        lambda x: cp.norm(x[[0, 3]]) + 0.5 * cp.norm(x[[1, 4, 5]]),
    ),
    Case("one group", ez.GroupL2([[1]], 2.0), (2,), lambda x: 2 * cp.abs(x[1])),
    Case("huber", ez.Huber(1.5, 2.0), (4,), lambda x: cp.sum(cp.huber(x, 1.5))),
    Case(
        "huber per entry",
        ez.Huber([0.5, 2.0, 1.0, 3.0], W4),
        (4,),
        lambda x: sum(w / 2 * cp.huber(x[i], t) for i, (t, w) in enumerate(zip([0.5, 2.0, 1.0, 3.0], W4, strict=True))),
    ),
    Case("hinge", ez.Hinge(), (3,), lambda x: cp.sum(cp.pos(1 - x))),
    Case("hinge per entry", ez.Hinge(W4, C4), (4,), lambda x: W4 @ cp.pos(C4 - x)),
    Case("linear", ez.Linear(C4), (4,), lambda x: C4 @ x),
    Case("one slope", ez.Linear(-0.5), (4,), lambda x: -0.5 * cp.sum(x)),
    Case("quadratic", ez.Quadratic(PSD, Q3), (3,), lambda x: cp.sum_squares(ROOT @ x) / 2 + Q3 @ x),
    Case(
        "quadratic of full rank",
        ez.Quadratic(PSD + np.eye(3), 1.0),
        (3,),
        lambda x: cp.sum_squares(ROOT @ x) / 2 + cp.sum_squares(x) / 2 + cp.sum(x),
    ),
    Case("quadratic of nothing", ez.Quadratic([[0.0]]), (1,), lambda x: cp.Constant(0.0)),
    Case("max", ez.MaxEntry(1.5), (5,), lambda x: 1.5 * cp.max(x)),
    Case("max of one", ez.MaxEntry(), (1,), cp.sum),
    Case("max of nothing", ez.MaxEntry(0.0), (5,), lambda x: cp.Constant(0.0)),
    Case("variation", ez.TotalVariation1D(0.8), (6,), lambda x: 0.8 * unweighted_tv(x)),
    Case("strong variation", ez.TotalVariation1D(5.0), (6,), lambda x: 5 * unweighted_tv(x)),
    Case("variation of one", ez.TotalVariation1D(), (1,), lambda x: cp.Constant(0.0)),
    Case("variation of nothing", ez.TotalVariation1D(0.0), (6,), lambda x: cp.Constant(0.0)),
    Case("entropy", ez.NegativeEntropy(1.5), (3,), lambda x: -1.5 * cp.sum(cp.entr(x)), 5e-6),
    Case("entropy per entry", ez.NegativeEntropy([0.5, 2.0]), (2,), lambda x: -cp.entr(x) @ [0.5, 2.0], 5e-6),
    Case("barrier", ez.LogBarrier(0.8), (3,), lambda x: -0.8 * cp.sum(cp.log(x))),
    Case("nuclear", ez.NuclearNorm(1.2), (3, 2), lambda x: 1.2 * cp.normNuc(x)),
    Case("nuclear of a row", ez.NuclearNorm(), (1, 4), lambda x: cp.norm(x[0])),
    Case("scaled", ez.Scaled(ez.L2(1.5), 0.5), (3,), lambda x: 0.75 * cp.norm(x)),
    Case("scaled matrices", ez.Scaled(ez.NuclearNorm(), 2.0), (2, 2), lambda x: 2 * cp.normNuc(x)),
    Case("mirrored", ez.Precomposed(ez.MaxEntry(), -2.0), (4,), lambda x: cp.max(-2 * x)),
    Case("translated", ez.Translated(ez.L1(), C4), (4,), lambda x: cp.norm1(x - C4)),
    Case(
        "translated set", ez.Translated(ez.Indicator(Simplex()), 0.5), (3,), lambda x: (0, [x >= 0.5, cp.sum(x) == 2.5])
    ),
    Case("translated matrices", ez.Translated(ez.NuclearNorm(), TALL), (3, 2), lambda x: cp.normNuc(x - TALL)),
    Case("tilted", ez.Tilted(ez.L2(), C4), (4,), lambda x: cp.norm(x) + C4 @ x),
    Case("tilted entropy", ez.Tilted(ez.NegativeEntropy(), 1.0), (2,), lambda x: cp.sum(x) - cp.sum(cp.entr(x)), 5e-6),
    Case("conjugate of l1", ez.Conjugate(ez.L1(0.5)), (3,), lambda x: (0, [cp.abs(x) <= 0.5])),
    Case("conjugate of entropy", ez.Conjugate(ez.NegativeEntropy()), (2,), lambda x: cp.sum(cp.exp(x - 1)), 5e-6),
    Case("conjugate of nuclear", ez.Conjugate(ez.NuclearNorm(0.5)), (2, 3), lambda x: (0, [cp.sigma_max(x) <= 0.5])),
    Case("conjugate of a set", ez.Conjugate(ez.Indicator(Ball(2.0, norm=np.inf))), (3,), lambda x: 2 * cp.norm1(x)),
    Case("on a slice", ez.OnBlock(ez.L2(), slice(1, None, 2)), (5,), lambda x: cp.norm(x[[1, 3]])),
    Case("on indices", ez.OnBlock(ez.L1([1.0, 3.0]), [4, 0]), (5,), lambda x: cp.abs(x[4]) + 3 * cp.abs(x[0])),
    Case(
        "sum",
        Flat(ez.SeparableSum({"a": ez.L2(), "b": [ez.NuclearNorm(), ez.L1()]}), {"a": C4, "b": [TALL.T, C4[:1]]}),
        (11,),
        lambda x: cp.norm(x[:4]) + cp.normNuc(cp.reshape(x[4:10], (2, 3), order="C")) + cp.abs(x[10]),
    ),
]

# A batch, and its members one by one.
BATCHES: list[tuple[Any, list[Any], tuple[int, ...]]] = [
    (ez.Indicator(Box([[0.0], [1.0]], 2.0)), [ez.Indicator(Box(low, 2.0)) for low in (0.0, 1.0)], (1,)),
    (ez.L1([W4, C4**2]), [ez.L1(W4), ez.L1(C4**2)], (4,)),
    (ez.L2([0.0, 2.0, 1.0]), [ez.L2(w) for w in (0.0, 2.0, 1.0)], (3,)),
    (ez.SquaredL2([[1.0], [0.0]], C4), [ez.SquaredL2(w, C4) for w in (1.0, 0.0)], (4,)),
    (ez.ElasticNet([[1.0], [0.0]], W4), [ez.ElasticNet(w, W4) for w in (1.0, 0.0)], (4,)),
    (
        ez.GroupL2([[0, 2], [1]], [[1.0, 2.0], [3.0, 0.0]]),
        [ez.GroupL2([[0, 2], [1]], w) for w in ([1, 2], [3, 0])],
        (4,),
    ),
    (ez.Huber([[1.0], [0.1]], W4), [ez.Huber(t, W4) for t in (1.0, 0.1)], (4,)),
    (ez.Hinge(W4, [[1.0], [-1.0]]), [ez.Hinge(W4, m) for m in (1.0, -1.0)], (4,)),
    (ez.Linear([W4, C4]), [ez.Linear(W4), ez.Linear(C4)], (4,)),
    (ez.Quadratic([PSD, np.eye(3)], Q3), [ez.Quadratic(PSD, Q3), ez.Quadratic(np.eye(3), Q3)], (3,)),
    (ez.MaxEntry([0.0, 3.0]), [ez.MaxEntry(0.0), ez.MaxEntry(3.0)], (4,)),
    (ez.TotalVariation1D([0.0, 3.0]), [ez.TotalVariation1D(0.0), ez.TotalVariation1D(3.0)], (6,)),
    (ez.NegativeEntropy([[1.0], [0.1]]), [ez.NegativeEntropy(1.0), ez.NegativeEntropy(0.1)], (1,)),
    (ez.LogBarrier([[1.0], [0.1]]), [ez.LogBarrier(1.0), ez.LogBarrier(0.1)], (1,)),
    (ez.NuclearNorm([0.0, 3.0]), [ez.NuclearNorm(0.0), ez.NuclearNorm(3.0)], (2, 3)),
    (ez.Scaled(ez.NuclearNorm(), [1.0, 2.0]), [ez.NuclearNorm(w) for w in (1.0, 2.0)], (2, 2)),
    (ez.Precomposed(ez.MaxEntry([1.0, 2.0]), -1.0), [ez.Precomposed(ez.MaxEntry(w), -1.0) for w in (1, 2)], (3,)),
    (ez.Translated(ez.L2(), [W4, C4]), [ez.Translated(ez.L2(), W4), ez.Translated(ez.L2(), C4)], (4,)),
    (ez.Tilted(ez.L2([1.0, 2.0]), C4), [ez.Tilted(ez.L2(w), C4) for w in (1.0, 2.0)], (4,)),
    (ez.Conjugate(ez.L2([1.0, 2.0])), [ez.Conjugate(ez.L2(w)) for w in (1.0, 2.0)], (4,)),
    (ez.OnBlock(ez.L2([1.0, 2.0]), [2, 0]), [ez.OnBlock(ez.L2(w), [2, 0]) for w in (1.0, 2.0)], (4,)),
]

every = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_of_arrays = pytest.mark.parametrize("case", CASES[:-1], ids=lambda case: case.name)  # all but the sum
STEPS = st.floats(0.05, 20.0)
ENTRIES = st.integers(-4, 4).map(float) | st.floats(-10.0, 10.0, allow_subnormal=False)


def close(a: Any, b: Any, relative: float, scale: Any = 0.0) -> None:
    """a = b up to `relative`, measured against the larger of 1, |a|, |b| and `scale`."""
    assert np.isfinite(a).all(), a
    size = np.maximum(1.0, np.maximum(np.maximum(np.abs(a), np.abs(b)), scale))
    np.testing.assert_array_less(np.abs(np.subtract(a, b)) / size, relative)


def answers(function: Any, v: Any, step: Any) -> Any:
    return function.prox(v, step), function(v), function.conjugate(v)


TRACED = jax.jit(jax.vmap(answers, in_axes=(None, 0, 0)))


def check_optimal(case: Case, function: Any, v: Any, step: float) -> Any:
    """p = prox(v) exactly when z = (v − p)/step is a subgradient at p, that is f(p) + f*(z) = ⟨p, z⟩."""
    p = function.prox(v, step)
    z = (v - p) / step
    close(function(p) + function.conjugate(z), case.dot(p, z), 1e-8, case.norm(p) * case.norm(z))
    return p


def test_every_public_function_is_registered():
    public = {c for _, c in inspect.getmembers(ez, inspect.isclass) if issubclass(c, ez.Function)} - {ez.Function}
    inner = [case.function.function if isinstance(case.function, Flat) else case.function for case in CASES]
    assert {type(f) for f in inner} == public
    assert all(vars(c)["formula"] for c in public)  # each is computed to rounding, as far as what it is made of is
    assert {type(f) for f, _, _ in BATCHES} == public - {ez.Zero, ez.SeparableSum}  # these have no batch of parameters


@pytest.mark.some(4)
@every
@pytest.mark.parametrize("step", [0.3, 2.0])
def test_prox_is_what_a_solver_finds(case, step):
    for v in case.points(2):
        np.testing.assert_allclose(case.function.prox(v, step), case.slow_prox(v, step), atol=case.accuracy)


@every
def test_value_is_the_written_expression(case):
    inside = [case.function.prox(v) for v in case.points(2)]
    for x in [*inside, *np.abs(case.points(2)), *case.points(2), *case.points(2, scale=0.1)]:
        slow = case.slow_value(x)
        if np.isinf(slow):
            assert case.function(x) == np.inf
        else:
            close(case.function(x), slow, 1e-8)


@pytest.mark.some(4)
@every
@EXAMPLES
@given(data=st.data(), step=STEPS)
def test_prox_is_optimal_and_firmly_nonexpansive(case, data, step):
    v, w = (data.draw(hnp.arrays(float, case.shape, elements=ENTRIES)) for _ in range(2))
    moved = check_optimal(case, case.function, v, step) - case.function.prox(w, step)
    assert case.dot(moved, moved) <= case.dot(moved, v - w) + 1e-9 * (1 + case.norm(v - w) ** 2)


@every
@EXAMPLES
@given(data=st.data(), step=STEPS)
def test_no_pair_beats_fenchel_and_young(case, data, step):
    v, w = (data.draw(hnp.arrays(float, case.shape, elements=ENTRIES)) for _ in range(2))
    inside, slope = case.function.prox(v, step), (w - case.function.prox(w, step)) / step  # both of finite value
    for x, y in ((v, w), (inside, slope)):
        gap = case.function(x) + case.function.conjugate(y) - case.dot(x, y)
        assert gap >= -1e-9 * (1 + case.norm(x) * case.norm(y))


@pytest.mark.some(6)
@each_of_arrays
@EXAMPLES
@given(data=st.data(), step=STEPS)
def test_moreau_splits_a_point_in_two(case, data, step):
    v, conjugate = data.draw(hnp.arrays(float, case.shape, elements=ENTRIES)), ez.Conjugate(case.function)
    close(case.function.prox(v, step) + step * conjugate.prox(v / step, 1 / step), v, 1e-9)
    p = conjugate.prox(v, step)
    z = (v - p) / step
    close(case.function(z) + case.function.conjugate(p), case.dot(p, z), 1e-8, case.norm(p) * case.norm(z))


@pytest.mark.some(6)
@every
def test_a_batch_of_points_and_steps_is_a_loop(case):
    f, v, steps = case.function, case.points(3), np.array([0.1, 1.0, 5.0])
    np.testing.assert_allclose(f.prox(v, steps), [f.prox(*pair) for pair in zip(v, steps, strict=True)], atol=1e-12)
    for method in (f, f.conjugate):
        np.testing.assert_allclose(method(v), [method(row) for row in v], rtol=1e-12)
    if not isinstance(f, Flat):
        np.testing.assert_allclose(f.prox(v[0], steps), [f.prox(v[0], step) for step in steps], atol=1e-12)


@pytest.mark.some(6)
@pytest.mark.parametrize(("batch", "members", "shape"), BATCHES, ids=lambda x: type(x).__name__)
def test_a_batch_of_functions_is_a_loop(batch, members, shape):
    size = len(members)
    assert batch.batch_shape == (size,)
    v, steps = 2 * np.random.default_rng(size).normal(size=(size, *shape)), np.array([0.5, 1.0, 2.0])[:size]
    for method in ("__call__", "conjugate"):
        looped = [getattr(f, method)(row) for f, row in zip(members, v, strict=True)]
        np.testing.assert_allclose(getattr(batch, method)(v), looped, rtol=1e-12)
    for rows in (v, np.stack([v[0]] * size)):
        looped = [f.prox(row, step) for f, row, step in zip(members, rows, steps, strict=True)]
        np.testing.assert_allclose(batch.prox(rows, steps), looped, atol=1e-12)
    np.testing.assert_allclose(batch.prox(v[0], steps), looped, atol=1e-12)
    for i, (f, row, step) in enumerate(zip(members, v, steps, strict=True)):
        single = batch.member(i)
        assert (type(single), single.batch_shape) == (type(batch), ())
        np.testing.assert_allclose(single.prox(row, step), batch.prox(v, steps)[i], atol=1e-12)
        np.testing.assert_allclose((single(row), single.conjugate(row)), (f(row), f.conjugate(row)), rtol=1e-12)


def test_a_single_function_is_its_own_member():
    for case in CASES[:-1]:
        assert case.function.member(()) is case.function


@pytest.mark.some(6)
@every
def test_jit_and_vmap_give_the_same(case):
    f, v, steps = case.function, case.points(3), np.array([0.1, 1.0, 5.0])
    with jax.enable_x64(True):
        inside = TRACED(f, v, steps)
    looped = zip(*(answers(f, *pair) for pair in zip(v, steps, strict=True)), strict=True)
    for traced, eager in zip(inside, looped, strict=True):
        np.testing.assert_allclose(traced, eager, rtol=1e-12, atol=1e-12)
        assert np.asarray(eager).dtype == np.float64
    single = jax.jit(f.prox)(jnp.asarray(v[0], dtype=jnp.float32), 1.0)  # the user's precision
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, f.prox(v[0], 1.0), atol=1e-4)


@every
@pytest.mark.parametrize("step", [1e-6, 1e6])
def test_floats_at_their_edges(case, step):
    home = case.function.prox(np.zeros(case.shape), step)
    assert np.isfinite(home).all()
    for edge in EDGES:
        v = np.full(case.shape, 0.5)
        v.flat[0] = edge
        p, q = case.function.prox(v, step), case.function.prox(np.full(case.shape, edge), step)
        assert np.isfinite(p).all()
        assert case.norm(q - home) <= case.norm(np.full(case.shape, edge)) * (1 + 1e-9) + 1e-9 * (1 + case.norm(home))


@every
def test_nan_stays_nan_and_infinity_ends(case):
    v = case.points()
    v.flat[0] = np.nan
    assert np.isnan(case.function.prox(v).flat[0])
    assert np.isnan(case.function(v))
    for edge in (np.inf, -np.inf):
        v.flat[0] = edge
        case.function.prox(v)  # whatever it is, it ends


def test_the_prox_of_an_indicator_is_idempotent():
    for case in CASES:
        if isinstance(case.function, ez.Indicator):
            p = case.function.prox(case.points(), 0.3)
            assert case.function(p) == 0
            np.testing.assert_allclose(case.function.prox(p, 7.0), p, atol=1e-12)


@pytest.mark.parametrize("factor", [0.999, 1.001])
def test_a_wrong_prox_breaks_the_contract(factor):
    class Broken(ez.L1):
        def _prox(self, v: Any, step: Any) -> Any:
            return super()._prox(v, factor * step)

    case = Case("broken", Broken(1.5), (5,), lambda x: 1.5 * cp.norm1(x))
    v = case.points()
    with pytest.raises(AssertionError):
        check_optimal(case, case.function, v, 1.0)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(case.function.prox(v, 1.0), case.slow_prox(v, 1.0), atol=1e-6)
