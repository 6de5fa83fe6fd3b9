"""Progress: a Rich bar on request, or a function of the user's."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from epszero._checks import refuse

Report = Callable[[int, float], None]


def checked_progress(progress: Any) -> None:
    """True, False, None or a function."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        refuse("progress", f"must be True, False or a function of (iteration, residual), but it is {progress!r}",
               "Pass progress=True for a bar")  # fmt: skip


@contextmanager
def reporting(progress: Any, total: int, title: str) -> Generator[Report]:
    """A function to call with (iteration, residual) after each block."""
    if progress is None or progress is False:
        yield lambda iteration, residual: None
    elif progress is True:
        columns = (TextColumn(title), BarColumn(), TextColumn("{task.completed}/{task.total}"),
                   TextColumn("residual {task.fields[residual]:.2e}"), TimeRemainingColumn())  # fmt: skip
        with Progress(*columns, transient=True) as bar:
            task = bar.add_task(title, total=total, residual=float("nan"))
            yield lambda iteration, residual: bar.update(task, completed=iteration, residual=residual)
    else:
        yield progress
