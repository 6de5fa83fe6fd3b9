"""`epszero ev`: prices and a fleet in, schedules, certificate and report out."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import epszero as ez

FLEET = "name,need,cap\nvan A,3,2.5\n[red] bus,4,3.7\n"
WORDS = ("ev", "--prices", "prices.csv", "--fleet", "fleet.csv", "--hours", "2-4")


@pytest.fixture(autouse=True)
def _files(folder):
    days = 90 + 40 * np.sin(np.arange(120)[:, None] / 20 + np.arange(24))
    table = pl.DataFrame(days.round(2), schema=[f"h{hour:02d}" for hour in range(24)], orient="row")
    table.write_csv("prices.csv")
    Path("fleet.csv").write_text(FLEET)


def test_days_in_their_order_are_refused_but_schedules_are_written(run, reported, monkeypatch):
    monkeypatch.setattr(ez, "audit", lambda *_, **__: None)  # slow, and tested elsewhere, as is the next
    monkeypatch.setattr(ez.Solution, "check_equilibrium", lambda _: "none")
    result = run(*WORDS, "--report", "page.html")
    assert result.exit_code == 1
    assert "--draws" in result.stderr
    assert "verdict: refused" in result.stdout
    plan = pl.read_csv("schedules.csv")
    assert plan.columns == ["name", "02:00", "03:00", "04:00"]
    assert plan["name"].to_list() == ["van A", "[red] bus"]
    energy = plan.drop("name")
    assert energy.sum_horizontal().to_list() == pytest.approx([3.0, 4.0], abs=1e-6)  # no more than they need
    assert "drawn towards 1.167 kWh an hour, an even load for their needs" in result.stdout
    assert (energy.to_numpy() <= np.array([[2.5], [3.7]]) + 1e-9).all()
    assert Path("page.html").exists()
    assert len(reported) == 1


def test_draws_are_certified(run):
    result = run(*WORDS, "--draws", 200, "--json", "--capacity", "5", "--limits=-500,4000", "--out", "a/plan.csv")
    record = json.loads(result.stdout)
    assert result.exit_code == 0
    assert record["certificate"]["verdict"] == "conditional"
    assert record["hours"] == [2, 3, 4]
    assert record["vehicles"] == ["van A", "[red] bus"]
    assert np.sum(record["schedules"], axis=0).max() <= 5 + 1e-6
    assert len(record["multipliers"]) == 3
    assert [str(Path(path)) for path in record["written"]] == [str(Path("a/plan.csv"))]
    assert ez.Certificate.from_json(json.dumps(record["certificate"])).delta == 0.05


def test_days_whose_order_tells_nothing_are_certified_with_a_word_of_warning(run):
    rng = np.random.default_rng(0)
    dates = pl.date_range(pl.date(2024, 1, 1), pl.date(2024, 4, 29), eager=True).alias("date")
    table = pl.DataFrame(rng.uniform(20, 90, (120, 24)).round(2), schema=[f"h{hour:02d}" for hour in range(24)])
    table.insert_column(0, dates).write_csv("prices.csv")
    result = run(*WORDS, "--json", "--weight", "0")
    assert result.exit_code == 0
    assert "days in a row seldom are" in result.stderr
    assert "drawn towards" not in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--delta", "1"), "--delta"),
        (("--hours", "5-2"), "--hours: '5-2'"),
        (("--hours", "0-24"), "--hours"),
        (("--hours", "1,1"), "--hours"),
        (("--hours", "-3"), "--hours"),
        (("--hours", "night"), "--hours"),
        (("--limits", "cheap"), "--limits"),
        (("--limits=10,0"), "--limits"),
        (("--limits=0,20"), "outside"),
        (("--capacity", "nan"), "--capacity"),
        (("--capacity", "1"), "--capacity"),
        (("--start", "yesterday"), "--start: must be a date, but it is 'yesterday'"),
        (("--unit", "GBP"), "--unit: must be"),
        (("--zone", "NL"), "--zone: "),
        (("--time-zone", "Mars"), "--time-zone: "),
        (("--prices", "nothing.csv"), "--prices: there is no file 'nothing.csv'"),
        (("--prices", "fleet.csv"), "--prices: "),
        (("--fleet", "nothing.csv"), "--fleet: there is no file 'nothing.csv'"),
        (("--out", "fleet.csv"), "--out: 'fleet.csv' is also given as --fleet"),
    ],
)
def test_options_that_cannot_be(refused, words, said):
    told = refused(*WORDS, *([words] if isinstance(words, str) else words))
    assert said in told
    assert told.count("\n") == 1


def test_a_date_that_cannot_be_read(refused):
    Path("prices.csv").write_text("utc,eur_per_mwh\n2024-01-01T00:00Z,50\n31 of May,60\n")
    told = refused(*WORDS)
    assert told.startswith("--prices: ")
    assert "31 of May" in told
