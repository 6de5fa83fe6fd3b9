"""The embedded series: hourly day-ahead prices of the Dutch bidding zone, 2015 to 2024.

One whole number per hour from 2015-01-01 00:00 UTC on, in cents per MWh; none where the hour is missing. Source and
licence: data/ATTRIBUTION.txt.
"""

import datetime
from collections.abc import Iterable
from importlib import resources
from typing import Unpack

import polars as pl

import epszero as ez
from epszero.datasets._inputs import Day, Options, Support, checked, refuse
from epszero.datasets._mend import Quotes, local, mended
from epszero.datasets._prices import Prices

FILE = "day_ahead_nl_2015_2024.parquet"
BEGIN = datetime.datetime(2015, 1, 1, tzinfo=datetime.UTC)
FIRST, LAST = datetime.date(2015, 1, 1), datetime.date(2024, 12, 31)
SOURCE = "Dutch day-ahead prices, ENTSO-E Transparency Platform, as published by Ember (CC BY 4.0); embedded"


def day_ahead_prices(
    hours: Iterable[int] = range(14),
    start: Day = "2015-01-05",
    end: Day = "2024-12-31",
    unit: str = "EUR/kWh",
    support: Support = "market",
) -> ez.Samples:
    """Dutch day-ahead prices, a row per local day and a column per hour: 3649 × 14 as they stand in the paper.

    `hours`: whole numbers from 0 to 23. `start`, `end`: days from 2015-01-01 to 2024-12-31, both inclusive. `unit`:
    "EUR/kWh", "EUR/MWh" or "ct/kWh". `support`: "market", the limits of the market, −500 to 4000 EUR/MWh; "pool", the
    least and greatest price of each hour on these days, which is exact for draws from them; None; or a set of yours.

    The hour that does not exist in spring and the two hours that the source lacks are the mean of their neighbours; the
    hour that occurs twice in autumn is the mean of both. `dutch_prices` says which hours these are.
    """
    return dutch_prices(hours=hours, start=start, end=end, unit=unit, support=support).samples


def dutch_prices(**options: Unpack[Options]) -> Prices:
    """The embedded series with days, and with a report of what was mended. Options as for every loader."""
    asked = checked(options)
    for name, day in (("start", asked.start), ("end", asked.end)):
        if day is not None and not FIRST <= day <= LAST:
            refuse(name, f"{day} is outside the embedded data", f"Choose a day from {FIRST} to {LAST}")
    return mended(Quotes(local(_series(), asked.time_zone), SOURCE), asked)


def _series() -> pl.DataFrame:
    """Times and prices in EUR/MWh, exact to the cent."""
    with resources.as_file(resources.files("epszero.datasets") / "data" / FILE) as file:
        cents = pl.read_parquet(file)["cents_per_mwh"]
    hours = pl.datetime_range(BEGIN, BEGIN + datetime.timedelta(hours=len(cents) - 1), "1h", eager=True)
    prices = pl.Series(cents.cast(pl.Float64).to_numpy() / 100.0, nan_to_null=True)  # divided by NumPy: rounded once
    return pl.DataFrame({"utc": hours, "price": prices})
