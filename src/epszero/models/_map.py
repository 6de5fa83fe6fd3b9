"""A map of a network: nodes in columns by their distance from the origins, edges as wide as their flows."""

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from epszero.models._inputs import FloatArray, numbers, refuse
from epszero.models._network import Edge, Node, Trip
from epszero.report import BLUE, GREY, SKY, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
DISC = {"boxstyle": "circle,pad=0.45", "facecolor": "black", "edgecolor": "none"}
MOST_LABELLED = 40  # edges beyond which labels would cover the map
WIDEST, UNUSED = 9.0, 1.2  # points
NO_FLOW = 1e-6  # a share of the largest flow that is rounding
BEND = 0.28  # of an arc's height over its length
Places = dict[Node, FloatArray]


class Drawn(Protocol):
    """What can be drawn."""

    @property
    def edges(self) -> tuple[Edge, ...]: ...

    @property
    def trips(self) -> tuple[Trip, ...]: ...


def places(net: Drawn, given: object) -> Places:
    """Where to draw each node: as given, or in columns."""
    nodes = list(dict.fromkeys(node for edge in net.edges for node in (edge.tail, edge.head)))
    if given is None:
        return _columns(net, nodes)
    if not isinstance(given, Mapping):
        refuse("positions", f"must map nodes to (x, y), but it is a {type(given).__name__}", "Pass a dictionary")
    found: Places = {}
    for node in nodes:
        if node not in given:
            refuse("positions", f"says nothing of the node {node!r}", "Give every node its (x, y)")
        found[node] = numbers(f"positions[{node!r}]", given[node])
        if found[node].shape != (2,):
            refuse(f"positions[{node!r}]", "must be two numbers", "Give every node its (x, y)")
    points = np.array(list(found.values()))
    unit = float(np.ptp(points, axis=0).max()) / np.sqrt(len(nodes)) or 1.0  # about one from a node to the next
    return {node: (point - points.min(axis=0)) / unit for node, point in found.items()}


def _columns(net: Drawn, nodes: list[Node]) -> Places:
    """Column = fewest edges from an origin; within a column, by the mean height of neighbours in earlier ones."""
    column = {origin: 0 for origin, _, _ in net.trips}
    reached = list(column)
    for node in reached:  # grows while it is read: breadth first
        for edge in net.edges:
            if edge.tail == node and edge.head not in column:
                column[edge.head] = column[node] + 1
                reached.append(edge.head)
    last = max(column.values())
    column = {node: column.get(node, last + 1) for node in nodes}
    found: Places = {}
    for c in sorted(set(column.values())):
        members = [node for node in nodes if column[node] == c]
        heights = [_mean_height(net, found, node) for node in members]
        order = sorted(range(len(members)), key=lambda j, heights=heights: -heights[j])
        for row, j in enumerate(order):
            found[members[j]] = np.array([1.6 * c, (len(members) - 1) / 2 - row])
    return found


def _mean_height(net: Drawn, found: Places, node: Node) -> float:
    near = [found[a][1] for e in net.edges for a, b in ((e.tail, e.head), (e.head, e.tail)) if b == node and a in found]
    return float(np.mean(near)) if near else 0.0


class Flows(Protocol):
    """What is drawn, edge by edge."""

    @property
    def flows(self) -> FloatArray: ...

    @property
    def times(self) -> FloatArray: ...


class Bounds(Protocol):
    """Of the flows, edge by edge."""

    @property
    def lower(self) -> Any: ...

    @property
    def upper(self) -> Any: ...


def draw_map(net: Drawn, where: Places, now: Flows, labels: bool | None, band: Bounds | None = None) -> "Figure":
    """The network with its flows; labels say flow, its bounds where there are any, and time."""
    from matplotlib.patches import FancyArrowPatch  # noqa: PLC0415  (a second of loading, for those who draw)

    points = np.array(list(where.values()))
    spread = np.ptp(points, axis=0) + 1e-9
    width = float(np.clip(3.0 + 2.2 * spread[0], 6.0, 12.0))
    sheet = figure(width, float(np.clip(width * (spread[1] + 1.2) / (spread[0] + 1.6), 3.0, 9.0)))
    ax = sheet.subplots()
    flows, times = now.flows, now.times
    labelled = len(net.edges) <= MOST_LABELLED if labels is None else labels
    largest = max(float(flows.max()), 1e-300)
    for i, edge in enumerate(net.edges):
        a, b = where[edge.tail], where[edge.head]
        bend = _bend(net, where, i)
        share = float(flows[i]) / largest
        used = share > NO_FLOW
        line = _width(share) if used else UNUSED
        ends: dict[str, Any] = {
            "posA": (a[0], a[1]),
            "posB": (b[0], b[1]),
            "connectionstyle": f"arc3,rad={bend}",
            "shrinkA": _radius(edge.tail),
            "shrinkB": _radius(edge.head),
            "joinstyle": "miter",
            "capstyle": "butt",
        }
        if band is not None and band.upper[i] > NO_FLOW * largest:
            halo = _width(float(band.upper[i]) / largest)
            ax.add_patch(FancyArrowPatch(**ends, arrowstyle="-", linewidth=halo, color=SKY, alpha=0.5, zorder=0.5))
        ax.add_patch(
            FancyArrowPatch(
                **ends,
                arrowstyle="-|>",
                mutation_scale=9 + 2.2 * line,
                linewidth=line,
                color=BLUE if used else GREY,
                linestyle="-" if used else "--",
                zorder=1,
            )
        )
        if labelled:
            middle = (a + b) / 2 + bend / 2 * np.array([b[1] - a[1], a[0] - b[0]])
            between = "" if band is None else _between(band.lower[i], band.upper[i], largest)
            text = f"{flows[i] if used else 0:.3g}\n{between}[{times[i]:.3g}]"
            ax.text(
                middle[0], middle[1], text, ha="center", va="center", fontsize=9, linespacing=1.1, zorder=3, bbox=PAPER
            )
    for node, point in where.items():
        ax.text(
            point[0], point[1], str(node), ha="center", va="center", fontsize=10, zorder=4, color="white", bbox=DISC
        )
    low, high = points.min(axis=0), points.max(axis=0)
    ax.set_xlim(low[0] - 0.35, high[0] + 0.35)
    margin = 0.35 + BEND / 2 * (spread[0] if spread[1] < 0.5 else 0.6)
    ax.set_ylim(low[1] - margin, high[1] + margin)
    ax.set_aspect("equal")
    ax.set_axis_off()
    what = "flow [time] of each edge" if labelled else "width: flow"
    if band is not None:
        what = "flow, its bounds and [time] of each edge" if labelled else "width: flow, and its upper bound"
    who = "; ".join(f"{demand:g} from {origin} to {destination}" for origin, destination, demand in net.trips[:3])
    more = f"; {len(net.trips) - 3} more trips" if len(net.trips) > 3 else ""
    ax.set_title(f"{what}\n{who}{more}", loc="left", fontsize=10)
    return sheet


def _width(share: float) -> float:
    """Of a line, in points."""
    return UNUSED + (WIDEST - UNUSED) * share


def _between(lower: float, upper: float, largest: float) -> str:
    return f"{_end(lower, largest, math.floor)} … {_end(upper, largest, math.ceil)}\n"


def _end(bound: float, largest: float, towards: Callable[[float], int]) -> str:
    """Of a flow, to three digits, rounded outward; 0 where it is rounding."""
    if abs(bound) <= NO_FLOW * largest:
        return "0"
    unit = 10.0 ** (math.floor(math.log10(abs(bound))) - 2)
    return f"{towards(bound / unit) * unit:.4g}"


def _radius(node: Node) -> float:
    """Of the disc around a node's name, in points."""
    return 5.0 + float(np.hypot(3.2 * len(str(node)), 6.0))


def _bend(net: Drawn, where: Places, i: int) -> float:
    """How much edge i curves: parallel ones fan out, opposite ones keep apart, and none runs through a node."""
    edge = net.edges[i]
    same = [j for j, other in enumerate(net.edges) if (other.tail, other.head) == (edge.tail, edge.head)]
    opposite = any((other.tail, other.head) == (edge.head, edge.tail) for other in net.edges)
    rank = same.index(i)
    if opposite:
        return BEND * (1 + rank) / len(same)
    if len(same) > 1:
        return BEND * (2 * rank / (len(same) - 1) - 1)
    a, b = where[edge.tail], where[edge.head]
    along = b - a
    for node, point in where.items():
        if node in (edge.tail, edge.head):
            continue
        t = float(np.clip((point - a) @ along / max(along @ along, 1e-12), 0.0, 1.0))
        if np.linalg.norm(a + t * along - point) < 0.15:
            return BEND
    return 0.0
