"""The forms in which day-ahead prices come, each told by its columns and turned into quotes.

ENTSO-E, older   MTU (CET/CEST) [01.01.2024 00:00 - 01.01.2024 01:00], Day-ahead Price [EUR/MWh], Currency, BZN|NL
ENTSO-E, newer   MTU (CET/CEST) or MTU (UTC) [01/01/2024 00:00:00 - …], Area, Sequence, Day-ahead Price (EUR/MWh), …
ENTSO-E, bulk    DateTime(UTC), ResolutionCode, AreaCode, …, ContractType, Sequence, Price[Currency/MWh], Currency, …
Ember            Country, ISO3 Code, Datetime (UTC), Datetime (Local), Price (EUR/MWhe)
SMARD            Datum von or Start date, …, a column per area: Deutschland/Luxemburg [€/MWh] Originalauflösungen, …
energy-charts    Date (GMT+1), Day Ahead Auction (DE-LU), …; or JSON with unix_seconds and price
series           utc, eur_per_mwh
wide             a row per day: h00 … h23, 0 … 23, 00:00 … 23:00, Hour 1 … Hour 24 (see _wide.py)
plain            a column of times and one of prices, or days, hours and prices (see _plain.py)

Only the start of an interval counts; its length follows from the others of that day. A local time that occurs twice is
the earlier one where it comes first in the file. Of several auctions (sequences) the first counts.
"""

import difflib
import re

import polars as pl

from epszero.datasets._inputs import Asked
from epszero.datasets._mend import Quotes, local
from epszero.datasets._table import prices, times
from epszero.datasets._wide import hour_columns
from epszero.samples import TextTable

EXPECTED = (
    "Expected is one of these: ENTSO-E's export (columns 'MTU (CET/CEST)' and 'Day-ahead Price (EUR/MWh)') or bulk "
    "file, Ember's ('Datetime (UTC)' and 'Price (EUR/MWhe)'), SMARD's, energy-charts', a series ('utc' and "
    "'eur_per_mwh', or 'timestamp' and 'price'), or a row per day ('h00' to 'h23' or '0' to '23', and 'day' if you "
    "like); else say time_column=… and price_column=…"
)
CLOCKS = {"UTC": "UTC", "GMT": "UTC", "CET": "Europe/Brussels", "EET": "Europe/Helsinki", "WET": "Europe/Lisbon"}
QUOTED = re.compile(r"day.?ahead price\s*[(\[]\s*(\w+)\s*/\s*mwh\s*[)\]]", re.IGNORECASE)
EMBER_PRICE = re.compile(r"price\s*\(eur/mwhe?\)", re.IGNORECASE)
ENERGY_CHARTS = re.compile(r"(?:date|datum)\s*\((?:gmt|utc|mez|cet)", re.IGNORECASE)


def kind_of(table: TextTable) -> str:
    """Which of the forms a file has."""
    titles = table.cells.columns
    names = {name.lower() for name in titles}
    squeezed = {name.replace(" ", "") for name in names}
    found = "plain"
    if any(name.startswith("mtu") for name in names):
        found = "entsoe"
    elif "datetime (utc)" in names and not names & {"mapcode", "areacode"}:
        found = "ember"
    elif squeezed & {"datetime(utc)", "datetime"} and names & {"mapcode", "areacode", "resolutioncode"}:
        found = "bulk"
    elif any("[€/mwh]" in name or "[eur/mwh]" in name for name in names) and names & {
        *("datum von", "start date", "anfang", "start", "uhrzeit"),
    }:
        found = "smard"
    elif any(ENERGY_CHARTS.match(name) for name in titles):
        found = "energy-charts"
    elif {"utc", "eur_per_mwh"} <= names:
        found = "series"
    elif any(re.match(r"\d{4}-\d\d-\d\d|\d\d?[./]\d\d?[./]\d{4}", name) for name in titles):
        table.refuse(
            f"has times where names of columns are expected, {table.columns_shown()}", "Put a header above them"
        )
    elif len(hour_columns(table)) > 1 or (hour_columns(table) and len(titles) <= 2):
        found = "wide"
    return found


def entsoe(table: TextTable, area: str | None, asked: Asked) -> Quotes:
    """ENTSO-E's export of day-ahead prices."""
    names = table.cells.columns
    when = next((name for name in names if name.lower().startswith("mtu")), None)
    if when is None:
        table.refuse(f"has no column 'MTU (…)' but {table.columns_shown()}", "Pass ENTSO-E's export")
    clock = clock_of(table, when, asked)
    price = _entsoe_price(table)
    zones = [name for name in names if "|" in name and not QUOTED.search(name)]
    if "Area" in names:
        table, zone = one_of(table, ["Area"], area, "area")
    else:
        zone = zones[0] if zones else None
        if area is not None and (zone is None or not _same(zone, area)):
            table.refuse(f"is of {zone or 'an area that it does not name'}, not of {area!r}", "Leave it out")
    table, notes = first_auction(table)
    start = table.cells[when].str.split(" - ").list.first()
    mark = start.str.extract(r"\((\w+)\)", 1)
    bare = start.str.replace(r"\s*\(\w+\)", "")
    series = universal(table.rewritten(bare.alias(when)), when, price, clock, mark)
    source = f"{table.name}, ENTSO-E's export of day-ahead prices{f', {zone}' if zone else ''}"
    return Quotes(local(series, asked.time_zone), source, notes)


def ember(table: TextTable, country: str | None, asked: Asked) -> Quotes:
    """Ember's hourly table."""
    names = {name.lower(): name for name in table.cells.columns}
    when = names.get("datetime (utc)")
    price = next((name for name in table.cells.columns if EMBER_PRICE.fullmatch(name)), None)
    if when is None or price is None:
        table.refuse(
            f"lacks a column 'Datetime (UTC)' or 'Price (EUR/MWhe)'; it has {table.columns_shown()}",
            "Pass Ember's hourly prices, or use read_prices",
        )
    places = [names[name] for name in ("country", "iso3 code") if name in names]
    table, place = one_of(table, places, country, "country")
    series = universal(table, when, price, "UTC", None)
    source = f"{table.name}, Ember's European wholesale electricity prices{f', {place}' if place else ''}"
    return Quotes(local(series, asked.time_zone), source)


def series(table: TextTable, asked: Asked) -> Quotes:
    """Two columns, utc and eur_per_mwh."""
    names = {name.lower(): name for name in table.cells.columns}
    quoted = universal(table, names["utc"], names["eur_per_mwh"], "UTC", None)
    return Quotes(local(quoted, asked.time_zone), f"{table.name}, a series by UTC")


def clock_of(table: TextTable, when: str, asked: Asked) -> str:
    """The time zone that the heading of the times names; the user's where it names none."""
    named = re.search(r"\((\w+)", when)
    if named is None:
        return asked.time_zone
    if named[1].upper() not in CLOCKS:
        table.refuse(f"gives times by the clock {named[1]!r}", "Export it with times in UTC or CET/CEST")
    return CLOCKS[named[1].upper()]


def _entsoe_price(table: TextTable) -> str:
    """The column of prices in EUR."""
    quoted = {name: match[1].upper() for name in table.cells.columns if (match := QUOTED.search(name))}
    if not quoted:
        near = difflib.get_close_matches("Day-ahead Price (EUR/MWh)", table.cells.columns, n=1)
        hint = f"Is {near[0]!r} meant? Rename it" if near else "Export it again from the Transparency Platform"
        table.refuse(f"has no column 'Day-ahead Price (EUR/MWh)' but {table.columns_shown()}", hint)
    price = next((name for name, money in quoted.items() if money in ("EUR", "CURRENCY")), None)
    other = next(iter(quoted.values()))
    if price is not None and "Currency" in table.cells.columns:
        refuse_foreign(table, price)
    elif price is not None and quoted[price] != "EUR":
        price, other = None, "a currency that it does not name"
    if price is None:
        table.refuse(f"has prices in {other}, not in EUR", "Export them in EUR, or convert them")
    return price


def refuse_foreign(table: TextTable, price: str) -> None:
    """Refuse prices whose column `Currency` names another one than EUR."""
    filled = table.cells.filter(prices(table, price)[0].is_not_null())["Currency"].str.strip_chars()
    foreign = filled.filter(~filled.is_in(["", "EUR"])).drop_nulls()
    if len(foreign):
        table.refuse(f"has prices in {foreign[0]}, not in EUR", "Export them in EUR, or convert them")


def one_of(table: TextTable, columns: list[str], wanted: str | None, argument: str) -> tuple[TextTable, str | None]:
    """The rows of one area or country: the one wanted, or the only one."""
    cells = table.cells
    if not columns:
        if wanted is not None:
            table.refuse(f"names no {argument}, so {wanted!r} cannot be found", "Leave it out")
        return table, None
    known = cells[columns[0]].str.strip_chars().drop_nulls().unique(maintain_order=True).to_list()
    shown = ", ".join(map(str, known[:8])) + (", …" if len(known) > 8 else "")
    if wanted is None:
        if len(known) > 1:
            table.refuse(f"holds {len(known)} of them: {shown}", f"Choose one, for instance {argument}={known[0]!r}")
        return table, known[0] if known else None
    names = {str(name) for column in columns for name in cells[column].str.strip_chars().drop_nulls().unique()}
    chosen = [name for name in names if _same(name, wanted)]
    if not chosen:
        near = difflib.get_close_matches(wanted, sorted(names), n=1)
        table.refuse(f"holds no {argument} {wanted!r}", f"Did you mean {near[0]!r}?" if near else f"It holds {shown}")
    here = table.only(cells.select(pl.any_horizontal(pl.col(columns).str.strip_chars().is_in(chosen))).to_series())
    return here, str(here.cells[columns[0]][0]).strip()


def _same(name: str, wanted: str) -> bool:
    """BZN|NL is NL."""
    return wanted.strip().lower() in (name.lower(), name.lower().split("|")[-1])


def first_auction(table: TextTable) -> tuple[TextTable, tuple[str, ...]]:
    """Without the rows of further auctions, where a file has several."""
    if "Sequence" not in table.cells.columns:
        return table, ()
    number = table.cells["Sequence"].str.extract(r"(\d+)", 1).cast(pl.Int64).fill_null(1)
    least = number.min()
    others = int((number != least).sum())
    if not others:
        return table, ()
    note = f"{others} rows of further auctions (sequences beyond {least}) were left out."
    return table.only(number == least), (note,)


def universal(table: TextTable, when: str, price: str, clock: str, mark: pl.Series | None) -> pl.DataFrame:
    """utc and price of every row that has both; `mark` (CET, CEST) tells which of two equal local times is meant."""
    rows = pl.DataFrame({"time": times(table, when), "price": prices(table, price)[0]}).with_row_index("row")
    rows = rows.with_columns(mark=pl.lit(None, pl.String) if mark is None else mark)
    refuse_untimed(table, rows)
    rows = rows.drop_nulls("time")
    place, many = pl.int_range(pl.len()).over("time"), pl.len().over("time")
    if rows.height and rows["time"][0] > rows["time"][-1]:  # the latest first
        place = many - 1 - place
    winter = pl.when(pl.col("mark").is_null()).then(2 * place >= many).otherwise(~pl.col("mark").str.ends_with("ST"))
    rows = rows.with_columns(which=pl.when(winter).then(pl.lit("latest")).otherwise(pl.lit("earliest")))
    moment = pl.col("time").dt.replace_time_zone(clock, ambiguous=pl.col("which"), non_existent="null")
    rows = rows.with_columns(utc=moment.dt.convert_time_zone("UTC")).drop_nulls("price")
    unreal = rows.filter(pl.col("utc").is_null())
    if unreal.height:
        table.refuse_row(
            int(unreal["row"][0]),
            f"a price for {unreal['time'][0]}, a time that the clock of {clock} skips",
            "Say by which clock the file is, with time_zone or in its heading",
        )
    if rows.height == 0:
        table.refuse("holds no price", "Pass a file with prices")
    return rows.select("utc", "price")


def refuse_untimed(table: TextTable, rows: pl.DataFrame) -> None:
    """Refuse a price without a time."""
    untimed = rows.filter(pl.col("time").is_null() & pl.col("price").is_not_null())
    if untimed.height:
        table.refuse_row(int(untimed["row"][0]), "a price but no time", "Mend it, or leave the line out")
