"""The bytes of a file as rows of cells, all text: whatever separator, encoding or packing it has, or a spreadsheet.

Text may be UTF-8 or UTF-16, with or without a mark, or Windows-1252; plain, gzipped, or alone in a ZIP archive. Cells
are parted by commas, semicolons, tabs or bars, whichever the header has most of; `sep=;` above it, as Excel writes, is
obeyed.
Spreadsheets (xlsx, xlsm, xls, ods) are read by fastexcel, the extra `excel`: the first sheet that has cells.
"""

import csv
import gzip
import importlib
import io
import zipfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import polars as pl

from epszero._checks import InputError, refuse

SEPARATORS = ",;\t|"
ALONE = "\x1f"  # a separator that no text has: where there is one column
LOOKED = 50  # rows from which the place of the header is told
MOST = 1 << 30  # bytes that an archive may unpack to
TIME_OF_DAY = r"^(?:1899-12-3[01]|1904-01-01) "  # how spreadsheets store a time without a date


class Rows(NamedTuple):
    """A header and what is below it."""

    names: list[str]  # as in the file, without blanks around them; "" where a column has none
    cells: pl.DataFrame  # of text, columns 0, 1, …; null where nothing is
    places: pl.Series  # where each row is: its line in a text, its row in a sheet, counted from 1
    unit: str  # "line" or "row"
    separator: str | None  # None in a sheet
    notes: tuple[str, ...]


def rows_of(file: Path, argument: str) -> Rows:
    """Read a file, or refuse it as `argument`."""
    if file.is_dir():
        refuse(argument, f"{str(file)!r} is a folder", "Pass the path of a file")
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        refuse(argument, f"there is no file {str(file)!r}", "Check the name and the working directory")
    except OSError as error:
        refuse(argument, f"{str(file)!r} cannot be read ({error.strerror})", "Check the file and your rights to it")
    content = _unpacked(content, file, argument)
    if _is_sheet(content):
        return _sheet(content, file, argument)
    if content[:4] == b"PAR1":
        refuse(argument, f"{str(file)!r} is a Parquet file", "Save it as CSV")
    if content[:4] == b"%PDF":
        refuse(argument, f"{str(file)!r} is a PDF", "Pass a table, as CSV or as a spreadsheet")
    text, encoding = decoded(content, file, argument)
    return _text(text, encoding, file, argument)


def decoded(content: bytes, file: Path, argument: str) -> tuple[str, str]:
    """The text, and in which encoding it is."""
    text, encoding = "", "utf-8-sig"
    try:
        encoding = _encoding(content)
        text = content.decode(encoding)
    except UnicodeDecodeError:
        try:
            text, encoding = content.decode("cp1252"), "cp1252"
        except UnicodeDecodeError:
            _refuse_text(file, argument)
    if not text.strip():
        refuse(argument, f"{str(file)!r} is empty", "Pass a file with a header and at least one row")
    if any(letter < " " and letter not in "\t\r\n\f\x1a" for letter in text[:100_000]) or "\0" in text:
        _refuse_text(file, argument)
    return text.rstrip("\x1a"), encoding


def _encoding(content: bytes) -> str:
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    head = content[:4000]
    for name, nulls in (("utf-16-le", head[1::2]), ("utf-16-be", head[::2])):  # without a mark
        if len(head) >= 8 and nulls.count(0) > 0.7 * len(nulls):
            return name
    return "utf-8-sig"


def _refuse_text(file: Path, argument: str) -> NoReturn:
    refuse(
        argument,
        f"{str(file)!r} holds no text that can be read (UTF-8, UTF-16 or Windows-1252)",
        "Save it as CSV, in UTF-8",
    )


def _unpacked(content: bytes, file: Path, argument: str) -> bytes:
    """Without gzip or ZIP around it; a spreadsheet is a ZIP archive of its own kind."""
    try:
        if content[:2] == b"\x1f\x8b":
            return gzip.decompress(content)
        if content[:4] != b"PK\x03\x04" or _is_sheet(content):
            return content
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [
                one for one in archive.infolist() if not one.is_dir() and not one.filename.startswith("__MACOSX")
            ]
            if len(members) != 1:
                refuse(
                    argument, f"{str(file)!r} is an archive of {len(members)} files", "Unpack it, and pass one of them"
                )
            if members[0].file_size > MOST:
                refuse(argument, f"{str(file)!r} unpacks to more than a gigabyte", "Unpack it, and pass a part of it")
            return archive.read(members[0])
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        finding = f"{str(file)!r} is packed, and cannot be unpacked ({type(error).__name__})"
        raise InputError.about(argument, finding, "Unpack it, and pass what is inside") from error


def _is_sheet(content: bytes) -> bool:
    if content[:8] == b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1":  # xls
        return True
    if content[:4] != b"PK\x03\x04":
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = archive.namelist()
    except zipfile.BadZipFile:
        return False
    return "[Content_Types].xml" in names or ("mimetype" in names and "content.xml" in names)


def _sheet(content: bytes, file: Path, argument: str) -> Rows:
    try:
        fastexcel: Any = importlib.import_module("fastexcel")
    except ImportError as error:
        rule = f"{str(file)!r} is a spreadsheet, and the package that reads them, fastexcel, is not installed"
        remedy = "Save it as CSV, or run pip install 'epszero[excel]'"
        raise InputError.about(argument, rule, remedy) from error
    try:
        book: Any = fastexcel.read_excel(content)
        frames: dict[str, pl.DataFrame] = {}
        for name in book.sheet_names:
            frame = book.load_sheet(name, header_row=None, dtypes="string").to_polars()
            frame.columns = [str(place) for place in range(frame.width)]
            if frame.height and not frame.select(pl.all_horizontal(pl.all().is_null().all())).item():
                frames[name] = frame
    except (fastexcel.FastExcelError, pl.exceptions.PolarsError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError.about(
            argument, f"{str(file)!r} cannot be read as a spreadsheet ({reason})", "Save it again, or as CSV"
        ) from error
    if not frames:
        refuse(argument, f"{str(file)!r} is empty", "Pass a file with a header and at least one row")
    (name, frame), *others = frames.items()
    notes = [f"Of its sheets {name!r} was read, not {', '.join(map(repr, dict(others)))}."] if others else []
    text = frame.select(pl.all().str.strip_chars().str.replace(TIME_OF_DAY, ""))
    head = [[cell or "" for cell in row] for row in text.head(LOOKED).rows()]
    above = _header_at(head, strict=False)
    if above:
        notes.append(f"What stands above the header, in row {above + 1}, was left out.")
    body = _with_times(text.slice(above + 1), book, name, above + 1)
    places = pl.Series(range(above + 2, above + 2 + body.height), dtype=pl.Int64)
    return Rows(head[above], body, places, "row", None, tuple(notes))


def _with_times(cells: pl.DataFrame, book: Any, sheet: str, begin: int) -> pl.DataFrame:
    """With times of the day of OpenDocument, which are durations and have no text of their own."""
    for place, column in enumerate(cells.get_columns()):
        if column.null_count():
            lengths = book.load_sheet(
                sheet, header_row=None, skip_rows=begin, use_columns=[place], dtypes={place: "duration"}
            ).to_polars()
            if lengths.width == 1 and lengths.height == cells.height and lengths.dtypes[0] == pl.Duration:
                seconds = lengths.to_series().dt.total_seconds()
                clock = [
                    None if one is None else f"{one // 3600:02d}:{one // 60 % 60:02d}:{one % 60:02d}" for one in seconds
                ]
                cells = cells.with_columns(column.fill_null(pl.Series(clock, dtype=pl.String)).alias(str(place)))
    return cells


def _text(text: str, encoding: str, file: Path, argument: str) -> Rows:
    notes = ["Its letters were read as Windows-1252."] if encoding == "cp1252" else []
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = next(place for place, line in enumerate(lines) if line.strip())
    told = lines[first].strip().strip('"').lower()
    given = told[4:] if told.startswith("sep=") and len(told) == 5 else "\t" if told == "sep=" else None
    first += given is not None
    body = "\n".join(lines[first:])
    if not body.strip():
        refuse(argument, f"{str(file)!r} is empty", "Pass a file with a header and at least one row")
    separator = given or _separator(lines[first : first + LOOKED])
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=separator)
    head: list[list[str]] = []
    ends: list[int] = []
    try:
        for row in reader:
            head.append([cell.strip() for cell in row])
            ends.append(reader.line_num)
            if len(head) == LOOKED:
                break
    except csv.Error as error:
        refuse(argument, f"{str(file)!r} cannot be read as a table ({error})", "Check that it is a CSV file")
    above = _header_at(head, strict=True)
    if any(any(row) for row in head[:above]):
        notes.append(f"What stands above the header, in line {first + ends[above]}, was left out.")
    begin = first + ends[above]
    cells = _cells("\n".join(lines[begin:]), head[above], separator, (begin, file, argument))
    names = head[above] + [""] * (cells.width - len(head[above]))
    places = _lines("\n".join(lines[begin:]), separator, cells.height, begin)
    return Rows(names, cells, places, "line", separator, tuple(notes))


def _separator(lines: list[str]) -> str:
    """Whichever the first line has most of, of which the others have as many; none where there is one column."""
    scores: dict[str, tuple[int, int]] = {}
    for separator in SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(lines, delimiter=separator) if any(cell.strip() for cell in row)]
        except csv.Error:
            continue
        common = Counter(widths).most_common(1)[0][0] if widths else 1
        first = widths[0] if widths else 1
        if max(first, common) > 1 and (first > 1 or widths.count(common) > 1):
            scores[separator] = (first - 1, widths.count(first))
    best = max(scores, key=lambda one: scores[one], default=ALONE)
    return best if best == ALONE or scores[best][0] > 0 or (len(scores) == 1 and _titled(lines, best)) else ALONE


def _titled(lines: list[str], separator: str) -> bool:
    """Whether what is below the first line is a table of two columns or more, with names above it."""
    rows = [row for row in csv.reader(lines[1:], delimiter=separator) if any(cell.strip() for cell in row)]
    return len(rows) > 1 and len(rows[0]) > 1 and not any(_numeric(cell) for cell in rows[0])


def _numeric(cell: str) -> bool:
    try:
        float(cell.strip().replace(",", "."))
    except ValueError:
        return False
    return True


def _header_at(rows: list[list[str]], *, strict: bool) -> int:
    """Which row is the header: the first that is not a title, that is one cell above a table of several columns."""
    filled = [sum(bool(cell) for cell in row) for row in rows]
    width = Counter(many for many in filled if many).most_common(1)[0][0] if any(filled) else 0
    least = min(width, 2) if strict else max(min(width, 2), width - 1)
    place = next((at for at, many in enumerate(filled) if many >= max(least, 1)), 0)
    first = next((at for at, many in enumerate(filled) if many), 0)
    return place if place < len(rows) - 1 or width < 2 else first


def _cells(body: str, header: list[str], separator: str, where: tuple[int, Path, str]) -> pl.DataFrame:
    """By Polars; where rows are longer than the header, once more and one by one: they may only be empty there."""
    begin, file, argument = where
    names = [str(place) for place in range(len(header))]
    if not body.strip():
        return pl.DataFrame({name: pl.Series([], dtype=pl.String) for name in names})
    try:
        table = io.BytesIO((separator.join(names) + "\n" + body).encode())
        return pl.read_csv(table, infer_schema=False, separator=separator)
    except pl.exceptions.PolarsError:
        found: list[list[str | None]] = []
        reader = csv.reader(io.StringIO(body, newline=""), delimiter=separator)
        for row in reader:
            if any(cell.strip() for cell in row[len(names) :]):
                refuse(
                    argument,
                    f"{str(file)!r} has in line {begin + reader.line_num} {len(row)} cells, but {len(names)} names of "
                    "columns above them",
                    "Check the separators there, and put quotes around cells that have them inside",
                )
            found.append([*row[: len(names)], *[None] * (len(names) - len(row))])
        return pl.DataFrame(found, schema=dict.fromkeys(names, pl.String), orient="row")


def _lines(body: str, separator: str, height: int, begin: int) -> pl.Series:
    """The line on which each row ends; one each unless cells have line breaks inside."""
    if '"' not in body:
        return pl.Series(range(begin + 1, begin + 1 + height), dtype=pl.Int64)
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=separator)
    ends = [begin + reader.line_num for _ in reader]
    return pl.Series((ends + [begin + reader.line_num] * height)[:height], dtype=pl.Int64)
