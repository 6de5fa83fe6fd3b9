"""Prices from a user's own files."""

from typing import Unpack

from epszero.datasets import _formats
from epszero.datasets._inputs import Options, PathLike, checked, checked_unit, name_of, refuse
from epszero.datasets._mend import mended
from epszero.datasets._prices import Prices
from epszero.datasets._table import opened


def read_entsoe(path: PathLike, area: str | None = None, **options: Unpack[Options]) -> Prices:
    """Day-ahead prices as the ENTSO-E Transparency Platform exports them to CSV, in its older or its newer form.

    `area`: which bidding zone, where the file has several ("NL" or "BZN|NL"). Prices must be in EUR. The other options
    are those of every loader, see `Options`.
    """
    asked, area = checked(options), name_of("area", area)
    return mended(_formats.entsoe(opened(path), area, asked), asked)


def read_ember(path: PathLike, country: str | None = None, **options: Unpack[Options]) -> Prices:
    """Hourly prices as Ember publishes them (European wholesale electricity price data).

    `country`: which one, by name or ISO code ("Netherlands", "NLD"), where the file has several. The other options are
    those of every loader, see `Options`.
    """
    asked, country = checked(options), name_of("country", country)
    return mended(_formats.ember(opened(path), country, asked), asked)


def read_prices(
    path: PathLike, zone: str | None = None, file_unit: str | None = None, **options: Unpack[Options]
) -> Prices:
    """Day-ahead prices from a CSV file whose form is told by its columns.

    ENTSO-E's export, Ember's table, a series with columns `utc` and `eur_per_mwh`, or a row per day with columns h00 to
    h23 (or 0 to 23) and `day` or `date` if you like. `zone`: the area or country, where the file has several.
    `file_unit`: the unit of a table with a row per day, EUR/MWh if it is not given; the others say theirs. The other
    options are those of every loader, see `Options`.
    """
    asked, zone = checked(options), name_of("zone", zone)
    given = checked_unit("file_unit", "EUR/MWh" if file_unit is None else file_unit)
    table = opened(path)
    kind = _formats.kind_of(table)
    if kind != "wide" and given != "EUR/MWh":
        refuse("file_unit", f"is {given!r}, but {table.name!r} says itself that it is in EUR/MWh", "Leave it out")
    if kind in ("series", "wide") and zone is not None:
        refuse("zone", f"{table.name!r} does not name zones, so {zone!r} cannot be found", "Leave it out")
    if kind == "entsoe":
        quotes = _formats.entsoe(table, zone, asked)
    elif kind == "ember":
        quotes = _formats.ember(table, zone, asked)
    elif kind == "series":
        quotes = _formats.series(table, asked)
    else:
        quotes = _formats.wide(table, given, asked)
        if file_unit is None:
            _formats.refuse_doubtful_unit(table, quotes)
    return mended(quotes, asked)
