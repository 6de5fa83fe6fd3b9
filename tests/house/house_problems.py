"""Small problems whose answers were seen to depend on what was asked before, each built anew by a factory.

Functions stand at the top of the file, so that problems built twice share their compiled programs. No constant here is
found by a search that the clock ends: two builds of the same problem must give the same answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

import epszero as ez


def uniform(lower: Any, upper: Any, s: int, seed: int, support: Any = None) -> ez.Samples:
    """s rows between two corners; the support is the box between them where no other is given."""
    rows = np.random.default_rng(seed).uniform(lower, upper, size=(s, len(lower)))
    return ez.Samples(rows, support=support or ez.sets.Box(np.asarray(lower, float), np.asarray(upper, float)))


# -- a variational inequality, additive noise ------------------------------------------------------------------------

TURNING = np.array([[1.4, 0.5], [-0.5, 1.0]])


def turning_operator(x, xi):
    return TURNING @ x - xi


def turning():
    return ez.VariationalInequality(turning_operator, ez.sets.Box(-0.2, 0.4, dim=2))


# -- a minimisation whose Jacobian is the sample ---------------------------------------------------------------------


def weighted_loss(x, xi):
    return 0.5 * jnp.sum(xi * x**2) - jnp.sum(x)


def weighted():
    return ez.Minimization(weighted_loss, ez.sets.Box(-1.0, 1.0, dim=2))


def weights(upper: float, lower: float, seed: int) -> ez.Samples:
    """Between 1 and 2, and known to lie between `lower` and `upper`."""
    return uniform([1.0, 1.0], [2.0, 2.0], 30, seed, ez.sets.Box(lower, upper, dim=2))


# -- a game that is convex where one looks from −8, and not where one looks from 5 -----------------------------------


def bumpy_cost(i, x, xi):
    bump = 4 * jnp.sum(jnp.exp(-2 * (x[i] - 6.0) ** 2))
    return 0.5 * x[i] @ x[i] - bump + 0.1 * x[0] @ x[1] + xi @ x[i]


def first_bumpy(x, xi):
    return bumpy_cost(0, x, xi)


def second_bumpy(x, xi):
    return bumpy_cost(1, x, xi)


def bumpy():
    vouched = ez.declare(mu=0.5, kappa=2.0)
    return ez.Game([first_bumpy, second_bumpy], [ez.sets.WholeSpace(dim=1)] * 2, declared=vouched)


# -- an aggregative game of two agents, who count in units that the data set ------------------------------------------


def units_cost(own, average, xi, p):
    return 0.5 * p["weight"] * (xi @ p["pick"]) * own @ own + 0.01 * average @ own + p["tilt"] * own[0]


def units():
    parameters = {"weight": np.array([1.0, 30.0]), "pick": np.eye(2), "tilt": np.array([1.0, -20.0])}
    return ez.AggregativeGame(units_cost, parameters, ez.sets.Box(-3.0, 3.0, dim=1))


def units_of(second: float, seed: int) -> ez.Samples:
    """Around 1 for the first agent, around `second` for the other."""
    return uniform([0.9, 0.9 * second], [1.1, 1.1 * second], 20, seed)


# -- a game with a shared constraint -----------------------------------------------------------------------------------


def first_shared(x, xi):
    return x[0] @ x[0] + 0.2 * x[0] @ x[1] + xi @ x[0]


def second_shared(x, xi):
    return 2 * x[1] @ x[1] + xi @ x[1]


def shared():
    boxes = [ez.sets.Box(-1.0, 1.0, dim=2)] * 2
    return ez.Game([first_shared, second_shared], boxes, shared=(np.ones((1, 4)), np.array([-1.0])))


@dataclass(frozen=True)
class Asked:
    """A problem, the data sets and starting points that it is asked about, and the method where one is named."""

    problem: Callable[[], Any]
    data: dict[str, Callable[[], ez.Samples]]
    starts: dict[str, Any] = field(default_factory=lambda: {"own": None})
    method: Callable[[], Any] = lambda: None
    of: str = "residual"  # what a plan is asked for


ASKED = {
    "turning": Asked(
        turning,
        {"narrow": lambda: uniform([0, 0], [1, 1], 20, 1), "wide": lambda: uniform([-3, -3], [3, 3], 20, 2)},
        {"own": None, "corner": np.array([0.4, -0.2])},
        of="distance",
    ),
    "weighted": Asked(
        weighted,
        {"near": lambda: weights(2.0, 1.0, 0), "far": lambda: weights(20.0, 0.1, 1)},
        {"own": None, "corner": np.array([1.0, -1.0])},
        of="cost gap",
    ),
    "bumpy": Asked(
        bumpy,
        {"first": lambda: uniform([-1], [1], 40, 0), "second": lambda: uniform([-2], [2], 40, 1)},
        {"flat": [np.array([-8.0])] * 2, "bent": [np.array([5.0])] * 2},
        ez.ForwardBackward,
        of="exploitability",
    ),
    "units": Asked(
        units,
        {"alike": lambda: units_of(1.0, 0), "unlike": lambda: units_of(40.0, 1)},
        of="exploitability",
    ),
    "shared": Asked(
        shared,
        {"narrow": lambda: uniform([0, 0], [1, 1], 20, 3), "wide": lambda: uniform([-3, -3], [3, 3], 20, 4)},
        of="distance",
    ),
}
