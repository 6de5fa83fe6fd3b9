"""A network as arrays, and its quickest ways: Dijkstra's algorithm from every origin (scipy.sparse.csgraph).

t_e(v) = free_e + slope_e · v^power_e. A node that must not be passed through is two nodes of the graph: one that ways
only leave, one that they only enter. Of parallel links the quickest counts. Cost: O(origins · links · log nodes), and
one step of a way at a time for all trips together.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from epszero.models._inputs import FloatArray, refuse
from epszero.models._network import Edge, Node, Trip

IntArray = NDArray[np.int64]
SMALL = 1e-3  # of the flow at which a link takes twice its free time


@dataclass(frozen=True, eq=False)
class Roads:
    """Links and trips, by number."""

    edges: tuple[Edge, ...]
    trips: tuple[Trip, ...]
    free: FloatArray
    slope: FloatArray
    power: FloatArray
    demand: FloatArray  # of every trip
    tail: IntArray  # of every link, a node of the graph
    head: IntArray
    nodes: int  # of the graph
    origins: IntArray  # nodes of the graph, each once
    begins: IntArray  # of every trip: which of the origins
    ends: IntArray  # of every trip: a node of the graph
    closed: frozenset[Node]  # nodes that are not passed through

    def times(self, flows: FloatArray) -> FloatArray:
        """How long each link takes."""
        return self.free + self.slope * flows**self.power

    def at(self, delay: FloatArray | float, factor: FloatArray | float) -> "Roads":
        """The same with a delay added to each time, and a factor on what congestion adds to it."""
        return replace(self, free=self.free + delay, slope=self.slope * factor)

    def steepness(self, flows: FloatArray) -> FloatArray:
        """The derivative of the times; where a link is all but empty, that at a small flow, which is not 0."""
        with np.errstate(divide="ignore"):
            usual = np.where(self.slope > 0, (self.free / self.slope) ** (1 / self.power), 0.0)
        usual = np.where(np.isfinite(usual), usual, 0.0)  # the flow at which a link takes twice its free time
        return self.slope * self.power * np.maximum(flows, SMALL * usual) ** (self.power - 1.0)

    def quickest(self, times: FloatArray) -> "Quickest":
        """How long the quickest way of each trip takes, and the ways."""
        key = self.tail * self.nodes + self.head
        order = np.lexsort((times, key))
        first = np.ones(len(order), dtype=bool)
        first[1:] = key[order][1:] != key[order][:-1]
        links = order[first]  # of parallel ones the quickest, in the order of their ends
        graph = csr_array((times[links], (self.tail[links], self.head[links])), shape=(self.nodes, self.nodes))
        distance, before = dijkstra(graph, indices=self.origins, return_predecessors=True)
        return Quickest(self, times, links, key[links], distance, before)


@dataclass(frozen=True, eq=False)
class Quickest:
    """The trees of quickest ways from all origins."""

    roads: Roads
    times: FloatArray
    links: IntArray  # those that can be on a quickest way
    keys: IntArray  # their ends, as one number each, in order
    distance: FloatArray  # origins × nodes
    before: Any  # origins × nodes: the node before

    @property
    def lasting(self) -> FloatArray:
        """Of each trip; ∞ where there is no way."""
        return self.distance[self.roads.begins, self.roads.ends]

    def ways(self, trips: IntArray) -> csr_array:
        """Trips × links, 1 where the quickest way of the trip uses the link."""
        roads = self.roads
        at, origin = roads.ends[trips], roads.begins[trips]
        rows, columns = [], []
        going = np.arange(len(trips))
        while len(going):
            here = at[going]
            came = self.before[origin[going], here].astype(np.int64)
            rows.append(going)
            columns.append(self.links[np.searchsorted(self.keys, came * roads.nodes + here)])
            at[going] = came
            going = going[came != roads.origins[origin[going]]]
        row, column = np.concatenate([*rows, np.zeros(0, int)]), np.concatenate([*columns, np.zeros(0, int)])
        return csr_array((np.ones(len(row)), (row, column)), shape=(len(trips), len(roads.edges)))

    def detours(self) -> FloatArray:
        """Of each link: how much longer, at least, a way from any origin becomes that uses it; ≥ 0."""
        roads = self.roads
        with np.errstate(invalid="ignore"):
            through = self.distance[:, roads.tail] + self.times - self.distance[:, roads.head]
        least = np.min(np.where(np.isfinite(through), through, np.inf), axis=0)
        return np.where(np.isfinite(least), np.maximum(least, 0.0), 0.0)  # no origin leads to it: nothing is said


def roads_of(edges: Sequence[Edge], trips: Sequence[Trip], closed: Collection[Node] = ()) -> Roads:
    """From edges and trips that have been checked; nodes in `closed` are not passed through."""
    leaving: dict[Node, int] = {}
    entering: dict[Node, int] = {}
    nodes = 0
    for node in dict.fromkeys(node for edge in edges for node in (edge.tail, edge.head)):
        leaving[node] = nodes
        nodes += node in closed
        entering[node] = nodes
        nodes += 1
    for i, (origin, destination, _) in enumerate(trips):
        for node in (origin, destination):
            if node not in leaving:
                refuse(
                    f"trips[{i}]", f"no path leads from {origin!r} to {destination!r}", "Add edges, or drop the trip"
                )
    free, slope, power = (np.array([edge[field] for edge in edges], dtype=np.float64) for field in (2, 3, 4))
    starts = np.array([leaving[origin] for origin, _, _ in trips], dtype=np.int64)
    origins, begins = np.unique(starts, return_inverse=True)
    found = Roads(
        tuple(edges),
        tuple(trips),
        free,
        slope,
        power,
        np.array([demand for _, _, demand in trips], dtype=np.float64),
        np.array([leaving[edge.tail] for edge in edges], dtype=np.int64),
        np.array([entering[edge.head] for edge in edges], dtype=np.int64),
        nodes,
        origins,
        begins.astype(np.int64),
        np.array([entering[destination] for _, destination, _ in trips], dtype=np.int64),
        frozenset(closed),
    )
    cut = np.flatnonzero(~np.isfinite(found.quickest(found.free).lasting))
    if len(cut):
        origin, destination, _ = trips[cut[0]]
        refuse(f"trips[{cut[0]}]", f"no path leads from {origin!r} to {destination!r}", "Add edges, or drop the trip")
    return found
