"""`epszero reproduce`: figures and tables of the paper, beside what was published."""

import contextlib
import difflib
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import epszero as ez
from epszero.cli import options
from epszero.cli.endings import refuse
from epszero.cli.output import check_folder, screen, show, table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID
    from rich.table import Table

# Those of ez.experiments, for completion before anything is loaded.
NAMES = (
    "fig1",
    "fig2",
    "fig3",
    "fig4",
    "table2",
    "references",
    "tightness",
    "coverage",
    "convergence",
    "growth",
    "dependent",
    "splitting",
    "likely",
)
ROWS = 40  # of a table that are shown

Report = Callable[[str, int, int], None]


def _completed(incomplete: str) -> list[str]:
    return [name for name in (*NAMES, "all") if name.startswith(incomplete)]


Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME…|all]",
        help=f"Among {', '.join(NAMES)}; all unless told.",
        autocompletion=_completed,
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option(metavar="DIR", help="The folder for tables and figures; what it holds is resumed.")]
Trials = Annotated[int, typer.Option(metavar="N", min=2, help="Repetitions of each experiment.")]


def reproduce(
    names: Names = None, out: Out = Path("reproduction"), trials: Trials = 50, seed: options.Seed = 0
) -> None:
    """Reproduce figures and tables of the paper on real prices, side by side with what was published.

    An interrupted run goes on where it was when it is started again with the same folder.

    **Examples**

    `epszero reproduce all --out results`

    `epszero reproduce fig1 table2 --out results --trials 10`
    """
    chosen = _chosen(names or ["all"])
    if out.exists() and not out.is_dir():
        refuse("--out", f"{str(out)!r} is not a folder", "Pass the name of a folder")
    check_folder("--out", out)
    with _progress(chosen) as progress:
        results = ez.experiments.reproduce(chosen, out, trials=trials, seed=seed, progress=progress)
    console = screen()
    for result in results:
        _show(console, result)


def _chosen(names: Sequence[str]) -> list[str]:
    known = ez.experiments.NAMES
    for name in names:
        if name not in (*known, "all"):
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            refuse("NAME", f"there is no experiment {name!r}", f"{hint}There are: {', '.join(known)}, or all")
    return list(known) if "all" in names else list(dict.fromkeys(names))


@contextlib.contextmanager
def _progress(names: Sequence[str]) -> Generator[Report]:
    """A bar for each experiment on a terminal; without one a line at each tenth."""
    console = screen(stderr=True)
    if not console.is_terminal:
        yield _lines(console)
        return
    from rich import progress as bar  # noqa: PLC0415  (for those who have a terminal)

    columns = (
        bar.TextColumn("{task.description}"),
        bar.BarColumn(),
        bar.MofNCompleteColumn(),
        bar.TimeElapsedColumn(),
        bar.TextColumn("left"),
        bar.TimeRemainingColumn(),
    )
    with bar.Progress(*columns, console=console) as bars:
        tasks = {name: bars.add_task(name, total=None, start=False) for name in names}
        yield _bars(bars, tasks)


def _bars(bars: "Progress", tasks: "dict[str, TaskID]") -> Report:
    begun: set[str] = set()

    def report(name: str, done: int, total: int) -> None:
        if name in begun:
            bars.update(tasks[name], completed=done, total=total)
        else:  # what an earlier run had finished says nothing of the speed of this one
            begun.add(name)
            bars.reset(tasks[name], completed=done, total=total)

    return report


def _lines(console: "Console") -> Report:
    told: dict[str, int] = {}

    def report(name: str, done: int, total: int) -> None:
        tenth = 10 * done // max(total, 1)
        if told.get(name) != tenth:
            told[name] = tenth
            show(console, f"{name}: {done} of {total}")

    return report


def _show(console: "Console", result: "ez.experiments.Result") -> None:
    show(console, f"\n{result.name}: {result.title}")
    frame = result.table
    lines = [frame.columns, *([_cell(value) for value in row] for row in frame.head(ROWS).iter_rows())]
    cells = _table(lines)
    wanted = console.measure(cells, options=console.options.update(width=10_000)).maximum
    if wanted > console.width and len(lines) <= len(frame.columns):
        cells = _table(list(zip(*lines, strict=True)))  # too wide: names in a column, not in a row
    console.print(cells)
    if frame.height > ROWS:
        show(console, f"… and {frame.height - ROWS} more rows, in the files below")
    if result.text:
        show(console, result.text)
    if result.comparisons:
        sides = table("", "paper", "ours", "why they differ")
        for one in result.comparisons:
            sides.add_row(one.what, one.paper, one.ours, one.reason)
        console.print(sides)
    for path in result.files:
        show(console, f"Written: {path}")


def _table(lines: Sequence[Sequence[str]]) -> "Table":
    made = table(*lines[0])
    for line in lines[1:]:
        made.add_row(*line)
    return made


def _cell(value: object) -> str:
    return "—" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
