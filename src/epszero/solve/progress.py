"""Progress: a Rich bar on request, or a function of the user's."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from epszero._checks import refuse

Report = Callable[[int, float], None]


def checked_progress(progress: Any) -> None:
    """True, False, None or a function."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        refuse(
            "progress",
            f"must be True, False or a function of (iteration, residual), but it is {progress!r}",
            "Pass progress=True for a bar",
        )


@contextmanager
def reporting(progress: Any, total: int, title: str) -> Generator[Report | None]:
    """A function to call with (iteration, residual) after each block; None where nobody asks."""
    if progress is None or progress is False:
        yield None
    elif progress is True:
        from rich.progress import (  # noqa: PLC0415  (slow to import, and only for those who watch)
            BarColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        columns = (
            TextColumn(title),
            BarColumn(),
            TextColumn("{task.completed}/{task.total}"),
            TextColumn("residual {task.fields[residual]:.2e}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, transient=True) as bar:
            task = bar.add_task(title, total=total, residual=float("nan"))
            yield lambda iteration, residual: bar.update(task, completed=iteration, residual=residual)
    else:
        yield progress
