"""Samples from a file, as the options say: which columns, which support, which draws."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import epszero as ez
from epszero.cli.endings import refuse

if TYPE_CHECKING:
    from epszero.problems import Problem

PARQUET = (".parquet", ".pq", ".parq")


class Data(NamedTuple):
    """The options that speak of data."""

    samples: Sequence[Path] | None
    columns: Sequence[str] | None
    support: Sequence[str] | None
    drop_missing: bool
    draws: int | None
    seed: int

    def read(self, problem: "Problem") -> "ez.Samples | list[ez.Samples] | None":
        """The samples that the problem needs, a list where each agent has its own; None where nothing is uncertain."""
        if not problem.oracle.uncertain:
            self._refuse_needless()
            return None
        if not self.samples:
            refuse("--samples", "is needed: the functions of the problem take a sample", "Pass a CSV or Parquet file")
        many = len(self.samples)
        wanted = problem.oracle.data_sets
        if many > 1 and wanted is None:
            refuse(
                "--samples", f"is given {many} times, but the problem has no agents with data of their own", "Pass one"
            )
        if many > 1 and many != wanted:
            refuse("--samples", f"is given {many} times, for {wanted} agents", "Pass it once, or once for each of them")
        columns = _each("--columns", self.columns, many)
        supports = _each("--support", self.support, many)
        parts = zip(self.samples, columns, supports, strict=True)
        sets = [self._one(place, *part) for place, part in enumerate(parts)]
        return sets[0] if many == 1 else sets

    def _one(self, place: int, file: Path, columns: str | None, support: str | None) -> "ez.Samples":
        missing = "drop" if self.drop_missing else "error"
        reader = ez.Samples.from_parquet if file.suffix.lower() in PARQUET else ez.Samples.from_csv
        known = None if support is None else box(support)
        rows = reader(file, columns=_names(columns), missing=missing, support=known)
        return rows if self.draws is None else rows.take(self.draws, seed=self.seed + place)

    def _refuse_needless(self) -> None:
        for option, value in (
            ("--samples", self.samples),
            ("--columns", self.columns),
            ("--support", self.support),
            ("--draws", self.draws),
        ):
            if value:
                refuse(option, "is given, but nothing in the problem depends on samples", "Leave it out")


def _each(option: str, given: Sequence[str] | None, many: int) -> Sequence[str | None]:
    """One for each data set: the only one for all of them, or as many as there are."""
    if not given:
        return [None] * many
    if len(given) not in (1, many):
        refuse(option, f"is given {len(given)} times, for {many} files of --samples", "Pass it once, or once for each")
    return list(given) * (many // len(given))


def _names(columns: str | None) -> list[str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if not all(names):
        refuse("--columns", f"{columns!r} has an empty name", "Pass names divided by commas, as in a,b")
    return names


def box(text: str, dim: int | None = None) -> "ez.sets.Box":
    """`LO,HI` for all columns, or one `LO:HI` per column, as a box."""
    each = ":" in text
    pairs = [part.split(":") for part in text.split(",")] if each else [text.split(",")]
    try:
        bounds = [(float(low), float(high)) for low, high in pairs]
    except ValueError:
        refuse(
            "--support",
            f"{text!r} is not two numbers LO,HI, nor one LO:HI per column",
            "Write --support=-0.5,4 or --support=0:1,-2:2",
        )
    for low, high in bounds:
        if not low <= high:
            refuse("--support", f"nothing lies between {low:g} and {high:g}", "Write the smaller number first")
    if each:
        return ez.sets.Box([low for low, _ in bounds], [high for _, high in bounds], dim=dim)
    return ez.sets.Box(*bounds[0], dim=dim)


def check_delta(delta: float) -> None:
    """Refuse, before any work, what is no probability."""
    if not 0 < delta < 1:
        refuse("--delta", f"is the probability of failure, between 0 and 1, but it is {delta:g}", "Pass 0.05 for 95 %")


def check_holdout(holdout: float | None) -> None:
    """Refuse, before any work, what is no share."""
    if holdout is not None and not 0 < holdout < 1:
        refuse("--holdout", f"is a share of the samples, between 0 and 1, but it is {holdout:g}", "Pass 0.3, say")
