"""Prices from a user's own files."""

import dataclasses
from typing import Unpack

from epszero.datasets import _formats, _published
from epszero.datasets._inputs import Asked, Options, PathLike, checked, checked_unit, name_of, refuse
from epszero.datasets._mend import Quotes, mended
from epszero.datasets._plain import plain
from epszero.datasets._prices import Prices, counted
from epszero.datasets._table import opened
from epszero.datasets._units import doubts, unit_of
from epszero.datasets._wide import hour_columns, wide
from epszero.samples import TextTable

LABELS = ("beginning", "ending")
PUBLISHED = {
    "entsoe": _formats.entsoe,
    "ember": _formats.ember,
    "bulk": _published.bulk,
    "smard": _published.smard,
    "energy-charts": _published.energy_charts,
}


def read_entsoe(path: PathLike, area: str | None = None, **options: Unpack[Options]) -> Prices:
    """Day-ahead prices as the ENTSO-E Transparency Platform exports them to CSV, in its older or its newer form.

    `area`: which bidding zone, where the file has several ("NL" or "BZN|NL"). Prices must be in EUR. The other options
    are those of every loader, see `Options`.
    """
    asked, area = checked(options), name_of("area", area)
    table = opened(path)
    read = _published.bulk if _formats.kind_of(table) == "bulk" else _formats.entsoe
    return _told(table, read(table, area, asked), asked)


def read_ember(path: PathLike, country: str | None = None, **options: Unpack[Options]) -> Prices:
    """Hourly prices as Ember publishes them (European wholesale electricity price data).

    `country`: which one, by name or ISO code ("Netherlands", "NLD"), where the file has several. The other options are
    those of every loader, see `Options`.
    """
    asked, country = checked(options), name_of("country", country)
    table = opened(path)
    return _told(table, _formats.ember(table, country, asked), asked)


def read_prices(
    path: PathLike,
    zone: str | None = None,
    file_unit: str | None = None,
    *,
    time_column: str | None = None,
    price_column: str | None = None,
    hour_labels: str | None = None,
    **options: Unpack[Options],
) -> Prices:
    """Day-ahead prices from a file whose form is told by its columns: text in any usual form, xlsx, ods, JSON.

    ENTSO-E's export or bulk file, Ember's table, an export of SMARD (German or English) or of energy-charts, a column
    of times and one of prices (`timestamp`, `price`), or a row per day with columns h00 to h23, 0 to 23, 00:00 to 23:00
    or Hour 1 to Hour 24, and `day` or `date` if you like. `zone`: the area or country, where the file has several.
    `file_unit`: "EUR/MWh" (taken if nobody says another), "EUR/kWh" or "ct/kWh", where the file does not say itself.
    `time_column`, `price_column`: which columns, where their names do not tell. `hour_labels`: "beginning" or "ending",
    where hours may be named by either. The other options are those of every loader, see `Options`.
    """
    asked, zone = checked(options), name_of("zone", zone)
    given = None if file_unit is None else checked_unit("file_unit", file_unit)
    time_column, price_column = name_of("time_column", time_column), name_of("price_column", price_column)
    if hour_labels is not None and hour_labels not in LABELS:
        refuse("hour_labels", f"must be 'beginning' or 'ending', but it is {hour_labels!r}", "Pass one of them")
    table = opened(path)
    kind = _formats.kind_of(table) if (time_column, price_column) == (None, None) else "plain"
    if kind in PUBLISHED or kind == "series":
        _refuse_needless(table, given, hour_labels)
    if kind in PUBLISHED:
        quotes = PUBLISHED[kind](table, zone, asked)
    elif kind == "series":
        _refuse_zone(table, zone)
        quotes = _formats.series(table, asked)
    elif kind == "wide":
        _refuse_zone(table, zone)
        said = next(
            (
                unit
                for name in table.cells.columns
                if name not in hour_columns(table) and (unit := unit_of(table, name))
            ),
            None,
        )
        if said is not None and given is not None and said != given:
            refuse("file_unit", f"is {given!r}, but {table.name} says itself that it is in {said}", "Leave it out")
        unit = said or given or "EUR/MWh"
        return _told(table, wide(table, unit, asked, hour_labels), asked, unit, sure=bool(said or given))
    else:
        quotes, unit, sure = plain(table, (time_column, price_column), zone, (given, hour_labels), asked)
        return _told(table, quotes, asked, unit, sure=sure)
    return _told(table, quotes, asked)


def _told(table: TextTable, quotes: Quotes, asked: Asked, unit: str = "EUR/MWh", *, sure: bool = True) -> Prices:
    """Mended, with all that is to be told of the file: what was read around, the unit, parts of hours."""
    parts = quotes.table.filter(quotes.table["minutes"] < 60)
    notes = (*table.notes, *quotes.notes, *doubts(table, quotes, unit, sure))
    if parts.height:
        length, many = f"{parts['minutes'].min():g}", parts["day"].n_unique()
        notes = (*notes, f"Prices of {length} minutes were averaged to hours, on {counted(many, 'day')}.")
    return mended(dataclasses.replace(quotes, notes=notes), asked)


def _refuse_needless(table: TextTable, given: str | None, labels: str | None) -> None:
    """Refuse to be told what a file says itself."""
    if given not in (None, "EUR/MWh"):
        refuse("file_unit", f"is {given!r}, but {table.name} says itself that it is in EUR/MWh", "Leave it out")
    if labels not in (None, "beginning"):
        refuse("hour_labels", f"is {labels!r}, but {table.name} gives the beginning of each interval", "Leave it out")


def _refuse_zone(table: TextTable, zone: str | None) -> None:
    if zone is not None:
        refuse("zone", f"{table.name} does not name zones, so {zone!r} cannot be found", "Leave it out")
