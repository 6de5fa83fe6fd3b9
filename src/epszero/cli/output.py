"""What commands print and write: people read stdout, machines one JSON document; files are all there or none is."""

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

import epszero as ez
from epszero.cli.endings import refuse
from epszero.report import write_file

PIPE_WIDTH = 200  # of tables where there is no terminal to ask
VERDICT_STYLES = {"guaranteed": "bold green", "conditional": "bold green", "heuristic": "bold yellow",
                  "refused": "bold red"}  # fmt: skip


def screen(*, stderr: bool = False) -> Console:
    """Where people read: as wide as the terminal; in a pipe wide enough for tables, and without colours."""
    console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def show(console: Console, thing: Any) -> None:
    """A certificate, audit, plan or sentence, with its own line breaks and no others."""
    text = Text(str(thing))
    for verdict, style in VERDICT_STYLES.items():
        text.highlight_regex(rf"(?m)verdict: {verdict}$", style)
    console.print(text, soft_wrap=True)


def emit(record: Any) -> None:
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
            stack.enter_context(console.status(Text(f"{what} …")))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore", ez.ConvexityWarning)  # solution.notes says the same
        yield


def check_places(outputs: Mapping[str, Path | None], inputs: Mapping[str, Path | None]) -> None:
    """Refuse, before any work, files that could not be written, or that would replace what is read."""
    read = {path.resolve(): option for option, path in inputs.items() if path is not None}
    for option, path in outputs.items():
        if path is None:
            continue
        if path.is_dir():
            refuse(option, f"{str(path)!r} is a folder", "Pass the name of a file")
        if path.resolve() in read:
            refuse(option, f"{str(path)!r} is also given as {read[path.resolve()]}", "Pass another name")
        check_folder(option, path.absolute().parent)
        read[path.resolve()] = option


def check_folder(option: str, folder: Path) -> None:
    """Refuse a folder in which no file can be made; one that is missing will be."""
    place = folder.absolute()
    while not (place.exists() or place.is_symlink()):
        place = place.parent
    if not place.is_dir():
        refuse(option, f"{str(place)!r} is not a folder", "Pass a place in a folder")
    if not os.access(place, os.W_OK):
        refuse(option, f"no file can be made in {str(place)!r}", "Pass a place where you may write")


def write_all(files: Mapping[Path, str | bytes]) -> None:
    """Write every file, or leave everything as it was."""
    before = {path: path.read_bytes() if path.exists() else None for path in files}
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
