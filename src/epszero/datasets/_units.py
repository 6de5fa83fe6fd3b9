"""In which unit prices are: what a heading says, and whether numbers look like it."""

import re

import numpy as np

from epszero.datasets._inputs import PER_MWH, refuse
from epszero.datasets._mend import Quotes
from epszero.samples import TextTable

WRITTEN = re.compile(
    r"(?P<money>eur[os]*|€|ct|cents?|c€|[a-z]{3}|øre|öre|[£$])\s*(?:/|per|_|\s)*\s*(?P<size>[kmg])wh", re.IGNORECASE
)
EURO, CENT = ("eur", "euro", "euros", "€"), ("ct", "cent", "cents", "c€")
LITTLE = 1.0  # EUR/MWh: no day of a market is as cheap as that
CHEAP, DEAR = 15.0, 100.0  # EUR/MWh: half of all prices below, none above: ct/kWh look so
REMEDY = 'Say file_unit="EUR/kWh", or file_unit="EUR/MWh" if they are as small as that'


def unit_of(table: TextTable, heading: str) -> str | None:
    """The unit that a heading names; None where it names none. One that is not for prices in EUR is refused."""
    found = WRITTEN.search(heading)
    if found is None:
        return None
    money, size = found["money"].lower(), found["size"].lower()
    if money in EURO and size in "km":
        return "EUR/MWh" if size == "m" else "EUR/kWh"
    if money in CENT and size == "k":
        return "ct/kWh"
    if money in ("per", "mwh", "kwh"):
        return None
    table.refuse(f"has prices in {found[0]!r} ({heading!r}), not in EUR", "Export them in EUR, or convert them")


def agreed(table: TextTable, heading: str, said: str | None, given: str | None) -> str:
    """The unit of the file: what it says (`said`) and what the user says (`given`) must not contradict."""
    if said is not None and given is not None and said != given:
        refuse(
            "file_unit",
            f"is {given!r}, but {table.name} says itself that it is in {said} ({heading!r})",
            "Leave it out",
        )
    return said or given or "EUR/MWh"


def doubts(table: TextTable, quotes: Quotes, unit: str, sure: bool) -> tuple[str, ...]:
    """What is odd about numbers in that unit; refused where nobody said that it is the unit, and it hardly can be."""
    sizes = np.abs(quotes.table["price"].to_numpy())
    largest, half = float(sizes.max()), float(np.median(sizes))
    shown = PER_MWH[unit]
    if 0 < largest < LITTLE:
        if not sure:
            table.refuse(
                f"holds no price beyond {largest:g}, which is little for EUR/MWh, and no unit was given", REMEDY
            )
        return (f"No price is beyond {largest / shown:g} {unit}, which is little: check the unit.",)
    if not sure and half < CHEAP and largest < DEAR:
        return (
            f"The file does not name its unit, and EUR/MWh was taken: half of the prices are below {half:g}. If they "
            'are in ct/kWh, say file_unit="ct/kWh".',
        )
    return ()
