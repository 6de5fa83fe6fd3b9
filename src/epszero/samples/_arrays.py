"""From whatever the user passes to read-only, finite float64 arrays; each refusal names the row and the column."""

import difflib
import os
import reprlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, cast

import jax
import numpy as np
from numpy.typing import NDArray

from epszero._checks import first_index, label, refuse
from epszero._types import FloatArray, PyTree

PathLike = str | os.PathLike[str]
Missing = Literal["error", "drop"]
Table = tuple[FloatArray, tuple[str, ...], int]
"""What is read from a file: values, column names, how many rows were dropped."""

NAMES_SHOWN = 8  # how many column names a message or a repr lists before it stops


def checked_matrix(array: FloatArray, columns: Sequence[str] | None) -> tuple[FloatArray, tuple[str, ...] | None]:
    """`array` as s × d with s, d ≥ 1 (one axis is read as s × 1), and the column names that go with it."""
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        refuse(
            "values",
            f"must have one row per sample and one column per entry, but the shape is {array.shape}",
            "Wrap a single sample as [[…]]; for data that is not a matrix use Samples.from_arrays",
        )
    if array.size == 0:
        refuse("values", f"must hold at least one sample and one column, but the shape is {array.shape}", "Pass data")
    names = None if columns is None else checked_columns(columns)
    if names is not None and len(names) != array.shape[1]:
        refuse("columns", f"has {len(names)} names for {array.shape[1]} columns", "Give one name per column")
    require_finite("values", array, names)
    return frozen(array), names


def checked_leaves(tree: PyTree) -> tuple[tuple[FloatArray, ...], Any]:
    """The leaves of `tree`, which must share their leading axis (the sample axis), and how to put them together."""
    named, structure = jax.tree_util.tree_flatten_with_path(tree)
    if not named:
        refuse("tree", "holds no arrays", "Pass an array, or arrays in a list, tuple or dictionary")
    leaves: list[FloatArray] = []
    for path, leaf in named:
        name = f"tree{jax.tree_util.keystr(path)}"
        array = numbers(name, leaf)
        if array.ndim == 0:
            refuse(
                name,
                "is a single number, but every leaf needs a leading axis with one entry per sample",
                "Pass a NumPy array, not nested lists of numbers",
            )
        if array.size == 0:
            refuse(name, f"must hold at least one sample, but its shape is {array.shape}", "Pass data")
        if leaves and len(array) != len(leaves[0]):
            refuse(
                name,
                f"has {len(array)} samples, but the leaf before it has {len(leaves[0])}",
                "Give every leaf the same length along its first axis",
            )
        require_finite(name, array, None)
        leaves.append(frozen(array))
    return tuple(leaves), structure


def checked_columns(columns: Any) -> tuple[str, ...]:
    """Distinct names, as a tuple."""
    is_list = isinstance(columns, Sequence) and not isinstance(columns, str | bytes)
    names = cast("tuple[Any, ...]", tuple(columns)) if is_list else ()
    if not names or not all(isinstance(name, str) for name in names):
        refuse("columns", f"must be a nonempty list of names, but it is {columns!r}", 'Write columns=["price"]')
    repeated = next((name for name, times in Counter(names).items() if times > 1), None)
    if repeated is not None:
        refuse("columns", f"names {repeated!r} more than once", "Name each column once")
    return names


def chosen_names(whose: str, known: Sequence[str], columns: Any) -> tuple[str, ...]:
    """The names that are asked for; an unknown one is answered with the nearest that there is."""
    names, there = checked_columns(columns), set(known)
    for name in names:
        if name not in there:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else "Choose one that exists."
            refuse("columns", f"{whose} has no column {name!r}", f"{hint} It has: {shortened(known)}")
    return names


def numbers(argument: str, value: Any) -> FloatArray:
    """`value` as float64, NaN where it is missing; text, dates, complex numbers and ragged lists are refused."""
    if isinstance(value, np.ma.MaskedArray):
        value = np.ma.filled(value.astype(np.float64), np.nan)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError) as error:
        _refuse_ragged(argument, value, error)
    if array.dtype.kind == "O":
        array = _from_objects(argument, array)
    if array.dtype.kind not in "biuf":
        kind = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "durations"}
        refuse(
            argument,
            f"must be real numbers, but it holds {kind.get(array.dtype.kind, str(array.dtype))}",
            "Pass real and imaginary parts as columns" if array.dtype.kind == "c" else "Convert it to numbers first",
        )
    return array.astype(np.float64)


def frozen(array: NDArray[Any]) -> FloatArray:
    """A read-only copy, laid out row after row."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.flags.writeable = False
    return copy


def require_finite(argument: str, array: FloatArray, names: tuple[str, ...] | None) -> None:
    """Refuse NaN and infinity, naming the first such cell."""
    bad = ~np.isfinite(array)
    if not bad.any():
        return
    where = first_index(bad)
    cell = f"row {where[0]}, column {cell_name(where[1], names)}" if argument == "values" else f"sample {where[0]}"
    what = "missing (NaN)" if np.isnan(array[where]) else "infinite"
    refuse(
        f"{argument}{label(where)}",
        f"must be finite, but {cell} is {what} ({int(bad.sum())} of {array.size} entries are not finite)",
        "Replace or drop those samples",
    )


def cell_name(column: int, names: tuple[str, ...] | None) -> str:
    """A column as a message calls it: by name where it has one, else by number."""
    return str(column) if names is None else repr(names[column])


def shortened(names: Sequence[str]) -> str:
    """The first few names."""
    shown = ", ".join(repr(name) for name in names[:NAMES_SHOWN])
    return shown if len(names) <= NAMES_SHOWN else f"{shown}, … ({len(names)} in all)"


def _from_objects(argument: str, array: NDArray[Any]) -> NDArray[Any]:
    """Python objects as float64: None is missing, text is not a number even when it reads like one."""
    flat = np.empty(array.size)
    for position, entry in enumerate(array.flat):
        try:
            if isinstance(entry, str | bytes):
                raise TypeError
            flat[position] = np.nan if entry is None else float(entry)
        except (TypeError, ValueError, OverflowError):
            where = [int(i) for i in np.unravel_index(position, array.shape)]
            refuse(
                f"{argument}{label(where)}",
                f"must be a real number, but it is {reprlib.repr(entry)}",
                "Pass numbers only",
            )
    return flat.reshape(array.shape)


def _refuse_ragged(argument: str, value: Any, error: Exception) -> NoReturn:
    """Say which row is to blame for an array that NumPy cannot build."""
    lengths = [len(row) if hasattr(row, "__len__") else 0 for row in value] if isinstance(value, list | tuple) else []
    odd = [row for row, length in enumerate(lengths) if length != lengths[0]]
    if odd:
        refuse(
            argument,
            f"must be rectangular, but row {odd[0]} has {lengths[odd[0]]} entries and row 0 has {lengths[0]}",
            "Give every row the same number of entries",
        )
    refuse(argument, f"must be an array of real numbers ({error})", "Pass something that NumPy reads as float64")
