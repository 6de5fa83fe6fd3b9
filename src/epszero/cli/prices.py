"""Options that say how a file of prices is to be read, where it does not say so itself."""

from typing import Annotated

import typer

from epszero.cli.options import DATA

TimeColumn = Annotated[
    str | None,
    typer.Option(
        "--time-column",
        metavar="NAME",
        help="Which column has the times, where names do not tell.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
PriceColumn = Annotated[
    str | None,
    typer.Option(
        "--price-column",
        metavar="NAME",
        help="Which column has the prices, where names do not tell.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
HourEnding = Annotated[
    bool | None,
    typer.Option(
        "--hour-ending/--hour-beginning",
        help="Whether 7 is the hour until 7:00 or the one from then on, where the file does not tell.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
OPTIONS = {  # arguments of `ez.datasets.read_prices` by the options that they come from
    "time_column": "--time-column",
    "price_column": "--price-column",
    "hour_labels": "--hour-ending",
}


def labels(ending: bool | None) -> str | None:
    """The argument `hour_labels`."""
    return None if ending is None else "ending" if ending else "beginning"
