"""What commands print and write: people read stdout, machines one JSON document; files are all there or none is.

Rich and the room of reports load here, with the first thing that is shown or written, so that --help needs neither.
"""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import epszero as ez
from epszero.cli.endings import refuse

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

PIPE_WIDTH = 200  # of tables where there is no terminal to ask
VERDICT_STYLES = {
    "guaranteed": "bold green",
    "conditional": "bold green",
    "heuristic": "bold yellow",
    "refused": "bold red",
}


def screen(*, stderr: bool = False) -> "Console":
    """Where people read: as wide as the terminal; in a pipe wide enough for tables, and without colours."""
    from rich.console import Console  # noqa: PLC0415  (see above)

    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _text(words: str) -> "Text":
    from rich.text import Text  # noqa: PLC0415  (see above)

    return Text(words)


def table(*heads: str, title: str | None = None) -> "Table":
    """An empty table, its title to the left."""
    from rich.table import Table  # noqa: PLC0415  (see above)

    return Table(*heads, title=title, title_justify="left")


def show(console: "Console", thing: object) -> None:
    """A certificate, audit, plan or sentence, with its own line breaks and no others."""
    text = _text(str(thing))
    for verdict, style in VERDICT_STYLES.items():
        text.highlight_regex(rf"(?m)verdict: {verdict}$", style)
    console.print(text, soft_wrap=True)


def emit(record: object) -> None:
    """The one JSON document of `--json`."""
    letters = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    sys.stdout.write(json.dumps(record, indent=1, ensure_ascii=not letters, allow_nan=False) + "\n")


@contextlib.contextmanager
def working(what: str, *, as_json: bool = False) -> Generator[None]:
    """While the library works: a sign of life on a terminal, and stdout kept free for the one document."""
    console = screen(stderr=True)
    with contextlib.ExitStack() as stack:
        if as_json:
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        if console.is_terminal:
            stack.enter_context(console.status(_text(f"{what} …")))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ez.ConvexityWarning)  # solution.notes says the same
        yield


def check_places(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | Sequence[Path] | None]) -> None:
    """Refuse, before any work, files that could not be written, or that would replace what is read."""
    read = {path.resolve(): option for option, paths in inputs.items() for path in _all(paths)}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.is_dir():
            refuse(option, f"{str(path)!r} is a folder", "Pass the name of a file")
        if path.resolve() in read:
            refuse(option, f"{str(path)!r} is also given as {read[path.resolve()]}", "Pass another name")
        if path.exists() and not os.access(path, os.W_OK):
            refuse(option, f"{str(path)!r} is there, and may not be written to", "Pass another name")
        check_folder(option, path.absolute().parent)
        read[path.resolve()] = option


def _all(paths: Path | Sequence[Path] | None) -> Sequence[Path]:
    return [] if paths is None else [paths] if isinstance(paths, Path) else paths


def check_folder(option: str, folder: Path) -> None:
    """Refuse a folder in which no file can be made; one that is missing will be."""
    place = folder.absolute()
    while not (place.exists() or place.is_symlink()):
        place = place.parent
    if not place.is_dir():
        refuse(option, f"{str(place)!r} is not a folder", "Pass a place in a folder")
    if not os.access(place, os.W_OK):
        refuse(option, f"no file can be made in {str(place)!r}", "Pass a place where you may write")


def drawings(sheet: "Figure") -> dict[str, bytes]:
    """A figure in each form in which figures are written."""
    from epszero.report import FORMS, drawn  # noqa: PLC0415  (see above)

    return {form: drawn(sheet, form) for form in FORMS}


def write_all(files: Mapping[Path, str | bytes]) -> None:
    """Write every file, or leave everything as it was."""
    from epszero.report import WRITING, write_file  # noqa: PLC0415  (see above)

    with WRITING:  # Ctrl-C waits for all of them
        ours = [path for path in files if path.is_file() or not path.exists()]  # not a device, nor a named pipe
        before = {path: path.read_bytes() if path.exists() else None for path in ours}
        try:
            for path, content in files.items():
                write_file(path, content)
        except BaseException:
            for path, old in before.items():
                with contextlib.suppress(OSError):
                    if old is None:
                        path.unlink(missing_ok=True)
                    else:
                        write_file(path, old)
            raise
