"""A method as JSON and back: the same settings, the same run. And the bare form, which all step sizes share."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import epszero as ez
from epszero.methods import Method
from epszero.oracles import PrimalDual

pytestmark = pytest.mark.some(3)

RNG = np.random.default_rng(11)
ROWS = ez.Samples(RNG.normal(size=(30, 2)))
BOX = ez.sets.Box(-1, 1, dim=2)
ONE = ez.Inclusion(BOX, lambda x, xi: 2 * x - xi)  # x is one array
AGENTS = ez.Inclusion(ez.sets.Box(-np.ones((3, 2)), 1), lambda x, xi: 2 * x + jnp.mean(x, axis=0) - xi)  # one row each
COSTS = [lambda x, xi, i=i: jnp.sum((x[i] - xi) ** 2) + x[0] @ x[1] / 2 for i in range(2)]
PAIR = ez.Game(COSTS, [BOX, BOX])  # x is a list of blocks
NAMED = ez.Inclusion({"a": BOX, "b": BOX}, {"a": lambda x, xi: 2 * x["a"] - xi, "b": lambda x, xi: x["b"] + xi})
SHARED = ez.Game(COSTS, [BOX, BOX], shared=(np.ones((1, 4)), np.array([0.3])))

PLAIN = (ez.ForwardBackward, ez.ForwardBackwardForward, ez.Extragradient)
STEPS = {
    "none": (ONE, None),
    "number": (ONE, 0.1),
    "whole number": (ez.Inclusion(BOX, lambda x, xi: 0.2 * x - xi), 1),
    "number of JAX": (ONE, jnp.asarray(0.125)),
    "per agent": (AGENTS, np.array([0.1, 0.2, 0.15])),
    "per agent, as a list": (AGENTS, [0.1, 0.2, 0.15]),
    "per block": (PAIR, [0.1, 0.2]),
    "per named block": (NAMED, {"a": 0.1, "b": np.float64(0.2)}),
    "per row of every block": (ez.Inclusion([AGENTS.strategies.parts] * 2, lambda x, xi: x), np.array([0.1, 0.2, 0.3])),
}
CASES = {
    f"{cls.__name__}, {name}": (problem, cls(step)) for cls in PLAIN for name, (problem, step) in STEPS.items()
} | {
    "relaxed": (ONE, ez.ForwardBackward(0.1, relaxation=0.7)),
    "nested like strategies and multipliers": (SHARED, ez.Extragradient(PrimalDual([0.1, 0.1], 0.05))),
    "preconditioned": (SHARED, ez.PreconditionedForwardBackward()),
    "preconditioned, number": (SHARED, ez.PreconditionedForwardBackward(0.1, dual_step=0.3)),
    "preconditioned, per agent": (SHARED, ez.PreconditionedForwardBackward([0.1, 0.05], dual_step=[0.3])),
    "preconditioned, dual step alone": (SHARED, ez.PreconditionedForwardBackward(dual_step=0.3)),
    "with a memory, per block": (PAIR, ez.ForwardReflectedBackward([0.1, 0.2])),
    "with another setting": (PAIR, ez.GoldenRatio([0.1, 0.2], phi=1.3)),
    "with a whole number, around another": (PAIR, ez.Anderson(ez.Relaxed(ez.Extragradient([0.1, 0.2]), 0.5), memory=3)),
    "with a choice": (ez.Minimization(lambda x, xi: x @ x - xi @ x, BOX), ez.FastForwardBackward(0.1, restart=False)),
}


def point_of(problem):
    return problem.lifted(problem.start)


def settled(problem, method):
    with jax.enable_x64(True):
        return method.prepared(problem, point_of(problem))


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for one, other in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("case", CASES)
def test_a_method_comes_back_from_its_record(case):
    problem, method = CASES[case]
    record = method.to_record()
    assert settled(problem, method).to_record() == record  # what was asked for, not what it was settled to
    again = Method.from_record(json.loads(json.dumps(record, allow_nan=False)), point_of(problem))
    assert type(again) is type(method)
    assert again.to_record() == record
    assert_same(settled(problem, again), settled(problem, method))


def test_a_record_is_what_it_looks_like():
    assert ez.ForwardBackward(0.5).to_record() == {"method": "ForwardBackward", "step": 0.5, "relaxation": 1.0}
    assert ez.Extragradient(np.array([0.5, 1])).to_record() == {"method": "Extragradient", "step": [0.5, 1.0]}
    nested = ez.ForwardBackwardForward([0.5, 1]).to_record()["step"]
    assert nested == {"nested": "PyTreeDef([*, *])", "leaves": [0.5, 1.0], "shape": [2]}


@pytest.mark.long
def test_a_schedule_is_recorded_by_its_values():
    def schedule(k):
        return 0.2 - 0.1 / (k + 1.0)

    first = ez.solve(ONE, ROWS, ez.ForwardBackward(schedule, relaxation=0.9), iterations=5)
    asked = first.method
    assert asked.to_record() == {"method": "ForwardBackward", "step": {"schedule": None}, "relaxation": 0.9}
    with pytest.raises(LookupError, match="function of k"):
        Method.from_record(asked.to_record(), first.x)
    with jax.enable_x64(True):
        record = asked.to_record([schedule(jnp.asarray(k)) for k in range(6)])
    again = Method.from_record(json.loads(json.dumps(record)), first.x)
    assert again.to_record() == record
    np.testing.assert_array_equal(ez.solve(ONE, ROWS, again, iterations=5).x, first.x)


def test_a_schedule_within_a_wrapper_too():
    values = [0.1 + 0.1 / (k + 1.0) for k in range(6)]
    wrapped = ez.Relaxed(ez.ForwardBackward(lambda k: 0.1 + 0.1 / (k + 1.0)), 0.5)
    record = wrapped.to_record(values)
    assert record["of"]["step"] == {"schedule": values}
    again = Method.from_record(json.loads(json.dumps(record)), np.zeros(2))
    first = ez.solve(ONE, ROWS, wrapped, iterations=5)
    np.testing.assert_allclose(ez.solve(ONE, ROWS, again, iterations=5).x, first.x, atol=1e-15)


def test_a_schedule_by_block_too():
    values = [[0.1 + 0.01 * k, 0.2] for k in range(6)]
    record = ez.ForwardBackward(lambda k: [0.1 + 0.01 * k, jnp.asarray(0.2)]).to_record(values)
    again = Method.from_record(record, point_of(PAIR))
    assert again.to_record() == record
    assert settled(PAIR, again).description == "forward-backward, scheduled step"


def test_a_table_for_a_step_that_is_no_schedule_is_not_needed():
    assert ez.ForwardBackward(0.5).to_record([1.0]) == ez.ForwardBackward(0.5).to_record()


class Foreign(ez.ForwardBackward):
    pass


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (Foreign(0.1).to_record(), "Foreign is not a method of epszero"),
        ({"method": "Method"}, "Method is not a method"),
        ({"method": "State"}, "State is not a method"),
        (ez.ForwardBackward({"a": 0.1, "b": 0.2}).to_record(), "nested like"),
    ],
)
def test_what_cannot_be_rebuilt_is_said(record, said):
    with pytest.raises(LookupError, match=said):
        Method.from_record(record, np.zeros(2))


@pytest.mark.parametrize("cls", [*PLAIN, ez.PreconditionedForwardBackward])
def test_step_sizes_share_their_bare_form(cls):
    problem = SHARED if cls is ez.PreconditionedForwardBackward else PAIR
    one, other, by_block = (settled(problem, cls(step)) for step in (0.1, 0.05, [0.1, 0.05]))
    assert jax.tree.structure(one) != jax.tree.structure(other)
    assert jax.tree.structure(one.bare()) == jax.tree.structure(other.bare())
    assert jax.tree.structure(one.bare()) != jax.tree.structure(by_block.bare())


@pytest.mark.long
def test_the_bare_form_runs_as_the_method_does():
    method = settled(PAIR, ez.ForwardBackward(0.1, relaxation=0.8))
    with jax.enable_x64(True):
        x = [jnp.array([0.5, -0.5]), jnp.array([0.1, 0.2])]
        B = PAIR.oracle.average(ROWS.values, x)
        states = [m.step(PAIR.A, B, m.init(PAIR.A, B, x)) for m in (method, method.bare())]
    assert_same(*states)


def test_what_was_asked_for_is_not_printed():
    method = ez.ForwardBackward(0.1)
    assert "_asked" not in repr(settled(ONE, method))
    assert repr(method) == (
        "ForwardBackward(steps=Steps(sizes=0.1, schedule=None, how='', scale=None, outline=None), "
        "relaxation=1.0, description='forward-backward')"
    )
