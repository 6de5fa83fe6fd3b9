"""A fleet file at the command line: what `ez.datasets.read_fleet` reads, refused as --fleet."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import epszero as ez


class FleetFile(NamedTuple):
    """What was read."""

    columns: dict[str, NDArray[np.float64]]  # of numbers, by name: need, cap, wear, fee; in kWh and €
    label: str  # the name of the column that tells vehicles apart
    vehicles: list[str]  # its entries; numbers from 1 where the file has none
    lines: list[int]  # of the file, or rows of the sheet, one per vehicle
    unit: str  # "line" or "row"
    times: dict[str, list[str]]  # arrive, depart, as they are written; "" where a cell is empty
    notes: tuple[str, ...]  # what was converted, left out or looks odd

    def who(self, i: int) -> str:
        """A vehicle as its owner would look for it."""
        return f"{self.unit} {self.lines[i]} ({self.label} {self.vehicles[i]})"


def read_fleet(path: Path) -> FleetFile:
    """The columns of a fleet, checked one by one."""
    try:
        read = ez.datasets.read_fleet(path)
    except ez.InputError as error:
        if error.rule is None or error.remedy is None:
            raise
        raise ez.InputError.about("--fleet", error.rule, error.remedy) from error
    return FleetFile(read.columns, read.label, read.vehicles, read.places, read.unit, read.texts, read.notes)
