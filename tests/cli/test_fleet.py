"""Fleets at the command line: refused as --fleet, by line, before prices are read; nothing is written."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from epszero.cli.fleet import read_fleet

WORDS = ("ev", "--prices", "prices.csv", "--fleet", "fleet.csv", "--hours", "2-4", "--report", "page.html")


@pytest.fixture(autouse=True)
def _prices(folder):
    table = pl.DataFrame(np.full((3, 24), 50.0), schema=[f"h{hour:02d}" for hour in range(24)], orient="row")
    table.write_csv("prices.csv")


@pytest.mark.parametrize(
    ("fleet", "said"),
    [
        ("", "is empty"),
        ("name,need\n", "has a header but no rows"),
        ("name,cap\nvan,3\n", "no column 'need'"),
        ("need,cap\n3,fast\n", "has in line 2 'fast' in column 'cap'"),
        ("need,cap\n3,\n", "has in line 2 no value in column 'cap'"),
        ("need,cap\n3,2\n-1,2\n", "line 3 (vehicle 2) has need = -1, which is negative"),
        ("need,cap\n3,-2\n", "line 2 (vehicle 1) has cap = -2"),
        (
            "id,need,cap\nA7,3,2\nB8,30,2\n",
            "line 3 (id B8) needs 30 kWh, but from 02:00 to 05:00 it can charge 6 kWh, 3 hours at 2 kWh",
        ),
        (
            "need\n8\n",
            "line 2 (vehicle 1) needs 8 kWh, but from 02:00 to 05:00 it can charge 7.5 kWh, 3 hours at 2.5 kWh",
        ),
        ("need,cap\n1,2,3\n", "has in line 2 3 cells, but 2 names"),
        ("name,need\nvan,3\nvan,4\n", "has in line 3 'van' in column 'name', as line 2 has"),
    ],
)
def test_fleets_that_cannot_be(refused, fleet, said):
    Path("fleet.csv").write_text(fleet)
    told = refused(*WORDS)
    assert told.startswith("--fleet: ")
    assert said in told
    assert told.count("\n") == 1


def test_what_the_command_is_given():
    Path("fleet.csv").write_bytes("Name;Need [kWh];Arrive;Farbe\nKäfer;3,5;18:00;rot\n".encode("cp1252"))
    fleet = read_fleet(Path("fleet.csv"))
    assert fleet.columns["need"].tolist() == [3.5]
    assert fleet.times == {"arrive": ["18:00"]}
    assert (fleet.label, fleet.vehicles, fleet.lines, fleet.who(0)) == ("Name", ["Käfer"], [2], "line 2 (Name Käfer)")
    assert fleet.notes == ("Its letters were read as Windows-1252.", "Columns left out: 'Farbe'.")
