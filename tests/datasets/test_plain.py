"""Times and prices in two columns, and hours that may be named by either end."""

import datetime
from zoneinfo import ZoneInfo

import pytest

import epszero as ez

ZONE = ZoneInfo("Europe/Amsterdam")
HOURS = list(range(24))


def read(tmp_path, text, **options):
    file = tmp_path / "prices.csv"
    file.write_text(text, encoding="utf-8")
    return ez.datasets.read_prices(file, unit="EUR/MWh", support=None, **options)


def table(heads, form, prices=None, day="2024-07-01", separator=","):
    first = datetime.datetime.combine(datetime.date.fromisoformat(day), datetime.time(), ZONE)
    rows = []
    for hour, price in enumerate(prices or [20.5 + hour for hour in HOURS]):
        time = first + datetime.timedelta(hours=hour)
        rows.append(form(time) + separator + str(price))
    return "\n".join([separator.join(heads), *rows]) + "\n"


def iso(time):
    return time.isoformat()


@pytest.mark.parametrize(
    ("heads", "form"),
    [
        (("timestamp", "price"), iso),
        (("timestamp", "price"), lambda time: time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")),
        (("timestamp", "price"), lambda time: time.strftime("%Y-%m-%d %H:%M:%S%z")),
        (("time", "Preis"), lambda time: time.strftime("%d.%m.%Y %H:%M")),
        (("Date/Time", "EUR/MWh"), lambda time: time.strftime("%d/%m/%Y %H:%M")),
        (("Date", "Price (€/MWh)"), lambda time: time.strftime("%m/%d/%Y %I:%M %p")),
        (("HourUTC", "SpotPriceEUR"), lambda time: time.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M")),
        (("time (UTC)", "value"), lambda time: time.astimezone(datetime.UTC).strftime("%Y-%m-%d %H:%M")),
        (("unix_seconds", "price"), lambda time: str(int(time.timestamp()))),
        (("x", "y"), iso),
    ],
)
def test_times_and_prices(tmp_path, heads, form):
    prices = read(tmp_path, table(heads, form), file_unit="EUR/MWh")
    assert prices.samples.values.tolist() == [[20.5 + hour for hour in HOURS]]


def test_whose_clock_is_told(tmp_path):
    text = table(("timestamp", "price"), lambda time: time.strftime("%Y-%m-%d %H:%M"))
    assert "Times name no clock: that of Europe/Amsterdam was taken." in read(tmp_path, text).notes
    assert read(tmp_path, table(("timestamp", "price"), iso)).notes == ()


@pytest.mark.parametrize(
    ("head", "scale"),
    [("price_eur_mwh", 1), ("Price [ct/kWh]", 10), ("€/kWh", 1000), ("EUR per kWh", 1000), ("c€/kWh", 10)],
)
def test_units_of_headings(tmp_path, head, scale):
    text = table(("timestamp", head), iso, [hour / scale for hour in range(20, 44)])
    assert read(tmp_path, text).samples.values[0].tolist() == pytest.approx(range(20, 44))
    with pytest.raises(
        ez.InputError, match=f"file_unit: is '{'EUR/kWh' if scale != 1000 else 'ct/kWh'}', but .* says itself"
    ):
        read(tmp_path, text, file_unit="EUR/kWh" if scale != 1000 else "ct/kWh")


def test_units_that_nobody_names(tmp_path):
    small = table(("timestamp", "price"), iso, [0.08] * 24)
    with pytest.raises(
        ez.InputError, match="holds no price beyond 0.08, which is little for EUR/MWh, and no unit was given"
    ):
        read(tmp_path, small)
    assert read(tmp_path, small, file_unit="EUR/kWh").samples.values[0, 0] == 80
    doubtful = read(tmp_path, table(("timestamp", "price"), iso, [8.5] * 24))
    assert any("half of the prices are below 8.5. If they are in ct/kWh" in note for note in doubtful.notes)
    assert read(tmp_path, table(("timestamp", "price"), iso, [85.5] * 24)).notes == ()
    stated = read(tmp_path, table(("timestamp", "price [EUR/MWh]"), iso, [0.08] * 24))
    assert "No price is beyond 0.08 EUR/MWh, which is little: check the unit." in stated.notes
    with pytest.raises(ez.InputError, match="has prices in 'SEK/kWh' .*, not in EUR"):
        read(tmp_path, table(("timestamp", "price [SEK/kWh]"), iso))


def test_columns_are_chosen(tmp_path):
    rows = [f"{hour:02d},2024-07-01T{hour:02d}:00+02:00,{hour},{hour + 100},{hour + 200}" for hour in HOURS]
    text = "\n".join(["no,when it starts,day-ahead price,intraday price,load", *rows])
    with pytest.raises(ez.InputError, match="several columns that may be prices: .* price_column='day-ahead price'"):
        read(tmp_path, text)
    assert read(tmp_path, text, price_column="Intraday Price", file_unit="EUR/MWh").samples.values[0, 0] == 100
    with pytest.raises(ez.InputError, match="price_column: .* has no column 'lood'. Did you mean 'load'"):
        read(tmp_path, text, price_column="lood")
    with pytest.raises(ez.InputError, match="line 2 '00' in column 'no', which is not a date"):
        read(tmp_path, text, time_column="no", price_column="load")


def test_areas_in_a_column(tmp_path):
    rows = [
        f"2024-07-01 {hour:02d}:00;{area};{price}" for hour in HOURS for area, price in (("DK1", hour), ("DK2", 50.5))
    ]
    text = "\n".join(["HourDK;PriceArea;SpotPriceEUR", *rows])
    assert read(tmp_path, text, zone="DK1").samples.values[0].tolist() == HOURS
    with pytest.raises(ez.InputError, match="holds 2 of them: DK1, DK2"):
        read(tmp_path, text)


@pytest.mark.parametrize("day", ["2024-03-31", "2024-10-27"])
@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S%z"])
def test_days_on_which_the_clock_changes(tmp_path, day, form):
    many = 23 if day == "2024-03-31" else 25
    midnight = datetime.datetime.combine(datetime.date.fromisoformat(day), datetime.time(), ZONE).astimezone(
        datetime.UTC
    )
    times = [(midnight + datetime.timedelta(hours=hour)).astimezone(ZONE) for hour in range(many)]
    text = "\n".join(["timestamp,price", *(f"{time.strftime(form)},{20 + hour}" for hour, time in enumerate(times))])
    wanted = [0, 1, 1.5, *range(2, 23)] if many == 23 else [0, 1, 2.5, *range(4, 25)]
    assert read(tmp_path, text).samples.values[0].tolist() == [20 + one for one in wanted]


def test_times_that_look_like_ends(tmp_path):
    text = table(("timestamp", "price"), lambda time: (time + datetime.timedelta(hours=1)).isoformat())
    with pytest.raises(ez.InputError, match="as if its times were ends of intervals. Say hour_labels="):
        read(tmp_path, text)
    prices = read(tmp_path, text, hour_labels="ending")
    assert prices.samples.values[0].tolist() == [20.5 + hour for hour in HOURS]
    assert "Times were read as ends: each price is of the 60 minutes before." in prices.notes
    assert read(tmp_path, text, hour_labels="beginning", hours=range(1, 24)).samples.values[0, 0] == 20.5
    named = read(tmp_path, text.replace("timestamp", "interval end"))
    assert named.samples.values[0, 0] == 20.5


@pytest.mark.parametrize(("first", "labels"), [(0, None), (1, None), (0, "beginning"), (1, "ending")])
def test_days_and_hours_in_two_columns(tmp_path, first, labels):
    text = "\n".join(["Date,Hour,Price", *(f"2024-07-01,{hour + first},{20 + hour}" for hour in HOURS)])
    prices = read(tmp_path, text, hour_labels=labels)
    assert prices.samples.values[0].tolist() == [20 + hour for hour in HOURS]
    assert any(f"read by their {'end' if first else 'beginning'}" in note for note in prices.notes)
    with pytest.raises(ez.InputError, match="but hour_labels is"):
        read(tmp_path, text, hour_labels="beginning" if first else "ending")


def test_hours_that_tell_nothing(tmp_path):
    text = "\n".join(["Date,Hour,Price", *(f"2024-07-01,{hour},{20 + hour}" for hour in range(7, 21))])
    with pytest.raises(ez.InputError, match="has neither hour 0 nor hour 24 in column 'Hour'"):
        read(tmp_path, text, hours=[9])
    assert read(tmp_path, text, hours=[9], hour_labels="beginning").samples.values[0, 0] == 29
    assert read(tmp_path, text, hours=[9], hour_labels="ending").samples.values[0, 0] == 30


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("timestamp,price\n2024-07-01T00:00+02:00,1\n2024-07-01 01:00,2\n", "line 3 '2024-07-01 01:00' .* by no clock"),
        ("timestamp,price\n,1\n2024-07-01T01:00+02:00,2\n", "line 2 a price but no time"),
        ("timestamp,price\n2024-07-01T00:00Z,\n", "holds no price"),
        ("timestamp,price\n2024-07-01T00:00Z,cheap\n", "line 2 'cheap' in column 'price', which is not a price"),
        ("date,price\n2024-07-01,5\n", "has days in column 'date', but no time of the day"),
        ("Date,Hour,Price\n2024-07-01,25,5\n", "line 2 '25' in column 'Hour', which is not an hour"),
        ("a,b\n1,2\n", "which none of the known forms has. Expected is one of these"),
        ("time,price\n1,2\n", "which none of the known forms has"),
        ("timestamp,a,b\n2024-07-01T00:00Z,1,2\n", "which none of the known forms has"),
    ],
)
def test_series_that_cannot_be(tmp_path, text, said):
    with pytest.raises(ez.InputError, match=said):
        read(tmp_path, text)
