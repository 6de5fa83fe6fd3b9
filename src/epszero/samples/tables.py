"""A file as a table of text, every cell quoted as it was until it is read: so a wrong one is named with its place."""

import dataclasses
import reprlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from epszero._checks import refuse

if TYPE_CHECKING:
    import polars as pl

MISSING = (
    "",
    "-",
    "–",
    "n/e",
    "na",
    "n/a",
    "nan",
    "null",
    "none",
)  # what a cell says, in any case, when it has no value
NAMES_SHOWN = 8


@dataclasses.dataclass(frozen=True, eq=False)
class TextTable:
    """Cells of text by column. Columns without a name have been called "column 4"; empty rows and columns are gone."""

    argument: str  # whose fault it is
    name: str  # what it is called: the file, quoted; "" of a frame
    cells: "pl.DataFrame"
    places: "pl.Series"  # of each row: line of the text, or row of the sheet
    unit: str  # "line" or "row"
    commas_part: bool  # commas stand between cells
    notes: tuple[str, ...] = ()  # what was done on the way, in sentences

    def refuse(self, rule: str, remedy: str) -> NoReturn:
        """Say what is wrong with the table."""
        refuse(self.argument, f"{self.name} {rule}".lstrip(), remedy)

    def refuse_row(self, row: int, finding: str, remedy: str) -> NoReturn:
        """Say what is wrong in a row of the cells, by its place in the file."""
        self.refuse(f"has in {self.unit} {self.places[row]} {finding}", remedy)

    def columns_shown(self) -> str:
        """The first names."""
        names = self.cells.columns
        shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
        return shown if len(names) <= NAMES_SHOWN else f"{shown}, … ({len(names)} in all)"

    def numbers(self, columns: Sequence[str], what: str = "number") -> "list[pl.Series]":
        """The numbers of columns, null where there is none; what else is there is refused by its place."""
        from epszero.samples._marks import numbers  # noqa: PLC0415  (loads Polars)

        texts = [self.cells[name] for name in columns]
        words = [one.set(one.str.strip_chars().str.to_lowercase().is_in(MISSING), None) for one in texts]
        found = numbers(words, commas_part=self.commas_part)
        for name, text, unread in zip(columns, words, found.unread, strict=True):
            wrong = unread.arg_true()
            if len(wrong):
                why = f": {found.doubt}" if found.doubt else ""
                self.refuse_row(
                    int(wrong[0]),
                    f"{reprlib.repr(text[int(wrong[0])])} in column {name!r}, which is not a {what}{why}",
                    "Write all numbers in one way, without marks between thousands"
                    if why
                    else "Mend it, or leave the line out",
                )
        return found.values

    def rewritten(self, column: "pl.Series") -> "TextTable":
        """With other cells in one column."""
        return dataclasses.replace(self, cells=self.cells.with_columns(column))

    def only(self, kept: "pl.Series") -> "TextTable":
        """Some of the rows."""
        return dataclasses.replace(self, cells=self.cells.filter(kept), places=self.places.filter(kept))


def read_table(path: Any, argument: str = "path") -> TextTable:
    """Read a file of text or a spreadsheet; a fault of it is called `argument`."""
    import polars as pl  # noqa: PLC0415  (half a second of loading, for those who have a file)

    from epszero.samples._opened import rows_of  # noqa: PLC0415  (the same)

    try:
        file = Path(path)
    except TypeError:
        refuse(argument, f"must be the path of a file, but it is {path!r}", "Pass a string or a pathlib.Path")
    rows = rows_of(file, argument)
    cells = rows.cells
    used = [place for place, name in enumerate(rows.names) if name or not _is_empty(cells.to_series(place))]
    names = [rows.names[place] or f"column {place + 1}" for place in used]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        refuse(argument, f"{str(file)!r} has two columns of one name, {twice!r}", "Give every column its own name")
    kept = cells.select(pl.any_horizontal(pl.all().str.strip_chars().fill_null("") != "")).to_series()
    shown = cells.filter(kept).select(pl.nth(used))
    shown.columns = names
    commas = rows.separator == ","
    table = TextTable(argument, repr(str(file)), shown, rows.places.filter(kept), rows.unit, commas, rows.notes)
    if shown.height == 0:
        table.refuse("has a header but no rows", "Pass a file with at least one row")
    return table


def table_of(frame: Any, argument: str) -> TextTable | None:
    """The same of a Polars or pandas frame, by its own names and rows; None where it is neither."""
    columns = getattr(frame, "columns", None)
    if columns is None or not (hasattr(frame, "get_columns") or hasattr(frame, "iloc")):
        return None
    import polars as pl  # noqa: PLC0415  (half a second of loading, for those who have a frame)

    names = [str(name).strip() for name in columns]
    if len(set(names)) < len(names):
        refuse(argument, "has two columns of one name", "Give every column its own name")
    lists = [frame.to_series(place).to_list() for place in range(len(names))] if hasattr(frame, "get_columns") else [
        frame.iloc[:, place].tolist() for place in range(len(names))
    ]  # fmt: skip
    texts = {
        name: pl.Series([_text(cell) for cell in cells], dtype=pl.String)
        for name, cells in zip(names, lists, strict=True)
    }
    cells = pl.DataFrame(texts)
    table = TextTable(argument, "", cells, pl.Series(range(cells.height), dtype=pl.Int64), "row", commas_part=True)
    if cells.height == 0:
        table.refuse("has no rows", "Pass one with at least one row")
    return table


def _is_empty(column: "pl.Series") -> bool:
    return bool((column.str.strip_chars().fill_null("") == "").all())


def _text(cell: Any) -> str | None:
    """A cell of a frame as it would stand in a file; a number to its last digit."""
    if cell is None or cell != cell:  # noqa: PLR0124  (NaN, NaT)
        return None
    return repr(float(cell)) if isinstance(cell, float) else str(cell)
