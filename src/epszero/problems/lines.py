"""Costs looked at along lines through the domain: their values tell what derivatives do not, such as jumps.

A convex function lies below its chords. Between points of the domain, near and far, values are taken at several nodes;
a node above the chord of its neighbours refutes convexity there. It is evidence: what is not seen may still be there.
Each agent moves alone, along its own part of the line. Cost: some 150 evaluations of all costs.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._types import FloatArray, PyTree
from epszero.problems.backward import Backward

SPREADS = (1.0, 100.0)  # how far to go, relative to 1 + |x|
DIRECTIONS = 3
ENTRIES = 16  # of a strategy that are moved alone
ALONG = np.array([0.0, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0])  # nodes from one end to the other
AWAY = np.array([0.0, 0.01, 0.05, 0.2, 0.5, 1.0])  # nodes from x on
ROUNDING = 1e-14  # of the largest values anywhere
BENT = 1e-9  # above the chord, relative to the values, beyond rounding


class Above(NamedTuple):
    """A node above the chord of its neighbours."""

    place: int  # whose cost, or which constraint
    by: float
    value: float  # there


class Lines(NamedTuple):
    """What was seen along the lines."""

    above: Above | None  # the first node above a chord
    undefined: bool  # a value was NaN


def looked_along(values: Callable[[PyTree], Any], strategies: Backward, x: PyTree) -> Lines:
    """`values(y)`: one number for each cost, where each agent plays its part of y."""
    lines = lines_through(strategies, x)
    found = [
        np.stack([np.asarray(values(_between(*line.ends, s)), dtype=np.float64) for s in line.nodes]) for line in lines
    ]
    everything = np.concatenate(found)
    least = ROUNDING * _size(everything)  # what terms that cancel may leave
    above = (_above(line.nodes, seen, least) for line, seen in zip(lines, found, strict=True))
    return Lines(next((one for one in above if one is not None), None), bool(np.isnan(everything).any()))


class Line(NamedTuple):
    """Between two points of the domain, with the nodes to look at."""

    ends: tuple[PyTree, PyTree]
    nodes: FloatArray


def best_along(values: Callable[[PyTree], Any], strategies: Backward, x: PyTree) -> list[tuple[float, PyTree]]:
    """For each agent the least value that was seen, and where it was seen; along single entries too."""
    best: list[tuple[float, PyTree]] = []
    for line in [*lines_through(strategies, x), *_entry_by_entry(strategies, x)]:
        for s in line.nodes:
            y = _between(*line.ends, s)
            found = [(float(value), y) for value in np.atleast_1d(values(y))]
            best = [min(pair, key=_ranked) for pair in zip(best or found, found, strict=True)]
    return best


def _ranked(one: tuple[float, PyTree]) -> float:
    return np.inf if np.isnan(one[0]) else one[0]


def _entry_by_entry(strategies: Backward, x: PyTree) -> list[Line]:
    """Lines along which one entry of every strategy moves, from one end of the domain to the other."""
    longest = max(np.shape(leaf)[-1] if np.ndim(leaf) else 1 for leaf in jax.tree.leaves(x))
    found: list[Line] = []
    for entry in np.unique(np.linspace(0, longest - 1, ENTRIES).astype(int)):
        far = jax.tree.map(lambda leaf, k=entry: 1e3 * (1 + np.abs(leaf)) * _unit(leaf, k), x)
        u, v = (strategies.into_domain(jax.tree.map(lambda a, b, s=s: a + s * b, x, far)) for s in (1, -1))
        found.append(Line((v, u), ALONG))
    return found


def _unit(leaf: Any, entry: int) -> Any:
    """1 in one entry of the last axis, the same for all rows before it."""
    last = np.shape(leaf)[-1] if np.ndim(leaf) else 1
    return np.broadcast_to(np.arange(last) == entry % last, np.shape(leaf) or (1,)).reshape(np.shape(leaf))


def lines_through(strategies: Backward, x: PyTree) -> list[Line]:
    """Near x and far from it, the same every time."""
    rng = np.random.default_rng(2)
    found: list[Line] = []
    for spread in SPREADS:
        for place in range(DIRECTIONS):
            away = jax.tree.map(
                lambda leaf, p=place, far=spread: far * (1 + np.abs(leaf)) * _direction(rng, leaf, p), x
            )
            u, v = (strategies.into_domain(jax.tree.map(lambda a, b, s=s: a + s * b, x, away)) for s in (1, -1))
            found += [Line((v, u), ALONG), Line((x, u), AWAY), Line((x, v), AWAY)]
    return found


def _direction(rng: np.random.Generator, leaf: Any, place: int) -> Any:
    """Random, but for the first: the way in which all entries grow, which ends in a corner of a box."""
    return np.ones(np.shape(leaf)) if place == 0 else rng.normal(size=np.shape(leaf))


def _between(start: PyTree, end: PyTree, s: float) -> PyTree:
    return jax.tree.map(lambda a, b: (1 - s) * np.asarray(a) + s * np.asarray(b), start, end)


def _size(values: FloatArray) -> FloatArray:
    return np.max(np.abs(np.where(np.isfinite(values), values, 0.0)), axis=0)


def _above(nodes: FloatArray, values: FloatArray, least: FloatArray) -> Above | None:
    """The node that is farthest above the chord of its neighbours, relative to the values along the line."""
    share = ((nodes[1:-1] - nodes[:-2]) / (nodes[2:] - nodes[:-2]))[:, None]
    size = np.maximum(_size(values), least / BENT)
    with np.errstate(invalid="ignore", over="ignore"):
        over = values[1:-1] - ((1 - share) * values[:-2] + share * values[2:])
        far = np.where(np.isfinite(over) & (size > 1e-300), over / np.where(size > 1e-300, size, 1.0), 0.0)
    node, place = np.unravel_index(int(np.argmax(far)), far.shape)
    if not far[node, place] > BENT:
        return None
    return Above(int(place), float(over[node, place]), float(values[1:-1][node, place]))
