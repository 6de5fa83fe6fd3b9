"""Finished pieces of work, kept on disk: a run that was killed finds them again and does only what is missing.

Each piece is one file, whole or not there. They lie in a folder named after the code that made them, so that no other
version's numbers are taken for this one's.
"""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epszero.report import write_file

Arrays = dict[str, NDArray[Any]]
CODE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Piece:
    """A part of an experiment that is worth keeping: equal keys mean equal work, whoever asks for it."""

    key: str
    run: Callable[[], Arrays]


@dataclass(frozen=True)
class Store:
    """The pieces below a folder."""

    folder: Path

    @staticmethod
    def within(out: Path, seed: int) -> "Store":
        """The store of an output folder, for this version of the code and this seed."""
        return Store(out / ".trials" / f"{_version()}-seed{seed}")

    def find(self, piece: Piece) -> Arrays | None:
        """What the piece gave, if it was finished."""
        try:
            with self._place(piece).open("rb") as file, np.load(file) as kept:
                return {name: kept[name] for name in kept.files}
        except (
            OSError,
            ValueError,
            EOFError,
            KeyError,
            zipfile.BadZipFile,
            zlib.error,
        ):  # not there, or spoilt: do it again
            return None

    def keep(self, piece: Piece, found: Arrays) -> None:
        """Remember it."""
        packed = io.BytesIO()
        np.savez_compressed(packed, allow_pickle=False, **found)
        write_file(self._place(piece), packed.getvalue())

    def _place(self, piece: Piece) -> Path:
        return self.folder / f"{piece.key}.npz"


@cache
def _version() -> str:
    """A digest of the package's code."""
    text = hashlib.sha256()
    for file in sorted(CODE.rglob("*.py")):
        text.update(file.relative_to(CODE).as_posix().encode() + b"\n" + file.read_bytes())
    return text.hexdigest()[:12]
