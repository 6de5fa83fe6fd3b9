"""A text file as a table of cells, every one of them text until it is read: so a wrong one is quoted with its line."""

import csv
import dataclasses
import gzip
import io
import itertools
import reprlib
import zlib
from pathlib import Path
from typing import NoReturn

import polars as pl

import epszero as ez
from epszero.datasets._inputs import PathLike, refuse

MISSING = ("", "-", "n/e", "na", "n/a", "nan", "null", "none")  # what a cell says, in any case, when it has no price
TIMES = (
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
)
DAYS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")
NAMES_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False)
class Table:
    """The cells; names of columns are as in the file, but for blanks around them."""

    name: str  # the file
    text: str
    separator: str
    cells: pl.DataFrame
    rows: pl.Series  # which rows of the file these are, counted from 0 below the heading

    def refuse(self, rule: str, remedy: str) -> NoReturn:
        """Say what is wrong with the file."""
        refuse("path", f"{self.name!r} {rule}", remedy)

    def refuse_row(self, row: int, finding: str, remedy: str) -> NoReturn:
        """Say what is wrong in a row of the cells, by its line in the file."""
        body = self.text.lstrip("\r\n")
        reader = csv.reader(io.StringIO(body), delimiter=self.separator)
        next(itertools.islice(reader, int(self.rows[row]) + 1, None), None)
        above = self.text[: len(self.text) - len(body)].count("\n")
        self.refuse(f"has in line {above + reader.line_num} {finding}", remedy)

    def columns_shown(self) -> str:
        """The first names."""
        names = self.cells.columns
        shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
        return shown if len(names) <= NAMES_SHOWN else f"{shown}, … ({len(names)} in all)"

    def prices(self, column: str) -> pl.Series:
        """The numbers of a column, null where there is none."""
        text = pl.col(column).str.strip_chars()
        if self.separator != ",":
            text = text.str.replace(r"^([+-]?\d+),(\d+)$", "$1.$2")  # a decimal comma
        words = self.cells.select(pl.when(~text.str.to_lowercase().is_in(MISSING)).then(text).alias(column))[column]
        numbers = words.cast(pl.Float64, strict=False)
        self._refuse_unread(words, numbers.is_finite(), f"{{}} in column {column!r}, which is not a price")
        return numbers

    def times(self, column: str) -> pl.Series:
        """The times of a column, by whatever clock they are, null where the cell is empty."""
        text = pl.col(column).str.strip_chars().str.replace("T", " ", literal=True).str.replace(r"(Z|[+-]00:?00)$", "")
        return self._dates(column, text, TIMES, pl.Datetime("us"), "time")

    def days(self, column: str) -> pl.Series:
        """The dates of a column."""
        return self._dates(column, pl.col(column).str.strip_chars(), DAYS, pl.Date(), "date")

    def rewritten(self, column: pl.Series) -> "Table":
        """With other cells in one column."""
        return dataclasses.replace(self, cells=self.cells.with_columns(column))

    def only(self, kept: pl.Series) -> "Table":
        """Some of the rows."""
        return dataclasses.replace(self, cells=self.cells.filter(kept), rows=self.rows.filter(kept))

    def _dates(
        self, column: str, text: pl.Expr, formats: tuple[str, ...], kind: pl.Date | pl.Datetime, what: str
    ) -> pl.Series:
        words = self.cells.select(pl.when(text != "").then(text).alias(column))[column]
        tries = [pl.col(column).str.strptime(kind, form, strict=False) for form in formats]
        read = words.to_frame().select(pl.coalesce(tries))[column]
        self._refuse_unread(words, read.is_not_null(), f"{{}} in column {column!r}, which is not a {what}")
        return read

    def _refuse_unread(self, words: pl.Series, fine: pl.Series, finding: str) -> None:
        unread = (words.is_not_null() & ~fine.fill_null(value=False)).arg_true()
        if len(unread):
            row = int(unread[0])
            self.refuse_row(row, finding.format(reprlib.repr(words[row])), "Mend it, or leave the line out")


def opened(path: PathLike) -> Table:
    """Read a file of text, plain or gzipped; cells are parted by commas, semicolons or tabs."""
    try:
        file = Path(path)
    except TypeError:
        refuse("path", f"must be the path of a file, but it is {path!r}", "Pass a string or a pathlib.Path")
    text = _text(file)
    body = text.lstrip("\r\n")
    header = body.split("\n", 1)[0]
    separator = max(",;\t", key=header.count)
    try:
        cells = pl.read_csv(io.BytesIO(body.encode()), infer_schema=False, separator=separator)
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0]
        refuse("path", f"{str(file)!r} cannot be read as a table ({reason})", "Check that it is a CSV file")
    names = [name.strip() for name in cells.columns]
    if len(set(names)) < len(names):
        refuse("path", f"{str(file)!r} has two columns of one name", "Give every column its own name")
    cells.columns = names
    table = Table(str(file), text, separator, cells, pl.Series(range(cells.height), dtype=pl.Int64))
    if cells.height == 0:
        table.refuse("has a header but no rows", "Pass a file with at least one row")
    return table


def _text(file: Path) -> str:
    if file.is_dir():
        refuse("path", f"{str(file)!r} is a directory", "Pass the path of a file")
    try:
        content = file.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        text = content.decode("utf-8-sig")
    except FileNotFoundError:
        refuse("path", f"there is no file {str(file)!r}", "Check the name and the working directory")
    except (OSError, EOFError, ValueError, zlib.error) as error:
        finding = f"{str(file)!r} cannot be read as text in UTF-8 ({type(error).__name__})"
        raise ez.InputError.about("path", finding, "Pass a CSV file") from error
    if not text.strip() or "\0" in text:
        refuse("path", f"{str(file)!r} {'holds no text' if text.strip() else 'is empty'}", "Pass a CSV file with rows")
    return text
