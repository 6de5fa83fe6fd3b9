"""Which rows an index selects: an integer, or integers or booleans in one axis."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero._checks import InputError, refuse


class RowIndexError(InputError, IndexError):
    """A row that is not there."""


def checked_rows(index: Any, length: int) -> "NDArray[Any]":
    """An integer, or integers or booleans in one axis, all within range."""
    try:
        rows = np.asarray(index)
    except ValueError:
        rows = np.empty((0, 0))
    if rows.ndim == 1 and rows.dtype == bool and len(rows) != length:
        refuse("index", f"has {len(rows)} booleans for {length} samples", "Give one boolean per sample")
    if isinstance(index, tuple) or not (
        (rows.ndim == 1 and (rows.dtype.kind in "biu" or rows.size == 0))
        or (rows.ndim == 0 and rows.dtype.kind in "iu")
    ):
        refuse(
            "index",
            f"must be an integer, a slice, or a list of integers or booleans, but it is {index!r}",
            "Select rows here, and columns by .values[:, j] or when the data are read",
        )
    if rows.dtype == bool:
        return rows
    out = (rows < -length) | (rows >= length)
    if out.any():
        raise RowIndexError(
            f"index: there is no row {np.atleast_1d(rows)[np.atleast_1d(out)][0]} among {length} samples. "
            f"Rows count from 0 to {length - 1}."
        )
    return rows.astype(np.intp)
