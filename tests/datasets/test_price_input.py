"""Every wrong argument and every wrong file gets a sentence that names it, the rule and the remedy."""

import datetime
import re

import numpy as np
import pytest

import epszero as ez
from epszero import datasets

get, dutch, read = datasets.day_ahead_prices, datasets.dutch_prices, datasets.read_prices

ARGUMENTS = {
    "no hours": (lambda: get([]), "hours: names no hour. Pass distinct whole numbers from 0 to 23"),
    "hour 24": (lambda: get([3, 24]), "hours: must be whole numbers from 0 to 23, but one is 24"),
    "hour below zero": (lambda: get([-1]), "hours: .* but one is -1"),
    "half an hour": (lambda: get([1.5]), "hours: .* but one is 1.5"),
    "a whole float": (lambda: get(np.array([1.0])), r"hours: .* but one is .*1.0"),
    "true hours": (lambda: get([True]), "hours: .* but one is True"),
    "hours as text": (lambda: get("14"), "hours: must be a collection of hours, but it is '14'"),
    "one hour": (lambda: get(14), "hours: must be a collection of hours, but it is 14"),
    "no collection": (lambda: get(None), "hours: must be a collection of hours, but it is None"),
    "an hour twice": (lambda: get([3, 5, 3]), "hours: names 3 more than once"),
    "an array of two axes": (lambda: get(np.zeros((2, 2), int)), "hours: must be whole numbers"),
    "start after end": (
        lambda: get(start="2024-02-01", end="2024-01-01"),
        "start: 2024-02-01 is after end, 2024-01-01",
    ),
    "start before the data": (
        lambda: get(start="2014-12-31"),
        "start: 2014-12-31 is outside .* from 2015-01-01 to 2024",
    ),
    "end behind the data": (lambda: get(end=datetime.date(2025, 1, 1)), "end: 2025-01-01 is outside the embedded data"),
    "no such day": (lambda: get(start="2023-02-29"), "start: must be a date, but it is '2023-02-29'. Write it as"),
    "another order": (lambda: get(end="31-12-2024"), "end: must be a date"),
    "a year": (lambda: get(start=2020), "start: must be a date, but it is 2020"),
    "unknown unit": (lambda: get(unit="EUR"), "unit: must be 'EUR/kWh' or 'EUR/MWh' or 'ct/kWh', but it is 'EUR'"),
    "no unit": (lambda: get(unit=None), "unit: must be"),
    "a list of units": (lambda: get(unit=["EUR/kWh"]), "unit: must be"),
    "unknown support": (lambda: get(support="wide"), 'support: must be "market", "pool", None or a set, but it is'),
    "a pair as support": (lambda: get(support=(-0.5, 4.0)), "support: must be .* Pass one of these, .*Box"),
    "narrow support": (lambda: get(support=ez.sets.Box(0.0, 4.0)), r"row \d+ lies outside the support"),
    "support of other size": (lambda: get(support=ez.sets.Box(np.zeros(3), np.ones(3))), "support: does not fit"),
    "unknown time zone": (lambda: dutch(time_zone="Europe/Amsterdm"), "time_zone: .* Did you mean 'Europe/Amsterdam'"),
    "time zone of no kind": (lambda: dutch(time_zone=1), "time_zone: there is no time zone 1"),
    "a path as time zone": (lambda: dutch(time_zone="../x"), "time_zone: there is no time zone"),
    "empty time zone": (lambda: dutch(time_zone=""), "time_zone: there is no time zone ''"),
    "fill below zero": (lambda: dutch(fill=-1), "fill: must be a whole number of hours from 0 to 23, but it is -1"),
    "half a fill": (lambda: dutch(fill=1.5), "fill: must be a whole number"),
    "a misspelt option": (lambda: dutch(timezone="UTC"), "timezone: is not an option .* Did you mean time_zone?"),
    "an unknown option": (
        lambda: dutch(xyz=1),
        "xyz: is not an option of a loader. Choose among hours, over",
    ),
    "no path": (lambda: read(None), "path: must be the path of a file, but it is None"),
    "a number as path": (lambda: read(3), "path: must be the path of a file"),
    "missing file": (lambda: read("nowhere.csv"), "path: there is no file 'nowhere.csv'. Check the name"),
    "a directory": (lambda: read("."), "path: '.' is a folder. Pass the path of a file"),
    "an area of no kind": (lambda: datasets.read_entsoe("x.csv", area=3), "area: must be a name, but it is 3"),
    "an empty country": (lambda: datasets.read_ember("x.csv", country=" "), "country: must be a name"),
    "unknown unit of the file": (lambda: read("x.csv", file_unit="USD/MWh"), "file_unit: must be 'EUR/kWh' or"),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_wrong_arguments(case):
    call, sentence = ARGUMENTS[case]
    with pytest.raises(ez.InputError, match=sentence):
        call()


DAY = [f"2024-01-01T{hour:02d}:00Z,{hour}.5" for hour in range(24)]
SERIES = "\n".join(["utc,eur_per_mwh", *DAY]) + "\n"
OLD = "MTU (CET/CEST),Day-ahead Price [EUR/MWh],Currency,BZN|NL\n01.01.2024 00:00 - 01.01.2024 01:00,5.0,EUR,\n"
EMBER = "Country,ISO3 Code,Datetime (UTC),Price (EUR/MWhe)\nNetherlands,NLD,2024-01-01 00:00:00,5.0\n"
WIDE = "day,h00,h01\n2024-01-01,1.0,2.0\n2024-01-02,3.0,4.0\n"
UTC = {"time_zone": "UTC"}

FILES = {
    "empty": ("", {}, "'prices.csv' is empty. Pass a file with a header"),
    "blank": (" \n\n", {}, "is empty"),
    "only a heading": ("utc,eur_per_mwh\n", {}, "has a header but no rows"),
    "binary": (b"\xff\xfe\x00\x01" * 9, {}, "has a header but no rows"),
    "half a gzip": (b"\x1f\x8b\x08\x00abc", {}, "is packed, and cannot be unpacked (EOFError)"),
    "nulls": (b"a\0b,c\n1,2\n", {}, "holds no text"),
    "ragged": (
        "utc,eur_per_mwh\n2024-01-01T00:00Z,1,2,3\n",
        {},
        "has in line 2 4 cells, but 2 names of columns above them",
    ),
    "other columns": ("time,price\n1,2\n", {}, "has the columns 'time', 'price', which none of the known forms has"),
    "no heading": (
        "2024-01-01T00:00Z,1.0\n2024-01-01T01:00Z,1.0\n",
        {},
        "has times where names of columns are expected",
    ),
    "one name twice": ("day, h00,h00 \n2024-01-01,1,2\n", {}, "has two columns of one name"),
    "no date": (
        SERIES.replace("2024-01-01T05:00Z", "yesterday"),
        {},
        "has in line 7 'yesterday' in column 'utc', which",
    ),
    "30 February": (SERIES.replace("2024-01-01T05", "2024-02-30T05"), {}, "line 7 '2024-02-30 05:00' in column 'utc'"),
    "hour 24": (SERIES.replace("T05:", "T24:"), {}, "which is not a time. Mend it, or leave the line out"),
    "line below blanks": ("\n" + SERIES.replace("5.5", "x", 1).replace("\n", "\n\n", 1), {}, "has in line 9 'x'"),
    "time of another zone": (SERIES.replace("05:00Z", "05:00+01:00"), {}, "which is not a time"),
    "price as text": (
        SERIES.replace(",7.5", ",cheap"),
        {},
        "line 9 'cheap' in column 'eur_per_mwh', which is not a price",
    ),
    "infinite price": (SERIES.replace(",7.5", ",inf"), {}, "line 9 'inf' in column"),
    "doubtful thousands": ('utc,eur_per_mwh\n2024-01-01T05:00Z,"1,234"\n', {}, "line 2 '1,234' in column"),
    "short years": (OLD.replace("01.01.2024 00", "01.01.24 00"), {}, "line 2 '01.01.24 00:00' in column"),
    "no time": (SERIES.replace("2024-01-01T05:00Z", ""), {}, "line 7 a price but no time"),
    "no price at all": ("utc,eur_per_mwh\n2024-01-01T00:00Z,n/e\n", {}, "holds no price"),
    "odd minutes": (SERIES + "2024-01-01T10:07Z,1\n", UTC, "those of 2024-01-01 are 7 minutes apart"),
    "days out of range": (
        SERIES,
        {"start": "2025-01-01", **UTC},
        "start: 2025-01-01 is after all days of the data. Choose",
    ),
    "end before the data": (SERIES, {"end": "2020-01-01"}, "end: 2020-01-01 is before all days of the data"),
    "no whole day": (
        SERIES,
        {"time_zone": "America/New_York"},
        "prices: none of the 2 days from 2023-12-31 to 2024-01-01",
    ),
    "beyond the market": (
        SERIES.replace(",7.5", ",4000.01"),
        UTC,
        "the price 4000.01 EUR/MWh of hour 7 on 2024-01-01 is",
    ),
    "below the market": (SERIES.replace(",7.5", ",-501"), UTC, "support: the price -501 EUR/MWh"),
    "unit of a series": (SERIES, {"file_unit": "ct/kWh"}, "file_unit: is 'ct/kWh', but 'prices.csv' says itself"),
    "zone of a series": (SERIES, {"zone": "NL"}, "zone: 'prices.csv' does not name zones, so 'NL' cannot be found"),
    "ENTSO-E without prices": (
        "MTU (UTC),Area\n01/01/2024 00:00:00 - x,NL\n",
        {},
        "has no column 'Day-ahead Price (EUR",
    ),
    "ENTSO-E with a near name": ("MTU (UTC),Day-ahead Price EUR/MWh\n1,2\n", {}, "Is 'Day-ahead Price EUR/MWh' meant?"),
    "pounds": (OLD.replace("EUR", "GBP"), {}, "has prices in GBP, not in EUR. Export them in EUR, or convert them"),
    "pounds in a cell": (OLD.replace(",EUR,", ",GBP,"), {}, "has prices in GBP, not in EUR"),
    "no currency": (
        "MTU (UTC),Day-ahead Price [Currency/MWh]\n01.01.2024 00:00 - x,1\n",
        {},
        "currency that it does not",
    ),
    "unknown clock": (
        OLD.replace("CET/CEST", "MSK"),
        {},
        "gives times by the clock 'MSK'. Export it with times in UTC",
    ),
    "ENTSO-E with another date": (
        OLD.replace("01.01.2024 00", "2024.01.01 00"),
        {},
        "line 2 '2024.01.01 00:00' in column",
    ),
    "another area": (OLD, {"zone": "BE"}, "is of BZN|NL, not of 'BE'"),
    "Ember by day": (
        EMBER.replace("Datetime (UTC)", "Date").replace(" 00:00:00", ""),
        {},
        "has days in column 'Date', but no time of the day",
    ),
    "Ember without prices": (
        EMBER.replace("Price (EUR/MWhe)", "Price"),
        {},
        "lacks a column 'Datetime (UTC)' or 'Price",
    ),
    "Ember without countries": (
        EMBER.replace("Country,ISO3 Code", "a,b"),
        {"zone": "NLD"},
        "names no country, so 'NLD'",
    ),
    "wide without the hour": (WIDE, {}, "has no column for hour 2. Choose hours among [0, 1]"),
    "wide without a date": (WIDE.replace("2024-01-02", ""), {"hours": [0]}, "has in line 3 no date. Give it one"),
    "wide with a wrong date": (
        WIDE.replace("2024-01-02", "soon"),
        {"hours": [0]},
        "line 3 'soon' in column 'day', which",
    ),
    "wide with text": (WIDE.replace("3.0", "?"), {"hours": [0]}, "line 3 '?' in column 'h00', which is not a price"),
    "wide with an hour twice": ("0,h00\n1,2\n", {"hours": [0]}, "has two columns for hour 0: '0' and 'h00'"),
    "wide without prices": ("day,0\n2024-01-01,\n", {"hours": [0]}, "holds no price"),
    "start without dates": ("0,1\n1,2\n", {"hours": [0], "start": "2024-01-01"}, "so start and end cannot be found"),
    "wide in another unit": (
        WIDE.replace("4.0", "4.1"),
        {"hours": [1], "file_unit": "EUR/kWh"},
        "hour 1 on 2024-01-02 is",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_wrong_files(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content, options, sentence = FILES[case]
    (tmp_path / "prices.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ez.InputError, match=re.escape(sentence)) as caught:
        read("prices.csv", **options)
    assert re.match(r"[\w.]+: ", str(caught.value))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(("text", "reader", "word"), [
    (EMBER, datasets.read_entsoe, "has no column 'MTU (…)' but 'Country'"),
    (OLD, datasets.read_ember, "lacks a column 'Datetime (UTC)'"),
    (WIDE, datasets.read_ember, "lacks a column 'Datetime (UTC)'"),
])  # fmt: skip
def test_a_reader_of_one_form_says_what_it_misses(tmp_path, text, reader, word):
    (tmp_path / "prices.csv").write_text(text)
    with pytest.raises(ez.InputError, match=re.escape(word)):
        reader(tmp_path / "prices.csv")


def test_options_are_checked_before_the_file_is_opened():
    with pytest.raises(ez.InputError, match="unit: must be"):
        read("nowhere.csv", unit="GBP/MWh")


def test_a_table_in_eur_per_kwh_is_not_taken_for_eur_per_mwh(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("day,h00,h01\n2025-01-01,0.08,0.07\n2025-01-02,-0.09,0.1\n")
    with pytest.raises(ez.InputError, match="file_unit"):
        ez.datasets.read_prices(file, hours=[0, 1])
    right = ez.datasets.read_prices(file, hours=[0, 1], file_unit="EUR/kWh", support=None)
    assert right.samples.values.tolist() == pytest.approx(np.array([[0.08, 0.07], [-0.09, 0.1]]))
    assert ez.datasets.read_prices(file, hours=[0], file_unit="EUR/MWh").samples.values[0, 0] == pytest.approx(8e-5)
