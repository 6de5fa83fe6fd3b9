"""Traffic on generated paths: closed forms, other solvers, gaps recomputed by other code, and bounds from samples."""

import io
import itertools
from pathlib import Path

import cvxpy as cp
import numpy as np
import polars as pl
import pytest

import epszero as ez
from epszero.models import _link_bands
from epszero.models._assignment import assign, relative_gap
from epszero.models._roads import roads_of
from epszero.models._tntp import read_network, read_trips

DATA = Path(__file__).parent.parent / "data"
BRAESS = [("s", "a", 0, 10), ("s", "b", 50, 1), ("a", "t", 50, 1), ("b", "t", 0, 10), ("a", "b", 10, 1)]
Edge = ez.models.Edge


def roads(edges, trips, closed=()):
    return roads_of([Edge(*edge) for edge in edges], trips, frozenset(closed))


@pytest.fixture(scope="module")
def lattice():
    streets, trips = read_network(DATA / "lattice_net.tntp"), read_trips(DATA / "lattice_trips.tntp")
    return roads_of(streets.edges, trips, streets.closed)


@pytest.fixture(scope="module")
def bridge():
    model = ez.models.traffic(BRAESS, [("s", "t", 6)])
    return model, ez.solve(model)


# -- known equilibria --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_braess(bridge):
    model, solution = bridge
    np.testing.assert_allclose(model.link_flows(solution), [4, 2, 2, 4, 2], atol=1e-9)
    np.testing.assert_allclose(model.link_times(solution), [40, 52, 52, 40, 12], atol=1e-8)
    assert sorted(model.paths[0]) == [(0, 2), (0, 4, 3), (1, 3)]
    assert abs(model.relative_gap(solution)) <= 1e-12
    now = ez.models.traffic(solution)
    np.testing.assert_allclose(now.path_times[0], 92.0)
    assert now.paths == model.paths
    assert abs(now.gap) <= 1e-12
    assert "2 in 92 by s → a → b → t" in str(now)
    assert solution.check().residual <= 1e-9


def test_a_point_that_is_no_equilibrium_has_the_gap_of_its_detours():
    """All over the bridge: each takes 136, but s → a → t takes 60 + 50."""
    found = roads(BRAESS, [("s", "t", 6.0)])
    flows = np.array([6.0, 0, 0, 6.0, 6.0])
    assert relative_gap(found, flows) == pytest.approx((136 - 110) / 136)


def test_pigou():
    found = assign(roads([("s", "t", 1), ("s", "t", 0, 1)], [("s", "t", 1.0)]), 1e-12)
    np.testing.assert_allclose(found.flows, [0.0, 1.0], atol=1e-9)


def test_parallel_links_in_closed_form():
    """With times a + b v all used links take λ: Σ (λ − a)/b over those with a < λ is the demand."""
    rng = np.random.default_rng(0)
    a, b, demand = rng.uniform(1, 5, 8), rng.uniform(0.1, 1, 8), 6.0
    found = assign(roads([("s", "t", *pair) for pair in zip(a, b, strict=True)], [("s", "t", demand)]), 1e-13)
    order = np.argsort(a)
    for many in range(1, 9):
        used = order[:many]
        level = (demand + np.sum(a[used] / b[used])) / np.sum(1 / b[used])
        if many == 8 or level <= a[order[many]]:
            break
    assert 1 < many < 8
    np.testing.assert_allclose(found.flows, np.maximum(level - a, 0) / b, atol=1e-7)


def test_trips_without_a_choice():
    model = ez.models.traffic([("s", "t", 1, 1), ("t", "u", 1, 1, 4)], [("s", "u", 2.0), ("t", "u", 1.0)])
    assert model.paths == (((0, 1),), ((1,),))
    np.testing.assert_allclose(model.start, [[2.0], [1.0]])
    assert model.gap == 0.0


def test_zones_are_not_passed_through():
    """The way over z would be quicker; from z and to z it may be taken."""
    edges = [("s", "z", 1), ("z", "t", 1), ("s", "t", 5, 1)]
    trips = [("s", "t", 1.0), ("s", "z", 1.0), ("z", "t", 1.0)]
    np.testing.assert_allclose(assign(roads(edges, trips), 1e-12).flows, [2, 2, 0])
    np.testing.assert_allclose(assign(roads(edges, trips, ["z"]), 1e-12).flows, [1, 1, 1])
    with pytest.raises(ez.InputError, match="no path leads from 's' to 'u'"):
        ez.models.traffic([("s", "z", 1), ("z", "u", 1)], [("s", "u", 1.0)], closed=["z"])


def test_links_that_take_no_time():
    found = assign(roads([("s", "a", 0), ("a", "t", 0), ("s", "t", 0, 1)], [("s", "t", 3.0)]), 1e-12)
    np.testing.assert_allclose(found.flows, [3, 3, 0], atol=1e-9)


# -- other solvers and other code --------------------------------------------------------------------------------------


def by_arcs(net):
    """Link flows from a convex programme with one flow per origin on every link, conserved at every node."""
    size = np.zeros((len(net.origins), net.nodes))
    for begin, end, demand in zip(net.begins, net.ends, net.demand, strict=True):
        size[begin, end] += demand
        size[begin, net.origins[begin]] -= demand
    balance = np.zeros((net.nodes, len(net.free)))
    balance[net.head, np.arange(len(net.free))] += 1
    balance[net.tail, np.arange(len(net.free))] -= 1
    unit = net.demand.sum()  # flows as shares of all demand
    shares = cp.Variable((len(net.origins), len(net.free)), nonneg=True)
    v = cp.sum(shares, axis=0)
    congestion = net.slope * unit**net.power / (net.power + 1)
    cost = net.free @ v + sum(
        weight * cp.power(v[e], int(p) + 1)
        for e, (weight, p) in enumerate(zip(congestion, net.power, strict=True))
        if weight
    )
    cp.Problem(cp.Minimize(cost), [shares @ balance.T == size / unit]).solve(
        cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10
    )
    return np.sum(shares.value, axis=0) * unit


def test_link_flows_are_those_of_a_convex_programme(lattice):
    found = assign(lattice, 1e-13)
    assert len(found.owner) > len(lattice.trips)  # some choose
    grows = lattice.slope > 0
    np.testing.assert_allclose(found.flows[grows], by_arcs(lattice)[grows], atol=1e-5 * lattice.demand.sum())


def frank_wolfe(edges, trips, steps):
    """All-or-nothing by Bellman and Ford in plain Python, exact steps."""
    free, slope, power = (np.array([edge[k] for edge in edges]) for k in (2, 3, 4))

    def loaded(times):
        flows = np.zeros(len(edges))
        for origin, destination, demand in trips:
            far, by = {origin: 0.0}, {}
            for _ in range(len(edges)):
                for i, edge in enumerate(edges):
                    if edge.tail in far and far[edge.tail] + times[i] < far.get(edge.head, np.inf) - 1e-15:
                        far[edge.head], by[edge.head] = far[edge.tail] + times[i], i
            at = destination
            while at != origin:
                flows[by[at]] += demand
                at = edges[by[at]].tail
        return flows

    v = loaded(free)
    for _ in range(steps):
        along = loaded(free + slope * v**power) - v
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            rises = (free + slope * (v + middle * along) ** power) @ along > 0
            low, high = (low, middle) if rises else (middle, high)
        v = v + high * along
    return v


def test_link_flows_are_those_of_frank_and_wolfe():
    edges = [Edge.bpr(*edge[:2], 1 + edge[2] / 20, capacity=3.0) for edge in BRAESS]
    trips = [("s", "t", 6.0), ("s", "b", 2.0)]
    found = assign(roads(edges, trips), 1e-13)
    np.testing.assert_allclose(found.flows, frank_wolfe(edges, trips, 300), atol=1e-5)


def test_the_gap_is_that_of_plain_python(lattice):
    """Dijkstra's algorithm in the house's own Python, trip by trip, at flows that are no equilibrium, and at one."""
    streets = read_network(DATA / "lattice_net.tntp")
    for tol in (0.5, 1e-3, 1e-12):
        found = assign(lattice, tol)
        times = lattice.times(found.flows)
        by_hand = ez.models.Traffic(streets.edges, found.flows, times, lattice.trips, (), (), (), streets.closed)
        assert relative_gap(lattice, found.flows) == pytest.approx(by_hand.gap, abs=1e-13)
        assert found.gap <= tol


def test_flows_serve_the_trips_and_paths_lead_there(lattice):
    found = assign(lattice, 1e-12)
    np.testing.assert_allclose(np.bincount(found.owner, found.path_flows), lattice.demand, rtol=1e-14)
    assert (found.path_flows >= 0).all()
    model = ez.models.traffic(DATA / "lattice_net.tntp", DATA / "lattice_trips.tntp")
    for (origin, destination, _), own in zip(lattice.trips, model.paths, strict=True):
        assert len(set(own)) == len(own) >= 1
        for path in own:
            ends = [(lattice.edges[i].tail, lattice.edges[i].head) for i in path]
            assert ends[0][0] == origin
            assert ends[-1][1] == destination
            assert all(a[1] == b[0] and a[1] > 4 for a, b in itertools.pairwise(ends))


@pytest.mark.long
def test_the_lattice_through_the_library():
    """From the flows that were found, and from another point: the same link flows, and the gap by other code."""
    model = ez.models.traffic(DATA / "lattice_net.tntp", DATA / "lattice_trips.tntp")
    solution = ez.solve(model)
    flows = model.link_flows(solution)
    assert model.relative_gap(solution) == pytest.approx(ez.models.traffic(solution).gap, abs=1e-13)
    assert model.relative_gap(solution) <= 1e-10
    other = ez.solve(model, x0=np.where(model.there, 1.0, 0.0))
    np.testing.assert_allclose(model.link_flows(other), flows, atol=1e-5 * flows.max())


# -- what is given -----------------------------------------------------------------------------------------------------


def test_trips_as_tables():
    table = {"origin": ["s", "s"], "destination": ["t", "b"], "demand": [6.0, 1.0]}
    listed = ez.models.traffic(BRAESS, [("s", "t", 6.0), ("s", "b", 1.0)])
    for given in (table, pl.DataFrame(table)):
        assert ez.models.traffic(BRAESS, given).roads.trips == listed.roads.trips
    numbered = ez.models.traffic([(1, 2, 1.0)], np.array([[1, 2, 5.0]]))
    assert numbered.roads.trips == ((1, 2, 5.0),)


REFUSED = {
    "uncertain of what": (lambda: ez.models.traffic(BRAESS, [("s", "t", 6)], uncertain="demand"), "uncertain: must be"),
    "no trips": (lambda: ez.models.traffic(BRAESS), "trips: are missing. Pass tuples"),
    "no columns": (lambda: ez.models.traffic(BRAESS, {"from": ["s"]}), "trips: has no column 'origin'"),
    "a flat array": (lambda: ez.models.traffic(BRAESS, np.zeros(3)), "trips: must be a list"),
    "tol of nothing": (lambda: ez.models.traffic(BRAESS, [("s", "t", 6)], tol=0.0), "tol: must be above 0"),
    "at of the certain": (lambda: ez.models.traffic(BRAESS, [("s", "t", 6)]).at([[1.0]]), "samples: are given, but"),
    "narrow samples": (lambda: uncertain().at(np.ones((9, 2))), "samples: must have one number per link, 5, but .* 2"),
    "times below zero": (lambda: uncertain().at(-np.ones((9, 5))), "samples: their mean leaves -1 as the time"),
    "no capacity": (lambda: uncertain("capacity").at(np.zeros((9, 5))), "samples: must be factors .* above 0"),
    "bands of nothing": (lambda: ez.models.traffic(BRAESS, [("s", "t", 6)]).link_bands(None), "was found without"),
}  # fmt: skip


def uncertain(kind="delay"):
    return ez.models.traffic(BRAESS, [("s", "t", 6)], uncertain=kind)


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence(case):
    call, sentence = REFUSED[case]
    with pytest.raises(ez.InputError, match=sentence):
        call()


def test_the_map_shows_link_flows(bridge):
    model, solution = bridge
    figure = model.plot(solution)
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts[:5] == ["4\n[40]", "2\n[52]", "2\n[52]", "4\n[40]", "2\n[12]"]
    figure.savefig(io.BytesIO())
    with pytest.raises(ez.InputError, match="plot: knows no option 'colour'"):
        model.plot(solution, colour="red")


# -- from samples ------------------------------------------------------------------------------------------------------


def test_samples_ask_for_paths_that_were_not_there():
    """A road that nobody takes until the other one is delayed."""
    model = ez.models.traffic([("s", "t", 1, 0.1), ("s", "t", 9, 0.1)], [("s", "t", 5.0)], uncertain="delay")
    assert model.paths == (((0,),),)
    wider = model.at(np.full((4, 2), [20.0, 0.0]))
    assert sorted(wider.paths[0]) == [(0,), (1,)]
    np.testing.assert_allclose(wider.found.flows, [0.0, 5.0], atol=1e-9)


@pytest.mark.parametrize("kind", ["delay", "capacity"])
def test_bands_hold_the_truth_and_broken_ones_do_not(kind, lattice):
    """Flows at the equilibrium of 40 samples, the truth at the mean of the law; the twin takes the average for it."""
    rng = np.random.default_rng(1)
    links, delta, trials = len(lattice.free), 0.2, 40
    wide = 0.6 * lattice.free + 0.1
    misses, twin_misses, widths = 0, 0, []

    def at(mean):
        return lattice.at(mean, 1.0) if kind == "delay" else lattice.at(0.0, mean)

    low, high = (np.zeros(links), wide) if kind == "delay" else (np.full(links, 0.5), np.full(links, 2.0))
    share = rng.uniform(0.2, 0.8, links)  # of the law's mass at the upper end
    truth = assign(at(low + share * (high - low)), 1e-13).flows
    grows = lattice.slope > 0
    for _ in range(trials):
        rows = np.where(rng.random((40, links)) < share, high, low)
        box = ez.certificates.Betting().around(rows, ez.certificates.Region.box(low, high), delta)
        flows = assign(at(rows.mean(axis=0)), 1e-12).flows
        ends = (at(np.maximum(box.centre + sign * box.radius, low)) for sign in (-1, 1))
        lower, upper = _link_bands.bands(at(rows.mean(axis=0)), *ends, flows)
        assert (lower <= flows).all()
        assert (flows <= upper).all()
        misses += not ((lower <= truth)[grows] & (truth <= upper)[grows]).all()
        widths.append(np.median((upper - lower)[grows]))
        exact = at(rows.mean(axis=0))
        lower, upper = _link_bands.bands(exact, exact, exact, flows)  # as if the sample mean were the truth
        twin_misses += not ((lower <= truth)[grows] & (truth <= upper)[grows]).all()
    assert misses <= delta * trials
    assert twin_misses > 0.9 * trials
    assert np.median(widths) < 6000  # all demand: the bands say something


def test_bands_are_narrow_where_the_mean_is_all_but_known(lattice):
    flows = assign(lattice, 1e-13).flows
    lower, upper = _link_bands.bands(lattice, lattice.at(-1e-9, 1.0), lattice.at(1e-9, 1.0), flows)
    used = (lattice.slope > 0) & (flows > 300)
    assert np.max((upper - lower)[used]) < 2.0
    poor = assign(lattice, 0.5)  # no equilibrium: the gap widens them, and they hold it all the same
    lower, upper = _link_bands.bands(lattice, lattice, lattice, poor.flows)
    grows = lattice.slope > 0
    assert ((lower <= flows) & (flows <= upper))[grows].all()
    assert np.max((upper - lower)[used]) > 10.0


def test_bands_hold_where_a_link_cannot_be_reached():
    net = roads([("s", "t", 1, 1), ("s", "t", 2, 1), ("u", "t", 1, 1)], [("s", "t", 3.0)])
    flows = assign(net, 1e-13).flows
    lower, upper = _link_bands.bands(net, net.at(-0.1, 1.0), net.at(0.1, 1.0), flows)
    np.testing.assert_allclose(flows, [2.0, 1.0, 0.0], atol=1e-9)
    assert ((lower <= flows) & (flows <= upper)).all()
    assert 0.05 <= upper[0] - flows[0] <= 0.5  # the truth can move by 0.1


@pytest.mark.long
@pytest.mark.parametrize("kind", ["delay", "capacity"])
def test_uncertain_networks_are_solved_and_certified(kind):
    low, high = (0.0, 2.0) if kind == "delay" else (0.8, 1.25)
    values = np.random.default_rng(0).uniform(low, high, (2500, 5))
    pilot, rest = (ez.Samples(part, support=ez.sets.Box(low, high, dim=5)) for part in (values[:500], values[500:]))
    model = uncertain(kind).at(pilot)
    solution = ez.solve(model, rest)
    assert model.relative_gap(solution) <= 1e-8
    assert ez.certify(solution).verdict is ez.certificates.Verdict.CONDITIONAL
    band = model.link_bands(solution)
    assert band.verdict is ez.certificates.Verdict.CONDITIONAL
    mean = np.ones(5) if kind == "delay" else np.full(5, np.log(1.25 / 0.8) / 0.45)  # E 1/ξ
    truth = assign(model._with(mean), 1e-13).flows
    assert ((band.lower <= truth) & (truth <= band.upper)).all()
    assert "95 % confidence; conditional" in str(band)
    if kind == "delay":
        early = ez.Samples(rest.values - 1e-9, support=ez.sets.Box(-1.0, 2.0, dim=5))
        with pytest.raises(ez.InputError, match="samples: their support lets link 0 take less than no time"):
            model.link_bands(ez.solve(model, early))
        walk = ez.Samples(np.sort(rest.values, axis=0), support=rest.support)
        with pytest.raises(ez.InputError, match="solution: cannot be certified: .*independent"):
            model.link_bands(ez.solve(model, walk))
    with pytest.raises(ez.InputError, match="samples: need a box as support"):
        model.link_bands(ez.solve(model, rest.values))


@pytest.mark.long
def test_the_page(example):
    page = example("Traffic networks")
    np.testing.assert_allclose(page["model"].link_flows(ez.solve(page["model"])), [4, 2, 2, 4, 2], atol=1e-8)
    truth = assign(page["town"]._with(np.ones(5)), 1e-13).flows
    assert ((page["bands"].lower <= truth) & (truth <= page["bands"].upper)).all()
    assert page["town"].relative_gap(page["solution"]) <= 1e-8
