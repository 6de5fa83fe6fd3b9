"""A column of times and one of prices: told by their names, or named by the user.

Times may say themselves how far they are from UTC (an offset, Z, seconds since 1970), or their heading names a clock:
(UTC), (CET). Else they follow the user's, and the report says so. Days and hours may stand in two columns; hours that
go from 1 to 24 are named by their end. A series that begins an hour after midnight and ends at one looks as if times
were ends: it is refused until the user says what they are.
"""

import datetime
import difflib
import re

import polars as pl

from epszero.datasets._formats import CLOCKS, EXPECTED, one_of, refuse_untimed, universal
from epszero.datasets._inputs import PER_MWH, Asked, refuse
from epszero.datasets._mend import Quotes, local
from epszero.datasets._table import days, moments, prices
from epszero.datasets._units import agreed, unit_of
from epszero.datasets._wide import ASK
from epszero.samples import TextTable

WHEN = re.compile(
    r"(?:utc|unix ?seconds|time ?stamp|date ?time|time|start|from|begin|period|hour|mtu|zeit|datum|date|day|delivery)",
    re.IGNORECASE,
)
DATED = r"^\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|^\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|^\d{9,13}$|^[A-Z][a-z]{2} \d{1,2}, \d{4}"
TIMED = r"\d{1,2}:\d\d|^\d{9,13}$"
PRICED = re.compile(r"price|preis|eur|€|spot|day.?ahead|ct.?k?wh", re.IGNORECASE)
PLACE = re.compile(r"(?:price|bidding)?[ _]?(?:area|zone)|country|region|bzn", re.IGNORECASE)
HOUR = re.compile(r"(?:hour|stunde|he|hb|h)(?:[ _](?:of day|ending|beginning))?", re.IGNORECASE)
ENDS = re.compile(r"\bend|\bhe\b|\bto\b|\bbis\b", re.IGNORECASE)


def plain(
    table: TextTable,
    columns: tuple[str | None, str | None],
    zone: str | None,
    ways: tuple[str | None, str | None],
    asked: Asked,
) -> tuple[Quotes, str, bool]:
    """Quotes, their unit, and whether anyone named it. `columns`: of times and prices; `ways`: unit and labels."""
    given, labels = ways
    when = _column(table, columns[0], "time_column") or _when(table)
    price = _column(table, columns[1], "price_column") or _price(table, when)
    said = unit_of(table, price)
    if said is None and (column := _named(table, re.compile("unit|einheit", re.IGNORECASE))):
        said = unit_of(table, str(table.cells[column][0] or ""))
    unit = agreed(table, price, said, given)
    place = _named(table, PLACE)
    if place is None and zone is not None:
        refuse("zone", f"{table.name} does not name zones, so {zone!r} cannot be found", "Leave it out")
    table, where = one_of(table, [] if place is None else [place], zone, "zone")
    series, note = _series(table, when, price, labels, asked)
    series = series.with_columns(pl.col("price") * PER_MWH[unit])
    source = f"{table.name}, columns {when!r} and {price!r}, in {unit}{f', {where}' if where else ''}"
    return Quotes(local(series, asked.time_zone), source, note), unit, said is not None or given is not None


def _series(
    table: TextTable, when: str, price: str, labels: str | None, asked: Asked
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """utc and price."""
    hour = next((name for name in table.cells.columns if HOUR.fullmatch(name.strip()) and name != when), None)
    timed = table.cells[when].str.contains(TIMED).fill_null(value=False).any()
    notes: list[str] = []
    if not timed:
        if hour is None:
            days(table, when)  # which refuses what is no date either
            table.refuse(f"has days in column {when!r}, but no time of the day", "Add a column 'hour', 0 to 23")
        table, told = _joined(table, when, hour, labels)
        notes += told
    utc = moments(table, when)
    if utc is not None:
        rows = pl.DataFrame({"time": utc, "price": prices(table, price)[0]}).with_row_index("row")
        refuse_untimed(table, rows)
        series = rows.drop_nulls().select(utc="time", price="price")
        if series.height == 0:
            table.refuse("holds no price", "Pass a file with prices")
    else:
        clock, said = _clock(table, when, asked)
        notes += said
        series = universal(table, when, price, clock, None)
    if timed:
        series, told = _begun(table, when, series, labels, asked)
        notes += told
    return series, tuple(notes)


def _begun(
    table: TextTable, when: str, series: pl.DataFrame, labels: str | None, asked: Asked
) -> tuple[pl.DataFrame, list[str]]:
    """By the beginning of the intervals, whatever `when` says."""
    moments_ = series["utc"].unique().sort()
    step = moments_.diff().drop_nulls().min() if len(moments_) > 1 else datetime.timedelta(hours=1)
    assert isinstance(step, datetime.timedelta)
    step = min(step, datetime.timedelta(hours=1))
    midnight = datetime.time()
    here = moments_.dt.convert_time_zone(asked.time_zone)
    first, last = here[0], here[-1]
    looks = (first - step).time() == midnight and last.time() == midnight and len(moments_) > 1
    if labels is None and ENDS.search(when):
        labels = "ending"
    if labels is None and looks:
        table.refuse(
            f"goes from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M}, as if its times were ends of intervals",
            ASK.replace("if 7 is the hour from 7:00 on", "if they are beginnings").replace(
                "if it is the one until 7:00", "if ends"
            ),
        )
    if labels == "ending":
        minutes = step.total_seconds() / 60
        return series.with_columns(pl.col("utc") - step), [
            f"Times were read as ends: each price is of the {minutes:g} minutes before."
        ]
    return series, []


def _joined(table: TextTable, when: str, hour: str, labels: str | None) -> tuple[TextTable, list[str]]:
    """Days and hours as times, the hours by their beginning."""
    text = table.cells[hour].str.strip_chars().str.replace(r"(?i)^h(?:our)?\s*", "").str.replace(r":00(?::00)?$", "")
    number = text.str.replace(r"\.0$", "").cast(pl.Int64, strict=False)
    wrong = ((number.is_null() | (number < 0) | (number > 24)) & text.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        table.refuse_row(row, f"{text[row]!r} in column {hour!r}, which is not an hour from 0 to 24", "Mend it")
    zero, end = bool((number == 0).any()), bool((number == 24).any())
    if zero and end:
        table.refuse(f"has both hour 0 and hour 24 in column {hour!r}", "Name all hours by their beginning")
    named = "ending" if end or re.search("end|^he$", hour, re.IGNORECASE) else "beginning" if zero else None
    if named is not None and labels is not None and named != labels:
        table.refuse(
            f"names hours by their {'end' if end else 'beginning'}, but hour_labels is {labels!r}", "Leave it out"
        )
    way = named or labels
    if way is None:
        table.refuse(f"has neither hour 0 nor hour 24 in column {hour!r}, so nothing tells where an hour begins", ASK)
    begins = number - 1 if way == "ending" else number
    dates = days(table, when)
    joined = dates.dt.strftime("%Y-%m-%d") + begins.cast(pl.String).str.zfill(2).map_elements(
        lambda one: f" {one}:00", return_dtype=pl.String
    )
    told = (
        f"Hours in column {hour!r} were read by their {'end: 1 is 00:00 to 01:00' if way == 'ending' else 'beginning'}."
    )
    return table.rewritten(joined.alias(when)), [told]


def _clock(table: TextTable, when: str, asked: Asked) -> tuple[str, list[str]]:
    """Whose clock times without an offset follow."""
    for name, zone in CLOCKS.items():
        if re.search(rf"(?:^|[^a-z]){name}(?:[^a-z]|$)", when, re.IGNORECASE) or when.lower().endswith(name.lower()):
            return zone, []
    return asked.time_zone, [f"Times name no clock: that of {asked.time_zone} was taken."]


def _column(table: TextTable, wanted: str | None, argument: str) -> str | None:
    if wanted is None:
        return None
    for name in table.cells.columns:
        if name.lower() == wanted.strip().lower():
            return name
    near = difflib.get_close_matches(wanted, table.cells.columns, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"It has {table.columns_shown()}"
    refuse(argument, f"{table.name} has no column {wanted!r}", hint)


def _named(table: TextTable, shape: re.Pattern[str]) -> str | None:
    return next((name for name in table.cells.columns if shape.fullmatch(name.strip())), None)


def _when(table: TextTable) -> str:
    """The column of times: one that is called so and has dates, those by UTC first."""
    dated = [name for name in table.cells.columns if table.cells[name].str.contains(DATED).fill_null(value=False).any()]
    timed = [name for name in dated if table.cells[name].str.contains(TIMED).fill_null(value=False).any()]
    for names in (timed, dated):
        called = [name for name in names if WHEN.search(name)]
        begun = [name for name in called if not ENDS.search(name)] or called
        universal_ = [name for name in begun if "utc" in name.lower()]
        for some in (universal_, begun, names):
            if some and (len(some) == 1 or some is not names):
                return some[0]
    table.refuse(f"has the columns {table.columns_shown()}, which none of the known forms has", EXPECTED)


def _price(table: TextTable, when: str) -> str:
    """The column of prices: the only one besides the times, or the only one that is called so."""
    others = [
        name
        for name in table.cells.columns
        if name != when and not HOUR.fullmatch(name.strip()) and not PLACE.fullmatch(name.strip())
    ]
    others = [name for name in others if not table.cells[name].str.contains(DATED).fill_null(value=False).any()]
    called = [name for name in others if PRICED.search(name)]
    with_unit = [name for name in called if re.search(r"eur|€|ct", name, re.IGNORECASE)]
    for some in (with_unit, called, others):
        if len(some) == 1:
            return some[0]
    if not called:
        table.refuse(f"has the columns {table.columns_shown()}, which none of the known forms has", EXPECTED)
    shown = ", ".join(map(repr, called))
    table.refuse(
        f"has several columns that may be prices: {shown}", f"Say which, for instance price_column={called[0]!r}"
    )
