"""Traffic: published examples, closed forms, and the paths themselves; the map."""

import io
import itertools

import numpy as np
import pytest

import epszero as ez

BRAESS = [("s", "a", 0, 10), ("s", "b", 50, 1), ("a", "t", 50, 1), ("b", "t", 0, 10), ("a", "b", 10, 1)]
PIGOU = [("s", "t", 1), ("s", "t", 0, 1)]
DELAYS = ez.Samples(np.random.default_rng(2).exponential(2.0, size=(50, 5)))


@pytest.fixture(scope="module")
def bridge(example):
    page = example("Traffic")
    assert page["traffic"].path_times[0] == pytest.approx(92.0)
    return ez.solve(page["game"], x0=[[6.0, 0.0, 0.0]])  # page's own start is the equilibrium


@pytest.mark.long
def test_braess_with_the_bridge(bridge):
    traffic = ez.models.traffic(bridge)
    np.testing.assert_allclose(traffic.path_flows[0], [2.0, 2.0, 2.0], atol=1e-7)
    np.testing.assert_allclose(traffic.path_times[0], [92.0, 92.0, 92.0], atol=1e-6)
    np.testing.assert_allclose(traffic.flows, [4.0, 2.0, 2.0, 4.0, 2.0], atol=1e-7)
    np.testing.assert_allclose(traffic.times, [40.0, 52.0, 52.0, 40.0, 12.0], atol=1e-6)
    assert traffic.total_time == pytest.approx(6 * 92.0)
    assert traffic.gap == pytest.approx(0.0, abs=1e-8)
    assert bridge.check_equilibrium().largest <= 1e-7
    assert str(traffic).splitlines() == [
        "s to t, 6:", "         2 in 92 by s → a → b → t", "         2 in 92 by s → a → t",
        "         2 in 92 by s → b → t",
    ]  # fmt: skip


@pytest.mark.long
def test_braess_without_the_bridge():
    traffic = ez.models.traffic(ez.solve(ez.models.routing(BRAESS[:4], [("s", "t", 6.0)]), x0=[[6.0, 0.0]]))
    np.testing.assert_allclose(traffic.path_times[0], [83.0, 83.0], atol=1e-6)


@pytest.mark.long
def test_pigou():
    """All take the road that fills."""
    traffic = ez.models.traffic(ez.solve(ez.models.routing(PIGOU, [("s", "t", 1.0)])))
    np.testing.assert_allclose(traffic.flows, [0.0, 1.0], atol=1e-7)
    assert traffic.gap == pytest.approx(0.0, abs=1e-7)


@pytest.mark.long
def test_two_owners_of_traffic():
    """Owner i on Pigou's network: 2 y_i + y_j = 1 on the road that fills, so a third each."""
    solution = ez.solve(ez.models.routing(PIGOU, [("s", "t", 0.5), ("s", "t", 0.8)], atomic=True))
    np.testing.assert_allclose([flows[0] for flows in solution.x], [1 / 3, 1 / 3], atol=1e-7)
    assert solution.check_equilibrium().largest <= 1e-8


@pytest.mark.long
def test_uncertain_delays_and_a_path_that_was_left_out():
    game = ez.models.routing(BRAESS, [("s", "t", 6.0)], uncertain=True, most_paths=2)
    traffic = ez.models.traffic(ez.solve(game, DELAYS))
    delay = DELAYS.values.mean(axis=0)
    by_hand = [edge[2] + edge[3] * flow for edge, flow in zip(BRAESS, traffic.flows, strict=True)] + delay
    np.testing.assert_allclose(traffic.times, by_hand)
    np.testing.assert_allclose(traffic.path_times[0], traffic.path_times[0].mean(), atol=1e-6)
    assert (traffic.path_flows[0] > 0.1).all()
    left_out = traffic.times[[1, 3]].sum()  # by b
    assert traffic.gap == pytest.approx(1 - left_out / traffic.path_times[0][0])
    assert traffic.gap > 0.01


def test_paths_are_simple_complete_and_in_order():
    rng = np.random.default_rng(0)
    nodes = range(6)
    edges = [(a, b, float(rng.uniform(1, 9))) for a, b in itertools.permutations(nodes, 2) if rng.random() < 0.6]
    game = ez.models.routing(edges, [(0, 5, 1.0)], most_paths=10_000)
    (paths,) = game.picture.network.paths
    free = [sum(edges[i][2] for i in path) for path in paths]
    assert free == sorted(free)
    between = [
        (0, *middle, 5) for many in range(5) for chosen in itertools.combinations(range(1, 5), many)
        for middle in itertools.permutations(chosen)
    ]  # fmt: skip
    there = {(a, b) for a, b, _ in edges}
    wanted = {walk for walk in between if all(step in there for step in itertools.pairwise(walk))}
    assert {(0, *(edges[i][1] for i in path)) for path in paths} == wanted
    assert len(paths) == len(wanted) >= 10
    few = ez.models.routing(edges, [(0, 5, 1.0)], most_paths=5).picture.network.paths[0]
    assert few == paths[:5]


def test_the_formula_of_the_bureau_of_public_roads():
    edge = ez.models.Edge.bpr("a", "b", 10.0, capacity=200.0)
    assert edge.free + edge.slope * 200.0**edge.power == pytest.approx(11.5)
    assert edge.free + edge.slope * 400.0**edge.power == pytest.approx(10.0 * (1 + 0.15 * 16))


def test_the_map_shows_flows_and_times(bridge):
    figure = bridge.problem.plot(bridge)
    (ax,) = figure.axes
    texts = [text.get_text() for text in ax.texts]
    assert texts[:5] == ["4\n[40]", "2\n[52]", "2\n[52]", "4\n[40]", "2\n[12]"]
    assert sorted(texts[5:]) == ["a", "b", "s", "t"]
    widths = np.array([arrow.get_linewidth() for arrow in ax.patches])
    assert widths[0] == widths.max() > widths[1]
    figure.savefig(io.BytesIO())
    bare = bridge.problem.plot(bridge, labels=False).axes[0]
    assert len(bare.texts) == 4


def test_nodes_are_drawn_where_the_user_says(bridge):
    where = {"s": (100, 0), "a": (300, 200), "b": (300, -200), "t": (500, 0)}
    game = ez.models.routing(BRAESS, [("s", "t", 6.0)], positions=where)
    names = {text.get_text(): np.array(text.get_position()) for text in game.plot(bridge).axes[0].texts}
    np.testing.assert_allclose((names["t"] - names["s"])[1], 0.0, atol=1e-12)
    np.testing.assert_allclose(names["a"] - names["s"], (names["t"] - names["b"]))
