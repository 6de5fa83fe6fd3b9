"""The live platform through entsoe-py, against answers in its form served on loopback."""

import sys

import numpy as np
import pytest
from entsoe_server import NONE, document, series, serving

import epszero as ez
from epszero import datasets

pytest.importorskip("entsoe")
KEY = "a-very-secret-key"


@pytest.fixture(autouse=True)
def with_a_key(monkeypatch):
    monkeypatch.setenv("ENTSOE_API_KEY", KEY)
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def fetched(monkeypatch, answer, start="2024-01-01", end="2024-01-01", zone="NL", **options):
    with serving(answer) as (address, queries):
        monkeypatch.setenv("ENTSOE_ENDPOINT_URL", address)
        return datasets.fetch_entsoe(zone, start, end, unit="EUR/MWh", **options), queries


def always(*parts):
    return lambda query: (200, document(*parts))


def test_an_hourly_day(monkeypatch):
    prices, queries = fetched(monkeypatch, always(series("2023-12-31 23:00", [float(p) for p in range(24)])))
    assert np.array_equal(prices.samples.values, [range(24)])
    assert [str(day) for day in prices.days] == ["2024-01-01"]
    assert prices.mended.height == 0
    (query,) = queries
    assert query["documentType"] == "A44"
    assert query["in_Domain"] == query["out_Domain"] == "10YNL----------L"
    assert (query["periodStart"], query["periodEnd"]) == ("202312312300", "202401012300")
    assert "day-ahead prices of NL" in str(prices)


def test_a_price_that_stays_is_not_sent_again(monkeypatch):
    prices, _ = fetched(monkeypatch, always(series("2023-12-31 23:00", {1: 5.0, 3: 7.0}, count=24)))
    assert prices.samples.values[0].tolist() == [5.0, 5.0, *[7.0] * 22]


@pytest.mark.parametrize("day", ["2024-06-03", "2025-10-02"])  # before and after the market went to quarters
def test_quarters_are_averaged_to_hours(monkeypatch, day):
    night = f"{day[:-1]}{int(day[-1]) - 1} 22:00"
    quarters = [float(value) for value in np.random.default_rng(0).integers(-50, 200, 96)]
    prices, _ = fetched(monkeypatch, always(series(night, quarters, 15, curve="A01")), day, day)
    assert np.allclose(prices.samples.values[0], np.reshape(quarters, (24, 4)).mean(axis=1), atol=1e-12)


def test_hours_then_quarters(monkeypatch):
    hours, quarters = [float(p) for p in range(24)], [float(p) for p in range(96)]
    both = always(series("2025-09-29 22:00", hours), series("2025-09-30 22:00", quarters, 15))
    prices, _ = fetched(monkeypatch, both, "2025-09-30", "2025-10-01")
    assert np.allclose(prices.samples.values, [hours, np.reshape(quarters, (24, 4)).mean(axis=1)])


def test_the_price_of_the_hour_counts_before_those_of_its_parts(monkeypatch):
    hours, quarters = [10.0] * 24, [99.0] * 96
    both = always(series("2023-12-31 23:00", quarters, 15), series("2023-12-31 23:00", hours))
    prices, _ = fetched(monkeypatch, both)
    assert (prices.samples.values == 10.0).all()


def test_years_and_pages_are_asked_for_one_by_one(monkeypatch):
    def answer(query):
        if query["periodStart"] > "202312":  # the second year: nothing there
            return 200, NONE
        if query["offset"] == "0":
            return 200, document(*[series("2023-01-01 23:00", [1.0] * 24)] * 100)
        return 200, document(series("2023-01-02 23:00", [2.0] * 24))

    prices, queries = fetched(monkeypatch, answer, "2023-01-01", "2024-06-01")
    assert [query["offset"] for query in queries] == ["0", "100", "0"]
    assert prices.samples.values[:, 0].tolist() == [1.0, 2.0]
    assert [str(day) for day in prices.days] == ["2023-01-02", "2023-01-03"]


def refusal(call) -> str:
    with pytest.raises(ez.InputError) as caught:
        call()
    assert KEY not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "text", "sentence"),
    [
        (200, NONE, "zone: the Transparency Platform has no day-ahead prices of NL from 2024-01-01 to 2024-01-01"),
        (400, NONE, "has no day-ahead prices of NL"),
        (401, "<html>Unauthorized</html>", "ENTSOE_API_KEY: the Transparency Platform refuses this key (401)"),
        (429, "", "answered with status 429. Wait a minute"),
        (503, "<html>down</html>", "answered with status 503. Try again later"),
        (200, NONE.replace("No matching data found", "Invalid query"), "answer is a refusal"),
        (200, "<html>hello</html>", "answer holds no prices"),
        (200, document("<TimeSeries><Period></Period></TimeSeries>"), "answer is not a list of prices"),
        (200, document(series("2023-12-31 23:00", [1.0] * 24, money="PLN")), "zone: its prices are in PLN, not in EUR"),
        (200, document(series("2020-12-31 23:00", [1.0] * 24)), "start: 2024-01-01 is after all days of the data"),
    ],
)
def test_other_answers_become_a_sentence(monkeypatch, status, text, sentence):
    assert sentence in refusal(lambda: fetched(monkeypatch, lambda query: (status, text)))


def test_no_server(monkeypatch):
    monkeypatch.setattr("entsoe.decorators.sleep", lambda seconds: None)
    with serving(lambda query: (200, NONE)) as (address, _):
        pass  # its port is closed again
    monkeypatch.setenv("ENTSOE_ENDPOINT_URL", address)
    message = refusal(lambda: datasets.fetch_entsoe("NL", "2024-01-01", "2024-01-02"))
    assert message.startswith("fetch_entsoe: the Transparency Platform did not answer (ConnectionError)")


def test_nothing_is_asked_of_the_server_when_the_input_is_wrong(monkeypatch):
    def wrong(sentence, *arguments, **options):
        monkeypatch.setenv("ENTSOE_ENDPOINT_URL", "http://127.0.0.1:9/never")
        assert sentence in refusal(lambda: datasets.fetch_entsoe(*arguments, **options))

    wrong("zone: there is no bidding zone 'XX'", "XX", "2024-01-01", "2024-01-02")
    wrong("Did you mean 'DE_LU'?", "DE-LU", "2024-01-01", "2024-01-02")
    wrong("zone: there is no bidding zone 7", 7, "2024-01-01", "2024-01-02")
    wrong("start: must be a date, but it is None", "NL", None, "2024-01-02")
    wrong("start: 2024-01-03 is after end", "NL", "2024-01-03", "2024-01-02")
    wrong("unit: must be", "NL", "2024-01-01", "2024-01-02", unit="GBP/MWh")
    monkeypatch.setenv("ENTSOE_API_KEY", " ")
    wrong("ENTSOE_API_KEY: is not set", "NL", "2024-01-01", "2024-01-02")
    monkeypatch.setitem(sys.modules, "entsoe", None)
    with pytest.raises(ez.InputError, match=r"needs the package entsoe-py.*pip install 'epszero\[entsoe\]'"):
        datasets.fetch_entsoe("NL", "2024-01-01", "2024-01-02")
