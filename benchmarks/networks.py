"""Networks of our own making, congested: a lattice of two-way streets of drawn lengths, and trips between its nodes.

Demands are drawn like a gravity model's: large towns near each other. Capacities follow the load at free-flow times, as
streets are built where people go, times a draw: links carry up to about twice theirs.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import epszero as ez


def town(rows: int, columns: int, zones: int, trips: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Edges, two for every street, and trips between `zones` of the nodes."""
    rng = np.random.default_rng(seed)
    nodes = rows * columns
    places = np.stack(np.divmod(np.arange(nodes), columns), axis=1) + rng.uniform(-0.3, 0.3, (nodes, 2))
    streets = [(a, a + 1) for a in range(nodes) if (a + 1) % columns] + [
        (a, a + columns) for a in range(nodes - columns)
    ]
    ways = [way for a, b in streets for way in ((a, b), (b, a))]
    free = np.array([np.linalg.norm(places[a] - places[b]) for a, b in ways]) * np.repeat(
        rng.uniform(1, 2, len(streets)), 2
    )

    towns = rng.permutation(nodes)[:zones]
    weight = rng.lognormal(0.0, 0.6, zones)
    apart = np.linalg.norm(places[towns, None] - places[None, towns], axis=2)
    wanted = 100 * weight[:, None] * weight[None, :] / (1.0 + apart)
    np.fill_diagonal(wanted, 0.0)
    largest = np.argsort(-wanted, axis=None)[:trips]
    journeys = [(int(towns[i]), int(towns[j]), float(wanted[i, j]))
                for i, j in zip(*np.unravel_index(largest, wanted.shape), strict=True)]  # fmt: skip

    load = _loaded(ways, free, journeys, nodes)
    capacity = (load + 0.3 * load.mean()) * rng.uniform(0.4, 1.0, len(ways))
    roads = [ez.models.Edge.bpr(*way, time, most) for way, time, most in zip(ways, free, capacity, strict=True)]
    return roads, journeys


def _loaded(ways: list[Any], free: Any, journeys: list[Any], nodes: int) -> Any:
    """What each way carries where all take the quickest at free-flow times."""
    graph = csr_array((free, np.transpose(ways)), shape=(nodes, nodes))
    _, before = dijkstra(graph, return_predecessors=True)
    number = {way: i for i, way in enumerate(ways)}
    load = np.zeros(len(ways))
    for origin, destination, demand in journeys:
        at = destination
        while at != origin:
            earlier = int(before[origin, at])
            load[number[earlier, at]] += demand
            at = earlier
    return load


def small() -> tuple[list[Any], list[Any]]:
    """24 nodes, 76 links, 528 trips."""
    return town(4, 6, 24, 528)


def large() -> tuple[list[Any], list[Any]]:
    """576 nodes, 2208 links, 5000 trips between 100 of them."""
    return town(24, 24, 100, 5000)
