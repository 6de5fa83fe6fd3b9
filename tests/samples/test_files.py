"""Reading files: the cell that is to blame is named."""

from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epszero import InputError
from epszero.samples import Samples
from epszero.sets import Box


@pytest.fixture
def csv(tmp_path: Path):
    def write(text: str, encoding: str = "utf-8") -> Path:
        path = tmp_path / "prices.csv"
        path.write_text(text, encoding=encoding)
        return path

    return write


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    path = tmp_path / "prices.parquet"
    pl.DataFrame(
        {"a": [1, None, 3], "b": [1.0, 2.0, float("nan")], "c": [True, False, True], "day": ["x", "y", "z"]}
    ).write_parquet(path)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "night,day\n1,2\n3,4\n",
        "night,day\r\n1,2\r\n3,4",
        'night,day\n 1 ,"2"\n+3e0,4.0\n',
    ],
)
def test_a_csv_is_read_as_numbers_with_names(csv, text):
    samples = Samples.from_csv(csv(text))
    np.testing.assert_array_equal(samples.values, [[1.0, 2.0], [3.0, 4.0]])
    assert samples.columns == ("night", "day")
    assert samples.dropped == 0


def test_a_byte_order_mark_does_no_harm(csv):
    assert Samples.from_csv(csv("night,day\n1,2\n", "utf-8-sig")).columns == ("night", "day")


def test_columns_are_chosen_by_name_and_in_that_order(csv):
    path = csv("date,night,day\nMon,1,2\nTue,3,4\n")
    samples = Samples.from_csv(path, columns=["day", "night"])
    np.testing.assert_array_equal(samples.values, [[2.0, 1.0], [4.0, 3.0]])
    assert Samples.from_csv(str(path), columns=["day"]).columns == ("day",)


@pytest.mark.parametrize("gap", ["", " ", "NaN", "nan", "NA", "null", "None", "N/A"])
def test_a_missing_value_is_an_error_or_drops_its_row(csv, gap):
    path = csv(f"night,day\n1,2\n3,{gap}\n5,6\n")
    with pytest.raises(InputError, match=r"no value in row 1 \(line 3 of the file\), column 'day'.*missing=\"drop\""):
        Samples.from_csv(path)
    samples = Samples.from_csv(path, missing="drop")
    np.testing.assert_array_equal(samples.values, [[1.0, 2.0], [5.0, 6.0]])
    assert samples.dropped == 1
    assert repr(samples) == "Samples(2 × 2, columns=['night', 'day'], dropped=1)"
    assert len(Samples.from_csv(path, columns=["night"])) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["is empty"]),
        ("night,day\n", ["no rows"]),
        ("date,price\nMon,2\nTue,3\n", ["'date'", "'Mon'", "row 0 (line 2 of the file)", "columns=['price']"]),
        ("night,day\n1,2\n3,4 €\n", ["'day'", "'4 €'", "row 1"]),
        ("night;day\n1;much\n", ["has in line 2 'much' in column 'day', which is not a number"]),
        ("night;day\n1;\n", ["has no value in row 0", "'day'"]),
        ("night,day\n1,2,3\n", ["cannot be read as a table"]),
        ("night,day\n1\n", ["no value in row 0", "'day'"]),
        ("night,day\n1,2\n,2\n1,-inf\n", ["infinite value in row 2", "'day'"]),
    ],
)
def test_bad_files_are_refused_in_a_sentence(csv, text, words):
    with pytest.raises(InputError) as caught:
        Samples.from_csv(csv(text))
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("mark", [";", "\t", "|"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-8-sig"])
def test_other_forms_of_csv(csv, mark, encoding):
    samples = Samples.from_csv(csv(f"Nächte{mark}day\n1,5{mark}2\n3{mark}1.004,25\n", encoding))
    np.testing.assert_array_equal(samples.values, [[1.5, 2.0], [3.0, 1004.25]])
    assert samples.columns == ("Nächte", "day")


def test_letters_of_windows(csv):
    path = csv("Nächte,day\n1.5,2\n3,4\n", "cp1252")
    np.testing.assert_array_equal(Samples.from_csv(path, columns=["day"]).values, [[2.0], [4.0]])
    with pytest.raises(InputError, match="has in line 2 'ñ' in column 'prix', which is not a number"):
        Samples.from_csv(csv("prix\nñ\n", "latin-1"))


def test_lines_are_not_counted_where_rows_span_several(csv):
    with pytest.raises(InputError) as caught:
        Samples.from_csv(csv('a,b\n1,"x\ny"\n2,\n'), columns=["b"])
    assert "of the file" not in str(caught.value)


@pytest.mark.parametrize("path", ["nowhere.csv", ".", 3, None])
def test_a_path_that_is_no_file_is_refused(path):
    with pytest.raises(InputError, match=r"^path: "):
        Samples.from_csv(path)
    with pytest.raises(InputError, match=r"^path: "):
        Samples.from_parquet(path)


def test_an_unknown_column_is_answered_with_the_nearest(csv, parquet):
    with pytest.raises(InputError, match="Did you mean 'night'"):
        Samples.from_csv(csv("night,day\n1,2\n"), columns=["nihgt"])
    with pytest.raises(InputError, match="It has: 'a', 'b', 'c', 'day'"):
        Samples.from_parquet(parquet, columns=["zzz"])


@pytest.mark.parametrize("columns", ["night", ["night", "night"], [], [1]])
def test_a_bad_list_of_columns_is_refused(csv, columns):
    with pytest.raises(InputError, match=r"^columns: "):
        Samples.from_csv(csv("night,day\n1,2\n"), columns=columns)


def test_missing_is_error_or_drop(csv):
    with pytest.raises(InputError, match=r"^missing: "):
        Samples.from_csv(csv("a\n1\n"), missing="skip")
    with pytest.raises(InputError, match="no row is left"):
        Samples.from_csv(csv("a,b\n1,\n,2\n"), missing="drop")


def test_the_support_is_checked_after_reading(csv):
    path = csv("a\n0.5\n1.5\n")
    assert Samples.from_csv(path, support=Box(0.0, 2.0)).support is not None
    with pytest.raises(InputError, match="row 1 lies outside"):
        Samples.from_csv(path, support=Box(0.0, 1.0))


def test_a_misspelt_keyword_is_answered_with_the_nearest(csv):
    with pytest.raises(TypeError, match=r"Did you mean 'missing'.*It takes: path, columns, missing, support"):
        Samples.from_csv(csv("a\n1\n"), mising="drop")


def test_parquet_nulls_and_nans_are_missing(parquet):
    with pytest.raises(InputError, match="no value in row 1, column 'a'"):
        Samples.from_parquet(parquet, columns=["a", "b", "c"])
    samples = Samples.from_parquet(parquet, columns=["a", "b", "c"], missing="drop")
    np.testing.assert_array_equal(samples.values, [[1.0, 1.0, 1.0]])
    assert samples.dropped == 2
    assert samples[:1].dropped == 2


def test_a_parquet_column_of_text_is_refused(parquet):
    with pytest.raises(InputError, match=r"'day'.*String.*columns=\['a', 'b', 'c'\]"):
        Samples.from_parquet(parquet)


def test_a_file_that_is_no_parquet_is_refused(csv):
    with pytest.raises(InputError, match="cannot be read as a table"):
        Samples.from_parquet(csv("a\n1\n"))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
def test_files_give_back_every_bit(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("files")
    table = pl.DataFrame({"a": numbers, "b": numbers[::-1]})
    table.write_csv(folder / "t.csv")
    table.write_parquet(folder / "t.parquet")
    expected = Samples(np.column_stack([numbers, numbers[::-1]])).digest()
    assert Samples.from_csv(folder / "t.csv").digest() == expected
    assert Samples.from_parquet(folder / "t.parquet").digest() == expected


def test_numbers_in_place_of_a_header_are_refused_and_hours_are_not(csv):
    for text in ("0.1,0.2\n0.3,0.4\n", "1e3\n2\n", "-1,2\n3,4\n", "0.5,0.5\n1,2\n"):
        with pytest.raises(InputError, match="Put a header above it"):
            Samples.from_csv(csv(text))
    assert Samples.from_csv(csv("0,1,23\n5,6,7\n")).columns == ("0", "1", "23")


def test_numbers_whose_norm_overflows_are_not_inside_a_support():
    with pytest.raises(InputError, match="outside the support"):
        Samples(np.full((2, 3), 1e308), support=Box(0.0, 1.0))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_wide_file_takes_time_in_proportion(tmp_path, kind):
    """Found: minutes for 50 000 columns, by counting every name among all names."""
    values = np.random.default_rng(0).uniform(size=(3, 20_000))
    names = [f"c{i}" for i in range(20_000)]
    path = tmp_path / f"wide.{kind}"
    if kind == "csv":
        path.write_text("\n".join([",".join(names), *(",".join(map(repr, row.tolist())) for row in values)]))
    else:
        pl.DataFrame(dict(zip(names, values.T, strict=True))).write_parquet(path)
    read = Samples.from_csv if kind == "csv" else Samples.from_parquet
    start = perf_counter()
    samples = read(path)
    some = read(path, columns=names[::-1])
    assert perf_counter() - start < 15  # 2 s; it was 30 s and more
    np.testing.assert_array_equal(samples.values, values)
    np.testing.assert_array_equal(some.values, values[:, ::-1])
    assert samples.columns == tuple(names)


def test_a_column_that_is_there_twice_is_refused_if_it_is_asked_for(csv):
    path = csv("a,b,a\n1,2,3\n4,5,6\n")
    for columns in (None, ["a"]):
        with pytest.raises(InputError, match="more than one column 'a'"):
            Samples.from_csv(path, columns=columns)
    np.testing.assert_array_equal(Samples.from_csv(path, columns=["b"]).values, [[2.0], [5.0]])


def test_parquet_names_the_columns_that_are_numbers(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": ["a"], "y": [1], "z": ["b"], "w": [True]}).write_parquet(path)
    with pytest.raises(InputError, match=r"'x'.*columns=\['y', 'w'\]"):
        Samples.from_parquet(path)
    np.testing.assert_array_equal(Samples.from_parquet(path, columns=["w", "y"]).values, [[1.0, 1.0]])
