"""Wrong input gets a sentence that names the argument; never a traceback of JAX's or NumPy's, and no warning.

Each attack puts one wrong thing into one argument of one public call. What is no mistake there may pass.
"""

import datetime
import json
import math
import re
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez

BOX = ez.sets.Box(-1.0, 1.0, dim=2)
DATA = ez.Samples(np.random.default_rng(0).uniform(-1, 1, (8, 2)), support=BOX)
LEAST = ez.Minimization(lambda x, xi: jnp.sum((x - xi) ** 2), BOX)
COSTS = [lambda x: x[0] @ x[0] + 0.1 * x[0] @ x[1], lambda x: x[1] @ x[1]]


def answers():
    """What later calls are asked about, made once."""
    if not ANSWERS:
        solution = ez.solve(LEAST, DATA)
        ANSWERS.update(solution=solution, certificate=ez.certify(solution))
    return ANSWERS


ANSWERS = {}
WRONG = {
    "None": None,
    "NaN": math.nan,
    "inf": math.inf,
    "minus inf": -math.inf,
    "text": "nonsense",
    "no text": "",
    "no list": [],
    "no dict": {},
    "no array": np.zeros(0),
    "no rows": np.zeros((0, 2)),
    "complex": 1 + 2j,
    "complex array": np.array([1j, 2.0]),
    "huge": 1e308,
    "tiny": 5e-324,
    "negative": -1.0,
    "half": 0.5,
    "long int": 10**30,
    "object": object(),
    "objects": np.array([object(), None]),
    "cube": np.ones((2, 2, 2)),
    "long": np.ones(7),
    "NaN array": np.array([1.0, math.nan]),
    "ragged": [[1.0, 2.0], [3.0]],
    "Nones": [None, None],
    "class": ez.sets.Box,
    "function": lambda *_: None,
    "function of text": lambda _: "a",
    "true": True,
    "bytes": b"ab",
    "date": datetime.date(2020, 1, 1),
    "set": BOX,
    "set and None": [BOX, None],
    "L1": ez.functions.L1(1.0),
    "module": np,
    "masked": np.ma.array([1.0, 2.0], mask=[False, True]),
    "key": jax.random.key(0),
    "python set": {1, 2},
    "dict of None": {"a": None},
    "records": np.zeros(2, [("a", float)]),
}


def game(**changed):
    return ez.Game(**{"costs": COSTS, "strategies": [BOX, BOX], **changed})


CALLS = {
    "solve": (
        lambda **given: ez.solve(**{"problem": LEAST, "samples": DATA, "iterations": 3, **given}),
        ("problem", "samples", "method", "x0", "iterations", "tol", "holdout", "throw", "trace"),
    ),
    "solve_many": (
        lambda **given: ez.solve_many(**{"problem": LEAST, "many_samples": [DATA], "iterations": 3, **given}),
        ("problem", "many_samples", "method", "x0", "iterations", "tol"),
    ),
    "certify": (
        lambda **given: ez.certify(**{"solution": answers()["solution"], **given}),
        ("solution", "delta", "using"),
    ),
    "certify_many": (
        lambda **given: ez.certify_many(**{"solutions": [answers()["solution"]], **given}),
        ("solutions", "delta", "using"),
    ),
    "audit": (
        lambda **given: ez.audit(**{"problem": LEAST, "samples": DATA, "budget": 0.01, **given}),
        ("problem", "samples", "method", "x0", "budget", "seed"),
    ),
    "plan": (
        lambda **given: ez.plan(**{"problem": LEAST, "target": 0.5, "samples": DATA, **given}),
        ("problem", "target", "delta", "of", "samples", "bounds"),
    ),
    "verify": (
        lambda **given: ez.verify(
            **{"record": answers()["certificate"].to_json(), "problem": LEAST, "samples": DATA, **given}
        ),
        ("record", "problem", "samples"),
    ),
    "report": (lambda parts: ez.report(parts, title="a"), ("parts",)),
    "Samples": (lambda **given: ez.Samples(**{"values": np.ones((3, 2)), **given}), ("values", "support")),
    "take": (lambda **given: DATA.take(**{"n": 2, "seed": 0, **given}), ("n", "seed")),
    "Minimization": (
        lambda **given: ez.Minimization(**{"loss": lambda x: x @ x, "regularizer": BOX, **given}),
        ("loss", "regularizer", "declared"),
    ),
    "VariationalInequality": (
        lambda **given: ez.VariationalInequality(**{"F": lambda x: x, "over": BOX, **given}),
        ("F", "over", "declared"),
    ),
    "over": (lambda over: ez.VariationalInequality(lambda x: x, [BOX, over]), ("over",)),
    "nested over": (lambda over: ez.VariationalInequality(lambda x: x, {"a": BOX, "b": [BOX, over]}), ("over",)),
    "Inclusion": (lambda **given: ez.Inclusion(**{"A": BOX, "B": lambda x: x, **given}), ("A", "B")),
    "Game": (game, ("costs", "strategies", "shared", "pseudogradient", "declared", "picture")),
    "strategies": (lambda strategies: game(strategies=[BOX, strategies]), ("strategies",)),
    "costs": (lambda costs: game(costs=[COSTS[0], costs]), ("costs",)),
    "shared": (lambda b: game(shared=([np.eye(2)] * 2, b)), ("b",)),
    "several shared": (lambda shared: game(shared=[lambda x: x[0] @ x[0] - 1.0, shared]), ("shared",)),
    "AggregativeGame": (
        lambda **given: ez.AggregativeGame(
            **{"cost": lambda x, m, p: p * x @ x + 0.1 * m @ x, "parameters": np.ones(2), "strategies": BOX, **given}
        ),
        ("cost", "parameters", "strategies", "agents", "shared"),
    ),
    "AffineConstraint": (
        lambda **given: ez.AffineConstraint(**{"G": [np.eye(2)] * 2, "b": np.ones(2), **given}),
        ("G", "b"),
    ),
    "declare": (ez.declare, ("mu", "kappa", "theta", "M", "R", "monotone", "gradient", "support", "independent")),
    "ForwardBackward": (ez.ForwardBackward, ("step", "relaxation")),
    "project": (BOX.project, ("v",)),
    "direction": (BOX.support, ("direction",)),
    "prox": (lambda **given: ez.functions.L1(1.0).prox(**{"v": np.ones(2), "step": 1.0, **given}), ("v", "step")),
    "Box": (lambda **given: ez.sets.Box(**{"lower": 0.0, "upper": 1.0, **given}), ("lower", "upper", "dim")),
    "Ball": (ez.sets.Ball, ("radius", "center", "norm", "dim")),
    "Polyhedron": (
        lambda **given: ez.sets.Polyhedron(**{"G": np.eye(2), "h": np.ones(2), **given}),
        ("G", "h"),
    ),
    "Product": (lambda sets: ez.sets.Product([BOX, sets]), ("sets",)),
    "SeparableSum": (lambda functions: ez.functions.SeparableSum([ez.functions.L1(1.0), functions]), ("functions",)),
    "Quadratic": (lambda **given: ez.functions.Quadratic(**{"P": np.eye(2), **given}), ("P", "q")),
    "ev_charging": (ez.models.ev_charging, ("vehicles", "hours", "cap", "need", "seed")),
    "cournot": (ez.models.cournot, ("firms", "markets", "slope", "marginal")),
}
SAFE = {"certify_many", "declare", "Samples"}  # whose sentences speak of a neighbour, of a word, or of a row
PAIRS = [(call, argument) for call, (_, arguments) in CALLS.items() for argument in arguments]


@pytest.mark.long
@budget(150)
@given(st.sampled_from(PAIRS), st.sampled_from(sorted(WRONG)))
def test_wrong_input_has_a_sentence(pair, wrong):
    (call, argument), thing = pair, WRONG[wrong]
    function, _ = CALLS[call]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", ez.ConvexityWarning)
        try:
            function(**{argument: thing})
        except ez.SolveError:
            pass
        except ez.InputError as error:
            said = str(error)
            assert said.strip().endswith((".", "?")), said
            assert call in SAFE or argument.rstrip("s") in said or "samples" in said or "dim" in said, said


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (lambda: ez.VariationalInequality(lambda x: x, [BOX, None]), r"over\[1\]"),
        (lambda: ez.VariationalInequality(lambda x: x, {"a": BOX, "b": None}), r"over\['b'\]"),
        (lambda: ez.VariationalInequality(lambda x: x, [BOX, []]), r"over\[1\]"),
        (lambda: ez.Minimization(lambda x: x[0] @ x[0], [BOX, None]), r"regularizer\[1\]"),
        (lambda: ez.Inclusion([BOX, None], lambda x: x), r"A\[1\]"),
        (lambda: game(strategies=[BOX, None]), r"strategies\[1\]"),
        (lambda: game(strategies=[BOX, [BOX, None]]), r"strategies\[1\]\[1\]"),
        (lambda: ez.sets.Product([BOX, None]), r"sets\[1\]"),
        (lambda: ez.functions.SeparableSum([ez.functions.L1(1.0), None]), r"functions\[1\]"),
        (
            lambda: ez.AggregativeGame(lambda x, _, p: p["a"] * x @ x, {"a": np.ones(2), "b": [1.0, None]}, BOX),
            "parameters",
        ),
        (lambda: ez.sets.Box([[1.0, 2.0], [3.0]], 4.0), "lower"),
        (lambda: BOX.project("nonsense"), "v:"),
        (lambda: BOX.project(np.array([1j, 2.0])), "v:"),
        (lambda: BOX.project(np.ma.array([1.0, 2.0], mask=[False, True])), "v:"),
        (lambda: ez.plan(LEAST, 0.5, samples=DATA, bounds="nonsense"), "bounds"),
        (lambda: ez.solve(LEAST, DATA, x0=np.zeros((0, 2))), "x0"),
        (lambda: ez.solve(LEAST, DATA, tol=[]), "tol"),
    ],
)
def test_what_is_missing_is_named(made, name):
    with pytest.raises(ez.InputError, match=name):
        made()


# -- derivatives of the user's making ----------------------------------------------------------------------------------


@jax.custom_vjp
def squared(v):
    return jnp.sum(v * v)


squared.defvjp(lambda v: (squared(v), v), lambda v, g: (2 * v * g,))  # as JAX's manual has it: it calls itself


@jax.custom_vjp
def outside(v):
    like = jax.ShapeDtypeStruct(v.shape, v.dtype)
    return jnp.sum(jax.pure_callback(lambda a: np.asarray(a) ** 2, like, v, vmap_method="sequential"))


outside.defvjp(lambda v: (outside(v), v), lambda v, g: (2 * v * g,))

SQUARES = {
    "custom_vjp": squared,
    "jit of it": jax.jit(squared),
    "in a scan": lambda v: jax.lax.scan(lambda total, _: (total + squared(v) / 3, None), 0.0, None, length=3)[0],
    "custom_jvp": jax.custom_jvp(lambda v: jnp.sum(v * v)),
    "checkpoint": jax.checkpoint(lambda v: jnp.sum(v * v)),
    "a callback with a derivative": outside,
}
SQUARES["custom_jvp"].defjvps(lambda tangent, _, v: 2 * v @ tangent)


@pytest.mark.some(3)
@pytest.mark.parametrize("name", sorted(SQUARES))
def test_a_loss_with_a_derivative_of_its_own_is_solved_and_certified(name):
    square = SQUARES[name]
    problem = ez.Minimization(lambda x, xi: square(x - xi), BOX)
    solution = ez.solve(problem, DATA)
    assert np.max(np.abs(solution.x - np.mean(DATA.values, axis=0))) < 1e-6
    assert ez.certify(solution).verdict in ("guaranteed", "conditional")
    assert ez.audit(problem, DATA, budget=0.01).constants
    assert ez.plan(problem, size=9, samples=DATA).rows


@pytest.mark.long
def test_games_of_such_costs_too():
    costs = [lambda x: squared(x[0]) + 0.1 * x[0] @ x[1], lambda x: squared(x[1] - 0.5)]
    solution = ez.solve(ez.Game(costs, [BOX, BOX], ez.ConvexConstraint(lambda x: squared(x[0]) - 4.0)))
    assert np.max(np.abs(solution.x[1] - 0.5)) < 1e-6
    assert solution.check_equilibrium()


def test_a_callback_without_a_derivative_has_a_sentence():
    plain = lambda v: jnp.sum(jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct(v.shape, v.dtype), v))  # noqa: E731
    problem = ez.Minimization(lambda x, xi: plain(x - xi), BOX)
    for call in (ez.solve, ez.audit, lambda *given: ez.plan(given[0], size=9, samples=given[1])):
        with pytest.raises(ez.InputError, match="loss: cannot be evaluated .*allbacks do not support"):
            call(problem, DATA)
    field = ez.VariationalInequality(lambda x: jax.pure_callback(lambda a: a, x, x), BOX)
    with pytest.raises(ez.InputError, match='F: .*vmap_method="sequential"'):
        ez.solve(field)
    with pytest.raises(ez.InputError, match="shared: its derivative cannot be computed"):
        game(shared=lambda x: plain(x[0]) - 4.0)


# -- domains at the ends of float64 ------------------------------------------------------------------------------------

FIELDS = {
    "affine": lambda x, xi: 2 * x - xi,
    "bent": lambda x, xi: x + jnp.tanh(x - xi),
    "cubic": lambda x, xi: x**3 - xi,
}
NOT_A_NUMBER = re.compile(r"(?<![a-z])(nan|inf|infinity)(?![a-z])", re.IGNORECASE)


@budget(4)
@given(
    st.sampled_from(sorted(FIELDS)),
    st.sampled_from([1e-300, 1e-160, 1e100, 1e155, 1e200, 1e308, 1.7e308]),
    st.sampled_from([0.0, 1.0]),
)
def test_an_audit_calls_nothing_a_number_that_is_none(name, radius, centre):
    problem = ez.VariationalInequality(FIELDS[name], ez.sets.Box(centre - radius, centre + radius, dim=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            audit = ez.audit(problem, DATA, budget=0.01)
        except ez.InputError:
            return
    for text in (str(audit), audit.to_json()):
        assert not NOT_A_NUMBER.search(text), text
    assert json.loads(audit.to_json())["assumptions"]["compact domain"]["status"] != "violated"


def test_an_audit_of_a_box_beyond_the_squares_of_float64():
    audit = ez.audit(ez.VariationalInequality(FIELDS["affine"], ez.sets.Box(-1e200, 1e200, dim=2)), DATA)
    assert audit.constants["diameter"].value == pytest.approx(2e200 * math.sqrt(2))
    wide = ez.audit(ez.VariationalInequality(FIELDS["affine"], ez.sets.Box(-1e308, 1e308, dim=2)), DATA)
    assert "more than float64 can hold" in str(wide)
