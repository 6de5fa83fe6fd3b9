"""Numeric columns of a CSV or Parquet file, by Polars. What is missing or not a number is named by row and column."""

import difflib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from epszero._checks import InputError, first_index, refuse
from epszero._types import FloatArray
from epszero.samples._arrays import checked_columns, shortened

PathLike = str | os.PathLike[str]
Missing = Literal["error", "drop"]
Table = tuple[FloatArray, tuple[str, ...], int]
"""Values, column names, how many rows were dropped."""

MISSING_WORDS = ("", "na", "n/a", "nan", "null", "none")  # what a CSV cell says, in any case, when it has no value


def read_csv(path: PathLike, columns: Sequence[str] | None, missing: Missing) -> Table:
    """Read every cell as text first, so that the one which is not a number can be quoted back."""
    frame = _opened(path, lambda file: pl.read_csv(file, infer_schema=False))
    if frame.width == 1 and ";" in frame.columns[0]:
        refuse("path", f"{str(path)!r} is divided by semicolons", "Save it with commas between, and points in numbers")
    if all(map(_is_number, frame.columns)) and not all(name.strip().isdecimal() for name in frame.columns):
        refuse("path", f"the first line of {str(path)!r} has numbers ({shortened(frame.columns)}) where names of "
               "columns are expected", "Put a header above it")  # fmt: skip
    names = _chosen(path, frame, columns)
    text = pl.col(pl.String).str.strip_chars()
    words = frame.select(names).select(
        pl.when(text.str.to_lowercase().is_in(MISSING_WORDS)).then(None).otherwise(text).name.keep()
    )
    parsed = words.select(pl.all().cast(pl.Float64, strict=False))
    unread = words.select(pl.all().is_not_null()).to_numpy() & parsed.select(pl.all().is_null()).to_numpy()
    if unread.any():
        row, column = first_index(unread)
        _refuse_column(path, parsed, names[column], f"has {words[row, column]!r} in row {row}{_line(path, frame, row)}")
    return _complete(path, parsed, missing, frame)


def _is_number(name: str) -> bool:
    try:
        float(name.split("_duplicated_", maxsplit=1)[0])
    except ValueError:
        return False
    return True


def read_parquet(path: PathLike, columns: Sequence[str] | None, missing: Missing) -> Table:
    """Read the chosen columns; the file itself says which are numeric."""
    frame = _opened(path, pl.read_parquet)
    chosen = frame.select(_chosen(path, frame, columns))
    for name, dtype in chosen.schema.items():
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
            _refuse_column(path, chosen, name, f"holds {dtype}")
    return _complete(path, chosen.select(pl.all().cast(pl.Float64)), missing, None)


def _opened(path: PathLike, reader: Callable[[Path], pl.DataFrame]) -> pl.DataFrame:
    try:
        file = Path(path)
    except TypeError:
        refuse("path", f"must be the path of a file, but it is {path!r}", "Pass a string or a pathlib.Path")
    if not file.is_file():
        refuse("path", f"there is no file {str(file)!r}", "Check the name and the working directory")
    try:
        frame = reader(file)
    except pl.exceptions.NoDataError:
        refuse("path", f"{str(file)!r} is empty", "Pass a file with a header and at least one row")
    except (pl.exceptions.PolarsError, OSError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"path: {str(file)!r} cannot be read as a table ({reason}). Check that it has that format."
        ) from error
    if frame.height == 0 or frame.width == 0:
        refuse("path", f"{str(file)!r} has a header but no rows", "Pass a file with at least one row")
    return frame


def _chosen(path: PathLike, frame: pl.DataFrame, columns: Sequence[str] | None) -> tuple[str, ...]:
    """The columns asked for, all of them by default; an unknown name is answered with the nearest one."""
    if columns is None:
        return tuple(frame.columns)
    names = checked_columns(columns)
    for name in names:
        if name not in frame.columns:
            near = difflib.get_close_matches(name, frame.columns, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "Choose one that exists."
            raise InputError(
                f"columns: {os.fspath(path)!r} has no column {name!r}. {hint} It has: {shortened(frame.columns)}."
            )
    return names


def _complete(path: PathLike, frame: pl.DataFrame, missing: Missing, source: pl.DataFrame | None) -> Table:
    """Finite values without gaps: a gap is an error, or its row goes. `source` is the CSV text, for line numbers."""
    values = frame.select(pl.all().fill_null(float("nan"))).to_numpy()
    names = tuple(frame.columns)

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


def _refuse_column(path: PathLike, frame: pl.DataFrame, name: str, finding: str) -> NoReturn:
    others = [other for other in frame.columns if other != name and not frame[other].is_null().all()]
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
