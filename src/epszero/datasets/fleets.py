"""A fleet as people have it: a row per vehicle, in a text file, a spreadsheet or a frame.

need     kWh that must be charged; required
cap      kWh that can be charged in an hour
wear     €/kWh²
fee      €/kWh on top of the price
name, vehicle or id say who it is; arrive and depart are kept as they are written, for whoever plans by the clock.

Names of columns may have capitals and a unit: `Need [kWh]`, `need_kwh`, `Cap (kW)`. Where the unit is another one,
numbers are converted, and that is told: MWh, Wh, kW, ct/kWh, €/MWh. Other columns are left out, and told; one whose
name is almost that of a column that is lacking is refused.
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from epszero.datasets._inputs import refuse
from epszero.samples import TextTable, read_table, table_of

UNITS: Final = {  # column: the unit that numbers are in, and what others are in it
    "need": {"kwh": 1.0, "mwh": 1000.0, "wh": 0.001},
    "cap": {"kwh": 1.0, "kwh/h": 1.0, "kw": 1.0, "mwh": 1000.0, "mwh/h": 1000.0, "mw": 1000.0, "w": 0.001},
    "wear": {"eur/kwh2": 1.0, "ct/kwh2": 0.01},
    "fee": {"eur/kwh": 1.0, "ct/kwh": 0.01, "eur/mwh": 0.001},
}
OURS = {"need": "kWh", "cap": "kWh an hour", "wear": "€/kWh²", "fee": "€/kWh"}
LABELS = ("name", "vehicle", "id")  # the first that is there says who a vehicle is
TEXTS = {"arrive": "arrive", "arrival": "arrive", "depart": "depart", "departure": "depart"}
KNOWN = (*UNITS, *LABELS, *TEXTS)
NONNEGATIVE = ("need", "cap", "wear")
LITTLE, MUCH = 0.5, 2000.0  # kWh: a need that may be in MWh, and one that may be in Wh
BRACKETS = re.compile(r"^(.*?)\s*[\[(]\s*([^\])]*?)\s*[\])]\s*$")
BEHIND = re.compile(
    r"^(.*?)(?:\s+in|,|\s*/)?[\s_]+((?:[kM]?Wh?(?:/h)?|(?:eur|€|ct)[/_ ]?(?:per_)?[kM]Wh[²2]?))$", re.IGNORECASE
)


@final
@dataclass(frozen=True, eq=False)
class FleetTable:
    """What was read: `columns` of numbers in kWh and €, `texts` as they are written, who is who, and where."""

    columns: dict[str, NDArray[np.float64]]
    texts: dict[str, list[str]]  # arrive, depart; "" where nothing is written
    label: str  # the name of the column that tells vehicles apart, as in the file
    vehicles: list[str]  # its entries; numbers from 1 where there is no such column
    places: list[int]  # line or row of each
    unit: str  # "line", or "row" of a sheet or frame
    notes: tuple[str, ...]  # what was converted, left out or looks odd, in sentences

    def who(self, i: int) -> str:
        """A vehicle as its owner would look for it."""
        return f"{self.unit} {self.places[i]} ({self.label} {self.vehicles[i]})"


def read_fleet(source: Any, required: Sequence[str] = ("need",)) -> FleetTable:
    """A fleet from a file (CSV in any usual form, xlsx, ods) or from a Polars or pandas frame.

    Its columns are `need` (kWh), `cap` (kWh an hour), `wear` (€/kWh²), `fee` (€/kWh), `name`, `vehicle` or `id`, and
    `arrive` and `depart`, which stay text; their names may have capitals and a unit, `Need [MWh]`. Each number is
    checked: what cannot be is refused with its line. `required`: columns that must be there.
    """
    table = table_of(source, "fleet") or read_table(source, "fleet")
    found, factors, others, notes = _sorted_out(table)
    for name in required:
        if name not in found:
            near = _nearest(name, others)
            if near is not None:
                table.refuse(
                    f"has a column {near!r}, but none that is called {name!r}", f"Did you mean {name!r}? Rename it"
                )
            hint = "Say in it how many kWh each vehicle must charge" if name == "need" else "Add it"
            table.refuse(f"has no column {name!r} but {table.columns_shown()}", hint)
    for name in (*UNITS, *dict.fromkeys(TEXTS.values())):
        near = None if name in found else _nearest(name, others)
        if near is not None:
            table.refuse(
                f"has a column {near!r}, which vehicles do not have",
                f"Did you mean {name!r}? Rename it, or leave it out",
            )
    columns = {name: _column(table, name, found[name]) * factor for name, factor in factors.items()}
    labels = [name for name in LABELS if name in found]
    others += [found[name] for name in labels[1:]]
    if not (columns or labels):
        table.refuse(f"has none of the columns of a fleet, but {table.columns_shown()}", f"They are {', '.join(UNITS)}")
    if others:
        notes.append(f"Columns left out: {', '.join(map(repr, others))}.")
    who = _vehicles(table, found[labels[0]]) if labels else [str(i + 1) for i in range(table.cells.height)]
    texts = {
        name: [text.strip() for text in table.cells[found[name]].fill_null("").to_list()]
        for name in dict.fromkeys(TEXTS.values())
        if name in found
    }
    label = found[labels[0]] if labels else "vehicle"
    places = table.places.to_list()
    fleet = FleetTable(columns, texts, label, who, places, table.unit, (*table.notes, *notes))
    _refuse_negative(fleet, table.argument)
    return FleetTable(columns, texts, label, who, places, table.unit, (*fleet.notes, *_odd(fleet, found)))


def _sorted_out(table: TextTable) -> tuple[dict[str, str], dict[str, float], list[str], list[str]]:
    """Known columns by our names, factors of those with numbers, names of the others, and what was converted."""
    found: dict[str, str] = {}
    factors: dict[str, float] = {}
    others: list[str] = []
    notes: list[str] = []
    for title in table.cells.columns:
        name, unit = _meant(title)
        name = TEXTS.get(name, name)
        if name not in (*UNITS, *LABELS, *TEXTS.values()):
            others.append(title)
            continue
        if name in found:
            table.refuse(f"has two columns for {name!r}: {found[name]!r} and {title!r}", "Leave one of them out")
        found[name] = title
        if name in UNITS:
            factors[name] = _factor(table, name, title, unit)
            if factors[name] != 1.0:
                notes.append(f"Column {title!r} was converted to {OURS[name]}.")
    return found, factors, others, notes


def _meant(title: str) -> tuple[str, str]:
    """Name and unit of a column: `Need [kWh]`, `need_kwh` and `Need in kWh` are need, in kWh."""
    match = BRACKETS.match(title) or BEHIND.match(title)
    name, unit = (match[1], match[2]) if match else (title, "")
    return re.sub(r"[\s_.:-]+", " ", name).strip().lower(), unit


def _factor(table: TextTable, name: str, title: str, unit: str) -> float:
    """What numbers in this unit are in ours."""
    plain = (
        unit.lower().replace("€", "eur").replace("euro", "eur").replace("cent", "ct").replace("²", "2").replace("^", "")
    )
    plain = re.sub(r"[\s_]*(?:/|per|_)[\s_]*", "/", plain.strip()).replace("kwh/kwh", "kwh2").replace(" ", "")
    if plain in ("", "-"):
        return 1.0
    if plain not in UNITS[name]:
        table.refuse(
            f"has a column {title!r} in {unit!r}, which is no unit for {name!r}",
            f"Convert it to {OURS[name]}, or correct the name of the column",
        )
    return UNITS[name][plain]


def _nearest(name: str, others: list[str]) -> str | None:
    """A column that may be meant: it has the name as a word, or is spelt almost so."""
    for title in others:
        words = re.findall(r"[a-z]+", title.lower())
        spelt = any(
            difflib.get_close_matches(word, [name], cutoff=0.8) or sorted(word) == sorted(name) for word in words
        )
        if name in words or (len(words) <= 2 and spelt):
            return title
    return None


def _column(table: TextTable, name: str, title: str) -> NDArray[np.float64]:
    (values,) = table.numbers([title])
    gaps = values.is_null().arg_true()
    if len(gaps):
        table.refuse_row(
            int(gaps[0]), f"no value in column {title!r}", f"Write there the {name} of the vehicle, a number"
        )
    infinite = (~values.is_finite()).arg_true()
    if len(infinite):
        table.refuse_row(int(infinite[0]), f"an infinite value in column {title!r}", "Write a number there")
    return values.to_numpy()


def _vehicles(table: TextTable, title: str) -> list[str]:
    """Who they are: each has a name, and one of its own."""
    names = [name.strip() for name in table.cells[title].fill_null("").to_list()]
    first: dict[str, int] = {}
    for row, name in enumerate(names):
        if not name:
            table.refuse_row(row, f"nothing in column {title!r}, which says who the vehicle is", "Give it a name")
        if name in first:
            table.refuse_row(
                row,
                f"{name!r} in column {title!r}, as {table.unit} {table.places[first[name]]} has",
                "Give every vehicle its own name",
            )
        first[name] = row
    return names


def _refuse_negative(fleet: FleetTable, argument: str) -> None:
    for name in NONNEGATIVE:
        below = np.flatnonzero(fleet.columns[name] < 0) if name in fleet.columns else []
        if len(below):
            i = int(below[0])
            refuse(argument, f"{fleet.who(i)} has {name} = {fleet.columns[name][i]:g}, which is negative", "Correct it")


def _odd(fleet: FleetTable, found: dict[str, str]) -> list[str]:
    """Needs that may be in another unit, where the file names none."""
    if "need" not in fleet.columns or _meant(found["need"])[1]:
        return []
    need = fleet.columns["need"]
    told: list[str] = []
    large, small = int(need.argmax()), np.flatnonzero((need > 0) & (need < LITTLE))
    if 0 < need[large] < LITTLE:
        told.append(
            f"No need is above {need[large]:g} kWh ({fleet.who(large)}), which is little: if they are in MWh, "
            "write need [MWh] above them."
        )
    elif need[large] > MUCH:
        told.append(
            f"The need of {fleet.who(large)} is {need[large]:g} kWh, which is much: if they are in Wh, write need [Wh] "
            "above them."
        )
    elif len(small) and need[large] > 100 * need[small[0]]:
        i = int(small[0])
        told.append(f"The need of {fleet.who(i)} is {need[i]:g} kWh, far less than that of others: is it in MWh?")
    return told
