"""TNTP files: a pair of our own making is read as it is written, and damaged ones are answered with a sentence."""

from pathlib import Path

import numpy as np
import pytest

import epszero as ez
from epszero.models._tntp import read_network, read_trips

DATA = Path(__file__).parent.parent / "data"
NET, TRIPS = DATA / "lattice_net.tntp", DATA / "lattice_trips.tntp"


def test_a_network_is_read_as_it_is_written():
    streets = read_network(NET)
    assert len(streets.edges) == 46
    assert streets.closed == {1, 2, 3, 4}
    assert streets.zones == 4
    connector = streets.edges[0]
    assert connector == ez.models.Edge(1, 5, 0.5)  # capacity, b and power are 0
    line = next(line for line in NET.read_text().splitlines() if line.startswith("\t5\t6\t"))
    _, _, capacity, _, free, b, power = map(float, line.split()[:7])
    street = next(edge for edge in streets.edges if edge[:2] == (5, 6))
    for flow in (0.0, 100.0, 2 * capacity):
        by_hand = free * (1 + b * (flow / capacity) ** power)
        assert street.free + street.slope * flow**street.power == pytest.approx(by_hand)


def test_trips_are_read_but_for_those_of_nobody_and_to_the_own_zone():
    trips = read_trips(TRIPS)
    assert len(trips) == 11
    assert trips[0] == (1, 2, 500.0)
    assert sum(demand for _, _, demand in trips) == 6000.0
    assert not any(origin == destination or (origin, destination) == (2, 3) for origin, destination, _ in trips)


def network(*lines, links=None, head="<NUMBER OF ZONES> 2\n<NUMBER OF NODES> 3\n<FIRST THRU NODE> 1\n"):
    count = "" if links is None else f"<NUMBER OF LINKS> {links}\n"
    return f"{head}{count}<END OF METADATA>\n~ a comment ;\n" + "\n".join(lines) + "\n"


def demands(*lines, head="<NUMBER OF ZONES> 3\n"):
    return f"{head}<END OF METADATA>\n\n" + "\n".join(lines) + "\n"


GOOD = "1 2 10 1 2 0.15 4 0 0 1 ;"

EDGES = {
    "power 0 is a constant time, whatever the capacity": ("1 2 0 1 2 0.5 0 0 0 1 ;", (3.0, 0.0)),
    "b = 0 is one, too": ("1 2 0 1 2 0 4 0 0 1;", (2.0, 0.0)),
    "seven fields are enough": ("1 2 10 1 2 0.15 1", (2.0, 0.03)),
    "a comment after a link": ("1 2 10 1 2 0.15 1 ; ~ a bridge", (2.0, 0.03)),
    "a time of 0": ("1 2 0 1 0 0.15 4 0 0 1 ;", (0.0, 0.0)),
}


@pytest.mark.parametrize("case", EDGES)
def test_edges_of_the_format(case, tmp_path):
    line, (free, slope) = EDGES[case]
    (tmp_path / "a_net.tntp").write_text(network(line))
    (edge,) = read_network(tmp_path / "a_net.tntp").edges
    assert (edge.free, edge.slope) == (pytest.approx(free), pytest.approx(slope))


def test_tolls_and_lengths_count_where_the_file_has_factors(tmp_path):
    head = "<TOLL FACTOR> 0.1\n<DISTANCE FACTOR> 2\n"
    (tmp_path / "a_net.tntp").write_text(network("1 2 10 3 2 0 4 0 50 1 ;", head=head))
    assert read_network(tmp_path / "a_net.tntp").edges[0].free == pytest.approx(2 + 0.1 * 50 + 2 * 3)


DAMAGED = {
    "no end of metadata": (f"<NUMBER OF ZONES> 2\n{GOOD}\n", r"line 2: comes before <END OF METADATA>. Write"),
    "only metadata": ("<NUMBER OF ZONES> 2\n", "has no <END OF METADATA>"),
    "no links": (network(), "has no links. Pass a file"),
    "a link cut short": (network(GOOD, "2 3 10 1"), "line 7: has 4 fields, but a link needs 7: tail, head, .*Complete"),
    "a word for a number": (network("1 2 ten 1 2 0.15 4 ;"), "line 6: has capacity 'ten', which is no number. Correct"),
    "not a number": (network("1 2 nan 1 2 0.15 4 ;"), "line 6: has capacity 'nan', which is not finite"),
    "half a node": (network("1.5 2 10 1 2 0.15 4 ;"), "line 6: has tail 1.5, which must be a whole number"),
    "to itself": (network("2 2 10 1 2 0.15 4 ;"), "line 6: leads from 2 to itself. Drop"),
    "time below zero": (network("1 2 10 1 -2 0.15 4 ;"), "line 6: has free-flow time -2, which must be at least 0"),
    "no capacity": (network("1 2 0 1 2 0.15 4 ;"), "line 6: has capacity 0, but its time grows"),
    "a root": (network("1 2 10 1 2 0.15 0.5 ;"), "line 6: has power 0.5, which must be 0 or at least 1"),
    "a link missing": (network(GOOD, links=2), "has 1 links, but <NUMBER OF LINKS> is 2. Is the file complete"),
    "a node too many": (network("1 9 10 1 2 0.15 4 ;"), "has a node 9, but <NUMBER OF NODES> is 3"),
    "a count that is none": (network(GOOD, head="<NUMBER OF ZONES> two\n"), "line 1: has <NUMBER OF ZONES> 'two'"),
    "beyond float64": (network("1 2 1e-200 1 2 0.15 4 ;"), "line 6: has capacity 1e-200 at power 4, beyond float64"),
    "a rebate": (network("1 2 9 1 2 0 4 0 -9 1;", head="<TOLL FACTOR> 1\n"), "line 4: takes -7 when it is empty"),
}
DAMAGED_TRIPS = {
    "no origin": (demands("2 : 5.0;"), "line 4: comes before the first 'Origin'. Begin"),
    "no number of the origin": (demands("Origin"), "line 4: must be 'Origin' and a number"),
    "no colon": (demands("Origin 1", "2 5.0;"), "line 5: must be 'destination : demand;', but it is '2 5.0'"),
    "a demand in words": (demands("Origin 1", "2 : many;"), "line 5: has demand 'many', which is no number"),
    "a demand below zero": (demands("Origin 1", "2 : -5;"), "line 5: has demand -5, which must be at least 0"),
    "an unknown zone": (demands("Origin 1", "7 : 5;"), "line 5: has destination 7, but <NUMBER OF ZONES> is 3"),
    "twice": (demands("Origin 1", "2 : 5; 2 : 6;"), "line 5: has the trip from 1 to 2 a second time"),
    "nobody travels": (demands("Origin 1", "2 : 0; 1 : 5;"), "has no trips"),
    "demands missing": (demands("Origin 1", "2 : 5;", head="<TOTAL OD FLOW> 9\n"), "has demands of 5 in all, but"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_network_is_refused_by_its_line(case, tmp_path):
    text, sentence = DAMAGED[case]
    file = tmp_path / "a_net.tntp"
    file.write_text(text)
    with pytest.raises(ez.InputError, match=f"network: a_net.tntp(, line |: ).*{sentence.removeprefix('line ')}"):
        ez.models.traffic(file, [(1, 2, 1.0)])


@pytest.mark.parametrize("case", DAMAGED_TRIPS)
def test_damaged_trips_are_refused_by_their_line(case, tmp_path):
    text, sentence = DAMAGED_TRIPS[case]
    file = tmp_path / "a_trips.tntp"
    file.write_text(text)
    with pytest.raises(ez.InputError, match=f"trips: a_trips.tntp(, line |: ).*{sentence.removeprefix('line ')}"):
        ez.models.traffic([("1", "2", 1)], file)


def test_files_that_are_none(tmp_path):
    with pytest.raises(ez.InputError, match="network: there is no file 'no_net.tntp'. Check"):
        ez.models.traffic("no_net.tntp", [(1, 2, 1.0)])
    (tmp_path / "b").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ez.InputError, match="network: .* cannot be read as text"):
        ez.models.traffic(tmp_path / "b", [(1, 2, 1.0)])


def test_trips_name_zones_of_the_network():
    with pytest.raises(ez.InputError, match=r"trips\[0\]: no path leads from 1 to 99"):
        ez.models.traffic(NET, [(1, 99, 1.0)])
    assert np.isfinite(ez.models.traffic(NET, str(TRIPS)).gap)
