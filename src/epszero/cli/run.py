"""What commands on a user's model share: the loaded problem, the run, the solution in tables and records."""

import contextlib
import csv
import io
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import epszero as ez
from epszero.cli.endings import refuse
from epszero.cli.model import loaded
from epszero.cli.output import show, working

ROWS, COLUMNS = 24, 12  # of x that are shown


@contextlib.contextmanager
def problem_of(model: str, doing: str, *, as_json: bool) -> Generator[Any]:
    """The problem, loaded, with signs of life while the body works on it."""
    with working(doing, as_json=as_json), loaded(model) as problem:
        yield problem


def solved(
    problem: Any, data: Any, *, holdout: float | None, iterations: int | None, tol: float | None, step: float | None
) -> Any:
    """The solution; Ctrl-C ends the command instead of returning the last point."""
    if holdout is not None and data is None:
        refuse("--holdout", "is given, but nothing in the problem depends on samples", "Leave it out")
    method = None if step is None else ez.ForwardBackward(step=step)
    solution = ez.solve(problem, data, method, holdout=holdout, iterations=iterations, tol=tol)
    if solution.status is ez.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


def blocks(x: Any, name: str = "x") -> Iterator[tuple[str, Any]]:
    """The arrays that a point is made of, each with its name: x, x[0], x["left"]."""
    if isinstance(x, dict):
        for key, part in x.items():
            yield from blocks(part, f"{name}[{key!r}]")
    elif isinstance(x, tuple) and hasattr(x, "_asdict"):
        for key, part in x._asdict().items():  # pyright: ignore[reportAttributeAccessIssue]  (a NamedTuple)
            yield from blocks(part, f"{name}.{key}")
    elif isinstance(x, list | tuple):
        for place, part in enumerate(x):
            yield from blocks(part, f"{name}[{place}]")
    elif x is not None:
        yield name, np.asarray(x)


def show_point(console: Console, solution: Any) -> None:
    """x, and the multipliers of shared constraints; shortened where they are large."""
    multipliers = solution.multipliers
    for name, array in [*blocks(solution.x), *blocks(multipliers, "multipliers")]:
        rows = _rows(array)
        wide = rows.shape[1] > COLUMNS
        table = Table(title=f"{name}, {' × '.join(str(n) for n in array.shape) or 'a number'}", title_justify="left")
        table.add_column("")
        for column in range(min(rows.shape[1], COLUMNS)):
            table.add_column(str(column), justify="right")
        if wide:
            table.add_column("…")
        for place, row in enumerate(rows[:ROWS]):
            table.add_row(str(place), *(f"{entry:.4g}" for entry in row[:COLUMNS]), *(["…"] if wide else []))
        console.print(table)
        if len(rows) > ROWS:
            show(console, f"… and {len(rows) - ROWS} more rows: --out FILE.csv writes them all.")


def csv_of(x: Any) -> str:
    """x as CSV: one array as its rows; several as lines of block, row and entries."""
    parts = list(blocks(x))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    width = max(_rows(array).shape[1] for _, array in parts)
    heads = [f"x{column}" for column in range(width)]
    writer.writerow(heads if len(parts) == 1 else ["block", *heads])
    for name, array in parts:
        for row in _rows(array):
            entries = [repr(float(entry)) for entry in row]
            writer.writerow(entries if len(parts) == 1 else [name, *entries, *[""] * (width - len(entries))])
    return text.getvalue()


def _rows(array: Any) -> Any:
    """An array as a matrix: a vector is one row."""
    return np.reshape(array, (1, -1)) if array.ndim < 2 else np.reshape(array, (-1, array.shape[-1]))


def record_of(solution: Any, seed: int) -> dict[str, Any]:
    """A solution for machines."""
    samples = solution.samples
    check = solution.check()
    return {
        "status": solution.status.value,
        "message": solution.message,
        "iterations": solution.iterations,
        "residual": solution.residual,
        "method": solution.method.description,
        "notes": list(solution.notes),
        "check": {"in_domain": bool(check.in_domain), "gap": float(check.gap), "residual": check.residual},
        "x": plain(solution.x),
        "multipliers": plain(solution.multipliers),
        "samples": None if samples is None else {"rows": len(samples), "digest": samples.digest()},
        "seed": seed,
    }


def plain(x: Any) -> Any:
    """Arrays as lists, nested as they were."""
    if isinstance(x, dict):
        return {str(key): plain(part) for key, part in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_asdict"):
        return plain(x._asdict())  # pyright: ignore[reportAttributeAccessIssue]  (a NamedTuple)
    if isinstance(x, list | tuple):
        return [plain(part) for part in x]
    return None if x is None else np.asarray(x).tolist()
