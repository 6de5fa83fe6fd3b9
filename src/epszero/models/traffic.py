"""Traffic on networks of realistic size: Wardrop's equilibrium on paths that are generated, not listed.

With v the flows on links and t_e(v_e) = free_e + slope_e v_e^power_e, an equilibrium is the least of Beckmann's
potential Σ_e ∫₀^{v_e} t_e over flows that serve the trips: convex, so monotone; link flows are unique where times grow.
Paths come from shortest paths on the whole network (_assignment.py). The problem is posed on these, one row of x per
trip that has a choice. The relative gap (Σ v t − Σ demand · quickest)/Σ v t, from new shortest paths, tells what the
paths that are not there are worth: 0 at an equilibrium of the whole network.
Uncertain: t_e + ξ_e (delays), or capacity_e · ξ_e, which is slope_e · E ξ_e^−power_e; one number per link, so that the
average is affine in the mean of ξ, or of ξ^−power. Demands are known.
"""

import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

import epszero as ez
from epszero.models._assignment import Assignment, assign, relative_gap
from epszero.models._inputs import FloatArray, PathLike, number, refuse
from epszero.models._link_bands import LinkBands, bands
from epszero.models._map import Places, draw_map, places
from epszero.models._network import Node, Path, Road, Trip, checked_edges, checked_trips
from epszero.models._pictures import note, sample_rows, strategies_of
from epszero.models._roads import Roads, roads_of
from epszero.models._tntp import read_network, read_trips
from epszero.models.routing import Traffic, traffic_of
from epszero.problems import Declared

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Uncertain = Literal["delay", "capacity"]
DENSE = 1_000_000  # numbers of the map from path flows to link flows that are written out
POOR = 1e-4  # a relative gap that a user should hear of


@overload
def traffic(network: ez.Solution) -> Traffic: ...
@overload
def traffic(
    network: Sequence[Road] | PathLike,
    trips: Sequence[Trip] | ArrayLike | Mapping[str, Any] | PathLike,
    *,
    uncertain: Uncertain | None = None,
    closed: Collection[Node] = (),
    tol: float = 1e-10,
    positions: Mapping[Any, ArrayLike] | None = None,
    declared: Declared | None = None,
) -> "TrafficModel": ...
def traffic(
    network: Any,
    trips: Any = None,
    *,
    uncertain: Uncertain | None = None,
    closed: Collection[Node] = (),
    tol: float = 1e-10,
    positions: Mapping[Any, ArrayLike] | None = None,
    declared: Declared | None = None,
) -> "TrafficModel | Traffic":
    """Wardrop's equilibrium on a network of up to thousands of links; or, of a solution, who travels where.

    `network`: edges as `ez.models.routing` takes them, or a TNTP file (`…_net.tntp`). `trips`: tuples (origin,
    destination, demand), a table with these three columns, or a TNTP file (`…_trips.tntp`).
    `closed`: nodes where trips begin or end but which they do not pass through; a TNTP file says so itself.
    `tol`: paths are generated until the relative gap is this small, while the model is made; `ez.solve` starts there.

    `uncertain="delay"`: a sample has one extra delay per link, added to its time. `uncertain="capacity"`: a sample has
    one factor per link on its capacity. `model.at(samples)` has the paths that the average of these samples asks for.
    `declared`: see `ez.declare`.

    `traffic(solution)`, of a solution of this model or of a game of `ez.models.routing`, gives flows, times and paths.
    """
    if trips is None:
        if isinstance(network, list | tuple | str | os.PathLike):
            refuse("trips", "are missing", "Pass tuples (origin, destination, demand), or a TNTP file")
        return _of(network)
    if uncertain not in (None, "delay", "capacity"):
        refuse("uncertain", f"must be 'delay', 'capacity' or None, but it is {uncertain!r}", "Pass one of the three")
    if isinstance(network, str | os.PathLike):
        streets = read_network(network)
        edges, closed = streets.edges, {*closed, *streets.closed}
    else:
        edges = checked_edges(network)
    roads = roads_of(edges, _trips(trips), frozenset(closed))
    wanted = number("tol", tol, above=0.0)
    drawn = None if positions is None else places(roads, positions)
    return TrafficModel(roads, _assigned(roads, wanted), uncertain, wanted, drawn, declared)


class TrafficModel(ez.Minimization):
    """Beckmann's potential on the paths of `model.paths`; made by `ez.models.traffic`.

    x has one row for each trip that has several paths, and one column for each of them; trips with one path take it.
    """

    def __init__(
        self,
        roads: Roads,
        found: Assignment,
        uncertain: Uncertain | None,
        tol: float,
        places: Places | None,
        declared: Declared | None = None,
    ) -> None:
        self.roads = roads
        self.found = found
        self.uncertain: Uncertain | None = uncertain
        self.tol = tol
        self.places = places
        counts = np.bincount(found.owner, minlength=len(roads.trips))
        choosing = np.flatnonzero(counts > 1) if (counts > 1).any() else np.arange(len(counts))
        starts = np.searchsorted(found.owner, choosing)
        slots = np.arange(counts.max())
        self.there = slots < counts[choosing, None]  # rows of x × its columns: whether there is such a path
        self.rows = np.where(self.there, starts[:, None] + slots, 0)  # which path it is
        alone = ~np.isin(found.owner, choosing)
        fixed = found.uses[alone].T @ found.path_flows[alone]
        uses = csr_array(found.uses[self.rows[self.there]])
        size = np.where(self.there, roads.demand[choosing, None], 0.0)
        loss = _potential(roads, _flows_of(uses, np.flatnonzero(self.there), self.there.size, fixed), uncertain)
        super().__init__(loss, ez.sets.CappedSimplex(roads.demand[choosing], size), declared)

    @property
    def start(self) -> FloatArray:
        """The flows that were found while the paths were: where a run begins unless it is told otherwise."""
        return np.where(self.there, self.found.path_flows[self.rows], 0.0)

    @property
    def gap(self) -> float:
        """The relative gap that was reached while the paths were generated."""
        return self.found.gap

    @property
    def paths(self) -> tuple[tuple[Path, ...], ...]:
        """Of each trip: its paths, as numbers of edges from its origin to its destination."""
        uses, roads = self.found.uses, self.roads
        found: list[list[Path]] = [[] for _ in roads.trips]
        for path, owner in enumerate(self.found.owner):
            links = {int(roads.tail[i]): int(i) for i in uses.indices[uses.indptr[path] : uses.indptr[path + 1]]}
            at, way = int(roads.origins[roads.begins[owner]]), list[int]()
            while at in links:
                way.append(links[at])
                at = int(roads.head[way[-1]])
            found[owner].append(tuple(way))
        return tuple(tuple(own) for own in found)

    def path_flows(self, solution: ez.Solution) -> tuple[FloatArray, ...]:
        """Of each trip: the flow on each of its paths."""
        ends = np.searchsorted(self.found.owner, np.arange(1, len(self.roads.trips)))
        return tuple(np.split(self._all_paths(solution), ends))

    def link_flows(self, solution: ez.Solution) -> FloatArray:
        """How many travel on each link."""
        return np.asarray(self.found.uses.T @ self._all_paths(solution))

    def link_times(self, solution: ez.Solution) -> FloatArray:
        """How long each link takes, on average over the samples."""
        return self._now(solution).times(self.link_flows(solution))

    def relative_gap(self, solution: ez.Solution) -> float:
        """(Σ v t − Σ demand · quickest)/Σ v t, with the quickest ways of the whole network, at the samples' average.

        At most this share of all time could be saved by other paths, those that are not in the model among them.
        """
        return relative_gap(self._now(solution), self.link_flows(solution))

    def at(self, samples: ez.Samples | ArrayLike) -> "TrafficModel":
        """The same with the paths that the average of these samples asks for, besides those that are there.

        A certificate for these paths needs other samples: those that chose the paths cannot also judge them.
        """
        if self.uncertain is None:
            refuse("samples", "are given, but nothing in this model is uncertain", "Pass uncertain='delay', say")
        given = samples if isinstance(samples, ez.Samples) else ez.Samples(samples)
        roads = self._average(np.reshape(given.values, (len(given), -1)))
        found = _assigned(roads, self.tol, self.found).beside(self.found)
        return TrafficModel(self.roads, found, self.uncertain, self.tol, self.places, self.declared)

    def link_bands(self, solution: ez.Solution, delta: float = 0.05) -> LinkBands:
        """Bounds on the link flows of the true equilibrium, all at once, with probability 1 − δ (_link_bands.py).

        They speak of the whole network, whatever the paths; the samples need a box as support.
        """
        if self.uncertain is None:
            refuse("solution", "was found without samples: its link flows are no estimates", "Use link_flows")
        now, rows = self._now(solution), sample_rows(solution, len(self.roads.edges))
        support = getattr(solution.samples, "support", None)
        if not isinstance(support, ez.sets.Box):
            refuse("samples", "need a box as support", "Write ez.Samples(values, support=ez.sets.Box(lower, upper))")
        ends = [np.broadcast_to(end, len(self.roads.edges)) for end in (support.lower, support.upper)]
        if self.uncertain == "capacity":
            ends = [_features(ends[1], self.roads), _features(ends[0], self.roads)]
            rows = _features(rows, self.roads)
        elif (self.roads.free + ends[0] < 0).any():
            link = int(np.argmin(self.roads.free + ends[0]))
            refuse("samples", f"their support lets link {link} take less than no time", "Pass a narrower support")
        kind = ez.certificates.MeanDeviation(
            ez.certificates.Betting(), None if self.uncertain == "delay" else _box(ends)
        )
        certificate = ez.certify(solution, delta=delta, using=kind)
        if certificate.verdict is ez.certificates.Verdict.REFUSED:
            refuse("solution", f"cannot be certified: {certificate.reason}", "Mend that first")
        mean = ez.certificates.Betting().around(rows, ez.certificates.Region.box(*ends), delta)
        low, high = (self._with(mean.centre + sign * mean.radius) for sign in (-1.0, 1.0))
        flows = self.link_flows(solution)
        lower, upper = bands(now, low, high, flows)
        return LinkBands(flows, lower, upper, delta, certificate.verdict, certificate.leans_on)

    def traffic(self, solution: ez.Solution) -> Traffic:
        """Flows, times and paths."""
        flows, times = self.link_flows(solution), self.link_times(solution)
        costs = self.found.uses @ times
        ends = np.searchsorted(self.found.owner, np.arange(1, len(self.roads.trips)))
        of_paths = (self.path_flows(solution), tuple(np.split(costs, ends)))
        return Traffic(self.roads.edges, flows, times, self.roads.trips, self.paths, *of_paths, self.roads.closed)

    def plot(self, solution: ez.Solution, **options: Any) -> "Figure":
        """The map with its link flows; `labels=False` leaves out numbers, `bands` are those of `link_bands`."""
        labels, found, certificate = (options.pop(name, None) for name in ("labels", "bands", "certificate"))
        if options:
            refuse(
                "plot", f"knows no option {next(iter(options))!r}", "Pass labels=False, or bands=model.link_bands(…)"
            )
        sheet = draw_map(self.roads, self.places or places(self.roads, None), self.traffic(solution), labels, found)
        if found is None:
            note(sheet, certificate)
        return sheet

    def _all_paths(self, solution: ez.Solution) -> FloatArray:
        flows = self.found.path_flows.copy()
        flows[self.rows[self.there]] = strategies_of(solution, self.there.shape)[self.there]
        return flows

    def _now(self, solution: ez.Solution) -> Roads:
        """The network as it is on average over the solution's samples."""
        if self.uncertain is None:
            return self.roads
        return self._average(sample_rows(solution, len(self.roads.edges)))

    def _average(self, rows: FloatArray) -> Roads:
        links = len(self.roads.edges)
        if rows.shape[1:] != (links,):
            refuse("samples", f"must have one number per link, {links}, but they have {rows.shape[1]}", "Pass as many")
        found = self._with((rows if self.uncertain == "delay" else _features(rows, self.roads)).mean(axis=0))
        if (found.free < 0).any():
            link = int(np.argmin(found.free))
            refuse(
                "samples",
                f"their mean leaves {found.free[link]:g} as the time of link {link} when it is empty",
                "Pass delays that leave a time ≥ 0",
            )
        return found

    def _with(self, mean: FloatArray) -> Roads:
        """The network where the mean delay, or the mean factor on what congestion adds, is this."""
        return self.roads.at(0.0, mean) if self.uncertain == "capacity" else self.roads.at(mean, 1.0)


def _of(solution: Any) -> Traffic:
    model = getattr(solution, "problem", None)
    return model.traffic(solution) if isinstance(model, TrafficModel) else traffic_of(solution)


def _assigned(roads: Roads, tol: float, start: Assignment | None = None) -> Assignment:
    found = assign(roads, tol, start)
    if found.gap > max(tol, POOR):
        warnings.warn(
            f"traffic: paths were generated up to a relative gap of {found.gap:.1e} only, not {tol:.1e}. Look at "
            "model.relative_gap(solution); demands far beyond capacities, or units far from 1, may be the reason.",
            RuntimeWarning,
            stacklevel=4,
        )
    return found


def _trips(given: Any) -> tuple[Trip, ...]:
    if isinstance(given, str | os.PathLike):
        return read_trips(given)
    if hasattr(given, "columns") or isinstance(given, Mapping):
        names = ("origin", "destination", "demand")
        for name in names:
            if name not in getattr(given, "columns", given):
                refuse("trips", f"has no column {name!r}", "Name its columns origin, destination and demand")
        given = list(zip(*(list(given[name]) for name in names), strict=True))
    elif isinstance(given, np.ndarray):
        given = [tuple(row) for row in given.tolist()] if given.ndim == 2 else given
    return checked_trips(given)


def _features(rows: FloatArray, roads: Roads) -> FloatArray:
    """ξ^−power."""
    if not (rows > 0).all():
        refuse("samples", f"must be factors on capacities, above 0, but one can be {rows.min():g}", "Correct it")
    return rows**-roads.power


def _box(ends: Sequence[FloatArray]) -> ez.sets.Box:
    return ez.sets.Box(ends[0], ends[1])


def _flows_of(uses: csr_array, places: Any, size: int, fixed: FloatArray) -> Any:
    """From x, flat, to link flows; `places`: the entries of x that are paths."""
    links = len(fixed)
    if size * links <= DENSE:
        dense = np.zeros((links, size))
        dense[:, places] = uses.T.toarray()
        return lambda x: fixed + dense @ x
    path, link = uses.nonzero()
    entry = places[path]
    return lambda x: jnp.asarray(fixed).at[link].add(x[entry])


def _potential(roads: Roads, flows_of: Any, uncertain: Uncertain | None) -> Any:
    free, slope = roads.free, roads.slope / (roads.power + 1.0)
    powers = np.unique(roads.power[roads.slope > 0]) + 1.0
    alike = len(powers) <= 1 and float(np.sum(powers)).is_integer()  # products then, which can be followed exactly
    raised = (int(np.sum(powers)) or 1) if alike else roads.power + 1.0

    def delayed(x: jax.Array, delay: jax.Array | float) -> jax.Array:
        v = flows_of(jnp.ravel(x))
        return jnp.sum((free + delay) * v + slope * v**raised)

    def narrowed(x: jax.Array, factor: jax.Array) -> jax.Array:
        v = flows_of(jnp.ravel(x))
        return jnp.sum(free * v + factor * slope * v**raised)

    if uncertain == "delay":
        return ez.oracles.Affine(delayed)
    if uncertain == "capacity":
        power = roads.power
        return ez.oracles.Affine(narrowed, lambda xi: xi**-power)
    return lambda x: delayed(x, 0.0)
