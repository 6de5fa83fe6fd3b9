"""Tables for users: Polars, or pandas where it is asked for and installed."""

import importlib
from collections.abc import Mapping
from typing import Any, Literal

from epszero._checks import one_of, refuse

Library = Literal["polars", "pandas"]
LIBRARIES = ("polars", "pandas")


def framed(columns: Mapping[str, Any], library: Library) -> Any:
    """A DataFrame with these columns, in this order."""
    one_of("library", library, LIBRARIES, "Leave it out for Polars")
    try:
        frames = importlib.import_module(library)
    except ImportError:
        refuse("library", f"{library} is not installed", f"Install it (pip install {library}), or leave it out")
    return frames.DataFrame(dict(columns))
