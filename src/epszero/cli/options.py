"""Options that several commands share, each with its help."""

from pathlib import Path
from typing import Annotated

import typer

DATA = "Data"
OUTPUT = "Output"

Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL.py:NAME",
        help="Your Python file, and in it the name of a problem (ez.Game, ez.AggregativeGame, "
        "ez.VariationalInequality, ez.Minimization, ez.Inclusion) or of a function that returns one.",
        show_default=False,
    ),
]
SamplesFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--samples",
        metavar="FILE",
        help="CSV or Parquet file, one row per sample. Once for all agents, or once for each, in their order.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B,…",
        help="Which columns of it, in this order; all unless told. Once, or once for each --samples.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Support = Annotated[
    list[str] | None,
    typer.Option(
        metavar="LO,HI",
        rich_help_panel=DATA,
        show_default=False,
        help="Where every possible sample lies, known and not read off the data: two numbers for all columns "
        "(--support=-0.5,4), or one LO:HI per column (--support=0:1,-2:2). Once, or once for each --samples.",
    ),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows with missing values.", rich_help_panel=DATA)
]
Draws = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        rich_help_panel=DATA,
        show_default=False,
        help="Use N independent draws, with replacement, of the rows, for data whose order is dependent: "
        "the law is then that of a row of the file picked at random.",
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, help="Of all that is drawn at random.")]
Delta = Annotated[float, typer.Option(metavar="P", help="Probability of failure: 0.05 for 95 % confidence.")]
Holdout = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of the samples that the run never sees, 0.3 say.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Iterations = Annotated[
    int | None,
    typer.Option(metavar="K", min=0, help="Exactly so many, instead of a tolerance.", show_default=False),
]
Tolerance = Annotated[
    float | None, typer.Option("--tol", metavar="R", help="Stop at this residual.", show_default=False)
]
Step = Annotated[
    float | None,
    typer.Option(metavar="GAMMA", help="Forward-backward with this step; chosen unless told.", show_default=False),
]
Json = Annotated[
    bool, typer.Option("--json", help="One JSON document on stdout, nothing else.", rich_help_panel=OUTPUT)
]
Report = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a page (HTML, in one file) to this place.",
        rich_help_panel=OUTPUT,
        show_default=False,
    ),
]
