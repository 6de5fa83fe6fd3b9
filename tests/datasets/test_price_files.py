"""Every form of file: read back to the price, whatever the clock, the separator or the length of a period."""

import datetime
import gzip
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import epszero as ez
from epszero import datasets

UTC, ZONE = datetime.UTC, ZoneInfo("Europe/Amsterdam")
OLD = '"MTU (CET/CEST)","Day-ahead Price [EUR/MWh]","Currency","BZN|NL"'
NEW = '"MTU ({})","Area","Sequence","Day-ahead Price (EUR/MWh)","Intraday Period ({})","Intraday Price (EUR/MWh)"'
SPRING, AUTUMN = "2024-03-31", "2024-10-27"  # 23 and 25 hours long


def hours_of(day: str, days: int = 1) -> list[datetime.datetime]:
    """The starts of all hours of local days, by UTC."""
    first = datetime.date.fromisoformat(day)
    ends = [datetime.datetime.combine(d, datetime.time(), ZONE).astimezone(UTC)
            for d in (first, first + datetime.timedelta(days))]  # fmt: skip
    many = int((ends[1] - ends[0]).total_seconds()) // 3600
    return [ends[0] + datetime.timedelta(hours=hour) for hour in range(many)]


def interval(start: datetime.datetime, form: str, minutes: int = 60, mark: bool = False) -> str:
    ends = (start, start + datetime.timedelta(minutes=minutes))
    return " - ".join(f"{end:{form}}{f' ({end.tzname()})' if mark else ''}" for end in ends)


def old_export(times, prices) -> str:
    local = [time.astimezone(ZONE) for time in times]
    rows = [
        f'"{interval(time, "%d.%m.%Y %H:%M")}","{price}","EUR",""' for time, price in zip(local, prices, strict=True)
    ]
    return "\n".join([OLD, *rows]) + "\n"


def new_export(times, prices, clock="CET/CEST", minutes=60, area="BZN|NL", sequence="Without Sequence") -> str:
    zone = UTC if clock == "UTC" else ZONE
    change = {time.astimezone(zone).replace(tzinfo=None) for time in times}
    rows = []
    for time, price in zip(times, prices, strict=True):
        marked = clock != "UTC" and len(change) < len(times) and time.astimezone(zone).hour == 2
        cell = interval(time.astimezone(zone), "%d/%m/%Y %H:%M:%S", minutes, marked)
        rows.append(f'"{cell}","{area}","{sequence}","{price}","",""')
    return "\n".join([NEW.format(clock, clock), *rows]) + "\n"


def ember_table(times, prices, country="Netherlands", code="NLD", head=True) -> str:
    rows = [
        f"{country},{code},{time:%Y-%m-%d %H:%M:%S},{time.astimezone(ZONE):%Y-%m-%d %H:%M:%S},{price}"
        for time, price in zip(times, prices, strict=True)
    ]
    return "\n".join(["Country,ISO3 Code,Datetime (UTC),Datetime (Local),Price (EUR/MWhe)"] * head + rows) + "\n"


def series_table(times, prices) -> str:
    rows = [f"{time:%Y-%m-%dT%H:%MZ},{price}" for time, price in zip(times, prices, strict=True)]
    return "\n".join(["utc,eur_per_mwh", *rows]) + "\n"


WRITERS = {
    "old": (old_export, datasets.read_entsoe),
    "new": (new_export, datasets.read_entsoe),
    "UTC": (lambda times, prices: new_export(times, prices, "UTC"), datasets.read_entsoe),
    "Ember": (ember_table, datasets.read_ember),
    "series": (series_table, datasets.read_prices),
}


@pytest.fixture(params=WRITERS)
def form(request):
    return WRITERS[request.param]


def read(tmp_path, text, reader=datasets.read_prices, **options):
    file = tmp_path / "prices.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return reader(file, unit="EUR/MWh", **options)


def test_plain_days(tmp_path, form):
    write, reader = form
    times = hours_of("2024-01-01", 3)
    wanted = np.round(np.random.default_rng(0).uniform(-100, 300, len(times)), 2)
    for one in (reader, datasets.read_prices):
        prices = read(tmp_path, write(times, wanted), one)
        assert np.array_equal(prices.samples.values, wanted.reshape(3, 24))
        assert [str(day) for day in prices.days] == ["2024-01-01", "2024-01-02", "2024-01-03"]
        assert (prices.mended.height, prices.dropped) == (0, ())
        assert "No hour was mended." in str(prices)


@pytest.mark.parametrize("backwards", [False, True])
def test_the_days_on_which_the_clock_changes(tmp_path, form, backwards):
    write, reader = form
    for day, values in (
        (SPRING, [*range(2), 1.5, *range(2, 23)]),
        (AUTUMN, [0, 1, 2.5, *range(4, 25)]),
    ):
        times = hours_of(day)
        order = slice(None, None, -1 if backwards else 1)
        prices = read(tmp_path, write(times[order], list(range(len(times)))[order]), reader)
        assert prices.samples.values[0].tolist() == values
        what = ("filled", "the clock skips it") if day == SPRING else ("averaged", "the clock repeats it")
        assert prices.mended.select("day", "hour", "what", "why").rows() == [
            (datetime.date.fromisoformat(day), 2, *what)
        ]


@pytest.mark.parametrize("step", [1, -1])
def test_autumn_by_another_clock(tmp_path, form, step):
    """The two hours are told apart: in UTC they are two rows, in their order, whichever comes first in the file."""
    write, reader = form
    times = hours_of("2024-10-26", 3)
    text = write(times[::step], range(len(times))[::step])
    prices = read(tmp_path, text, reader, time_zone="UTC", start=AUTUMN, end=AUTUMN)
    first = times.index(datetime.datetime(2024, 10, 27, tzinfo=UTC))
    assert prices.samples.values[0].tolist() == list(range(first, first + 24))
    assert prices.mended.height == 0


@pytest.mark.parametrize("minutes", [30, 15])
def test_parts_of_an_hour_are_averaged(tmp_path, minutes):
    """From 1 October 2025 on the market has quarters; both in one file."""
    hours = hours_of("2025-09-30", 1)
    starts = [hour + datetime.timedelta(minutes=m) for hour in hours_of("2025-10-01") for m in range(0, 60, minutes)]
    values = np.round(np.random.default_rng(1).uniform(-20, 90, len(starts)), 2)
    text = new_export(hours, range(24)) + new_export(starts, values, minutes=minutes).split("\n", 1)[1]
    prices = read(tmp_path, text, datasets.read_entsoe)
    assert np.allclose(prices.samples.values, [range(24), values.reshape(24, -1).mean(axis=1)], atol=1e-12)
    assert prices.mended.height == 0


def test_quarters_on_the_day_of_autumn(tmp_path):
    starts = [hour + datetime.timedelta(minutes=m) for hour in hours_of("2025-10-26") for m in range(0, 60, 15)]
    values = np.arange(100.0)
    for text in (new_export(starts, values, minutes=15), series_table(starts, values)):
        prices = read(tmp_path, text)
        assert prices.samples.values[0, 2] == values[8:16].mean()
        assert prices.samples.values[0, 3] == values[16:20].mean()


def test_a_missing_quarter(tmp_path):
    starts = [hour + datetime.timedelta(minutes=m) for hour in hours_of("2025-10-02") for m in range(0, 60, 15)]
    values = np.arange(96.0)
    text = series_table(np.delete(starts, [5, 8, 9, 10]), np.delete(values, [5, 8, 9, 10]))
    prices = read(tmp_path, text)
    assert prices.samples.values[0, 1] == (4 + 6 + 7) / 3
    assert prices.samples.values[0, 2] == 11
    assert prices.mended.select("hour", "what", "why").rows() == [
        (1, "averaged", "parts are missing"),
        (2, "averaged", "parts are missing"),
    ]


def test_the_empty_row_of_spring(tmp_path):
    """The older export had a row for the hour that does not exist."""
    times = hours_of(SPRING)
    lines = old_export(times, range(23)).splitlines()
    lines.insert(3, '"31.03.2024 02:00 - 31.03.2024 03:00","","",""')
    assert read(tmp_path, "\n".join(lines)).samples.values[0, 2] == 1.5
    lines[3] = '"31.03.2024 02:00 - 31.03.2024 03:00","9.0","EUR",""'
    with pytest.raises(ez.InputError, match="line 4 a price for 2024-03-31 02:00:00, a time that the clock of Europe"):
        read(tmp_path, "\n".join(lines))


def test_cells_without_a_price(tmp_path):
    prices: list[float | str] = [float(hour) for hour in range(24)]
    prices[3], prices[9], prices[15] = "n/e", "-", ""
    for write in (old_export, new_export):
        read_back = read(tmp_path, write(hours_of("2024-01-01"), prices), datasets.read_entsoe)
        assert read_back.samples.values[0].tolist() == list(range(24))
        assert read_back.mended["hour"].to_list() == [3, 9, 15]


@pytest.mark.parametrize(("head", "zone"), [("MTU", "Asia/Tokyo"), ("MTU (EET/EEST)", "Europe/Helsinki")])
def test_other_clocks(tmp_path, head, zone):
    """Where the heading names no clock, it is the user's; where it does, days of that clock come out whole."""
    rows = [f"{interval(datetime.datetime(2024, 7, 1, hour), '%d.%m.%Y %H:%M')},{hour}" for hour in range(24)]
    text = "\n".join([f"{head},Day-ahead Price [EUR/MWh]", *rows])
    assert read(tmp_path, text, time_zone=zone).samples.values[0].tolist() == list(range(24))


def test_areas_and_auctions(tmp_path):
    times = hours_of("2024-01-01")
    rows = [new_export(times, range(24), area=area).split("\n", 1)[1] for area in ("BZN|NL", "BZN|BE")]
    head = NEW.format("CET/CEST", "CET/CEST") + "\n"
    with pytest.raises(ez.InputError, match=r"holds 2 of them: BZN\|NL, BZN\|BE. Choose one, .*area='BZN\|NL'"):
        read(tmp_path, head + "".join(rows), datasets.read_entsoe)
    for area in ("BE", "BZN|BE", "bzn|be"):
        assert len(read(tmp_path, head + "".join(rows), datasets.read_entsoe, area=area).samples) == 1
    assert "BZN|BE" in str(read(tmp_path, head + "".join(rows), zone="BE"))
    with pytest.raises(ez.InputError, match="has in line 26 'x' in column"):
        read(tmp_path, head + "".join(rows).replace('|BE","Without Sequence","0"', '|BE","","x"'), zone="BE")
    auctions = [
        new_export(times, [price] * 24, sequence=f"Sequence Sequence {number}").split("\n", 1)[1]
        for number, price in ((2, 9), (1, 5))
    ]
    prices = read(tmp_path, head + "".join(auctions))
    assert (prices.samples.values == 5).all()
    assert "24 rows of further auctions (sequences beyond 1) were left out." in str(prices)


def test_countries(tmp_path):
    times = hours_of("2024-01-01")
    text = ember_table(times, range(24)) + ember_table(times, [7.0] * 24, "Belgium", "BEL", head=False)
    with pytest.raises(ez.InputError, match="holds 2 of them: Netherlands, Belgium. Choose one, .*country='Nether"):
        read(tmp_path, text, datasets.read_ember)
    for country in ("Belgium", "BEL", "bel"):
        prices = read(tmp_path, text, datasets.read_ember, country=country)
        assert (prices.samples.values == 7).all()
        assert "Belgium" in prices.source
    with pytest.raises(ez.InputError, match="holds no country 'Belgum'. Did you mean 'Belgium'"):
        read(tmp_path, text, datasets.read_ember, country="Belgum")


def test_separators_marks_and_packing(tmp_path):
    times, wanted = hours_of("2024-01-01"), [round(12.25 + hour, 2) for hour in range(24)]
    plain = series_table(times, wanted)
    comma = plain.replace(",", ";").replace(".", ",")
    texts = (comma, comma.replace(";", "\t"), plain.replace("\n", "\r\n"), "\ufeff" + plain, "\n\n" + plain + "\n\n")
    stamps = (plain.replace("utc,", " UTC ,"), plain.replace("Z,", ":00+00:00,"), plain.replace("T", " "))
    for text in (*texts, *stamps, gzip.compress(plain.encode())):
        assert read(tmp_path, text).samples.values[0].tolist() == wanted


@pytest.mark.parametrize("name", ["h{:02d}", "h{}", "{}", "{:02d}", "H{:02d}"])
@pytest.mark.parametrize("day", ["day", "Date"])
def test_a_row_per_day(tmp_path, name, day):
    rows = [f"2024-01-0{d + 1}," + ",".join(str(24 * d + hour) for hour in range(24)) for d in range(2)]
    text = "\n".join([f"{day}," + ",".join(name.format(hour) for hour in range(24)), *rows])
    prices = read(tmp_path, text, hours=[5, 2])
    assert prices.samples.values.tolist() == [[5, 2], [29, 26]]
    assert [str(day) for day in prices.days] == ["2024-01-01", "2024-01-02"]
    assert read(tmp_path, text, start="2024-01-02").samples.values.tolist() == [list(range(24, 48))]
    assert read(tmp_path, text, file_unit="ct/kWh").samples.values[0, 23] == 230


def test_rows_without_dates(tmp_path):
    text = "h00,h01,h02,h03,note\n1,2,3,4,a\n5,,7,8,b\n,,,12,c\n13,14,15,16,d\n"
    prices = read(tmp_path, text, hours=range(4), file_unit="EUR/MWh")
    assert prices.days == prices.dropped == ()
    assert prices.samples.values.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8], [13, 14, 15, 16]]
    assert prices.mended.rows() == [(1, None, 1, "filled", "missing")]
    assert "1 row left out for larger gaps: 2." in str(prices)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    first=st.dates(datetime.date(2015, 1, 1), datetime.date(2030, 1, 1)),
    form=st.sampled_from(sorted(WRITERS)),
    seed=st.integers(0, 999),
)
def test_any_days_come_back_as_they_were(tmp_path, first, form, seed):
    write, _ = WRITERS[form]
    times = hours_of(str(first), 3)
    wanted = np.round(np.random.default_rng(seed).uniform(-500, 4000, len(times)), 2)
    prices = read(tmp_path, write(times, wanted))
    assert len(prices.samples) == 3
    plain = [time for time in times if len(hours_of(str(time.astimezone(ZONE).date()))) == 24]
    for time in plain:
        local = time.astimezone(ZONE)
        assert prices.samples.values[prices.days.index(local.date()), local.hour] == wanted[times.index(time)]
