"""Fleets as people have them, and what is told of those that cannot be; tests/data has files as Excel writes them."""

from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import epszero as ez

DATA = Path(__file__).parent.parent / "data"


def read(tmp_path, text):
    file = tmp_path / "fleet.csv"
    file.write_text(text, encoding="utf-8")
    return ez.datasets.read_fleet(file)


@pytest.mark.parametrize("name", ["fleet_german_excel.csv", "fleet.xlsx", "fleet.ods"])
def test_one_fleet_in_three_files(name):
    if not name.endswith("csv"):
        pytest.importorskip("fastexcel")
    fleet = ez.datasets.read_fleet(DATA / name)
    assert fleet.columns["need"].tolist() == [11.5, 1040.25, 19.0]
    assert fleet.columns["cap"].tolist() == [7.4, 130.0, 3.7]
    assert fleet.vehicles == ["Käfer", "Bus Süd", "Transporter 3"]
    assert [text[:5] for text in fleet.texts["arrive"]] == ["18:30", "19:00", ""]
    assert [text[:5] for text in fleet.texts["depart"]] == ["07:00", "06:30", ""]
    left = "Farbe" if name.endswith("csv") else "Note"
    assert f"Columns left out: '{left}'." in fleet.notes
    assert (
        fleet.who(1)
        == f"{'row 5' if name.endswith('xlsx') else 'row 3' if name.endswith('ods') else 'line 3'} (Name Bus Süd)"
    )


def test_unicode_text_of_excel():
    fleet = ez.datasets.read_fleet(DATA / "fleet_unicode_text.txt")
    assert fleet.vehicles == ["Käfer", "Škoda"]
    assert fleet.columns["cap"].tolist() == [7.4, 3.7]


@pytest.mark.parametrize(
    ("title", "factor"),
    [
        *(
            (title, 1.0)
            for title in ("need", "Need", " NEED ", "Need [kWh]", "need (kWh)", "need_kwh", "Need in kWh", "need, kWh")
        ),
        *((title, 1000.0) for title in ("need [MWh]", "Need_MWh")),
        ("Need (Wh)", 0.001),
    ],
)
def test_names_and_units_of_needs(tmp_path, title, factor):
    quoted = f'"{title}"'
    fleet = read(tmp_path, f"{quoted}\n12.5\n")
    assert fleet.columns["need"].tolist() == [pytest.approx(12.5 * factor)]
    assert bool(fleet.notes) == (factor != 1.0)


def test_units_of_the_others(tmp_path):
    fleet = read(tmp_path, "need;Cap [MW];fee [ct/kWh];Wear (€/kWh²)\n5;0,011;4,5;0,003\n")
    assert fleet.columns["cap"].tolist() == [11.0]
    assert fleet.columns["fee"].tolist() == [0.045]
    assert fleet.columns["wear"].tolist() == [0.003]
    assert fleet.notes == (
        "Column 'Cap [MW]' was converted to kWh an hour.",
        "Column 'fee [ct/kWh]' was converted to €/kWh.",
    )
    assert read(tmp_path, "need,fee [EUR/MWh]\n5,40\n").columns["fee"].tolist() == [0.04]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "need\n0.012\n0.019\n",
            "No need is above 0.019 kWh (line 3 (vehicle 2)), which is little: if they are in MWh",
        ),
        ("need\n12000\n", "The need of line 2 (vehicle 1) is 12000 kWh, which is much"),
        ("name,need\na,12\nb,0.012\n", "The need of line 3 (name b) is 0.012 kWh, far less than that of others"),
        ("id,name,need\n7,a,12\n", "Columns left out: 'id'."),
        ("need,model year,plug\n12,2020,CCS\n", "Columns left out: 'model year', 'plug'."),
    ],
)
def test_what_is_told(tmp_path, text, said):
    assert any(note.startswith(said) for note in read(tmp_path, text).notes)


def test_nothing_is_told_where_nothing_is_odd(tmp_path):
    assert read(tmp_path, "name,need,cap\na,12,2\nb,0,3\n").notes == ()
    assert read(tmp_path, "name,need [kWh]\na,0.01\n").notes == ()  # the file says so itself


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,cap\nvan,3\n", "has no column 'need' but 'name', 'cap'. Say in it how many kWh"),
        ("name,kwh need\nvan,3\n", "has a column 'kwh need', but none that is called 'need'. Did you mean 'need'?"),
        ("name,needs\nvan,3\n", "Did you mean 'need'?"),
        ("need,cpa\n3,4\n", "has a column 'cpa', which vehicles do not have. Did you mean 'cap'?"),
        ("need,arive\n3,18:00\n", "Did you mean 'arrive'?"),
        ("need,Need [kWh]\n3,4\n", "has two columns for 'need': 'need' and 'Need [kWh]'"),
        ("need [miles]\n3\n", "has a column 'need [miles]' in 'miles', which is no unit for 'need'"),
        (
            "name,need\na,3\nb,4\na,5\n",
            "has in line 4 'a' in column 'name', as line 2 has. Give every vehicle its own name",
        ),
        ("name,need\na,3\n,4\n", "has in line 3 nothing in column 'name'"),
        ("need,cap\n3,fast\n", "has in line 2 'fast' in column 'cap', which is not a number"),
        ("need,cap\n3,2\n\n4,\n", "has in line 4 no value in column 'cap'"),
        ("need,cap\n3,inf\n", "has in line 2 'inf' in column 'cap'"),
        ("need\n1e999\n", "has in line 2 an infinite value in column 'need'"),
        ("need,cap\n3,2\n-1,2\n", "line 3 (vehicle 2) has need = -1, which is negative. Correct it"),
        ('name,need\na,"1,234"\nb,2\n', "'1,234' may be a thousand and more, or one and a bit"),
        ("name;need\na;3,5\nb;3.5\n", "has a comma before its decimals and '3.5' a point"),
    ],
)
def test_fleets_that_cannot_be(tmp_path, text, said):
    with pytest.raises(ez.InputError) as caught:
        read(tmp_path, text)
    assert said in str(caught.value)
    assert str(caught.value).startswith("fleet: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_frames_become_games(kind):
    frame = kind({"Name": ["a", "b"], "Need [MWh]": [0.005, 0.0061], "Cap": [2, 3], "depot": ["north", "south"]})
    fleet = ez.datasets.read_fleet(frame)
    assert fleet.who(1) == "row 1 (Name b)"
    game = ez.models.ev_charging(fleet=frame, wear=0.003, fee=0.0)
    assert game.parameters.need.tolist() == pytest.approx([5.0, 6.1])
    assert game.parameters.cap.tolist() == [2.0, 3.0]
    with pytest.raises(ez.InputError, match="fleet: has in row 1 no value in column 'need'"):
        ez.datasets.read_fleet(kind({"need": [1.0, None]}))
