"""Traffic: path flows on small networks, with times of the Bureau of Public Roads (power 4) and affine ones.

At a Wardrop equilibrium F is the time of each path, a gradient and monotone; where trips are players with weight, their
marginal times. The projection is on one simplex per trip. Path flows need not be unique.
"""

from typing import Any

import numpy as np

import epszero as ez
from benchmarks.collection._case import FREE, Affine, Array, Case, Posed, Region, length, natural
from benchmarks.collection.matrices import on_simplex

BRAESS = [("s", "a", 0, 10), ("s", "b", 50, 1), ("a", "t", 50, 1), ("b", "t", 0, 10), ("a", "b", 10, 1)]


def routed(edges: list[Any], trips: list[Any], *, atomic: bool = False) -> Posed:
    problem = ez.models.routing(edges, trips, atomic=atomic)
    net = problem.picture.network
    sizes = [len(own) for own in net.paths]
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(sizes)), sizes)

    def F(x: Array) -> Array:
        v = net.uses @ x
        times = net.free + net.slope * v**net.power
        if not atomic:
            return net.uses.T @ times
        steep = net.slope * net.power * v ** (net.power - 1)
        own = np.stack([net.uses[:, owners == i] @ x[owners == i] for i in range(len(sizes))], axis=1)
        return net.uses.T @ times + np.einsum("ep,e,ep->p", net.uses, steep, own[:, owners])

    def back(v: Array) -> Array:
        parts = zip(ends, sizes, trips, strict=True)
        return np.concatenate([on_simplex(v[end - size : end], demand) for end, size, (_, _, demand) in parts])

    forms = ()
    if np.all(net.power == 1) and not atomic:
        sides = [Region.box(0.0, FREE, size).cut(np.ones(size), trip[2], trip[2])
                 for size, trip in zip(sizes, trips, strict=True)]  # fmt: skip
        forms = (Affine((net.uses.T * net.slope) @ net.uses, net.uses.T @ net.free, Region.product(sides)),)
    scale = length(np.array([trip[2] for trip in trips]))
    return Posed(problem, natural(F, back), None, None, forms, scale, F, entries=int(ends[-1]))


def _grid(rows: int, columns: int, trips: int) -> Posed:
    """One-way streets to the right and downwards, free times and capacities drawn; trips from the upper left half."""
    rng = np.random.default_rng(rows * columns)
    places = [(i, j) for i in range(rows) for j in range(columns)]
    ways = [
        (tail, head) for tail in places for head in ((tail[0] + 1, tail[1]), (tail[0], tail[1] + 1)) if head in places
    ]
    streets = [ez.models.Edge.bpr(*way, rng.uniform(1, 3), capacity=rng.uniform(2, 5)) for way in ways]
    starts = [(k // 2 % rows, (k + 1) // 2 % columns) for k in range(trips)]
    return routed(streets, [(start, (rows - 1, columns - 1), rng.uniform(2.0, 6.0)) for start in starts])


def _parallel() -> Posed:
    rng = np.random.default_rng(1)
    roads = [ez.models.Edge.bpr("s", "t", rng.uniform(1, 2), capacity=rng.uniform(0.5, 2.0)) for _ in range(20)]
    return routed(roads, [("s", "t", 30.0)])


def _public(name: str) -> Posed:
    roads = [ez.models.Edge.bpr(tail, head, 1.0 + free, capacity=3.0) for tail, head, free, _ in BRAESS]
    return routed(roads, [("s", "t", 6.0), ("s", "b", 2.0)], atomic=name == "atomic")


CASES = (
    Case("Braess, affine times", "traffic", lambda: routed(BRAESS, [("s", "t", 6.0)])),
    Case("Braess, power 4", "traffic", lambda: _public("many")),
    Case("Braess, power 4, trips with weight", "traffic", lambda: _public("atomic")),
    Case("20 parallel roads, power 4", "traffic", _parallel),
    Case("3 × 3 streets, power 4, 2 trips", "traffic", lambda: _grid(3, 3, 2)),
    Case("4 × 4 streets, power 4, 4 trips", "traffic", lambda: _grid(4, 4, 4)),
    Case("5 × 5 streets, power 4, 3 trips", "traffic", lambda: _grid(5, 5, 3)),
)
