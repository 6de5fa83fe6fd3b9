"""Progress: a bar on request, or a function of the user's.

On a terminal it is Rich's bar; in a notebook one cell of output that is replaced, which needs no widgets; elsewhere, as
in a log, a line for each tenth. All of it goes to the standard error but for the notebook's.
"""

import html
import importlib
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from epszero._checks import refuse

Report = Callable[[int, float], None]
AGAIN = 0.1  # seconds between two looks of a notebook's reader


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
    elif progress is not True:
        yield progress
    elif in_notebook():
        yield from _in_a_cell(total, title)
    elif sys.stderr.isatty():
        yield from _on_a_terminal(total, title)
    else:
        yield _in_lines(total, title)


def in_notebook() -> bool:
    """Whether output goes to a notebook, by Rich's judgement; nothing is imported that is not there."""
    if "IPython" not in sys.modules:
        return False
    from rich.console import Console  # noqa: PLC0415  (slow to import, and only for those who watch)

    return Console().is_jupyter


def _on_a_terminal(total: int, title: str) -> Generator[Report]:
    from rich.console import Console  # noqa: PLC0415  (as above)
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415  (as above)

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TextColumn("residual {task.fields[residual]:.2e}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, transient=True, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total, residual=float("nan"))
        yield lambda iteration, residual: bar.update(task, completed=iteration, residual=residual)


def _in_a_cell(total: int, title: str) -> Generator[Report]:
    display: Any = importlib.import_module("IPython.display").display
    shown = display(_cell(0, total, title, float("nan")), raw=True, display_id=True)
    last, seen = (0, float("nan")), time.monotonic()

    def report(iteration: int, residual: float) -> None:
        nonlocal last, seen
        last = iteration, residual
        if time.monotonic() - seen >= AGAIN:
            shown.update(_cell(iteration, total, title, residual), raw=True)
            seen = time.monotonic()

    try:
        yield report
    finally:
        shown.update(_cell(last[0], total, title, last[1]), raw=True)


def _cell(iteration: int, total: int, title: str, residual: float) -> dict[str, str]:
    """The same as text and as HTML."""
    said = _said(iteration, total, title, residual)
    bar = f'<progress value="{iteration}" max="{max(total, 1)}"></progress>'
    return {"text/plain": said, "text/html": f"{bar} <span>{html.escape(said)}</span>"}


def _in_lines(total: int, title: str) -> Report:
    tenth = 0

    def report(iteration: int, residual: float) -> None:
        nonlocal tenth
        now = 10 * iteration // max(total, 1)
        if now > tenth:
            tenth = now
            sys.stderr.write(f"{_said(iteration, total, title, residual)}\n")

    return report


def _said(iteration: int, total: int, title: str, residual: float) -> str:
    known = f", residual {residual:.2e}" if residual == residual else ""  # noqa: PLR0124  (not a number at first)
    return f"{title}: {iteration} of at most {total} iterations{known}"
