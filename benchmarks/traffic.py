"""Traffic of realistic size: time to a relative gap, against Frank–Wolfe and its conjugate form written in NumPy.

Both loops take all-or-nothing flows from SciPy's Dijkstra and an exact step along the segment. The conjugate directions
are those of Mitradjieva & Lindberg, "The stiff is moving", Transp. Sci. 47 (2013), without their second conjugate. Our
own time is making the model, which generates paths, and `ez.solve` on it, second call. The gap of all is computed here.
"""

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

import epszero as ez
from benchmarks import networks
from benchmarks._measure import Row, best_of

GAP = 1e-8
PATIENCE = 20.0  # seconds that a peer gets


class Loop:
    """A network as arrays; nodes are numbers, and no two links are parallel."""

    def __init__(self, edges: list[Any], trips: list[Any]) -> None:
        self.tail, self.head = np.transpose([(edge.tail, edge.head) for edge in edges])
        self.free, self.slope, self.power = np.transpose([edge[2:] for edge in edges])
        self.nodes = int(max(self.tail.max(), self.head.max())) + 1
        self.origins = np.unique([trip[0] for trip in trips])
        self.demand = np.zeros((len(self.origins), self.nodes))
        for origin, destination, demand in trips:
            self.demand[np.searchsorted(self.origins, origin), destination] += demand
        self.order = np.lexsort((self.head, self.tail))
        self.keys = (self.tail * self.nodes + self.head)[self.order]

    def times(self, v: Any) -> Any:
        return self.free + self.slope * v**self.power

    def loaded(self, times: Any) -> tuple[Any, float]:
        """Link flows where all take the quickest way, and how long that takes in all."""
        graph = csr_array((times, (self.tail, self.head)), shape=(self.nodes, self.nodes))
        distance, before = dijkstra(graph, indices=self.origins, return_predecessors=True)
        load = self.demand.copy()
        flows = np.zeros(len(times))
        rows = np.arange(len(self.origins))
        for nodes in np.argsort(-distance, axis=1).T:  # the farthest first: what they carry goes to the node before
            last = before[rows, nodes]
            some = (last >= 0) & (load[rows, nodes] > 0)
            r, node, earlier = rows[some], nodes[some], last[some]
            carried = load[r, node]
            link = self.order[np.searchsorted(self.keys, earlier.astype(np.int64) * self.nodes + node)]
            np.add.at(flows, link, carried)
            np.add.at(load, (r, earlier), carried)
        return flows, float(np.sum(self.demand[self.demand > 0] * distance[self.demand > 0]))

    def gap(self, v: Any) -> float:
        t = self.times(v)
        return 1.0 - self.loaded(t)[1] / float(v @ t)

    def run(self, wanted: float, *, conjugate: bool) -> tuple[Any, float, float]:
        """Link flows, their gap and the seconds it took."""
        started = perf_counter()
        v = self.loaded(self.free)[0]
        aim, gap = None, np.inf
        while True:
            t = self.times(v)
            target, shortest = self.loaded(t)
            gap = 1.0 - shortest / float(v @ t)
            if gap <= wanted or perf_counter() - started > PATIENCE:
                return v, gap, perf_counter() - started
            if conjugate and aim is not None:
                target = self._conjugate(v, aim, target)
            step = self._step(v, target - v)
            v, aim = v + step * (target - v), target if step < 0.999 else None

    def _conjugate(self, v: Any, aim: Any, target: Any) -> Any:
        steep = self.slope * self.power * v ** (self.power - 1)
        old, new = aim - v, target - v
        above, below = float(old @ (steep * new)), float(old @ (steep * (new - old)))
        share = np.clip(above / below, 0.0, 0.999) if below != 0 and above / below > 0 else 0.0
        return share * aim + (1 - share) * target

    def _step(self, v: Any, along: Any) -> float:
        low, high = 0.0, 1.0
        if self.times(v + along) @ along <= 0:
            return 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (low, middle) if self.times(v + middle * along) @ along > 0 else (middle, high)
        return (low + high) / 2


def solved(edges: list[Any], trips: list[Any], wanted: float = GAP) -> Any:
    """Our link flows."""
    model = ez.models.traffic(edges, trips, tol=min(wanted, 1e-8))
    return model.link_flows(ez.solve(model))


def _against(name: str, make: Callable[[], Any], wanted: float, target: str, most: float) -> list[Row]:
    edges, trips = make()
    loop = Loop(edges, trips)
    ours = best_of(1, lambda: solved(edges, trips, wanted))
    reached = loop.gap(solved(edges, trips, wanted))
    rows = []
    for what, conjugate in (("Frank–Wolfe", False), ("conjugate Frank–Wolfe", True)):
        _, gap, peer = loop.run(wanted, conjugate=conjugate)
        short = "" if gap <= wanted else f", which had {gap:.0e} by then"
        ratio = ours / peer
        label = f"{name} to a relative gap of {wanted:.0e} (ours {reached:.0e}), against {what}{short}"
        rows.append(Row(label, ours, peer, ratio, target, ratio <= most and reached <= wanted))
    return rows


def rows() -> list[Row]:
    return [
        *_against("traffic, 76 links, 528 trips", networks.small, GAP, "≤ 2", 2.0),
        *_against("traffic, 2208 links, 5000 trips", networks.large, 1e-6, "≤ 2", 2.0),
    ]
