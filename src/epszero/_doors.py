"""The door between what users hold and the room that draws it: rooms below `report` do not import it.

What a notebook or a picture asks for is fetched by name when it is asked for, as `epszero/__init__.py` does with
public names; nobody pays for it who does not look.
"""

import importlib
from typing import Any


def html_of(thing: Any) -> str:
    """The thing as a cell of a notebook (report/cells.py); assigned as `_repr_html_`."""
    return importlib.import_module("epszero.report.cells").cell(thing)


def saved(solution: Any, path: Any, data: Any) -> Any:
    """The solution in a file (report/saved.py)."""
    return importlib.import_module("epszero.report.saved").save(solution, path, data)


def picture_of(problem: Any, solution: Any, certificate: Any) -> Any:
    """A Matplotlib figure of any answer (report/pictures.py)."""
    return importlib.import_module("epszero.report.pictures").picture(problem, solution, certificate)


def certified(solutions: Any, delta: Any, using: Any, of: Any) -> Any:
    """Certificates of many solutions (certificates/certify.py)."""
    return importlib.import_module("epszero.certificates").certify_many(solutions, delta, using, of)
