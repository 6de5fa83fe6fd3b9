"""Numeric columns of a CSV or Parquet file, by Polars. What is missing or not a number is named by row and column."""

import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epszero._checks import InputError, first_index, refuse
from epszero._types import FloatArray
from epszero.samples._arrays import Missing, PathLike, Table, chosen_names, shortened
from epszero.samples.tables import read_table

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none")  # what a CSV cell says, in any case, when it has no value
AGAIN = "_duplicated_"  # in the name that Polars gives to a column whose name was there before


def read_csv(path: PathLike, columns: Sequence[str] | None, missing: Missing) -> Table:
    """Read every cell as text first, so that the one which is not a number can be quoted back."""
    if _is_of_other_form(path):
        return _other_form(path, columns, missing)
    try:
        frame = _opened(path, lambda file: pl.read_csv(file, infer_schema=False))
    except InputError as error:
        if isinstance(error.__cause__, pl.exceptions.PolarsError) and not _is_utf8(Path(path)):
            return _other_form(path, columns, missing)
        raise
    if all(map(_is_number, frame.columns)) and not all(name.strip().isdecimal() for name in frame.columns):
        refuse(
            "path",
            f"the first line of {str(path)!r} has numbers ({shortened(frame.columns)}) where names of columns are "
            "expected",
            "Put a header above it",
        )
    names = _chosen(path, frame, columns)
    _refuse_doubles(path, frame, names)
    cells = _long(frame, names).str.strip_chars()
    words = cells.set(cells.str.to_lowercase().is_in(MISSING_WORDS), None)
    parsed = words.cast(pl.Float64, strict=False)
    values = _matrix(parsed, names)
    unread = _matrix(words.is_not_null() & parsed.is_null(), names)
    if unread.any():
        row, column = first_index(unread)
        found = words[column * frame.height + row]
        usable = [names[place] for place in np.flatnonzero(~np.isnan(values).all(axis=0))]
        _refuse_column(path, usable, names[column], f"has {found!r} in row {row}{_line(path, frame, row)}")
    return _complete(path, values, names, missing, frame)


def _other_form(path: PathLike, columns: Sequence[str] | None, missing: Missing) -> Table:
    """Parted by semicolons, tabs or bars, with decimal commas or other letters: as read_table reads it."""
    table = read_table(path)
    names = _chosen(path, table.cells, columns)
    values = np.column_stack([one.to_numpy() for one in table.numbers(names)]).astype(np.float64)
    return _complete(path, values, names, missing, None)


def _is_of_other_form(path: PathLike) -> bool:
    """Whether the first line is in UTF-16, or has semicolons, tabs or bars, and no comma."""
    try:
        with Path(path).open("rb") as file:
            head = file.read(1 << 16)
    except (OSError, TypeError, ValueError):
        return False  # whoever reads it next says why
    first = head.lstrip(b"\r\n").partition(b"\n")[0]
    return head[:2] in (b"\xff\xfe", b"\xfe\xff") or (b"," not in first and any(mark in first for mark in b";\t|"))


def _is_utf8(file: Path) -> bool:
    try:
        file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_number(name: str) -> bool:
    try:
        float(name.split(AGAIN, maxsplit=1)[0])
    except ValueError:
        return False
    return True


def read_parquet(path: PathLike, columns: Sequence[str] | None, missing: Missing) -> Table:
    """Read the chosen columns; the file itself says which are numeric."""
    frame = _opened(path, pl.read_parquet)
    names, schema = _chosen(path, frame, columns), frame.schema
    numeric = [schema[name].is_numeric() or isinstance(schema[name], pl.Boolean | pl.Null) for name in names]
    if not all(numeric):
        odd = names[numeric.index(False)]
        usable = [name for name, yes in zip(names, numeric, strict=True) if yes]
        _refuse_column(path, usable, odd, f"holds {schema[odd]}")
    return _complete(path, _matrix(_long(frame, names), names), names, missing, None)


def _long(frame: pl.DataFrame, names: Sequence[str]) -> pl.Series:
    """The columns, one below the other: as many operations for a hundred thousand of them as for one.

    Columns of text stay what they are; all others become numbers.
    """
    place = {name: at for at, name in enumerate(frame.columns)}
    columns = [frame.to_series(place[name]) for name in names]
    kept = (pl.String(), pl.Float64())
    return pl.concat([one if one.dtype in kept else one.cast(pl.Float64) for one in columns], rechunk=True)


def _matrix(long: pl.Series, names: Sequence[str]) -> NDArray[Any]:
    """One column per name, NaN where there is no number."""
    return long.to_numpy().reshape(len(names), -1).T


def _opened(path: PathLike, reader: Callable[[Path | io.BytesIO], pl.DataFrame]) -> pl.DataFrame:
    try:
        file = Path(path)
    except TypeError:
        refuse("path", f"must be the path of a file, but it is {path!r}", "Pass a string or a pathlib.Path")
    if not file.is_file():
        refuse("path", f"there is no file {str(file)!r}", "Check the name and the working directory")
    try:
        frame = reader(file if _is_plain(str(file)) else io.BytesIO(file.read_bytes()))
    except pl.exceptions.NoDataError:
        refuse("path", f"{str(file)!r} is empty", "Pass a file with a header and at least one row")
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        finding = f"{str(file)!r} cannot be read as a table ({reason})"
        raise InputError.about("path", finding, "Check that it has that format") from error
    if frame.height == 0 or frame.width == 0:
        refuse("path", f"{str(file)!r} has a header but no rows", "Pass a file with at least one row")
    return frame


def _is_plain(name: str) -> bool:
    """Whether Polars takes a name as it is: not for a pattern of names, and all its letters are known."""
    return not any(letter in "*?[{" or "\ud800" <= letter <= "\udfff" for letter in name)


def _chosen(path: PathLike, frame: pl.DataFrame, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns asked for, all of them by default; an unknown name is answered with the nearest one."""
    if columns is None:
        return tuple(frame.columns)
    return chosen_names(repr(os.fspath(path)), frame.columns, columns)


def _refuse_doubles(path: PathLike, frame: pl.DataFrame, names: Sequence[str]) -> None:
    """Polars gives new names to columns whose name was there before."""
    known = set(frame.columns)
    for name in names:
        first = name.split(AGAIN, maxsplit=1)[0]
        if f"{first}{AGAIN}0" in known and first in known:
            refuse("path", f"{os.fspath(path)!r} has more than one column {first!r}", "Give each column its own name")


def _complete(
    path: PathLike, values: FloatArray, names: tuple[str, ...], missing: Missing, source: pl.DataFrame | None
) -> Table:
    """Finite values without gaps: a gap is an error, or its row goes. `source` is the CSV text, for line numbers."""

    def refuse_first(bad: NDArray[np.bool_], finding: str, remedy: str) -> NoReturn:
        row, column = first_index(bad)
        line = "" if source is None else _line(path, source, row)
        rows = int(bad.any(axis=1).sum())
        where = f"in row {row}{line}, column {names[column]!r} ({int(bad.sum())} such cells, in {rows} rows)"
        refuse("path", f"{os.fspath(path)!r} {finding} {where}", remedy)

    gaps, infinite = np.isnan(values), np.isinf(values)
    if infinite.any():
        refuse_first(infinite, "has an infinite value", "Mend it, or choose other columns")
    if not gaps.any():
        return values, names, 0
    if missing == "error":
        refuse_first(gaps, "has no value", 'Fill it in, choose other columns, or pass missing="drop"')
    kept = ~gaps.any(axis=1)
    if not kept.any():
        refuse("missing", 'with missing="drop" no row is left: each has a gap', "Choose columns that are filled")
    return values[kept], names, int((~kept).sum())


def _refuse_column(path: PathLike, usable: Sequence[str], name: str, finding: str) -> NoReturn:
    others = [other for other in usable if other != name]
    hint = f"columns=[{shortened(others)}]" if others else "columns=[…]"
    refuse(
        "path",
        f"column {name!r} of {os.fspath(path)!r} {finding}, which is not a number",
        f"Mend it, or choose the numeric columns with {hint}",
    )


def _line(path: PathLike, frame: pl.DataFrame, row: int) -> str:
    """Which line of the file row `row` is, where rows and lines match one to one."""
    lines = len(Path(path).read_bytes().splitlines())
    return f" (line {row + 2} of the file)" if lines == frame.height + 1 else ""
