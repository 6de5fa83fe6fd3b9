"""Tables that users have: DataFrames and Series of pandas or Polars, what xarray holds; with the names of columns.

Nothing is imported: a table is recognised by what it can do. A column that is not numbers, a missing value and a name
that is there twice are refused, with the name.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from epszero._checks import refuse
from epszero._types import FloatArray
from epszero.samples._arrays import checked_columns, chosen_names, numbers, shortened

KINDS = {
    "b": "",
    "i": "",
    "u": "",
    "f": "",
    "c": "complex numbers",
    "U": "text",
    "S": "text",
    "T": "text",
    "M": "dates",
    "m": "durations",
}
REMEDY = "Leave it out, columns=[…] chooses some, or convert it to numbers first"


class Frame(NamedTuple):
    """A table as it came: names, and how to get a column by its place."""

    names: tuple[str, ...] | None  # None where columns are merely counted
    column: Callable[[int], Any]
    width: int


def frame_of(values: Any) -> Frame | None:
    """The table; None for anything that is not one."""
    if hasattr(values, "data_vars") and hasattr(values, "dims"):
        return _dataset(values)
    if hasattr(values, "coords") and hasattr(values, "dims") and hasattr(values, "name"):
        return _labelled(values)
    if hasattr(values, "collect_schema") and not hasattr(values, "height"):
        refuse("values", "is a lazy frame, of which nothing is read yet", "Pass values.collect()")
    if hasattr(values, "columns") and hasattr(values, "dtypes"):
        return _table(values)
    if hasattr(values, "name") and hasattr(values, "to_numpy") and hasattr(values, "dtype"):  # a Series
        names = None if values.name is None or values.name == "" else (_text(values.name),)
        return Frame(names, lambda _: values, 1)
    return None


def read_frame(frame: Frame, columns: Sequence[str] | None) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Its numbers, NaN where they are missing, and the names: of all columns, or of those that are chosen."""
    names, places = frame.names, range(frame.width)
    if names is not None:
        _refuse_doubles(names)
    if names is None and columns is not None:
        names = checked_columns(columns)
        if len(names) != frame.width:
            refuse("columns", f"has {len(names)} names for {frame.width} columns", "Give one name per column")
    elif names is not None and columns is not None:
        chosen = chosen_names("values", names, columns)
        places = [names.index(name) for name in chosen]
        names = chosen
    read = [_numbers(frame.column(place), str(place) if names is None else repr(names[at])) for at, place in
            enumerate(places)]  # fmt: skip
    if not read:
        refuse("values", "has no columns", "Pass data")
    return np.stack(read, axis=1), names


def _table(values: Any) -> Frame:
    """A DataFrame: columns by their place, since names may be there twice."""
    listed = list(values.columns)
    plain = listed == list(range(len(listed))) and all(isinstance(name, int | np.integer) for name in listed)
    names = None if plain and listed else tuple(_text(name) for name in listed)
    pick: Callable[[int], Any] = (lambda at: values.iloc[:, at]) if hasattr(values, "iloc") else values.to_series
    return Frame(names or None, pick, len(listed))


def _labelled(values: Any) -> Frame:
    """A DataArray: rows are its first dimension; the names are the labels of the second."""
    if len(values.dims) > 2:
        refuse(
            "values",
            f"has the dimensions {', '.join(map(str, values.dims))}: more than samples and entries",
            "Stack all but the first, or use Samples.from_arrays",
        )
    if len(values.dims) == 0:
        refuse("values", "is a single number", "Pass data with a dimension of samples")
    array = np.asarray(values.values)
    if len(values.dims) == 1:
        return Frame(None if values.name is None else (_text(values.name),), lambda _: array, 1)
    labels = values.coords[values.dims[1]].values if values.dims[1] in values.coords else None
    names = None if labels is None else tuple(_text(label) for label in labels)
    return Frame(names, lambda at: array[:, at], array.shape[1])


def _dataset(values: Any) -> Frame:
    """A Dataset: a column for each variable, all of them along one dimension."""
    names = list(values.data_vars)
    parts = [values[name] for name in names]
    first = tuple(parts[0].dims) if parts else ()
    for name, part in zip(names, parts, strict=True):
        if len(part.dims) != 1 or tuple(part.dims) != first:
            along = ", ".join(map(str, part.dims)) or "none"
            refuse(
                "values",
                f"variable {_text(name)!r} has the dimensions ({along}), but every column must have ({first[0]},)"
                if len(first) == 1
                else f"variable {_text(name)!r} has the dimensions ({along}), but a column has one",
                "Pass one variable, such as values['price'], or choose those that are alike",
            )
    return Frame(tuple(_text(name) for name in names) or None, lambda at: parts[at].values, len(parts))


def _text(name: Any) -> str:
    """A name as text; that of several levels with points between."""
    return ".".join(str(part) for part in name) if isinstance(name, tuple) else str(name)


def _numbers(column: Any, called: str) -> FloatArray:
    """One column as float64."""
    dtype = getattr(column, "dtype", None)
    kind = getattr(dtype, "kind", None)
    if kind is None and callable(getattr(dtype, "is_numeric", None)):  # Polars says it by methods
        return _polars(column, dtype, called)
    if hasattr(column, "isna"):  # pandas, whose missing values have many forms
        if kind in ("b", "i", "u", "f"):
            return np.asarray(column.to_numpy(dtype="float64", na_value=np.nan))
        missing = np.asarray(column.isna())
        if kind != "O" or str(dtype) not in ("object",):
            _refuse_kind(called, KINDS.get(str(kind), ""), dtype)
        column = np.where(missing, None, column.to_numpy(dtype=object))
    return _array(np.asarray(column), called)


def _polars(column: Any, dtype: Any, called: str) -> FloatArray:
    if not (dtype.is_numeric() or str(dtype) in ("Boolean", "Null")):
        temporal = "dates" if dtype.is_temporal() else "text" if str(dtype) in ("String", "Categorical") else ""
        _refuse_kind(called, temporal, dtype)
    found = [np.nan if one is None else float(one) for one in column] if dtype.is_decimal() else None
    if found is not None:
        return np.array(found)
    import polars as pl  # noqa: PLC0415  (the user has it at hand: the column is Polars' own)

    return column.cast(pl.Float64).to_numpy()


def _array(column: NDArray[Any], called: str) -> FloatArray:
    if column.ndim != 1:
        refuse("values", f"column {called} has {column.ndim} axes", "Give one number per sample")
    if column.dtype.kind == "O":
        return numbers(f"values[{called}]", column)
    if KINDS.get(column.dtype.kind, str(column.dtype)):
        _refuse_kind(called, KINDS.get(column.dtype.kind, ""), column.dtype)
    return column.astype(np.float64)


def _refuse_kind(called: str, what: str, dtype: Any) -> NoReturn:
    refuse("values", f"column {called} holds {what or dtype}{f' ({dtype})' if what else ''}, not numbers", REMEDY)


def _refuse_doubles(names: tuple[str, ...]) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        remedy = f"Give each column its own name: there are {shortened(names)}"
        refuse("values", f"has more than one column {twice!r}", remedy)
