"""What the entries of an answer are called: agent or part, and entry, in the order of the flat x.

An entry has the name of a column of the samples where a strategy has as many entries as a sample has columns, as
schedules over the hours of the prices do; else its number.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from epszero._checks import refuse
from epszero._types import FloatArray, PyTree
from epszero.problems import AggregativeGame, Game, Problem
from epszero.samples import Samples


class Block(NamedTuple):
    """Some entries of x: rows that are alike, such as agents, each with the same entries."""

    name: str  # of the part, or of the agent; empty where there is one
    values: FloatArray  # rows × entries
    entries: list[str] | None  # names; None where they are merely counted


def column_names(samples: Samples | list[Samples] | None) -> tuple[str, ...] | None:
    """Those that all samples have."""
    return samples.columns if isinstance(samples, Samples) else None


def blocks(problem: Problem, x: PyTree, samples: Samples | list[Samples] | None) -> list[Block]:
    """The answer, leaf after leaf; a leaf with several axes has a row for each place of the first."""
    names, found = column_names(samples), list[Block]()
    rowed = isinstance(problem, AggregativeGame)
    for path, leaf in jax.tree.leaves_with_path(x):
        values = np.asarray(leaf, dtype=np.float64)
        rows = values.reshape(len(values), -1) if values.ndim > 1 or (rowed and values.ndim) else values.reshape(1, -1)
        known = list(names) if names is not None and len(names) == rows.shape[1] else None
        found.append(Block(jax.tree_util.keystr(path, simple=True, separator="."), rows, known))
    return found


def row_title(problem: Problem, x: PyTree) -> str:
    """What a row is: of agents alike, or of an array with several axes."""
    alone = not isinstance(x, list | tuple | dict)
    return "agent" if isinstance(problem, AggregativeGame) else "row" if alone else ""


def listed(problem: Problem, x: PyTree, samples: Samples | list[Samples] | None) -> dict[str, list[Any]]:
    """Columns that tell the entries of the flat x apart, one line for each."""
    every = blocks(problem, x, samples)
    part, row = "agent" if isinstance(problem, Game) else "part", row_title(problem, x) or "row"
    columns: dict[str, list[Any]] = {}
    if any(block.name for block in every):
        columns[part] = [
            int(block.name) if isinstance(problem, Game) and block.name.isdecimal() else block.name
            for block in every
            for _ in range(block.values.size)
        ]
    if isinstance(problem, AggregativeGame) or any(len(block.values) > 1 for block in every):
        columns[row] = [i for block in every for i in range(len(block.values)) for _ in range(block.values.shape[1])]
    columns["entry"] = [name for block in every for _ in block.values for name in _entries(block)]
    return {name: _alike(column) for name, column in columns.items()}


def table(problem: Problem, x: PyTree, samples: Samples | list[Samples] | None) -> dict[str, Any] | None:
    """One line for each agent or row, and a column for each entry; None where x is not made of such."""
    every, title = blocks(problem, x, samples), row_title(problem, x)
    if not title or (title == "row" and np.ndim(x) < 2):
        return None
    columns: dict[str, Any] = {title: np.arange(len(every[0].values))}
    for block in every:
        heads = block.entries or [f"{block.name or 'x'}[{i}]" for i in range(block.values.shape[1])]
        heads = [f"{block.name}.{head}" if block.name and block.entries else head for head in heads]
        columns |= dict(zip([f"{head} " if head == title else head for head in heads], block.values.T, strict=True))
    return columns


def named_rows(columns: dict[str, Any], agents: Sequence[str] | None) -> dict[str, Any]:
    """The columns with names in place of the agents' numbers."""
    if agents is None:
        return columns
    first = next(iter(columns))
    if first != "agent":
        refuse("agents", "are named, but this problem has none", "Leave it out")
    many = int(max(columns[first])) + 1
    if isinstance(agents, str) or len(agents) != many:
        said = "is one text" if isinstance(agents, str) else f"has {len(agents)} names"
        refuse("agents", f"{said}, but there are {many} agents", "Pass a list with one name for each")
    return columns | {first: [str(agents[int(i)]) for i in columns[first]]}


def _entries(block: Block) -> list[Any]:
    return list(range(block.values.shape[1])) if block.entries is None else list(block.entries)


def _alike(column: list[Any]) -> list[Any]:
    """All of one type: numbers, or words."""
    return column if len({type(one) for one in column}) <= 1 else [str(one) for one in column]
