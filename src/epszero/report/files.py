"""Files that are whole or not there: written beside their place under another name, then moved in one step.

A place that is no file (`/dev/stdout`, a named pipe) is written to as it is; behind a link, the file that it leads to.
"""

import os
import secrets
import threading
from pathlib import Path

from epszero._checks import refuse

WRITING = threading.RLock()
"""Held while files are written: who ends the process takes it first."""


def checked_place(path: object, example: str) -> str | os.PathLike[str]:
    """The name of a file, refused in a sentence where it is something else."""
    if not isinstance(path, str | os.PathLike):
        refuse("path", f"must be the name of a file, but it is a {type(path).__name__}", f'Pass "{example}", say')
    if Path(path).is_dir():
        refuse("path", f"{os.fspath(path)!r} is a directory", f"Name a file in it, such as {example}")
    return path


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write text (UTF-8) or bytes, replacing what was there at once; a failure or a kill leaves the old file."""
    place = Path(path)
    data = content.encode(errors="replace") if isinstance(content, str) else content
    try:
        with WRITING:
            if place.exists() and not place.is_file():
                place.write_bytes(data)
            else:
                _replace(Path(os.path.realpath(place)), data)
    except OSError as error:  # it speaks of the place, not of what lies beside it
        raise OSError(error.errno, error.strerror, str(place)) from error
    return place


def _replace(place: Path, data: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.{secrets.token_hex(6)}.part")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
