"""Traffic on a network: every trip spreads its demand over paths, and edges slow down as they fill.

With x_i the path flows of trip i, v = Σ_i Δ_i x_i the flows on edges and t_e(v_e) = free_e + slope_e v_e^power_e + ω_e
their times (ω_e an extra delay, uncertain or none), strategies are x_i ≥ 0 with Σ x_i = demand_i.

Wardrop (many drivers, each alone without weight): all trips have the cost Σ_e ∫₀^{v_e} t_e, Beckmann's potential, whose
derivative in a path flow is the time of that path; at an equilibrium all used paths of a trip take the same time and no
other is quicker. The gradient of a convex function, so monotone; the times are unique, path flows need not be.
Atomic (each trip is one player with weight): cost Σ_e (Δ_i x_i)_e t_e(v_e), the total time of its own traffic. With
affine times it is a potential game too. With N trips the pseudogradient is monotone for power ≤ (3N + 1)/(N − 1), so
always for power ≤ 3: an edge adds t′(v)(I + 11ᵀ + (power − 1) w1ᵀ) to the Jacobian, w the trips' shares of v.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._inputs import Factory, FloatArray, count, refuse
from epszero.models._map import Places, draw_map, places
from epszero.models._network import Edge, Network, Node, Path, Road, Trip, distances, network
from epszero.models._pictures import note, sample_rows, strategies_of, with_bands
from epszero.problems import Declared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Cost = Callable[..., jax.Array]  # of all path flows and, but for the last, of the delays


def routing(
    edges: Sequence[Road],
    trips: Sequence[Trip],
    *,
    atomic: bool = False,
    uncertain: bool = False,
    most_paths: int = 100,
    positions: Mapping[Any, ArrayLike] | None = None,
    declared: Declared | None = None,
) -> ez.Game:
    """Trips that share roads: a player per trip, whose strategy is the flow on each of its paths.

    `edges`: tuples (tail, head, free, slope, power), the last two optional, for a road that takes
    free + slope · v^power when v travel on it, or `ez.models.Edge.bpr(...)`; parallel ones are allowed, and nodes are
    names of any kind.
    `trips`: tuples (origin, destination, demand). Strategies are spread over the `most_paths` simple paths of a trip
    with the least free-flow time; `ez.models.traffic(solution).gap` tells whether those left out are missed.

    `atomic=False`: Wardrop's equilibrium, in which no driver finds a quicker path; a potential game.
    `atomic=True`: each trip is one player who minimises the total time of its own traffic; monotone for power ≤ 3.
    `uncertain=True`: a sample has one extra delay per edge, added to its time. `declared`: see `ez.declare`.

    `game.plot(solution)` draws the map, with `positions={node: (x, y)}` or else in columns; `labels=False` leaves out
    flows and times, `certificate=…` adds error bars of the flows. `ez.models.traffic(solution)` gives flows, times and
    paths as numbers.
    """
    net = network(edges, trips, count("most_paths", most_paths))
    potential = _beckmann(net)
    joint = [_own_time(net, i) for i in range(len(net.trips))] if atomic else [potential] * len(net.trips)
    costs = [ez.oracles.Affine(cost) if uncertain else _without_delay(cost) for cost in joint]
    flows = [
        ez.sets.Simplex(total=demand, dim=len(own)) for (_, _, demand), own in zip(net.trips, net.paths, strict=True)
    ]
    return ez.Game(costs, flows, declared=declared, picture=_Map(net, places(net, positions)))


@dataclass(frozen=True, eq=False)
class Traffic:
    """Who travels where, and how long it takes; at the mean delay where delays are uncertain."""

    edges: tuple[Edge, ...]
    flows: FloatArray  # on each edge
    times: FloatArray  # of each edge
    trips: tuple[Trip, ...]
    paths: tuple[tuple[Path, ...], ...]  # of each trip, as numbers of edges
    path_flows: tuple[FloatArray, ...]
    path_times: tuple[FloatArray, ...]
    closed: frozenset[Node] = frozenset()  # nodes that are not passed through

    @property
    def total_time(self) -> float:
        """Of all that travel, together."""
        return float(self.flows @ self.times)

    @property
    def gap(self) -> float:
        """The share of the total time that would be saved if all took paths as quick as the quickest are now.

        0 at a Wardrop equilibrium. The quickest path is sought in the whole network, so a path that `most_paths` left
        out is missed here and nowhere else.
        """
        quickest = sum(
            demand * distances(self.edges, np.maximum(self.times, 0.0), destination, self.closed)[origin]
            for origin, destination, demand in self.trips
        )
        return 1.0 - quickest / self.total_time if self.total_time > 0 else 0.0

    def __str__(self) -> str:
        lines: list[str] = []
        for trip, paths, flows, times in zip(self.trips, self.paths, self.path_flows, self.path_times, strict=True):
            lines.append(f"{trip[0]} to {trip[1]}, {trip[2]:g}:")
            for path, flow, time in zip(paths, flows, times, strict=True):
                if flow > 1e-6 * trip[2]:
                    nodes = " → ".join(str(node) for node in (trip[0], *(self.edges[i].head for i in path)))
                    lines.append(f"  {flow:8.4g} in {time:.4g} by {nodes}")
        return "\n".join(lines)


def traffic_of(solution: ez.Solution) -> Traffic:
    """Flows and times on edges and paths, for a solution of a game made by `ez.models.routing`."""
    picture = getattr(getattr(solution, "problem", None), "picture", None)
    if not isinstance(picture, _Map):
        refuse("solution", "does not come from a game of ez.models.routing", "Pass ez.solve(ez.models.routing(...))")
    return picture.traffic(solution)


@dataclass(frozen=True, eq=False)
class _Map:
    """The picture of a routing game."""

    network: Network
    places: Places

    def traffic(self, solution: ez.Solution) -> Traffic:
        net = self.network
        x = strategies_of(solution, [(len(own),) for own in net.paths])
        flows = net.uses @ np.concatenate(x)
        times = net.times(flows)
        if solution.samples is not None:
            times = times + sample_rows(solution, len(net.edges)).mean(axis=0)
        own_times = tuple(net.of_trip(i).T @ times for i in range(len(net.trips)))
        return Traffic(net.edges, flows, times, net.trips, net.paths, tuple(x), own_times)

    def __call__(
        self, solution: ez.Solution, *, labels: bool | None = None, certificate: ez.Certificate | None = None
    ) -> "Figure":
        now, sure = self.traffic(solution), with_bands(certificate, solution)
        band = None if sure is None else sure.interval(self.network.uses)
        sheet = draw_map(self.network, self.places, now, labels, band)
        note(sheet, certificate)
        return sheet


@functools.partial(Factory, remember=False)
def _beckmann(net: Network) -> Cost:
    """Σ_e ∫₀^{v_e} t_e, where the delays are added to the times."""

    def potential(x: list[jax.Array], delay: jax.Array | float) -> jax.Array:
        v = net.uses @ jnp.concatenate(x)
        return jnp.sum(net.integrals(v) + delay * v)

    return potential


@functools.partial(Factory, remember=False)
def _own_time(net: Network, i: int) -> Cost:
    """Σ_e (Δ_i x_i)_e t_e(v_e)."""
    uses = net.of_trip(i)
    return lambda x, delay: (uses @ x[i]) @ (net.times(net.uses @ jnp.concatenate(x)) + delay)


@functools.partial(Factory, remember=False)
def _without_delay(cost: Cost) -> Cost:
    return lambda x: cost(x, 0.0)
