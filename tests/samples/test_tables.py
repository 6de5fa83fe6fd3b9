"""Tables as people have them: whatever separator, mark, encoding or packing, cells come back, each with its place."""

import gzip
import importlib
import io
import zipfile

import pandas as pd
import polars as pl
import pytest

from epszero import InputError
from epszero.samples import read_table, table_of
from epszero.samples._marks import numbers

ROWS = {"name": ["Käfer", "bus"], "need": [3.5, 1234.25]}


def table(tmp_path, content):
    file = tmp_path / "table.csv"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_table(file)


def packed(text):
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("2025_10_table.csv", text)
    return archive.getvalue()


PLAIN = "name,need\nKäfer,3.5\nbus,1234.25\n"
GERMAN = "name;need\r\nKäfer;3,5\r\nbus;1.234,25\r\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        "\ufeff" + PLAIN,
        PLAIN.encode("utf-16"),
        PLAIN.encode("utf-16-le"),
        PLAIN.encode("utf-16-be"),
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
        PLAIN.encode("cp1252"),
        GERMAN,
        GERMAN.encode("cp1252"),
        GERMAN.replace("\r\n", "\r"),
        GERMAN.replace(";", "\t"),
        GERMAN.replace(";", "|"),
        "sep=;\r\n" + GERMAN,
        '"sep=;"\r\n' + GERMAN,
        "Our fleet\n\n" + PLAIN,
        "\n\n" + PLAIN + "\n ,\n,\n",
        GERMAN.replace("need", "need;;").replace("3,5", "3,5;;").replace("25", "25;;") + ";;;\r\n;;;\r\n",
        "name,need\nKäfer,3.5,,\nbus,1234.25,\n",
        'name,need\n"Käfer","3,5"\n"bus","1.234,25"\n',
        'name,need\nKäfer,3.5\nbus,"1,234.25"\n',
        "name;need\nKäfer;3,5\nbus;1 234,25\n",
        "name;need\nKäfer;3,5\nbus;1\u202f234,25\n",
        "name;need\nKäfer;3.5\nbus;1'234.25\n",
        gzip.compress(PLAIN.encode(), mtime=0),
        packed(GERMAN),
    ],
)
def test_the_same_table_in_every_form(tmp_path, content):
    read = table(tmp_path, content)
    assert read.cells.columns == ["name", "need"]
    assert read.cells["name"].to_list() == ROWS["name"]
    assert read.numbers(["need"])[0].to_list() == ROWS["need"]


def test_places_are_lines_of_the_file(tmp_path):
    read = table(tmp_path, 'title\n\na,"b\nc"\n\n1,"x\ny"\n3,4\n')
    assert read.places.to_list() == [7, 8]
    assert read.notes == ("What stands above the header, in line 4, was left out.",)
    with pytest.raises(InputError, match=r"has in line 7 'x\\ny' in column 'b\\nc', which is not a number"):
        read.numbers(["b\nc"])


@pytest.mark.parametrize(
    ("cells", "commas", "values"),
    [
        (["1", "-2", "+3", "−4", "- 5"], True, [1, -2, 3, -4, -5]),
        (["1e3", ".5", "2."], True, [1000, 0.5, 2]),
        (["1.234", "2.5"], True, [1.234, 2.5]),
        (["1.234", "2,5"], False, [1234, 2.5]),
        (["1.234"], True, [1.234]),
        (["1.234"], False, [1.234]),
        (["1,234"], False, [1.234]),
        (["1,234", "0.5"], False, [1234, 0.5]),
        (["1,234,567"], True, [1234567]),
        (["1.234.567"], True, [1234567]),
        (["1.234.567,8"], True, [1234567.8]),
        (["12345,678"], True, [12345.678]),
        (["1,23,4"], False, [None]),
        (["0,5", "0.5"], False, [None, 0.5]),
        (["1,234"], True, [None]),
        (["3 kWh", "inf", "1 2", "0x1", "1_000", "½"], True, [None] * 6),
    ],
)
def test_marks_of_numbers(cells, commas, values):
    found = numbers([pl.Series(cells)], commas_part=commas)
    assert found.values[0].to_list() == values
    assert found.unread[0].to_list() == [value is None for value in values]


def test_marks_are_told_from_all_columns():
    found = numbers([pl.Series(["1,234"]), pl.Series([None, "2,5"])], commas_part=True)
    assert [one.to_list() for one in found.values] == [[1.234], [None, 2.5]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty. Pass a file with a header"),
        (" \n\n", "is empty"),
        ("sep=;\n", "is empty"),
        ("a,b\n", "has a header but no rows"),
        ("a,b\n,\n", "has a header but no rows"),
        ("a,a\n1,2\n", "has two columns of one name, 'a'"),
        ("a,b\n1,2\n1,2,3\n", "has in line 3 3 cells, but 2 names of columns above them"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "holds no text that can be read (UTF-8, UTF-16 or Windows-1252)"),
        (b"a,b\n1,\x81\n", "holds no text"),
        (b"\x1f\x8b\x08\x00abc", "is packed, and cannot be unpacked"),
        (b"PK\x03\x04abc", "is packed, and cannot be unpacked"),
        (b"PAR1abc", "is a Parquet file"),
        (b"%PDF-1.4", "is a PDF"),
    ],
)
def test_files_that_are_no_table(tmp_path, content, said):
    with pytest.raises(InputError) as caught:
        table(tmp_path, content)
    assert said in str(caught.value)
    assert str(caught.value).startswith("path: ")


def test_an_archive_of_several_files_is_refused(tmp_path):
    archive = io.BytesIO(packed(PLAIN))
    with zipfile.ZipFile(archive, "a") as made:
        made.writestr("other.csv", PLAIN)
    with pytest.raises(InputError, match="is an archive of 2 files. Unpack it"):
        table(tmp_path, archive.getvalue())


def test_a_spreadsheet_without_the_extra_names_it(tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("[Content_Types].xml", "")
    with pytest.raises(InputError, match=r"is a spreadsheet, and .* fastexcel, is not installed. .*epszero\[excel\]"):
        table(tmp_path, archive.getvalue())


def test_a_broken_spreadsheet_is_refused(tmp_path):
    pytest.importorskip("fastexcel")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("[Content_Types].xml", "")
    with pytest.raises(InputError, match="cannot be read as a spreadsheet"):
        table(tmp_path, archive.getvalue())


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame])
def test_frames(kind):
    read = table_of(kind({" a ": [1, 2], "b": [0.1, None], "c": ["x", "y"]}), "fleet")
    assert read.cells.columns == ["a", "b", "c"]
    assert read.numbers(["a", "b"])[0].to_list() == [1.0, 2.0]
    assert read.numbers(["b"])[0].to_list() == [0.1, None]
    with pytest.raises(InputError, match="fleet: has in row 0 'x' in column 'c', which is not a number"):
        read.numbers(["c"])
    with pytest.raises(InputError, match="fleet: has no rows"):
        table_of(kind({"a": []}), "fleet")


def test_what_is_no_frame():
    assert table_of({"a": [1]}, "fleet") is None
    assert table_of("fleet.csv", "fleet") is None
