"""What cells of a table of prices say: prices, times and days. Any other cell is quoted with its line."""

import json
import reprlib
from pathlib import Path
from typing import Any

import polars as pl

import epszero as ez
from epszero.datasets._inputs import PathLike, refuse
from epszero.samples import TextTable, read_table, table_of

TIMES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%b %d, %Y %I:%M %p",  # SMARD, in English
    "%b %d, %Y %I:%M:%S %p",
    "%m/%d/%Y %I:%M %p",  # who counts to twelve puts the month first
    "%m/%d/%Y %I:%M:%S %p",
)
DAYS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%Y/%m/%d", "%b %d, %Y"),
    *("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S"),
)
CLOCK = r":\d\d(?:\.\d+)?\s*(Z|UTC|[+-]\d\d(?::?\d\d)?)$"  # what an ISO time says of its distance from UTC, at its end
SHORT_YEAR = r"^\d{1,2}[./-]\d{1,2}[./-]\d\d(?:\D|$)"  # 01.02.24, which is nobody's first choice


def opened(path: PathLike) -> TextTable:
    """A file of text, a spreadsheet, or JSON as energy-charts and others give it."""
    return _json(path) or read_table(path)


def prices(table: TextTable, *columns: str) -> list[pl.Series]:
    """The numbers of columns, null where there is none."""
    found = table.numbers(columns, "price")
    for column, values in zip(columns, found, strict=True):
        infinite = (~values.is_finite()).fill_null(value=False).arg_true()
        if len(infinite):
            table.refuse_row(
                int(infinite[0]), f"no finite price in column {column!r}", "Mend it, or leave the line out"
            )
    return found


def times(table: TextTable, column: str) -> pl.Series:
    """The times of a column, by whatever clock they are, null where the cell is empty; Z and +00:00 are left out."""
    text = _spaced(column).str.replace(r"\s*(Z|UTC|[+-]00:?00)$", "")
    return _dates(table, column, text, TIMES, pl.Datetime("us"), "time")


def moments(table: TextTable, column: str) -> pl.Series | None:
    """The times of a column by UTC, where each says itself how far it is from that; None where none does.

    So do times with an offset (+01:00, Z), and seconds or milliseconds since 1970.
    """
    text = table.cells.select(_spaced(column))[column]
    filled = text.filter((text != "").fill_null(value=False))
    if len(filled) and filled.str.contains(r"^\d{9,10}$|^\d{12,13}$").all():
        number = text.cast(pl.Int64, strict=False)
        seconds = pl.when(number >= 10**11).then(number * 1000).otherwise(number * 1_000_000)
        return number.to_frame().select(seconds.cast(pl.Datetime("us", "UTC")).alias(column))[column]
    offset = text.str.extract(CLOCK, 1)
    if len(filled) == 0 or offset.null_count() == len(offset):
        return None
    without = (offset.is_null() & (text != "").fill_null(value=False)).arg_true()
    if len(without):
        table.refuse_row(
            int(without[0]),
            f"{text[int(without[0])]!r} in column {column!r}, by no clock, where others name one",
            "Mend it",
        )
    bare = pl.col(column).str.replace(r"\s*(?:Z|UTC|[+-]\d\d(?::?\d\d)?)$", "")
    here = _dates(table.rewritten(text), column, bare, TIMES, pl.Datetime("us"), "time")
    sign = pl.when(offset.str.starts_with("-")).then(-1).otherwise(1)
    digits = offset.str.replace_all(r"\D", "")
    away = digits.str.slice(0, 2).cast(pl.Int64, strict=False).fill_null(0) * 60
    away = away + digits.str.slice(2, 2).cast(pl.Int64, strict=False).fill_null(0)
    frame = pl.DataFrame({"here": here, "away": away})
    utc = pl.col("here") - pl.duration(minutes=pl.col("away") * sign)
    return frame.select(utc.dt.replace_time_zone("UTC").alias(column))[column]


def days(table: TextTable, column: str) -> pl.Series:
    """The dates of a column."""
    return _dates(table, column, pl.col(column).str.strip_chars(), DAYS, pl.Date(), "date")


def _spaced(column: str) -> pl.Expr:
    return pl.col(column).str.strip_chars().str.replace(r"(\d)T(\d)", "$1 $2")


def _dates(
    table: TextTable, column: str, text: pl.Expr, formats: tuple[str, ...], kind: pl.Date | pl.Datetime, what: str
) -> pl.Series:
    words = table.cells.select(pl.when(text != "").then(text).alias(column))[column]
    tries = [pl.col(column).str.strptime(kind, form, strict=False) for form in formats]
    read = words.to_frame().select(pl.coalesce(tries))[column]
    wrong = (words.is_not_null() & (read.is_null() | words.str.contains(SHORT_YEAR))).arg_true()
    if len(wrong):
        row = int(wrong[0])
        finding = f"{reprlib.repr(words[row])} in column {column!r}, which is not a {what}"
        table.refuse_row(row, finding, "Mend it, or leave the line out")
    return read


# -- JSON --------------------------------------------------------------------------------------------------------------


def _json(path: PathLike) -> TextTable | None:
    """A table from JSON: lists by name, a list of records, or a list of series; None where a file has none."""
    try:
        file = Path(path)
        if not file.is_file():
            return None
        with file.open("rb") as content:
            head = content.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
            if head[:1] not in (b"{", b"["):
                return None
            content.seek(0)
            found: Any = json.loads(content.read().decode("utf-8-sig"))
    except (TypeError, OSError):
        return None  # whoever reads it next says why
    except ValueError as error:
        finding = f"{str(path)!r} begins as JSON does, but is none ({type(error).__name__})"
        raise ez.InputError.about("path", finding, "Download it again, or pass a CSV file") from error
    columns = _columns(found)
    lengths = {len(cells) for cells in columns.values()}
    if not columns or len(lengths) != 1 or lengths == {0}:
        refuse(
            "path",
            f"{str(path)!r} is JSON without times and prices in lists of one length",
            "Pass what energy-charts answers for 'price', a list of records, or a CSV file",
        )
    table = table_of(pl.DataFrame({name: pl.Series(cells, dtype=pl.Object) for name, cells in columns.items()}), "path")
    assert table is not None
    return TextTable("path", repr(str(path)), table.cells, table.places, "entry", commas_part=True)


def _columns(found: Any) -> dict[str, list[Any]]:
    if isinstance(found, dict):
        lists = {str(name): cells for name, cells in found.items() if isinstance(cells, list)}
        unit = found.get("unit")
        if "unix_seconds" in lists and "price" in lists:
            return {"unix_seconds": lists["unix_seconds"], f"price [{unit}]" if unit else "price": lists["price"]}
        inner = next((cells for cells in lists.values() if cells and isinstance(cells[0], dict)), None)
        return _columns(inner) if inner is not None else lists
    if not (isinstance(found, list) and found and all(isinstance(one, dict) for one in found)):
        return {}
    if all("data" in one and "xAxisValues" in one for one in found):  # the website of energy-charts
        moments_ = found[0]["xAxisValues"]
        made = {"unix_seconds": moments_}
        for one in found:
            if one["xAxisValues"] == moments_ and "MWh" in str(one.get("unit", "EUR/MWh")):
                made[f"{_english(one.get('name'))} [{one.get('unit', 'EUR/MWh')}]"] = one["data"]
        return made
    names = list(dict.fromkeys(str(name) for one in found for name in one))
    return {name: [one.get(name) for one in found] for name in names}


def _english(name: Any) -> str:
    while isinstance(name, list) and name:
        name = name[0]
    return str(name.get("en", next(iter(name.values()), ""))) if isinstance(name, dict) else str(name)
