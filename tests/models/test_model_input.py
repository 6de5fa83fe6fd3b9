"""Every wrong argument of a model gets a sentence that names it, the rule and the remedy."""

import re

import numpy as np
import polars as pl
import pytest

import epszero as ez

pytestmark = pytest.mark.some(3)

charge, cournot, routing, zero_sum, bpr = (
    ez.models.ev_charging, ez.models.cournot, ez.models.routing, ez.models.zero_sum, ez.models.Edge.bpr,
)  # fmt: skip
ROAD = [("s", "t", 1.0)]
TRIP = [("s", "t", 1.0)]

CASES = {
    "no vehicles": (lambda: charge(0), "vehicles: must be a whole number ≥ 1, but it is 0"),
    "half a vehicle": (lambda: charge(2.5), "vehicles: must be a whole number"),
    "true vehicles": (lambda: charge(True), "vehicles: must be a whole number"),
    "no hours": (lambda: charge(hours=0), "hours: must be a whole number ≥ 1"),
    "no seed": (lambda: charge(seed=None), "seed: must be a whole number ≥ 0, but it is None"),
    "wear below zero": (lambda: charge(wear=-1.0), "wear: must be at least 0, but it is -1"),
    "wear of too many": (lambda: charge(3, wear=[1.0, 2.0]), "wear: .*one per vehicle, but it has 2 entries for 3"),
    "wear in a matrix": (lambda: charge(2, wear=[[1.0, 2.0]]), r"wear: .*its shape is \(1, 2\)"),
    "crossed interval": (lambda: charge(wear=(2.0, 1.0)), r"wear: the interval \(2, 1\) is empty. Exchange"),
    "interval of three": (lambda: charge(3, fee=(1.0, 2.0, 3.0)), "fee: as a tuple it must be an interval .* a list"),
    "NaN": (lambda: charge(2, fee=[0.1, np.nan]), r"fee\[1\]: must be finite, but it is NaN"),
    "infinite": (lambda: charge(cap=np.inf), "cap: must be finite, but it is inf"),
    "text": (lambda: charge(cap="2.5"), "cap: must be a number .* but it is a str"),
    "ragged": (lambda: charge(2, cap=[[1.0], [1.0, 2.0]]), "cap: must be a number .* but it is a list"),
    "empty list": (lambda: charge(cap=[]), "cap: .* but it is empty"),
    "complex": (lambda: charge(cap=1j), "cap: must be a number or an array of real numbers"),
    "need beyond cap": (
        lambda: charge(3, 2, need=[1.0, 9.0, 1.0]),
        r"need\[1\]: vehicle 1 needs 9 kWh, but 2 hours at 2.5 kWh give 5. Lower",
    ),
    "reference of other hours": (lambda: charge(reference=[1.0, 2.0]), "reference: .*one per hour, but it has 2"),
    "weight below zero": (lambda: charge(weight=-1.0), "weight: must be at least 0"),
    "weight of other hours": (lambda: charge(weight=np.eye(3)), r"weight: as a matrix it must be 14 × 14, .*\(3, 3\)"),
    "indefinite weight": (lambda: charge(weight=-np.eye(14)), r"weight: must be .*semidefinite \(least .* -1\)"),
    "weight not symmetric": (lambda: charge(weight=np.triu(np.ones((14, 14)))), "weight: must be symmetric"),
    "capacity below zero": (lambda: charge(capacity=-1.0), "capacity: must be at least 0"),
    "capacity of other hours": (lambda: charge(capacity=[1.0]), "capacity: .*one per hour, but it has 1 entries"),
    "too little capacity": (lambda: charge(capacity=1.0), "capacity: in the 8 hours that .* it is 8 kWh, but"),
    "fleet of another size": (
        lambda: charge(4, fleet={"wear": [0.1, 0.2]}),
        "fleet: vehicles speaks of 4 vehicles, wear of 2. Give",
    ),
    "uneven fleet": (lambda: charge(fleet={"wear": [0.1, 0.2], "fee": [0.1]}), "fleet: wear speaks of 2 .* fee of 1"),
    "fleet with another column": (
        lambda: charge(fleet=pl.DataFrame({"needs": [1.0]})),
        "fleet: has a column 'needs', .*Did you mean 'need'",
    ),
    "fleet without columns": (lambda: charge(fleet={}), "fleet: has no column. Give it columns among wear, fee"),
    "fleet with a number": (lambda: charge(fleet={"cap": 2.5}), r"fleet.cap: must have one entry per vehicle, .* cap="),
    "fleet with text": (lambda: charge(fleet={"cap": ["a"]}), "fleet.cap: must be a number"),
    "fleet with a gap": (lambda: charge(fleet=pl.DataFrame({"cap": [2.5, None]})), "fleet: has in row 1 no value"),
    "fleet below zero": (lambda: charge(fleet={"cap": [2.5, -1.0]}), r"cap\[1\]: must be at least 0, but it is -1"),
    "fleet of no kind": (lambda: charge(fleet=3), "fleet: must be a file, a mapping, .* but it is a int"),
    "fleet nowhere": (lambda: charge(fleet="no/such.csv"), "fleet: there is no file 'no/such.csv'. Check"),
    "no firms": (lambda: cournot(0), "firms: must be a whole number ≥ 1"),
    "no markets": (lambda: cournot(markets=0), "markets: must be a whole number ≥ 1"),
    "flat demand": (lambda: cournot(slope=0.0), "slope: must be above 0, but it is 0"),
    "slopes of other markets": (lambda: cournot(2, 2, slope=[1, 2, 3]), "slope: .*one per market, but it has 3"),
    "intercept unknown": (lambda: cournot(intercept=np.nan), "intercept: must be finite"),
    "marginal below zero": (lambda: cournot(marginal=(-1.0, 1.0)), r"marginal\[0\]: must be at least 0"),
    "quadratic of other firms": (lambda: cournot(3, quadratic=[1.0]), "quadratic: .*one per firm, but it has 1"),
    "capacity of a firm below zero": (lambda: cournot(capacity=-1), "capacity: must be at least 0"),
    "shared cap below zero": (lambda: cournot(shared_cap=[-1]), r"shared_cap\[0\]: must be at least 0"),
    "no edges": (lambda: routing([], TRIP), r"edges: must be a list with at least one entry, but it is \[\]"),
    "edges of no kind": (lambda: routing("st", TRIP), "edges: must be a list"),
    "one edge, no list": (lambda: routing(bpr("s", "t", 1, 1), TRIP), "edges: must be a list"),
    "edge without a time": (lambda: routing([("s", "t")], TRIP), r"edges\[0\]: must be \(tail, head, free"),
    "edge back in time": (lambda: routing([("s", "t", -1)], TRIP), r"edges\[0\].free: must be at least 0"),
    "edge that quickens": (lambda: routing([("s", "t", 1, -1)], TRIP), r"edges\[0\].slope: must be at least 0"),
    "edge with a root": (lambda: routing([("s", "t", 1, 1, 0.5)], TRIP), r"edges\[0\].power: must be at least 1"),
    "edge to itself": (lambda: routing([("s", "s", 1)], TRIP), r"edges\[0\]: leads from 's' to itself"),
    "node in a list": (lambda: routing([(["s"], "t", 1)], TRIP), r"edges\[0\]: has the node \['s'\], .* cannot hash"),
    "no trips": (lambda: routing(ROAD, []), "trips: must be a list with at least one entry"),
    "trip without demand": (lambda: routing(ROAD, [("s", "t")]), r"trips\[0\]: must be \(origin, destination"),
    "trip of nobody": (lambda: routing(ROAD, [("s", "t", 0)]), r"trips\[0\].demand: must be above 0"),
    "trip to nowhere": (lambda: routing(ROAD, [("t", "s", 1)]), r"trips\[0\]: no path leads from 't' to 's'. Add"),
    "trip off the map": (lambda: routing(ROAD, [("s", "u", 1)]), r"trips\[0\]: no path leads from 's' to 'u'"),
    "trip to itself": (lambda: routing(ROAD, [("s", "s", 1)]), r"trips\[0\]: begins and ends at 's'"),
    "no paths": (lambda: routing(ROAD, TRIP, most_paths=0), "most_paths: must be a whole number ≥ 1"),
    "positions of no kind": (lambda: routing(ROAD, TRIP, positions=[1]), "positions: must map nodes"),
    "position missing": (lambda: routing(ROAD, TRIP, positions={"s": (0, 0)}), "positions: says nothing of .* 't'"),
    "position of three": (lambda: routing(ROAD, TRIP, positions={"s": (0, 0, 0)}), r"positions\['s'\]: must be two"),
    "road without capacity": (lambda: bpr("s", "t", 1.0, 0.0), "capacity: must be above 0"),
    "traffic of nothing": (lambda: ez.models.traffic(3), "solution: does not come from a game of ez.models.routing"),
    "no matrix": (zero_sum, "matrix, shape: neither is given"),
    "flat matrix": (lambda: zero_sum([1.0, 2.0]), r"matrix: must have rows and columns, but its shape is \(2,\)"),
    "empty matrix": (lambda: zero_sum([[]]), "matrix: .* but it is empty"),
    "another shape": (lambda: zero_sum(np.eye(2), (3, 3)), r"shape: is \(3, 3\), but the matrix is 2 × 2"),
    "shape of three": (lambda: zero_sum(shape=(1, 2, 3)), r"shape: must be \(rows, columns\)"),
    "shape without rows": (lambda: zero_sum(shape=(0, 2)), r"shape\[0\]: must be a whole number ≥ 1"),
    "norm of nothing": (lambda: zero_sum(shape=(2, 2), norm=0.0), "norm: must be above 0"),
    "norm of what is known": (lambda: zero_sum(np.eye(2), norm=1.0), "norm: is computed where the matrix is known"),
    "picture of nothing": (lambda: charge().plot(3), "solution: must come from ez.solve, but it is a int"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_refused_in_a_sentence(case):
    call, sentence = CASES[case]
    with pytest.raises(ez.InputError) as caught:
        call()
    assert re.match(sentence, str(caught.value)), str(caught.value)
    assert re.search(r"\. [A-Z][^.]*.*\.$", str(caught.value))  # a remedy


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "fleet: .* is empty"),
        ("wear,fee\n", "fleet: .* no rows"),
        ("colour\n0.1\n", "fleet: .* has none of the columns of a fleet, but 'colour'. They are need, cap"),
        ("waer,need\n0.1,2\n", "fleet: .* has a column 'waer', which vehicles do not have. Did you mean 'wear'?"),
        ("wear\n0.1\nlots\n", "fleet: .* has in line 3 'lots' in column 'wear', which is not a number"),
        ("wear\n0.1\nNA\n", "fleet: .* has in line 3 no value in column 'wear'"),
    ],
)
def test_a_file_that_is_no_fleet(tmp_path, text, sentence):
    (tmp_path / "fleet.csv").write_text(text)
    with pytest.raises(ez.InputError, match=sentence):
        charge(fleet=tmp_path / "fleet.csv")


ROADS = [("s", "a", 1.0, 1.0), ("s", "t", 2.5, 1.0), ("a", "t", 1.0, 0.5)]
WITH_DECLARED = {
    "charging": lambda declared: charge(2, hours=3, need=1.0, declared=declared),
    "cournot": lambda declared: cournot(2, declared=declared),
    "routing": lambda declared: routing(ROADS, TRIP, uncertain=True, declared=declared),
    "traffic": lambda declared: ez.models.traffic(ROADS, TRIP, uncertain="delay", declared=declared),
    "zero-sum": lambda declared: zero_sum([[1.0, 2.0], [0.0, 3.0]], declared=declared),
    "zero-sum, uncertain": lambda declared: zero_sum(shape=(2, 2), norm=3.0, declared=declared),
}


@pytest.mark.parametrize("name", WITH_DECLARED)
def test_every_model_takes_what_is_declared(name):
    """As `declaring` does; a zero-sum game keeps its Lipschitz constant where nothing is said of it."""
    make, said = WITH_DECLARED[name], ez.declare(support=ez.sets.Box(0.0, 5.0), independent=True)
    assert make(said).declared == make(None).declaring(said).declared or name.startswith("zero-sum")
    assert make(said).declared.support is said.support
    assert make(said).declared.kappa == make(None).declared.kappa
    assert make(ez.declare(kappa=9.0)).declared.kappa == 9.0
    with pytest.raises(ez.InputError, match=r"declared: must come from ez.declare"):
        make({"mu": 1.0})


def test_a_model_at_other_samples_keeps_what_is_declared():
    said = ez.declare(support=ez.sets.Box(0.0, 5.0))
    model = ez.models.traffic(ROADS, TRIP, uncertain="delay", declared=said)
    delays = ez.Samples(np.random.default_rng(0).uniform(0.0, 5.0, size=(20, 3)))
    assert model.at(delays).declared is said
