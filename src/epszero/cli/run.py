"""What commands on a user's model share: the loaded problem, the run, the solution in tables and records."""

import contextlib
import csv
import io
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import epszero as ez
from epszero.cli.endings import refuse
from epszero.cli.model import loaded
from epszero.cli.output import show, table, working

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from epszero.problems import Problem

ROWS, COLUMNS = 24, 12  # of x that are shown


@contextlib.contextmanager
def problem_of(model: str, doing: str, *, as_json: bool) -> "Generator[Problem]":
    """The problem, loaded, with signs of life while the body works on it."""
    with working(doing, as_json=as_json), loaded(model) as problem:
        yield problem


def solved(
    problem: "Problem",
    data: "ez.Samples | list[ez.Samples] | None",
    *,
    holdout: float | None = None,
    iterations: int | None = None,
    tol: float | None = None,
    step: float | None = None,
) -> "ez.Solution":
    """The solution; Ctrl-C ends the command instead of returning the last point."""
    if holdout is not None and data is None:
        refuse("--holdout", "is given, but nothing in the problem depends on samples", "Leave it out")
    method = None if step is None else ez.ForwardBackward(step=step)
    solution = ez.solve(problem, data, method, holdout=holdout, iterations=iterations, tol=tol)
    if solution.status is ez.Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution


def blocks(x: Any, name: str = "x") -> "Iterator[tuple[str, NDArray[Any]]]":
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
        yield name, _array(x)


def show_point(console: "Console", solution: "ez.Solution") -> None:
    """x, and the multipliers of shared constraints; shortened where they are large."""
    multipliers = solution.multipliers
    for name, array in [*blocks(solution.x), *blocks(multipliers, "multipliers")]:
        rows = _rows(array)
        wide = rows.shape[1] > COLUMNS
        shown = table("", title=f"{name}, {' × '.join(str(n) for n in array.shape) or 'a number'}")
        for column in range(min(rows.shape[1], COLUMNS)):
            shown.add_column(str(column), justify="right")
        if wide:
            shown.add_column("…")
        for place, row in enumerate(rows[:ROWS]):
            shown.add_row(str(place), *(f"{entry:.4g}" for entry in row[:COLUMNS]), *(["…"] if wide else []))
        console.print(shown)
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


def _array(x: Any) -> "NDArray[Any]":
    import numpy as np  # noqa: PLC0415  (--help needs none of it)

    return np.asarray(x)


def _rows(array: "NDArray[Any]") -> "NDArray[Any]":
    """An array as a matrix: a vector is one row."""
    return array.reshape(1, -1) if array.ndim < 2 else array.reshape(-1, array.shape[-1])


def record_of(solution: "ez.Solution", seed: int) -> dict[str, Any]:
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
        "samples": _data_of(samples),
        "seed": seed,
    }


def _data_of(samples: Any) -> Any:
    """How many rows, and which; a list where each agent has its own."""
    if isinstance(samples, list):
        return [_data_of(one) for one in samples]
    return {"rows": len(samples), "digest": samples.digest()} if isinstance(samples, ez.Samples) else None


def plain(x: Any) -> Any:
    """Arrays as lists, nested as they were."""
    if isinstance(x, dict):
        return {str(key): plain(part) for key, part in x.items()}
    if isinstance(x, tuple) and hasattr(x, "_asdict"):
        return plain(x._asdict())  # pyright: ignore[reportAttributeAccessIssue]  (a NamedTuple)
    if isinstance(x, list | tuple):
        return [plain(part) for part in x]
    return None if x is None else _array(x).tolist()
