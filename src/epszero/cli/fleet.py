"""A fleet file: one row per vehicle, refused by line where a vehicle cannot be."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import epszero as ez
from epszero.cli.endings import refuse

NUMBERS = ("wear", "fee", "need", "cap")
TIMES = ("arrive", "depart")  # clock times, read by cli/windows.py
LABELS = ("id", "name", "vehicle")  # columns that say who it is, carried along
NONNEGATIVE = ("wear", "need", "cap")


class FleetFile(NamedTuple):
    """What was read."""

    columns: dict[str, NDArray[np.float64]]  # of numbers, by name
    label: str  # the name of the column that tells vehicles apart
    vehicles: list[str]  # its entries; numbers from 1 where the file has none
    lines: list[int] | None  # of the file, one per vehicle, where rows and lines match
    times: dict[str, list[str]]  # arrive and depart, as they are written

    def who(self, i: int) -> str:
        """A vehicle as its owner would look for it."""
        place = f"line {self.lines[i]}" if self.lines else f"row {i + 1}"
        return f"{place} ({self.label} {self.vehicles[i]})"


def read_fleet(path: Path) -> FleetFile:
    """The columns of a fleet, checked one by one."""
    if not path.is_file():
        refuse("--fleet", f"there is no file {str(path)!r}", "Check the name and the working directory")
    try:
        text = pl.read_csv(path, infer_schema=False)
    except pl.exceptions.NoDataError:
        refuse("--fleet", f"{str(path)!r} is empty", f"Pass a header, {', '.join(NUMBERS)} say, and a row per vehicle")
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0]
        refuse("--fleet", f"{str(path)!r} cannot be read as CSV ({reason})", "Check the file")
    _refuse_columns(path, text.columns)
    if text.height == 0:
        refuse("--fleet", f"{str(path)!r} has a header but no vehicles", "Pass one row per vehicle")
    labels = [name for name in text.columns if name in LABELS]
    names = [name for name in text.columns if name in NUMBERS]
    try:
        values = ez.Samples.from_csv(path, columns=names).values
    except ez.InputError as error:
        raise ez.InputError.about("--fleet", error.rule or str(error), "Write a number there") from error
    label = labels[0] if labels else "vehicle"
    vehicles = (text[label] if labels else pl.Series(range(1, text.height + 1))).cast(pl.String).fill_null("").to_list()
    matching = len(path.read_bytes().splitlines()) == text.height + 1
    lines = [row + 2 for row in range(text.height)] if matching else None
    times = {name: text[name].fill_null("").to_list() for name in TIMES if name in text.columns}
    fleet = FleetFile(dict(zip(names, values.T, strict=True)), label, vehicles, lines, times)
    _refuse_negative(fleet)
    return fleet


def _refuse_columns(path: Path, columns: list[str]) -> None:
    for name in columns:
        if name not in (*NUMBERS, *TIMES, *LABELS):
            refuse(
                "--fleet",
                f"{str(path)!r} has a column {name!r}, which vehicles do not have",
                f"Its columns are {', '.join((*NUMBERS, *TIMES))}, and one of {', '.join(LABELS)}",
            )
    if "need" not in columns:
        refuse("--fleet", f"{str(path)!r} has no column 'need'", "Say in it how many kWh each vehicle must charge")
    if sum(name in LABELS for name in columns) > 1:
        refuse("--fleet", f"{str(path)!r} tells vehicles apart more than once", f"Keep one of {', '.join(LABELS)}")


def _refuse_negative(fleet: FleetFile) -> None:
    for name in NONNEGATIVE:
        below = np.flatnonzero(fleet.columns[name] < 0) if name in fleet.columns else []
        if len(below):
            i = int(below[0])
            refuse(
                "--fleet", f"{fleet.who(i)} has {name} = {fleet.columns[name][i]:g}, which is negative", "Correct it"
            )
