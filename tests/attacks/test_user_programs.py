"""A user's own programs compute the same before and after ours, and ours the same before and after the user's.

Each attack draws some ordinary 32-bit programs of a user and one public call whose functions run the very same programs
(with the same NumPy arrays, the same jitted helpers) in float64. Results must be those of a process that knows only the
one or the other: types, weak types and every bit.
"""

import os
import subprocess
import sys
import threading

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

import epszero as ez
from epszero._double import mixes


class Things:
    """What a user has at hand: NumPy arrays of several kinds, JAX arrays, and functions over them."""

    def __init__(self):
        self.y = y = np.array([0.1, 0.7, 0.3])
        self.a = a = np.array([[2.0, 0.1, 0.3], [0.1, 3.0, 0.2], [0.3, 0.2, 4.0]]) / 3
        self.long, self.int, self.byte = (
            np.array([0, 2, 1]),
            np.array([0, 2, 1], np.int32),
            np.array([2, 0, 1], np.uint8),
        )
        self.yes, self.single = np.array([True, False, True]), np.array([0.1, 0.2, 0.3], np.float32)
        self.complex, self.number, self.point = np.array([0.1 + 0.2j, 1, 2j]), np.float64(0.3), np.array(0.3)
        self.x, self.places = jnp.array([0.1, 0.7, 0.3], jnp.float32), jnp.array([0, 2, 1], jnp.int32)
        self.helper = jax.jit(lambda v: jnp.sin(v) * y + a @ v)
        self.static = jax.jit(lambda v, n: v**n + y, static_argnums=1)
        self.held = jax.checkpoint(lambda v: jnp.tanh(v * y))
        self.soft = jax.custom_jvp(lambda v: jnp.log1p(jnp.exp(v)) * y)
        self.soft.defjvps(lambda t, _, v: jax.nn.sigmoid(v) * y * t)
        self.square = jax.custom_vjp(lambda v: v * v * y)
        self.square.defvjp(lambda v: (v * v * y, v), lambda v, g: (2 * v * y * g,))


def updates(d, kind):
    places = (d.long, d.int, d.byte, d.places)
    return [getattr(jnp.zeros(3).at[where], kind)(d.y) for where in places] + [jnp.zeros(3).at[d.yes].set(2.5)]


PROGRAMS = {
    **{f"at[…].{kind}": lambda d, kind=kind: updates(d, kind) for kind in ("add", "set", "max", "multiply")},
    "take": lambda d: [
        jnp.take(d.y, d.long),
        jnp.take(d.x, d.byte),
        d.x[d.long],
        d.x[d.int],
        jnp.asarray(d.a)[d.places],
    ],
    "sort": lambda d: [jnp.sort(d.y), jnp.argsort(d.y), lax.top_k(d.x, 2), jnp.argmax(d.y), jnp.lexsort((d.y, d.long))],
    "cumulate": lambda d: [jnp.cumsum(d.y), jnp.cumprod(d.long), jnp.cumsum(d.yes), lax.cummax(d.x), jnp.diff(d.y)],
    "make": lambda d: [
        jnp.linspace(0, 1, 7),
        jnp.arange(3),
        jnp.full(2, 0.1),
        jnp.asarray(d.y),
        jnp.zeros_like(d.long),
    ],
    "nn": lambda d: [jax.nn.one_hot(d.long, 3), jax.nn.softmax(d.y), jax.nn.gelu(d.y), jax.nn.logsumexp(d.y)],
    "where": lambda d: [
        jnp.where(d.yes, d.y, 0),
        jnp.clip(d.y, 0, 0.5),
        jnp.clip(d.long, 0, 1),
        jnp.nonzero(d.yes, size=2),
    ],
    "jit": lambda d: [jax.jit(lambda v: v * d.y)(d.x), jax.jit(lambda: d.long)(), d.helper(d.x), d.static(d.x, 2)],
    "vmap": lambda d: [jax.vmap(lambda row: row @ d.y)(d.a), jax.vmap(d.helper)(jnp.asarray(d.a))],
    "grad": lambda d: [jax.grad(lambda v: jnp.sum(d.helper(v)))(d.x), jax.hessian(lambda v: jnp.sum(v**3 * d.y))(d.x)],
    "jvp": lambda d: [
        jax.jvp(d.helper, (d.x,), (d.x,)),
        jax.linearize(d.helper, d.x)[1](d.x),
        jax.jacfwd(d.helper)(d.x),
    ],
    "scan": lambda d: [lax.scan(lambda c, row: (c + row @ d.y, c), 0.0, jnp.asarray(d.a))],
    "loops": lambda d: [
        lax.fori_loop(0, 3, lambda k, c: c + d.y * k, jnp.zeros(3)),
        lax.while_loop(lambda c: jnp.sum(c) < 9, lambda c: c + d.y, jnp.zeros(3)),
        lax.cond(d.x[0] > 0, lambda v: v * d.y, lambda v: v - d.y, d.x),
    ],
    "random": lambda d: [
        *(jax.random.PRNGKey(3), jax.random.split(jax.random.PRNGKey(3)), jax.random.normal(jax.random.key(1), (3,))),
        *(jax.random.permutation(jax.random.key(1), d.y), jax.random.choice(jax.random.key(1), d.y, (2,))),
    ],
    "linalg": lambda d: [
        jnp.linalg.solve(d.a, d.y),
        jnp.linalg.cholesky(d.a),
        jnp.linalg.eigh(d.a),
        jnp.linalg.inv(d.a),
    ],
    "products": lambda d: [jnp.einsum("ij,j", d.a, d.y), d.a @ d.x, jnp.outer(d.y, d.long), jnp.kron(d.y, d.y)],
    "fft": lambda d: [jnp.fft.fft(d.y), jnp.fft.ifft(d.complex), jnp.convolve(d.y, d.y)],
    "segments": lambda d: [
        jax.ops.segment_sum(d.y, d.long, 3),
        jnp.bincount(d.long, length=4),
        jnp.histogram(d.y, bins=3),
    ],
    "custom": lambda d: [
        *(d.soft(d.x), jax.jvp(d.soft, (d.x,), (d.x,)), d.square(d.x), jax.grad(lambda v: jnp.sum(d.square(v)))(d.x)),
        *(d.held(d.x), jax.grad(lambda v: jnp.sum(d.held(v)))(d.x)),
    ],
    "search": lambda d: [
        jnp.interp(0.5, d.y, d.y),
        jnp.searchsorted(d.y, 0.2),
        jnp.unique(d.long, size=3),
        jnp.median(d.y),
    ],
    "powers": lambda d: [d.x**2, d.y**d.x, jnp.power(d.long, 2), 2**d.places, lax.integer_pow(d.x, 3), d.places / 2],
    "slices": lambda d: [lax.dynamic_slice(d.x, (1,), (2,)), jnp.roll(d.y, 1), jnp.pad(d.y, 1), jnp.stack([d.y, d.x])],
    "means": lambda d: [jnp.mean(d.y), jnp.var(d.long), jnp.sum(d.yes), jnp.cov(d.a), jnp.quantile(d.y, 0.2)],
    "tree": lambda d: [
        jax.tree.map(lambda v: v * d.y, {"a": d.x, "b": [d.x]}),
        jax.flatten_util.ravel_pytree([d.x])[0],
    ],
    "scalars": lambda d: [
        d.x * d.number,
        d.x * d.point,
        d.x * 1,
        1j * d.x,
        jnp.float32(0.1) + d.number,
        lax.add(d.x, d.single),
    ],
}


def cost_of(program, d):
    """The loss ‖x − y‖², which runs the program without leaning on it."""

    def loss(x):
        made = [jnp.sum(jnp.real(leaf)) for leaf in jax.tree.leaves(program(d)) if leaf.dtype.kind in "fiuc"]
        return jnp.sum((x - d.y) ** 2) + 0.0 * sum(made)

    return loss


def problem_of(program, d):
    return ez.Minimization(cost_of(program, d), ez.sets.Box(d.y - 5, d.y + 5))


def _samples(program, d):
    loss = cost_of(program, d)
    return ez.Minimization(lambda x, xi: loss(x) + xi @ x, ez.sets.Box(d.y - 5, d.y + 5)), ez.Samples(
        np.linspace(-1, 1, 24).reshape(8, 3) * d.y, support=ez.sets.Box(-d.y, d.y)
    )


def _certify(program, d):
    problem, samples = _samples(program, d)
    return ez.verify(ez.certify(ez.solve(problem, samples)).to_json(), problem, samples)


def _many(program, d):
    problem, samples = _samples(program, d)
    return ez.certify_many(ez.solve_many(problem, [samples, samples.take(4, seed=0)]))


def _plan(program, d):
    problem, samples = _samples(program, d)
    return ez.plan(problem, size=8, samples=samples)


def _game(program, d):
    loss = cost_of(program, d)
    box = ez.sets.Box(d.y - 5, d.y + 5)
    return ez.solve(ez.Game([lambda x: loss(x[0]) + 0.1 * x[0] @ x[1], lambda x: loss(x[1])], [box, box]))


def _sets(program, d):
    program(d)
    box, norm = ez.sets.Polyhedron(d.a, d.y), ez.functions.L1(d.y)
    return box.project(d.y), box.support(d.a[0]), box.contains(d.y), norm.prox(d.y, 0.1), norm(d.y)


CALLS = {
    "solve": lambda program, d: ez.solve(problem_of(program, d)),
    "audit": lambda program, d: ez.audit(problem_of(program, d)),
    "certify": _certify,
    "many": _many,
    "plan": _plan,
    "report": lambda program, d: ez.report(ez.solve(problem_of(program, d))),
    "game": _game,
    "sets": _sets,
}


def outcome(program, d):
    """Types, shapes and bits of all that a program makes."""
    leaves = jax.tree.leaves(program(d))
    return [(str(leaf.dtype), leaf.shape, leaf.weak_type, np.asarray(leaf).tobytes()) for leaf in leaves]


def in_a_thread(function):
    """What a function returns in a thread of its own, where JAX's settings are those of the process."""
    found = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


REFERENCES = {}


def reference(name, wide=False):
    """The outcome for things that nobody else has touched."""
    with jax.enable_x64(wide):
        return REFERENCES.setdefault((name, wide), outcome(PROGRAMS[name], Things()))


@pytest.mark.long
@budget(8)
@given(
    st.sampled_from(sorted(PROGRAMS)),
    st.sampled_from(sorted(CALLS)),
    st.booleans(),
    st.sampled_from(["here", "in a thread"]),
)
def test_a_user_s_programs_are_not_touched_by_ours_nor_ours_by_them(name, call, first, where):
    program, d = PROGRAMS[name], Things()
    expected = reference(name)
    compiled = jax.jit(lambda: program(d))
    if first:
        assert outcome(program, d) == expected
        kept = outcome(lambda _: compiled(), d)
    run = in_a_thread if where == "in a thread" else lambda function: function()
    answer = run(lambda: CALLS[call](program, d))
    if isinstance(answer, ez.Solution) and call != "game":
        assert np.max(np.abs(answer.x - d.y)) < 1e-8
    assert outcome(program, d) == expected
    if first:
        assert outcome(lambda _: compiled(), d) == kept
    with jax.enable_x64(True):
        assert outcome(program, d) == reference(name, wide=True)
    assert outcome(program, d) == expected
    assert outcome(program, Things()) == expected


@pytest.mark.long
@budget(3)
@given(st.sampled_from(sorted(PROGRAMS)), st.sampled_from(["solve", "certify", "sets"]))
def test_a_user_in_64_bits_is_not_touched_either(name, call):
    program, d = PROGRAMS[name], Things()
    expected = reference(name, wide=True)
    with jax.enable_x64(True):
        CALLS[call](program, d)
        assert outcome(program, d) == expected
    assert outcome(program, d) == reference(name)


@pytest.mark.long
def test_an_update_at_indices_works_after_a_solve():
    idx, y = np.array([0, 1]), np.array([0.1, 0.2])
    ez.solve(ez.Minimization(lambda x: jnp.sum((jnp.zeros(2).at[idx].add(x) - y) ** 2), ez.sets.Box(-1.0, 1.0, dim=2)))
    found = jnp.zeros(2).at[idx].add(y)
    assert found.dtype == jnp.float32
    assert np.array_equal(found, np.float32(y))


def test_data_that_a_32_bit_program_holds_are_not_rounded_in_ours():
    a, b = np.array([[0.3, 0.1], [0.1, 0.7]]), np.array([0.1, 0.3])
    mine = jax.jit(lambda x: a @ x - b)
    mine(jnp.zeros(2))
    solution = ez.solve(ez.VariationalInequality(lambda x: a @ x - b, ez.sets.Box(-9.0, 9.0, dim=2)), tol=1e-13)
    assert np.max(np.abs(solution.x - np.linalg.solve(a, b))) < 1e-12
    assert mine(jnp.zeros(2)).dtype == jnp.float32


def test_the_data_of_a_set_that_a_32_bit_program_holds_are_not_rounded():
    lo = np.array([0.1, 0.7])
    mine = jax.jit(lambda x: jnp.maximum(x, lo))
    mine(jnp.zeros(2))
    assert np.array_equal(ez.sets.Box(lo, lo + 1).project(np.zeros(2)), lo)
    assert np.array_equal(mine(jnp.zeros(2)), np.float32(lo))


def test_jax_keeps_the_precisions_apart():
    assert not mixes()


@pytest.mark.parametrize("kind", [np.float64, np.int64, np.complex128, np.float32])
def test_one_array_is_one_constant_of_a_program(kind):
    """As JAX has it: a large array that is used twice is held once."""
    array = np.ones(3, kind)
    for wide in (False, True):
        with jax.enable_x64(wide):
            traced = jax.make_jaxpr(lambda: (lax.neg(array), lax.sign(array)))()
        assert len(traced.consts) == 1


CLEAN = """
import jax
import epszero._double
from jax._src import xla_bridge
assert not xla_bridge._backends, "no device is asked for by an import"
"""


@pytest.mark.long
def test_an_import_starts_no_device():
    done = subprocess.run(
        [sys.executable, "-c", CLEAN], env=dict(os.environ), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
