"""Numbers as people write them: 1234.5, 1,234.5, 1.234,5, 1 234,5, 1'234.5, −3.

Which of comma and point stands before the decimals is told from all cells together: a mark that is followed by other
than three digits, or that is the last of two kinds, stands before decimals. Where nothing tells, a point does; a comma
does where columns are not parted by commas. Where cells contradict one another, or a cell may be read both ways and
nothing tells, there is no number, and the caller is told why.
"""

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

GROUPED = r"^[+-]?\d{1,3}(?:[ \u{a0}\u{202f}'’]\d{3})+(?:[.,]\d+)?$"  # blanks and apostrophes between thousands
PLAIN = r"^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$"
EITHER = r"^[+-]?[1-9]\d{0,2}[.,]\d{3}$"  # 1.234 and 1,234: a thousand and more, or one and a bit
SHOWN = (  # that `M` stands before decimals, and `G` between thousands
    r"\d*M(?:\d|\d\d|\d{4,})|0\d*M\d+|\d{4,}M\d+|M\d+|\d{1,3}(?:G\d{3})+M\d+|\d{1,3}(?:G\d{3}){2,}"
)
DECIMAL = {  # mark: cells that show that it stands before decimals
    ".": r"^[+-]?(?:" + SHOWN.replace("M", r"\.").replace("G", ",") + ")$",
    ",": r"^[+-]?(?:" + SHOWN.replace("M", ",").replace("G", r"\.") + ")$",
}
NUMBER = {
    ".": r"^[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)?(?:\.\d*)?(?:[eE][+-]?\d+)?$",
    ",": r"^[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)?(?:,\d*)?(?:[eE][+-]?\d+)?$",
}


class Numbers(NamedTuple):
    """What was read."""

    values: list[pl.Series]  # Float64, null where there was no text, or none that is a number
    unread: list[pl.Series]  # Boolean: text that is no number
    mark: str  # before decimals
    doubt: str  # why a cell that looks like a number may not be one; ""


def numbers(columns: Sequence[pl.Series], *, commas_part: bool) -> Numbers:
    """The numbers of columns of text, nulls where there is none. `commas_part`: commas stand between cells."""
    tidy = [_tidy(column) for column in columns]
    seen = {mark: _first(tidy, shape) for mark, shape in DECIMAL.items()}
    doubt = ""
    if seen["."] is not None and seen[","] is not None:
        doubt = f"{seen[',']!r} has a comma before its decimals and {seen['.']!r} a point"
        mark = "."
        tidy = [one.set(one.str.contains(DECIMAL[","]).fill_null(value=False), "?") for one in tidy]
    elif seen[","] is not None:
        mark = ","
    elif seen["."] is not None:
        mark = "."
    else:
        mark = "." if commas_part or _first(tidy, EITHER.replace("[.,]", ",")) is None else ","
        if commas_part and (either := _first(tidy, EITHER.replace("[.,]", ","))):
            doubt = f"{either!r} may be a thousand and more, or one and a bit"
            tidy = [one.set(one.str.contains(EITHER.replace("[.,]", ",")).fill_null(value=False), "?") for one in tidy]
    values = [_read(one, mark) for one in tidy]
    unread = [one.is_not_null() & value.is_null() for one, value in zip(tidy, values, strict=True)]
    return Numbers(values, unread, mark, doubt)


def _tidy(column: pl.Series) -> pl.Series:
    """Without blanks around, with a plain minus, and without blanks or apostrophes between thousands."""
    text = column.str.strip_chars().str.replace(r"^[−–]", "-").str.replace(r"^([+-])\s+", "$1")
    text = text.set(text == "", None)
    grouped = text.str.contains(GROUPED).fill_null(value=False)
    return text.zip_with(~grouped, text.str.replace_all(r"[ \u{a0}\u{202f}'’]", "")) if grouped.any() else text


def _first(columns: Sequence[pl.Series], shape: str) -> str | None:
    for column in columns:
        found = column.filter(column.str.contains(shape).fill_null(value=False))
        if len(found):
            return str(found[0])
    return None


def _read(text: pl.Series, mark: str) -> pl.Series:
    fits = text.str.contains(NUMBER[mark]).fill_null(value=False)
    whole = text.str.replace_all("," if mark == "." else ".", "", literal=True)
    points = whole if mark == "." else whole.str.replace(",", ".", literal=True)
    return points.cast(pl.Float64, strict=False).set(~fits, None)
