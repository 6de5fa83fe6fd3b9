"""Road networks: edges with travel times, trips, and the simple paths between their ends.

t_e(v) = free_e + slope_e · v^power_e. The paths of a trip come in the order of their free-flow times, by best-first
search over simple partial paths with the distance still to go as a lower bound: the k first cost what k paths cost, not
what all of them would.
"""

import heapq
import itertools
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from epszero.models._inputs import FloatArray, number, refuse

Node = Hashable
Trip = tuple[Node, Node, float]
Path = tuple[int, ...]  # the numbers of its edges


class Edge(NamedTuple):
    """A one-way road from `tail` to `head` that takes free + slope · v^power when v travel on it."""

    tail: Node
    head: Node
    free: float
    slope: float = 0.0
    power: float = 1.0

    @staticmethod
    def bpr(tail: Node, head: Node, free: float, capacity: float, alpha: float = 0.15, power: float = 4.0) -> "Edge":
        """The Bureau of Public Roads' formula: free · (1 + alpha · (v / capacity)^power)."""
        capacity, power = number("capacity", capacity, above=0.0), number("power", power, least=1.0)
        slope = number("free", free, least=0.0) * number("alpha", alpha, least=0.0) / capacity**power
        return Edge(tail, head, float(free), slope, power)


Road = Edge | tuple[Node, Node, float] | tuple[Node, Node, float, float] | tuple[Node, Node, float, float, float]
"""What may be given as an edge."""


@dataclass(frozen=True, eq=False)
class Network:
    """Edges, trips and their paths, as arrays."""

    edges: tuple[Edge, ...]
    trips: tuple[Trip, ...]
    paths: tuple[tuple[Path, ...], ...]  # of every trip
    free: FloatArray
    slope: FloatArray
    power: FloatArray
    uses: FloatArray  # edges × paths of all trips, 1 where the path uses the edge: path flows to edge flows

    def of_trip(self, i: int) -> FloatArray:
        """The columns of `uses` that are paths of trip i."""
        first = sum(len(own) for own in self.paths[:i])
        return self.uses[:, first : first + len(self.paths[i])]

    def times(self, flows: Any) -> Any:
        """How long each edge takes."""
        return self.free + self.slope * (flows if self.linear else flows**self.power)

    def integrals(self, flows: Any) -> Any:
        """∫₀^v t_e for each edge."""
        squares = flows * flows  # which an array of powers would hide
        grown = squares if self.linear else flows ** (self.power + 1.0)
        return self.free * flows + self.slope * grown / (self.power + 1.0)

    @property
    def linear(self) -> bool:
        """Whether times are affine in flows."""
        return bool((self.power == 1.0).all())


def network(edges: Sequence[Road], trips: Sequence[Trip], most_paths: int) -> Network:
    """Checked, with at most so many paths per trip."""
    roads = checked_edges(edges)
    leaving: dict[Node, list[int]] = {}
    for i, edge in enumerate(roads):
        leaving.setdefault(edge.tail, []).append(i)
    wanted = checked_trips(trips)
    paths: list[tuple[Path, ...]] = []
    for i, (origin, destination, _) in enumerate(wanted):
        found = tuple(itertools.islice(simple_paths(roads, leaving, origin, destination), most_paths))
        if not found:
            refuse(f"trips[{i}]", f"no path leads from {origin!r} to {destination!r}", "Add edges, or drop the trip")
        paths.append(found)
    free, slope, power = (np.array([edge[field] for edge in roads]) for field in (2, 3, 4))
    return Network(
        roads, wanted, tuple(paths), free, slope, power, _incidence(len(roads), [path for own in paths for path in own])
    )


def checked_edges(edges: object) -> tuple[Edge, ...]:
    """Edges as they were given."""
    return tuple(_edge(i, edge) for i, edge in enumerate(_listed("edges", edges)))


def checked_trips(trips: object) -> tuple[Trip, ...]:
    """Trips as they were given."""
    return tuple(_trip(i, trip) for i, trip in enumerate(_listed("trips", trips)))


def distances(
    edges: Sequence[Edge],
    times: Sequence[float] | FloatArray,
    destination: Node,
    closed: Collection[Node] = frozenset(),
) -> dict[Node, float]:
    """How long the quickest way to the destination takes, from every node that has one (Dijkstra).

    It passes through no node of `closed`.
    """
    entering: dict[Node, list[int]] = {}
    for i, edge in enumerate(edges):
        entering.setdefault(edge.head, []).append(i)
    done: dict[Node, float] = {}
    ticket = itertools.count()  # nodes need not have an order
    queue: list[tuple[float, int, Node]] = [(0.0, next(ticket), destination)]
    while queue:
        distance, _, node = heapq.heappop(queue)
        if node in done:
            continue
        done[node] = distance
        if node in closed and node != destination:
            continue
        for i in entering.get(node, []):
            heapq.heappush(queue, (distance + float(times[i]), next(ticket), edges[i].tail))
    return done


def simple_paths(
    edges: Sequence[Edge], leaving: dict[Node, list[int]], origin: Node, destination: Node
) -> Iterator[Path]:
    """All paths that meet no node twice, the quickest first."""
    left = distances(edges, [edge.free for edge in edges], destination)
    if origin not in left:
        return
    ticket = itertools.count()
    queue: list[tuple[float, int, float, Node, Path]] = [(left[origin], next(ticket), 0.0, origin, ())]
    while queue:
        _, _, taken, node, path = heapq.heappop(queue)
        if node == destination:
            yield path
            continue
        met = {origin, *(edges[i].head for i in path)}
        for i in leaving.get(node, []):
            head = edges[i].head
            if head not in met and head in left:
                so_far = taken + edges[i].free
                heapq.heappush(queue, (so_far + left[head], next(ticket), so_far, head, (*path, i)))


def _incidence(edges: int, paths: Sequence[Path]) -> FloatArray:
    matrix = np.zeros((edges, len(paths)))
    for column, path in enumerate(paths):
        matrix[list(path), column] = 1.0
    return matrix


def _listed(argument: str, given: object) -> list[Any]:
    if not isinstance(given, list | tuple) or not given or isinstance(given, Edge):
        refuse(argument, f"must be a list with at least one entry, but it is {given!r}", "Pass a list of tuples")
    return list(given)


def _edge(i: int, given: Any) -> Edge:
    if not isinstance(given, tuple | list) or not 3 <= len(given) <= 5:
        refuse(
            f"edges[{i}]",
            f"must be (tail, head, free, slope, power), the last two optional, but it is {given!r}",
            "Write it so, or use ez.models.Edge",
        )
    edge = Edge(*given)
    for node in (edge.tail, edge.head):
        _hashable(f"edges[{i}]", node)
    if edge.tail == edge.head:
        refuse(f"edges[{i}]", f"leads from {edge.tail!r} to itself", "Drop it")
    free, slope = (number(f"edges[{i}].{name}", getattr(edge, name), least=0.0) for name in ("free", "slope"))
    return Edge(edge.tail, edge.head, free, slope, number(f"edges[{i}].power", edge.power, least=1.0))


def _trip(i: int, given: Any) -> Trip:
    if not isinstance(given, tuple | list) or len(given) != 3:
        refuse(f"trips[{i}]", f"must be (origin, destination, demand), but it is {given!r}", "Write it so")
    origin, destination, demand = given
    for node in (origin, destination):
        _hashable(f"trips[{i}]", node)
    if origin == destination:
        refuse(f"trips[{i}]", f"begins and ends at {origin!r}", "Drop it")
    return origin, destination, number(f"trips[{i}].demand", demand, above=0.0)


def _hashable(argument: str, node: object) -> None:
    try:
        hash(node)
    except TypeError:
        refuse(argument, f"has the node {node!r}, which Python cannot hash", "Use strings, numbers or tuples")
