"""What an experiment tells, and the files it is written to."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

import epszero as ez
from epszero.experiments._store import Arrays, Piece
from epszero.report import FORMS, drawn, write_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Setting:
    """What all experiments share."""

    trials: int = 50
    seed: int = 0

    def generator(self, *numbers: int) -> np.random.Generator:
        """Randomness of its own for each combination of numbers."""
        return np.random.default_rng([self.seed, *numbers])

    def batches(self, size: int = 10, trials: int | None = None) -> list[range]:
        """The trials, so many at a time: what a kill can cost."""
        many = self.trials if trials is None else trials
        return [range(first, min(first + size, many)) for first in range(0, many, size)]


@dataclass(frozen=True)
class Comparison:
    """What the paper says, what comes out here, and why they differ."""

    what: str
    paper: str
    ours: str
    reason: str


@dataclass(frozen=True, eq=False)
class Outcome:
    """A table, a figure, and what there is to say about them."""

    table: pl.DataFrame
    comparisons: tuple[Comparison, ...]
    figure: "Figure | None" = None
    data: pl.DataFrame | None = None  # of every trial
    text: str = ""  # what stands below the table


class Experiment(Protocol):
    """A module of this room."""

    @property
    def TITLE(self) -> str:
        """What it shows."""
        ...

    def pieces(self, setting: Setting) -> Sequence[Piece]:
        """The work to be done."""
        ...

    def outcome(self, setting: Setting, found: list[Arrays]) -> Outcome:
        """What the finished pieces tell, in their order."""
        ...


@dataclass(frozen=True, eq=False)
class Result:
    """An experiment's outcome with its name, and where it was written."""

    name: str
    title: str
    outcome: Outcome = field(repr=False)
    files: tuple[Path, ...]

    @property
    def table(self) -> pl.DataFrame:
        """The numbers."""
        return self.outcome.table

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Paper, ours, and the reason where they differ."""
        return self.outcome.comparisons

    @property
    def text(self) -> str:
        """What stands below the table."""
        return self.outcome.text


def written(name: str, title: str, outcome: Outcome, setting: Setting, out: Path) -> Result:
    """The outcome as files: NAME.csv, NAME.json, NAME.md and the figure; the data of every trial where there are."""
    files = [write_file(out / f"{name}.csv", outcome.table.write_csv())]
    if outcome.data is not None:
        files.append(write_file(out / f"{name}-trials.csv", outcome.data.write_csv()))
    if outcome.figure is not None:
        files += [write_file(out / f"{name}.{form}", drawn(outcome.figure, form)) for form in FORMS]
    record = {
        "name": name,
        "title": title,
        "seed": setting.seed,
        "trials": setting.trials,
        "table": [_plain(row) for row in outcome.table.to_dicts()],
        "comparisons": [vars(one) for one in outcome.comparisons],
        "text": outcome.text,
    }
    files.append(
        write_file(out / f"{name}.json", json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    )
    text = f"{as_markdown(name, title, outcome)}\n{setting.trials} trials, seed {setting.seed}.\n"
    files.append(write_file(out / f"{name}.md", text))
    return Result(name, title, outcome, tuple(files))


def as_markdown(name: str, title: str, outcome: Outcome) -> str:
    """For a reader of the folder."""
    parts = [f"# {title}"]
    if outcome.figure is not None:
        parts.append(f"![{title}]({name}.png)")
    parts.append(_markdown_table([list(outcome.table.columns), *map(list, outcome.table.iter_rows())]))
    if outcome.text:
        parts.append(f"```text\n{outcome.text}\n```")
    if outcome.comparisons:
        rows = [
            ["", "paper", "here", "why"],
            *([one.what, one.paper, one.ours, one.reason] for one in outcome.comparisons),
        ]
        parts.append(_markdown_table(rows))
    return "\n\n".join(parts) + "\n"


def _markdown_table(rows: list[list[Any]]) -> str:
    shown = [[number(cell) for cell in row] for row in rows]
    lines = ["| " + " | ".join(row) + " |" for row in shown]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON knows; None for infinity."""
    return {key: None if isinstance(value, float) and not np.isfinite(value) else value for key, value in row.items()}


def number(value: object) -> str:
    """For a table: four digits."""
    if value is None:
        return "—"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def size(x: ArrayLike) -> float:
    """‖x‖."""
    return float(np.linalg.norm(x))


def finite(values: Sequence[float | None]) -> list[float]:
    """∞ in place of None."""
    return [np.inf if value is None else float(value) for value in values]


def checked_names(names: Sequence[str] | str, known: Sequence[str]) -> list[str]:
    """Names of experiments in the order of `known`, each once; "all" is all."""
    asked = [names] if isinstance(names, str) else list(names)
    remedy = f"Choose among {', '.join(known)}, or all"
    for name in asked:
        if name != "all" and name not in known:
            raise ez.InputError.about("names", f"there is no experiment {name!r}", remedy)
    if not asked:
        raise ez.InputError.about("names", "none is given", remedy)
    return [name for name in known if name in asked or "all" in asked]
