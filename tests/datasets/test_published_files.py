"""Files of SMARD, energy-charts and ENTSO-E's file library, made by hand after their public descriptions.

Prices count up from 0.25, an interval at a time, so that an hour which is shifted or left out shows.
"""

import datetime
import json
from pathlib import Path

import numpy as np
import pytest

import epszero as ez

DATA = Path(__file__).parent.parent / "data"
PLAIN = {"unit": "EUR/MWh", "support": None}


def read(name, **options):
    return ez.datasets.read_prices(DATA / name, **PLAIN, **options)


def test_smard_in_german_over_the_end_of_summer_time():
    prices = read("smard_german.csv", zone="Deutschland/Luxemburg")
    wanted = 0.25 + np.concatenate([np.arange(26), [26.5], np.arange(28, 73)]).reshape(3, 24)
    wanted[0, 20] += 1000  # 1.020,25
    assert prices.samples.values.tolist() == wanted.tolist()
    assert prices.mended.select("day", "hour", "why").rows() == [
        (datetime.date(2024, 10, 27), 2, "the clock repeats it")
    ]
    assert "SMARD's day-ahead prices, Deutschland/Luxemburg" in str(prices)


def test_smard_in_english_over_the_beginning_of_summer_time():
    prices = read("smard_english.csv")  # one area: nothing to choose
    wanted = 0.25 + np.concatenate([np.arange(26), [25.5], np.arange(26, 71)]).reshape(3, 24)
    wanted[0, 20] += 1000  # 1,020.25
    assert prices.samples.values.tolist() == wanted.tolist()
    assert prices.mended["why"].to_list() == ["the clock skips it"]


def test_areas_of_smard():
    with pytest.raises(
        ez.InputError, match="holds 3 of them: Deutschland/Luxemburg, ∅ Anrainer DE/LU, Belgien. Choose"
    ):
        read("smard_german.csv")  # DE/AT/LU has no price in that time
    assert read("smard_german.csv", zone="deutschland").samples.values[0, 0] == 0.25
    belgian = read("smard_german.csv", zone="Belgien")
    assert belgian.samples.values[0, 5] == 105  # "-", between 104 and 106
    assert belgian.mended.filter(why="missing").height == 1
    with pytest.raises(ez.InputError, match="holds no zone 'Belgian'. Did you mean 'Belgien'"):
        read("smard_german.csv", zone="Belgian")


@pytest.mark.parametrize("heads", ["Datum;Anfang;Ende", "Date;Start;End"])
def test_the_older_form_of_smard(tmp_path, heads):
    rows = [f"01.07.2023;{hour:02d}:00;{hour + 1:02d}:00;{hour},5" for hour in range(24)]
    text = "\n".join([f"{heads};Deutschland/Luxemburg [€/MWh] Originalauflösungen", *rows])
    (tmp_path / "old.csv").write_text(text, encoding="utf-8")
    assert read(tmp_path / "old.csv").samples.values[0].tolist() == [hour + 0.5 for hour in range(24)]


def test_energy_charts_from_hours_to_quarters():
    prices = read("energy_charts.csv")
    hours, quarters = np.arange(24), np.arange(24, 120).reshape(24, 4).mean(axis=1)
    assert prices.samples.values.tolist() == (0.25 + np.array([hours, quarters])).tolist()
    assert "Prices of 15 minutes were averaged to hours, on 1 day." in str(prices)
    assert prices.mended.height == 0
    assert read("energy_charts.csv", zone="DE-LU").samples.values[0, 0] == 0.25
    assert read("energy_charts.csv", zone="de_lu").samples.values[0, 0] == 0.25


def test_energy_charts_as_json_on_the_day_of_autumn():
    values = read("energy_charts.json").samples.values[0]
    quarters = 0.25 + np.arange(100)
    assert values[:2].tolist() == [quarters[:4].mean(), quarters[4:8].mean()]
    assert values[2] == quarters[8:16].mean()  # both of them
    assert values[3:].tolist() == quarters[16:].reshape(21, 4).mean(axis=1).tolist()


def test_other_forms_of_json(tmp_path):
    first = int(datetime.datetime(2024, 6, 30, 22, tzinfo=datetime.UTC).timestamp())
    moments = [first + 3600 * hour for hour in range(24)]
    forms = [
        [{"name": [{"en": "Day Ahead Auction (DE-LU)"}], "unit": "EUR/MWh", "data": [*range(24)],
          "xAxisValues": [1000 * one for one in moments]}],
        {"object": "list", "data": [{"start_timestamp": 1000 * one, "end_timestamp": 1000 * one + 3600_000,
                                     "marketprice": hour, "unit": "Eur/MWh"} for hour, one in enumerate(moments)]},
        [{"timestamp": datetime.datetime.fromtimestamp(one, datetime.UTC).isoformat(), "price": hour}
         for hour, one in enumerate(moments)],
    ]  # fmt: skip
    for form in forms:
        (tmp_path / "prices.json").write_text(json.dumps(form))
        assert read(tmp_path / "prices.json").samples.values[0].tolist() == list(range(24))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "begins as JSON does, but is none"),
        ("[]", "is JSON without times and prices"),
        ('{"a": 1}', "is JSON without times and prices"),
        ('{"unix_seconds": [1], "price": [1, 2]}', "in lists of one length"),
        ("[1, 2]", "is JSON without"),
    ],
)
def test_json_that_is_no_list_of_prices(tmp_path, text, said):
    (tmp_path / "prices.json").write_text(text)
    with pytest.raises(ez.InputError) as caught:
        read(tmp_path / "prices.json")
    assert said in str(caught.value)


def test_bulk_files_of_entsoe():
    prices = read("entsoe_bulk.csv", zone="DE_LU")
    quarters = 0.25 + np.arange(96.0)
    quarters[8] = 80.25  # a later update
    wanted = [0.25 + np.arange(24), quarters.reshape(24, 4).mean(axis=1)]
    assert prices.samples.values.tolist() == np.array(wanted).tolist()
    assert "96 rows of further auctions (sequences beyond 1) were left out." in prices.notes
    dutch = read("entsoe_bulk.csv", zone="Netherlands (NL)")
    assert dutch.samples.values.tolist() == [[50.0 + hour for hour in range(24)]]
    assert "24 rows of other contracts than day-ahead were left out." in dutch.notes
    assert ez.datasets.read_entsoe(DATA / "entsoe_bulk.csv", "10YNL----------L", **PLAIN).samples.values[0, 0] == 50
    with pytest.raises(ez.InputError, match="holds 3 of them: DE_LU, NL, PL. Choose one, for instance zone='DE_LU'"):
        read("entsoe_bulk.csv")
    with pytest.raises(ez.InputError, match="has prices in PLN, not in EUR"):
        read("entsoe_bulk.csv", zone="PL")


def test_where_an_hour_has_a_price_of_its_own_that_counts(tmp_path):
    head = "DateTime\tResolutionCode\tAreaCode\tMapCode\tPrice\tCurrency\tUpdateTime"
    rows = [f"2024-01-01 {hour:02d}:00:00.000\tPT60M\tx\tNL\t{hour}\tEUR\t" for hour in range(24)]
    rows += [
        f"2024-01-01 {hour:02d}:{part}:00.000\tPT15M\tx\tNL\t99\tEUR\t" for hour in range(24) for part in ("00", "15")
    ]
    (tmp_path / "bulk.csv").write_text("\n".join([head, *rows]))
    assert read(tmp_path / "bulk.csv", time_zone="UTC").samples.values[0].tolist() == list(range(24))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"file_unit": "ct/kWh"}, "file_unit: is 'ct/kWh', but .* says itself that it is in EUR/MWh"),
        ({"hour_labels": "ending"}, "hour_labels: is 'ending', but .* gives the beginning of each interval"),
        ({"hour_labels": "middle"}, "hour_labels: must be 'beginning' or 'ending'"),
        ({"price_column": "Price"}, "price_column: .* has no column 'Price'"),
    ],
)
def test_what_a_file_says_itself_need_not_be_said(options, said):
    with pytest.raises(ez.InputError, match=said):
        read("smard_english.csv", **options)
