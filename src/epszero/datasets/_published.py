"""Prices as three platforms publish them in bulk: ENTSO-E's file library, SMARD, energy-charts.

ENTSO-E   tab-separated, a month of all areas: DateTime(UTC), ResolutionCode, AreaCode, AreaDisplayName, AreaTypeCode,
          MapCode, ContractType, Sequence, Price[Currency/MWh], Currency, UpdateTime(UTC). Rows of other contracts and
          of further auctions are left out; of rows for one time the latest update counts; where an hour has a price of
          its own and prices of its parts, its own counts.
SMARD     semicolons, in German (01.01.2024 00:00, decimal commas) or English (Jan 1, 2024 12:00 AM), by the clock of
          Berlin, a column per area; the older form has date and start in two columns. - is no price.
energy-charts  Date (GMT+1) with an offset in each time, a second heading with units, columns Day Ahead Auction (DE-LU).
"""

import difflib
import re

import polars as pl

from epszero.datasets._formats import first_auction, one_of, refuse_foreign, refuse_untimed, universal
from epszero.datasets._inputs import Asked
from epszero.datasets._mend import Quotes, local
from epszero.datasets._table import moments, prices, times
from epszero.samples import TextTable

AREA = re.compile(r"^(.*?)\s*\[(?:€|EUR)/MWh\].*$", re.IGNORECASE)
AUCTION = re.compile(r"day.?ahead", re.IGNORECASE)
MINUTES = {"PT60M": 60, "PT1H": 60, "PT30M": 30, "PT15M": 15}


def bulk(table: TextTable, zone: str | None, asked: Asked) -> Quotes:
    """A file of ENTSO-E's file library, EnergyPrices or DayAheadPrices."""
    names = {name.lower().replace(" ", ""): name for name in table.cells.columns}
    when = names.get("datetime(utc)", names.get("datetime"))
    price = next((names[name] for name in ("price[currency/mwh]", "price[eur/mwh]", "price") if name in names), None)
    if when is None or price is None:
        table.refuse(
            f"has no column of times or prices, but {table.columns_shown()}", "Pass EnergyPrices_12.1.D of ENTSO-E"
        )
    places = [names[name] for name in ("mapcode", "areadisplayname", "areacode", "areaname") if name in names]
    table, place = one_of(table, places, zone, "zone")
    notes: tuple[str, ...] = ()
    if "contracttype" in names:
        other = ~table.cells[names["contracttype"]].str.contains(AUCTION.pattern.replace("day", "(?i)day")).fill_null(
            value=False
        )
        if other.any():
            notes = (f"{int(other.sum())} rows of other contracts than day-ahead were left out.",)
            table = table.only(~other)
            if table.cells.height == 0:
                table.refuse("holds no day-ahead prices", "Pass EnergyPrices_12.1.D of ENTSO-E")
    table, further = first_auction(table)
    if "currency" in names:
        refuse_foreign(table.rewritten(table.cells[names["currency"]].alias("Currency")), price)
    rows = pl.DataFrame({"time": times(table, when), "price": prices(table, price)[0]}).with_row_index("row")
    refuse_untimed(table, rows)
    update, length = names.get("updatetime(utc)", names.get("updatetime")), names.get("resolutioncode")
    known = pl.lit(60) if length is None else table.cells[length].str.strip_chars().replace_strict(MINUTES, default=60)
    rows = rows.with_columns(
        minutes=known, update=pl.lit("") if update is None else table.cells[update].fill_null("")
    ).drop_nulls(["time", "price"])
    rows = rows.sort("update", maintain_order=True).unique(["time", "minutes"], keep="last", maintain_order=True)
    longest = pl.col("minutes").max().over(pl.col("time").dt.truncate("1h"))
    rows = rows.filter(pl.col("minutes") == longest).sort("time")
    if rows.height == 0:
        table.refuse("holds no price", "Pass a file with prices")
    series = rows.select(utc=pl.col("time").dt.replace_time_zone("UTC"), price="price")
    source = f"{table.name}, a bulk file of ENTSO-E's day-ahead prices{f', {place}' if place else ''}"
    return Quotes(local(series, asked.time_zone), source, (*notes, *further))


def smard(table: TextTable, zone: str | None, asked: Asked) -> Quotes:
    """An export of SMARD, the platform of the Bundesnetzagentur."""
    names = {name.lower(): name for name in table.cells.columns}
    when = names.get("datum von", names.get("start date"))
    if when is None:
        day = names.get("datum", names.get("date"))
        start = next((names[name] for name in ("anfang", "start", "uhrzeit") if name in names), None)
        if day is None or start is None:
            table.refuse(
                f"has no column 'Datum von' or 'Start date' but {table.columns_shown()}", "Pass SMARD's export"
            )
        when = day
        joined = table.cells[day].str.strip_chars() + " " + table.cells[start].str.strip_chars()
        table = table.rewritten(joined.alias(day))
    areas = {match[1]: name for name in table.cells.columns if (match := AREA.match(name))}
    found = prices(table, *areas.values())
    filled = {
        area: name for (area, name), cells in zip(areas.items(), found, strict=True) if cells.null_count() < len(cells)
    }
    if not filled:
        table.refuse("holds no price", "Choose day-ahead prices ('Großhandelspreise') and a period when you export it")
    area = _chosen(table, list(filled), zone)
    series = universal(table, when, filled[area], "Europe/Berlin", None)
    return Quotes(local(series, asked.time_zone), f"{table.name}, SMARD's day-ahead prices, {area}")


def energy_charts(table: TextTable, zone: str | None, asked: Asked) -> Quotes:
    """An export of energy-charts.info."""
    when = next(name for name in table.cells.columns if re.match(r"(?:date|datum)\s*\(", name, re.IGNORECASE))
    others = [name for name in table.cells.columns if name != when]
    if (table.cells[when][0] or "").strip() == "":  # units, below the names
        units = " ".join(str(table.cells[name][0] or "") for name in others)
        if not re.search(r"(?:EUR|€)\s*/\s*MWh", units):
            table.refuse(f"gives its units as {units.strip()!r}, without EUR/MWh", "Export day-ahead prices in EUR/MWh")
        table = table.only(pl.Series([False] + [True] * (table.cells.height - 1)))
    areas = {_area(name): name for name in others if AUCTION.search(name)}
    if not areas:
        table.refuse(f"has no column 'Day Ahead Auction' but {table.columns_shown()}", "Choose that when you export it")
    area = _chosen(table, list(areas), zone)
    utc = moments(table, when)
    if utc is None:
        table.refuse(f"has times in {when!r} that do not say how far they are from UTC", "Export it again as CSV")
    rows = pl.DataFrame({"time": utc, "price": prices(table, areas[area])[0]}).with_row_index("row")
    refuse_untimed(table, rows)
    rows = rows.drop_nulls()
    if rows.height == 0:
        table.refuse("holds no price", "Pass a file with prices")
    series = rows.select(utc="time", price="price")
    return Quotes(local(series, asked.time_zone), f"{table.name}, day-ahead prices of energy-charts.info, {area}")


def _area(name: str) -> str:
    inside = re.search(r"\(([^)]*)\)", name)
    return inside[1] if inside else name


def _chosen(table: TextTable, areas: list[str], zone: str | None) -> str:
    """The one wanted, or the only one."""
    shown = ", ".join(areas[:12]) + (", …" if len(areas) > 12 else "")
    if zone is None:
        if len(areas) > 1:
            table.refuse(f"holds {len(areas)} of them: {shown}", f"Choose one, for instance zone={areas[0]!r}")
        return areas[0]
    wanted = zone.strip().lower().replace("_", "-")
    exact = [area for area in areas if wanted in (area.lower(), area.lower().replace("/", "-"))]
    parts = [area for area in areas if wanted in re.split(r"[/ -]", area.lower())]
    for fitting in (exact, parts):
        if len(fitting) == 1:
            return fitting[0]
    near = difflib.get_close_matches(zone, areas, n=1)
    table.refuse(f"holds no zone {zone!r}", f"Did you mean {near[0]!r}?" if near else f"It holds {shown}")
