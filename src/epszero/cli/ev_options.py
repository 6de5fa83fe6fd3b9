"""The options of `epszero ev`, each with its help."""

from pathlib import Path
from typing import Annotated

import typer

from epszero.cli.options import DATA, OUTPUT

FLEET, SURE = "Vehicles", "How sure"

PricesFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help="Hourly prices of many days: ENTSO-E or Ember exports, or your own. All of its days count.",
        show_default=False,
    ),
]
FleetOption = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        show_default=False,
        help="A row per vehicle: need (kWh), and if you like id or name, cap (kWh an hour), arrive and depart (22:00), "
        "fee (€/kWh) and wear (€/kWh²), which are 0 where there are none.",
    ),
]
Tomorrow = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        show_default=False,
        help="In place of --prices: the prices of one day, which are known. The plan is for that day, and exact.",
    ),
]
Hours = Annotated[
    str, typer.Option(metavar="A-B", help="Hours of the day, 0-13 say, or 0-5,22,23; 22-5 goes beyond midnight.")
]
First = Annotated[
    str | None,
    typer.Option(metavar="DAY", help="First day, as in 2024-01-31.", rich_help_panel=DATA, show_default=False),
]
Last = Annotated[str | None, typer.Option(metavar="DAY", help="Last day.", rich_help_panel=DATA, show_default=False)]
Zone = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Area or country, where the file has several.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Unit = Annotated[
    str | None,
    typer.Option(
        metavar="UNIT",
        rich_help_panel=DATA,
        show_default=False,
        help="Of a file with a row per day: EUR/MWh unless told, EUR/kWh or ct/kWh.",
    ),
]
TimeZone = Annotated[str, typer.Option(metavar="NAME", help="Whose clock days and hours follow.", rich_help_panel=DATA)]
Limits = Annotated[
    str | None,
    typer.Option(
        metavar="LO,HI",
        rich_help_panel=SURE,
        show_default=False,
        help="Where every possible price lies, in EUR/MWh; unless told the limits of the market, -500,4000.",
    ),
]
Cap = Annotated[
    float,
    typer.Option(
        metavar="KWH", help="What a vehicle can charge in an hour, where the fleet does not say.", rich_help_panel=FLEET
    ),
]
Capacity = Annotated[
    float | None,
    typer.Option(
        metavar="KWH",
        help="What all vehicles together may draw in an hour.",
        show_default=False,
        rich_help_panel=FLEET,
    ),
]
Reference = Annotated[
    float | None,
    typer.Option(
        metavar="KWH",
        show_default=False,
        rich_help_panel=FLEET,
        help="With --weight: what the average vehicle should draw in an hour; unless told their mean need, spread "
        "evenly.",
    ),
]
Weight = Annotated[
    float,
    typer.Option(
        metavar="W",
        rich_help_panel=FLEET,
        help="Flattens the demand: leaving the reference costs everyone W times the squared difference, summed over "
        "the hours. 0 leaves prices alone.",
    ),
]
Mixing = Annotated[
    str | None,
    typer.Option(
        metavar="C,R",
        rich_help_panel=SURE,
        show_default=False,
        help="Your word that days which are a days apart depend on each other by at most C·R^a (β-mixing), and stay as "
        "they are: what is sure then speaks of days to come, too.",
    ),
]
Draws = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        rich_help_panel=SURE,
        show_default=False,
        help="The paper's experiment: plan for N days drawn from the file, with replacement. What is sure then speaks "
        "of a day of the file picked at random, and of no other day.",
    ),
]
Out = Annotated[
    Path,
    typer.Option(metavar="FILE", help="A row per vehicle, a column per hour; .csv or .xlsx.", rich_help_panel=OUTPUT),
]
