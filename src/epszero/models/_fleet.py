"""`Fleet`: what sets vehicles apart, read from a file or table, drawn where nothing is said."""

import difflib
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

import epszero as ez
from epszero.models._inputs import FloatArray, PathLike, count, each_or_drawn, generator, numbers, refuse


class Fleet(NamedTuple):
    """One entry per vehicle."""

    wear: FloatArray  # what charging does to the battery, €/kWh²
    fee: FloatArray  # €/kWh on top of the price
    need: FloatArray  # kWh that must be charged in all
    cap: FloatArray  # kWh that can be charged in an hour


LEAST = {"wear": 0.0, "fee": None, "need": 0.0, "cap": 0.0}
DEFAULT_VEHICLES = 20


@runtime_checkable
class PolarsFrame(Protocol):
    """A Polars DataFrame, told by what it can do: Polars itself need not be loaded."""

    @property
    def columns(self) -> list[str]: ...

    def get_columns(self) -> list[Any]: ...


@runtime_checkable
class PandasFrame(Protocol):
    """A pandas DataFrame, told in the same way."""

    @property
    def columns(self) -> Any: ...

    @property
    def iloc(self) -> Any: ...


Table = PathLike | Mapping[str, Any] | PolarsFrame | PandasFrame | Fleet
"""What may be given as a fleet."""


def gathered(
    vehicles: int | None, seed: int | np.random.Generator, given: Mapping[str, ArrayLike], fleet: Table | None
) -> Fleet:
    """The columns of `fleet`; where it has none, `given`: numbers as they are, intervals drawn from."""
    known = {} if fleet is None else _columns(fleet)
    many = {name: len(column) for name, column in known.items()}
    if vehicles is not None:
        many = {"vehicles": count("vehicles", vehicles), **many}
    first = next(iter(many), None)
    for name in many:
        if first is not None and many[name] != many[first]:
            refuse(
                "fleet",
                f"{first} speaks of {many[first]} vehicles, {name} of {many[name]}",
                "Give every column one row per vehicle, and leave vehicles= out",
            )
    draws = generator(seed).random((len(Fleet._fields), DEFAULT_VEHICLES if first is None else many[first]))
    return Fleet(
        **{
            name: each_or_drawn(name, known.get(name, given[name]), unit, "vehicle", least=LEAST[name])
            for name, unit in zip(Fleet._fields, draws, strict=True)
        }
    )


def _columns(fleet: Any) -> dict[str, FloatArray]:
    """The columns that a fleet has, by name."""
    if isinstance(fleet, Mapping):
        table: dict[str, Any] = dict(fleet)
    elif isinstance(fleet, tuple) and hasattr(fleet, "_asdict"):
        table = fleet._asdict()  # pyright: ignore[reportAttributeAccessIssue]  (a NamedTuple)
    elif isinstance(fleet, str | os.PathLike | PolarsFrame | PandasFrame):
        return ez.datasets.read_fleet(fleet, required=()).columns
    else:
        refuse(
            "fleet",
            f"must be a file, a mapping, a DataFrame or a Fleet, but it is a {type(fleet).__name__}",
            "Pass one of these, with columns among " + ", ".join(Fleet._fields),
        )
    _refuse_unknown(list(table))
    columns = {name: numbers(f"fleet.{name}", column) for name, column in table.items() if column is not None}
    for name, column in columns.items():
        if column.ndim != 1:
            refuse(
                f"fleet.{name}",
                f"must have one entry per vehicle, but its shape is {column.shape}",
                f"Pass a list of numbers, or leave it out and pass {name}=",
            )
    if not columns:
        refuse("fleet", "has no column", "Give it columns among " + ", ".join(Fleet._fields))
    return columns


def _refuse_unknown(names: list[str]) -> None:
    for name in names:
        if name not in Fleet._fields:
            near = difflib.get_close_matches(str(name), Fleet._fields, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            refuse(
                "fleet",
                f"has a column {name!r}, which vehicles do not have",
                f"{hint}Its columns are among " + ", ".join(Fleet._fields),
            )
