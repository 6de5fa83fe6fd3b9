"""From costs, boxes and shared rows to a posed game, with what peers need of it."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import epszero as ez
from benchmarks.collection._case import Affine, Array, Costs, Form, Operator, Posed, Region, in_blocks, natural

Sides = Sequence[tuple[Array, Array]]  # lower and upper bounds of every agent


def numbers(lower: Array, upper: Array) -> Sides:
    """Agents that choose one number each."""
    return [(lower[i : i + 1], upper[i : i + 1]) for i in range(len(lower))]


def game(
    costs: list[Callable[[list[Any]], Any]],
    sides: Sides,
    F: Operator,
    *,
    shared: tuple[Array, Array] | None = None,
    planted: Array | None = None,
    scale: float = 1.0,
    affine: tuple[Array, Array] | None = None,
) -> Posed:
    """`costs`: of the list of strategies, in jax.numpy; `F`: the pseudogradient of the whole vector, in NumPy."""
    sizes = [len(lower) for lower, _ in sides]
    region = Region.product([Region.box(lower, upper, len(lower)) for lower, upper in sides])
    if shared is not None:
        region = region.cut(shared[0], -np.inf, shared[1])
    strategies = [ez.sets.Box(lower, upper) for lower, upper in sides]
    problem = ez.Game(costs, strategies, shared=shared)
    cut = in_blocks(sizes)
    forms: tuple[Form, ...] = (Costs([lambda x, cost=cost: cost(cut(x)) for cost in costs], sizes, region),)
    if affine is not None:
        forms = (*forms, Affine(*affine, region))
    return Posed(problem, natural(F, region.project), None, planted, forms, scale, F)
