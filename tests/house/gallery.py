"""One problem of every kind that constants, methods and records must agree on, each built anew by a factory.

All constants are exact, declared, or enclosed at once: none depends on how fast the machine is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from house_problems import ASKED, bumpy, shared, turning, uniform, units, units_of, weighted, weights

import epszero as ez


def minus(x, xi):
    return 1.5 * x - xi


def near_loss(x, xi):
    return 0.5 * jnp.sum((x - xi) ** 2) + 0.1 * jnp.sum(x) ** 2


def bending(x, xi):
    return 2 * x + jnp.tanh(x) + xi


def bending_with(x, xi):
    return x + jnp.tanh(x - xi)


def saturating(x, xi):
    return {"a": jnp.tanh(x["a"] - xi), "b": 0.5 * jnp.tanh(x["b"] + xi)}


def first_affine(x, xi):
    return x[0] @ x[0] + 0.3 * x[0] @ x[1] + xi @ x[0]


def second_affine(x, xi):
    return 2 * x[1] @ x[1] - 0.3 * x[0] @ x[1] + xi @ x[1]


def first_moving(x, xi):
    return (1 + 0.2 * xi[0]) * x[0] @ x[0] + xi @ x[0]


def second_moving(x, xi):
    return (2 + 0.2 * xi[1]) * x[1] @ x[1] + xi @ x[1]


def alike(own, average, xi, p):
    return p["w"] * own @ own + xi @ own + 0.1 * average @ own


def affine_game(**options: Any) -> Any:
    return ez.Game([first_affine, second_affine], [ez.sets.Box(-1.0, 1.0, dim=2)] * 2, **options)


def moving_game(**options: Any) -> Any:
    """The Jacobian moves with ξ."""
    return ez.Game([first_moving, second_moving], [ez.sets.Box(-1.0, 1.0, dim=2)] * 2, **options)


def saturated() -> Any:
    """Cocoercive, not strongly monotone: a stability bound is that of the run."""
    blocks = {"a": ez.sets.WholeSpace(dim=1), "b": ez.sets.WholeSpace(dim=1)}
    return ez.VariationalInequality(saturating, blocks, declared=ez.declare(theta=1.0, kappa=1.0, R=2.3))


def unit(s: int, seed: int) -> ez.Samples:
    return uniform([0, 0], [1, 1], s, seed)


def line(s: int, seed: int) -> ez.Samples:
    return uniform([-1], [1], s, seed)


def on_a_ball(s: int, seed: int) -> ez.Samples:
    rows = np.random.default_rng(seed).normal(size=(s, 2))
    inside = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
    return ez.Samples(inside * 0.99, support=ez.sets.Ball(1.0, dim=2))


def on_a_simplex(s: int, seed: int) -> ez.Samples:
    return ez.Samples(np.random.default_rng(seed).dirichlet(np.ones(2), size=s), support=ez.sets.Simplex(dim=2))


def without_support(s: int, seed: int) -> ez.Samples:
    return ez.Samples(unit(s, seed).values)


def one_per_agent(s: int, seed: int) -> list[ez.Samples]:
    return [unit(s, seed), uniform([-1, -1], [0, 0], s + 5, seed + 100)]


@dataclass(frozen=True)
class Exhibit:
    """A problem, its data by size and seed, a step that converges, and one step per block where it has blocks."""

    problem: Callable[[], Any]
    data: Callable[[int, int], Any]
    step: float = 0.1
    steps: Any = None
    x0: Any = None
    blocks_shared: bool = False  # constraints that all agents share


BOX = ez.sets.Box(-1.0, 1.0, dim=2)
CAP = (np.ones((1, 4)), np.array([-1.0]))
HALVES = [0.1, 0.05]
GALLERY = {
    "affine": Exhibit(turning, unit),
    "ball support": Exhibit(turning, on_a_ball),
    "simplex support": Exhibit(turning, on_a_simplex),
    "no support": Exhibit(lambda: turning().declaring(ez.declare(R=1.5, M=4.0)), without_support),
    "declared looser": Exhibit(lambda: turning().declaring(ez.declare(mu=0.5, kappa=4.0, R=3.0, M=9.0)), unit, 0.05),
    "function": Exhibit(lambda: ez.Inclusion(ez.functions.L1(0.2 * np.ones(2)), minus), unit),
    "additive oracle": Exhibit(lambda: ez.Inclusion(BOX, ez.oracles.Additive(lambda x: 2 * x)), unit),
    "minimisation": Exhibit(lambda: ez.Minimization(near_loss, ez.sets.Ball(1.0, dim=2)), unit),
    "moving Jacobian": Exhibit(weighted, lambda s, seed: weights(2.0 + seed, 1.0 / (1 + seed), seed)),
    "nonlinear": Exhibit(lambda: ez.VariationalInequality(bending, ez.sets.Box(-1.0, 1.0, dim=1)), line),
    "nonlinear in ξ": Exhibit(lambda: ez.VariationalInequality(bending_with, ez.sets.Box(-1.0, 1.0, dim=1)), line),
    "saturated": Exhibit(saturated, line, steps={"a": 0.1, "b": 0.05}),
    "game": Exhibit(affine_game, unit, steps=HALVES),
    "game, own data": Exhibit(affine_game, one_per_agent, steps=HALVES),
    "moving game": Exhibit(moving_game, unit, steps=HALVES),
    "bumpy game": Exhibit(bumpy, line, steps=HALVES, x0=ASKED["bumpy"].starts["bent"]),
    "shared": Exhibit(shared, unit, 0.05, blocks_shared=True),
    "moving game, shared": Exhibit(lambda: moving_game(shared=CAP), unit, 0.05, blocks_shared=True),
    "aggregative": Exhibit(
        lambda: ez.AggregativeGame(alike, {"w": np.array([0.5, 1.0, 2.0])}, ez.sets.Box(-1.0, 1.0, dim=2)), unit
    ),
    "aggregative, units": Exhibit(units, lambda s, seed: units_of(1.0 + 20 * (seed % 3), seed), 0.0005),
    "charging": Exhibit(lambda: ez.models.ev_charging(vehicles=3, hours=2, wear=(0.3, 0.6), need=(0.5, 1.0)), unit),
    "cournot": Exhibit(lambda: ez.models.cournot(firms=3, markets=2, capacity=4.0), unit),
}
