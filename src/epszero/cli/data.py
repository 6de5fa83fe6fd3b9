"""Samples from a file, as the options say: which columns, which support, which draws."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import epszero as ez
from epszero.cli.endings import refuse

if TYPE_CHECKING:
    from epszero.problems import Problem

PARQUET = (".parquet", ".pq", ".parq")


class Data(NamedTuple):
    """The options that speak of data."""

    samples: Path | None
    columns: str | None
    support: str | None
    drop_missing: bool
    draws: int | None
    seed: int

    def read(self, problem: "Problem") -> "ez.Samples | None":
        """The samples that the problem needs; None where nothing in it is uncertain."""
        if not problem.oracle.uncertain:
            self._refuse_needless()
            return None
        if self.samples is None:
            refuse("--samples", "is needed: the functions of the problem take a sample", "Pass a CSV or Parquet file")
        missing = "drop" if self.drop_missing else "error"
        reader = ez.Samples.from_parquet if self.samples.suffix.lower() in PARQUET else ez.Samples.from_csv
        support = None if self.support is None else box(self.support)
        rows = reader(self.samples, columns=self._chosen(), missing=missing, support=support)
        return rows if self.draws is None else rows.take(self.draws, seed=self.seed)

    def _chosen(self) -> list[str] | None:
        if self.columns is None:
            return None
        names = [name.strip() for name in self.columns.split(",")]
        if not all(names):
            refuse("--columns", f"{self.columns!r} has an empty name", "Pass names divided by commas, as in a,b")
        return names

    def _refuse_needless(self) -> None:
        for option, value in (
            ("--samples", self.samples),
            ("--columns", self.columns),
            ("--support", self.support),
            ("--draws", self.draws),
        ):
            if value is not None:
                refuse(option, "is given, but nothing in the problem depends on samples", "Leave it out")


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
