"""A row per day: when the hours of columns begin, by whatever names they have; never shifted without a word."""

import pytest

import epszero as ez

HOURS = list(range(24))


def read(tmp_path, names, rows=None, **options):
    lines = rows or [["2024-07-01", *(20 + place for place in range(len(names)))]]
    file = tmp_path / "prices.csv"
    file.write_text("\n".join(";".join(map(str, line)) for line in [["Date", *names], *lines]), encoding="utf-8")
    return ez.datasets.read_prices(file, unit="EUR/MWh", support=None, **options)


BEGINNING = {
    "0": [f"{hour}" for hour in HOURS],
    "00": [f"{hour:02d}" for hour in HOURS],
    "h00": [f"h{hour:02d}" for hour in HOURS],
    "00:00": [f"{hour:02d}:00" for hour in HOURS],
    "0:00:00": [f"{hour}:00:00" for hour in HOURS],
    "Hour 0": [f"Hour {hour}" for hour in HOURS],
    "intervals": [f"{hour:02d}:00 - {hour + 1:02d}:00" for hour in HOURS],
    "00-01": [f"{hour:02d}-{hour + 1:02d}" for hour in HOURS],
    "HB": [f"HB{hour:02d}" for hour in HOURS],
}
ENDING = {
    "1": [f"{hour + 1}" for hour in HOURS],
    "Hour 1": [f"Hour {hour + 1}" for hour in HOURS],
    "h1": [f"h{hour + 1}" for hour in HOURS],
    "h01": [f"h{hour + 1:02d}" for hour in HOURS],
    "HE01": [f"HE{hour + 1:02d}" for hour in HOURS],
    "Stunde 1": [f"Stunde {hour + 1}" for hour in HOURS],
    "01:00": [f"{hour + 1:02d}:00" for hour in HOURS],
}


@pytest.mark.parametrize("names", [*BEGINNING, *ENDING])
def test_the_first_column_is_the_hour_after_midnight(tmp_path, names):
    prices = read(tmp_path, (BEGINNING | ENDING)[names])
    assert prices.samples.values[0].tolist() == [20 + hour for hour in HOURS]
    told = [note for note in prices.notes if "hours by their" in note]
    if names in ENDING:
        assert len(told) == 1
        assert "by their end" in told[0]
        assert "00:00 to 01:00" in told[0]
    elif names not in ("h00", "intervals", "00-01", "HB"):
        assert "by their beginning" in told[0]


def test_midnight_in_the_last_column_is_not_guessed(tmp_path):
    names = [f"{(hour + 1) % 24:02d}:00" for hour in HOURS]
    with pytest.raises(ez.InputError, match="'01:00' to '00:00' for hours, '00:00' comes last: they may be named by"):
        read(tmp_path, names)
    ends = read(tmp_path, names, hour_labels="ending")
    assert ends.samples.values[0].tolist() == [20 + hour for hour in HOURS]
    begins = read(tmp_path, names, hour_labels="beginning")
    assert begins.samples.values[0].tolist() == [43, *range(20, 43)]


def test_some_hours_that_tell_nothing(tmp_path):
    names = [str(hour) for hour in range(7, 20)]
    with pytest.raises(
        ez.InputError, match="neither 0 nor 24 among them.*Say hour_labels=.beginning. if 7 is the hour"
    ):
        read(tmp_path, names, hours=[10])
    assert read(tmp_path, names, hours=[10], hour_labels="beginning").samples.values[0, 0] == 23
    assert read(tmp_path, names, hours=[10], hour_labels="ending").samples.values[0, 0] == 24
    assert read(tmp_path, [f"h{hour:02d}" for hour in range(7, 20)], hours=[10]).samples.values[0, 0] == 23


@pytest.mark.parametrize(("names", "labels"), [("0", "ending"), ("1", "beginning"), ("HE01", "beginning")])
def test_what_columns_say_is_not_contradicted(tmp_path, names, labels):
    with pytest.raises(ez.InputError, match=f"names hours by their .*, but hour_labels is '{labels}'"):
        read(tmp_path, (BEGINNING | ENDING)[names], hour_labels=labels)


def test_quarters_of_an_hour(tmp_path):
    quarters = [20 + part for part in range(96)]
    wanted = [20 + 4 * hour + 1.5 for hour in HOURS]
    begins = [f"{part // 4:02d}:{15 * (part % 4):02d}" for part in range(96)]
    ends = [f"{(part + 1) // 4:02d}:{15 * ((part + 1) % 4):02d}" for part in range(96)]
    for names in (begins, ends):
        prices = read(tmp_path, names, [["2025-10-01", *quarters]])
        assert prices.samples.values[0].tolist() == wanted
        assert "Prices of 15 minutes were averaged to hours, on 1 day." in prices.notes


def test_days_on_which_the_clock_changes(tmp_path):
    counted = [str(hour + 1) for hour in range(25)]
    rows = [
        ["2024-03-31", *range(20, 43), "", ""],
        ["2024-07-01", *range(20, 44), ""],
        ["2024-10-27", *range(20, 45)],
    ]
    prices = read(tmp_path, counted, rows, start="2024-03-31")
    days = [str(day) for day in prices.days]
    spring, autumn = (prices.samples.values[days.index(day)].tolist() for day in ("2024-03-31", "2024-10-27"))
    assert spring == [20, 21, 21.5, *range(22, 43)]
    assert autumn == [20, 21, 22.5, *range(24, 45)]
    assert prices.samples.values[days.index("2024-07-01")].tolist() == list(range(20, 44))


def test_spring_in_24_columns(tmp_path):
    counted = read(tmp_path, ENDING["1"], [["2024-03-31", *range(20, 43), ""]])
    assert counted.samples.values[0].tolist() == [20, 21, 21.5, *range(22, 43)]
    assert any("2024-03-31 the clock skips an hour and the last column is empty" in note for note in counted.notes)
    skipped = read(tmp_path, ENDING["1"], [["2024-03-31", 20, 21, "", *range(22, 43)]])
    assert skipped.samples.values[0].tolist() == [20, 21, 21.5, *range(22, 43)]


def test_the_hour_that_comes_twice(tmp_path):
    names = ["Hour 1", "Hour 2", "Hour 3A", "Hour 3B", *(f"Hour {hour}" for hour in range(4, 25))]
    rows = [["2024-10-27", *range(20, 45)], ["2024-10-28", 20, 21, 22, "", *range(23, 44)]]
    prices = read(tmp_path, names, rows)
    assert prices.samples.values.tolist() == [[20, 21, 22.5, *range(24, 45)], list(range(20, 44))]
    assert prices.mended["why"].to_list() == ["the clock repeats it"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([str(hour) for hour in range(25)], "has columns for 0 and for 24"),
        (["0", "1", "01"], "has two columns for hour 1: '1' and '01'"),
        (["0", "1", "h2"], "has no column for hour 3"),
    ],
)
def test_columns_that_cannot_be(tmp_path, names, said):
    with pytest.raises(ez.InputError, match=said):
        read(tmp_path, names)


def test_a_unit_beside_the_hours(tmp_path):
    rows = [["2024-07-01", *(2 + hour / 10 for hour in HOURS), ""]]
    prices = read(tmp_path, [*BEGINNING["0"], "all in ct/kWh"], rows)
    assert prices.samples.values[0].tolist() == pytest.approx([20 + hour for hour in HOURS])
