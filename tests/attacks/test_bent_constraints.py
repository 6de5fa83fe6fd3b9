"""Shared constraints that are not what they are passed for: bends that few points show, pits, jumps.

Two agents with one number each, so that what each could save alone, within the constraint, is found on a grid.
A saving that is certified, unless it leans on somebody's word for the constraint, must not be less.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budget import budget
from hypothesis import given
from hypothesis import strategies as st

import epszero as ez

SET = ez.sets.Box(np.zeros(1), 4 * np.ones(1))
GRID = np.linspace(0.0, 4.0, 4001)
COSTS = [lambda x: (x[0][0] - 3) ** 2 + 0.1 * x[0][0] * x[1][0], lambda x: (x[1][0] - 3) ** 2 + 0.1 * x[0][0] * x[1][0]]


def certified(shared):
    game = ez.Game(COSTS, [SET, SET], shared=shared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ez.ConvexityWarning)
        solution = ez.solve(game, throw=False)
    return solution, ez.certify(solution)


def savings(h, x):
    """Of each agent alone, among strategies that violate the constraint no more than x does."""
    found = []
    with jax.enable_x64(True):
        for i in range(2):
            points = [np.tile(own, (len(GRID), 1)) for own in x]
            points[i] = GRID[:, None]
            allowed = np.asarray(jax.vmap(lambda a, b: h([a, b]))(*points)) <= max(float(h(x)), 0.0)
            costs = np.asarray(jax.vmap(lambda a, b, i=i: COSTS[i]([a, b]))(*points))
            found.append(float(COSTS[i](x)) - np.min(costs[allowed], initial=np.inf))
    return np.array(found)


def holds_up(h, shared):
    solution, found = certified(shared)
    if found.exploitability is None:
        assert found.notes["exploitability"]
        return
    (word,) = [one for one in found.leans_on if one.what == "shared constraints convex"]
    if word.provenance != "declared":
        assert (found.exploitability >= savings(h, solution.x) - 1e-6).all()


places = st.floats(0.3, 3.7).map(lambda v: round(v, 2))


@pytest.mark.long
@budget(3)
@given(places, st.floats(1.0, 30.0), st.sampled_from(["max", "where", "relu", "smooth"]))
def test_a_function_passed_as_linear(at, size, kind):
    bend = {
        "max": lambda v: jnp.maximum(v - at, 0.0),
        "where": lambda v: jnp.where(v > at, v - at, 0.0),
        "relu": lambda v: jax.nn.relu(v - at),
        "smooth": lambda v: jax.nn.softplus(20 * (v - at)) - jax.nn.softplus(-20 * at),
    }[kind]

    def G(x):
        return x[0] + x[1] - size * bend(x[0])

    try:
        holds_up(lambda x: G(x)[0] - 4, (G, [4.0]))
    except ez.InputError as error:
        assert "G must be linear" in str(error)  # noqa: PT017  (either is right)


@pytest.mark.long
@budget(3)
@given(places, places, st.floats(0.5, 12.0), st.floats(3.0, 60.0))
def test_a_convex_function_with_a_pit(at, beside, depth, narrow):
    def h(x):
        pit = depth * jnp.exp(-narrow * ((x[0][0] - at) ** 2 + (x[1][0] - beside) ** 2))
        return x[0][0] ** 2 + x[1][0] ** 2 - 9 - pit

    holds_up(h, h)


def test_a_bend_that_few_points_miss_is_not_guaranteed():
    def G(x):
        return x[0] + x[1] - 30 * jnp.maximum(x[0] - 3.5, 0.0)

    try:
        _, found = certified((G, [4.0]))
    except ez.InputError:
        return
    assert found.verdict is not ez.certificates.Verdict.GUARANTEED or found.exploitability is None


@pytest.mark.long
def test_a_pit_is_not_guaranteed():
    _, found = certified(lambda x: x[0][0] + x[1][0] - 4 - 3 * jnp.exp(-200 * (x[0][0] - 2.9) ** 2))
    assert found.verdict is not ez.certificates.Verdict.GUARANTEED or found.exploitability is None


@pytest.mark.some(6)
@pytest.mark.parametrize(
    ("shared", "provenance"),
    [
        ((np.ones((1, 2)), [4.0]), "exact"),
        ((lambda x: x[0] + x[1], [4.0]), "exact"),
        (lambda x: x[0][0] + x[1][0] - 4, "exact"),
        (lambda x: x[0] @ x[0] + x[1] @ x[1] - 9, "exact"),
        (lambda x: jnp.exp(x[0][0]) + x[1][0] - 9, "verified"),
        (lambda x: jnp.maximum(x[0][0], x[1][0]) - 2, None),
        (lambda x: jnp.where(x[0][0] > 2, 1.0, -1.0), None),
    ],
    ids=["matrix", "linear function", "affine h", "ball", "exp", "kink", "jump"],
)
def test_the_constraint_stands_among_what_is_leant_on(shared, provenance):
    _, found = certified(shared)
    words = [one for one in found.leans_on if one.what == "shared constraints convex"]
    assert [str(one.provenance) for one in words] == ([] if provenance is None else [provenance]), found
    assert (found.exploitability is None) == (provenance is None)


@pytest.mark.long
def test_a_word_for_the_constraint_makes_it_conditional():
    game = ez.Game(
        COSTS, [SET, SET], shared=lambda x: jnp.maximum(x[0][0], x[1][0]) - 2, declared=ez.declare(convex=True)
    )
    found = ez.certify(ez.solve(game))
    assert found.verdict is ez.certificates.Verdict.CONDITIONAL
    assert found.exploitability is not None
