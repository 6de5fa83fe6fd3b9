"""The door between what users hold and the room that draws it: rooms below `report` do not import it.

What a notebook or a picture asks for is fetched by name when it is asked for, as `epszero/__init__.py` does with
public names; nobody pays for it who does not look.
"""

import importlib
from typing import Any


def html_of(thing: Any) -> str:
    """The thing as a cell of a notebook (report/cells.py); assigned as `_repr_html_`."""
    return importlib.import_module("epszero.report.cells").cell(thing)
